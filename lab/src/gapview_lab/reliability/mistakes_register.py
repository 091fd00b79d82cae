"""The register of mistakes: small functions that change the tables of a problem.

A mutation that nobody can detect is left out: two ids swapped, all ids moved by one row or counted from 0 instead of 1,
rows shuffled in tables without ids, the same left-over row numbers in tables of different order, two columns or two
views with exchanged names, a number for a category, all values of a feature in another unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .mistakes_oracle import INTERFACES
from .mistakes_tables import TableProblem

__all__ = ["ALARM", "COLUMNS", "INDEXED", "KEYED", "MUTATIONS", "SAME", "TEXT", "Mutation", "mutation"]

Change = Callable[[TableProblem, np.random.Generator], None]
SAME, ALARM = "same", "alarm or same"  # what gapview may do: read correctly without any alarm; or also raise or warn

TEXT = ("barcode", "person", "uuid", "name")
KEYED = (*TEXT, "integer", "zeros", "date", "float")
COLUMNS = tuple(name for name in INTERFACES if name not in ("h5ad", "anndata"))  # ids may be in a column
INDEXED = ("csv", "tsv", "csv.gz", "parquet", "feather", "pandas", "dask")  # the index of a frame is kept


@dataclass(frozen=True)
class Mutation:
    """A mistake: its name and class, the outcome that is allowed, and to which tables it applies."""

    name: str
    group: str
    allowed: str
    change: Change
    kinds: Sequence[str]
    interfaces: Sequence[str]


MUTATIONS: dict[str, Mutation] = {}


def mutation(
    group: str, allowed: str = ALARM, kinds: Sequence[str] = KEYED, interfaces: Sequence[str] = INTERFACES
) -> Callable[[Change], Change]:
    """Register a mutation under the name of its function."""

    def register(change: Change) -> Change:
        name = change.__name__.strip("_")
        MUTATIONS[name] = Mutation(name, group, allowed, change, kinds, interfaces)
        return change

    return register
