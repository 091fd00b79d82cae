"""The factorisation problem, its closed-form steps and the loop that solves it (Algorithm 1)."""

from .loop import Solution, Weights
from .problem import Problem, build_problem
from .sweep import solve, solve_together

__all__ = ["Problem", "Solution", "Weights", "build_problem", "solve", "solve_together"]
