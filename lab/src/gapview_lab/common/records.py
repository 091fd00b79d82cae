"""Store results on disk as soon as a run is done, so that finished runs are never repeated."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path
from typing import Any, Generic, Protocol, TextIO, TypeVar

from gapview.errors import DataFileError
from gapview.utils.storage import write_whole

__all__ = ["AnyRecord", "RecordStore"]


class AnyRecord(Protocol):
    """The attributes that a store needs of a record: a frozen dataclass of texts and numbers."""

    @property
    def version(self) -> str:
        """Version of gapview that made it."""

    @property
    def seconds(self) -> float:
        """Time it took; NaN if that was not measured."""

    @property
    def task(self) -> Any:
        """The run that it belongs to."""


R = TypeVar("R", bound=AnyRecord)


class RecordStore(Generic[R]):
    """A CSV file of records that grows by whole lines; a truncated last line is dropped.

    Only records of the same version of gapview count as done. Columns in ``added`` may be absent from older files: they
    get the default of the record, and the file is written anew with them.
    """

    def __init__(self, path: Path, version: str, kind: type[R], added: tuple[str, ...] = ()) -> None:
        self._path, self._version, self._kind, self._added = path, version, kind, added
        columns: Any = fields(kind)  # type: ignore[arg-type]
        self._header = [field.name for field in columns]
        self._readers = {field.name: {"float": float, "int": int}.get(str(field.type), str) for field in columns}
        self.records: list[R] = self._read() if path.exists() else []

    def done(self) -> set[Any]:
        """Return the runs whose results are here."""
        return {record.task for record in self.records}

    def add(self, records: Iterable[R]) -> None:
        """Append the records of one run, on disk when this returns."""
        new = list(records)
        try:
            is_new = not self._path.exists() or self._path.stat().st_size == 0
            with self._path.open("a", newline="", encoding="utf-8") as stream:
                self._write(stream, new, is_new)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise DataFileError(
                f"Cannot write {str(self._path)!r}: {error.strerror}. What was there is kept."
            ) from None
        self.records += new

    def _write(self, stream: TextIO, records: Iterable[R], with_header: bool) -> None:
        writer = csv.DictWriter(stream, self._header, lineterminator="\n")
        if with_header:
            writer.writeheader()
        writer.writerows(asdict(record) for record in records)  # type: ignore[call-overload]

    def _read(self) -> list[R]:
        try:
            text = self._path.read_text(encoding="utf-8")
            whole = text[: text.rfind("\n") + 1]  # a run that was cut off may have left half a line
            reader = csv.DictReader(whole.splitlines())
            columns = list(reader.fieldnames or self._header)
            if columns not in (self._header, [name for name in self._header if name not in self._added]):
                raise ValueError("its columns differ")
            found = [self._kind(**{name: self._readers[name](value) for name, value in row.items()}) for row in reader]
            if columns != self._header:
                rewritten = StringIO()
                self._write(rewritten, found, True)
                write_whole(self._path, rewritten.getvalue().encode())
            elif whole != text:
                self._path.write_text(whole, encoding="utf-8")
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise self._unreadable(error) from None
        return [record for record in found if record.version == self._version]

    def _unreadable(self, error: Exception) -> DataFileError:
        return DataFileError(
            f"{str(self._path)!r} is not a file of results of this version of gapview: {error}. "
            "Move it away, or give another folder with --output."
        )
