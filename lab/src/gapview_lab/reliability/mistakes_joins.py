"""Mistakes in joins and orientation: renamed, moved and lost ids, row numbers, transposed tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .mistakes_bases import KNOWN_NAMES, UNKNOWN_NAMES
from .mistakes_oracle import FILES, INTERFACES
from .mistakes_register import ALARM, COLUMNS, INDEXED, KEYED, SAME, TEXT, mutation
from .mistakes_tables import NotApplicable, SampleTable, TableProblem

__all__: list[str] = []  # importing this module registers the mutations


# -- joins -----------------------------------------------------------------------------------------------------------


@mutation("joins", SAME)
def rows_shuffled(problem: TableProblem, rng: np.random.Generator) -> None:
    """Change the order of the rows of all tables."""
    for table in problem.tables:
        table.take(rng.permutation(table.n_rows))


@mutation("joins", SAME)
def rows_dropped(problem: TableProblem, rng: np.random.Generator) -> None:
    """Remove a third of the rows of one table."""
    table = problem.one(rng)
    table.take(np.sort(rng.choice(table.n_rows, 2 * table.n_rows // 3, replace=False)))
    problem.forget_rows(table)


@mutation("joins", SAME, interfaces=COLUMNS)
def same_order(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give all tables the rows of the same samples in the same order."""
    common = set.intersection(*(set(table.samples.tolist()) for table in problem.tables))
    if len(common) < 20:
        raise NotApplicable("too few common samples")
    for table in problem.tables:
        place = {sample: row for row, sample in enumerate(table.samples.tolist())}
        table.take([place[sample] for sample in sorted(common)])
        problem.forget_rows(table)


