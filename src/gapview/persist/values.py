"""Nested values as JSON and arrays, and back, exactly.

None, truth values, whole numbers, finite floats, text and lists are themselves in JSON; anything else is an object with
one key that names its kind. The kinds are those below and no others: what is not among them is refused when it is
written, and again when it is read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, Self

import numpy as np
from scipy import sparse

from ..errors import InputTypeError
from ..utils.packing import (
    demand_valid,
    is_storable,
    is_storable_sparse,
    packed,
    read_dtype,
    read_shape,
    sparse_from_parts,
    sparse_parts,
    unpacked,
)
from ..utils.types import Array
from ..views import Views
from ._hints import hints_of
from ._leaves import KINDS as LEAVES
from ._leaves import put_together, take_apart
from .container import from_json, to_json
from .registry import RECORDS

_MOST_DEPTH = 30
_LARGEST = 2**63
_N_STATE = 624  # numbers in the state of a RandomState

VIEWS_PARTS = tuple("matrices" if name == "_held" else name for name in hints_of(Views))


class Encoder:
    """Turns values into JSON; arrays go into ``entries`` and ``blocks``, each only once."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.blocks: list[Array] = []
        self.objects: list[dict[str, Any]] = []
        self._seen: dict[int, dict[str, int]] = {}
        self._alive: list[Any] = []  # an array that is let go could leave its id to another

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Encode one value; ``where`` is what to call it in a message."""
        if depth > _MOST_DEPTH:
            raise InputTypeError(f"{where} is nested more than {_MOST_DEPTH} levels deep, or holds itself.")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if -_LARGEST <= value < _LARGEST else {"int": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if kind is list:
            return self._each(value, where, depth)
        if kind is tuple:
            return {"tuple": self._each(value, where, depth)}
        if kind in (np.ndarray, np.memmap) and id(value) in self._seen:
            return self._seen[id(value)]
        return self._encode_object(value, where, depth)

    def to_blocks(self, state: dict[str, Any]) -> list[Array]:
        """Return encoded values, and everything they refer to, as the blocks of a file."""
        text = to_json(state | {"objects": self.objects, "arrays": self.entries})
        return [np.frombuffer(text, dtype=np.uint8), *self.blocks]

    def _encode_object(self, value: Any, where: str, depth: int) -> dict[str, Any]:
        kind, deeper = type(value), depth + 1
        if kind is dict:
            return {"dict": [self._each(pair, f"{where}[{pair[0]!r}]", deeper) for pair in value.items()]}
        if kind in (np.ndarray, np.memmap) and (value.dtype == object or is_storable(value.dtype)):
            return self._array(value, where, depth)
        if isinstance(value, np.generic) and is_storable(value.dtype):
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        if sparse.issparse(value) and is_storable_sparse(value):
            name, shape, parts = sparse_parts(value)
            return {"sparse": [name, shape, self._each(parts, where, depth)]}
        if kind is Views:
            return {"Views": {name: self.encode(getattr(value, name), where, deeper) for name in VIEWS_PARTS}}
        if RECORDS.get(kind.__name__) is kind:
            names = [field.name for field in fields(value)]
            return {kind.__name__: {n: self.encode(getattr(value, n), f"{where}.{n}", deeper) for n in names}}
        if kind is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937":
            state = value.get_state()
            return {"RandomState": self._each(state[1:], where, depth)}
        return self._encode_leaf(value, where, depth)

    def _encode_leaf(self, value: Any, where: str, depth: int) -> dict[str, Any]:
        try:
            known = take_apart(value)
            found = "" if known else f"a value of type {type(value).__module__}.{type(value).__qualname__}"
        except TypeError as error:
            known, found = None, str(error)
        if known is None:
            raise InputTypeError(
                f"{where} holds {found}, which a model file cannot keep. Plain values, NumPy arrays, csr, csc and coo "
                "matrices and dates can be kept; a setting that only a new fit would need can be taken out with "
                "set_params(…=None)."
            )
        return {known[0]: self._each(known[1], where, depth)}

    def _each(self, values: Any, where: str, depth: int) -> list[Any]:
        return [self.encode(value, where, depth + 1) for value in values]

    def _array(self, array: Array, where: str, depth: int) -> dict[str, int]:
        if array.dtype == object:
            items = array.ravel().tolist()
            if not all(type(item) is str for item in items):  # the common case is left as it is
                items = self._each(items, where, depth)
            self.objects.append({"shape": list(array.shape), "items": items})
            place = {"objects": len(self.objects) - 1}
        else:
            entry, block = packed(array)
            self.entries.append(entry)
            self.blocks.append(block)
            place = {"array": len(self.blocks) - 1}
        self._seen[id(array)] = place
        self._alive.append(array)
        return place


class Decoder:
    """Turns JSON and blocks of bytes back into values; raises ValueError, TypeError and their like for forgeries."""

    def __init__(self, entries: list[dict[str, Any]], blocks: list[Array], objects: list[dict[str, Any]]) -> None:
        self._arrays = [unpacked(entry, block) for entry, block in zip(entries, blocks, strict=True)]
        self._objects: list[Array] = []
        for entry in objects:  # an array of objects can hold those before it, never itself
            self._objects.append(self._object_array(entry))

    @classmethod
    def from_blocks(cls, blocks: list[Array]) -> tuple[Self, dict[str, Any]]:
        """Return a decoder for the blocks that :meth:`Encoder.to_blocks` has made, and their encoded values."""
        state = from_json(blocks[0])
        return cls(state["arrays"], blocks[1:], state["objects"]), state

    def decode(self, item: Any, depth: int = 0) -> Any:
        """Decode one value."""
        if depth > _MOST_DEPTH:
            raise ValueError("its values are nested too deeply")
        if isinstance(item, list):
            return self._each(item, depth)
        if not isinstance(item, dict):
            return item
        ((kind, content),) = item.items()
        if kind in _KINDS:
            return _KINDS[kind](self, content, depth)
        if kind in LEAVES:
            return put_together(kind, self._each(content, depth))
        if kind in RECORDS:
            return self._record(RECORDS[kind], content, depth)
        raise ValueError(f"it holds a value of the unknown kind {kind!r}")

    def _each(self, items: Any, depth: int) -> list[Any]:
        if not isinstance(items, list):
            raise ValueError("it holds something else where a list must be")
        return [self.decode(item, depth + 1) for item in items]

    def _object_array(self, entry: dict[str, Any]) -> Array:
        shape, items = read_shape(entry["shape"]), self._each(entry["items"], 0)
        if math.prod(shape) != len(items):
            raise ValueError(f"an array of shape {shape} has {len(items)} values")
        flat = np.empty(len(items), dtype=object)
        flat[:] = items
        return flat.reshape(shape)

    def _record(self, record: type[Any], content: dict[str, Any], depth: int) -> Any:
        parts = {field.name: field.default for field in fields(record)}  # a part that is newer than the file
        parts |= {name: self.decode(part, depth + 1) for name, part in content.items()}
        if len(parts) > len(fields(record)) or any(part is MISSING for part in parts.values()):
            raise ValueError(f"a {record.__name__} in it has the parts {sorted(content)}")
        made = object.__new__(record)  # its own code is not run
        for name, part in parts.items():
            object.__setattr__(made, name, part)
        return made

    def _views(self, content: dict[str, Any], depth: int) -> Views:
        if set(content) != set(VIEWS_PARTS):
            raise ValueError(f"the views in it have the parts {sorted(content)}")
        views = Views.__new__(Views)
        for name in VIEWS_PARTS:
            setattr(views, name, self.decode(content[name], depth + 1))
        return views


_KINDS: dict[str, Callable[[Decoder, Any, int], Any]] = {
    "int": lambda _, text, depth: int(text, 16),
    "float": lambda _, text, depth: struct.unpack(">d", bytes.fromhex(text))[0],
    "tuple": lambda decoder, items, depth: tuple(decoder._each(items, depth)),
    "dict": lambda decoder, pairs, depth: dict(decoder._each(pair, depth) for pair in pairs),
    "array": lambda decoder, place, depth: decoder._arrays[_position(place)],
    "objects": lambda decoder, place, depth: decoder._objects[_position(place)],
    "scalar": lambda _, parts, depth: _scalar(*parts),
    "sparse": lambda decoder, parts, depth: _sparse(decoder, parts, depth),
    "Views": Decoder._views,
    "RandomState": lambda decoder, parts, depth: _random_state(*decoder._each(parts, depth)),
}


def _sparse(decoder: Decoder, content: Any, depth: int) -> Any:
    kind, shape, parts = content
    return sparse_from_parts(kind, shape, decoder._each(parts, depth))


def _position(place: Any) -> int:
    if type(place) is not int or place < 0:
        raise ValueError(f"it has no array number {place!r}")
    return place


def _scalar(dtype: Any, text: str) -> Any:
    kind, content = read_dtype(dtype), bytes.fromhex(text)
    if len(content) != kind.itemsize:
        raise ValueError(f"a number of type {kind} has {len(content)} bytes")
    array = np.frombuffer(content, dtype=kind)
    demand_valid(array)
    return array[0]


def _random_state(keys: Any, position: Any, has_normal: Any, normal: Any) -> np.random.RandomState:
    # The position is trusted by the code that draws numbers
    fits = type(keys) is np.ndarray and keys.shape == (_N_STATE,) and keys.dtype == np.uint32
    if not fits or type(position) is not int or not 0 <= position <= _N_STATE or has_normal not in (0, 1):
        raise ValueError("it holds a source of random numbers in a state that none has")
    state = np.random.RandomState()
    state.set_state(("MT19937", keys, position, has_normal, float(normal)))
    return state
