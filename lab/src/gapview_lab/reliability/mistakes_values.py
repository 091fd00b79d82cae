"""Mistakes in values: units, codes for missing values, words among numbers, files of gapview given as views."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapview.utils.types import Array

from .mistakes_oracle import TEXTS
from .mistakes_register import ALARM, COLUMNS, KEYED, TEXT, mutation
from .mistakes_tables import NotApplicable, Records, TableProblem

__all__: list[str] = []  # importing this module registers the mutations

TYPED = ("parquet", "feather", "pandas", "polars", "dask", *TEXTS)  # cells may hold text


# -- values ----------------------------------------------------------------------------------------------------------


def _some_values(problem: TableProblem, rng: np.random.Generator, change: Callable[[Array, Array], Array]) -> None:
    """Change values in a share of the rows of one table; the truth stays."""
    table = problem.one(rng)
    values = np.array([cells for _, cells in table.columns], dtype=float).T
    rows = np.zeros(table.n_rows, dtype=bool)
    rows[rng.choice(table.n_rows, max(3, int(rng.uniform(0.05, 0.4) * table.n_rows)), replace=False)] = True
    changed = change(values, rows)
    if np.array_equal(changed, values):
        raise NotApplicable("no value has changed")
    table.columns = [(name, changed[:, j].tolist()) for j, (name, _) in enumerate(table.columns)]


@mutation("units")
def unit_of_rows(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give all values of some samples in a unit 1,000 times as small."""
    _some_values(problem, rng, lambda values, rows: np.where(rows[:, None], 1000 * values, values))


@mutation("units")
def unit_of_columns(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give some features of some samples in a unit 1,000 times as small."""

    def change(values: Array, rows: Array) -> Array:
        columns = np.zeros(values.shape[1], dtype=bool)
        spread = np.abs(values).min(axis=0) > 0.2 * np.abs(values).max(axis=0)  # else 1,000 times is no step
        columns[rng.permutation(np.flatnonzero(spread))[:3]] = True
        return np.where(rows[:, None] & columns, 1000 * values, values)

    _some_values(problem, rng, change)


def _code(code: float) -> Callable[[TableProblem, np.random.Generator], None]:
    def change(problem: TableProblem, rng: np.random.Generator) -> None:
        def put(values: Array, rows: Array) -> Array:
            if np.abs(values).max() > abs(code) / 3:
                raise NotApplicable("a code within the range of the values")
            columns = rng.random(values.shape[1]) < rng.choice([0.1, 1.0])
            return np.where(rows[:, None] & columns, code, values)

        _some_values(problem, rng, put)

    change.__name__ = f"missing_as_{'minus_' if code < 0 else ''}{abs(code):.0f}"
    return change


for _value in (-999.0, -9999.0, 9999.0, 99999.0):
    mutation("units")(_code(_value))


@mutation("units")
def infinite(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give some values as infinite."""
    _some_values(problem, rng, lambda values, rows: np.where(rows[:, None] & (values == values.max()), np.inf, values))


@mutation("text in numbers", ALARM, KEYED, TYPED)
def words_in_numbers(problem: TableProblem, rng: np.random.Generator) -> None:
    """Write words into some cells of a column of numbers."""
    table = problem.one(rng)
    rows = set(rng.choice(table.n_rows, int(rng.integers(1, 6)), replace=False).tolist())
    words = [
        str(rng.choice(["n.d.", "<0.5", ">1000", "?", "5 mg", "failed", "1.5*", "O.3"])) for _ in range(table.n_rows)
    ]
    for j in rng.choice(len(table.columns), int(rng.integers(1, 4)), replace=False).tolist():
        name, cells = table.columns[j]
        table.columns[j] = (name, [words[row] if row in rows else cell for row, cell in enumerate(cells)])


@mutation("text in numbers", ALARM, KEYED, TYPED)
def words_beside_numbers(problem: TableProblem, rng: np.random.Generator) -> None:
    """Add columns of sex and site."""
    for table in problem.tables:
        table.columns.insert(0, ("sex", rng.choice(["f", "m"], table.n_rows).tolist()))
        table.columns.append(("site", rng.choice(["Köln", "Lyon", "Leeds"], table.n_rows).tolist()))


# -- files that gapview wrote ----------------------------------------------------------------------------------------


@mutation("files of gapview", ALARM, KEYED, COLUMNS)
def recovered_column(problem: TableProblem, rng: np.random.Generator) -> None:
    """Add the column that ``gapview recover`` writes."""
    for table in problem.tables if rng.random() < 0.5 else [problem.one(rng)]:
        table.columns.append(("recovered", (rng.random(table.n_rows) < 0.2).astype(int).tolist()))


@mutation("files of gapview", ALARM, (*TEXT, "integer"), TEXTS)
def labels_as_view(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give the table of labels that ``gapview cluster`` writes as a view."""
    keys = _all_ids(problem)
    names = [table.view for table in problem.tables]
    head = ["id", "label", "confidence", *(f"has_{name}" for name in names)]
    rows = [[key, str(rng.integers(3)), f"{rng.random():.3f}", *["yes"] * len(names)] for key in keys]
    problem.more["labels.csv"] = _csv([head, *rows])


@mutation("files of gapview", ALARM, (*TEXT, "integer"), TEXTS)
def embedding_as_view(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give the table of codes that ``gapview cluster`` writes as a view."""
    keys = _all_ids(problem)
    rows = [[key, *(f"{value:.6g}" for value in rng.random(3))] for key in keys]
    problem.more["embedding.csv"] = _csv([["id", *(f"bridgedgrmf{j}" for j in range(3))], *rows])


def _all_ids(problem: TableProblem) -> list[str]:
    return list(dict.fromkeys(str(key) for table in problem.tables for key in table.ids or ()))


def _csv(records: Records) -> bytes:
    return "".join(",".join(record) + "\n" for record in records).encode()
