"""Transforms of views by their kinds, such as logarithms of counts; fitted before views are scaled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..scaling import BlockedRows, is_small_sparse, rows_in_blocks
from ..utils.messages import number
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.cells import dense
from ..views.kinds import AUTO
from .levels import Levels, fit_levels

_CPM = 1e6  # totals of deeper samples are brought to counts per million
_OFFSET = 0.01  # added to methylated and unmethylated shares, so that M-values stay finite
_N_BINS = 20  # of features with similar means
_DIGITS = 9  # to which variances of features are compared
_OF_ROWS = ("counts", "proteins", "compositional")  # kinds that divide each row by its own size
_OF_LEVELS = ("binary", "categorical")


@dataclass(frozen=True)
class Preparation:
    """The transform of one view by its kind, and the features that are kept; before the view is scaled.

    ``print(model.kinds_[0])`` describes it.

    Attributes
    ----------
    name : str
        Name of the view.
    kind : str or None
        Its kind; None leaves the values as they are.
    n_features : int
        Number of features of the view as given.
    size : float or None
        Of kinds that divide each row by its size, the size of the usual row: for counts the total that rows are
        brought to, for proteins the median of their geometric means, for compositional views the median total.
    floor : float or None
        Share that is added to those of a compositional view: half of the smallest one above 0.
    levels : Levels or None
        The values of binary and categorical features, and their weights.
    kept : int array or None
        Positions of the features that are kept, of those after the transform; None keeps all.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.kinds import fit_kind
    >>> rule = fit_kind("rna", np.array([[1.0, 3.0], [20.0, 20.0]]), "counts")
    >>> rule.apply(np.array([[1.0, 3.0]])).round(2)
    array([[1.87, 2.86]])
    >>> rule.undo(rule.apply(np.array([[1.0, 3.0]])))  # of a sample with the median total, 22
    array([[ 5.5, 16.5]])
    """

    name: str
    kind: str | None
    n_features: int
    size: float | None = None
    floor: float | None = None
    levels: Levels | None = None
    kept: Array | None = None

    @property
    def is_identity(self) -> bool:
        """Whether values are left as they are."""
        return self.kind in (None, "continuous") and self.kept is None

    @property
    def n_values(self) -> int:
        """Number of features after the transform, before some are selected."""
        return self.n_features if self.levels is None else len(self.levels.owners)

    @property
    def n_out(self) -> int:
        """Number of features of the prepared view."""
        return self.n_values if self.kept is None else len(self.kept)

    @property
    def sources(self) -> Array:
        """For each feature of the prepared view the feature of the given one that it comes from."""
        owners = np.arange(self.n_features) if self.levels is None else self.levels.owners
        return owners if self.kept is None else owners[self.kept]

    def __str__(self) -> str:
        text = f"'{self.name}' as {self.kind}: {_STEPS[self.kind]}" if self.kind else f"'{self.name}'"
        if self.kind == "counts":
            text = text.format(total="a million" if self.size == _CPM else number(float(self.size or 0)))
        if self.kept is not None:
            text += f"{'; ' if self.kind else ': '}{len(self.kept):,} of {self.n_values:,} features with the most "
            text += "variance" + (" for their mean" if self.kind in ("counts", "proteins") else "")
        return text

    def apply(self, matrix: Matrix) -> Matrix:
        """Return rows of this view, those of the fit or new ones, as they are scaled and clustered.

        Parameters
        ----------
        matrix : array or csr_array of shape (n_rows, n_features)
            The rows as given.
        """
        values = self.transform(matrix)
        return values if self.kept is None else values[:, self.kept]

    def transform(self, matrix: Matrix) -> Matrix:
        """Return rows of this view transformed, with all features.

        Parameters
        ----------
        matrix : array or csr_array of shape (n_rows, n_features)
            The rows as given.
        """
        if self.kind in (None, "continuous"):
            return matrix
        matrix = matrix if sparse.issparse(matrix) else np.asarray(matrix)
        if self.levels is not None:
            return self.levels.encode(self.name, matrix, self.kind == "binary")
        check_values(self.name, self.kind, matrix)
        return _FORWARD[self.kind](self, matrix)

    def undo(self, values: Matrix) -> Matrix:
        """Return transformed rows, with all features, in the units of the data.

        The size of a row is not known from it: it gets that of the usual row. Shares of a binary feature are returned
        as such; of a category, the most likely value.

        Parameters
        ----------
        values : array or csr_array of shape (n_rows, n_values)
            Rows as :meth:`transform` returns them.
        """
        if self.kind in (None, "continuous"):
            return values
        if self.levels is not None:
            return self.levels.decode(values)
        with np.errstate(over="ignore", invalid="ignore"):
            return _BACKWARD[self.kind](self, values)


_STEPS = {
    "counts": "each sample divided by its total, times {total}, then log(1 + x)",
    "proteins": "log(1 + x), centred for each sample (CLR)",
    "binary": "presence, weighted by log(n / frequency)",
    "categorical": "one column for each value, weighted by log(n / frequency)",
    "methylation": "M-values, log2 of methylated over unmethylated",
    "compositional": "logarithms of shares, centred for each sample (CLR)",
    "continuous": "unchanged",
}


# -- transforms ------------------------------------------------------------------------------------------------------


def _on_values(function: Callable[[Array], Array], matrix: Matrix) -> Matrix:
    """Return a function of the values that keeps zeros; a sparse matrix stays sparse."""
    if not sparse.issparse(matrix):
        return function(matrix)
    return sparse.csr_array((function(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def _times_rows(matrix: Matrix, factors: Array) -> Matrix:
    factors = factors.astype(matrix.dtype)
    if not sparse.issparse(matrix):
        return np.asarray(matrix * factors[:, None])
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _totals(matrix: Matrix) -> Array:
    return np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel()


def _geometric_means(matrix: Matrix) -> Array:
    """Return exp(mean(log(1 + x))) of each row."""
    return np.asarray(np.exp(_totals(_on_values(np.log1p, matrix.astype(np.float64))) / matrix.shape[1]))


def _inverse(sizes: Array) -> Array:
    return 1 / np.where(sizes > 0, sizes, 1.0)


def _log_counts(rule: Preparation, matrix: Matrix) -> Matrix:
    return _on_values(np.log1p, _times_rows(matrix, float(rule.size or 1) * _inverse(_totals(matrix))))


def _clr_proteins(rule: Preparation, matrix: Matrix) -> Matrix:
    logs = np.log1p(dense(matrix))  # proteins are few
    return logs - logs.mean(axis=1, keepdims=True)


def _m_values(rule: Preparation, matrix: Matrix) -> Matrix:
    shares = _dense(rule.name, "methylation", matrix)
    return np.log2((shares + _OFFSET) / (1 - shares + _OFFSET), dtype=shares.dtype)


def _clr(rule: Preparation, matrix: Matrix) -> Matrix:
    shares = _times_rows(_dense(rule.name, "compositional", matrix), _inverse(_totals(matrix)))
    logs = np.log(shares + shares.dtype.type(rule.floor or 0))
    return logs - logs.mean(axis=1, keepdims=True)


def _undo_log_counts(rule: Preparation, values: Matrix) -> Matrix:
    return _on_values(lambda logs: np.maximum(np.expm1(logs), 0), values)


def _undo_clr_proteins(rule: Preparation, values: Matrix) -> Matrix:
    return np.maximum(np.exp(np.asarray(values)) * values.dtype.type(rule.size or 1) - 1, 0)


def _undo_m_values(rule: Preparation, values: Matrix) -> Matrix:
    ratio = np.exp2(np.clip(values, -60, 60))
    return np.clip((ratio * (1 + _OFFSET) - _OFFSET) / (1 + ratio), 0, 1).astype(values.dtype)


def _undo_clr(rule: Preparation, values: Matrix) -> Matrix:
    floor = float(rule.floor or 0)
    shares = np.exp(values - values.max(axis=1, keepdims=True))
    shares = shares / shares.sum(axis=1, keepdims=True) * (1 + floor * values.shape[1]) - floor
    shares = np.maximum(shares, 0)
    return (shares / shares.sum(axis=1, keepdims=True) * float(rule.size or 1)).astype(values.dtype)


_Transform = Callable[[Preparation, Matrix], Matrix]
_FORWARD: dict[str, _Transform] = {
    "counts": _log_counts,
    "proteins": _clr_proteins,
    "methylation": _m_values,
    "compositional": _clr,
}
_BACKWARD: dict[str, _Transform] = {
    "counts": _undo_log_counts,
    "proteins": _undo_clr_proteins,
    "methylation": _undo_m_values,
    "compositional": _undo_clr,
}


def _dense(name: str, kind: str, matrix: Matrix) -> Array:
    if not sparse.issparse(matrix):
        return np.asarray(matrix)
    if not is_small_sparse(matrix):
        raise InputError(
            f"View '{name}' is sparse, and kind='{kind}' would make it dense: 0 is not 0 after the transform. Use "
            "kind='counts' for counts, or pass the view as a dense array (.toarray()) if it fits into memory."
        )
    return np.asarray(matrix.toarray())


# -- checks ----------------------------------------------------------------------------------------------------------


def check_values(name: str, kind: str, matrix: Matrix) -> None:
    """Raise an error if values cannot be of a kind."""
    if 0 not in matrix.shape:
        _demand_range(name, kind, _range_of(matrix))


def _range_of(matrix: Matrix) -> tuple[float, float, float]:
    """Return the smallest and the largest value, and the smallest total of a row."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    return float(values.min(initial=0)), float(values.max(initial=0)), float(_totals(matrix).min())


