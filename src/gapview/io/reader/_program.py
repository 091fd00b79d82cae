"""The program itself: a request in JSON comes in, an answer goes out, and the process ends."""

from __future__ import annotations

import json
import os
import sys
import warnings
from importlib import import_module
from typing import Any, BinaryIO

from ._values import Outgoing
from ._words import Refused

__all__ = ["answer_to", "main", "send"]


def main() -> None:
    """Read one file, within the limits of memory and time that the request states."""
    # What a library prints must not get between the values
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.read())
    _limit(request["memory"], request["seconds"])
    send(request, out)


def send(request: dict[str, Any], out: BinaryIO) -> None:
    try:
        answer = answer_to(request)
    except Refused as refusal:
        answer = {"refused": str(refusal)}
    except Exception as error:  # any of the layers can break: compression, headers, sizes, text
        answer = {"failed": f"{type(error).__name__}: {error}"[:2000]}
    try:
        Outgoing().write(answer, out)
    except (ValueError, MemoryError, RecursionError) as error:  # nothing is written before all is encoded
        Outgoing().write({"failed": f"{type(error).__name__}: {error}"[:2000]}, out)


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the time is still kept, from outside
        return
    for what, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        _, most = resource.getrlimit(what)
        allowed = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(what, (allowed, allowed))


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """Read what is asked for; ``{"value": …}``."""
    kind, file, name, cells = (request[key] for key in ("kind", "file", "name", "cells"))
    if kind == "mat":
        return {"value": _read_mat(file)}
    if kind == "feather":
        return {"value": _read_feather(file)}
    from ._hdf5 import read_mat73, read_omics

    if kind == "mat73":
        return {"value": read_mat73(file, name, cells)}
    return {"value": read_omics(file, name, cells, several=kind == "h5mu", wanted=request["wanted"])}


def _read_mat(file: str) -> dict[str, Any]:
    from scipy.io import loadmat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of variables that come twice: the last one counts
        return {key: value for key, value in loadmat(file).items() if not key.startswith("__")}


def _read_feather(file: str) -> Any:
    """Read a Feather file of the first version, and write it anew in the form of the second."""
    import numpy as np

    pyarrow, feather = import_module("pyarrow"), import_module("pyarrow.feather")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the age of the format
        table = feather.read_table(file, memory_map=False)
    table.validate(full=True)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)
