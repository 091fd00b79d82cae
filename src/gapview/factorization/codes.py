"""Codes of all samples from the solution of a problem."""

from __future__ import annotations

import numpy as np

from ..compute import host
from ..scaling import Scaling
from ..utils.types import Array
from ..views import Views
from .problem import Problem
from .runs import Solution

__all__ = ["codes_of_all", "codes_of_present"]


def codes_of_present(
    solution: Solution, problem: Problem, views: Views, scalings: list[Scaling]
) -> tuple[list[Array], Array]:
    """Return the codes of all present rows, one array per view, and the consensus of all samples.

    A row that no neighbour reaches is projected on the basis (Remark 1).
    """
    codes, embedding = [], solution.consensus.copy()
    unreached = host(problem.n_codes) == 0
    for k, (term, basis, code) in enumerate(zip(problem.terms, solution.bases, solution.codes, strict=True)):
        rows, reached = views.rows(k), host(problem.rows[term.part])
        if len(reached) < len(rows):
            alone = ~np.isin(rows, reached)
            projected = np.asarray(host(scalings[k].apply(views[rows[alone]].matrices[k])) @ basis.T)
            whole = np.empty((len(rows), code.shape[1]), dtype=code.dtype)
            whole[alone], whole[~alone] = projected, code
            lost = unreached[rows[alone]]
            embedding[rows[alone][lost]] += projected[lost]
            code = whole
        codes.append(code)
    embedding[unreached] /= views.mask[unreached].sum(axis=1, keepdims=True).astype(embedding.dtype)
    return codes, embedding


def codes_of_all(problem: Problem, solution: Solution) -> list[Array]:
    """Return one code per sample and view; zeros for samples that the graph does not reach."""
    codes = []
    for term, reached in zip(problem.terms, solution.codes, strict=True):
        if len(reached) < problem.n_samples:
            everyone = np.zeros((problem.n_samples, reached.shape[1]), dtype=reached.dtype)
            everyone[host(problem.rows[term.part])] = reached
            reached = everyone
        codes.append(reached)
    return codes
