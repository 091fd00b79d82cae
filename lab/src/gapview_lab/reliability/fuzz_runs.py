"""Run inputs in processes that may crash, hang or use too much memory, and report the outcome of each."""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from gapview.errors import GapviewError, GapviewWarning
from gapview.io import LIMITS, reading_with

from .fuzz_seeds import CANARY
from .fuzz_targets import TARGETS, case_of

__all__ = ["ReadOutcome", "outcomes"]

TIME_LIMIT = 20.0  # seconds for one input, on a machine that may have other work
MEMORY_LIMIT = 300 * 2**10  # kilobytes by which one input may make a process grow, with the limits below
_IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # waiting for a disk is most of the time otherwise
_ADDRESS_SPACE = 8 * 2**30
_MEMORY = " MB of memory"
_CHUNK = 500  # inputs that share a process
# Smaller than those that hold for users, so that what a file makes us ask for shows
_SMALL = replace(LIMITS, size=2**24, line=2**18, columns=5000, cells=2**20, head=2**14, memory=2**31, seconds=4)


@dataclass(frozen=True)
class ReadOutcome:
    """Outcome of one input: ``accepted``, ``refused``, ``contained`` (by a reading process) or ``defect``."""

    index: int
    kind: str
    said: str
    seconds: float


def outcomes(target: str, count: int, seed: int) -> Iterator[ReadOutcome]:
    """Yield the outcome of every input of a target."""
    index = 0
    while index < count:
        end = min(count, index + _CHUNK)
        for found in _forked(target, index, end, seed, apart=False):
            if found.kind == "lost" or found.said.endswith(_MEMORY):
                found = _again_apart(target, found, seed)
            yield found
            index = found.index + 1


def _again_apart(target: str, lost: ReadOutcome, seed: int) -> ReadOutcome:
    """Repeat inputs that ended their process or made it grow, with the library in a process of its own."""
    again = next(_forked(target, lost.index, lost.index + 1, seed, apart=True))
    if again.kind in ("refused", "accepted"):
        return replace(again, kind="contained", said=lost.said)
    return replace(again, kind="defect", said=f"{lost.said}; {again.said}")


def _forked(target: str, start: int, end: int, seed: int, *, apart: bool) -> Iterator[ReadOutcome]:
    """Run inputs in a new process; the last outcome is ``lost`` if the process did not survive it."""
    base = Path(tempfile.mkdtemp(prefix="gapview-fuzz-", dir=_IN_MEMORY))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _work(target, range(start, end), seed, apart, base, writing)
    os.close(writing)
    following, pending, silent = start, b"", False
    try:
        while following < end and not silent:
            silent = not select.select([reading], [], [], 2 * TIME_LIMIT if apart else TIME_LIMIT)[0]
            part = b"" if silent else os.read(reading, 2**16)
            if not part:
                break
            *lines, pending = (pending + part).split(b"\n")
            for line in lines:
                yield ReadOutcome(*json.loads(line))
                following += 1
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(reading)
        shutil.rmtree(base, ignore_errors=True)  # here, since a process that crashes leaves it behind
    if following < end and (silent or status):
        how = f"no answer within {TIME_LIMIT:g} seconds" if silent else f"ended by {_signal(status)}"
        yield ReadOutcome(following, "lost", how, TIME_LIMIT)


def _signal(status: int) -> str:
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"code {status >> 8}"


def _work(target: str, indices: range, seed: int, apart: bool, base: Path, pipe: int) -> None:
    """Do the work of a process, and end it."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the libraries complain of every damaged file
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
        os.chdir(base)
        # In this process, unless asked otherwise: crashes must show, and a process for each input takes long
        with reading_with(_SMALL, own_process=apart):
            for index in indices:
                found = _outcome(target, index, seed, base)
                os.write(pipe, json.dumps([found.index, found.kind, found.said, found.seconds]).encode() + b"\n")
                if found.said.endswith(_MEMORY):  # the peak of a process never falls
                    break
        code = 0
    finally:
        os._exit(code)


def _outcome(target: str, index: int, seed: int, base: Path) -> ReadOutcome:
    case = case_of(target, index, seed)
    folder, out = base / "in", base / "out"
    for place in (folder, out):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    before = _peak()
    begin = perf_counter()
    kind, said = "accepted", ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            TARGETS[target].run(case, folder, out)
        except GapviewError as error:
            kind, said = "refused", type(error).__name__
        except BaseException as error:
            kind, said = "defect", _told(error)
    seconds = perf_counter() - begin
    strange = [warning for warning in caught if not issubclass(warning.category, GapviewWarning)]
    if (base / CANARY).exists():
        kind, said = "defect", "code in a file was run"
        (base / CANARY).unlink()
    elif sorted(os.listdir(base)) != ["in", "out"] or sorted(os.listdir(folder)) != sorted(case.files):
        kind, said = "defect", "a file was written outside the folder for results"
    elif kind != "defect" and strange:
        kind, said = "defect", f"{strange[0].category.__name__}: {strange[0].message}"
    elif _peak() - before > MEMORY_LIMIT:
        kind, said = "defect", f"{(_peak() - before) // 2**10}{_MEMORY}"
    return ReadOutcome(index, kind, said, seconds)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _told(error: BaseException) -> str:
    place = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in place if f"{os.sep}gapview{os.sep}" in frame.filename]
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} in {where}: {' '.join(str(error).split())[:200]}"
