"""The store of the paper's experiments."""

from __future__ import annotations

from pathlib import Path

from ..common.records import RecordStore
from .methods import read_setting
from .tasks import PaperRecord, PaperTask

__all__ = ["PaperStore"]


class PaperStore(RecordStore[PaperRecord]):
    """Records of the paper's experiments; incomplete runs do not count."""

    def __init__(self, path: Path, version: str) -> None:
        super().__init__(path, version, PaperRecord)
        try:
            self.records = _whole_runs(self.records)
        except (ValueError, TypeError, KeyError, RecursionError) as error:  # a setting that no run was given
            raise self._unreadable(error) from None


def _whole_runs(records: list[PaperRecord]) -> list[PaperRecord]:
    """Drop incomplete runs of several records: Figure 5 has one for each iteration."""
    last: dict[PaperTask, int] = {}
    for record in records:
        last[record.task] = max(last.get(record.task, 0), record.iteration)

    def is_whole(record: PaperRecord) -> bool:
        if record.experiment != "figure5" or record.status != "done":
            return True
        return bool(last[record.task] == read_setting(record.setting)["max_iter"])

    return [record for record in records if is_whole(record)]
