"""``Views``: several matrices over one set of samples, some rows of some of them missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .._parameters import check_choice
from ..errors import InputError, InputTypeError, some
from ._cells import PARTIAL_ROWS, complete_rows, count_missing_cells, demand_finite
from ._containers import EXPECTED, Array, Matrix, RawView, named_views, read_view
from ._joining import join


class Views:
    """Samples described by several feature sets, of which any sample may lack some.

    The one door for data: every function of gapview that takes views makes a ``Views`` of them first.

    Parameters
    ----------
    data : list or dict of views, single view, MuData or Views
        Each view is a 2-D array, a pandas or polars frame, a SciPy sparse matrix or an AnnData. In an array a row
        of nothing but NaN is a missing view. Frames are joined on the sample id (the index of a pandas frame);
        each may hold other samples. Integers become float64, float32 stays float32. A list may hold ``None`` for a
        view that no sample has.
    mask : array-like of shape (n_samples, n_views), optional
        True where a sample has a view. Values of views that the mask hides are never looked at.
    names : sequence of str, optional
        Names of the views; by default the keys of a dict, else ``view_0``, ``view_1``, …
    sample_ids : sequence, optional
        Ids of the samples, for views that have none of their own.
    id_column : str, optional
        Column of the frames that holds the sample ids, if they are not in the index.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with a row that has some but not all values: refuse it, fill its gaps from the five nearest rows
        of the same view, or take the view as missing for that sample.

    Attributes
    ----------
    matrices : tuple of arrays or csr_arrays
        For every view the rows that are present, in the order of the samples.
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view.
    sample_ids : array of shape (n_samples,)
        For arrays the row numbers; for frames the ids in the order in which they first appear.
    names : tuple of str
        Names of the views.
    feature_names : tuple of (array of str or None)
        Names of the features of every view, where the view came with them.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> blood = np.array([[1.0, 2.0], [3.0, 4.0], [np.nan, np.nan]])
    >>> scans = np.array([[5.0], [np.nan], [6.0]])
    >>> views = Views({"blood": blood, "scans": scans})
    >>> views
    Views of 3 samples, 1 of them complete: 'blood' 2 × 2, 'scans' 2 × 1
    >>> views[[0, 2]].mask
    array([[ True,  True],
           [False,  True]])
    """

    matrices: tuple[Matrix, ...]
    mask: Array
    sample_ids: Array
    names: tuple[str, ...]
    feature_names: tuple[Array | None, ...]

    def __init__(
        self,
        data: Any,
        *,
        mask: Any = None,
        names: Sequence[str] | None = None,
        sample_ids: Any = None,
        id_column: str | None = None,
        partial_rows: str = "raise",
    ) -> None:
        check_choice("partial_rows", partial_rows, PARTIAL_ROWS)
        if isinstance(data, Views):
            self.__dict__.update((data if mask is None else data.hide(mask)).__dict__)
            return
        self._read(data, mask, names, sample_ids, id_column, partial_rows, reference=None)

    def _read(
        self,
        data: Any,
        mask: Any,
        names: Sequence[str] | None,
        sample_ids: Any,
        id_column: str | None,
        partial_rows: str,
        reference: Views | None,
    ) -> None:
        pairs, named = named_views(data)
        if not pairs:
            raise InputError(f"There are no views. {EXPECTED}; got an empty {type(data).__name__}.")
        raw = [read_view(name, view, id_column) for name, view in _renamed(pairs, names)]
        ids, places = join(raw, sample_ids)
        shown = _read_mask(mask, ids, [view.name for view in raw])
        matrices = []
        present = np.zeros((len(ids), len(raw)), dtype=bool)
        for k, (view, place) in enumerate(zip(raw, places, strict=True)):
            known = None if reference is None else reference._matrix_named(view.name, k)
            matrix, rows = _present_rows(view, place, shown[:, k], ids, mask is not None, partial_rows, known)
            matrices.append(matrix)
            present[rows, k] = True
        _demand_a_view_for_each(present, ids)
        self._set(tuple(matrices), present, ids, raw, named or names is not None, _container_of(data))

    def _set(
        self,
        matrices: tuple[Matrix, ...],
        mask: Array,
        ids: Array,
        raw: Sequence[RawView],
        named: bool,
        outer: str,
    ) -> None:
        self.matrices = matrices
        self.mask = mask
        self.sample_ids = ids
        self.names = tuple(view.name for view in raw)
        self.feature_names = tuple(view.features for view in raw)
        self._named = named  # the names are the user's own
        self._outer = outer  # "list", "dict" or "single": what results are given back in …
        self._inner = tuple(view.container for view in raw)  # … and what each view in it is

    def _like(self, matrices: tuple[Matrix, ...], mask: Array, ids: Array) -> Views:
        """Make a ``Views`` with other samples of the same views, without checking again."""
        other = Views.__new__(Views)
        other.__dict__.update(self.__dict__)
        other.matrices, other.mask, other.sample_ids = matrices, mask, ids
        return other

    # -- what there is -------------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of samples, complete or not."""
        return len(self.mask)

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.matrices)

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of features of every view."""
        return tuple(int(matrix.shape[1]) for matrix in self.matrices)

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features of all views together, as scikit-learn asks for it."""
        return self.n_samples, sum(self.n_features)

    def rows(self, view: int) -> Array:
        """Return the positions of the samples that have the view: row r of its matrix is sample ``rows(view)[r]``.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views([np.eye(3), np.ones((3, 2))], mask=[[1, 1], [0, 1], [1, 0]]).rows(0)
        array([0, 2])
        """
        return np.flatnonzero(self.mask[:, view])

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        views = ", ".join(
            f"'{name}' {matrix.shape[0]} × {matrix.shape[1]}"
            for name, matrix in zip(self.names, self.matrices, strict=True)
        )
        return f"Views of {self.n_samples} samples, {int(self.mask.all(axis=1).sum())} of them complete: {views}"

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise InputTypeError("A Views is several matrices and cannot become one array; take .matrices[k] instead.")

    # -- other samples, other gaps ---------------------------------------------------------------------------

    def __getitem__(self, rows: Any) -> Views:
        """Take some of the samples, by position, slice or boolean mask, in the order asked for."""
        if isinstance(rows, tuple):  # scikit-learn asks for views[rows, ...]
            rows = rows[0]
        chosen = np.atleast_1d(np.arange(self.n_samples)[rows])
        matrices = []
        for k, matrix in enumerate(self.matrices):
            where = np.cumsum(self.mask[:, k]) - 1  # row of the matrix that a present sample stands in
            matrices.append(matrix[where[chosen[self.mask[chosen, k]]]])
        return self._like(tuple(matrices), self.mask[chosen], self.sample_ids[chosen])

    def hide(self, keep: Any) -> Views:
        """Return the same samples with only the views that ``keep`` marks True (and that were there before).

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views([np.eye(3), np.ones((3, 2))]).hide([[1, 1], [0, 1], [1, 0]])
        Views of 3 samples, 1 of them complete: 'view_0' 2 × 3, 'view_1' 2 × 2
        """
        mask = _read_mask(keep, self.sample_ids, self.names) & self.mask
        _demand_a_view_for_each(mask, self.sample_ids)
        pairs = enumerate(self.matrices)
        return self._like(tuple(m[mask[self.mask[:, k], k]] for k, m in pairs), mask, self.sample_ids)

    def _matrix_named(self, name: str, position: int) -> Matrix | None:
        if name in self.names:
            return self.matrices[self.names.index(name)]
        return self.matrices[position] if position < self.n_views else None

    def give_back(self, complete: Sequence[Matrix]) -> Any:
        """Put one complete matrix per view into the kind of container that the views came in."""
        given = [self._give_back_one(k, matrix) for k, matrix in enumerate(complete)]
        if self._outer == "dict":
            return dict(zip(self.names, given, strict=True))
        return given[0] if self._outer == "single" else given

    def _give_back_one(self, view: int, matrix: Matrix) -> Any:
        kind = self._inner[view]
        if kind not in ("pandas", "polars"):
            return matrix
        dense = matrix.toarray() if sparse.issparse(matrix) else matrix
        if kind == "pandas":
            import pandas as pd

            return pd.DataFrame(dense, index=pd.Index(self.sample_ids), columns=self.feature_names[view])
        import polars as pl

        ids = pl.Series("sample_id", self.sample_ids.tolist())
        return pl.DataFrame(dense, schema=list(self.feature_names[view])).insert_column(0, ids)  # type: ignore[arg-type]


