"""The paper's experiments, the league of all methods, and the references that figures are measured against."""

from ._paper import METHODS, PAPER_DATA, RATES
from ._plain import plain_algorithm
from ._reproduce import Outcome, Request
from ._reproduce import reproduce as reproduce_paper
from ._runner import Progress
from ._speed import IterationSpeed, compare_iterations
from .league import LeagueOutcome, LeagueRequest, run_league

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
    "compare_iterations",
    "plain_algorithm",
    "reproduce_paper",
    "run_league",
]
