"""Frames of pandas and polars as tables: their sample ids, and their columns of numbers."""

from __future__ import annotations

import datetime
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..errors import InputTypeError, some
from ..utils.messages import counted
from ..utils.packing import as_objects
from ..utils.types import Array
from .containers import Container, RawView, as_numbers, demand_distinct_columns, descends, is_missing, is_number_type
from .numerals import is_numeral
from .tables import IdColumn, encoded, own_columns, warn_left_out


def is_frame(view: Any) -> bool:
    """Return whether a view is a frame of pandas or polars."""
    return descends(view, "pandas", "DataFrame") or descends(view, "polars", "DataFrame", "LazyFrame")


def as_frame(name: str, view: Any) -> Frame:
    """Return a frame as a table; a lazy one is collected."""
    if descends(view, "pandas", "DataFrame"):
        demand_distinct_columns(name, view.columns)
        return _PandasFrame(name, view)
    return _PolarsFrame(name, view.collect() if descends(view, "polars", "LazyFrame") else view)


_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Frame:
    """A frame as a table in which the column of sample ids is detected."""

    name: str
    frame: Any
    has_header: ClassVar[bool] = True
    index: ClassVar[int | None] = None

    @property
    def title(self) -> str:
        """The table in a message."""
        return f"view '{self.name}'"

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns; that of the index of a pandas frame is the first."""
        return [str(column) for column in self.frame.columns]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def cells(self, position: int) -> list[Any]:
        """Return the cells of a column: text stripped, None for a missing value."""
        cells = self._cells(position)
        return [None if is_missing(cell) else cell.strip() if isinstance(cell, str) else cell for cell in cells]

    def _cells(self, position: int) -> list[Any]:
        raise NotImplementedError

    def numbers(self, position: int) -> Array | None:
        """Return the values of a column of numbers, or None if some are missing objects or too large."""
        try:
            values = np.asarray(self._values(position).to_numpy())
            return values if values.dtype.kind in "iuf" else values.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            return None

    def _values(self, position: int) -> Any:
        raise NotImplementedError

    @cached_property
    def _kinds(self) -> list[str]:
        return [self._kind(position) for position in range(len(self.names))]

    def kind(self, position: int) -> str:
        """Return whether a column holds text, numbers or anything else."""
        return self._kinds[position]

    def _kind(self, position: int) -> str:
        raise NotImplementedError

    def _ids(self, position: int) -> Array:
        raise NotImplementedError

    def _container(self, ids: IdColumn, features: tuple[Any, ...]) -> Container:
        raise NotImplementedError

    def _numbers(self, positions: Sequence[int]) -> Array:
        """Return columns of numbers as a matrix, in single precision if all of them have it."""
        raise NotImplementedError

    def _numbering(self) -> Array | None:
        return None

    def read(self, ids: IdColumn, drop: Set[str], encode: bool) -> RawView:
        """Read the view: its ids, and its columns of numbers."""
        names = self.names
        own = own_columns(self, [k for k in range(len(names)) if k not in ids.skip])
        skip = ids.skip | own | {k for k, name in enumerate(names) if name in drop} | ({self.index} - {None})
        kept = [k for k in range(len(names)) if k not in skip]
        numeric = [k for k in kept if self.kind(k) == "numbers" and not (encode and self._is_categorical(k))]
        notes = list(ids.notes)
        if own:
            notes.append(f"Left out, since gapview has written it: {some([names[k] for k in sorted(own)])}.")
        columns, values = [self._label(k) for k in numeric], self._numbers(numeric)
        known = set(numeric)
        more, left_out = self._words([k for k in kept if k not in known], encode, notes)
        warn_left_out(self.title, left_out)
        if more:
            values = np.column_stack([values, *more.values()]) if columns else np.column_stack(list(more.values()))
        keys = None if ids.position is None else self._ids(ids.position)
        container = self._container(ids, (*columns, *more))
        label = None if ids.position in (None, self.index) else self._label(ids.position)
        may_be = ids.may_be_row_numbers
        return RawView(self.name, values, keys, container, self._numbering(), label, may_be, tuple(notes))

    def _words(
        self, positions: Sequence[int], encode: bool, notes: list[str]
    ) -> tuple[dict[str, list[float]], dict[str, list[str]]]:
        """Return encoded columns, and the names of the columns that are left out by kind."""
        found: dict[str, list[float]] = {}
        left_out: dict[str, list[str]] = {}
        for position in positions:
            name, cells = self.names[position], self.cells(position)
            _demand_words(self.name, name, cells)
            columns = encoded(name, cells) if encode and self.kind(position) == "text" else None
            if columns is None:
                left_out.setdefault(self._left_out_as(position), []).append(name)
            else:
                found |= columns
                words = [column.removeprefix(name + "=") for column in columns]
                n_columns = counted(len(words), "column")
                notes.append(f"Column '{name}' encoded as {n_columns} of 0 and 1: {some(words, 20)}.")
        return found, left_out

    def _left_out_as(self, position: int) -> str:
        """Return what a column holds that is left out; raise an error unless it is text, dates or times."""
        if self.kind(position) != "other":
            return "of text"
        cells = [cell for cell in self.cells(position) if cell is not None]
        if all(isinstance(cell, _TIMES) or type(cell).__name__ == "Period" for cell in cells):
            return "of dates or times"
        raise InputTypeError(
            f"View '{self.name}' must hold numbers; its column '{self.names[position]}' holds values of type "
            f"{type(cells[0]).__name__}. Turn them into numbers, or leave the column out (drop)."
        )

    def _label(self, position: int) -> Any:
        return self.frame.columns[position]

    def _is_categorical(self, position: int) -> bool:
        return False


def _demand_words(view: str, column: str, cells: Sequence[Any]) -> None:
    """Raise an error if most cells of a column of text are numbers: it was not read as a column of numbers."""
    present = [cell for cell in cells if cell is not None]
    strays = [cell for cell in present if not (isinstance(cell, str) and is_numeral(cell))]
    if present and all(isinstance(cell, str) for cell in present) and 2 * len(strays) < len(present):
        found = f" and these words: {some(dict.fromkeys(strays), 3)}" if strays else ""
        raise InputTypeError(
            f"View '{view}' must hold numbers; its column '{column}' holds numbers as text{found}. Convert it with "
            "pandas.to_numeric, or leave it out (drop)."
        )


class _PandasFrame(Frame):
    index: ClassVar[int | None] = 0  # the index is the first column of the table

    @cached_property
    def names(self) -> list[str]:
        index = self.frame.index.name
        return ["" if index is None else str(index), *map(str, self.frame.columns)]

    def _values(self, position: int) -> Any:
        return self.frame.iloc[:, position - 1] if position else self.frame.index

    def _cells(self, position: int) -> list[Any]:
        return self._values(position).astype(object).tolist()  # type: ignore[no-any-return]

    @cached_property
    def _dtypes(self) -> list[Any]:
        return [self.frame.index.dtype, *self.frame.dtypes]

    def _kind(self, position: int) -> str:
        dtype = self._dtypes[position]
        kind = getattr(dtype, "kind", "O")
        if kind in "iufb":
            return "numbers"
        if kind != "O":
            return "other"
        cells = [cell for cell in self._cells(position) if not is_missing(cell)]
        types = {type(cell) for cell in cells}
        if all(map(is_number_type, types)):
            return "numbers"
        return "text" if all(issubclass(kind, str) or is_number_type(kind) for kind in types) else "other"

    def _ids(self, position: int) -> Array:
        return np.asarray(self._values(position).astype(object).to_numpy())  # dates stay dates

    def _numbering(self) -> Array | None:
        return self._ids(0)

    def _label(self, position: int) -> Any:
        return self.frame.columns[position - 1]

    def _is_categorical(self, position: int) -> bool:
        return str(self._dtypes[position]) == "category"

    def _numbers(self, positions: Sequence[int]) -> Array:
        part = self.frame if len(positions) == self.frame.shape[1] else self.frame.iloc[:, [k - 1 for k in positions]]
        single = len(positions) > 0 and all(dtype == np.float32 or dtype == np.float16 for dtype in part.dtypes)
        try:
            return np.asarray(part.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan))
        except OverflowError:  # of integers beyond float64
            return np.asarray(as_numbers(self.name, part.to_numpy(dtype=object, na_value=None)))

    def _container(self, ids: IdColumn, features: tuple[Any, ...]) -> Container:
        place = self.frame.index.name if not ids.position else self._label(ids.position)
        return Container("pandas", features, place)


class _PolarsFrame(Frame):
    def _values(self, position: int) -> Any:
        series = self.frame.to_series(position)
        return series.cast(float) if str(series.dtype).endswith("128") else series  # NumPy has no such integers

    def _cells(self, position: int) -> list[Any]:
        return self.frame.to_series(position).to_list()  # type: ignore[no-any-return]

    def _kind(self, position: int) -> str:
        dtype = self.frame.schema[self.frame.columns[position]]
        if dtype.is_numeric() or str(dtype) == "Boolean":
            return "numbers"
        return "text" if str(dtype).startswith(("String", "Categorical", "Enum", "Object")) else "other"

    def _ids(self, position: int) -> Array:
        return as_objects(self._cells(position))

    def _numbers(self, positions: Sequence[int]) -> Array:
        table = self.frame[:, list(positions)]
        single = bool(table.columns) and all(str(dtype) == "Float32" for dtype in table.dtypes)
        columns = [table[column].cast(float).fill_null(float("nan")).to_numpy() for column in table.columns]
        values = np.column_stack(columns) if columns else np.empty((self.frame.height, 0))
        return values.astype(np.float32) if single else values

    def _container(self, ids: IdColumn, features: tuple[Any, ...]) -> Container:
        return Container("polars", features, None if ids.position is None else self.frame.columns[ids.position])
