"""Suggest a number of clusters without labels, with the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances_argmin

from ..clusters import cluster_rows
from ..errors import GapviewWarning, InputError, ParameterError, ParameterTypeError, SolutionError
from ..graph.knn import modularity
from ..persist.checkpoints import checkpointed
from ..persist.registry import storable_record
from ..progress import tell
from ..scaling import unit_rows
from ..trust.stability import best_jaccard, count_common, structure_score
from ..utils.messages import check_integer, muted, random_generator, shown
from ..utils.shown import Shown, Table
from ..utils.types import Array

MOST_CLUSTERS = 20  # default of the largest count
N_RESTARTS = 5  # of k-means on all samples
N_RESAMPLES = 10
RESAMPLE_SHARE = 2 / 3
RESAMPLE_RESTARTS = 3
MOST_DRAWN = 5000  # larger resamples cost more and change little
FLAWLESS = 0.95
ALPHA = 0.05  # level of the test whether there are groups
_ROUNDING = 1e-9


@storable_record
@dataclass(frozen=True, repr=False)
class ClusterCount(Shown):
    """A suggested number of clusters and the evidence for it; the result of :func:`suggest_n_clusters`.

    Attributes
    ----------
    counts : array of shape (n_counts,)
        The numbers of clusters that were tried, in ascending order.
    modularity : array of shape (n_counts,)
        Modularity of the labels, averaged over the graphs.
    stability : array of shape (n_counts,)
        Jaccard similarity of the cluster of a sample with the most similar cluster of a resample, averaged over samples
        and resamples; 1 if it is always the same cluster.
    score : array of shape (n_counts,)
        modularity³ · stability, 0 where the modularity is negative.
    flawless : bool array of shape (n_counts,)
        Whether modularity · stability is at least 95 % of 1 − 1/count, its maximum: clusters of equal size, separated
        and found in every resample.
    suggested : int
        The count of the highest score; where some counts are flawless, among those.
        1 if ``p_value`` is above 0.05.
    runner_up : int
        The next one in the same order; the best count if one group is suggested.
    p_value : float
        Of the test whether groups of the best count can be distinguished from data without groups, see
        :func:`gapview.trust.assess_structure`; NaN if it was not made.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.choice import ClusterCount
    >>> found = ClusterCount(np.array([2, 3]), modularity=np.array([0.4, 0.55]), stability=np.array([0.9, 0.8]))
    >>> found.suggested, found.runner_up
    (3, 2)
    >>> print(found.reason())
    3 clusters rather than 2: more of the graph lies inside the groups than by chance (modularity 0.550 against 0.400),
    which outweighs that the groups come back less well in resamples (stability 0.80 against 0.90).
    """

    counts: Array
    modularity: Array
    stability: Array
    p_value: float = float("nan")

    @property
    def score(self) -> Array:
        """Return modularity³ · stability for every count."""
        return structure_score(self.modularity, self.stability)

    @property
    def flawless(self) -> Array:
        """Return for every count whether modularity · stability is close to its maximum."""
        return self.modularity * self.stability >= FLAWLESS * (1 - 1 / self.counts)

    @property
    def suggested(self) -> int:
        """Return the best count; 1 if its groups cannot be distinguished from data without groups."""
        return 1 if self.p_value > ALPHA + _ROUNDING else self.best

    @property
    def best(self) -> int:
        """Return the best count of at least 2."""
        return int(self.counts[self._order()[0]])

    @property
    def runner_up(self) -> int:
        """Return the second best count."""
        return self.best if self.suggested == 1 else int(self.counts[self._order()[1]])

    def reason(self, other: int | None = None) -> str:
        """Return a sentence with the reason for the suggestion rather than ``other``, by default the runner-up.

        Parameters
        ----------
        other : int, optional
            One of the counts that were tried.
        """
        other = self.runner_up if other is None else other
        if other == self.suggested or other not in self.counts:
            rest = ", ".join(str(count) for count in self.counts if count != self.suggested)
            raise ParameterError(
                f"other must be one of the counts that were not suggested ({rest}); got {shown(other)}."
            )
        if self.suggested == 1:
            figures = f"p = {self.p_value:.2g}, stability {self.stability[self._order()[0]]:.2f}"
            return (
                f"One group rather than {other}: the best division, into {self.best} groups, has no more modularity "
                f"and stability\nthan divisions of data without groups ({figures})."
            )
        ours, theirs = (int(np.flatnonzero(self.counts == count)[0]) for count in (self.suggested, other))
        edges = f"(modularity {self.modularity[ours]:.3f} against {self.modularity[theirs]:.3f})"
        again = f"(stability {self.stability[ours]:.2f} against {self.stability[theirs]:.2f})"
        head = f"{self.suggested} clusters rather than {other}: "
        if self.flawless[ours] and not self.flawless[theirs]:
            return f"{head}they are well separated {edges}\nand found again in resamples {again}."
        denser = self.modularity[ours] >= self.modularity[theirs]
        steadier = self.stability[ours] >= self.stability[theirs]
        first = f"{'more' if denser else 'less'} of the graph lies inside the groups than by chance {edges}"
        second = f"the groups come back {'better' if steadier else 'less well'} in resamples {again}"
        if denser and steadier:
            return f"{head}{first},\nand {second}."
        strong, weak = (first, second) if denser else (second, first)
        return f"{head}{strong},\nwhich outweighs that {weak}."

    def _shown_as(self) -> Table:
        """Return the evidence for every count."""
        columns = ("groups", "modularity", "stability", "score", "")
        marks = ["suggested" if count == self.suggested else "" for count in self.counts]
        values = (self.counts, self.modularity, self.stability, self.score, marks)
        rows = list(zip(*(list(own) for own in values), strict=True))
        return Table(" ".join(self.reason().split()), columns, rows)

    def _order(self) -> Array:
        """Return the positions of the counts, best first; among equals the fewest clusters."""
        return np.lexsort((self.counts, -self.score, ~self.flawless))


def default_counts(n_samples: int, most: int = MOST_CLUSTERS) -> range:
    """Return the numbers of clusters to try: from 2 to ``most``, and to no more than a third of the samples.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    most : int, default=20
        The largest number to try.

    Examples
    --------
    >>> from gapview.choice.n_clusters import default_counts
    >>> default_counts(2000), default_counts(30)
    (range(2, 21), range(2, 11))
    """
    check_integer("most", most, low=3)
    if n_samples < 9:
        raise InputError(
            f"Suggesting a number of clusters needs at least 9 samples; there are {n_samples}. Give the number."
        )
    return range(2, min(most, n_samples // 3) + 1)


def suggest_n_clusters(
    points: Array,
    graphs: Sequence[sparse.csr_array],
    counts: Iterable[int] | None = None,
    *,
    random_state: Any = None,
) -> ClusterCount:
    """Suggest a number of clusters without labels.

    For every count the samples are clustered by k-means, and the clusters are scored in two ways. Modularity on graphs
    of the samples measures whether neighbours have the same label (Newman and Girvan 2004). Stability measures whether
    clusters are found again: k-means is repeated on two thirds of the samples, all samples are assigned to the nearest
    of its centres, and each cluster is compared with the most similar new cluster by the Jaccard similarity (Hennig
    2007). Modularity alone splits round clouds, stability alone prefers the coarsest division; the suggestion is the
    count with the largest modularity³ · stability. Since the modularity of few clusters is small (at most 1 − 1/count),
    flawless counts are preferred to all others.

    The suggestion may be wrong: two or three broad clusters that touch tend to be split, and with few samples that
    share views the result varies. The least number is 2; ``n_clusters="auto"`` of :class:`gapview.BridgedGRMF` also
    tests whether there are groups at all.

    Parameters
    ----------
    points : array of shape (n_samples, n_dimensions)
        The representation that is clustered; rows are scaled to unit length. It is the same for every count, and should
        have about as many dimensions as the largest count.
    graphs : sequence of csr_arrays of shape (n_samples, n_samples)
        Symmetric neighbour graphs of all samples for the modularity. Build them from measured values: samples with
        imputed views look more alike than they are.
    counts : iterable of int, optional
        The numbers of clusters to try, at least two of them, from 2 to half the samples; by default
        :func:`default_counts`.
    random_state : int, RandomState or None, default=None
        Seed of k-means and of the resamples.

    Returns
    -------
    ClusterCount

    Examples
    --------
    >>> from gapview.choice import suggest_n_clusters
    >>> from gapview.datasets import make_views
    >>> from gapview.graph import knn_graph
    >>> points = make_views(90, [10], n_clusters=4, random_state=0).views.matrices[0]
    >>> found = suggest_n_clusters(points, [knn_graph(points, 5)], range(2, 8), random_state=0)
    >>> found.suggested
    4
    """
    graphs = _demand_graphs(graphs, len(points))
    tried = _read_counts(default_counts(len(points)) if counts is None else counts, len(points))
    state = random_generator(random_state)
    directions = unit_rows(points)
    values = []
    with muted(GapviewWarning):  # the fit warns of samples without a representation and of too few distinct points
        for done, count in enumerate(tried):
            tell("Counting groups", done, len(tried))
            values.append(
                checkpointed("count", partial(_modularity_and_stability, directions, graphs, count, state), state)
            )
    found = ClusterCount(np.array(tried), *np.array(values).T)
    if not found.score.any():
        raise SolutionError(
            "No number of clusters has a modularity above 0, so that none can be suggested. Give the number, or check "
            "the graphs."
        )
    return found


def _modularity_and_stability(
    directions: Array, graphs: Sequence[sparse.csr_array], count: int, state: np.random.RandomState
) -> tuple[float, float]:
    """Return the modularity and the stability of k-means with ``count`` clusters."""
    labels = cluster_rows(directions, count, state, n_init=N_RESTARTS).labels
    together = float(np.mean([modularity(graph, labels) for graph in graphs]))
    return together, _stability(directions, labels, count, state)


def _stability(directions: Array, labels: Array, count: int, state: np.random.RandomState) -> float:
    """Return the Jaccard similarity of clusters with those of resamples, averaged over samples and resamples."""
    n_samples = len(labels)
    n_drawn = max(count, min(round(RESAMPLE_SHARE * n_samples), MOST_DRAWN))
    values = []
    for _ in range(N_RESAMPLES):
        drawn = state.permutation(n_samples)[:n_drawn]
        if not directions[drawn].any():  # all samples drawn have no representation
            values.append(0.0)
            continue
        centers = cluster_rows(directions[drawn], count, state, n_init=RESAMPLE_RESTARTS).centers
        again = pairwise_distances_argmin(directions, centers)
        common = count_common(labels, again, count)
        values.append(float(common.sum(axis=1) @ np.nan_to_num(best_jaccard(common))) / n_samples)
    return float(np.mean(values))


def _demand_graphs(graphs: Sequence[sparse.csr_array], n_samples: int) -> list[sparse.csr_array]:
    given = list(graphs)
    shapes = [graph.shape for graph in given]
    if not given or any(shape != (n_samples, n_samples) for shape in shapes):
        raise InputError(
            f"graphs must be at least one graph of all samples, of shape {(n_samples, n_samples)}; got shapes {shapes}."
        )
    return given


def _read_counts(counts: Iterable[int], n_samples: int) -> list[int]:
    expected = "counts must be at least two different integers from 2 to half the samples, such as range(2, 11)"
    if isinstance(counts, str) or not isinstance(counts, Iterable):
        raise ParameterTypeError(f"{expected}; got {shown(counts)}.")
    given = list(counts)
    for count in given:
        check_integer("Every one of the counts", count, low=2)
    tried = sorted({int(count) for count in given})
    if len(tried) < 2:
        raise ParameterError(f"{expected}; got {shown(given)}.")
    if tried[-1] > n_samples // 2:
        raise ParameterError(f"{expected}, here {n_samples // 2}; got up to {tried[-1]}.")
    return tried
