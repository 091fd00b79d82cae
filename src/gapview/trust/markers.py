"""Markers of the groups: every feature compared between each group and all other samples, with a test and an FDR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse, stats
from sklearn.metrics import adjusted_rand_score

from ..errors import GapviewError, extra
from ..utils.messages import check_integer, random_generator, warn_user
from ..utils.shown import Shown, Table
from ..utils.types import Array, Matrix
from ..views import Views
from ._effects import feature_effects
from .confidence import read_labels
from .stability import count_common, draw_samples, partners, with_features

_MOST_TESTED = 5000  # samples in a split test, which costs two fits to them
_MOST_VALUES, _FEWEST_TESTED = 200_000_000, 500
_VALUES_AT_A_TIME = 4_000_000  # of dense columns that are ranked together
_POOR = 0.5  # adjusted Rand index below which the groups of half of the features are others

_N_SHOWN = 20  # rows of a short table

COLUMNS = (
    *("view", "feature", "group", "effect", "direction", "mean_inside", "mean_outside"),
    *("share_observed", "nonzero_inside", "nonzero_outside", "p_value", "fdr"),
)


@dataclass(frozen=True, repr=False)
class Markers(Shown):
    """The result of :func:`find_markers`: a row for each group, view and feature.

    Rows are sorted by group, by view, by p-value and by absolute effect.

    Attributes
    ----------
    columns : dict of arrays of shape (n_rows,)
        * ``view``, ``feature``, ``group``: names; the position of a feature where the view came without names.
        * ``effect``: Hedges' g, see :func:`feature_effects`. ``direction``: ``"up"``, ``"down"`` or ``""``.
        * ``mean_inside``, ``mean_outside``: means of the group and of all other samples that have the view.
        * ``share_observed``: share of the samples of the group that have the view.
        * ``nonzero_inside``, ``nonzero_outside``: shares of values other than 0.
        * ``p_value``: of the rank-sum test. ``fdr``: adjusted for all rows (Benjamini and Hochberg 1995).
    is_split : bool
        Whether no feature is tested against groups that it has helped to find.
    agreement : float
        Adjusted Rand index of the groups with those found from half of the features, on average; NaN without a split.

    Examples
    --------
    >>> from gapview.trust import find_markers
    >>> markers = find_markers({"blood": [[1.0], [2.0], [8.0], [9.0]]}, [0, 0, 1, 1])
    >>> len(markers), markers.columns["direction"].tolist()
    (2, ['down', 'up'])
    """

    columns: dict[str, Array]
    is_split: bool
    agreement: float

    def __len__(self) -> int:
        return len(self.columns["view"])

    def top(self, n_top: int = 10) -> Markers:
        """Return the first rows of each group and view.

        Parameters
        ----------
        n_top : int, default=10
            Number of features for each group and view.

        Examples
        --------
        >>> from gapview.trust import find_markers
        >>> len(find_markers({"blood": [[1.0, 4.0], [2.0, 3.0], [8.0, 1.0]]}, [0, 0, 1]).top(1))
        2
        """
        check_integer("n_top", n_top, low=1)
        pairs = np.unique([self.columns["view"].astype(str), self.columns["group"].astype(str)], axis=1)
        chosen = [
            np.flatnonzero((self.columns["view"] == view) & (self.columns["group"] == int(group)))[:n_top]
            for view, group in pairs.T
        ]
        rows = np.sort(np.concatenate(chosen)) if chosen else np.arange(0)
        return replace(self, columns={name: column[rows] for name, column in self.columns.items()})

    def to_frame(self) -> Any:
        """Return the columns as a pandas frame.

        Examples
        --------
        >>> from gapview.trust import find_markers
        >>> find_markers({"blood": [[1.0], [2.0], [8.0], [9.0]]}, [0, 0, 1, 1]).to_frame().shape
        (2, 12)
        """
        return extra("pandas", "tables", "A frame of markers").DataFrame(self.columns)

    @property
    def caveat(self) -> str:
        """What the p-values mean, in sentences."""
        if not self.is_split:
            return (
                "The groups were computed from the features that are tested, so that p-values are too small, in noise, "
                "too: they rank the features, and are no evidence for the groups."
            )
        text = (
            "Each feature is tested against groups that are found without it, from the other half of the features: "
            "p-values show that it differs between groups of the other features, not that the groups are separate."
        )
        if self.agreement < _POOR:
            text += (
                f" Half of the features give other groups (adjusted Rand index {self.agreement:.2f}), so that the "
                "test detects little."
            )
        return text

    def _shown_as(self) -> Table:
        """Return the first features of each group."""
        names = ("group", "view", "feature", "effect", "mean_inside", "mean_outside", "p_value", "fdr")
        groups = self.columns["group"]
        n_each = max(1, _N_SHOWN // max(len(np.unique(groups)), 1))
        rows = [
            row
            for g in np.unique(groups)
            for row in np.flatnonzero(groups == g)[np.argsort(self.columns["p_value"][groups == g], kind="stable")][
                :n_each
            ]
        ]
        cells = [tuple(self.columns[name][row] for name in names) for row in rows]
        more = f"The first {n_each} of each group; to_frame() has all {len(self):,} rows."
        title, caveat = str(self).split("%. ", 1)
        return Table(f"{title}%.", names, cells, [more, caveat])

    def __str__(self) -> str:
        n_found = int((self.columns["fdr"] <= 0.05).sum())
        return f"{n_found:,} of {len(self):,} pairs of a feature and a group differ at an FDR of 5 %. {self.caveat}"


def find_markers(
    views: Any, labels: Any, fit: Callable[[Views, int], Any] | None = None, *, random_state: Any = 0
) -> Markers:
    """Compare every feature between each group and all other samples that have the view.

    The test is Wilcoxon's rank-sum test (Mann-Whitney U) with corrections for ties and continuity. Groups are computed
    from the features, so that a test of the same groups gives small p-values in noise, too. With ``fit``, the features
    of each view are divided at random into two halves. Groups are found from one half, matched with ``labels`` by
    common samples, and the features of the other half are tested against them; then the reverse. So no feature has
    a part in the groups that it is tested against. Dividing the samples would not achieve this: the group of a sample
    that was held out is predicted from the features that are tested.

    Parameters
    ----------
    views : list or dict of views, or Views
        The data, in the user's units, see :class:`gapview.Views`.
    labels : array of shape (n_samples,)
        Group of every sample, whole numbers from 0 on.
    fit : callable, optional
        Takes Views and a seed, and returns a label for each sample. Without it, ``labels`` are tested.
    random_state : int, RandomState or None, default=0
        Seed of the halves and of the fits. At most 5,000 samples are drawn for them, fewer of wide views.

    Returns
    -------
    Markers
        NaN as p-value: of the only feature of a view, of a group that the fit to half of the features lacks, and of a
        group with none or all of the samples that have the view. 1, if the feature differs in the other direction
        from the groups found without it.

    Warns
    -----
    GapviewWarning
        If the fit to half of the features fails.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import BridgedGRMF
    >>> from gapview.trust import find_markers
    >>> noise = np.random.default_rng(0).normal(size=(100, 40))
    >>> model = BridgedGRMF(n_clusters=2, selection="fixed", random_state=0).fit([noise])
    >>> same = find_markers([noise], model.labels_)
    >>> bool((same.columns["fdr"] < 0.05).sum() > 5)
    True
    """
    given = Views(views)
    groups = read_labels(labels, given.n_samples)
    n_groups = int(groups.max()) + 1
    agreement = float("nan")
    if fit is None:
        tested = [_rank_tests(matrix, groups[given.rows(k)], n_groups) for k, matrix in enumerate(given.one_by_one())]
    else:
        tested, agreement = _split_tests(given, groups, n_groups, fit, random_generator(random_state))
    columns = _described(given, groups, n_groups)
    scores = np.concatenate([own.ravel() for own in tested])
    with np.errstate(invalid="ignore"):
        p_values = np.where(scores * columns["effect"] < 0, 1.0, 2 * stats.norm.sf(np.abs(scores)))
    p_values[np.isnan(columns["effect"])] = np.nan
    columns |= {"p_value": p_values, "fdr": _false_discovery_rate(p_values)}
    return Markers(_sorted(columns, given.names), fit is not None, agreement)


def _described(views: Views, groups: Array, n_groups: int) -> dict[str, Array]:
    """Return the columns that describe the groups: for each view, group and feature, in this order."""
    sizes = np.maximum(np.bincount(groups, minlength=n_groups), 1)
    parts: dict[str, list[Array]] = {name: [] for name in COLUMNS[:-2]}
    for k, (one, matrix) in enumerate(zip(feature_effects(views, groups), views.one_by_one(), strict=True)):
        n_features = len(one.features)
        inside, outside = _nonzero_shares(matrix, groups[views.rows(k)], n_groups)
        values = {
            "view": np.full((n_groups, n_features), one.view, dtype=object),
            "feature": np.tile(one.features.astype(object), (n_groups, 1)),
            "group": np.repeat(np.arange(n_groups)[:, None], n_features, axis=1),
            "effect": one.sizes,
            "direction": np.select([one.sizes > 0, one.sizes < 0], ["up", "down"], ""),
            "mean_inside": one.mean_inside,
            "mean_outside": one.mean_outside,
            "share_observed": np.repeat((one.n_inside / sizes)[:, None], n_features, axis=1),
            "nonzero_inside": inside,
            "nonzero_outside": outside,
        }
        for name, value in values.items():
            parts[name].append(value.ravel())
    return {name: np.concatenate(own) for name, own in parts.items()}


def _nonzero_shares(matrix: Matrix, groups: Array, n_groups: int) -> tuple[Array, Array]:
    """Return the share of values other than 0, in every group and in all other samples; NaN where there are none."""
    counts = np.zeros((n_groups, matrix.shape[1]))
    for group in np.unique(groups):
        counts[group] = np.asarray((matrix[groups == group] != 0).sum(axis=0)).ravel()
    sizes = np.bincount(groups, minlength=n_groups)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return counts / sizes, (counts.sum(axis=0) - counts) / (sizes.sum() - sizes)


def _sorted(columns: dict[str, Array], names: Any) -> dict[str, Array]:
    place = {name: k for k, name in enumerate(names)}
    view = np.array([place[name] for name in columns["view"]], dtype=np.intp)
    order = np.lexsort((-np.abs(columns["effect"]), columns["p_value"], view, columns["group"]))
    return {name: columns[name][order] for name in COLUMNS}


def _false_discovery_rate(p_values: Array) -> Array:
    found = np.full(len(p_values), np.nan)
    known = ~np.isnan(p_values)
    if known.any():
        found[known] = stats.false_discovery_control(p_values[known])
    return found


# -- groups found without the features that are tested -------------------------------------------------------------


def _split_tests(
    views: Views, groups: Array, n_groups: int, fit: Callable[[Views, int], Any], state: np.random.RandomState
) -> tuple[list[Array], float]:
    """Return for each view the scores of all groups and features, each against groups found without the feature."""
    n_most = int(min(_MOST_TESTED, max(_MOST_VALUES // sum(views.n_features), _FEWEST_TESTED)))
    if views.n_samples > n_most:
        needed = np.minimum(views.mask.sum(axis=0), 2)
        rows = draw_samples(state, n_most, views.mask, needed)
        views, groups = views[rows], groups[rows]
    halves = [state.permutation(n_features) % 2 if n_features > 1 else None for n_features in views.n_features]
    scores = [np.full((n_groups, n_features), np.nan) for n_features in views.n_features]
    agreements, failure = [], ""
    for half in range(2):
        kept = [np.arange(1) if own is None else np.flatnonzero(own != half) for own in halves]
        try:
            answer = fit(with_features(views, kept), int(state.randint(2**31 - 1)))
        except GapviewError as error:
            failure = str(error)
            continue
        found = np.unique(np.asarray(answer), return_inverse=True)[1]
        agreements.append(adjusted_rand_score(groups, found))
        matched = _matched(groups, found, n_groups)
        for k, (matrix, own) in enumerate(zip(views.one_by_one(), halves, strict=True)):
            tested = np.arange(0) if own is None else np.flatnonzero(own == half)
            scores[k][:, tested] = _rank_tests(matrix[:, tested], matched[views.rows(k)], n_groups + 1)[:n_groups]
    if failure:
        warn_user(
            f"Some features have no p-value: the groups could not be found without them. The error was: {failure}"
        )
    agreement = float(np.mean(agreements)) if agreements else float("nan")
    return scores, agreement


def _matched(groups: Array, found: Array, n_groups: int) -> Array:
    """Return found groups under the numbers of those they have most samples in common with; others are ``n_groups``."""
    partner = partners(count_common(groups, found, n_groups))
    number = np.full(int(found.max()) + 1, n_groups)
    number[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    return number[found]


# -- rank sums -----------------------------------------------------------------------------------------------------


def _rank_tests(matrix: Matrix, groups: Array, n_groups: int) -> Array:
    """Return the standardised rank sum of every group and feature, towards 0 by the correction for continuity.

    Positive, if the group ranks above all other rows. NaN for a group with no rows or with all.
    """
    n_rows = len(groups)
    sizes = np.bincount(groups, minlength=n_groups).astype(np.float64)
    sums, ties = np.empty((n_groups, matrix.shape[1])), np.empty(matrix.shape[1])
    for j, (rows, values) in enumerate(_columns(matrix)):
        sums[:, j], ties[j] = _rank_sums(groups[rows], values, sizes)
    spread = (n_rows + 1) - ties / max(n_rows * (n_rows - 1), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = sums - (sizes * (n_rows + 1) / 2)[:, None]
        scale = np.sqrt(np.outer(sizes * (n_rows - sizes), np.maximum(spread, 0)) / 12)
        scores = np.sign(deviation) * np.maximum(np.abs(deviation) - 0.5, 0) / scale
    scores[:, ties >= n_rows**3 - n_rows] = 0.0  # constant features
    scores[(sizes == 0) | (sizes == n_rows)] = np.nan
    return scores


def _columns(matrix: Matrix) -> Iterator[tuple[Array, Array]]:
    """Yield for each feature the rows that are not 0 and their values; sparse matrices stay sparse."""
    n_rows, n_features = matrix.shape
    step = n_features if sparse.issparse(matrix) else max(1, _VALUES_AT_A_TIME // max(n_rows, 1))
    for start in range(0, n_features, max(step, 1)):
        block = sparse.csc_array(matrix[:, start : start + step])
        block.sum_duplicates()
        block.eliminate_zeros()
        for first, last in zip(block.indptr[:-1], block.indptr[1:], strict=True):
            yield block.indices[first:last], block.data[first:last]


def _rank_sums(groups: Array, values: Array, sizes: Array) -> tuple[Array, float]:
    """Return the sum of the ranks of every group, and the sum of t³ − t over ties of t rows; zeros are not listed."""
    order = np.argsort(values)
    ordered = values[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    counts = np.diff(np.append(first, len(ordered))).astype(np.float64)
    n_zeros, n_negative = sizes.sum() - len(values), np.searchsorted(ordered, 0)
    ranks = first + (counts + 1) / 2 + n_zeros * (first >= n_negative)
    listed = np.bincount(groups, minlength=len(sizes))
    weights = np.repeat(ranks, counts.astype(np.intp))
    sums = np.bincount(groups[order], weights=weights, minlength=len(sizes))
    sums = sums + (sizes - listed) * (n_negative + (n_zeros + 1) / 2)
    return sums, float((counts**3 - counts).sum() + n_zeros**3 - n_zeros)
