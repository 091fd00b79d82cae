"""The paper's experiments, the league of all methods, and the references that figures are measured against."""

from ._paper import METHODS, PAPER_DATA, RATES
from ._reproduce import Outcome, Request
from ._reproduce import reproduce as reproduce_paper
from ._runner import Progress
from .league import LeagueOutcome, LeagueRequest, run_league
from .speed import (
    IterationSpeed,
    ScaleOutcome,
    ScaleRequest,
    SpeedOutcome,
    SpeedRequest,
    compare_iterations,
    plain_algorithm,
    run_scale,
    run_speed,
)

__all__ = [
    "METHODS",
    "PAPER_DATA",
    "RATES",
    "IterationSpeed",
    "LeagueOutcome",
    "LeagueRequest",
    "Outcome",
    "Progress",
    "Request",
    "ScaleOutcome",
    "ScaleRequest",
    "SpeedOutcome",
    "SpeedRequest",
    "compare_iterations",
    "plain_algorithm",
    "reproduce_paper",
    "run_league",
    "run_scale",
    "run_speed",
]
