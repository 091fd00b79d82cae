"""Results on disk, a line as soon as a run is done, so that nothing finished is ever done again."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

from ..errors import DataFileError
from ._methods import read_setting
from ._tasks import Record, Task

__all__ = ["Store"]

_HEADER = [field.name for field in fields(Record)]
_NUMBERS = {field.name: {"float": float, "int": int}.get(str(field.type), str) for field in fields(Record)}


class Store:
    """A CSV file of records that grows by whole lines and survives being cut off in the middle of one.

    Only records of the same version of gapview count as done.
    """

    def __init__(self, path: Path, version: str) -> None:
        self._path = path
        self._version = version
        self.records: list[Record] = []
        if path.exists():
            self.records = _whole_runs(self._read())

    def done(self) -> set[Task]:
        """Return the runs whose results are here."""
        return {record.task for record in self.records}

    def add(self, records: Iterable[Record]) -> None:
        """Append the records of one run, on disk when this returns."""
        new = list(records)
        try:
            is_new = not self._path.exists() or self._path.stat().st_size == 0
            with self._path.open("a", newline="", encoding="utf-8") as stream:
                writer = csv.DictWriter(stream, _HEADER, lineterminator="\n")
                if is_new:
                    writer.writeheader()
                writer.writerows(asdict(record) for record in new)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise DataFileError(
                f"Cannot write {str(self._path)!r}: {error.strerror}. What was there is kept."
            ) from None
        self.records += new

    def _read(self) -> list[Record]:
        try:
            text = self._path.read_text(encoding="utf-8")
            whole = text[: text.rfind("\n") + 1]  # a run that was cut off may have left half a line
            reader = csv.DictReader(whole.splitlines())
            if reader.fieldnames is not None and list(reader.fieldnames) != _HEADER:
                raise ValueError("its columns differ")
            found = [Record(**{name: _NUMBERS[name](value) for name, value in row.items()}) for row in reader]
            if whole != text:
                self._path.write_text(whole, encoding="utf-8")
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataFileError(
                f"{str(self._path)!r} is not a file of results of this version of gapview: {error}. "
                "Move it away, or give another folder with --output."
            ) from None
        return [record for record in found if record.version == self._version]


def _whole_runs(records: list[Record]) -> list[Record]:
    """Leave out runs of many records that were cut off: Figure 5 has one for every iteration."""
    last: dict[Task, int] = {}
    for record in records:
        last[record.task] = max(last.get(record.task, 0), record.iteration)

    def is_whole(record: Record) -> bool:
        if record.experiment != "figure5" or record.status != "done":
            return True
        return bool(last[record.task] == read_setting(record.setting)["max_iter"])

    return [record for record in records if is_whole(record)]
