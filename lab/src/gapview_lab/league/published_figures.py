"""Figures that papers print, beside those of the methods of the league in the same cells.

The file has one row for every printed figure, with the columns of ``COLUMNS``; ``chosen_by_labels`` and
``reads_missing`` are optional. A row that cannot be run is left out, and the reason is reported.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gapview.errors import DataFileError, GapviewError, ParameterError
from gapview.utils.messages import counted

from ..paper.published import RATES
from .data import (
    COMPLETE,
    COMPLETER,
    FEW_VIEWS,
    LOSES,
    NATURE,
    RANDOM,
    SUBSET,
    LeagueCell,
    Source,
    hide_otherwise,
    load,
    read_source,
)
from .entrants import Entrant
from .runs import LeagueRun

__all__ = [
    "COLUMNS",
    "MEAN",
    "NOT_STATED",
    "PER_DATA",
    "SCORE_COLUMNS",
    "MeasuredHere",
    "PrintedComparison",
    "PrintedFigure",
    "PublishedPlan",
    "compare",
    "plan_published",
    "read_figures",
]

COLUMNS = (
    *("data", "views", "protocol", "rate", "method", "year", "acc", "nmi_arithmetic", "ari"),
    *("how_chosen", "note"),
)
NOT_STATED, PER_DATA = "not stated", "per data set"
SCORE_COLUMNS = {"acc": "accuracy", "nmi_arithmetic": "nmi_arithmetic", "ari": "ari"}  # column of the file: of a run
_WITH_RATE = {"completer": COMPLETER, "random proper subset": SUBSET, "missing share": RANDOM}
_WITH_RATE |= {"share of samples loses views": LOSES}
MEAN = "mean over 0.1 to 0.9 missing"


@dataclass(frozen=True)
class PrintedFigure:
    """One row of the file: what a paper prints for one method in one cell."""

    row: Mapping[str, str]  # as in the file
    printed: Mapping[str, float]  # by column, those that are given
    widths: tuple[int, ...]  # numbers of features of the views to take; none: all views
    n_views: int
    hiding: str
    rates: tuple[float, ...]  # more than one: the mean over these cells is printed
    chosen_by_labels: str
    reads_missing: str
    mask: int | None  # the only mask that was used, if the note names one

    @property
    def source(self) -> str:
        """Name of the data with these views."""
        return self.row["data"] + (f" ({'+'.join(map(str, self.widths))})" if self.widths else "")

    @property
    def cells(self) -> list[LeagueCell]:
        """The cells to run."""
        return [LeagueCell(self.source, self.hiding, rate) for rate in self.rates]

    @property
    def protocol(self) -> str:
        """Protocol and rate as text."""
        return " ".join(part for part in (self.row["protocol"], self.row["rate"]) if part)

    @property
    def method(self) -> str:
        """Method and year as text."""
        return self.row["method"] + (f" ({self.row['year']})" if self.row["year"] else "")


@dataclass(frozen=True)
class MeasuredHere:
    """One method in the cells of a figure, by column of the file, in %."""

    method: str
    mean: Mapping[str, float]  # empty if a run failed
    error: Mapping[str, float]  # standard error of the mean; NaN with one seed
    on_mask: Mapping[str, float]  # on the mask of the figure alone; empty if there is none
    n_seeds: int
    problem: str = ""


@dataclass(frozen=True)
class PrintedComparison:
    """A printed figure, and what the methods reach here."""

    figure: PrintedFigure
    here: tuple[MeasuredHere, ...]


@dataclass(frozen=True)
class PublishedPlan:
    """The figures that can be compared, and the data to run."""

    figures: list[PrintedFigure]
    sources: list[Source]


def read_figures(path: Path, say: Callable[[str], None]) -> list[PrintedFigure]:
    """Read a file of printed figures; rows that cannot be understood are reported and skipped."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            names = [name.strip() for name in reader.fieldnames or ()]
            reader.fieldnames = names
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataFileError(f"{path.name!r} cannot be read as CSV: {error}. Give a file in UTF-8.") from None
    lacking = [name for name in COLUMNS if name not in names]
    if lacking:
        raise DataFileError(
            f"{path.name!r} lacks the column {lacking[0]!r}. Expected: {', '.join(COLUMNS)}; got: "
            f"{', '.join(names) or 'none'}. Add the column; its values may be empty."
        )
    figures = []
    for line, row in rows:
        try:
            figures.append(_figure({name: (row.get(name) or "").strip() for name in names}))
        except GapviewError as error:
            say(f"line {line} of {path.name}: {error}")
    return figures


def _figure(row: dict[str, str]) -> PrintedFigure:
    match = re.fullmatch(r"(\d+)\s*(?:\(([\d\s,+]+)\))?", row["views"])
    widths = tuple(int(part) for part in re.findall(r"\d+", match[2] or "")) if match else ()
    if match is None or (widths and len(widths) != int(match[1])):
        raise DataFileError(
            f"views must be a number of views, or with their numbers of features: 2 (76+64); got {row['views']!r}."
        )
    printed = {name: _number(name, row[name], 100) for name in SCORE_COLUMNS if row[name]}
    hiding, rates = _cells(row["protocol"], row["rate"])
    mask = re.search(r"\bmask (\d+)\b", row["note"]) if hiding.startswith(FEW_VIEWS) else None
    return PrintedFigure(
        row,
        printed,
        widths,
        int(match[1]),
        hiding,
        rates,
        row.get("chosen_by_labels") or _chosen_by_labels(row["how_chosen"]),
        row.get("reads_missing") or _reads_missing(row["method"], row["note"]),
        int(mask[1]) if mask else None,
    )


