"""Nested values as JSON and arrays as bytes, and back, exactly.

None, truth values, whole numbers, finite floats, text and lists are themselves in JSON; anything else is an object with
one key that names its kind. Arrays of plain types are packed as bytes, with their layout in memory.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from .types import Array

# No objects, no records, no type whose size depends on the machine
_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[US][1-9]\d{0,8}|[mM]8(\[\d{0,9}[a-zA-Z]{1,7}\])?)")
_MOST_AXES = 32
_MOST_DEPTH = 30  # of nested values
_LARGEST = 2**63
_MOST_CHARACTER = 0x10FFFF
_MEMORY = {b"{": 500, b"[": 200, b":": 150, b",": 64}  # bytes that a value in JSON can take, by the sign before it
_FREE_MEMORY, _MOST_GROWTH = 200_000_000, 16  # bytes for any file, and for each byte of a file
# Other formats can take far more memory than their entries take in the file
_SPARSE = {
    f"{layout}_{kind}": getattr(sparse, f"{layout}_{kind}")
    for layout in ("csr", "csc", "coo")
    for kind in ("array", "matrix")
}


def demand(condition: Any, problem: str) -> None:
    """Raise a ValueError unless a condition holds."""
    if not condition:
        raise ValueError(problem)


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
    is_valid = sorted(axes) == list(range(len(shape))) and set(turned) <= set(axes)
    demand(is_valid, f"an array of {len(shape)} axes has the axes {axes} and {turned}")
    n_bytes = math.prod(shape) * dtype.itemsize
    demand(n_bytes == len(block), f"an array of shape {shape} and type {dtype} has {len(block)} bytes")
    array = block.view(dtype).reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes))
    demand_valid(array)
    return np.flip(array, tuple(turned)) if turned else array


def read_dtype(text: Any) -> np.dtype[Any]:
    """Return the type with this name, if it is a plain one."""
    is_plain = isinstance(text, str) and _DTYPE.fullmatch(text)
    demand(is_plain, f"it holds values of the type {text!r}, which no model has")
    return np.dtype(str(text))


def read_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of an array as a tuple, if it is valid."""
    is_list = isinstance(shape, list) and len(shape) <= _MOST_AXES
    demand(is_list and all(type(n) is int and n >= 0 for n in shape), f"it holds an array of the shape {shape!r}")
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
    demand(kind in _SPARSE and len(size) == 2, f"it holds a sparse matrix of the kind {kind!r} and shape {shape!r}")
    are_arrays = all(type(part) is np.ndarray and part.ndim == 1 for part in parts)
    demand(are_arrays and data.dtype.kind in "biufc", "it holds a sparse matrix without numbers")
    are_whole = first.dtype == second.dtype and first.dtype.str in ("<i4", "<i8")
    demand(are_whole, "it holds a sparse matrix whose positions are no whole numbers")
    if kind.startswith("coo"):
        fits = len(data) == len(first) == len(second) and _within(first, size[0]) and _within(second, size[1])
        content: Any = (data, (first, second))
        names = ("row", "col")
    else:
        n_lines, n_places = size if kind.startswith("csr") else size[::-1]
        fits = len(data) == len(first) and _within(first, n_places) and _are_ends(second, n_lines, len(data))
        content, names = (data, first, second), ("indices", "indptr")
    demand(fits, "it holds a sparse matrix whose positions are outside of it")
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


# -- nested values ----------------------------------------------------------------------------------------------


class NotStorableError(TypeError):
    """A value is of no kind that can be stored."""


Kinds = dict[str, tuple[Callable[[Any], Any], Callable[..., Any]]]
# For every name of a kind: how to take a value of that kind apart into a list, and how to build it again
KINDS: Kinds = {"sparse": (sparse_parts, sparse_from_parts)}