@mutation("joins", SAME, TEXT, COLUMNS)
def ids_renamed_known(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give the ids another known name in every table."""
    for table, name in zip(problem.tables, rng.permutation(KNOWN_NAMES[:-1]), strict=False):
        table.id_name, table.place = str(name), str(rng.choice(["first", "later"]))


@mutation("joins", ALARM, ("integer", "float", "zeros", "date"), COLUMNS)
def numbers_renamed_known(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give ids of numbers another known name in every table."""
    ids_renamed_known(problem, rng)


@mutation("joins", ALARM, KEYED, COLUMNS)
def ids_renamed_unknown(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give the ids another unknown name in every table."""
    for table, name in zip(problem.tables, rng.permutation(UNKNOWN_NAMES), strict=False):
        table.id_name, table.place = str(name), "first"


@mutation("joins", ALARM, ("integer", "float"), COLUMNS)
def numbers_renamed_same_rows(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give tables of equal length ids of numbers under another unknown name in every table, in another order."""
    same_order(problem, rng)
    rows_shuffled(problem, rng)
    ids_renamed_unknown(problem, rng)


@mutation("joins", ALARM, ("integer", "float"), COLUMNS)
def numbers_unknown_same_rows(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give tables of equal length ids of numbers under the same unknown name, in another order."""
    same_order(problem, rng)
    rows_shuffled(problem, rng)
    for table in problem.tables:
        table.id_name, table.place = str(rng.choice(UNKNOWN_NAMES[:1])), "first"


@mutation("joins", ALARM, KEYED, COLUMNS)
def ids_moved(problem: TableProblem, rng: np.random.Generator) -> None:
    """Move the ids of one table to another place under an unknown name."""
    table = problem.one(rng)
    table.id_name, table.place = str(rng.choice(UNKNOWN_NAMES)), "later"


@mutation("joins", ALARM, KEYED, COLUMNS)
def ids_dropped_one(problem: TableProblem, rng: np.random.Generator) -> None:
    """Remove the ids of one table."""
    problem.one(rng).ids = None


@mutation("joins", ALARM, KEYED, INTERFACES)
def ids_dropped_all(problem: TableProblem, rng: np.random.Generator) -> None:
    """Remove the ids of all tables, of which some have other samples."""
    if len({tuple(table.samples.tolist()) for table in problem.tables}) == 1:
        rows_dropped(problem, rng)
    if len({table.n_rows for table in problem.tables}) == 1:
        raise NotApplicable("without ids, tables of equal length cannot be told from tables of the same samples")
    for table in problem.tables:
        table.ids = None


@mutation("joins", ALARM, KEYED, COLUMNS)
def ids_dropped_same_order(problem: TableProblem, rng: np.random.Generator) -> None:
    """Remove the ids of tables that have the same samples in the same order."""
    same_order(problem, rng)
    for table in problem.tables:
        table.ids = None


# -- numbers of rows, and more than one column of ids ----------------------------------------------------------------


def _filtered(problem: TableProblem, rng: np.random.Generator) -> None:
    """Keep some rows of every table with the numbers that they had before."""
    for table in problem.tables:
        kept = np.sort(rng.choice(table.n_rows, int(rng.uniform(0.6, 0.9) * table.n_rows), replace=False))
        table.take(kept)
        table.row_numbers = kept.tolist()
        problem.forget_rows(table)


@mutation("row numbers", ALARM, KEYED, INDEXED)
def numbers_left_over(problem: TableProblem, rng: np.random.Generator) -> None:
    """Filter tables that have a column of ids, which leaves gaps in their numbers of rows."""
    for table in problem.tables:
        table.place, table.id_name = ("first" if table.place == "index" else table.place), table.id_name or "sample_id"
    _filtered(problem, rng)


@mutation("row numbers", ALARM, KEYED, ("parquet", "feather", "pandas", "dask"))
def numbers_left_over_alone(problem: TableProblem, rng: np.random.Generator) -> None:
    """Filter tables without ids, of different order; their numbers of rows do not belong to the same samples."""
    for table in problem.tables:
        table.ids = None
    rows_shuffled(problem, rng)
    _filtered(problem, rng)


@mutation("row numbers", ALARM, KEYED, ("parquet", "feather", "pandas", "dask"))
def every_second_row(problem: TableProblem, rng: np.random.Generator) -> None:
    """Take every second row of one table, and the others from another table, without ids."""
    same_order(problem, rng)
    for place, table in enumerate(problem.tables):
        rows = np.arange(place % 2, table.n_rows - table.n_rows % 2, 2)
        table.take(rows)
        table.row_numbers, table.ids = rows.tolist(), None
        problem.forget_rows(table)


@mutation("row numbers", ALARM, KEYED, COLUMNS)
def index_reset(problem: TableProblem, rng: np.random.Generator) -> None:
    """Filter tables and turn their left-over numbers of rows into a first column 'index'."""
    numbers_left_over(problem, rng)
    for table in problem.tables:
        table.columns.insert(0, ("index", list(table.row_numbers or ())))
        table.row_numbers = None


def _count_rows(problem: TableProblem, name: str, tables: Sequence[SampleTable]) -> None:
    for table in tables:
        table.columns.insert(0, (name, list(range(1, table.n_rows + 1))))
        if table.ids is not None:
            table.place, table.id_name = "later", table.id_name or "sample_id"


@mutation("row numbers", ALARM, KEYED, COLUMNS)
def counter_unnamed(problem: TableProblem, rng: np.random.Generator) -> None:
    """Add a first column that counts the rows, with the name that pandas gives it."""
    _count_rows(problem, "Unnamed: 0", problem.tables)


@mutation("row numbers", ALARM, KEYED, COLUMNS)
def counter_named(problem: TableProblem, rng: np.random.Generator) -> None:
    """Add a first column that counts the rows, under a usual name."""
    _count_rows(problem, str(rng.choice(["nr", "No", "row", "lfd", "X", "#"])), problem.tables)


@mutation("row numbers", ALARM, KEYED, COLUMNS)
def counter_in_one(problem: TableProblem, rng: np.random.Generator) -> None:
    """Add a column that counts the rows to one table."""
    _count_rows(problem, str(rng.choice(["nr", "Unnamed: 0", "row"])), [problem.one(rng)])


@mutation("row numbers", ALARM, KEYED, COLUMNS)
def counter_for_ids(problem: TableProblem, rng: np.random.Generator) -> None:
    """Replace the ids of all tables by a column that counts the rows of each."""
    rows_shuffled(problem, rng)
    _count_rows(problem, "Unnamed: 0", problem.tables)  # under the name of an id, nobody could detect it
    if len({table.n_rows for table in problem.tables}) == 1:
        raise NotApplicable("tables of equal length without ids cannot be told from tables of the same samples")
    for table in problem.tables:
        table.ids = None


def _aliquots(table: SampleTable, mark: str) -> list[str]:
    return [f"{mark}{7000 + 3 * row}" for row in range(table.n_rows)]


@mutation("two ids", ALARM, KEYED, COLUMNS)
def two_ids(problem: TableProblem, rng: np.random.Generator) -> None:
    """Add a column of ids that every table has for itself in front of the shared ids."""
    for place, table in enumerate(problem.tables):
        table.id_name, table.place = "patient_id", "later"
        table.columns.insert(0, ("sample_id", _aliquots(table, "ABCDE"[place])))


@mutation("two ids", ALARM, KEYED, COLUMNS)
def two_ids_numbers(problem: TableProblem, rng: np.random.Generator) -> None:
    """Add a column of numbers as ids that overlap by chance, in front of the shared ids."""
    for table in problem.tables:
        table.id_name, table.place = "patient_id", "later"
        table.columns.insert(0, ("sample_id", (100 + rng.permutation(table.n_rows)).tolist()))


@mutation("two ids", ALARM, KEYED, COLUMNS)
def ids_shared_under_one_name(problem: TableProblem, rng: np.random.Generator) -> None:
    """Add ids of their own to all tables, each under another known name; one column is shared."""
    for place, (table, name) in enumerate(zip(problem.tables, ("id", "sample", "barcode", "uid"), strict=False)):
        table.id_name, table.place = str(UNKNOWN_NAMES[4]), "later"
        table.columns.insert(0, (name, _aliquots(table, "ABCDE"[place])))


# -- orientation -----------------------------------------------------------------------------------------------------


@mutation("orientation")
def transposed_one(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give one table with features in rows."""
    problem.one(rng).transposed = True


@mutation("orientation")
def transposed_all(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give all tables with features in rows."""
    for table in problem.tables:
        table.transposed = True


@mutation("orientation", ALARM, KEYED, FILES)
def transposed_same_samples(problem: TableProblem, rng: np.random.Generator) -> None:
    """Give all tables of the same samples with features in rows."""
    same_order(problem, rng)
    transposed_all(problem, rng)