def _number(name: str, text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= most:
        raise DataFileError(f"{name} must be a number from 0 to {most:g}; got {text!r}.")
    return value


def _cells(protocol: str, rate: str) -> tuple[str, tuple[float, ...]]:
    """Return how views are hidden, and at which rates."""
    if protocol in _WITH_RATE:
        return _WITH_RATE[protocol], (_number("rate", rate, 1),)
    if protocol == MEAN:  # not RANDOM: 0.9 of both of two views cannot be missing if every sample has one
        return SUBSET, RATES
    if protocol == NATURE:
        return NATURE, (0.0,)
    if re.fullmatch(rf"{FEW_VIEWS}/\w+", protocol):
        return protocol, (0.0,)
    match = re.fullmatch(r"complete(\d\d)", protocol)
    if match:
        return COMPLETE, (int(match[1]) / 100,)
    known = [*_WITH_RATE, MEAN, NATURE, f"{FEW_VIEWS}/NAME", "completeNN"]
    raise DataFileError(f"The protocol {protocol!r} is unknown. Choose among: {', '.join(known)}.")


def _chosen_by_labels(how: str) -> str:
    if re.search(r"\blabels\b|\btrue\b", how):
        return "yes"
    return PER_DATA if PER_DATA in how else how or NOT_STATED


def _reads_missing(method: str, note: str) -> str:
    if "really masked" in method:
        return "no"
    return "yes" if "reads missing views" in note else NOT_STATED


def plan_published(path: Path, data: Sequence[str], folder: Path | None, say: Callable[[str], None]) -> PublishedPlan:
    """Find the data of the figures, and the cells to run; report figures that cannot be compared."""
    figures = read_figures(path, say)
    files = {Path(name).stem: Path(name).resolve() for name in data if Path(name).is_file()}
    wanted = [Path(name).stem if Path(name).is_file() else name for name in data]
    there = list(dict.fromkeys(figure.row["data"] for figure in figures))
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise ParameterError(
            f"{path.name!r} has no figures for the data {unknown[0]!r}. Choose among: {', '.join(there) or 'none'}."
        )
    if folder is None and not files:
        raise ParameterError("The data of the figures are needed. Name their folder with --data-dir or GAPVIEW_DATA.")
    sources: dict[tuple[str, str], Source] = {}
    kept, problems = [], dict[tuple[str, str], int]()
    for figure in figures:
        name = figure.row["data"]
        if wanted and name not in wanted:
            continue
        try:
            source = _source(figure, files.get(name) or (folder / f"{name}.npz" if folder is not None else None))
        except GapviewError as error:
            problems[name, str(error)] = problems.get((name, str(error)), 0) + 1
            continue
        kept.append(figure)
        known = sources.get((source.name, source.hiding), source)
        rates = tuple(sorted({*known.rates, *source.rates}))
        sources[source.name, source.hiding] = replace(known, rates=rates, n_seeds=min(known.n_seeds, source.n_seeds))
    for (name, problem), count in problems.items():
        say(f"{name}, {counted(count, 'figure')}: {problem}")
    if not kept:
        raise ParameterError(f"No figure of {path.name!r} can be compared: nothing to run. See the lines above.")
    return PublishedPlan(kept, list(sources.values()))


def _source(figure: PrintedFigure, path: Path | None) -> Source:
    """Return the data of a figure with views hidden by its protocol."""
    if path is None or not path.is_file():
        raise DataFileError(f"There is no {figure.row['data']}.npz in the data folder; other files are not compared.")
    source = read_source(figure.source, path.resolve(), figure.widths)
    n_views = load(source.name, source.path, source.widths).data.views.n_views
    if n_views != figure.n_views:
        raise DataFileError(
            f"It has {n_views} views, the figure {figure.n_views}. Give their numbers of features in the column views: "
            "2 (76+64)."
        )
    return hide_otherwise(source, figure.hiding, figure.rates)


def compare(
    figures: Sequence[PrintedFigure], runs: Sequence[LeagueRun], entrants: Sequence[Entrant]
) -> list[PrintedComparison]:
    """Put the means of the runs beside the printed figures."""
    found: dict[tuple[LeagueCell, str], list[LeagueRun]] = {}
    for run in runs:
        found.setdefault((run.task.cell, run.method), []).append(run)
    return [
        PrintedComparison(
            figure,
            tuple(
                _here(figure, entrant.name, [found[cell, entrant.name] for cell in figure.cells])
                for entrant in entrants
            ),
        )
        for figure in figures
    ]


def _here(figure: PrintedFigure, method: str, cells: Sequence[Sequence[LeagueRun]]) -> MeasuredHere:
    n_seeds = len(cells[0])
    failed = [run.status for runs in cells for run in runs if run.status != "done"]
    if failed:
        return MeasuredHere(method, {}, {}, {}, n_seeds, f"{len(failed)} runs failed: {failed[0]}")
    by_seed = {
        column: 100 * np.mean([[getattr(run, name) for run in runs] for runs in cells], axis=0)
        for column, name in SCORE_COLUMNS.items()
    }
    has_mask = figure.mask is not None and figure.mask < n_seeds
    return MeasuredHere(
        method,
        {column: float(values.mean()) for column, values in by_seed.items()},
        {c: float(v.std(ddof=1) / n_seeds**0.5) if n_seeds > 1 else float("nan") for c, v in by_seed.items()},
        {column: float(values[figure.mask]) for column, values in by_seed.items()} if has_mask else {},
        n_seeds,
    )
