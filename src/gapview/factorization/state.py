"""Where the loop stands between two iterations: all that it takes to go on from there."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..utils.types import Array
from .runs import Run, Solution, Stack, lay_out

__all__ = ["Standing"]

_ARRAYS = [part.name for part in fields(Stack) if part.name not in ("problem", "runs")]  # what an iteration changes


@dataclass
class Standing:
    """The runs that go on, those that have ended, and what the next iteration starts from."""

    runs: list[Run]  # all of them
    stack: Stack
    correlations: list[Array]  # (HᵀP)ᵀ for every view
    n_iter: int = 0
    ended: dict[int, Solution] = field(default_factory=dict)  # by the place of their run

    @property
    def has_ended(self) -> bool:
        """Whether no run goes on."""
        return len(self.ended) == len(self.runs)

    def end(self, runs: list[Run]) -> None:
        """Take out runs that go no further."""
        self.ended |= {self.runs.index(run): self.stack.solution(run) for run in runs}
        if runs and not self.has_ended:
            self.stack, self.correlations = self.stack.without(runs, self.correlations)

    def solutions(self) -> list[Solution]:
        """Return where all runs have ended."""
        return [self.ended[place] for place in range(len(self.runs))]

    def state(self) -> dict[str, Any]:
        """Write it in lists, numbers and arrays; the codes in it are those of the loop, and change with it."""
        going = [] if self.has_ended else self.stack.runs
        return {
            "n_iter": self.n_iter,
            "going": [place for place, run in enumerate(self.runs) if run in going],
            "objectives": [np.asarray(run.objective) for run in self.runs],
            "converged": [run.converged for run in self.runs],
            "stack": {name: getattr(self.stack, name) for name in _ARRAYS} if going else {},
            "correlations": self.correlations if going else [],
            "ended": [[place, s.bases, s.codes, s.consensus] for place, s in self.ended.items()],
        }

    @classmethod
    def of(cls, state: dict[str, Any], start: Stack) -> Standing:
        """Go back to where runs stood that start from here."""
        runs = list(start.runs)
        for run, objective, converged in zip(runs, state["objectives"], state["converged"], strict=True):
            run.objective, run.converged = objective.tolist(), converged
        going = [runs[place] for place in state["going"]]
        lay_out(going)
        standing = cls(runs, replace(start, runs=going, **state["stack"]), state["correlations"], state["n_iter"])
        for place, bases, of_views, mean in state["ended"]:
            run = runs[place]
            history = np.asarray(run.objective)
            standing.ended[place] = Solution(bases, of_views, mean, history, len(history), run.converged)
        return standing
