"""Forged models: every stored value replaced by others, with all checksums right."""

from __future__ import annotations

import copy
from dataclasses import asdict, fields, is_dataclass

import numpy as np
from scipy import sparse

from gapview import Views
from gapview.persist.model_file import pieces, summarise
from gapview.persist.registry import VIEWS_PARTS, Encoder

PLAIN = [None, True, -1, 0, 3, 10**30, 0.5, -0.5, 5.0, float("nan"), float("inf"), "", "x", "auto", [], {}, ()]


def parts_of(value):
    """List the names of the parts of a value."""
    if isinstance(value, Views):
        return VIEWS_PARTS
    if is_dataclass(value):
        return tuple(field.name for field in fields(value))
    if isinstance(value, list | tuple):
        return tuple(range(min(len(value), 2)))
    return tuple(value) if isinstance(value, dict) else ()


def part(value, name):
    return value[name] if isinstance(value, list | tuple | dict) else getattr(value, name)


def described(value):
    """Return a value in few words."""
    if hasattr(value, "dtype"):
        return f"{type(value).__name__} of {value.dtype} {value.shape}"
    return f"{value!r:.60}"


def with_part(value, name, new):
    """Return a copy of a value with one of its parts replaced."""
    if isinstance(value, list | dict):
        other = copy.copy(value)
        other[name] = new
        return other
    if isinstance(value, tuple):
        return (*value[:name], new, *value[name + 1 :])
    other = copy.copy(value)
    object.__setattr__(other, "_held" if name == "matrices" else name, new)
    return other


def others(value):
    """Yield values to put in place of a value."""
    if isinstance(value, np.ndarray):
        yield from other_arrays(value)
    elif sparse.issparse(value):
        for data in other_arrays(value.data):
            if data.shape == value.data.shape and data.dtype.kind in "biufc":
                yield type(value)((data, value.indices, value.indptr), shape=value.shape)
        yield type(value)(value.shape)
        yield value.toarray()
        yield value.T.tocoo()
        yield sparse.csr_array((value.shape[0] + 1, value.shape[1]))
        yield sparse.csr_array((3, 2**40))
    yield from (other for other in PLAIN if type(other) is not type(value) or other != value)
    if type(value) is int:
        yield from (value + 1, -value, value * 1000)
    if type(value) is float:
        yield from (value * 5, -value, 1e300, -1e300)
    if isinstance(value, list | tuple) and value:
        yield from (value[:-1], type(value)([*value, value[0]]), type(value)([value[-1]] * len(value)), value[::-1])


def other_arrays(array):
    """Yield arrays of other values, shapes and types."""
    yield array[:0]
    yield np.concatenate([array, array[:1]]) if len(array) else np.zeros(3)
    yield array[:-1]
    yield array.reshape(-1)
    yield array[..., None]
    yield array.T.copy()
    yield np.zeros(())
    yield np.full(array.shape, "word")
    yield np.full(array.shape, np.datetime64("2020-01-01"))
    yield np.full(array.shape, None, dtype=object)
    if array.dtype == object:
        yield from (np.full(array.shape, fill, dtype=object) for fill in ("same", 3, 1.5, "\ud800", (), float("nan")))
        return
    if array.dtype.kind not in "biuf":
        return
    yield np.zeros_like(array)
    yield np.full(array.shape, 10**6)
    yield np.full(array.shape, -1)
    yield from (array * 5, -array.astype(np.float64), array.astype(complex), array.astype(np.float16), array > 0)
    yield from (array.astype(np.uint8), array.astype(np.float32), array.astype(">f8"), array.astype(np.int64))
    if array.dtype.kind == "f":
        for fill in (np.nan, np.inf, 1e308, -1e308, 1e-320):
            yield np.full_like(array, fill)
            if array.size:
                once = array.copy()
                once.flat[0] = fill
                yield once


def forgeries(model, depth=5):
    """Yield the name of a place and a forged model, for every stored value and every other value."""
    for name in vars(model):
        yield f"{name} removed", without(model, name)
        for where, other in replaced(getattr(model, name), name, depth):
            forged = copy.copy(model)
            forged.__dict__[name] = other
            yield where, forged


def without(model, name):
    forged = copy.copy(model)
    del forged.__dict__[name]
    return forged


def replaced(value, where, depth):
    for number, other in enumerate(others(value)):
        yield f"{where} #{number}: {described(other)}", other
    if depth:
        for name in parts_of(value):
            for inner, other in replaced(part(value, name), f"{where}.{name}", depth - 1):
                yield inner, with_part(value, name, other)


def forged_file(model, original):
    """Return a file of a forged model, with all checksums right, or None if it cannot be encoded."""
    encoder = Encoder()
    try:
        attributes = {name: encoder.encode(value, name) for name, value in vars(model).items()}
    except Exception:
        return None
    try:
        summary = summarise(model)
    except Exception:
        summary = summarise(original)
    try:
        return b"".join(pieces({"model": asdict(summary)}, encoder.to_blocks({"attributes": attributes})))
    except (TypeError, ValueError):  # no JSON
        return None
