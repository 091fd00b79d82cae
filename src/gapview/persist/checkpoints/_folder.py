"""The folder of a checkpoint: a file that says what it belongs to, and a file for every result."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...errors import DataFileError, GapviewWarning
from ...utils.storage import lock_folder, sync_folder, write_whole
from ...utils.warnings import warn_user
from ...views import Views
from ..container import from_json, opened, pieces, read_blocks, read_header, to_json
from ..values import Decoder, Encoder
from ._journal import INSIDE, MISSING
from ._places import grounded, placed
from ._recording import Checkpoint
from .identity import differences, identity_of

__all__ = ["CheckpointFolder", "clear_away", "damaged_parts", "is_checkpoint"]

_ENDING = ".part"
_IDENTITY = "fit" + _ENDING
_HALF_WRITTEN = re.compile(r"\.[\w.+-]+\.part\.[0-9a-f]{12}")  # as storage.write_whole calls them
_START_ANEW = "Give another folder, or delete this one to start anew."


class CheckpointFolder:
    """Where one fit keeps its results; the folder is made when there is something to keep.

    Trouble with reading or writing results is told as a warning, and the fit goes on: at worst without a checkpoint.
    """

    def __init__(self, asked: Checkpoint, model: Any, views: Views) -> None:
        self.path = Path(os.path.abspath(asked.path))
        self._shown, self._replace = str(asked.path), asked.replace
        self._identity = identity_of(model, views)
        self._sum = _sum_of(self._identity)
        self._lock: int | None = None
        self._is_open = self._has_failed = False

    def __enter__(self) -> Self:
        if os.path.lexists(self.path):
            self._open()
        elif not os.path.isdir(self.path.parent) or not os.access(self.path.parent, os.W_OK):
            raise DataFileError(
                f"Cannot make the folder {self._shown!r} for the checkpoint: the folder {str(self.path.parent)!r} is "
                "not there, or may not be written to. Choose another one."
            )
        return self

    def __exit__(self, *error: object) -> None:
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def load(self, key: str) -> Any:
        """Return what was kept under a name, or ``MISSING``."""
        file = self._file(key)
        if not self._is_open or not file.exists():
            return MISSING
        try:
            return placed(_read(file, self._sum))
        except DataFileError as error:
            warn_user(
                f"A part of the checkpoint {self._shown!r} cannot be used, and is computed again: {error}",
                GapviewWarning,
            )
            return MISSING

    def save(self, key: str, value: Any) -> None:
        """Keep something under a name, and let go what was kept of its parts."""
        try:
            if not self._is_open:
                self._make()
            _write(self._file(key), value, self._sum)
            for part in self.path.glob(f"{_slug(key + INSIDE)}*{_ENDING}"):
                part.unlink(missing_ok=True)
        except OSError as error:  # ours for files among them
            if not self._has_failed:
                said = str(error) if isinstance(error, DataFileError) else f"{error.strerror or error}."
                warn_user(
                    f"The checkpoint {self._shown!r} cannot be written: {said} The fit goes on; if it is cut off, what "
                    "was computed since the last checkpoint is lost.",
                    GapviewWarning,
                )
            self._has_failed = True

    def remove(self) -> None:
        """Clear the folder away, if it was made."""
        if self._is_open:
            clear_away(self.path)

    def _make(self) -> None:
        self.path.mkdir(exist_ok=True)
        try:
            self._open()
        except BaseException:
            with suppress(OSError):
                self.path.rmdir()  # if nothing is in it
            raise

    def _open(self) -> None:
        """Take possession of the folder; refuse one that belongs to something else."""
        try:
            self._take()
        except BaseException:
            self._let_go()
            raise

    def _take(self) -> None:
        if not os.path.isdir(self.path):
            raise DataFileError(f"{self._shown!r} is no folder, so that it cannot be a checkpoint. Give another name.")
        try:
            self._lock = lock_folder(self.path)
            there = {item.name for item in self.path.iterdir()}
        except BlockingIOError:
            raise DataFileError(
                f"The checkpoint {self._shown!r} is in use by another fit. Wait until that has ended, or give another "
                "folder."
            ) from None
        except OSError as error:
            raise DataFileError(f"The folder {self._shown!r} cannot be read: {error.strerror}.") from None
        left = {name for name in there if _HALF_WRITTEN.fullmatch(name)}  # by a process that was ended meanwhile
        for name in left:
            (self.path / name).unlink(missing_ok=True)
        if there - left and not self._is_ours(there - left):
            clear_away(self.path, but_the_folder=True)
            there = left
        if not there - left:
            _write(self.path / _IDENTITY, self._identity, self._sum)
        self._is_open = True

    def _is_ours(self, there: set[str]) -> bool:
        """Tell whether the checkpoint is one of this fit; if not, it must be one that may be replaced."""
        if _IDENTITY not in there or not all(name.endswith(_ENDING) for name in there):
            raise DataFileError(
                f"The folder {self._shown!r} holds something else than a checkpoint, and is left as it is. Give a "
                "folder that is new or empty."
            )
        try:
            kept = _read(self.path / _IDENTITY, None)
            found = differences(kept, self._identity)
        except (DataFileError, LookupError, TypeError, ValueError) as error:
            if self._replace:
                return False
            raise DataFileError(
                f"The checkpoint {self._shown!r} is damaged, so that nobody can tell what it belongs to ({error}). "
                f"{_START_ANEW}"
            ) from None
        if found and not self._replace:
            raise DataFileError(
                f"The checkpoint {self._shown!r} belongs to another fit: {'; '.join(found)}. Fit as before to go on. "
                f"{_START_ANEW}"
            )
        return not found

    def _file(self, key: str) -> Path:
        return self.path / (_slug(key) + _ENDING)


def is_checkpoint(path: Path) -> bool:
    """Tell whether there is a checkpoint."""
    return os.path.isfile(path / _IDENTITY)


def damaged_parts(path: Path) -> list[str]:
    """Return the names of the files in a checkpoint that cannot be read; unfinished files do not count."""
    damaged = []
    for file in sorted(path.glob(f"*{_ENDING}")):
        try:
            _read(file, None)
        except DataFileError:
            damaged.append(file.name)
    return damaged


def clear_away(path: Path, *, but_the_folder: bool = False) -> None:
    """Delete a checkpoint; what it belongs to comes last, so that what is left is one at any moment."""
    with suppress(OSError):
        for part in path.glob(f"*{_ENDING}"):
            if part.name != _IDENTITY:
                part.unlink(missing_ok=True)
        (path / _IDENTITY).unlink(missing_ok=True)
        if not but_the_folder:
            path.rmdir()
            sync_folder(path.parent)


def _slug(key: str) -> str:
    return key.replace(" ", "-").replace(INSIDE, "+")


def _sum_of(identity: dict[str, Any]) -> str:
    return hashlib.sha256(to_json(identity)).hexdigest()


def _write(file: Path, value: Any, belongs_to: str) -> None:
    encoder = Encoder()
    content = encoder.encode(grounded(value), "the checkpoint")
    state = to_json({"value": content, "objects": encoder.objects, "arrays": encoder.entries})
    header = {"checkpoint": {"fit": belongs_to, "part": file.name}}
    write_whole(file, pieces(header, [np.frombuffer(state, dtype=np.uint8), *encoder.blocks]))


def _read(file: Path, belongs_to: str | None) -> Any:
    """Read one result; whose it is, is told by its header, if that is to be compared."""
    with opened(file) as stream:
        header = read_header(stream)
        about = header.get("checkpoint")
        if not isinstance(about, dict) or about.get("part") != file.name:
            raise ValueError("it is no part of a checkpoint, or another one")
        if belongs_to is not None and about.get("fit") != belongs_to:
            raise ValueError("it belongs to another fit")
        blocks = read_blocks(stream, header)
        state = from_json(blocks.pop(0))
        return Decoder(state["arrays"], blocks, state["objects"]).decode(state["value"])
