"""Measure the time of reading and joining two CSV files, against pandas in the same run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from gapview.commands.console import new_console
from gapview.io import join_views, read_views
from gapview.utils.storage import make_folder, write_table

from .machine import computer

__all__ = ["reading"]

_IDS: dict[str, Callable[[int], Any]] = {"text": lambda number: f"P{number:07d}", "integers": int}
_HEADER = ("ids", "samples", "features", "seconds", "seconds of pandas", "ratio")


@click.command("reading", short_help="Measure how fast files are read and joined.")
@click.option("--samples", type=click.IntRange(min=10), default=100_000, show_default=True, help="Rows of each file.")
@click.option("--features", type=click.IntRange(min=1), default=300, show_default=True, help="Columns of each file.")
@click.option(
    "--turns", type=click.IntRange(min=1), default=3, show_default=True, help="Turns; the best of each counts."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("reading"), show_default=True)
def reading(samples: int, features: int, turns: int, output: Path) -> None:
    """Measure reading and joining two CSV files, with ids of text and with whole numbers as ids.

    pandas reads both files with its default parser and merges them on the ids; the two are measured in turn.
    """
    console = new_console()
    rows: list[Sequence[Any]] = []
    for kind, id_of in _IDS.items():
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / f"view_{k}.csv" for k in range(2)]
            for k, path in enumerate(paths):
                _write(path, np.random.default_rng(k), samples, features, id_of)
            own, pandas = np.array([[_seconds(way, paths) for way in (_joined, _merged)] for _ in range(turns)]).min(0)
        rows.append((kind, samples, features, *(round(float(value), 3) for value in (own, pandas, own / pandas))))
        console.print(f"Ids: {kind}; {own / pandas:.2f} × the time of pandas", highlight=False)
    path = make_folder(output) / "reading.csv"
    write_table(path, _HEADER, rows)
    console.print(f"{computer()}, best of {turns}. Wrote {path}", highlight=False)


def _write(path: Path, rng: np.random.Generator, samples: int, features: int, id_of: Callable[[int], Any]) -> None:
    """Write a table of random numbers for five of six samples."""
    ids = [id_of(int(number)) for number in rng.permutation(samples * 6 // 5)[:samples]]
    numbers = np.round(rng.normal(size=(features, samples)), 4)
    arrow, csv = import_module("pyarrow"), import_module("pyarrow.csv")
    csv.write_csv(arrow.table({"id": ids, **{f"f{j}": row for j, row in enumerate(numbers)}}), path)


def _joined(paths: Sequence[Path]) -> Any:
    return join_views(read_views(paths))


def _merged(paths: Sequence[Path]) -> Any:
    pandas = import_module("pandas")
    left, right = (pandas.read_csv(path) for path in paths)
    return left.merge(right, on="id", how="outer")


def _seconds(way: Callable[[Sequence[Path]], Any], paths: Sequence[Path]) -> float:
    begin = perf_counter()
    way(paths)
    return perf_counter() - begin
