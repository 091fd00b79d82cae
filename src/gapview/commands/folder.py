"""Results on disk: folders that are written completely or not at all, and checks against overwriting."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import DataFileError, some
from ..utils.storage import lock_folder, sync_folder
from .interruption import signals_ignored

RECORD = "run.json"  # lists, under "results", the files that were written with it
_OF_THE_SYSTEM = {".DS_Store", "Thumbs.db", "desktop.ini"}
_STAGED = r"\.{name}\.[0-9a-f]{{12}}"  # results that are being written
_REPLACED = _STAGED + r"\.old"  # results that are being replaced


@contextmanager
def results_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder for results, which is renamed to ``path`` at the end and removed on an error.

    A folder that is not empty is an error. With ``force`` results of gapview are replaced, all of them together and
    when the new ones are complete; a folder that holds anything else is still an error.
    """
    try:
        target = path.resolve()  # results are written beside the target of a link, on the same disk
    except (OSError, RuntimeError) as error:
        raise DataFileError(f"{str(path)!r} cannot be a folder for the results: {error}.") from None
    _remove_leftovers(target)
    filled = _check_replaceable(path, target, force)
    empty = os.path.isdir(target) and not filled
    made = [folder for folder in (target.parent, *target.parent.parents) if not os.path.exists(folder)]
    # An empty folder may be impossible to replace, such as a mounted disk: results are written inside it
    staging = (target if empty else target.parent) / f".{target.name}.{secrets.token_hex(6)}"
    with ExitStack() as in_use:
        try:
            _make(staging, path, target.parent, in_use)
            yield staging
            with _locked(target.parent), signals_ignored():
                put_in_place(staging, target, empty=empty, filled=filled)
        except BaseException:
            with signals_ignored():
                shutil.rmtree(staging, ignore_errors=True)
                for folder in made:
                    with suppress(OSError):
                        folder.rmdir()
            raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other command has locked a folder, and lock it."""
    lock = None
    with suppress(OSError):  # not readable: results are moved without a lock
        lock = lock_folder(folder, wait=True)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary folders of commands that were killed: they are not locked any more.

    If a command was killed while it replaced results and only the old ones are left, these are restored.
    """
    name = re.escape(target.name)
    with suppress(OSError), _locked(target.parent):
        for folder in (target.parent, target):
            left = [item for item in folder.iterdir() if item.is_dir()] if folder.is_dir() else []
            for item in left:
                if re.fullmatch(_REPLACED.format(name=name), item.name) and not os.path.lexists(target):
                    item.rename(target)
                elif re.fullmatch(f"{_STAGED}|{_REPLACED}".format(name=name), item.name):
                    with suppress(BlockingIOError):
                        lock = lock_folder(item)
                        if lock is not None:  # without locks it may be in use
                            shutil.rmtree(item, ignore_errors=True)
                            os.close(lock)


def _make(staging: Path, path: Path, parent: Path, in_use: ExitStack) -> None:
    """Make the folder to write into, and lock it, which marks it as in use."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _locked(parent):
            staging.mkdir()
            in_use.enter_context(_locked(staging))
    except OSError as error:
        raise DataFileError(
            f"Cannot make the folder {str(path)!r}: {error.strerror}. Choose another folder for the results."
        ) from None


def _check_replaceable(path: Path, target: Path, force: bool) -> bool:
    """Return whether there are results to be replaced; raise an error for a folder that must not be."""
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
    """Return the record in a folder; an empty one if it is missing or damaged."""
    try:
        found = json.loads((folder / RECORD).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _results_in(folder: Path) -> set[str]:
    """Return the names of the files that the record in a folder lists."""
    listed = read_record(folder).get("results")
    return {RECORD, *(name for name in listed if isinstance(name, str))} if isinstance(listed, list) else set()


def put_in_place(staging: Path, target: Path, *, empty: bool, filled: bool) -> None:
    """Move complete results to their folder, which is empty, filled with results, or missing."""
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
    """Replace the old folder by the new one; restore the old one on an error."""
    old = target.parent / f".{target.name}.{secrets.token_hex(6)}.old"
    target.rename(old)
    try:
        staging.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_new_file(path: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Raise an error if a file exists, unless ``force``, or if it is one of the inputs."""
    there = os.path.exists(path)  # Path.exists raises for folders without permission
    if there and any(os.path.exists(other) and path.samefile(other) for other in inputs):
        raise DataFileError(f"{str(path)!r} is one of the files to read. Give another name for the result.")
    if there and not force:
        raise DataFileError(f"The file {str(path)!r} is there already. Choose another, or replace it with --force.")
