"""Refinement of groups: discriminant analysis of the views, repeated with the groups that it predicts.

Groups found in a graph are good where neighbours belong together, and wrong where they do not. A discriminant analysis
sees what neighbours do not: directions in which whole groups differ. It is trained on the groups, each sample is
assigned by discriminants that were trained without it, neighbours are averaged, and the result trains the next round.
The discriminants of the last rounds then assign all samples, wherever the data are.

To alternate discriminant analysis and clustering was proposed by C. Ding and T. Li (Adaptive dimension reduction using
discriminant analysis and K-means clustering, ICML 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dposv, sposv
from scipy.stats import entropy
from sklearn.utils.extmath import randomized_svd

from .compute.arrays import host
from .compute.engine import on_free_threads
from .correction import on_axes, principal_axes
from .graph.knn import modularity
from .scaling import largest_magnitude
from .utils.types import Array, Matrix
from .views import Views

N_WALKS = 2  # steps along the graph over which the shares of the groups are averaged

_N_ROUNDS, _N_AVERAGED = 20, 10
_N_TRIED, _N_CLEAREST = 6, 2  # rounds of all starts, and how many of them go on where samples are many
_N_FOLDS = 5
_N_AXES, _SHRINKAGE = 50, 0.2  # of linear discriminants
# Linear discriminants of many samples do worse than neighbours; those of a kernel do not
_MANY_SAMPLES = 1500
_KERNEL_AXES, _KERNEL_SHRINKAGE = 100, 0.05
_N_LANDMARKS, _N_DIRECTIONS, _ROWS_PER_DIRECTION = 1000, 250, 4
_DECAY = 2.0  # of the kernel, per median squared distance
_SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0)
_FEW_SHARED = 5  # samples with two views, below which the views are not compared
_EQUAL = 0.002  # mean difference of the shares of a sample, added over the groups, of two starts that go on as one
_AGREE, _EXPLAIN = 0.5, 0.03  # kappa of two views, or variance explained, from which groups are refined
_SMALLEST = 0.5  # weight of a group, below which it has no mean
_VALUES_AT_A_TIME = 2**17
_FEWEST, _AHEAD = 2, 1.0  # samples that a group is given if it has none, and by how much its score leads there
_LEAST_RIDGE = 1e-6
_LEAST_EIGENVALUE = 1e-6  # of a kernel in single precision, as a share of the largest
_FAR = 10.0  # how much lower than all other scores that of a group without a mean is


@dataclass(frozen=True)
class ViewDiscriminants:
    """The discriminants of one view: a score for each group, from the features or from a kernel of them."""

    size: float  # divisor of all values
    center: Array  # of the features, divided
    axes: Array  # features × principal axes
    landmarks: Array | None  # rows that others are compared with, on the axes; None: the discriminants are linear
    decay: float  # of the kernel with the squared distance to a landmark
    weights: Array  # axes or landmarks × groups
    offset: Array  # of each group

    def scores(self, rows: Matrix) -> Array:
        """Return the score of each group for rows of the view, scaled as in the fit."""
        points = on_axes(rows, self.size, self.center, self.axes)
        if self.landmarks is not None:
            return _similarities(points, self.landmarks, self.decay) @ self.weights.astype(np.float32) + self.offset
        return points @ self.weights + self.offset


@dataclass(frozen=True)
class Discriminants:
    """The discriminants of all views."""

    views: tuple[ViewDiscriminants, ...]
    sharpness: float  # factor of the scores
    offset: Array  # of each group, added to the scores

    def shares(self, scaled: Sequence[Matrix], present: Sequence[Array], n_samples: int) -> Array:
        """Return the share of each group in every sample, from the views it has; the sum is 1.

        Parameters
        ----------
        scaled : sequence of arrays or csr_arrays
            The present rows of every view, scaled as in the fit.
        present : sequence of int arrays
            The samples of these rows, in ascending order.
        n_samples : int
            Number of samples.
        """
        found = np.empty((n_samples, len(self.offset)), dtype=np.float32)
        step = max(1, _VALUES_AT_A_TIME // max(_N_LANDMARKS, *(view.axes.shape[0] for view in self.views)))
        for begin in range(0, n_samples, step):
            block = slice(begin, min(begin + step, n_samples))
            own, places = [], []
            for view, rows, samples in zip(self.views, scaled, present, strict=True):
                first, last = np.searchsorted(samples, (block.start, block.stop))
                own.append(view.scores(host(rows[first:last])))
                places.append(samples[first:last] - begin)
            scores = self.sharpness * _mean_scores(own, places, block.stop - begin) + self.offset
            found[block] = _shares(scores)
        return found


@dataclass(frozen=True)
class Refinement:
    """The result of :func:`refine`."""

    discriminants: Discriminants | None  # None if the groups are kept as they were
    agreement: float  # kappa of the groups predicted from two views, 1 if they always agree; NaN if it is not known

    @property
    def is_contradicted(self) -> bool:
        """Whether the groups were kept, and views do not predict the same groups."""
        return self.discriminants is None and self.agreement < _AGREE


def refine(
    scaled: Sequence[Matrix],
    views: Views,
    graph: Any,
    starts: Sequence[Array],
    parts: Array,
    explained: float,
    seed: int,
) -> Refinement:
    """Train discriminants that refine groups.

    Of several groupings to start from, the one is taken that is clearest in the end, by the product of two criteria:
    the information that the shares have on the groups (Krause, Perona and Gomes 2010: the entropy of the mean share
    less the mean entropy), and the modularity of the groups.

    Views that neither explain each other nor predict the same groups contradict each other, and the discriminants of
    one would undo what the others have found. The groups are then kept. So are groups of a single view, and groups of
    which one would be empty.

    Parameters
    ----------
    scaled : sequence of arrays or csr_arrays
        The present rows of every view, scaled.
    views : Views
        The samples that the rows belong to.
    graph : csr_array of shape (n_samples, n_samples)
        Non-negative weights between the samples.
    starts : sequence of int arrays of shape (n_samples,)
        Group of every sample, from at least one fit; the first is the best so far.
    parts : int array of shape (n_samples,)
        Part of every sample, see :func:`gapview.views.linking.sample_parts`; parts have no groups in common.
    explained : float
        Share of the variance of the views that the other views explain.
    seed : int
        Seed of the folds and of the landmarks.
    """
    n_clusters = int(starts[0].max()) + 1
    starts = [labels for labels in starts if len(np.unique(labels)) == n_clusters == labels.max() + 1]
    is_small = views.n_samples < _N_FOLDS or min(views.n_present) < 2
    if views.n_views < 2 or n_clusters < 2 or is_small or not starts:
        return Refinement(None, float("nan"))
    source = np.random.RandomState(seed % 2**32)
    is_kernel = views.n_samples >= _MANY_SAMPLES
    drawn = [source.permutation(rows.shape[0])[:_N_LANDMARKS] if is_kernel else None for rows in scaled]
    features = list(on_free_threads(_features_of, list(zip(map(host, scaled), drawn, strict=True))))
    present = [views.rows(k) for k in range(views.n_views)]
    trained_in = [
        _TrainingView(own.rows, own.shrinkage, samples) for own, samples in zip(features, present, strict=True)
    ]
    rounds = _Rounds(trained_in, source)
    agreement = rounds.agreement(np.eye(n_clusters)[starts[0]])
    if not agreement >= _AGREE and not explained >= _EXPLAIN:
        return Refinement(None, agreement)
    transition = transition_of(graph)
    n_kept = _N_CLEAREST if is_kernel else len(starts)  # few samples take little time, and are less clear early on
    ends = rounds.run([np.eye(n_clusters)[labels] for labels in starts], graph, transition, n_kept)
    best = max(ends, key=lambda place: _clarity(ends[place][0], graph))
    shares, sharpness = ends[best]
    trained = [view.trained(shares) for view in rounds.views]
    of_views = tuple(own.discriminants(*pair) for own, pair in zip(features, trained, strict=True))
    scores = [own.rows @ weights + offset for own, (weights, offset) in zip(features, trained, strict=True)]
    means = sharpness * _mean_scores(scores, present, views.n_samples)
    offset = _offset(means)
    found = Discriminants(of_views, sharpness, offset)
    refined = walk(_shares(means + offset).astype(np.float32), transition).argmax(axis=1)
    is_whole = len(np.unique(refined)) == n_clusters
    n_before, n_after = (len(np.unique(own + n_clusters * parts)) for own in (starts[best], refined))
    return Refinement(found if is_whole and n_before == n_after else None, agreement)


def transition_of(graph: Any) -> Any:
    """Return a graph with the weights of every sample divided by their sum; 0 for samples without neighbours."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    return sparse.diags_array(np.divide(1.0, degrees, where=degrees > 0, out=np.zeros(len(degrees)))) @ graph


