"""Reading one view from an array, frame, sparse matrix or AnnData, and returning results in the same container.

Objects of optional libraries are recognised by the names of their base classes, so that a library is imported only if
the user passes one of its objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from ..compute.arrays import is_on_device
from ..errors import InputError, InputTypeError, some
from ..utils.types import Array, Matrix
from .places import columns_at, matrix_at
from .tables import counts_rows, may_be_row_numbers

EXPECTED = (
    "Expected a list or a dict of views, each a 2-D array, a pandas or polars frame, a SciPy sparse matrix or an "
    "AnnData; or a MuData; or a gapview.Views"
)
_NOTHING = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # types of objects that stand for a missing value


@dataclass(frozen=True)
class Container:
    """The container of a view, so that results can be returned in the same kind."""

    kind: str = "array"  # "array", "sparse", "pandas" or "polars"
    columns: tuple[Any, ...] | None = None  # the user's own column labels
    id_name: Any = None  # name of the index, or of the column of ids

    def reordered(self, order: Sequence[int], names: Any) -> Container:
        """Return the same container with its columns in another order; ``names`` are those of columns it lacks."""
        own = self.columns
        if own is None:
            return self
        columns = (own[j] if j < len(own) else name for j, name in zip(order, names, strict=True))
        return replace(self, columns=tuple(columns))

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
    numbering: Array | None = None  # the index of a frame without ids
    id_label: Any = None  # label of the column of a frame that holds the ids
    may_be_row_numbers: bool = False  # whether the ids may only be numbers of rows
    notes: tuple[str, ...] = ()  # on ids and columns

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


def has_default_index(frame: Any) -> bool:
    """Return whether the index of a pandas frame is 0, 1, 2, … as if none had been given."""
    return descends(frame.index, "pandas", "RangeIndex") and frame.index.start == 0 and frame.index.step == 1


def named_views(data: Any) -> tuple[list[tuple[str, Any]], bool, str]:
    """Return (name, view) pairs, whether the user gave the names, and the kind of outer container."""
    if descends(data, "mudata", "MuData"):
        data = data.mod
    if isinstance(data, Mapping):
        demand_encodable("the name of a view", map(str, data))
        return [(str(name), view) for name, view in data.items()], True, "dict"
    if _is_one_view(data):
        return [("view_0", data)], False, "single"
    if isinstance(data, list | tuple):
        return [(f"view_{k}", view) for k, view in enumerate(data)], False, "list"
    raise InputTypeError(f"{EXPECTED}; got {_describe(data)}.")


def read_other(name: str, view: Any, wanted: Any, place: str = "X") -> RawView:
    """Read a view that is no frame; of an AnnData, the matrix at a place."""
    if view is None:
        return RawView(name, None)
    if descends(view, "anndata", "AnnData"):
        return _read_anndata(name, view, wanted, place)
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
    _demand_no_containers_within(name, view)
    if isinstance(view, np.ma.MaskedArray):
        return _read_masked(name, view)
    if is_on_device(view):  # it stays there
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


def _demand_no_containers_within(name: str, view: Any) -> None:
    """Raise an error if a list or tuple holds frames, AnnData or sparse matrices in place of rows."""
    parts = {type(part): part for part in view} if isinstance(view, list | tuple) else {}
    for kind, part in parts.items():
        if _is_container(part):
            advice = f"Give the {kind.__name__} itself."
            if kind.__name__ == "AnnData":
                advice = "Give the AnnData itself, and name a layer of it by layer='counts'."
            raise InputTypeError(
                f"View '{name}' is a {type(view).__name__} that holds {_describe(part)}, and a view is one matrix. "
                f"{advice}"
            )


def _is_container(data: Any) -> bool:
    is_frame = descends(data, "pandas", "DataFrame") or descends(data, "polars", "DataFrame", "LazyFrame")
    is_omics = descends(data, "anndata", "AnnData") or descends(data, "mudata", "MuData")
    return is_frame or is_omics or sparse.issparse(data) or type(data).__module__.split(".")[0].startswith("dask")


def _read_masked(name: str, view: Any) -> Array:
    """Return a masked array with NaN where it is masked."""
    demand_two_dimensions(name, view)
    hidden, values = np.ma.getmaskarray(view), np.ma.getdata(view)
    if values.dtype.kind == "O":
        values = values.copy()
        values[hidden] = None
    numbers = np.asarray(as_numbers(name, values))
    return np.where(hidden, numbers.dtype.type(np.nan), numbers) if hidden.any() else numbers


def _read_sparse(name: str, view: Any) -> sparse.csr_array:
    demand_two_dimensions(name, view)
    matrix = sound_sparse(f"View '{name}'", view)
    if matrix.dtype.kind == "O":
        matrix.data = as_numbers(name, matrix.data)
    return sparse.csr_array(as_numbers(name, matrix))


def sound_sparse(what: str, matrix: Any) -> sparse.csr_array:
    """Return a sparse matrix in CSR format with sorted indices, each of which occurs once; values are not converted.

    Raises
    ------
    InputError
        If its indices do not fit its shape. SciPy would read outside its arrays.
    """
    compressed = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}
    try:
        if matrix.format in compressed:  # a new object, since the check may change index types
            matrix = compressed[matrix.format](matrix)
            matrix.check_format(full_check=True)
        elif matrix.format == "lil":
            if not np.array_equal([*map(len, matrix.rows)], [*map(len, matrix.data)]):
                raise ValueError("its lists of indices and of data differ in length")
        else:
            matrix = matrix.tocoo()
            if not all(len(index) == len(matrix.data) for index in matrix.coords):
                raise ValueError("index and data arrays differ in length")
            for index, size in zip(matrix.coords, matrix.shape, strict=True):
                if len(index) and (index.min() < 0 or index.max() >= size):
                    raise ValueError("index values must be at least 0 and less than the shape")
        rows = sparse.csr_array(matrix)
        rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise InputError(
            f"{what} is a damaged sparse matrix: {str(error).rstrip('.')}. Build it again from its source."
        ) from None
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


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
        raise _complex_numbers(name)
    if kind == "O":
        return _object_numbers(name, values)
    raise _no_numbers(name, "text" if kind in "UST" else f"values of type {values.dtype}")


def _object_numbers(name: str, values: Array) -> Array:
    """Return Python objects as float64, None and pandas' NA as NaN; numbers beyond float64 become infinity."""
    cells = values.ravel().tolist()
    for kind in dict.fromkeys(map(type, cells)):
        if issubclass(kind, str | bytes | bytearray):
            raise _no_numbers(name, "text")
        if issubclass(kind, complex | np.complexfloating):
            raise _complex_numbers(name)
        if not is_number_type(kind) and kind.__name__ not in _NOTHING:
            raise _no_numbers(name, f"values of type {kind.__name__}")
    try:
        numbers = [np.nan if is_missing(cell) else _as_float(cell) for cell in cells]
    except ValueError as error:  # a signalling NaN
        raise _no_numbers(name, f"a value that is none ({error})") from None
    return np.array(numbers, dtype=np.float64).reshape(values.shape)


