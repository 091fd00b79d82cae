"""Arrays of plain types as bytes and back, with their layout in memory."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from scipy import sparse

from .types import Array

# No objects, no records, no type whose size depends on the machine
_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[US][1-9]\d{0,8}|[mM]8(\[\d{0,9}[a-zA-Z]{1,7}\])?)")
_MOST_AXES = 32
_MOST_CHARACTER = 0x10FFFF
# Other formats can take far more memory than their entries take in the file
_SPARSE = {
    f"{layout}_{kind}": getattr(sparse, f"{layout}_{kind}")
    for layout in ("csr", "csc", "coo")
    for kind in ("array", "matrix")
}


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Return whether values of this type can be packed."""
    return _DTYPE.fullmatch(dtype.str) is not None


def packed(array: Array) -> tuple[dict[str, Any], Array]:
    """Return the description of an array (type, shape, layout) and its bytes.

    Matrix products round differently in row-major and column-major order, so the order and direction of the axes in
    memory are kept. Gaps between values are removed.
    """
    entry: dict[str, Any] = {"dtype": array.dtype.str, "shape": list(array.shape)}
    if not array.flags.c_contiguous:
        turned = [axis for axis, step in enumerate(array.strides) if step < 0]
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        if turned or axes != sorted(axes):
            entry |= {"axes": axes, "turned": turned}
        array = np.flip(array, tuple(turned)).transpose(axes)
    return entry, np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def unpacked(entry: dict[str, Any], block: Array) -> Array:
    """Return the array with these bytes, without a copy."""
    dtype, shape = read_dtype(entry["dtype"]), read_shape(entry["shape"])
    axes = entry.get("axes", list(range(len(shape))))
    turned = entry.get("turned", [])
    if sorted(axes) != list(range(len(shape))) or not set(turned) <= set(axes):
        raise ValueError(f"an array of {len(shape)} axes has the axes {axes} and {turned}")
    if math.prod(shape) * dtype.itemsize != len(block):
        raise ValueError(f"an array of shape {shape} and type {dtype} has {len(block)} bytes")
    array = block.view(dtype).reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes))
    demand_valid(array)
    return np.flip(array, tuple(turned)) if turned else array


def read_dtype(text: Any) -> np.dtype[Any]:
    """Return the type with this name, if it is a plain one."""
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        raise ValueError(f"it holds values of the type {text!r}, which no model has")
    return np.dtype(text)


def read_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of an array as a tuple, if it is valid."""
    if not isinstance(shape, list) or len(shape) > _MOST_AXES or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"it holds an array of the shape {shape!r}")
    return tuple(shape)


def demand_valid(array: Array) -> None:
    """Raise an error if bytes represent no value of their type."""
    if not array.size:
        return
    flat = np.ascontiguousarray(array.T if array.flags.f_contiguous else array)
    if array.dtype.kind == "b" and flat.view(np.uint8).max() > 1:
        raise ValueError("it holds truth values other than true and false")
    if array.dtype.kind == "U" and flat.view(f"{array.dtype.str[0]}u4").max() > _MOST_CHARACTER:
        raise ValueError("it holds text of characters that do not exist")


def is_storable_sparse(value: Any) -> bool:
    """Return whether a value is a sparse matrix that can be packed."""
    return _SPARSE.get(type(value).__name__) is type(value) and len(value.shape) == 2 and is_storable(value.dtype)


def sparse_parts(matrix: Any) -> tuple[str, list[int], list[Array]]:
    """Return the class name of a sparse matrix, its shape and its three arrays."""
    if matrix.format == "coo":
        parts = [matrix.data, matrix.row, matrix.col]
    else:
        n = matrix.nnz  # the arrays may be longer
        data, indices = (part if len(part) == n else part[:n] for part in (matrix.data, matrix.indices))
        parts = [data, indices, matrix.indptr]
    return type(matrix).__name__, list(matrix.shape), parts


def sparse_from_parts(kind: Any, shape: Any, parts: Any) -> Any:
    """Return the sparse matrix of these arrays after checking them, which scipy does not do."""
    data, first, second = parts
    size = read_shape(shape)
    if kind not in _SPARSE or len(size) != 2:
        raise ValueError(f"it holds a sparse matrix of the kind {kind!r} and shape {shape!r}")
    if not all(type(part) is np.ndarray and part.ndim == 1 for part in parts) or data.dtype.kind not in "biufc":
        raise ValueError("it holds a sparse matrix without numbers")
    if first.dtype != second.dtype or first.dtype.str not in ("<i4", "<i8"):
        raise ValueError("it holds a sparse matrix whose positions are no whole numbers")
    if kind.startswith("coo"):
        fits = len(data) == len(first) == len(second) and _within(first, size[0]) and _within(second, size[1])
        content: Any = (data, (first, second))
        names = ("row", "col")
    else:
        n_lines, n_places = size if kind.startswith("csr") else size[::-1]
        fits = len(data) == len(first) and _within(first, n_places) and _are_ends(second, n_lines, len(data))
        content, names = (data, first, second), ("indices", "indptr")
    if not fits:
        raise ValueError("it holds a sparse matrix whose positions are outside of it")
    matrix = _SPARSE[kind](content, shape=size)
    for name, part in zip(names, (first, second), strict=True):  # the constructor may have narrowed their type
        setattr(matrix, name, part)
    return matrix


def _within(positions: Array, end: int) -> bool:
    return not len(positions) or bool(positions.min() >= 0 and positions.max() < end)


def _are_ends(ends: Array, n_lines: int, n_entries: int) -> bool:
    """Return whether these are valid row (or column) pointers of a compressed matrix."""
    is_whole = len(ends) == n_lines + 1 and ends[0] == 0 and ends[-1] == n_entries
    return bool(is_whole and (ends[1:] >= ends[:-1]).all())
