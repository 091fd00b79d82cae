"""The files that a command reads: which is which view, and what was found in them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataFileError, ParameterError
from ..io import ViewFile, read_views
from ._console import Say

__all__ = ["Inputs", "fingerprint", "read_inputs", "say_notes"]


@dataclass(frozen=True)
class Inputs:
    """Files to read, as they were typed: a path, or the name of a view, an equals sign and a path."""

    arguments: tuple[str, ...]
    id_columns: tuple[str, ...] = ()
    duplicates: str = "raise"

    @property
    def named_paths(self) -> list[tuple[str | None, Path]]:
        """The name that was given to each file, if any, and its path."""
        return [_split(argument) for argument in self.arguments]

    @property
    def paths(self) -> list[Path]:
        """The paths alone."""
        return [path for _, path in self.named_paths]


def _split(argument: str) -> tuple[str | None, Path]:
    name, equals, path = argument.partition("=")
    if not equals or os.path.exists(argument):  # the name of a file may hold an equals sign
        return None, Path(argument)
    if not name or not path:
        raise ParameterError(f"A file is given as its path, or as name=path; got {argument!r}.")
    return name, Path(path)


def read_inputs(inputs: Inputs, *, encode: bool) -> list[tuple[ViewFile, bool]]:
    """Read all views, in the order of the files; with each, whether its name was typed."""
    settings: dict[str, Any] = {
        "id_column": list(inputs.id_columns) or None,
        "encode": encode,
        "duplicates": inputs.duplicates,
    }
    plain = [str(path) for name, path in inputs.named_paths if name is None]
    unnamed = read_views(plain, **settings) if plain else []
    found: list[tuple[ViewFile, bool]] = []
    for name, path in inputs.named_paths:
        if name is None:
            found += [(view, False) for view in unnamed if view.path == path]
        else:
            found += [(view, True) for view in read_views({name: path}, **settings)]
    names = [view.name for view, _ in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataFileError(f"The view '{twice[0]}' is given more than once. Give every view a name of its own.")
    return found


def say_notes(view: ViewFile, say: Say) -> None:
    """Say what was found in a file, below the line of its view."""
    for note in view.notes:
        say("", note)


def fingerprint(path: Path) -> dict[str, Any]:
    """Say what is needed to know a file again: its path as it was given, its size, and the SHA-256 of its bytes."""
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            n_bytes = os.fstat(stream.fileno()).st_size
    except OSError as error:  # it was there a moment ago
        raise DataFileError(
            f"The file {str(path)!r} can no longer be read: {error.strerror}. Put it back, and run the command again."
        ) from None
    return {"path": str(path), "bytes": n_bytes, "sha256": digest}
