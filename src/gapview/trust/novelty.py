"""New samples unlike those of training: conformal p-values for every view, from leave-one-out scores.

Every row of a view gets several nonconformity scores: of its size, of its values in each feature, and of its shape,
which are distances to the nearest training rows and to the mean row. Scores of training rows are computed as if the row
were new: without it. The scores of a row are combined by the largest of their tails, each in units of its own 95 %
quantile, and the combined score is ranked among those of the training rows. Since the combined score is ranked, any
number of scores keeps the rate of false alarms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import betabinom

from ..compute.arrays import like
from ..utils.types import Array
from ..views import Views
from ..views.cells import dense, draw_from
from ..views.measures import some_columns

_N_REFERENCE = 1000  # training samples with which new ones are compared
_LEAST_ROWS = 3
_ROWS_AT_A_TIME = 500
_N_NEIGHBORS = 5
_MOST_DEVIATIONS = 10.0  # values of one feature beyond it count as this many standard deviations
_QUANTILE = 0.95  # unit of a tail
_EQUAL = 1e-9  # relative difference up to which numbers count as equal
_LARGEST = 1e100  # in units of the largest training value: squares are finite
_SURE = 0.005  # probability of as many unusual samples by chance, below which they are reported

# Scores of which small and large values, or only small ones, are unusual; of all others only large ones are
_TWO_SIDED, _LOW = ("mean", "spread", "size", "zeros"), ("profile",)
_SHAPE = ("distance", "angle", "direction", "profile", "rarity")  # summed up in one more score
_SHAPE_LIMITS = (-1.0, 3.0)  # of each of their tails in the sum


def conformal_p_values(scores: Array, calibration: Array) -> Array:
    """Return the share of calibration scores that are at least as large, each new score counted with them.

    If a new score and the calibration scores are exchangeable, the probability of p ≤ α is at most α.

    Parameters
    ----------
    scores : array of shape (n_new,)
        Nonconformity scores: the larger, the more unusual.
    calibration : array of shape (n_calibration,)
        Scores of samples that are not unusual.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust import conformal_p_values
    >>> conformal_p_values(np.array([0.0, 2.5, 9.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    array([1. , 0.6, 0.2])
    """
    ordered = np.sort(calibration)
    least = scores - _EQUAL * np.abs(scores)
    return np.asarray((1 + len(ordered) - np.searchsorted(ordered, least, side="left")) / (1 + len(ordered)))


def is_beyond_chance(p_values: Array, n_calibration: int, alpha: float) -> bool:
    """Return whether more p-values are small than chance explains, at ``alpha`` or at the smallest possible level.

    The number of p ≤ α among n new samples has a beta-binomial distribution, since all are ranked among the same
    calibration scores.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust.novelty import is_beyond_chance
    >>> is_beyond_chance(np.array([0.01, 0.4, 0.7]), 200, 0.05), is_beyond_chance(np.full(3, 0.01), 200, 0.05)
    (False, True)
    """
    places = {1, int(alpha * (n_calibration + 1) + _EQUAL)} - {0}
    for place in places if len(p_values) else ():
        n_small = int((p_values <= (place + _EQUAL) / (n_calibration + 1)).sum())
        if n_small and betabinom.sf(n_small - 1, len(p_values), place, n_calibration + 1 - place) < _SURE:
            return True
    return False


@dataclass(frozen=True)
class _Tail:
    """One side of a score: its excess over the median, in units of a quantile of the excess in training."""

    name: str
    sign: int
    middle: float
    unit: float

    @classmethod
    def of(cls, name: str, sign: int, values: Array) -> _Tail:
        middle = float(np.median(values))
        excess = sign * (values - middle)
        least = _EQUAL * max(1.0, abs(middle))
        unit = next((u for u in (float(np.quantile(excess, _QUANTILE)), float(excess.max())) if u > least), least)
        return cls(name, sign, middle, unit)

    def __call__(self, scores: dict[str, Array]) -> Array:
        return np.asarray(self.sign * (scores[self.name] - self.middle) / self.unit)


class ViewNovelty:
    """The training rows of one view, with which new rows are compared.

    Parameters
    ----------
    rows : array of shape (n_rows, n_features)
        Training rows, at least 3.
    """

    def __init__(self, rows: Array) -> None:
        self.n_rows = len(rows)
        is_fraction = rows != np.rint(rows)
        self.n_fractions, self.is_whole = int(is_fraction.sum()), not is_fraction.any()
        self.unit = float(np.abs(rows).max()) or 1.0
        self.rows = rows = rows / self.unit
        self.mean, self.lengths = rows.mean(axis=0), _lengths(rows)
        self.squares = np.square(rows - self.mean).sum(axis=0)
        self.n_nonzero = (rows != 0).sum(axis=0)
        part = np.sort(rows, axis=0)
        self.low, self.high = part[:2], part[-2:][::-1]
        self.deviations = self._standardised(rows, None)
        positive = self.lengths[self.lengths > 0]
        self.usual_length = float(np.median(positive)) if len(positive) else 1.0
        trained = self._scores(rows, is_fraction, np.arange(self.n_rows))
        signs = [(name, sign) for name in trained for sign in _signs(name)]
        self.tails = [_Tail.of(name, sign, trained[name]) for name, sign in signs]
        self.shape = _Tail.of("shape", 1, self._shape(trained))
        self.combined = self._combine(trained)
        self.usual = max(float(np.quantile(self.combined, _QUANTILE)), _EQUAL)

    def scores(self, rows: Array) -> Array:
        """Return the combined nonconformity score of new rows."""
        with np.errstate(over="ignore"):
            scaled = np.clip(rows / self.unit, -_LARGEST, _LARGEST)
        return self._combine(self._scores(scaled, rows != np.rint(rows), None))

    def p_values(self, rows: Array) -> Array:
        """Return the conformal p-values of new rows."""
        return conformal_p_values(self.scores(rows), self.combined)

    def _combine(self, scores: dict[str, Array]) -> Array:
        tails = [tail(scores) for tail in self.tails]
        return np.maximum.reduce([*tails, self.shape({"shape": self._shape(scores)})])  # type: ignore[no-any-return]

    def _shape(self, scores: dict[str, Array]) -> Array:
        tails = [tail(scores) for tail in self.tails if tail.name in _SHAPE]
        return np.asarray(np.mean([np.clip(tail, *_SHAPE_LIMITS) for tail in tails], axis=0))

    def _scores(self, rows: Array, is_fraction: Array, own: Array | None) -> dict[str, Array]:
        """Return all scores of rows; ``own`` are their places among the training rows, whose part is then removed."""
        z, lengths = self._standardised(rows, own), _lengths(rows)
        low, high, n_nonzero, n_fractions = self.low[0], self.high[0], self.n_nonzero, np.full(len(rows), 0)
        n_fractions += self.n_fractions
        mean, n_others, is_nonzero = self.mean[None], self.n_rows, rows != 0
        if own is not None:
            low, high = np.where(rows <= low, self.low[1], low), np.where(rows >= high, self.high[1], high)
            n_nonzero, n_fractions = n_nonzero - is_nonzero, n_fractions - is_fraction.sum(axis=1)
            mean, n_others = self._mean_of_others(own), self.n_rows - 1
        rarity = -np.log((n_nonzero + 0.5) / (n_others + 1))
        unit, mean_unit = rows / _positive(lengths)[:, None], mean / _positive(_lengths(mean))[:, None]
        z_lengths, trained = _lengths(z), _lengths(self.deviations)
        product = z @ self.deviations.T
        squares = np.square(z_lengths)[:, None] + np.square(trained) - 2 * product
        angles = 1 - product / (_positive(z_lengths)[:, None] * _positive(trained))
        directions = 1 - unit @ (self.rows / _positive(self.lengths)[:, None]).T
        return {
            "mean": z.mean(axis=1),
            "spread": np.log(z_lengths / np.sqrt(z.shape[1]) + 1e-3),
            "size": np.log(lengths / self.usual_length + 1e-6),
            "zeros": 1 - is_nonzero.mean(axis=1),
            "outside": ((rows < low) | (rows > high)).mean(axis=1),
            "negative": ((rows < 0) & (low >= 0)).mean(axis=1),
            "fractions": is_fraction.mean(axis=1) * (n_fractions == 0),
            "rarity": (is_nonzero * rarity).sum(axis=1) / np.maximum(is_nonzero.sum(axis=1), 1),
            "distance": np.log(np.maximum(_kth_smallest(squares, own), 0.0) / z.shape[1] + 1e-6) / 2,
            "angle": _kth_smallest(angles, own),
            "direction": _kth_smallest(directions, own),
            "profile": (unit * mean_unit).sum(axis=1),
        }

    def _mean_of_others(self, own: Array) -> Array:
        return np.asarray((self.n_rows * self.mean - self.rows[own]) / (self.n_rows - 1))

    def _standardised(self, rows: Array, own: Array | None) -> Array:
        """Return rows minus the mean over the standard deviation of each feature, limited; other values are 0."""
        n_rows, mean, variance = self.n_rows, self.mean, self.squares / self.n_rows
        if own is not None:
            removed = np.square(self.rows[own] - mean) * n_rows / (n_rows - 1)
            variance = np.maximum(self.squares - removed, 0.0) / (n_rows - 1)
            mean = self._mean_of_others(own)
        gap, deviation, least = rows - mean, np.sqrt(variance), _EQUAL * np.abs(mean)
        is_constant = deviation <= least
        of_constant = np.where(np.abs(gap) <= least, 0.0, np.sign(gap) * _MOST_DEVIATIONS)
        z = np.where(is_constant, of_constant, gap / np.where(is_constant, 1.0, deviation))
        return np.clip(z, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)


def _signs(name: str) -> tuple[int, ...]:
    return (1, -1) if name in _TWO_SIDED else (-1,) if name in _LOW else (1,)


def _lengths(rows: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _positive(lengths: Array) -> Array:
    return np.where(lengths > 0, lengths, 1.0)


def _kth_smallest(table: Array, own: Array | None) -> Array:
    """Return the k-th smallest number of each row; ``own`` are places that do not count."""
    if own is not None:
        table[np.arange(len(table)), own] = np.inf
    place = min(_N_NEIGHBORS, table.shape[1] - 1) - 1
    return np.asarray(np.partition(table, place, axis=1)[:, place])


class Novelty:
    """Training samples with which new samples are compared, view by view.

    Parameters
    ----------
    views : Views
        The training samples. About 1,000 of them, drawn with a fixed seed, are compared with new ones.

    Examples
    --------
    >>> from gapview.datasets import make_views
    >>> from gapview.trust import Novelty
    >>> views = make_views(n_samples=300, n_clusters=3, random_state=0).views
    >>> novelty = Novelty(views[:250])
    >>> of_views, together = novelty.p_values(views[250:])
    >>> of_views.shape, bool((together <= 0.05).mean() < 0.2)
    ((50, 2), True)
    >>> shifted = [matrix[250:] + 100 for matrix in views.matrices]
    >>> bool((novelty.p_values(type(views)(shifted))[1] <= 0.05).all())
    True
    """

    def __init__(self, views: Views) -> None:
        drawn = draw_from(views.mask, _N_REFERENCE, 0)
        self.columns = [some_columns(n_features) for n_features in views.n_features]
        self.views: list[ViewNovelty | None] = []
        scores = np.full((len(drawn), views.n_views), np.nan)
        for k, matrix in enumerate(views.in_parts()):
            has_view = views.mask[drawn, k]
            places = np.searchsorted(views.rows(k), drawn[has_view])
            with np.errstate(over="ignore", invalid="ignore"):
                rows = _some_cells(matrix, places, self.columns[k])
                known = ViewNovelty(rows) if len(rows) >= _LEAST_ROWS else None
            self.views.append(known)
            if known is not None:
                scores[has_view, k] = known.combined / known.usual
        self._scores = scores

    def p_values(self, new: Views) -> tuple[Array, Array]:
        """Return the p-values of new samples: those of every view, and one for all views of a sample.

        The second is the rank of the sum of the scores of a sample, in units of the 95 % quantile of each view, among
        training samples that have the same views. If fewer than half of those with one of the views have all, it is the
        smallest p-value of the views times their number, at most 1.

        Parameters
        ----------
        new : Views
            New samples, with the views and features of training.

        Returns
        -------
        of_views : array of shape (n_samples, n_views)
            NaN where a sample lacks the view.
        together : array of shape (n_samples,)

        Examples
        --------
        >>> from gapview.datasets import make_views
        >>> from gapview.trust import Novelty
        >>> views = make_views(n_samples=60, n_clusters=3, random_state=0).views
        >>> of_views, together = Novelty(views[:50]).p_values(views[50:])
        >>> of_views.shape, together.shape
        ((10, 2), (10,))
        """
        of_views, scores = (np.full((new.n_samples, len(self.views)), np.nan) for _ in range(2))
        for k, known in enumerate(self.views):
            if known is None:
                of_views[new.rows(k), k] = 1.0
                continue
            found = [known.scores(block) for block in self.blocks(new, k)]
            own = np.concatenate(found) if found else np.zeros(0)
            scores[new.rows(k), k] = own / known.usual
            of_views[new.rows(k), k] = conformal_p_values(own, known.combined)
        return of_views, self._together(of_views, scores)

    def blocks(self, new: Views, view: int) -> Iterator[Array]:
        """Yield rows of a view of new samples in blocks, as dense arrays of the features compared.

        Parameters
        ----------
        new : Views
            New samples.
        view : int
            Position of the view.

        Examples
        --------
        >>> from gapview.datasets import make_views
        >>> from gapview.trust import Novelty
        >>> views = make_views(n_samples=60, n_clusters=3, random_state=0).views
        >>> [block.shape for block in Novelty(views).blocks(views, 1)]
        [(60, 30)]
        """
        matrix = list(new.in_parts())[view]
        for begin in range(0, matrix.shape[0], _ROWS_AT_A_TIME):
            rows = np.arange(begin, min(begin + _ROWS_AT_A_TIME, matrix.shape[0]))
            yield _some_cells(matrix, rows, self.columns[view])

    def _together(self, of_views: Array, scores: Array) -> Array:
        together = np.ones(len(scores))
        is_known = scores == scores
        patterns, which = np.unique(is_known, axis=0, return_inverse=True)
        counts = (self._scores == self._scores).sum(axis=0)
        for place, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == place)
            if not pattern.any():
                continue
            trained = self._scores[:, pattern]
            trained = trained[(trained == trained).all(axis=1)]
            if 2 * len(trained) >= counts[pattern].min():
                # A sum, since rows that are somewhat unusual in each of several views are so together
                together[rows] = conformal_p_values(scores[np.ix_(rows, pattern)].sum(axis=1), trained.sum(axis=1))
            else:
                together[rows] = np.minimum(1.0, pattern.sum() * of_views[np.ix_(rows, pattern)].min(axis=1))
        return together


def _some_cells(matrix: Any, rows: Array, columns: Array) -> Array:
    part = dense(matrix[like(rows, matrix)] if not hasattr(matrix, "whole") else matrix[rows])
    return np.asarray(part if len(columns) == part.shape[1] else part[:, columns], dtype=np.float64)
