"""Correction of batch effects: soft clusters that all batches share, and a linear correction within each of them.

An own implementation of the published formulas of Harmony, for one column of batches and for each view on its own:
I. Korsunsky et al., Fast, sensitive and accurate integration of single-cell data with Harmony, Nature Methods 16, 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD

from .compute.arrays import FEW_ROWS, host, like, row_blocks
from .compute.engine import single_threaded
from .errors import ParameterError
from .scaling import Scaling, largest_magnitude, scale_alike, scale_views, unit_rows
from .utils.messages import ignoring
from .utils.types import Array, Matrix
from .views import Views

CORRECTIONS = ("none", "harmony")

_N_AXES = 30
_ROWS_PER_CLUSTER, _FEWEST_ROWS, _MOST_CLUSTERS = 30, 10, 100
_WIDTH = 0.1  # σ: width of a soft cluster
_DIVERSITY = 2.0  # θ: penalty of clusters in which a batch is over-represented
_RIDGE = 1.0  # λ: shrinks the correction of a batch with few samples in a cluster
_N_ROUNDS, _N_STEPS, _N_BLOCKS = 10, 4, 10
_SHARED = (
    0.1  # share of the samples outside the main batch of their cluster, of that by chance, if batches are separate
)
_SETTLED = 0.01  # change of a round, as a share of the spread of the rows, below which rounds end


@dataclass(frozen=True)
class Correction:
    """The correction of one view: what is subtracted from its scaled rows, by their batches.

    Every round assigns the rows, as the round before has corrected them, to soft clusters, and corrects the original
    rows by the differences of their batches in these clusters.
    """

    batches: tuple[str, ...]  # that the view has
    size: float  # divisor of all values
    center: Array  # of the features, divided
    axes: Array  # features × principal axes
    offsets: Array  # batches × axes, subtracted before the first round; 0 unless batches are separate
    centers: Array  # rounds × clusters × axes, of unit length
    penalties: Array  # rounds × batches × clusters, added to the logarithms of the shares
    shifts: Array  # rounds × batches × clusters × axes
    unit: bool  # whether rows have unit length, and are scaled to it again

    def apply(self, rows: Matrix, batches: Sequence[str | None]) -> Matrix:
        """Return scaled rows of the view corrected, as a dense array; those of unknown batches stay as they are."""
        given = rows.toarray() if sparse.issparse(rows) else host(rows)
        codes, found = _codes(batches, self.batches), np.empty_like(given)
        for block in row_blocks(given, FEW_ROWS):
            own = given[block]
            points = on_axes(own, self.size, self.center, self.axes)
            # Rows of zeros among unit rows have no direction, and get none
            known = np.where(own.any(axis=1), codes[block], -1)
            moved = self.size * ((self.corrected(points, known) - points) @ self.axes.T)
            found[block] = own + moved.astype(own.dtype)
            if self.unit:
                found[block] = unit_rows(found[block])
        return like(found, rows)

    def corrected(self, points: Array, codes: Array) -> Array:
        """Return rows on the axes corrected by their batches, whose code is -1 where it is unknown."""
        found, known = points.copy(), codes >= 0
        places = codes[known]
        found[known] = own = points[known] - self.offsets[places]
        for centers, penalties, shifts in zip(self.centers, self.penalties, self.shifts, strict=True):
            found[known] = own - _moved(_shares(found[known], centers, penalties[places]), shifts, places)
        return found


def batched(views: Views, batch: Any, way: str) -> Views:
    """Return training data with the batches that are corrected in this way; without batches for the way "none".

    Sparse views become dense, since what is subtracted has no zeros.
    """
    if way == "none":
        return views if views.batches is None else views.without_batch()
    if batch is None and views.batches is None:
        raise ParameterError(f"batch_correction={way!r} needs the batch of every sample: use fit(views, batch=...).")
    dense = [held.toarray() if sparse.issparse(held) else held for held in views.in_parts()]
    views = views.with_matrices(dense)
    return views if batch is None else views.with_batch(batch)


def fit_correction(rows: Matrix, batches: Sequence[str | None], *, unit: bool) -> Correction | None:
    """Fit the correction of one view to its present rows; None if they are of fewer than two batches.

    Parameters
    ----------
    rows : array or csr_array of shape (n_rows, n_features)
        The rows, scaled.
    batches : sequence of str or None
        The batch of every row; rows of unknown batch are not used.
    unit : bool
        Whether rows have unit length.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.correction import fit_correction
    >>> rows = np.random.default_rng(0).normal(size=(200, 5))
    >>> rows[:100] += 3
    >>> batches = ["a"] * 100 + ["b"] * 100
    >>> found = fit_correction(rows, batches, unit=False).apply(rows, batches)
    >>> bool(abs(found[:100].mean(axis=0) - found[100:].mean(axis=0)).max() < 0.5)
    True
    """
    known = np.array([batch is not None for batch in batches], dtype=bool)
    names = tuple(sorted({batch for batch in batches if batch is not None}))
    if len(names) < 2:
        return None
    rows = host(rows)[known]
    codes = _codes([batch for batch in batches if batch is not None], names)
    size = largest_magnitude(rows) or 1.0
    with single_threaded():
        center, axes = principal_axes(rows / size, _N_AXES)
        rounds = _Rounds(on_axes(rows, size, center, axes), codes, len(names)).run()
    return Correction(names, size, center, axes, *rounds, unit=unit)


def apply_corrections(scaled: Sequence[Matrix], corrections: Sequence[Correction | None], views: Views) -> list[Matrix]:
    """Return the scaled rows of every view corrected; all of them as they are for views without batches."""
    if views.batches is None or not corrections:
        return list(scaled)
    pairs = enumerate(zip(scaled, corrections, strict=True))
    return [rows if own is None else own.apply(rows, views.batches_of(k)) for k, (rows, own) in pairs]


def scale_and_correct(
    views: Views, scale: str | Sequence[str | None] | None, *, alike: bool = True
) -> tuple[list[Matrix], list[Scaling], tuple[Correction | None, ...]]:
    """Scale views and correct them for their batches, if they have any; return the scalings and corrections, too.

    ``alike`` is the choice of :func:`gapview.scaling.scale_alike` over :func:`gapview.scaling.scale_views`.
    """
    scaled, scalings = (scale_alike if alike else scale_views)(views, scale)
    if views.batches is None:
        return scaled, scalings, ()
    corrections = tuple(
        fit_correction(rows, views.batches_of(k), unit=scaling.row_length is not None)
        for k, (rows, scaling) in enumerate(zip(scaled, scalings, strict=True))
    )
    return apply_corrections(scaled, corrections, views), scalings, corrections


def principal_axes(rows: Matrix, n_axes: int) -> tuple[Array, Array]:
    """Return the centre and the leading principal axes; of sparse rows those of the rows as they are."""
    if sparse.issparse(rows) and rows.shape[1] > 1:
        found = TruncatedSVD(min(n_axes, *(size - 1 for size in rows.shape)), random_state=0).fit(
            rows.astype(np.float64)
        )
        return np.zeros(rows.shape[1]), found.components_.T
    rows = rows.toarray() if sparse.issparse(rows) else rows
    found = PCA(min(n_axes, *rows.shape), copy=False, random_state=0).fit(np.array(rows, dtype=np.float64))
    return found.mean_, found.components_.T


def on_axes(rows: Matrix, size: float, center: Array, axes: Array) -> Array:
    """Return rows, divided by a size and centred, on principal axes."""
    return np.asarray((rows / size) @ axes - center @ axes, dtype=np.float64)


def _codes(batches: Sequence[str | None], names: Sequence[str]) -> Array:
    place = {name: code for code, name in enumerate(names)}
    return np.array([-1 if batch is None else place.get(batch, -1) for batch in batches], dtype=np.intp)


def _directions(points: Array) -> Array:
    lengths = np.sqrt(np.square(points).sum(axis=-1, keepdims=True))
    return points / np.where(lengths > 0, lengths, 1.0)


def _shares(points: Array, centers: Array, penalties: Array) -> Array:
    """Return the share of each cluster in every row, by the cosine distance and the penalty of its batch."""
    return softmax(2 * (_directions(points) @ centers.T - 1) / _WIDTH + penalties, axis=1)  # type: ignore[no-any-return]


def _moved(shares: Array, shifts: Array, codes: Array) -> Array:
    """Return what is subtracted from every row: the shifts of its batch, weighted by the shares of the clusters."""
    moved = np.empty((len(shares), shifts.shape[-1]))
    for code, own in enumerate(shifts):
        rows = codes == code
        moved[rows] = shares[rows] @ own
    return moved


class _Rounds:
    """Alternates soft clustering that favours clusters of all batches, and linear correction within clusters."""

    def __init__(self, points: Array, codes: Array, n_batches: int) -> None:
        self.points, self.codes, self.n_batches = points, codes, n_batches
        self.portions = np.bincount(codes, minlength=n_batches) / len(codes)
        self.members = np.eye(n_batches)[codes]
        n_least = max(1, min(n_batches, len(points) // _FEWEST_ROWS))
        self.n_clusters = int(np.clip(round(len(points) / _ROWS_PER_CLUSTER), n_least, max(n_least, _MOST_CLUSTERS)))

    def run(self) -> tuple[Array, Array, Array, Array]:
        """Return the offsets before the first round, and centres, penalties and shifts of all rounds."""
        found, spread = [], float(np.square(self.points).mean()) ** 0.5
        offsets = np.zeros((self.n_batches, self.points.shape[1]))
        first = self._kmeans(self.points)
        if self._are_separate(first.labels_):
            # No cluster has several batches: the means of the batches are aligned first
            sizes = self.members.sum(axis=0)[:, None]
            offsets = self.members.T @ self.points / sizes - self.points.mean(axis=0)
            self.points = self.points - offsets[self.codes]
            first = self._kmeans(self.points)
        centers, corrected = _directions(first.cluster_centers_), self.points
        for _ in range(_N_ROUNDS):
            centers, penalties = self._cluster(_directions(corrected), centers)
            shares = _shares(corrected, centers, penalties[self.codes])
            shifts = self._shifts(shares)
            found.append((centers, penalties, shifts))
            before, corrected = corrected, self.points - _moved(shares, shifts, self.codes)
            if float(np.square(corrected - before).mean()) ** 0.5 <= _SETTLED * spread:
                break
        centers, penalties, shifts = (np.stack(parts) for parts in zip(*found, strict=True))
        return offsets, centers, penalties, shifts

    def _kmeans(self, points: Array) -> KMeans:
        with ignoring("Number of distinct clusters"):
            return KMeans(self.n_clusters, n_init=3, random_state=0).fit(_directions(points))

    def _are_separate(self, labels: Array) -> bool:
        """Return whether nearly all samples are in clusters of their own batch."""
        counts = self.members.T @ np.eye(self.n_clusters)[labels]
        return 1 - float(counts.max(axis=0).sum()) / len(labels) < _SHARED * (1 - float(self.portions.max()))

    def _cluster(self, directions: Array, centers: Array) -> tuple[Array, Array]:
        """Return centres of soft clusters, and the penalty of each batch in each of them.

        Shares are updated for some of the rows at a time, with the numbers of samples without these rows, so that
        batches do not swap clusters.
        """
        blocks = np.array_split(np.random.RandomState(0).permutation(len(directions)), _N_BLOCKS)
        shares = softmax(2 * (directions @ centers.T - 1) / _WIDTH, axis=1)
        observed = self.members.T @ shares
        for _ in range(_N_STEPS):
            centers = _directions(shares.T @ directions)
            closeness = 2 * (directions @ centers.T - 1) / _WIDTH
            for block in blocks:
                observed -= self.members[block].T @ shares[block]
                penalties = self._penalties(observed)
                shares[block] = softmax(closeness[block] + penalties[self.codes[block]], axis=1)
                observed += self.members[block].T @ shares[block]
        return centers, self._penalties(observed)

    def _penalties(self, observed: Array) -> Array:
        """Return θ log((E + 1) / (O + 1)) of observed and expected numbers of samples, batches × clusters."""
        expected = np.outer(self.portions, observed.sum(axis=0))
        return _DIVERSITY * np.log((expected + 1) / (observed + 1))  # type: ignore[no-any-return]

    def _shifts(self, shares: Array) -> Array:
        """Return the difference of each batch in each cluster, batches × clusters × axes.

        In each cluster, ridge regression of the rows on their batches, weighted by the shares. The intercept, which
        batches share, is neither penalised nor subtracted.
        """
        counts = self.members.T @ shares
        sums = np.stack(
            [shares[self.codes == code].T @ self.points[self.codes == code] for code in range(self.n_batches)]
        )
        # With the shifts s_b = (S_b − n_b a) / (n_b + λ) the normal equation of the intercept a has one unknown
        factors = counts / (counts + _RIDGE)
        kept = (counts * (1 - factors)).sum(axis=0)
        intercept = ((1 - factors)[..., None] * sums).sum(axis=0) / np.maximum(kept, np.finfo(float).tiny)[:, None]
        return (sums - counts[..., None] * intercept) / (counts + _RIDGE)[..., None]  # type: ignore[no-any-return]
