"""The paper's experiments, and the references that figures are measured against."""

from ._paper import METHODS, PAPER_DATA, RATES
from ._plain import plain_algorithm
from ._reproduce import Outcome, Request
from ._reproduce import reproduce as reproduce_paper
from ._runner import Progress
from ._speed import IterationSpeed, compare_iterations

__all__ = [
    "METHODS",
    "PAPER_DATA",
    "RATES",
    "IterationSpeed",
    "Outcome",
    "Progress",
    "Request",
    "compare_iterations",
    "plain_algorithm",
    "reproduce_paper",
]