class Encoder:
    """Turns values into JSON; arrays go into ``entries`` and ``blocks``, each only once."""

    kinds: ClassVar[Kinds] = KINDS
    error: ClassVar[type[Exception]] = NotStorableError  # raised for values that are nested too deeply

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.blocks: list[Array] = []
        self.objects: list[dict[str, Any]] = []
        self._seen: dict[int, tuple[dict[str, int], Any]] = {}  # holds the array, so that its id is not used again

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Encode one value; error messages call it ``where``."""
        if depth > _MOST_DEPTH:
            raise self.error(f"{where} is nested more than {_MOST_DEPTH} levels deep, or holds itself.")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if -_LARGEST <= value < _LARGEST else {"int": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if kind is list:
            return self.each(value, where, depth)
        if kind is dict:
            return {"dict": [self.each(pair, f"{where}[{pair[0]!r}]", depth + 1) for pair in value.items()]}
        if kind in (np.ndarray, np.memmap) and (value.dtype == object or is_storable(value.dtype)):
            return self._array(value, where, depth)
        return self.encode_other(value, where, depth)

    def encode_other(self, value: Any, where: str, depth: int) -> dict[str, Any]:
        """Encode a value of one of the ``kinds``."""
        name = self.kind_name(value)
        return {name: self.each(self.kinds[name][0](value), where, depth)}

    def kind_name(self, value: Any) -> str:
        """Return under which of the names in ``kinds`` a value is stored."""
        if is_storable_sparse(value):
            return "sparse"
        raise NotStorableError(f"a value of type {type(value).__module__}.{type(value).__qualname__}")

    def each(self, values: Any, where: str, depth: int) -> list[Any]:
        """Encode the parts of a value."""
        return [self.encode(value, where, depth + 1) for value in values]

    def to_blocks(self, state: dict[str, Any]) -> list[Array]:
        """Return encoded values, and everything they refer to, as the blocks of a file."""
        text = to_json(state | {"objects": self.objects, "arrays": self.entries})
        return [np.frombuffer(text, dtype=np.uint8), *self.blocks]

    def _array(self, array: Array, where: str, depth: int) -> dict[str, int]:
        if id(array) in self._seen:
            return self._seen[id(array)][0]
        if array.dtype == object:
            items = array.ravel().tolist()
            if not all(type(item) is str for item in items):  # text, the common case, needs no encoding
                items = self.each(items, where, depth)
            self.objects.append({"shape": list(array.shape), "items": items})
            place = {"objects": len(self.objects) - 1}
        else:
            entry, block = packed(array)
            self.entries.append(entry)
            self.blocks.append(block)
            place = {"array": len(self.blocks) - 1}
        self._seen[id(array)] = place, array
        return place


class Decoder:
    """Turns JSON and blocks of bytes back into values; raises ValueError, TypeError and the like for forgeries."""

    kinds: ClassVar[Kinds] = KINDS

    def __init__(self, entries: list[dict[str, Any]], blocks: list[Array], objects: list[dict[str, Any]]) -> None:
        self._arrays = [unpacked(entry, block) for entry, block in zip(entries, blocks, strict=True)]
        self._objects: list[Array] = []
        for entry in objects:  # an array of objects can hold those before it, never itself
            self._objects.append(self._object_array(entry))

    @classmethod
    def from_blocks(cls, blocks: list[Array]) -> tuple[Self, dict[str, Any]]:
        """Return a decoder for the blocks that :meth:`Encoder.to_blocks` has made, and their encoded values."""
        state = from_json(blocks[0], sum(len(block) for block in blocks))
        return cls(state["arrays"], blocks[1:], state["objects"]), state

    def decode(self, item: Any, depth: int = 0) -> Any:
        """Decode one value."""
        demand(depth <= _MOST_DEPTH, "its values are nested too deeply")
        if isinstance(item, list):
            return self._each(item, depth)
        if not isinstance(item, dict):
            return item
        ((kind, content),) = item.items()
        match kind:
            case "int":
                return int(content, 16)
            case "float":
                return struct.unpack(">d", bytes.fromhex(content))[0]
            case "dict":
                return dict(self._each(pair, depth) for pair in content)
            case "array" | "objects":
                demand(type(content) is int and content >= 0, f"it has no array number {content!r}")
                return (self._arrays if kind == "array" else self._objects)[content]
        return self.decode_other(kind, content, depth)

    def decode_other(self, kind: str, content: Any, depth: int) -> Any:
        """Decode a value of one of the ``kinds``."""
        demand(kind in self.kinds, f"it holds a value of the unknown kind {kind!r}")
        return self.kinds[kind][1](*self._each(content, depth))

    def _each(self, items: Any, depth: int) -> list[Any]:
        demand(isinstance(items, list), "it holds something else where a list must be")
        return [self.decode(item, depth + 1) for item in items]

    def _object_array(self, entry: dict[str, Any]) -> Array:
        shape, items = read_shape(entry["shape"]), self._each(entry["items"], 0)
        demand(math.prod(shape) == len(items), f"an array of shape {shape} has {len(items)} values")
        return as_objects(items).reshape(shape)


def as_objects(items: Iterable[Any]) -> Array:
    """Return items as an array of objects, also those that are sequences."""
    listed = list(items)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def to_json(value: Any) -> bytes:
    """Return the JSON text of a value, always the same for the same value."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def from_json(text: bytes | Array, n_bytes: int | None = None) -> Any:
    """Read JSON as :func:`to_json` writes it; raise for repeated keys, NaN and excessive nesting.

    If ``n_bytes``, the size of the file, is given, raise before parsing if the values would take far more memory.
    """
    content = bytes(text)
    if n_bytes is not None:
        demand_memory(content, n_bytes)
    try:
        return json.loads(content.decode("ascii"), object_pairs_hook=_distinct, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def demand_memory(text: bytes, n_bytes: int) -> None:
    """Raise a ValueError if the values of a JSON text may take far more memory than a file of ``n_bytes``.

    Short text such as ``[[],[]]`` takes 40 times its length as lists. The memory is estimated from the number of
    brackets, colons and commas, each with the memory of the values that it stands for before and after decoding.
    """
    needed = sum(size * text.count(sign) for sign, size in _MEMORY.items())
    allowed = _FREE_MEMORY + _MOST_GROWTH * n_bytes
    demand(needed <= allowed, f"its values may take {needed:,} bytes of memory, more than the {allowed:,} for its size")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    demand(len(found) == len(pairs), "its JSON has a key twice")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"its JSON holds {text}")
