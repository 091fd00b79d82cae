"""Reading a file in a process of its own, where damaged bytes can do no harm: see ``reader``."""

from __future__ import annotations

import io
import json
import math
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import DataFileError, MissingExtraError
from ..utils.types import Array
from . import _limits
from ._sources import damaged, demand_size
from .reader._program import send

__all__ = ["demand_package", "read_apart", "reading_with"]

# The packages themselves are not run: with all that they import, reading would begin seconds later
_START = """
import sys, types
for name, folder in {packages!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
sys.path[:] = {path!r}
from gapview.io.reader._program import main
main()
"""
_MOST_TEXT = 2**30
_BYTES_PER_CELL = 16
_AGAIN = "Save it anew, or get it again."
_in_own_process = True


@contextmanager
def reading_with(limits: _limits.Limits, *, own_process: bool = True) -> Iterator[None]:
    """Read files within other limits, and on request in this process; for experiments and tests.

    Parameters
    ----------
    limits : Limits
        The limits in place of ``gapview.io.LIMITS``.
    own_process : bool, default=True
        Read files that can crash a library in a process of its own, as usual; if False, in this one.

    Examples
    --------
    >>> from gapview.io import Limits, reading_with
    >>> with reading_with(Limits(columns=100)):
    ...     pass  # a table of 101 columns is refused
    """
    global _in_own_process
    before = _limits.LIMITS, _in_own_process
    _limits.LIMITS, _in_own_process = limits, own_process
    try:
        yield
    finally:
        _limits.LIMITS, _in_own_process = before


def demand_package(module: str, package_extra: str, purpose: str) -> None:
    """Demand that an optional package is installed, without importing it here."""
    if find_spec(module) is None:
        raise MissingExtraError(module, package_extra, purpose)


def read_apart(file: Path, kind: str, what: str, wanted: Sequence[str] | None = None) -> Any:
    """Read a file, said to be ``what``, in a process of its own; return plain values, arrays and sparse matrices.

    A crash, a hang and a hunger for memory of that process are told as damage of the file.
    """
    limits = _limits.LIMITS
    seconds = math.ceil(limits.seconds * (1 + file.stat().st_size / 2**28))
    request = {
        "kind": kind,
        "file": os.path.abspath(file),
        "name": file.name,
        "cells": limits.cells,
        "wanted": None if wanted is None else list(wanted),
        "memory": limits.memory,
        "seconds": seconds,
    }
    if _in_own_process:
        answer = _answer(file, what, json.dumps(request).encode(), seconds)
    else:
        answer = _answer_here(file, what, request)
    if isinstance(refused := answer.get("refused"), str):
        raise DataFileError(refused)
    if isinstance(failed := answer.get("failed"), str):
        said = " ".join(failed.split())[:300]
        raise DataFileError(f"{file.name!r} cannot be read as {what}: {said}. {_AGAIN}")
    return answer["value"]


def _answer_here(file: Path, what: str, request: dict[str, Any]) -> dict[str, Any]:
    sink = io.BytesIO()
    send(request, sink)
    sink.seek(0)
    with damaged(file, what):
        return _received(sink, file)


def _answer(file: Path, what: str, request: bytes, seconds: int) -> dict[str, Any]:
    ours = Path(__file__).parent
    packages = [("gapview", str(ours.parent)), ("gapview.io", str(ours))]
    program = _START.format(packages=packages, path=[os.path.abspath(place) for place in sys.path])
    quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **quiet},
        )
    except OSError as error:
        raise DataFileError(
            f"{file.name!r} cannot be read: no process could be started for it ({error.strerror}). Free some memory, "
            "or try again."
        ) from None
    late = threading.Timer(seconds, process.kill)
    late.daemon = True
    late.start()
    try:
        with damaged(file, what):
            _ask(process, request)
            return _received(process.stdout, file)
    except _Ended:
        raise _ended(file, what, process.wait(), seconds) from None
    finally:
        late.cancel()
        process.kill()  # nothing more is wanted of it
        for end in (process.stdin, process.stdout):
            with suppress(OSError):
                end.close()  # type: ignore[union-attr]
        process.wait()


class _Ended(BaseException):
    """The process ended before its answer did; no error of a library, which ``damaged`` would tell as one."""


def _ended(file: Path, what: str, code: int, seconds: int) -> DataFileError:
    if code in (-9, -24):  # killed by us, or by the system for its time
        how = f"that takes more than {seconds:,} seconds, or more memory than there is"
    elif code < 0:
        how = f"the library that reads it crashed (signal {-code}), so the file is damaged"
    else:
        how = f"the process that reads it ended with code {code}"
    return DataFileError(f"{file.name!r} cannot be read as {what}: {how}. {_AGAIN}")


def _ask(process: subprocess.Popen[bytes], request: bytes) -> None:
    stream: Any = process.stdin
    try:
        stream.write(request)
        stream.close()
    except BrokenPipeError:
        raise _Ended from None


def _received(stream: Any, file: Path) -> dict[str, Any]:
    """Receive an answer; nothing in it is trusted, since a damaged file may have made it."""
    (length,) = struct.unpack("<Q", _exactly(stream, 8).tobytes())
    demand_size(file, length, "bytes of names and text", _MOST_TEXT)
    content = json.loads(_exactly(stream, length).tobytes())
    arrays: list[Array] = []
    total = 0
    for entry in content["arrays"]:
        total += entry["length"]
        demand_size(file, total, "bytes of numbers", _BYTES_PER_CELL * _limits.LIMITS.cells)
        arrays.append(_unpacked(entry, _exactly(stream, entry["length"])))
    return {name: _decoded(value, arrays) for name, value in content["answer"].items()}


def _exactly(stream: BinaryIO, length: int) -> Array:
    if length < 0:
        raise ValueError(f"a part of {length} bytes")
    block = np.empty(length, dtype=np.uint8)
    view, filled = memoryview(block), 0  # type: ignore[arg-type]
    while filled < length:
        count = stream.readinto(view[filled:])  # type: ignore[attr-defined]
        if not count:
            raise _Ended
        filled += count
    return block


def _unpacked(entry: dict[str, Any], block: Array) -> Array:
    from ..utils.packing import unpacked  # which imports this package

    return unpacked(entry, block)


def _decoded(item: Any, arrays: list[Array]) -> Any:
    if isinstance(item, list):
        return [_decoded(each, arrays) for each in item]
    if not isinstance(item, dict):
        return item
    ((kind, content),) = item.items()
    if kind == "array":
        return arrays[content]
    if kind == "dict":
        return {str(key): _decoded(value, arrays) for key, value in content}
    if kind == "objects":
        return _objects(content[0], [_decoded(each, arrays) for each in content[1]])
    if kind == "sparse":
        from ..utils.packing import sparse_from_parts  # as above

        return sparse_from_parts(content[0], content[1], [_decoded(each, arrays) for each in content[2]])
    raise ValueError(f"a value of the unknown kind {kind!r}")


def _objects(shape: list[int], items: list[Any]) -> Array:
    if math.prod(shape) != len(items):
        raise ValueError(f"an array of shape {shape} has {len(items)} values")
    flat = np.empty(len(items), dtype=object)
    flat[:] = items
    return flat.reshape(shape)
