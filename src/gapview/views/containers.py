"""Reading one view from an array, frame, sparse matrix or AnnData, and returning results in the same container.

Objects of optional libraries are recognised by the names of their base classes, so that a library is imported only if
the user passes one of its objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..compute.arrays import is_tensor
from ..errors import InputError, InputTypeError, some
from ..utils.packing import as_objects
from ..utils.types import Array, Matrix

EXPECTED = (
    "Expected a list or a dict of views, each a 2-D array, a pandas or polars frame, a SciPy sparse matrix or an "
    "AnnData; or a MuData; or a gapview.Views"
)
_ID_COLUMNS = ("sample_id", "id", "sample", "ID", "Id", "index")


@dataclass(frozen=True)
class Container:
    """The container of a view, so that results can be returned in the same kind."""

    kind: str = "array"  # "array", "sparse", "pandas" or "polars"
    columns: tuple[Any, ...] | None = None  # the user's own column labels
    id_name: Any = None  # name of the index, or of the column of ids

    def reordered(self, order: Sequence[int]) -> Container:
        """Return the same container with its columns in another order."""
        return self if self.columns is None else replace(self, columns=tuple(self.columns[j] for j in order))

    def put(self, matrix: Matrix, ids: Array) -> Any:
        """Return a complete matrix in a container of this kind."""
        if self.kind == "sparse":
            return sparse.csr_array(matrix)
        dense = matrix.toarray() if sparse.issparse(matrix) else matrix
        if self.kind == "pandas":
            import pandas as pd

            index = pd.Index(ids, name=self.id_name)
            return pd.DataFrame(dense, index=index, columns=None if self.columns is None else list(self.columns))
        if self.kind == "polars":
            import polars as pl

            frame = pl.DataFrame(dense, schema=[str(column) for column in self.columns or range(dense.shape[1])])
            return frame.insert_column(0, pl.Series(self.id_name, ids.tolist()))
        return dense


@dataclass(frozen=True)
class RawView:
    """One view as it was given: all its rows, NaN where values are missing."""

    name: str
    values: Matrix | None  # None: the user passed None, no sample has the view
    ids: Array | None = None  # None: row i is sample i
    container: Container = Container()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return 0 if self.values is None else int(self.values.shape[0])

    @property
    def features(self) -> Array | None:
        """Names of the features, if the view has them."""
        columns = self.container.columns
        return None if columns is None else np.asarray([str(column) for column in columns], dtype=object)


def descends(data: Any, library: str, *names: str) -> bool:
    """Return whether an object is an instance of one of the named classes of a library, or of a subclass."""
    return any(c.__module__.split(".")[0] == library and c.__name__ in names for c in type(data).__mro__)


def named_views(data: Any) -> tuple[list[tuple[str, Any]], bool, str]:
    """Return (name, view) pairs, whether the user gave the names, and the kind of outer container."""
    if descends(data, "mudata", "MuData"):
        data = data.mod
    if isinstance(data, Mapping):
        return [(str(name), view) for name, view in data.items()], True, "dict"
    if _is_one_view(data):
        return [("view_0", data)], False, "single"
    if isinstance(data, list | tuple):
        return [(f"view_{k}", view) for k, view in enumerate(data)], False, "list"
    raise InputTypeError(f"{EXPECTED}; got {_describe(data)}.")


def read_view(name: str, view: Any, id_column: str | None) -> RawView:
    """Read one view from its container, without checking its values."""
    if view is None:
        return RawView(name, None)
    if descends(view, "anndata", "AnnData"):
        return _read_anndata(name, view)
    if descends(view, "pandas", "DataFrame"):
        return _read_pandas(name, view, id_column)
    if descends(view, "polars", "DataFrame", "LazyFrame"):
        return _read_polars(name, view, id_column)
    if sparse.issparse(view):
        return RawView(name, _read_sparse(name, view), container=Container("sparse"))
    return RawView(name, _read_array(name, view))


def _is_one_view(data: Any) -> bool:
    # Includes a 3-D array, so that the message can name its shape
    if sparse.issparse(data) or (hasattr(data, "__array__") and not np.isscalar(data)):  # includes frames of pandas
        return True
    return descends(data, "polars", "DataFrame", "LazyFrame") or descends(data, "anndata", "AnnData")


def _read_array(name: str, view: Any) -> Array:
    if isinstance(view, str | bytes) or np.isscalar(view) or isinstance(view, Mapping | set):
        raise InputTypeError(f"View '{name}' is {_describe(view)}, not a matrix. {EXPECTED}.")
    if isinstance(view, np.ma.MaskedArray):  # masked values are missing
        view = np.ma.filled(view.astype(np.float64), np.nan)
    if is_tensor(view) and view.device.type != "cpu":  # it stays on its device
        demand_two_dimensions(name, view)
        return view if str(view.dtype) == "torch.float64" else view.float()  # type: ignore[no-any-return]
    try:
        values = np.asarray(view)
    except ValueError:  # rows of unequal length
        raise InputError(
            f"View '{name}' cannot be read as a matrix: its rows are of unequal length. "
            "Give a 2-D array with one row for each sample and one column for each feature."
        ) from None
    demand_two_dimensions(name, values)
    return np.asarray(as_numbers(name, values))


def _read_sparse(name: str, view: Any) -> sparse.csr_array:
    demand_two_dimensions(name, view)
    return sparse.csr_array(as_numbers(name, view))


def demand_two_dimensions(name: str, values: Any) -> None:
    """Raise an error unless a view is a matrix."""
    if values.ndim != 2:
        hint = {
            0: "Give a 2-D array.",
            1: "Reshape your data with .reshape(-1, 1) if it is a single feature; "
            "wrap the matrices in a list if this was meant to be a list of views.",
            3: "Give a list with one 2-D array for each view; flatten images to one row for each sample.",
        }.get(values.ndim, "Flatten it to one row for each sample.")
        raise InputError(
            f"View '{name}' must be 2-dimensional (samples × features); "
            f"got an array of {values.ndim} dimensions with shape {values.shape}. {hint}"
        )


def as_numbers(name: str, values: Matrix) -> Matrix:
    """Return values as float32 or float64; raise an error on anything but numbers, including text of digits."""
    kind = values.dtype.kind
    if kind in "iubf":
        single = kind == "f" and values.dtype.itemsize <= 4
        with np.errstate(over="ignore"):  # numbers beyond float64 become infinity, which is refused later
            return values.astype(np.float32 if single else np.float64, copy=False)
    if kind == "c":
        raise InputError(
            f"View '{name}' holds complex numbers. Complex data not supported: "
            "give real and imaginary parts, or magnitudes, as separate columns."
        )
    cells = values.ravel().tolist() if kind == "O" else []
    if kind == "O" and not any(isinstance(cell, str | bytes) for cell in cells):
        try:  # None and pandas' NA stand for a missing value
            numbers = [np.nan if _is_nothing(cell) else float(cell) for cell in cells]
            return np.array(numbers, dtype=np.float64).reshape(values.shape)
        except (TypeError, ValueError):
            pass
    found = "text" if kind in "US" or cells else f"values of type {values.dtype}"
    raise InputTypeError(
        f"View '{name}' must hold numbers; got {found}. Convert text that stands for numbers with .astype(float), and "
        "encode or drop what is not numeric."
    )


def _is_nothing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _read_pandas(name: str, view: Any, id_column: str | None) -> RawView:
    demand_distinct_columns(name, view.columns)
    if id_column is not None:
        _demand_column(name, id_column, view.columns)
        view = view.set_index(id_column)
    is_keyed = id_column is not None or not has_default_index(view)
    named = [] if is_keyed else [column for column in _ID_COLUMNS if column in list(view.columns)]
    if named:
        raise InputError(
            f"View '{name}' has the default index 0, 1, 2, … and a column '{named[0]}', which looks like sample ids. "
            f"Give gapview.Views(…, id_column='{named[0]}') or set it as the index; rename it if it is a feature."
        )
    text = [column for column in view.columns if not _is_numeric(view[column])]
    if text:
        raise _text_columns(name, text)
    single = len(view.columns) > 0 and all(dtype == np.float32 or dtype == np.float16 for dtype in view.dtypes)
    values = view.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    ids = view.index.astype(object).to_numpy() if is_keyed else None  # dates stay dates
    return RawView(name, values, ids, Container("pandas", tuple(view.columns), view.index.name))


def has_default_index(frame: Any) -> bool:
    """Return whether the index of a pandas frame is 0, 1, 2, … as if none had been given."""
    return descends(frame.index, "pandas", "RangeIndex") and frame.index.start == 0 and frame.index.step == 1


def _is_numeric(column: Any) -> bool:
    kind = getattr(column.dtype, "kind", "O")
    if kind == "O":
        cells = [cell for cell in column.tolist() if not _is_nothing(cell)]
        return all(isinstance(cell, int | float | np.number | np.bool_) for cell in cells)
    return kind in "iufb"


def _read_polars(name: str, view: Any, id_column: str | None) -> RawView:
    if descends(view, "polars", "LazyFrame"):
        view = view.collect()
    text = [column for column, dtype in view.schema.items() if not (dtype.is_numeric() or str(dtype) == "Boolean")]
    if id_column is None:
        named = [column for column in _ID_COLUMNS if column in view.columns]
        candidates = named or text
        if len(candidates) != 1:
            found = f"the columns {some(candidates)} could be it" if candidates else "it has no column of text"
            raise InputError(
                f"View '{name}' is a polars frame in which the column of sample ids is not clear: {found}. "
                "Give gapview.Views(…, id_column='…')."
            )
        id_column = candidates[0]
    _demand_column(name, id_column, view.columns)
    text = [column for column in text if column != id_column]
    if text:
        raise _text_columns(name, text)
    table = view.drop(id_column)
    single = bool(table.columns) and all(str(dtype) == "Float32" for dtype in table.dtypes)
    columns = [table[column].cast(float).fill_null(float("nan")).to_numpy() for column in table.columns]
    values = np.column_stack(columns) if columns else np.empty((view.height, 0))
    values = values.astype(np.float32) if single else values
    container = Container("polars", tuple(table.columns), id_column)
    return RawView(name, values, as_objects(view[id_column].to_list()), container)


def _read_anndata(name: str, view: Any) -> RawView:
    if view.X is None:
        raise InputError(f"View '{name}' is an AnnData without a matrix: its .X is None. Put the values into .X.")
    values = view.X[:] if hasattr(view.X, "file") else view.X  # a backed file is read
    values = values.to_memory() if hasattr(values, "to_memory") else values
    matrix = _read_sparse(name, values) if sparse.issparse(values) else _read_array(name, values)
    demand_distinct_columns(name, view.var_names)
    container = Container("pandas", tuple(view.var_names), view.obs_names.name)
    return RawView(name, matrix, np.asarray(view.obs_names, dtype=object), container)


def _demand_column(name: str, column: str, columns: Any) -> None:
    if column not in list(columns):
        raise InputError(f"View '{name}' has no column '{column}' to take the sample ids from; it has {some(columns)}.")


def demand_distinct_columns(name: str, columns: Any) -> None:
    """Raise an error if two columns have the same name."""
    texts = [str(column) for column in columns]
    if len(set(texts)) < len(texts):
        twice = repeats(texts)
        raise InputError(
            f"Features of a view must have unique names; view '{name}' has {len(twice)} that repeat one: "
            f"{some(twice)}. Rename them."
        )


def repeats(items: Sequence[Any]) -> list[Any]:
    """Return the items that occurred before in the sequence."""
    seen: set[Any] = set()
    return [item for item in items if item in seen or seen.add(item)]  # type: ignore[func-returns-value]


def _text_columns(name: str, columns: list[Any]) -> InputTypeError:
    return InputTypeError(
        f"View '{name}' must hold numbers; {len(columns)} column(s) hold something else: {some(columns)}. "
        "Drop or encode them; if one of them holds the sample ids, make it the index or give "
        "gapview.Views(…, id_column='…')."
    )


def _describe(data: Any) -> str:
    return f"an object of type {type(data).__name__}" if data is not None else "None"
