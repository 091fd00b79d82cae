"""Keeping a fit: the folder is opened when it starts, and cleared away when it has ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataFileError, InputTypeError
from ...utils.parameters import random_generator
from ...views import Views
from ._journal import Journal, copied, current, journaling, remember

__all__ = ["Checkpoint", "random_numbers", "recording"]


class Checkpoint:
    """A folder for a checkpoint, and how long it is to stay.

    Parameters
    ----------
    path : str or path
        The folder.
    keep : bool, default=False
        Leave it when the fit has ended, for those who still have to bring the results to safety; then call
        :meth:`remove`.
    replace : bool, default=False
        Replace a checkpoint of another fit, instead of refusing it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.persist.checkpoints import Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Checkpoint(pathlib.Path(folder) / "fit").is_there
    False
    """

    def __init__(self, path: Any, *, keep: bool = False, replace: bool = False) -> None:
        if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
            raise InputTypeError(
                f"checkpoint must be None or the path of a folder, as text or a pathlib.Path; got {path!r}."
            )
        if not os.fspath(path) or "\0" in os.fspath(path):
            raise DataFileError(f"No folder can be called {os.fspath(path)!r}.")
        self.path, self.keep, self.replace = Path(path), keep, replace
        self.is_ours = False  # whether a fit has been given it

    @property
    def is_there(self) -> bool:
        """Whether something has been kept."""
        from ._folder import is_checkpoint

        return is_checkpoint(self.path)

    def damaged_parts(self) -> list[str]:
        """Return the names of its files that cannot be read; unfinished files do not count."""
        from ._folder import damaged_parts

        return damaged_parts(self.path)

    def remove(self) -> None:
        """Clear it away, if it is there."""
        from ._folder import clear_away

        if self.is_there:
            clear_away(self.path)


@contextmanager
def recording(checkpoint: Any, model: Any, views: Views) -> Iterator[None]:
    """Keep what is finished within in a checkpoint, and take from there what was finished before.

    It is cleared away at the end, and stays if anything goes wrong.

    Parameters
    ----------
    checkpoint : str, path, Checkpoint or None
        The folder; None keeps nothing.
    model : estimator
        Its settings must be those of the checkpoint.
    views : Views
        The training data, which must be those of the checkpoint.

    Raises
    ------
    DataFileError
        If the folder cannot be used, or is the checkpoint of another fit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview import GRMF, Views
    >>> from gapview.persist.checkpoints import recording, remember
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with recording(pathlib.Path(folder) / "fit", GRMF(2), Views([[[0.0], [1.0]]])):
    ...         remember("sum", lambda: 1 + 1)
    2
    """
    if checkpoint is None:
        with journaling(None):  # a fit within another one, as a listener may make it
            yield
        return
    from ._folder import CheckpointFolder  # which knows all methods, and so cannot be imported before them

    asked = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    with CheckpointFolder(asked, model, views) as folder:
        asked.is_ours = True
        journal = Journal(folder)
        try:
            with journaling(journal):
                yield
        except BaseException:
            journal.close()
            raise
        if not asked.keep:
            folder.remove()


def random_numbers(random_state: Any) -> np.random.RandomState:
    """Return the source of the random numbers of a fit: a fit that goes on draws those that it would have drawn.

    Examples
    --------
    >>> from gapview.persist.checkpoints import random_numbers
    >>> int(random_numbers(0).randint(100))
    44
    """
    generator = random_generator(random_state)
    if current() is None:
        return generator
    if random_state is None:  # not the source that all programs share: going on must not set it back
        return copied(remember("seed", lambda: np.random.RandomState(generator.randint(2**31 - 1))))
    if isinstance(random_state, np.random.RandomState):
        generator.set_state(remember("seed", lambda: copied(generator)).get_state())
    return generator
