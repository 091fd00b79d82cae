"""The factorisation problem, its closed-form steps and the loop that solves it (Algorithm 1)."""

from .loop import solve, solve_together
from .problem import Problem, build_problem
from .runs import Solution, Weights

__all__ = ["Problem", "Solution", "Weights", "build_problem", "solve", "solve_together"]