def walk(shares: Array, transition: Any) -> Array:
    """Return the shares of the groups plus those of the neighbours, and of their neighbours."""
    total, reached = shares, shares
    for _ in range(N_WALKS):
        reached = transition @ reached
        total = total + reached
    return total


# -- features --------------------------------------------------------------------------------------------------


class _Features(NamedTuple):
    """The rows of a view in which discriminants are trained, and what maps other rows there."""

    rows: Array  # centred
    shrinkage: float  # of their covariance
    size: float
    center: Array
    axes: Array
    landmarks: Array | None
    decay: float
    mixing: Array | None  # kernel values of the landmarks to rows
    mean: Array  # of the rows before they were centred

    def discriminants(self, weights: Array, offset: Array) -> ViewDiscriminants:
        offset = offset - self.mean @ weights
        weights = weights if self.mixing is None else self.mixing @ weights
        return ViewDiscriminants(self.size, self.center, self.axes, self.landmarks, self.decay, weights, offset)


def _features_of(given: tuple[Matrix, Array | None]) -> _Features:
    """Return the features of some rows: kernel values of the rows drawn as landmarks, or principal components."""
    rows, drawn = given
    size = largest_magnitude(rows) or 1.0  # squares of values divided by it are finite
    center, axes = principal_axes(rows / size, _N_AXES if drawn is None else _KERNEL_AXES)
    points = on_axes(rows, size, center, axes)
    if drawn is None:
        return _Features(points, _SHRINKAGE, size, center, axes, None, 0.0, None, np.zeros(points.shape[1]))
    landmarks = points[drawn]
    squares = _squared_distances(landmarks, landmarks)
    half = len(landmarks) // 2
    usual = float(np.median(squares[:half, half:])) if half else 0.0  # between different landmarks
    decay = _DECAY / usual if usual > 0 else 1.0
    most = max(1, min(_N_DIRECTIONS, len(points) // _ROWS_PER_DIRECTION, len(landmarks)))
    vectors, values, _ = randomized_svd(np.exp(-decay * squares).astype(np.float32), most, n_iter=1, random_state=0)
    kept = values > values[0] * _LEAST_EIGENVALUE
    mixing = vectors[:, kept] / np.sqrt(values[kept])
    mapped = _similarities(points, landmarks, decay) @ mixing
    mean = mapped.mean(axis=0)
    return _Features(mapped - mean, _KERNEL_SHRINKAGE, size, center, axes, landmarks, decay, mixing, mean)


def _similarities(rows: Array, landmarks: Array, decay: float) -> Array:
    """Return the kernel values of rows and landmarks, in single precision, which is faster."""
    squares = _squared_distances(rows.astype(np.float32), landmarks.astype(np.float32))
    return np.asarray(np.exp(np.float32(-decay) * squares))


def _squared_distances(rows: Array, others: Array) -> Array:
    squares = np.square(rows).sum(axis=1)[:, None] + np.square(others).sum(axis=1) - 2 * rows @ others.T
    return np.maximum(squares, 0)  # type: ignore[no-any-return]


# -- rounds ----------------------------------------------------------------------------------------------------


class _TrainingView(NamedTuple):
    """A view in which discriminants are trained."""

    rows: Array  # its present rows, centred
    shrinkage: float
    samples: Array  # the samples of these rows

    def held_out(self, shares: Array, folds: Array) -> Array:
        """Return the scores of the rows by discriminants that were trained without their fold.

        Parameters
        ----------
        shares : array of shape (n_samples, n_starts, n_groups)
            Shares of the groups, of several starts.
        folds : int array of shape (n_samples,)
            Fold of every sample.
        """
        own_folds = folds[self.samples]
        order = np.argsort(own_folds, kind="stable")
        edges = np.searchsorted(own_folds[order], np.arange(_N_FOLDS + 1)).tolist()
        rows, own = self.rows[order], shares[self.samples[order]].astype(self.rows.dtype, copy=False)
        blocks = [slice(*pair) for pair in pairwise(edges)]
        parts = [_Moments.of(rows[block], own[block]) for block in blocks]
        total = [sum(arrays) for arrays in zip(*parts, strict=True)]
        scores = np.empty((len(rows), own[0].size), dtype=rows.dtype)
        for block, part in zip(blocks, parts, strict=True):
            others = _Moments(*(all_ - part_ for all_, part_ in zip(total, part, strict=True)))
            weights, offsets = others.discriminants(self.shrinkage)
            scores[order[block]] = rows[block] @ weights.reshape(-1, len(rows[0])).T + offsets.ravel()
        return scores.reshape(own.shape)

    def trained(self, shares: Array) -> tuple[Array, Array]:
        """Return weights and offsets, trained on all rows."""
        weights, offsets = _Moments.of(self.rows, shares[self.samples, None]).discriminants(self.shrinkage)
        return weights[0].T, offsets[0]


class _Rounds(NamedTuple):
    """Rounds of training discriminants and assigning samples."""

    views: list[_TrainingView]
    source: np.random.RandomState

    def run(self, starts: Sequence[Array], graph: Any, transition: Any, n_kept: int) -> dict[int, tuple[Array, float]]:
        """Return the shares of the groups, averaged over the last rounds, and the sharpness of the last one.

        The results are listed by the position of their start. Starts whose shares become equal go on as one, the first,
        and after some rounds only the ``n_kept`` clearest go on.
        """
        current, totals = dict(enumerate(starts)), {place: np.zeros_like(shares) for place, shares in enumerate(starts)}
        sharpness = dict.fromkeys(current, 1.0)
        for done in range(_N_ROUNDS):
            found = []
            of_starts = self.mean_scores(np.stack(list(current.values()), axis=1))
            for (place, shares), scores in zip(current.items(), of_starts, strict=True):
                sharpness[place] = _sharpness(scores, shares.argmax(axis=1))
                scores *= sharpness[place]
                found.append(_shares(scores + _offset(scores)))
            beside = np.concatenate(found, axis=1)
            averaged = np.split((beside + transition @ beside) / 2, len(found), axis=1)
            current = _distinct(dict(zip(current, averaged, strict=True)))
            if done + 1 == _N_TRIED:
                current = _clearest(current, graph, n_kept)
            if done >= _N_ROUNDS - _N_AVERAGED:
                for place, shares in current.items():
                    totals[place] += shares
        return {place: (totals[place] / _N_AVERAGED, sharpness[place]) for place in current}

    def held_out(self, shares: Array) -> list[Array]:
        """Return for every view the scores of its rows by discriminants that were trained without them."""
        folds = self.source.permutation(len(shares)) % _N_FOLDS
        return [view.held_out(shares, folds) for view in self.views]

    def mean_scores(self, shares: Array) -> list[Array]:
        """Return for every start the scores of the samples, averaged over the views they have."""
        means = _mean_scores(self.held_out(shares), [view.samples for view in self.views], len(shares))
        return list(means.transpose(1, 0, 2).copy())

    def agreement(self, shares: Array) -> float:
        """Return Cohen's kappa of the groups predicted from two views, averaged over the samples that have both."""
        predicted = np.full((len(self.views), len(shares)), -1)
        for own, scores, view in zip(predicted, self.held_out(shares[:, None]), self.views, strict=True):
            own[view.samples] = scores[:, 0].argmax(axis=1)
        kappas, counts = [], []
        for one, other in combinations(predicted, 2):
            both = (one >= 0) & (other >= 0)
            if both.sum() >= _FEW_SHARED:
                kappas.append(_kappa(one[both], other[both], shares.shape[1]))
                counts.append(int(both.sum()))
        return float(np.average(kappas, weights=counts)) if counts else float("nan")


class _Moments(NamedTuple):
    """Sums over rows from which discriminants are computed, for several starts."""

    weight: Array  # starts × groups
    sums: Array  # starts × groups × features
    products: Array  # features × features, the same for all starts

    @classmethod
    def of(cls, rows: Array, shares: Array) -> _Moments:
        """Return the moments of rows with shares of shape (n_rows, n_starts, n_groups)."""
        size = *shares.shape[1:], rows.shape[1]
        sums = shares.reshape(len(rows), size[0] * size[1]).T @ rows
        return cls(shares.sum(axis=0), sums.reshape(size), rows.T @ rows)

    def discriminants(self, shrinkage: float) -> tuple[Array, Array]:
        """Return weights and offsets: S⁻¹μ and −μᵀS⁻¹μ/2 for means μ and one shrunk covariance S; all groups alike."""
        n_features, amount = len(self.products), np.maximum(self.weight.sum(axis=1), 1.0)[:, None, None]
        has_mean = self.weight >= _SMALLEST
        means = np.where(has_mean[..., None], self.sums / np.maximum(self.weight, _SMALLEST)[..., None], 0.0)
        within = self.products - (means * self.weight[..., None]).transpose(0, 2, 1) @ means
        within /= amount
        spreads = np.trace(within, axis1=1, axis2=2) / n_features
        least = _LEAST_RIDGE * (np.trace(self.products) / n_features) / amount.ravel()
        weights = np.empty_like(means)
        for own, spread, floor, start, found in zip(within, spreads, least, means, weights, strict=True):
            # Groups of equal rows have no covariance
            ridge = max(shrinkage * float(spread), float(floor)) or 1.0
            own *= 1 - shrinkage
            own.flat[:: n_features + 1] += ridge
            found[:] = _solve(own, start.T).T
        offsets = -(means * weights).sum(axis=2) / 2
        return weights, np.where(has_mean, offsets, offsets.min(axis=1, keepdims=True) - _FAR)


def _solve(matrix: Array, right: Array) -> Array:
    """Solve a symmetric system, positive definite but for rounding."""
    posv = sposv if matrix.dtype == np.float32 else dposv
    solution, info = posv(matrix.T, right, lower=1)[1:]
    return np.linalg.solve(matrix, right) if info else solution


def _distinct(of_starts: dict[int, Array]) -> dict[int, Array]:
    """Return the shares without those that equal earlier ones but for a small mean difference."""
    kept: dict[int, Array] = {}
    for place, shares in of_starts.items():
        if all(np.abs(shares - other).mean() * shares.shape[1] > _EQUAL for other in kept.values()):
            kept[place] = shares
    return kept


def _clearest(of_starts: dict[int, Array], graph: Any, n_kept: int) -> dict[int, Array]:
    """Return the clearest shares, in their order."""
    if len(of_starts) <= n_kept:
        return of_starts
    clarity = {place: _clarity(shares, graph) for place, shares in of_starts.items()}
    kept = sorted(clarity, key=lambda place: -clarity[place])[:n_kept]
    return {place: shares for place, shares in of_starts.items() if place in kept}


def _clarity(shares: Array, graph: Any) -> float:
    """Return the information of the shares on the groups times the modularity of the groups."""
    information = float(entropy(shares.mean(axis=0)) - entropy(shares, axis=1).mean())
    return max(information, 0.0) * max(modularity(graph, shares.argmax(axis=1)), 0.0)


def _mean_scores(scores: Sequence[Array], present: Sequence[Array], n_samples: int) -> Array:
    """Return the scores of samples, averaged over the views they have."""
    total, counts = np.zeros((n_samples, *scores[0].shape[1:])), np.zeros(n_samples)
    for own, samples in zip(scores, present, strict=True):
        total[samples] += own
        counts[samples] += 1
    return total / np.maximum(counts, 1).reshape(-1, *[1] * (total.ndim - 1))


def _below_best(scores: Array) -> Array:
    """Return scores less the largest of every row, which is found faster by its position."""
    return np.asarray(scores - scores[np.arange(len(scores)), scores.argmax(axis=1)][:, None])


def _shares(scores: Array) -> Array:
    """Return shares that are proportional to the exponentials of scores."""
    powers = np.exp(_below_best(scores))
    return np.asarray(powers / (powers @ np.ones(scores.shape[1]))[:, None])


def _offset(scores: Array) -> Array:
    """Return what to add to the scores of each group so that it has samples; 0 for groups that have."""
    offset, best = np.zeros(scores.shape[1]), scores.argmax(axis=1)
    for group in np.flatnonzero(np.bincount(best, minlength=scores.shape[1]) == 0):
        lacking = scores[np.arange(len(scores)), best] - scores[:, group]
        offset[group] = np.partition(lacking, _FEWEST - 1)[_FEWEST - 1] + _AHEAD
    return offset


def _sharpness(scores: Array, labels: Array) -> float:
    """Return the factor of the scores that predicts the groups best; means over many weak views say too little."""
    scores = _below_best(scores)
    of_labels, powers, found = float(scores[np.arange(len(labels)), labels].mean()), np.exp(scores), []
    for factor in _SHARPNESS:  # each twice the one before
        found.append(factor * of_labels - float(np.log(powers @ np.ones(scores.shape[1])).mean()))
        powers *= powers
    return _SHARPNESS[int(np.argmax(found))]


def _kappa(one: Array, other: Array, n_groups: int) -> float:
    """Return the share of equal labels above chance; 1 if chance alone makes all of them equal."""
    sizes = [np.bincount(labels, minlength=n_groups) / len(labels) for labels in (one, other)]
    chance = float(sizes[0] @ sizes[1])
    return (float((one == other).mean()) - chance) / (1 - chance) if chance < 1 else 1.0
