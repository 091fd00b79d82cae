"""What model files and checkpoints can hold: the registered methods and records, and the kinds of values.

Only registered classes and the kinds below are written, and only they are read.
"""

from __future__ import annotations

import datetime
import uuid
from dataclasses import MISSING, fields
from decimal import Decimal
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import numpy as np

from ..clusters import Clustering
from ..compute.arrays import graph_like, host, host_graph, is_tensor, to_device
from ..compute.tensor_graph import TensorGraph
from ..correction import Correction
from ..errors import InputTypeError, extra
from ..graph.neighbors import Search, SearchReport
from ..kinds import Levels, Preparation
from ..refinement import Discriminants, Refinement, ViewDiscriminants
from ..scaling import Scaling
from ..utils import packing
from ..utils.packing import NotStorableError, demand
from ..views import Views
from ..views.containers import Container, descends
from .consistency import hints_of

T = TypeVar("T", bound=type)

METHODS: dict[str, type[Any]] = {}  # filled by the decorator storable_method
RECORDS: dict[str, type[Any]] = {
    record.__name__: record
    for record in (
        *(
            Clustering,
            Container,
            Correction,
            Discriminants,
            Levels,
            Preparation,
            Refinement,
            Scaling,
        ),
        *(Search, SearchReport, ViewDiscriminants, Views),
    )
}
VIEWS_PARTS = tuple("matrices" if name == "_held" else name for name in hints_of(Views))
_N_STATE = 624  # numbers in the state of a RandomState


def storable_method(method: T) -> T:
    """Register an estimator, so that model files can hold it; a class decorator."""
    METHODS[method.__name__] = method
    return method


def storable_record(record: T) -> T:
    """Register a frozen dataclass, so that model files can hold its instances; a class decorator."""
    RECORDS[record.__name__] = record
    return record


def method_name(model: Any) -> str:
    """Return the name of a model's class.

    Raises
    ------
    InputTypeError
        If the class is not registered, for example a subclass that a user has written.
    """
    kind = type(model)
    if METHODS.get(kind.__name__) is not kind:
        raise InputTypeError(
            f"A model file can hold the methods of gapview ({', '.join(METHODS)}); got a {kind.__name__} from the "
            f"module '{kind.__module__}'. Keep a class of your own with joblib.dump."
        )
    return kind.__name__


def _default_parts(record: type[Any]) -> dict[str, Any]:
    """Return the names of the attributes that make up a record, with their default values or MISSING."""
    if record is Views:
        return dict.fromkeys(VIEWS_PARTS, MISSING) | {"batches": None}
    return {f.name: f.default for f in fields(record)}


# -- kinds that are lists of plainer values --------------------------------------------------------------------


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
        raise NotStorableError(f"the time zone {zone!r}, which has no name")
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
KINDS: packing.Kinds = packing.KINDS | {
    "tuple": (list, lambda *items: items),
    "scalar": (lambda value: [np.asarray(value)], lambda array: array[()]),
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


# -- encoder and decoder ---------------------------------------------------------------------------------------


class Encoder(packing.Encoder):
    """Turns the values of a model or a checkpoint into JSON and blocks of bytes.

    Tensors are encoded with the name of their device if ``with_tensors`` is set, and refused otherwise: another machine
    may not have the device.
    """

    kinds = KINDS
    error = InputTypeError

    def __init__(self, *, with_tensors: bool = False) -> None:
        super().__init__()
        self._with_tensors = with_tensors

    def encode_other(self, value: Any, where: str, depth: int) -> dict[str, Any]:
        """Encode a record, or a value of one of the ``kinds``."""
        kind = type(value)
        if RECORDS.get(kind.__name__) is kind:
            parts = {name: getattr(value, name) for name in _default_parts(kind)}
            return {kind.__name__: {n: self.encode(part, f"{where}.{n}", depth + 1) for n, part in parts.items()}}
        try:
            return super().encode_other(value, where, depth)
        except NotStorableError as error:
            raise InputTypeError(
                f"{where} holds {error}, which a model file cannot keep. Plain values, NumPy arrays, csr, csc and coo "
                "matrices and dates can be kept; a setting that only a new fit would need can be taken out with "
                "set_params(…=None)."
            ) from None

    def kind_name(self, value: Any) -> str:
        """Return under which of the names in ``KINDS`` a value is written."""
        kind = type(value)
        if isinstance(value, np.generic) and packing.is_storable(value.dtype):
            return "scalar"
        if self._with_tensors and (is_tensor(value) or kind is TensorGraph):
            return "TensorGraph" if kind is TensorGraph else "tensor"
        if kind is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937":
            return "RandomState"
        if kind in _BUILT_IN or (descends(value, "pandas", *_PANDAS) and kind.__name__ in _PANDAS):
            return _BUILT_IN.get(kind, kind.__name__)
        return super().kind_name(value)


class Decoder(packing.Decoder):
    """Turns JSON and blocks of bytes back into the values of a model or a checkpoint."""

    kinds = KINDS

    def decode_other(self, kind: str, content: Any, depth: int) -> Any:
        """Decode a record, or a value of one of the ``kinds``."""
        if kind not in RECORDS:
            return super().decode_other(kind, content, depth)
        record = RECORDS[kind]
        default = _default_parts(record)  # for parts that are newer than the file
        parts = default | {name: self.decode(part, depth + 1) for name, part in content.items()}
        is_whole = len(parts) == len(default) and all(part is not MISSING for part in parts.values())
        demand(is_whole, f"a {record.__name__} in it has the parts {sorted(content)}")
        made = object.__new__(record)  # its own code is not run
        for name, part in parts.items():
            object.__setattr__(made, name, part)
        return made
