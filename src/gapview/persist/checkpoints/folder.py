"""The folder of a checkpoint: a file with the identity of the fit, and a file for every result."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from ...errors import DataFileError
from ...utils.messages import warn_user
from ...utils.packing import demand, to_json
from ...utils.storage import TEMPORARY, lock_folder, sync_folder, write_whole
from ...views import Views
from ..model_file import check_path, opened, pieces, read_blocks, read_header
from ..registry import Decoder, Encoder
from .identity import differences, identity_of
from .journal import INSIDE, MISSING, Journal, restored_on_error, use_journal

_ENDING = ".part"
_IDENTITY = "fit" + _ENDING


class Checkpoint:
    """The folder of a checkpoint, and what happens to it before and after a fit.

    Parameters
    ----------
    path : str or path
        The folder.
    keep : bool, default=False
        Keep the folder when the fit has ended, until the results are saved elsewhere and :meth:`remove` is called.
    replace : bool, default=False
        Replace a checkpoint of another fit instead of raising an error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.persist.checkpoints import Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Checkpoint(pathlib.Path(folder) / "fit").is_there
    False
    """

    def __init__(self, path: Any, *, keep: bool = False, replace: bool = False) -> None:
        self.path = check_path(path, "checkpoint must be None or the path of a folder")
        self.keep, self.replace = keep, replace
        self.was_opened = False  # whether a fit has started with it

    @property
    def is_there(self) -> bool:
        """Whether the folder holds a checkpoint."""
        return os.path.isfile(self.path / _IDENTITY)

    def damaged_parts(self) -> list[str]:
        """Return the names of its files that cannot be read; unfinished files do not count."""
        damaged = []
        for file in sorted(self.path.glob(f"*{_ENDING}")):
            try:
                _read(file, None)
            except DataFileError:
                damaged.append(file.name)
        return damaged

    def remove(self) -> None:
        """Delete the checkpoint, if there is one."""
        if self.is_there:
            _delete(self.path)


@contextmanager
def recording(checkpoint: Any, model: Any, views: Views) -> Iterator[None]:
    """Record the steps of the fit within in a checkpoint, and resume from the steps recorded there.

    The checkpoint is removed when the fit has ended, and stays if the fit fails or is interrupted. A generator that
    ``model`` draws from is then reset to its state before the fit, so that the same call resumes it.

    Parameters
    ----------
    checkpoint : str, path, Checkpoint or None
        The folder; None records nothing.
    model : estimator
        Its settings must be those of the checkpoint.
    views : Views
        The training data, which must be those of the checkpoint.

    Raises
    ------
    DataFileError
        If the folder cannot be used, or holds the checkpoint of another fit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview import GRMF, Views
    >>> from gapview.persist.checkpoints import checkpointed, recording
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with recording(pathlib.Path(folder) / "fit", GRMF(2), Views([[[0.0], [1.0]]])):
    ...         checkpointed("sum", lambda: 1 + 1)
    2
    """
    if checkpoint is None:
        with use_journal(None):  # a fit inside another one, such as one started by a listener
            yield
        return
    asked = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    with CheckpointFolder(asked, model, views) as folder, restored_on_error(model.random_state):
        asked.was_opened = True
        journal = Journal(folder)
        try:
            with use_journal(journal):
                yield
        except BaseException:
            journal.close()
            raise
        if not asked.keep:
            folder.remove()


class CheckpointFolder:
    """The results of one fit in a folder, which is created with the first result.

    Results that cannot be read or written give a warning, and the fit continues: at worst without a checkpoint.
    """

    def __init__(self, asked: Checkpoint, model: Any, views: Views) -> None:
        self.path = Path(os.path.abspath(asked.path))
        self._shown, self._replace = str(asked.path), asked.replace
        self._identity = identity_of(model, views)
        self._digest = hashlib.sha256(to_json(self._identity)).hexdigest()
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
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def load(self, key: str) -> Any:
        """Return the result saved under a name, or ``MISSING``."""
        file = self._file(key)
        if not self._is_open or not file.exists():
            return MISSING
        try:
            return _read(file, self._digest)
        except DataFileError as error:
            warn_user(f"A part of the checkpoint {self._shown!r} cannot be used, and is computed again: {error}")
            return MISSING

    def save(self, key: str, value: Any) -> None:
        """Save a result under a name, and remove the results of its parts."""
        try:
            if not self._is_open:
                self._create()
            _write(self._file(key), value, self._digest)
            for part in self.path.glob(f"{_file_name(key + INSIDE)}*{_ENDING}"):
                part.unlink(missing_ok=True)
        except OSError as error:  # DataFileError is one
            if not self._has_failed:
                reason = str(error) if isinstance(error, DataFileError) else f"{error.strerror or error}."
                warn_user(
                    f"The checkpoint {self._shown!r} cannot be written: {reason} The fit continues; if it is "
                    "interrupted, everything computed since the last checkpoint is lost."
                )
            self._has_failed = True

    def remove(self) -> None:
        """Delete the folder, if it was created."""
        if self._is_open:
            _delete(self.path)

    def _create(self) -> None:
        self.path.mkdir(exist_ok=True)
        try:
            self._open()
        except BaseException:
            with suppress(OSError):
                self.path.rmdir()  # if it is empty
            raise

    def _open(self) -> None:
        """Lock the folder, and check that it is empty or a checkpoint of this fit."""
        if not os.path.isdir(self.path):
            raise DataFileError(f"{self._shown!r} is no folder, so that it cannot be a checkpoint. Give another name.")
        try:
            self._lock = lock_folder(self.path)
            names = {item.name for item in self.path.iterdir()}
            for name in filter(TEMPORARY.fullmatch, set(names)):  # left by a process that was killed
                (self.path / name).unlink(missing_ok=True)
                names.remove(name)
            if names and not self._is_of_this_fit(names):
                _delete_parts(self.path)
                names = set()
            if not names:
                _write(self.path / _IDENTITY, self._identity, self._digest)
        except BlockingIOError:
            raise DataFileError(
                f"The checkpoint {self._shown!r} is in use by another fit. Wait until that has ended, or give another "
                "folder."
            ) from None
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError) and not isinstance(error, DataFileError):
                raise DataFileError(f"The folder {self._shown!r} cannot be read: {error.strerror}.") from None
            raise
        self._is_open = True

    def _is_of_this_fit(self, names: set[str]) -> bool:
        """Return whether the checkpoint is one of this fit; raise if it is not and must not be replaced."""
        if _IDENTITY not in names or not all(name.endswith(_ENDING) for name in names):
            raise DataFileError(
                f"The folder {self._shown!r} holds something else than a checkpoint, and is left as it is. Give a "
                "folder that is new or empty."
            )
        try:
            found = differences(_read(self.path / _IDENTITY, None), self._identity)
            problem = f"belongs to another fit: {'; '.join(found)}. Repeat that fit to resume it" if found else ""
        except (DataFileError, AttributeError, TypeError, ValueError) as error:
            problem = f"is damaged, so that its fit cannot be identified ({error})"
        if problem and not self._replace:
            advice = "Give another folder, or delete this one to start again."
            raise DataFileError(f"The checkpoint {self._shown!r} {problem}. {advice}")
        return not problem

    def _file(self, key: str) -> Path:
        return self.path / (_file_name(key) + _ENDING)


def _file_name(key: str) -> str:
    return key.replace(" ", "-").replace(INSIDE, "+")


def _delete_parts(path: Path) -> None:
    """Delete the files of a checkpoint, the identity last: until then it remains one."""
    with suppress(OSError):
        for part in sorted(path.glob(f"*{_ENDING}"), key=lambda part: part.name == _IDENTITY):
            part.unlink(missing_ok=True)


def _delete(path: Path) -> None:
    _delete_parts(path)
    with suppress(OSError):
        path.rmdir()
        sync_folder(path.parent)


def _write(file: Path, value: Any, fit_digest: str) -> None:
    encoder = Encoder(with_tensors=True)
    content = encoder.encode(value, "the checkpoint")
    header = {"checkpoint": {"fit": fit_digest, "part": file.name}}
    write_whole(file, pieces(header, encoder.to_blocks({"value": content})))


def _read(file: Path, fit_digest: str | None) -> Any:
    """Read one result; check that it belongs to the fit, if ``fit_digest`` is given."""
    with opened(file) as stream:
        header = read_header(stream)
        about = header.get("checkpoint")
        is_part = isinstance(about, dict) and about.get("part") == file.name
        demand(is_part, "it is no part of a checkpoint, or another one")
        demand(fit_digest is None or header["checkpoint"].get("fit") == fit_digest, "it belongs to another fit")
        decoder, state = Decoder.from_blocks(read_blocks(stream, header))
        return decoder.decode(state["value"])