def _container_of(data: Any) -> str:
    if isinstance(data, list | tuple):
        return "list"
    return "dict" if isinstance(data, Mapping) or hasattr(data, "mod") else "single"


def _renamed(pairs: list[tuple[str, Any]], names: Sequence[str] | None) -> list[tuple[str, Any]]:
    if names is None:
        names = [name for name, _ in pairs]
    if len(names) != len(pairs) or len(set(names)) < len(names):
        raise InputError(f"names must give one name of its own to each of the {len(pairs)} views; got {list(names)!r}.")
    return [(str(name), view) for name, (_, view) in zip(names, pairs, strict=True)]


def _read_mask(mask: Any, ids: Array, names: Sequence[str]) -> Array:
    shape = (len(ids), len(names))
    if mask is None:
        return np.ones(shape, dtype=bool)
    if hasattr(mask, "reindex") and set(mask.index) == set(ids.tolist()):  # a pandas frame keyed by sample
        mask = mask.loc[ids.tolist()]
        mask = mask[list(names)] if set(mask.columns) == set(names) else mask
    given = np.asarray(mask)
    if given.shape != shape:
        raise InputError(
            f"mask must have one row for each sample and one column for each view, shape {shape}; got shape "
            f"{given.shape}."
        )
    if given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
        raise InputError("mask must hold True (the sample has the view) and False, or 1 and 0; got other values.")
    return given.astype(bool)


