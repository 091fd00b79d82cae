"""How well views are recovered that are there: some are hidden from the model, and what it says is compared."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ...utils.types import Array, Matrix
from ...views import Views
from ...views.containers import Container

__all__ = ["Recovered", "summarise_recovery"]

_MOST_ASKED = 200
_ASKED_SHARE = 0.2
_LEAST_ASKED = 10
_MOST_SOURCES = 20_000  # samples to recover from; more would cost more than they tell
_N_RESAMPLES = 500


@dataclass(frozen=True)
class Recovered:
    """How well one view is recovered.

    Attributes
    ----------
    error : float
        Error of the recovered rows as a share of the error of filling in the mean of the view, in the units in which
        the model compares the features: standardised if it does so, else as they are; NaN if it could not be measured.
    low, high : float
        95 % interval of it, by drawing the samples asked anew.
    n_asked : int
        From how many samples the view was hidden.
    reason : str
        Why it could not be measured, if so.
    """

    view: str
    error: float
    low: float
    high: float
    n_asked: int
    reason: str = ""


def summarise_recovery(model: Any, seed: int = 0) -> tuple[Recovered, ...]:
    """Hide each view from some samples that have another one, too, and ask the model for it.

    The samples asked are taken out of what the model may look things up in, since it would find the answer there. The
    bases were fitted with them: not enough to recognise one sample, but the errors are a little too small, by about 1
    to 2 % of their size on the embedded digits.
    """
    state = np.random.RandomState(seed)
    return tuple(_recovered(model, k, state) for k in range(model.views_.n_views))


def _recovered(model: Any, view: int, state: np.random.RandomState) -> Recovered:
    views: Views = model.views_
    name, having = views.names[view], views.mask[:, view]
    candidates = np.flatnonzero(having & (views.mask.sum(axis=1) > 1))
    n_asked = min(_MOST_ASKED, int(_ASKED_SHARE * len(candidates)))
    if n_asked < _LEAST_ASKED:
        return _unknown(name, f"only {len(candidates)} samples have this view and another one")
    asked = np.sort(state.permutation(candidates)[:n_asked])
    others = np.setdiff1d(np.arange(views.n_samples), asked)
    sources = np.sort(state.permutation(others)[:_MOST_SOURCES])
    rest = views[sources]
    known = rest.matrices
    if min(matrix.shape[0] for matrix in known) < 2:
        return _unknown(name, "too few samples are left to recover it from")
    found = _ask(model, rest, sources, asked, view)
    spread = model.scalings_[view].spread
    mean = np.asarray(known[view].mean(axis=0), dtype=np.float64).ravel()
    errors = _squared_errors((found, mean), views[asked].matrices[view], 1.0 if spread is None else spread)
    if not errors[1].sum() > 0:
        return _unknown(name, "it is the same for all samples asked")
    drawn = errors[:, state.randint(n_asked, size=(_N_RESAMPLES, n_asked))].sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.nanpercentile(np.sqrt(drawn[0] / drawn[1]), [2.5, 97.5])
    own, of_mean = errors.sum(axis=1)
    return Recovered(name, float(np.sqrt(own / of_mean)), float(low), float(high), n_asked)


def _unknown(view: str, reason: str) -> Recovered:
    return Recovered(view, float("nan"), float("nan"), float("nan"), 0, reason)


def _ask(model: Any, rest: Views, sources: Array, asked: Array, view: int) -> Matrix:
    """Recover a view of some samples by a model that knows the other samples only."""
    blind = copy.copy(model)
    blind.views_, blind.embedding_ = rest, model.embedding_[sources]
    questions = model.views_[asked]
    keep = questions.mask.copy()
    keep[:, view] = False
    hidden = questions.hide(keep)
    plain = {"_containers": (Container(),) * hidden.n_views, "_outer": "list"}  # arrays back, whatever came
    recovered: Matrix = blind.recover(hidden._like(hidden.matrices, hidden.mask, hidden.sample_ids, **plain))[view]
    return recovered


def _squared_errors(guesses: tuple[Matrix, Array], true: Matrix, spread: Array | float) -> Array:
    """Return for each guess the squared error in every sample, over features divided by ``spread``."""
    matrices: list[Matrix] = [*guesses, true]
    dense = [np.asarray(m.toarray() if sparse.issparse(m) else m, dtype=np.float64) for m in matrices]
    return np.stack([np.square((guess - dense[-1]) / spread).sum(axis=1) for guess in dense[:-1]])
