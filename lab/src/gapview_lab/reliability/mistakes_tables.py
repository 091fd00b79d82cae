"""Tables for ``mistakes``: real values with known samples, which mutations change before gapview reads them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gapview.utils.types import Array

from .mistakes_bases import KNOWN_NAMES, UNKNOWN_NAMES, Base, make_ids

__all__ = ["NotApplicable", "SampleTable", "TableProblem", "TextForm", "draw_problem"]

Column = tuple[str, list[Any]]
Records = list[list[str]]


class NotApplicable(Exception):
    """A mutation does not fit the drawn tables; others are drawn."""


@dataclass
class TextForm:
    """The form of a text file."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    newline: str = "\n"
    header: bool = True
    quoting: int = csv.QUOTE_MINIMAL
    above: list[str] = field(default_factory=list)  # lines above the header
    edit_records: Callable[[Records], Records] | None = None  # applied to the header and all rows
    edit_bytes: Callable[[bytes], bytes] | None = None


@dataclass
class SampleTable:
    r"""One view as a table: columns of features, sample ids, and the true sample of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview_lab.reliability.mistakes_tables import SampleTable
    >>> SampleTable("blood", [("iron", [1.5, 2.0])], np.array([0, 1]), ["a", "b"], "id", "first").text()
    b'id,iron\na,1.5\nb,2.0\n'
    """

    view: str
    columns: list[Column]  # features, and further columns
    samples: Array  # true sample of every row
    ids: list[Any] | None
    id_name: str
    place: str  # of the ids: "index", "first" or "later"
    row_numbers: list[int] | None = None  # an index without a name that is left over from another table
    transposed: bool = False
    form: TextForm = field(default_factory=TextForm)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.samples)

    def take(self, rows: Sequence[int] | Array) -> None:
        """Keep some rows, in the given order."""
        places = [int(row) for row in rows]
        self.columns = [(name, [cells[row] for row in places]) for name, cells in self.columns]
        self.samples = self.samples[places]
        self.ids = None if self.ids is None else [self.ids[row] for row in places]
        self.row_numbers = None if self.row_numbers is None else [self.row_numbers[row] for row in places]

    def layout(self) -> tuple[Column | None, list[Column]]:
        """Return the index, if there is one, and all columns in their order."""
        index: Column | None = None
        columns = list(self.columns)
        if self.ids is not None:
            keys = (self.id_name, self.ids)
            if self.place == "index":
                index = keys
            else:
                columns.insert(0 if self.place == "first" else 1 + len(columns) // 2, keys)
        if self.row_numbers is not None:
            index = ("", list(self.row_numbers))
        return index, columns

    def turned(self) -> tuple[list[str], list[Column]]:
        """Return the names of the features, and a column for every sample."""
        if self.ids is None or len(set(map(str, self.ids))) < self.n_rows:
            raise NotApplicable("a transposed table needs unique ids")
        names = [name for name, _ in self.columns]
        return names, [(str(key), [cells[row] for _, cells in self.columns]) for row, key in enumerate(self.ids)]

    def text(self) -> bytes:
        """Return the content of a text file."""
        form = self.form
        if self.transposed:
            names, columns = self.turned()
            columns.insert(0, ("", names))
        else:
            index, columns = self.layout()
            columns = columns if index is None else [index, *columns]
        rows = zip(*[[_written(cell, form.decimal) for cell in cells] for _, cells in columns], strict=True)
        records = [[name for name, _ in columns]] if form.header else []
        records += [list(row) for row in rows]
        if form.edit_records is not None:
            records = form.edit_records(records)
        sink = io.StringIO()
        csv.writer(sink, delimiter=form.separator, lineterminator=form.newline, quoting=form.quoting).writerows(records)  # type: ignore[arg-type]
        content = ("".join(line + form.newline for line in form.above) + sink.getvalue()).encode(form.encoding)
        return content if form.edit_bytes is None else form.edit_bytes(content)

    def frame(self, *, dates: bool = True) -> Any:
        """Return a pandas frame; with ``dates``, ids that are dates become time stamps."""
        import pandas as pd

        if self.transposed:
            names, columns = self.turned()
            return pd.DataFrame(dict(columns), index=pd.Index(names))
        index, columns = self.layout()
        content = {}
        for name, cells in columns:
            if name in content:
                raise NotApplicable("a frame has unique names of columns")
            content[name] = typed(cells, dates=dates) if cells is self.ids else cells
        frame = pd.DataFrame(content)
        if index is not None:
            frame.index = pd.Index(typed(index[1], dates=dates), name=index[0] or None)
        return frame


def typed(cells: Sequence[Any], *, dates: bool) -> Any:
    """Return ids as one type of column: numbers of one kind, time stamps, or objects."""
    import pandas as pd

    if all(isinstance(cell, int | float) for cell in cells):
        return np.array(cells, dtype=float if any(isinstance(cell, float) for cell in cells) else np.int64)
    if dates and all(isinstance(cell, str) and len(cell) == 10 and cell[:2] == "20" for cell in cells):
        return pd.to_datetime(pd.Series(cells), format="%Y-%m-%d").array
    return np.array(cells, dtype=object)


def _written(cell: Any, decimal: str) -> str:
    if cell is None or cell != cell:
        return ""
    return repr(cell).replace(".", decimal) if isinstance(cell, float) else str(cell)


@dataclass
class TableProblem:
    """Tables of several views, how they are given to gapview, and the truth about them."""

    base: str
    interface: str
    kind: str  # of the ids
    truth: dict[str, Array]  # samples × features of every view; a row of NaN where the sample lacks the view
    features: dict[str, list[str] | None]  # None: the names are lost, columns are compared by position
    tables: list[SampleTable]
    accepted: list[set[Any]]  # ids of every sample that may be in the result
    options: dict[str, Any] = field(default_factory=dict)  # for the reading function
    more: dict[str, bytes] = field(default_factory=dict)  # further files that are given as views
    new: list[SampleTable] = field(default_factory=list)  # further samples, for predict …
    clean: list[SampleTable] = field(default_factory=list)  # … and the same without a mistake

    def one(self, rng: np.random.Generator) -> SampleTable:
        """Draw one of the tables."""
        return self.tables[int(rng.integers(len(self.tables)))]

    def shared_rows(self, table: SampleTable) -> Array:
        """Return the rows of a table whose samples are in another table, too."""
        others = np.concatenate([other.samples for other in self.tables if other is not table])
        rows: Array = np.flatnonzero(np.isin(table.samples, others))
        if not len(rows):
            raise NotApplicable("no sample is in two tables")
        return rows

    def note_ids(self) -> None:
        """Accept the present ids of all tables for their samples."""
        for table in self.tables:
            for sample, key in zip(table.samples.tolist(), table.ids or (), strict=False):
                self.accepted[sample].add(key)

    def forget_rows(self, table: SampleTable) -> None:
        """Set the truth of samples that the table no longer has to missing."""
        gone = np.setdiff1d(np.arange(len(self.accepted)), table.samples)
        self.truth[table.view][gone] = np.nan

    def change_values(self, table: SampleTable, change: Callable[[Array], Array]) -> None:
        """Change the values of a table and the truth in the same way."""
        self.truth[table.view] = change(self.truth[table.view])
        table.columns = [(name, change(np.array(cells, dtype=float)).tolist()) for name, cells in table.columns]


def draw_problem(
    base: Base, interface: str, kind: str, rng: np.random.Generator, *, plain: bool = False
) -> TableProblem:
    """Draw samples, features, gaps, the order of rows and the place of the ids.

    Parameters
    ----------
    base : Base
        The data set.
    interface : str
        How the tables are given to gapview.
    kind : str
        Kind of sample ids.
    rng : numpy.random.Generator
        Source of all draws.
    plain : bool, default=False
        Give the tables in the orientation of the data set, with ids that can be detected without doubt.
    """
    views = list(base.views)
    if len(views) > 2:
        views = [views[k] for k in sorted(rng.choice(len(views), int(rng.integers(2, 4)), replace=False))]
    n_samples = len(base.ids)
    rows = np.sort(rng.choice(n_samples, int(rng.integers(min(40, n_samples), n_samples + 1)), replace=False))
    truth, features = {}, {}
    has = np.stack([~np.isnan(base.views[view][rows, 0]) for view in views])
    if rng.random() < 0.6:
        has &= rng.random(has.shape) > rng.uniform(0.05, 0.25)
    rows, has = rows[has.any(axis=0)], has[:, has.any(axis=0)]
    for view, there in zip(views, has, strict=True):
        values = base.views[view][rows]
        most = int(rng.choice([12, 25, 40, 60]))
        most = most if _distinct(values[there][:, :most]) else values.shape[1]
        truth[view], features[view] = np.where(there[:, None], values[:, :most], np.nan), base.features[view][:most]
    ids = make_ids(kind, [base.ids[row] for row in rows], rng)
    id_name, place = _draw_place(interface, kind, rng)
    shuffled = rng.random() < 0.5
    tables = []
    for view, there in zip(views, has, strict=True):
        own = np.flatnonzero(there)
        own = rng.permutation(own) if shuffled else own
        columns = [(name, truth[view][own, j].tolist()) for j, name in enumerate(features[view])]
        tables.append(SampleTable(view, columns, own, [ids[row] for row in own], id_name, place))
    problem = TableProblem(base.name, interface, kind, truth, dict(features), tables, [set() for _ in rows])
    problem.note_ids()
    if plain and base.features_in_rows:
        for table in tables:
            table.transposed = True
        problem.options["orient"] = "features"
    elif plain and place != "index" and rng.random() < 0.2:
        problem.options["id_column"] = id_name
    return problem


def _distinct(values: Array) -> bool:
    return len(np.unique(values, axis=0)) == len(values)


def _draw_place(interface: str, kind: str, rng: np.random.Generator) -> tuple[str, str]:
    """Draw the name and place of the ids among those in which they can be detected."""
    if interface in ("anndata", "h5ad"):
        return "", "index"
    numeric = kind in ("integer", "float", "zeros", "round", "huge")
    place = str(rng.choice(["index", "first", "first", "later"]))
    names: list[str] = list(KNOWN_NAMES)
    in_frame = place == "index" and interface in ("parquet", "feather", "pandas", "dask")  # of others a first column
    if place == "index":
        names += ["", ""]
    if in_frame or (kind != "date" and not (numeric and place == "later")):
        names += UNKNOWN_NAMES
    return str(rng.choice(names)), place
