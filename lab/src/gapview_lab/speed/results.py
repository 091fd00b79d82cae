"""Figures on disk: one line for each, with the reference measured in the same run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from ..common.records import RecordStore

__all__ = ["Figure", "FigureStore", "Measured", "SpeedTask"]

_UNKNOWN = float("nan")


@dataclass(frozen=True)
class Measured:
    """One figure and its reference."""

    name: str
    value: float
    unit: str
    reference: str = ""  # "": a figure that others are compared with
    reference_value: float = _UNKNOWN  # in the same unit
    compared: float = _UNKNOWN
    how: str = ""  # "times faster", "share" or "points"
    note: str = ""

    @classmethod
    def faster(cls, name: str, seconds: float, reference: str, reference_seconds: float, note: str = "") -> Measured:
        """Return a time as a multiple of speed over a reference."""
        ratio = reference_seconds / seconds
        return cls(name, seconds, "s", reference, reference_seconds, ratio, "times faster", note)

    @classmethod
    def share(cls, name: str, value: float, unit: str, reference: str, reference_value: float) -> Measured:
        """Return a value as a share of a reference."""
        return cls(name, value, unit, reference, reference_value, value / reference_value, "share")

    @classmethod
    def points(cls, name: str, value: float, reference: str, reference_value: float, note: str = "") -> Measured:
        """Return the difference in points of a score in % from a reference."""
        return cls(name, value, "%", reference, reference_value, value - reference_value, "points", note)


@dataclass(frozen=True)
class SpeedTask:
    """Figures that are measured together, with their references."""

    part: str
    case: str
    computer: str  # on another one the figures are others
    size: str  # "full" or "quick"


@dataclass(frozen=True)
class Figure:
    """A stored figure."""

    part: str
    case: str
    computer: str
    size: str
    name: str
    value: float
    unit: str
    reference: str
    reference_value: float
    compared: float
    how: str
    note: str
    place: int  # among the figures of its task …
    n_figures: int  # … of which there are so many
    seconds: float  # that its task has taken
    version: str

    @property
    def task(self) -> SpeedTask:
        """The task that this is a result of."""
        return SpeedTask(**{field.name: getattr(self, field.name) for field in fields(SpeedTask)})


class FigureStore(RecordStore[Figure]):
    """All figures of a folder; those of incomplete tasks do not count."""

    def __init__(self, path: Path, version: str) -> None:
        super().__init__(path, version, Figure)
        whole = {figure.task for figure in self.records if figure.place == figure.n_figures - 1}  # written last
        self.records = [figure for figure in self.records if figure.task in whole]

    def keep(self, task: SpeedTask, measured: Iterable[Measured], seconds: float, version: str) -> None:
        """Store the figures of a task."""
        found = list(measured)
        common = {**vars(task), "n_figures": len(found), "seconds": seconds, "version": version}
        self.add([Figure(**vars(one), **common, place=place) for place, one in enumerate(found)])

    def of(self, tasks: Iterable[SpeedTask]) -> list[Figure]:
        """Return the figures of these tasks; of a task with incomplete lines the last complete set."""
        found = []
        for task in tasks:
            own = [figure for figure in self.records if figure.task == task]
            found += own[-own[0].n_figures :] if own else []
        return found
