"""Mistakes in new samples: ``predict`` must give the groups of the unchanged samples, raise or warn."""

from __future__ import annotations

import csv
import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from gapview import GRMF
from gapview.commands.cli import main
from gapview.errors import GapviewError
from gapview.utils.messages import warn_user
from gapview.views import new_views

from .mistakes_oracle import FILES, Verdict, give, watched
from .mistakes_register import ALARM, SAME, TEXT, Change, mutation
from .mistakes_tables import NotApplicable, SampleTable, TableProblem

__all__ = ["judge_new"]

INTERFACES_OF_NEW = ("csv", "tsv", "parquet", "pandas", "polars", "anndata")
_N_CLUSTERS = 3


# -- the oracle ------------------------------------------------------------------------------------------------------


def judge_new(problem: TableProblem) -> Verdict:
    """Fit a model to the tables, place the new samples, and compare with the groups of the unchanged new samples."""
    model = GRMF(_N_CLUSTERS, scale="standard", max_iter=20, random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(_frames(problem.tables))
            expected = _predicted(model, _frames(problem.clean))
    except GapviewError as error:
        raise NotApplicable(f"the unchanged tables give no model: {error}") from None
    place = _by_file if problem.interface in FILES else _by_object
    with tempfile.TemporaryDirectory() as folder:
        return watched(lambda: _difference(expected, place(model, problem, Path(folder))))


def _frames(tables: list[SampleTable]) -> dict[str, Any]:
    """Return tables as frames whose index holds the ids."""
    import pandas as pd

    return {
        table.view: pd.DataFrame(dict(table.columns), index=[str(key) for key in table.ids or ()]) for table in tables
    }


def _predicted(model: Any, given: Any) -> dict[str, int]:
    """Return the group of every new sample by its id."""
    labels = model.predict(given)
    ids = new_views(given, model.views_).sample_ids
    return {str(key): int(label) for key, label in zip(ids.tolist(), labels, strict=True)}


def _by_object(model: Any, problem: TableProblem, folder: Path) -> dict[str, int]:
    return _predicted(model, give(problem, problem.new, folder))


def _by_file(model: Any, problem: TableProblem, folder: Path) -> dict[str, int]:
    """Place samples by the command line; its messages become errors and warnings again."""
    paths = give(problem, problem.new, folder)
    model.save(folder / "model.gapview")
    files = [f"{view}={path}" for view, path in paths.items()]
    out = folder / "placed.csv"
    done = CliRunner().invoke(main, ["predict", str(folder / "model.gapview"), *files, "-o", str(out)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code:
        raise GapviewError(done.output)
    if "Warning" in done.output:
        warn_user(done.output)
    with out.open(encoding="utf-8", newline="") as file:
        return {row["id"]: int(row["label"]) for row in csv.DictReader(file)}


def _difference(expected: dict[str, int], found: dict[str, int]) -> str:
    if set(found) != set(expected):
        return f"{len(found)} samples instead of {len(expected)}, or other ids"
    wrong = sum(found[key] != label for key, label in expected.items())
    return f"groups of {wrong} of {len(expected)} samples" if wrong else ""


# -- the mutations ---------------------------------------------------------------------------------------------------


def _new(allowed: str = ALARM, interfaces: tuple[str, ...] = INTERFACES_OF_NEW) -> Callable[[Change], Change]:
    """Register a mutation of new samples, which are taken from the tables first."""

    def register(change: Change) -> Change:
        def split_and_change(problem: TableProblem, rng: np.random.Generator) -> None:
            drawn = rng.random(len(problem.accepted)) < 0.3
            for table in problem.tables:
                new = deepcopy(table)
                new.take(np.flatnonzero(drawn[table.samples]))
                table.take(np.flatnonzero(~drawn[table.samples]))
                if new.n_rows < 4 or table.n_rows < 15:
                    raise NotApplicable("too few samples")
                problem.new.append(new)
            problem.clean = deepcopy(problem.new)
            change(problem, rng)

        split_and_change.__name__ = change.__name__
        mutation("predict", allowed, TEXT, interfaces)(split_and_change)
        return change

    return register


@_new(SAME)
def new_unchanged(problem: TableProblem, rng: np.random.Generator) -> None:
    """Change nothing."""


@_new(SAME)
def new_columns_shuffled(problem: TableProblem, rng: np.random.Generator) -> None:
    """Change the order of the features."""
    for table in problem.new:
        table.columns = [table.columns[j] for j in rng.permutation(len(table.columns))]


@_new(SAME)
def new_rows_shuffled(problem: TableProblem, rng: np.random.Generator) -> None:
    """Change the order of the rows."""
    for table in problem.new:
        table.take(rng.permutation(table.n_rows))


@_new()
def new_unit(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give one view of the new samples in a unit 1,000 times as small or as large."""
    table, factor = _one(problem, rng), float(rng.choice([1000.0, 0.001]))
    table.columns = [(name, [factor * cell for cell in cells]) for name, cells in table.columns]


@_new()
def new_missing_code(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write -999 for some values of the new samples."""
    table = _one(problem, rng)
    for j in rng.choice(len(table.columns), 4, replace=False).tolist():
        name, cells = table.columns[j]
        table.columns[j] = (name, [-999.0 if rng.random() < 0.3 else cell for cell in cells])


@_new()
def new_feature_missing(problem: TableProblem, rng: np.random.Generator) -> None:
    """Leave out features of the new samples."""
    table = _one(problem, rng)
    del table.columns[int(rng.integers(len(table.columns)))]


@_new()
def new_feature_renamed(problem: TableProblem, rng: np.random.Generator) -> None:
    """Rename one feature of the new samples."""
    table = _one(problem, rng)
    j = int(rng.integers(len(table.columns)))
    table.columns[j] = (f"{table.columns[j][0]}_v2", table.columns[j][1])


@_new()
def new_feature_missing_like_code(problem: TableProblem, rng: np.random.Generator) -> None:
    """Leave out a feature whose name looks like a category of an encoded column."""
    place = int(rng.integers(len(problem.new)))
    for tables in (problem.tables, problem.new, problem.clean):
        table = tables[place]
        table.columns = [(f"T={300 + 10 * j}", cells) for j, (_, cells) in enumerate(table.columns)]
    del problem.new[place].columns[int(rng.integers(len(problem.new[place].columns)))]


@_new()
def new_transposed(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give the new samples with features in rows."""
    for table in problem.new:
        table.transposed = True


@_new()
def new_views_exchanged(problem: TableProblem, rng: np.random.Generator) -> None:
    """Exchange the names of two views of the new samples."""
    one, other = problem.new[:2]
    if [name for name, _ in one.columns] == [name for name, _ in other.columns]:
        raise NotApplicable("views with the same features cannot be told apart")
    one.view, other.view = other.view, one.view


def _one(problem: TableProblem, rng: np.random.Generator) -> SampleTable:
    return problem.new[int(rng.integers(len(problem.new)))]
