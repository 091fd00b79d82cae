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
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import DataFileError, MissingExtraError
from ..utils.packing import Decoder, demand, from_json
from ..utils.refusals import BYTES_PER_CELL
from ..utils.types import Array
from . import reader
from ._sources import READING, damaged, demand_size, reporting_damage

PROGRAM = Path(reader.__file__)
_MOST_TEXT = 2**30


def demand_package(module: str, package_extra: str, purpose: str) -> None:
    """Raise an error unless an optional package is installed, without importing it."""
    if find_spec(module) is None:
        raise MissingExtraError(module, package_extra, purpose)


def read_isolated(file: Path, kind: str, what: str, wanted: Sequence[str] | None = None, **more: Any) -> Any:
    """Read a file in a process of its own; return plain values, arrays and sparse matrices.

    If that process crashes, hangs or exhausts its memory, the file is reported as damaged.

    Parameters
    ----------
    file : Path
        The file.
    kind : {"mat", "mat73", "feather", "h5ad", "h5mu", "10x", "10x_folder", "workbook", "r"}
        Its format.
    what : str
        The format in words, for messages.
    wanted : sequence of str, optional
        Columns of obs that may hold the sample ids; the first that exists is read.
    **more
        What the function for the format needs beside that.
    """
    limits = READING.limits
    seconds = math.ceil(limits.seconds * (1 + file.stat().st_size / 2**28))
    request: dict[str, Any] = {"kind": kind, "file": os.path.abspath(file), "wanted": list(wanted or []), **more}
    request |= {"cells": limits.cells, "memory": limits.memory, "seconds": seconds}
    request |= {"size": limits.size, "columns": limits.columns}
    if READING.own_process:
        answer = _run(file, what, json.dumps(request | {"is_own_process": True}), seconds)
    else:
        reader.write_answer(request, sink := io.BytesIO())
        sink.seek(0)
        with reporting_damage(file, what):
            answer = receive(sink, file)
    if isinstance(refused := answer.get("refused"), str):
        raise DataFileError(refused)
    if isinstance(failed := answer.get("failed"), str):
        raise damaged(file, what, failed)
    return answer["value"]


def _run(file: Path, what: str, request: str, seconds: int) -> dict[str, Any]:
    search = os.pathsep.join(os.path.abspath(place) for place in sys.path)
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM), request],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": search},
        )
    except OSError as error:
        raise DataFileError(
            f"{file.name!r} cannot be read: no process could be started for it ({error.strerror}). Free some memory, "
            "or try again."
        ) from None
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    with process:
        try:
            with reporting_damage(file, what):
                return receive(process.stdout, file)
        except _Ended:
            raise _ended(file, what, process.wait(), seconds) from None
        finally:
            timer.cancel()
            process.kill()


class _Ended(BaseException):
    """The process ended before its answer was complete; not an Exception, which ``reporting_damage`` would catch."""


def _ended(file: Path, what: str, code: int, seconds: int) -> DataFileError:
    if code in (-9, -24):  # killed by the timer, or by the system for its time
        cause = f"that takes more than {seconds:,} seconds, or more memory than there is"
    elif code == -6:  # aborted, as programs in Rust do when memory is refused
        cause = (
            "it takes far more memory than its size allows, or is damaged; a sheet may have cells far from its table"
        )
    elif code < 0:
        cause = f"the library that reads it crashed (signal {-code}), so the file is damaged"
    else:
        cause = f"the process that reads it ended with code {code}"
    return damaged(file, what, cause)


def receive(stream: Any, file: Path) -> dict[str, Any]:
    """Read an answer from the reading process and check all of it, since a damaged file may have produced it."""
    (length,) = struct.unpack("<Q", _read_bytes(stream, 8).tobytes())
    demand_size(file, length, "bytes of names and text", _MOST_TEXT)
    content = from_json(_read_bytes(stream, length))
    blocks: list[Array] = []
    total = 0
    for length in content["lengths"]:
        total += length
        demand_size(file, total, "bytes of numbers", BYTES_PER_CELL * READING.limits.cells)
        blocks.append(_read_bytes(stream, length))
    decoder = Decoder(content["arrays"], blocks, content["objects"])
    return {name: decoder.decode(value) for name, value in content["answer"].items()}


def _read_bytes(stream: BinaryIO, length: int) -> Array:
    demand(length >= 0, f"a part of {length} bytes")
    block = np.empty(length, dtype=np.uint8)
    if stream.readinto(block) < length:  # type: ignore[attr-defined]
        raise _Ended
    return block