def is_number_type(kind: type) -> bool:
    """Return whether objects of a type are real numbers; NumPy counts durations as integers."""
    return issubclass(kind, Real | Decimal | np.bool_) and not issubclass(kind, np.timedelta64)


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # of integers and fractions; refused later, as other infinities are
        return np.inf if cell > 0 else -np.inf


def _complex_numbers(name: str) -> InputError:
    return InputError(
        f"View '{name}' holds complex numbers. Complex data not supported: "
        "give real and imaginary parts, or magnitudes, as separate columns."
    )


def _no_numbers(name: str, found: str) -> InputTypeError:
    return InputTypeError(
        f"View '{name}' must hold numbers; got {found}. Convert text that stands for numbers with .astype(float), and "
        "encode or drop what is not numeric."
    )


def is_missing(cell: Any) -> bool:
    """Return whether a cell stands for a missing value."""
    return type(cell).__name__ in _NOTHING or (isinstance(cell, float) and cell != cell)


def _read_anndata(name: str, view: Any, wanted: Any, place: str) -> RawView:
    values, columns = _matrix_of(name, view, place), columns_at(name, view, place)
    matrix = _read_sparse(name, values) if sparse.issparse(values) else _read_array(name, values)
    demand_distinct_columns(name, columns)
    container = Container("pandas", tuple(columns), view.obs_names.name)
    ids = np.asarray(view.obs_names, dtype=object)
    if isinstance(wanted, list):
        _demand_column(name, wanted, view.obs)
        ids = np.asarray(view.obs[next(column for column in wanted if column in view.obs)].astype(object))
    # AnnData numbers samples without names
    elif wanted is False or (wanted is None and view.obs_names.name is None and counts_rows(ids.tolist())):
        return RawView(name, matrix, None, container, ids)
    may_be = wanted is None and view.obs_names.name is None and may_be_row_numbers(ids.tolist())
    return RawView(name, matrix, ids, container, may_be_row_numbers=may_be)


def _demand_column(name: str, wanted: Sequence[str], obs: Any) -> None:
    if not set(wanted) & set(obs.columns):
        raise InputError(
            f"View '{name}' is an AnnData without the column {some(wanted)} in .obs to take the sample ids from; it "
            f"has {some(obs.columns) or 'none'}. Name one of these, or leave id_column out to take its obs_names."
        )


def _matrix_of(name: str, view: Any, place: str) -> Any:
    """Return a matrix of an AnnData; that of a backed file is read."""
    try:
        values = matrix_at(name, view, place)
    except (ValueError, TypeError) as error:  # slices with a negative step of a file
        if not view.isbacked:
            raise
        raise InputError(
            f"View '{name}' is a part of a backed AnnData that anndata cannot read: {str(error).rstrip('.')}. Read the "
            "file first, and take the part then: adata.to_memory()[…]."
        ) from None
    if values is None:
        raise InputError(
            f"View '{name}' is an AnnData without a matrix: its .X is None. Put the values into .X, or name a layer."
        )
    values = values[:] if hasattr(values, "file") else values
    return values.to_memory() if hasattr(values, "to_memory") else values


def demand_encodable(what: str, names: Iterable[Any]) -> None:
    """Raise an error if text among the names has no UTF-8 form, and so cannot be printed or written to files."""
    texts = [name for name in names if isinstance(name, str)]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        odd = next(text for text in texts if any("\ud800" <= letter <= "\udfff" for letter in text))
        raise InputError(
            f"Names and ids must be text that can be written as UTF-8; {what}, {odd!r}, cannot (a lone surrogate, "
            "often of a file name or a file in another encoding). Rename it."
        ) from None


def demand_distinct_columns(name: str, columns: Any) -> None:
    """Raise an error if two columns have the same name, or a name that no file can hold."""
    texts = [str(column) for column in columns]
    demand_encodable(f"a feature of view '{name}'", texts)
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


def _describe(data: Any) -> str:
    return f"an object of type {type(data).__name__}" if data is not None else "None"
