"""Reading one view from whatever the user holds it in.

Each reader returns a :class:`RawView`: numbers, sample ids where the container has them, and feature names.
Optional libraries are recognised by the module of the object's type, so that none of them is imported here
unless the user has handed over one of its objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import InputError, InputTypeError, some

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a dense 2-D numpy array or a scipy csr_array; scipy has no common type for the two

EXPECTED = (
    "Expected a list or a dict of views, each a 2-D array, a pandas or polars frame, a SciPy sparse matrix or an "
    "AnnData; or a MuData; or a gapview.Views"
)
_ID_COLUMNS = ("sample_id", "id", "sample", "ID", "Id", "index")


@dataclass(frozen=True)
class RawView:
    """One view as it came: all its rows, NaN where values are missing."""

    name: str
    values: Matrix | None  # None: the user passed None, the view is absent altogether
    ids: Array | None = None
    positional: bool = True  # the rows have no ids of their own: row i is sample i
    features: Array | None = None
    container: str = "array"  # "array", "sparse", "pandas" or "polars": what results are given back in


def library_of(data: Any) -> str:
    """Name the top-level package that the object's type comes from."""
    return type(data).__module__.split(".")[0]


def named_views(data: Any) -> tuple[list[tuple[str, Any]], bool]:
    """Split the user's container into (name, view) pairs; the flag says whether the names are the user's."""
    if library_of(data) == "mudata":
        data = data.mod
    if isinstance(data, Mapping):
        return [(str(name), view) for name, view in data.items()], True
    if _is_one_view(data):
        return [("view_0", data)], False
    if isinstance(data, list | tuple):
        return [(f"view_{k}", view) for k, view in enumerate(data)], False
    raise InputTypeError(f"{EXPECTED}; got {_describe(data)}.")


def read_view(name: str, view: Any, id_column: str | None) -> RawView:
    """Read one view from its container, without judging its values."""
    library = library_of(view)
    if view is None:
        return RawView(name, None)
    if library == "anndata":
        return _read_anndata(name, view)
    if _is_frame(view):
        return (_read_pandas if library == "pandas" else _read_polars)(name, view, id_column)
    if sparse.issparse(view):
        return RawView(name, sparse.csr_array(_numbers(name, view)), container="sparse")
    return RawView(name, _read_array(name, view))


def _is_one_view(data: Any) -> bool:
    # A 3-D array is let through so that the message can speak of its shape.
    return (
        _is_frame(data)
        or library_of(data) == "anndata"
        or sparse.issparse(data)
        or (hasattr(data, "__array__") and not np.isscalar(data))
    )


def _is_frame(data: Any) -> bool:
    return library_of(data) in ("pandas", "polars") and type(data).__name__ in ("DataFrame", "LazyFrame")


def _read_array(name: str, view: Any) -> Array:
    if isinstance(view, str | bytes) or np.isscalar(view) or isinstance(view, Mapping | set):
        raise InputTypeError(f"View '{name}' is {_describe(view)}, not a matrix. {EXPECTED}.")
    try:
        values = np.asarray(view)
    except ValueError:  # rows of unequal length
        raise InputError(
            f"View '{name}' cannot be read as a matrix: its rows are of unequal length. "
            "Give a 2-D array with one row for each sample and one column for each feature."
        ) from None
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
    return np.asarray(_numbers(name, values))