def _joined_ranges(parts: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    low, high, total = zip(*parts, strict=True)
    return min(low), max(high), min(total)


def _demand_range(name: str, kind: str, found: tuple[float, float, float]) -> None:
    low, high, total = found
    got = f"View '{name}' has kind='{kind}'"
    if low < 0:
        what = "shares from 0 to 1" if kind == "methylation" else "values from 0 on"
        also = "M-values or logarithms" if kind == "methylation" else "logarithms or centred values"
        raise InputError(
            f"{got}, which needs {what}; its smallest value is {number(low)}. Give the values before they were "
            f"transformed, or use kind='continuous' for {also}."
        )
    if kind == "methylation" and high > 1:
        raise InputError(
            f"{got}, which needs shares from 0 to 1 (beta values); its largest value is {number(high)}. Divide "
            "percentages by 100, or use kind='continuous' for M-values."
        )
    if kind == "compositional" and not total > 0:
        raise InputError(f"{got}, and a sample has nothing but zeros in it. Mark the view as missing for that sample.")


# -- fitting ---------------------------------------------------------------------------------------------------------


def fit_kind(name: str, matrix: Matrix, kind: str | None, n_top: int | None = None) -> Preparation:
    """Fit the transform of a view to its present rows in memory.

    Parameters
    ----------
    name : str
        Name of the view.
    matrix : array or csr_array of shape (n_present, n_features)
        Its rows.
    kind : str or None
        The kind.
    n_top : int, optional
        Number of features to keep.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.kinds import fit_kind
    >>> print(fit_kind("betas", np.array([[0.1, 0.9], [0.5, 0.2]]), "methylation"))
    'betas' as methylation: M-values, log2 of methylated over unmethylated
    """
    return fit_kind_blocks(rows_in_blocks(name, matrix), kind, n_top)


def fit_kind_blocks(rows: BlockedRows, kind: str | None, n_top: int | None = None) -> Preparation:
    """Fit the transform of a view to its rows in blocks.

    Raises
    ------
    InputError
        If the values cannot be of this kind.
    """
    rule = Preparation(rows.name, kind, rows.shape[1])
    if kind in _OF_LEVELS:
        rule = replace(rule, levels=fit_levels(rows, only_two=kind == "binary"))
    elif kind in _FORWARD:
        _demand_range(rows.name, kind, rows.reduce(_range_of, _joined_ranges))
        rule = _fit_sizes(rows, rule) if kind in _OF_ROWS else rule
    if n_top is not None and n_top < rule.n_values:
        rule = replace(rule, kept=_top_features(rows, rule, n_top))
    return rule


def _fit_sizes(rows: BlockedRows, rule: Preparation) -> Preparation:
    name, kind = rows.name, str(rule.kind)

    def sizes(block: Matrix) -> tuple[Array, float]:
        if kind != "compositional":
            return (_geometric_means if kind == "proteins" else _totals)(block), np.inf
        totals = _totals(block)
        shares = _times_rows(_dense(name, kind, block), _inverse(totals))
        return totals, float(shares[shares > 0].min())

    found, smallest = rows.reduce(sizes, _joined_sizes)
    found = found[found > 0]
    size = float(np.median(found)) if len(found) else 1.0
    if kind == "counts":
        size = min(size, _CPM)
    return replace(rule, size=size, floor=smallest / 2 if kind == "compositional" else None)


def _joined_sizes(parts: Sequence[tuple[Array, float]]) -> tuple[Array, float]:
    return np.concatenate([sizes for sizes, _ in parts]), min(smallest for _, smallest in parts)


def _top_features(rows: BlockedRows, rule: Preparation, n_top: int) -> Array:
    """Return the features of the largest variance; of counts and proteins, for features of a similar mean."""
    sums, squares = rows.reduce(partial(_moments, rule), _added)
    means = sums / rows.shape[0]
    score = np.maximum(squares / rows.shape[0] - means**2, 0)
    if rule.kind in ("counts", "proteins"):
        score = np.log(np.maximum(score, np.finfo(float).tiny))
        for place in np.array_split(np.argsort(means, kind="stable"), min(_N_BINS, len(means))):
            score[place] -= np.median(score[place])
    else:
        score = score / (score.max() or 1.0)
    # Equal but for rounding: sums over other blocks give the same features
    return np.sort(np.argsort(-score.round(_DIGITS), kind="stable")[:n_top])


def _moments(rule: Preparation, block: Matrix) -> tuple[Array, Array]:
    values = rule.transform(block).astype(np.float64)
    squares = values.multiply(values) if sparse.issparse(values) else np.square(values)
    return tuple(np.asarray(part.sum(axis=0)).ravel() for part in (values, squares))  # type: ignore[return-value]


def _added(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    return tuple(sum(own) for own in zip(*parts, strict=True))


# -- views -----------------------------------------------------------------------------------------------------------


def prepared_views(views: Views, rules: Sequence[Preparation], *, all_features: bool = False) -> Views:
    """Return views as they are scaled and clustered; the views themselves if no rule changes them.

    Parameters
    ----------
    views : Views
        Samples, those of the fit or new ones.
    rules : sequence of Preparation
        One for each view.
    all_features : bool, default=False
        Whether features that are not kept are returned, too.
    """
    if all(rule.is_identity for rule in rules):
        return views
    parts = zip(rules, views.one_by_one(), strict=True)
    other = views.with_matrices([(rule.transform if all_features else rule.apply)(m) for rule, m in parts])
    if not all_features:
        named = zip(rules, views.feature_names, strict=True)
        other.feature_names = tuple(None if names is None else names[rule.sources] for rule, names in named)
    return other


def feature_views(views: Views, rules: Sequence[Preparation]) -> Views:
    """Return views with values of each feature to compare: transformed, but for binary and categorical ones."""
    if all(rule.kind not in _FORWARD for rule in rules):
        return views
    parts = zip(rules, views.one_by_one(), strict=True)
    return views.with_matrices([rule.transform(m) if rule.kind in _FORWARD else m for rule, m in parts])


def resolved_kinds(kinds: Sequence[str | None], views: Views) -> list[str | None]:
    """Return the kinds of views with every "auto" replaced by the kind that the values suggest."""
    proposed = [view.proposed_kind for view in views.describe().views]
    return [own if kind == AUTO else kind for kind, own in zip(kinds, proposed, strict=True)]
