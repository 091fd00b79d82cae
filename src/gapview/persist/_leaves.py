"""Values that ids and column labels are made of, beyond text and numbers: taken apart into plain ones, and put back."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from ..errors import MissingExtraError
from ..views.containers import descends

# For every name that stands in a file: how to take a value apart, and how to make it again
Parts = tuple[Callable[[Any], list[Any]], Callable[..., Any]]


def take_apart(value: Any) -> tuple[str, list[Any]] | None:
    """Return the name of a value's kind and its parts; None if it is of no known kind."""
    kind = type(value)
    name = _BUILT_IN_NAMES.get(kind)
    if name is None and descends(value, "pandas", *_PANDAS) and kind.__name__ in _PANDAS:
        name = kind.__name__
    return None if name is None else (name, KINDS[name][0](value))


def put_together(name: str, parts: list[Any]) -> Any:
    """Make a value from its parts."""
    return KINDS[name][1](*parts)


def _zone(zone: datetime.tzinfo | None) -> Any:
    """Return a time zone as its name, or as a fixed distance from UTC."""
    if zone is None:
        return None
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    offset = None if name else zone.utcoffset(None)
    if name is None and offset is None:
        raise TypeError(f"the time zone {zone!r}, which has no name")
    return name or offset


def _read_zone(zone: Any) -> datetime.tzinfo | None:
    if isinstance(zone, str):
        return ZoneInfo(zone)  # refuses names that lead elsewhere
    return None if zone is None else datetime.timezone(zone)


def _moment(value: datetime.datetime) -> list[Any]:
    clock = [value.hour, value.minute, value.second, value.microsecond]
    return [value.year, value.month, value.day, *clock, value.fold, _zone(value.tzinfo)]


def _read_moment(*parts: Any) -> datetime.datetime:
    *numbers, fold, zone = parts
    return datetime.datetime(*numbers).replace(fold=fold, tzinfo=_read_zone(zone))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "tables", "Loading a model whose samples or features have dates") from None
    return pandas


def _timestamp(value: Any) -> list[Any]:
    universal = value if value.tz is None else value.tz_convert("UTC").tz_localize(None)
    return [universal.asm8, _zone(value.tz)]


def _read_timestamp(moment: Any, zone: Any) -> Any:
    naive = _pandas().Timestamp(moment)
    if zone is None:
        return naive
    known = _read_zone(zone)
    # By its name pandas takes the kind of zone that its own frames have
    return naive.tz_localize("UTC").tz_convert(zone if isinstance(zone, str) else known)


_BUILT_IN: dict[type, Parts] = {
    bytes: (lambda value: [value.hex()], bytes.fromhex),
    complex: (lambda value: [value.real, value.imag], complex),
    Decimal: (lambda value: [str(value)], Decimal),
    uuid.UUID: (lambda value: [value.hex], uuid.UUID),
    datetime.date: (lambda value: [value.year, value.month, value.day], datetime.date),
    datetime.timedelta: (lambda value: [value.days, value.seconds, value.microseconds], datetime.timedelta),
    datetime.datetime: (_moment, _read_moment),
}
_PANDAS: dict[str, Parts] = {
    "Timestamp": (_timestamp, _read_timestamp),
    "Timedelta": (lambda value: [value.asm8], lambda length: _pandas().Timedelta(length)),
    "Period": (
        lambda value: [value.ordinal, value.freqstr],
        lambda ordinal, unit: _pandas().Period(ordinal=ordinal, freq=unit),
    ),
    "Interval": (lambda value: [value.left, value.right, value.closed], lambda *ends: _pandas().Interval(*ends)),
}
_BUILT_IN_NAMES = {kind: kind.__name__.lower() for kind in _BUILT_IN}
KINDS: dict[str, Parts] = {_BUILT_IN_NAMES[kind]: parts for kind, parts in _BUILT_IN.items()} | _PANDAS
