"""Nested values as JSON and arrays, and back, exactly.

None, truth values, whole numbers, finite floats, text and lists are themselves in JSON; anything else is an object with
one key that names its kind. Only the kinds below are written, and only they are read.
"""

from __future__ import annotations

import datetime
import math
import struct
import uuid
from collections.abc import Callable
from dataclasses import MISSING, fields
from decimal import Decimal
from typing import Any, Self
from zoneinfo import ZoneInfo

import numpy as np
from scipy import sparse

from ..compute.arrays import TensorGraph, graph_like, host, host_graph, is_tensor, to_device
from ..errors import InputTypeError, extra
from ..utils import packing
from ..utils.types import Array
from ..views import Views
from ..views.containers import as_objects, descends
from .consistency import hints_of
from .container import from_json, to_json
from .registry import RECORDS

__all__ = ["KINDS", "VIEWS_PARTS", "Decoder", "Encoder"]

_MOST_DEPTH = 30
_LARGEST = 2**63
_N_STATE = 624  # numbers in the state of a RandomState

VIEWS_PARTS = tuple("matrices" if name == "_held" else name for name in hints_of(Views))


class Encoder:
    """Turns values into JSON; arrays go into ``entries`` and ``blocks``, each only once.

    Tensors are encoded with the name of their device if ``with_tensors`` is set, and refused otherwise: another machine
    may not have the device.
    """

    def __init__(self, *, with_tensors: bool = False) -> None:
        self._with_tensors = with_tensors
        self.entries: list[dict[str, Any]] = []
        self.blocks: list[Array] = []
        self.objects: list[dict[str, Any]] = []
        self._seen: dict[int, tuple[dict[str, int], Any]] = {}  # holds the array, so that its id is not used again

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Encode one value; error messages call it ``where``."""
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
        if kind in (np.ndarray, np.memmap) and (value.dtype == object or packing.is_storable(value.dtype)):
            return self._array(value, where, depth)
        return self._object(value, where, depth)

    def to_blocks(self, state: dict[str, Any]) -> list[Array]:
        """Return encoded values, and everything they refer to, as the blocks of a file."""
        text = to_json(state | {"objects": self.objects, "arrays": self.entries})
        return [np.frombuffer(text, dtype=np.uint8), *self.blocks]

    def _object(self, value: Any, where: str, depth: int) -> dict[str, Any]:
        kind = type(value)
        if kind is dict:
            return {"dict": [self._each(pair, f"{where}[{pair[0]!r}]", depth + 1) for pair in value.items()]}
        if RECORDS.get(kind.__name__) is kind:
            parts = {name: getattr(value, name) for name in _default_parts(kind)}
            return {kind.__name__: {n: self.encode(part, f"{where}.{n}", depth + 1) for n, part in parts.items()}}
        try:
            name = _kind_name(value, self._with_tensors)
            return {name: self._each(KINDS[name][0](value), where, depth)}
        except _NotStorableError as error:
            raise InputTypeError(
                f"{where} holds {error}, which a model file cannot keep. Plain values, NumPy arrays, csr, csc and coo "
                "matrices and dates can be kept; a setting that only a new fit would need can be taken out with "
                "set_params(…=None)."
            ) from None

    def _each(self, values: Any, where: str, depth: int) -> list[Any]:
        return [self.encode(value, where, depth + 1) for value in values]

    def _array(self, array: Array, where: str, depth: int) -> dict[str, int]:
        if id(array) in self._seen:
            return self._seen[id(array)][0]
        if array.dtype == object:
            items = array.ravel().tolist()
            if not all(type(item) is str for item in items):  # text, the common case, needs no encoding
                items = self._each(items, where, depth)
            self.objects.append({"shape": list(array.shape), "items": items})
            place = {"objects": len(self.objects) - 1}
        else:
            entry, block = packing.packed(array)
            self.entries.append(entry)
            self.blocks.append(block)
            place = {"array": len(self.blocks) - 1}
        self._seen[id(array)] = place, array
        return place


class Decoder:
    """Turns JSON and blocks of bytes back into values; raises ValueError, TypeError and the like for forgeries."""

    def __init__(self, entries: list[dict[str, Any]], blocks: list[Array], objects: list[dict[str, Any]]) -> None:
        self._arrays = [packing.unpacked(entry, block) for entry, block in zip(entries, blocks, strict=True)]
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
        match kind:
            case "int":
                return int(content, 16)
            case "float":
                return struct.unpack(">d", bytes.fromhex(content))[0]
            case "dict":
                return dict(self._each(pair, depth) for pair in content)
            case "array" | "objects":
                if type(content) is not int or content < 0:
                    raise ValueError(f"it has no array number {content!r}")
                return (self._arrays if kind == "array" else self._objects)[content]
        if kind in KINDS:
            return KINDS[kind][1](*self._each(content, depth))
        if kind in RECORDS:
            return self._record(RECORDS[kind], content, depth)
        raise ValueError(f"it holds a value of the unknown kind {kind!r}")

    def _each(self, items: Any, depth: int) -> list[Any]:
        if not isinstance(items, list):
            raise ValueError("it holds something else where a list must be")
        return [self.decode(item, depth + 1) for item in items]

    def _object_array(self, entry: dict[str, Any]) -> Array:
        shape, items = packing.read_shape(entry["shape"]), self._each(entry["items"], 0)
        if math.prod(shape) != len(items):
            raise ValueError(f"an array of shape {shape} has {len(items)} values")
        return as_objects(items).reshape(shape)

    def _record(self, record: type[Any], content: dict[str, Any], depth: int) -> Any:
        default = _default_parts(record)  # for parts that are newer than the file
        parts = default | {name: self.decode(part, depth + 1) for name, part in content.items()}
        if len(parts) > len(default) or any(part is MISSING for part in parts.values()):
            raise ValueError(f"a {record.__name__} in it has the parts {sorted(content)}")
        made = object.__new__(record)  # its own code is not run
        for name, part in parts.items():
            object.__setattr__(made, name, part)
        return made


def _default_parts(record: type[Any]) -> dict[str, Any]:
    """Return the names of the attributes that make up a record, with their default values or MISSING."""
    return dict.fromkeys(VIEWS_PARTS, MISSING) if record is Views else {f.name: f.default for f in fields(record)}


# -- kinds that are lists of plainer values --------------------------------------------------------------------


class _NotStorableError(TypeError):
    """A value is of no kind that files can hold."""


def _kind_name(value: Any, with_tensors: bool) -> str:
    """Return under which of the names in ``KINDS`` a value is written."""
    kind = type(value)
    if isinstance(value, np.generic) and packing.is_storable(value.dtype):
        return "scalar"
    if sparse.issparse(value) and packing.is_storable_sparse(value):
        return "sparse"
    if with_tensors and (is_tensor(value) or kind is TensorGraph):
        return "TensorGraph" if kind is TensorGraph else "tensor"
    if kind is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937":
        return "RandomState"
    if kind in _BUILT_IN or (descends(value, "pandas", *_PANDAS) and kind.__name__ in _PANDAS):
        return _BUILT_IN.get(kind, kind.__name__)
    raise _NotStorableError(f"a value of type {kind.__module__}.{kind.__qualname__}")


def _random_state(keys: Any, position: Any, has_normal: Any, normal: Any) -> np.random.RandomState:
    # NumPy does not check the position before it draws
    is_valid = type(keys) is np.ndarray and keys.shape == (_N_STATE,) and keys.dtype == np.uint32
    if not is_valid or type(position) is not int or not 0 <= position <= _N_STATE or has_normal not in (0, 1):
        raise ValueError("it holds a RandomState in an impossible state")
    state = np.random.RandomState()
    state.set_state(("MT19937", keys, position, has_normal, float(normal)))
    return state


def _read_tensor_graph(graph: Any, device: str) -> Any:
    return graph_like(graph, to_device(graph.data[:0], device))


def _zone(zone: datetime.tzinfo | None) -> Any:
    """Return a time zone as its name, or as a fixed distance from UTC."""
    if zone is None:
        return None
    name = getattr(zone, "key", None) or getattr(zone, "zone", None) or zone.utcoffset(None)
    if name is None:
        raise _NotStorableError(f"the time zone {zone!r}, which has no name")
    return name


def _read_zone(zone: Any) -> datetime.tzinfo | None:
    if isinstance(zone, str):
        return ZoneInfo(zone)  # refuses names that are paths
    return None if zone is None else datetime.timezone(zone)


def _datetime_parts(value: datetime.datetime) -> list[Any]:
    return [value.replace(tzinfo=None).isoformat(), value.fold, _zone(value.tzinfo)]


def _read_datetime(text: str, fold: int, zone: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def _pandas() -> Any:
    return extra("pandas", "tables", "Loading a model whose samples or features have dates")


def _timestamp_parts(value: Any) -> list[Any]:
    universal = value if value.tz is None else value.tz_convert("UTC").tz_localize(None)
    return [universal.asm8, _zone(value.tz)]


def _read_timestamp(moment: Any, zone: Any) -> Any:
    naive, resolved = _pandas().Timestamp(moment), _read_zone(zone)
    # From a name pandas makes the kind of zone that its own frames have
    local = zone if isinstance(zone, str) else resolved
    return naive if local is None else naive.tz_localize("UTC").tz_convert(local)


_BUILT_IN: dict[type, str] = {
    kind: kind.__name__.lower()
    for kind in (tuple, bytes, complex, Decimal, uuid.UUID, datetime.date, datetime.timedelta, datetime.datetime)
}
_PANDAS = ("Timestamp", "Timedelta", "Period", "Interval")
# For every name in a file: how to take a value of that kind apart, and how to build it again
KINDS: dict[str, tuple[Callable[[Any], Any], Callable[..., Any]]] = {
    "tuple": (list, lambda *items: items),
    "scalar": (lambda value: [np.asarray(value)], lambda array: array[()]),
    "sparse": (packing.sparse_parts, packing.sparse_from_parts),
    "RandomState": (lambda value: value.get_state()[1:], _random_state),
    "tensor": (lambda value: [host(value), str(value.device)], to_device),
    "TensorGraph": (lambda value: [host_graph(value), str(value.values.device)], _read_tensor_graph),
    "bytes": (lambda value: [value.hex()], bytes.fromhex),
    "complex": (lambda value: [value.real, value.imag], complex),
    "decimal": (lambda value: [str(value)], Decimal),
    "uuid": (lambda value: [value.hex], uuid.UUID),
    "date": (lambda value: [value.isoformat()], datetime.date.fromisoformat),
    "timedelta": (lambda value: [value.days, value.seconds, value.microseconds], datetime.timedelta),
    "datetime": (_datetime_parts, _read_datetime),
    "Timestamp": (_timestamp_parts, _read_timestamp),
    "Timedelta": (lambda value: [value.asm8], lambda length: _pandas().Timedelta(length)),
    "Period": (
        lambda value: [value.ordinal, value.freqstr],
        lambda ordinal, unit: _pandas().Period(ordinal=ordinal, freq=unit),
    ),
    "Interval": (lambda value: [value.left, value.right, value.closed], lambda *ends: _pandas().Interval(*ends)),
}