def _present_rows(
    view: RawView,
    place: Array,
    shown: Array,
    ids: Array,
    masked: bool,
    partial_rows: str,
    reference: Matrix | None,
) -> tuple[Matrix, Array]:
    """Return the rows of one view that are present, in sample order, and the samples they belong to."""
    if view.values is None:
        return np.empty((0, 0)), np.empty(0, dtype=np.intp)
    values = view.values
    if values.shape[1] == 0:
        raise InputError(f"View '{view.name}' has no features: its shape is {values.shape}. Leave this view out.")
    order = np.argsort(place, kind="stable")
    order = order[shown[place[order]]]
    if len(order) < values.shape[0] or (np.diff(order) < 0).any():
        values = values[order]
    rows = place[order]
    missing = count_missing_cells(values)
    absent = missing == values.shape[1]
    if absent.any():
        if masked:
            raise InputError(
                f"mask says that view '{view.name}' is present for {int(absent.sum())} sample(s) whose values are "
                f"all NaN, among them {some(ids[rows[absent]])}. Correct the mask, or leave it out."
            )
        values, rows, missing = values[~absent], rows[~absent], missing[~absent]
    demand_finite(view.name, values, ids[rows])
    values, keep = complete_rows(view.name, values, missing, partial_rows, ids[rows], reference)
    return values, rows[keep]


def _demand_a_view_for_each(mask: Array, ids: Array) -> None:
    empty = ~mask.any(axis=1)
    if empty.any():
        raise InputError(
            f"Every sample needs at least one view; {int(empty.sum())} sample(s) have none (all NaN or masked): "
            f"{some(ids[empty])}. Leave them out."
        )
