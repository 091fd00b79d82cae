"""A table as it stands in a file, column by column, before ids and features are told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import some
from ..utils.extras import extra
from ._view_file import SourceFormat
from ._words import is_missing

__all__ = ["Table", "arrow"]


def arrow(part: str = "") -> Any:
    """Import pyarrow, or one of its parts."""
    return extra("pyarrow" + (f".{part}" if part else ""), "tables", "Reading and writing tables")


@dataclass(frozen=True)
class Table:
    """Columns of a file with their types, and where a row stands in the file."""

    file: Path
    names: list[str]  # as they stand in the file: some may be empty or repeat
    columns: list[Any]  # pyarrow arrays
    n_rows: int
    format: SourceFormat
    index: int | None = None  # position of the column that is the index of a pandas frame
    written: Callable[[int], list[Any]] | None = None  # the cells of a column as text, before any conversion
    lines: Callable[[], list[int]] | None = None  # line of the file for every row
    notes: list[str] = field(default_factory=list)

    def cells(self, position: int) -> list[Any]:
        """Return the cells of a column as they are written; text without the white space around it."""
        column = self.columns[position]
        as_it_is = self.written is None or arrow().types.is_string(column.type)
        raw = column.to_pylist() if as_it_is or self.written is None else self.written(position)
        return [_plain(cell) for cell in raw]

    def places(self, rows: Sequence[int]) -> str:
        """Say where some rows stand: ``line(s) 3, 7``, or ``row(s) …`` counted from 1."""
        if self.lines is None:
            return f"row(s) {some([row + 1 for row in rows])}"
        lines = self.lines()
        return f"line(s) {some([lines[row] for row in rows])}"


def _plain(cell: Any) -> Any:
    """Strip text, and give None for what stands for nothing."""
    if not isinstance(cell, str):
        return None if cell is None or cell != cell else cell
    return None if is_missing(cell) else cell.strip()
