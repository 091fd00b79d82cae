"""The paper's experiments, and the references that figures are measured against."""

from ._plain import plain_algorithm
from ._speed import IterationSpeed, compare_iterations

__all__ = ["IterationSpeed", "compare_iterations", "plain_algorithm"]