def _numbers(name: str, values: Matrix) -> Matrix:
    """Turn what holds numbers into float32 or float64; refuse the rest."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "f":
        return values if size in (4, 8) else values.astype(np.float32 if size < 4 else np.float64)
    if kind in "iub":
        return values.astype(np.float64)
    if kind == "c":
        raise InputError(
            f"View '{name}' holds complex numbers. Complex data not supported: "
            "give real and imaginary parts, or magnitudes, as separate columns."
        )
    try:
        if kind == "O":  # None and pandas' NA stand for a missing value
            values = np.array([[np.nan if _is_nothing(cell) else cell for cell in row] for row in values])
        elif kind not in "US":
            raise TypeError
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"View '{name}' must hold numbers; got values of type {values.dtype} that are not "
            f"({error or 'no numeric meaning'}). Encode or drop what is not numeric."
        ) from None


def _is_nothing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _read_pandas(name: str, view: Any, id_column: str | None) -> RawView:
    import pandas as pd

    if id_column is not None:
        _demand_column(name, id_column, view.columns)
        view = view.set_index(id_column)
    index = view.index
    positional = id_column is None and isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
    kinds = [getattr(dtype, "kind", "O") for dtype in view.dtypes]
    text = [column for column, kind in zip(view.columns, kinds, strict=True) if kind not in "iufbO"]
    if text:
        raise _text_columns(name, text)
    single = all(
        getattr(dtype, "itemsize", 8) <= 4 and kind == "f" for dtype, kind in zip(view.dtypes, kinds, strict=True)
    )
    try:
        values = view.to_numpy(dtype=np.float32 if single and kinds else np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        bad = [column for column in view.columns if not _is_numeric(view[column])]
        raise _text_columns(name, bad) from None
    features = np.asarray([str(column) for column in view.columns], dtype=object)
    return RawView(name, values, index.to_numpy(), positional, features, "pandas")


def _is_numeric(column: Any) -> bool:
    try:
        column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return False
    return True


def _read_polars(name: str, view: Any, id_column: str | None) -> RawView:
    if type(view).__name__ == "LazyFrame":
        view = view.collect()
    if id_column is None:
        text = [column for column, dtype in view.schema.items() if not (dtype.is_numeric() or str(dtype) == "Boolean")]
        named = [column for column in _ID_COLUMNS if column in view.columns]
        if len(text) > 1 or (not text and not named):
            found = f"the columns {some(text)} are not numeric" if text else "it has no column of text"
            raise InputError(
                f"View '{name}' is a polars frame in which the column of sample ids cannot be told: {found}. "
                "Give gapview.Views(…, id_column='…')."
            )
        id_column = text[0] if text else named[0]
    _demand_column(name, id_column, view.columns)
    ids = np.asarray(view[id_column].to_list(), dtype=object)
    table = view.drop(id_column)
    text = [column for column, dtype in table.schema.items() if not (dtype.is_numeric() or str(dtype) == "Boolean")]
    if text:
        raise _text_columns(name, text)
    single = bool(table.columns) and all(str(dtype) == "Float32" for dtype in table.dtypes)
    columns = [table[column].cast(float).fill_null(float("nan")).to_numpy() for column in table.columns]
    values = np.column_stack(columns) if columns else np.empty((view.height, 0))
    features = np.asarray(table.columns, dtype=object)
    return RawView(name, values.astype(np.float32) if single else values, ids, False, features, "polars")


def _read_anndata(name: str, view: Any) -> RawView:
    if view.X is None:
        raise InputError(f"View '{name}' is an AnnData without a matrix: its .X is None. Put the values into .X.")
    values = view.X[:] if hasattr(view.X, "file") else view.X  # a backed file is read
    values = values.to_memory() if hasattr(values, "to_memory") else values
    matrix = sparse.csr_array(_numbers(name, values)) if sparse.issparse(values) else _read_array(name, values)
    features = np.asarray(view.var_names, dtype=object)
    return RawView(name, matrix, np.asarray(view.obs_names, dtype=object), False, features, "pandas")


def _demand_column(name: str, column: str, columns: Any) -> None:
    if column not in list(columns):
        raise InputError(f"View '{name}' has no column '{column}' to take the sample ids from; it has {some(columns)}.")


def _text_columns(name: str, columns: list[Any]) -> InputTypeError:
    return InputTypeError(
        f"View '{name}' must hold numbers; {len(columns)} column(s) hold something else: {some(columns)}. "
        "Drop or encode them; if one of them holds the sample ids, make it the index or give "
        "gapview.Views(…, id_column='…')."
    )


def _describe(data: Any) -> str:
    return f"an object of type {type(data).__name__}" if data is not None else "None"
