"""Writing a completed view in the format of the file it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, InputError, InputTypeError, some
from ..utils.names import free_name
from ..utils.storage import write_whole
from ..utils.types import Array
from ._sources import suffix_of
from ._view_file import ViewFile
from ._writers import WRITERS

__all__ = ["WrittenView", "write_like"]


@dataclass(frozen=True)
class WrittenView:
    """What was written, and under which names the extra columns stand.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gapview.io import WrittenView
    >>> WrittenView(Path("full.csv"), {"recovered": "recovered_2"}).extra_columns["recovered"]
    'recovered_2'
    """

    path: Path  # the file
    extra_columns: dict[str, str]  # name asked for: name in the file
    notes: tuple[str, ...] = ()  # what could not be written as it was read


def write_like(view: ViewFile, frame: Any, path: Any, extra_columns: Mapping[str, Any] | None = None) -> WrittenView:
    r"""Write a frame of numbers in the format of the file that a view was read from, whole or not at all.

    Separator, decimal mark, encoding, compression, header and the place of the ids are those of the file. Numbers are
    written with as few digits as read back the same. Columns of the file that are no numbers are not written.

    Parameters
    ----------
    view : ViewFile
        What the file was read into.
    frame : pandas.DataFrame
        The numbers to write: the columns of the view, for any samples.
    path : str or path
        The file to write. Its name must end as that of the view's file, ``view.format.suffix``.
    extra_columns : mapping of str to array-like, optional
        Further columns behind the others, one value for each row: for instance ``{"recovered": rows}``, with True for
        the rows that are no measurements. True and False are written as 1 and 0. A name that is taken gets a number.
        In ``.npy`` they are the last columns; in ``.npz`` and ``.mat`` arrays of their own, in ``.h5ad`` and ``.h5mu``
        columns of ``obs``.

    Returns
    -------
    WrittenView

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_view, write_like
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "blood.csv"
    ...     _ = path.write_text("id;iron\ns1;1,50\ns2;2\n")
    ...     blood = read_view(path)
    ...     written = write_like(blood, blood.frame, path.with_name("full.csv"), {"recovered": [False, True]})
    ...     print(written.path.read_text())
    id;iron;recovered
    s1;1,5;0
    s2;2;1
    <BLANKLINE>
    """
    file = Path(path)
    if suffix_of(file) != view.format.suffix:
        raise DataFileError(
            f"The view '{view.name}' is written as it was read, so the name of its file must end in "
            f"{view.format.suffix}; got {file.name!r}."
        )
    frame = _checked(view, frame)
    extras, names = _extras(view, frame, extra_columns or {})
    notes: list[str] = []
    content = WRITERS[view.format.kind](view, frame, extras, notes)
    write_whole(file, content)
    return WrittenView(file, names, tuple(notes))


def _checked(view: ViewFile, frame: Any) -> Any:
    if not hasattr(frame, "columns") or not hasattr(frame, "index"):
        raise InputTypeError(f"frame must be a pandas frame; got an object of type {type(frame).__name__}.")
    features = view.frame.columns.tolist()
    if sorted(map(str, frame.columns)) != sorted(features):
        wrong = [name for name in frame.columns if name not in set(features)]
        lacking = [name for name in features if name not in set(frame.columns)]
        raise InputError(
            f"frame must have the {len(features)} columns of the view '{view.name}'; it lacks "
            f"{some(lacking) or 'none'} and has {some(wrong) or 'none'} besides."
        )
    return frame[features]


def _extras(view: ViewFile, frame: Any, wanted: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, str]]:
    """Check the extra columns and find names for them that no other column has."""
    taken = {*map(str, view.format.columns), *map(str, frame.columns), str(view.format.id_name)}
    extras, names = {}, {}
    for name, given in wanted.items():
        values = np.asarray(given)
        if values.shape != (len(frame),):
            raise InputError(
                f"The column {name!r} must have one value for each of the {len(frame)} rows; got {values.shape}."
            )
        names[name] = free_name(str(name), taken)
        taken.add(names[name])
        extras[names[name]] = values.astype(np.int64) if values.dtype == bool else values
    return extras, names
