"""Results on disk: a folder that is there whole or not at all, and files that are not written over by accident."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import DataFileError, some
from ..utils.storage import lock_folder, sync_folder
from ._stopping import undisturbed

__all__ = ["RECORD", "demand_new_file", "read_record", "results_folder"]

RECORD = "run.json"  # names, under "results", the files that were written with it
_OF_THE_SYSTEM = {".DS_Store", "Thumbs.db", "desktop.ini"}
_STAGED = r"\.{name}\.[0-9a-f]{{12}}"  # results that are being written
_REPLACED = _STAGED + r"\.old"  # results that are being replaced


@contextmanager
def results_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a folder to write results into, which becomes ``path`` at the end and vanishes if anything goes wrong.

    A folder with something in it is refused. With ``force`` results of gapview are replaced, all of them together and
    once the new ones are complete; a folder that holds anything else is still refused.
    """
    try:
        target = path.resolve()  # beside a link, there may be no room for the folder that it leads to
    except (OSError, RuntimeError) as error:
        raise DataFileError(f"{str(path)!r} cannot be a folder for the results: {error}.") from None
    _mend(target)
    filled = _demand_replaceable(path, target, force)
    empty = os.path.isdir(target) and not filled
    made = [folder for folder in (target.parent, *target.parent.parents) if not os.path.exists(folder)]
    # An empty folder may be one that cannot be replaced, such as a mounted disk: it is filled from within
    staging = (target if empty else target.parent) / f".{target.name}.{secrets.token_hex(6)}"
    lock = None
    try:
        lock = _make(staging, path, target.parent)
        yield staging
        with _alone(target.parent), undisturbed():
            _put_in_place(staging, target, empty=empty, filled=filled)
    except BaseException:
        with undisturbed():
            shutil.rmtree(staging, ignore_errors=True)
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()
        raise
    finally:
        if lock is not None:
            os.close(lock)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other command puts results into a folder."""
    try:
        lock = lock_folder(folder, wait=True)
    except OSError:  # it may not be read; then results are put there as well as that goes
        lock = None
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _mend(target: Path) -> None:
    """Clear up after a command that was ended without warning (kill -9, a power cut): what it left is locked no more.

    If it was about to replace results, the old ones may be all there is; then they are put back.
    """
    name = re.escape(target.name)
    with suppress(OSError), _alone(target.parent):
        for folder in (target.parent, target):
            left = [item for item in folder.iterdir() if item.is_dir()] if folder.is_dir() else []
            for item in left:
                if re.fullmatch(_REPLACED.format(name=name), item.name) and not os.path.lexists(target):
                    item.rename(target)
                elif re.fullmatch(f"{_STAGED}|{_REPLACED}".format(name=name), item.name):
                    with suppress(BlockingIOError):
                        _remove_unless_locked(item)


def _remove_unless_locked(folder: Path) -> None:
    lock = lock_folder(folder)
    if lock is not None:  # where there are no locks, nobody can tell
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _make(staging: Path, path: Path, parent: Path) -> int | None:
    """Make the folder to write into, and lock it, so that others know it is in use."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _alone(parent):
            staging.mkdir()
            return lock_folder(staging)
    except OSError as error:
        raise DataFileError(
            f"Cannot make the folder {str(path)!r}: {error.strerror}. Choose another folder for the results."
        ) from None


def _demand_replaceable(path: Path, target: Path, force: bool) -> bool:
    """Tell whether there are results to be replaced; refuse everything that must not be."""
    if not os.path.exists(target):
        return False
    try:
        there = sorted(item.name for item in target.iterdir() if item.name not in _OF_THE_SYSTEM)
    except OSError as error:
        raise DataFileError(f"{str(path)!r} cannot be a folder for the results: {error.strerror}.") from None
    if not there:
        return False
    others = [name for name in there if name not in _results_in(target)]
    if others:
        raise DataFileError(
            f"The folder {str(path)!r} holds something else than results of gapview, {some(others)}, and is left as it "
            "is. Choose another folder for the results."
        )
    if not force:
        raise DataFileError(
            f"The folder {str(path)!r} holds results already. Choose another folder, or replace them with --force."
        )
    if target == Path.cwd():
        raise DataFileError(
            f"The folder {str(path)!r} is the one you are in, and cannot be replaced from within. Go to another one, "
            "or choose another folder for the results."
        )
    return True


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record in a folder; an empty one if there is none that can be read."""
    try:
        found = json.loads((folder / RECORD).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _results_in(folder: Path) -> set[str]:
    """Return the names of the files that the record in a folder speaks of."""
    listed = read_record(folder).get("results")
    return {RECORD, *(name for name in listed if isinstance(name, str))} if isinstance(listed, list) else set()


def _put_in_place(staging: Path, target: Path, *, empty: bool, filled: bool) -> None:
    try:
        if empty:
            _move_up(staging, target)
        elif filled:
            _swap(staging, target)
        else:
            staging.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise DataFileError(
            f"The results cannot be put into {str(target)!r}: {error.strerror}. What was there is untouched."
        ) from None


def _move_up(staging: Path, target: Path) -> None:
    moved: list[Path] = []
    there = {item.name for item in target.iterdir()} - _OF_THE_SYSTEM
    if [name for name in there if not re.fullmatch(_STAGED.format(name=re.escape(target.name)), name)]:
        raise FileExistsError(errno.EEXIST, "another command has put something there meanwhile")
    try:
        for file in sorted(staging.iterdir()):
            moved.append(file.rename(target / file.name))
        staging.rmdir()
    except OSError:
        for file in moved:
            file.unlink(missing_ok=True)
        raise


def _swap(staging: Path, target: Path) -> None:
    """Put the new folder where the old one is; if that fails, the old one is put back."""
    old = target.parent / f".{target.name}.{secrets.token_hex(6)}.old"
    target.rename(old)
    try:
        staging.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def demand_new_file(path: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Refuse a file that is there already, unless it is to be replaced; never write over what is read."""
    there = os.path.exists(path)  # the method of a path fails where a folder may not be looked into
    if there and any(os.path.exists(other) and path.samefile(other) for other in inputs):
        raise DataFileError(f"{str(path)!r} is one of the files to read. Give another name for the result.")
    if there and not force:
        raise DataFileError(f"The file {str(path)!r} is there already. Choose another, or replace it with --force.")
