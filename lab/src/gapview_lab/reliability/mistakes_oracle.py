"""The oracle of ``mistakes``: reads tables through one interface of gapview, and compares the result with the truth."""

from __future__ import annotations

import gzip
import inspect
import re
import tempfile
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from gapview import Views
from gapview.errors import GapviewError, GapviewWarning
from gapview.io import LIMITS, join_views, read_views, reading_with
from gapview.utils.types import Array
from gapview.views import training_views

from .mistakes_tables import NotApplicable, SampleTable, TableProblem

__all__ = [
    "FILES",
    "FRAMES",
    "INTERFACES",
    "TEXTS",
    "Verdict",
    "difference",
    "give",
    "judge",
    "read_problem",
    "watched",
]

TEXTS = ("csv", "tsv", "semicolon", "csv.gz")
FILES = (*TEXTS, "parquet", "feather", "h5ad")
FRAMES = ("pandas", "polars", "anndata", "dask")
INTERFACES = (*FILES, *FRAMES)
_SEPARATORS = {"tsv": "\t", "semicolon": ";"}


@dataclass(frozen=True)
class Verdict:
    """What came of one problem."""

    outcome: str  # "correct", "warned", "error", "silent" or "foreign"
    reason: str = ""  # what differs from the truth; the message of an error or a warning


# -- giving tables to gapview ----------------------------------------------------------------------------------------


def read_problem(problem: TableProblem, folder: Path) -> Views:
    """Read the tables of a problem through its interface."""
    if problem.interface == "dask":
        return _read_dask(problem, give(problem, problem.tables, folder))
    reader: Callable[..., Any] = read_views if problem.interface in FILES else Views.__init__
    options = _options(problem, reader)
    given = give(problem, problem.tables, folder)
    if problem.interface in FILES:
        with reading_with(LIMITS, own_process=False):
            return join_views(read_views(given, **options))
    return Views(given, **options)


def _options(problem: TableProblem, reader: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a problem; raise an error if the reader lacks one."""
    if unknown := set(problem.options) - set(inspect.signature(reader).parameters):
        raise NotApplicable(f"gapview lacks an option: {', '.join(sorted(unknown))}")
    return dict(problem.options)


def _read_dask(problem: TableProblem, given: Any) -> Views:
    from gapview.backends.dask.tasks import Tasks
    from gapview.backends.dask.views import collect_samples, read_blocks

    tasks = Tasks()
    blocks = read_blocks(tasks, given, None, "raise", **_options(problem, read_blocks))
    return collect_samples(tasks, blocks, np.arange(blocks.n_samples))


def give(problem: TableProblem, tables: list[SampleTable], folder: Path) -> Any:
    """Return tables in the form of the interface of a problem: paths, or a dict of objects."""
    if problem.interface in FILES:
        paths = {table.view: _write(table, problem.interface, folder) for table in tables}
        for name, content in problem.more.items():
            (folder / name).write_bytes(content)
            paths[name.partition(".")[0]] = folder / name
        return paths
    makers: dict[str, Any] = {"polars": _polars, "anndata": _anndata, "dask": _dask}
    make = makers.get(problem.interface, lambda table: table.frame())
    return {table.view: make(table) for table in tables}


def _write(table: SampleTable, interface: str, folder: Path) -> Path:
    path = folder / f"{table.view}.{'csv' if interface == 'semicolon' else interface}"
    if interface in TEXTS:
        if table.form.separator == ",":
            table.form.separator = _SEPARATORS.get(interface, ",")
        content = table.text()
        path.write_bytes(gzip.compress(content, 1) if interface == "csv.gz" else content)
    elif interface == "h5ad":
        _anndata(table).write_h5ad(path)
    else:
        arrow, part = import_module("pyarrow"), import_module(f"pyarrow.{interface}")
        write = part.write_table if interface == "parquet" else part.write_feather
        write(arrow.Table.from_pandas(_one_type(table.frame())), str(path))
    return path


def _one_type(frame: Any) -> Any:
    """Return a frame in which columns of mixed types are text, as typed formats demand."""
    for name in [own for own in frame.columns if frame[own].dtype == object]:
        if len({type(cell) for cell in frame[name]}) > 1:
            frame[name] = [None if cell is None or cell != cell else str(cell) for cell in frame[name]]
    if frame.index.dtype == object and len({type(cell) for cell in frame.index}) > 1:
        frame.index = frame.index.map(str)
    return frame


def _polars(table: SampleTable) -> Any:
    import polars as pl

    frame = table.frame(dates=False)
    if table.transposed or table.layout()[0] is not None:
        if (frame.index.name or "sample_id") in frame.columns:
            raise NotApplicable("a polars frame has unique names of columns")
        frame = frame.rename_axis(frame.index.name or "sample_id").reset_index()
    frame = _one_type(frame)
    return pl.DataFrame({str(name): frame[name].tolist() for name in frame.columns})


def _anndata(table: SampleTable) -> Any:
    import anndata
    import pandas as pd

    if any(not isinstance(cell, int | float) for _, cells in table.columns for cell in cells):
        raise NotApplicable("an AnnData holds numbers")
    values = np.array([cells for _, cells in table.columns], dtype=float).T
    keys = range(table.n_rows) if table.ids is None else table.ids
    obs, var = pd.DataFrame(index=[str(key) for key in keys]), pd.DataFrame(index=[name for name, _ in table.columns])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # repeated names
        made = anndata.AnnData(values, obs=obs, var=var)
        return made.T.copy() if table.transposed else made


def _dask(table: SampleTable) -> Any:
    from dask import dataframe

    frame = table.frame()
    try:
        return dataframe.from_pandas(frame, npartitions=1 + len(frame) % 3, sort=False)
    except NotImplementedError as error:
        raise NotApplicable(str(error)) from None


# -- comparing with the truth ----------------------------------------------------------------------------------------


def judge(problem: TableProblem) -> Verdict:
    """Read a problem, make the checks with which every fit begins, and compare the result with the truth."""
    with tempfile.TemporaryDirectory() as folder:
        return watched(
            lambda: difference(problem, training_views(read_problem(problem, Path(folder)), None, "raise", 2))
        )


def watched(compare: Callable[[], str]) -> Verdict:
    """Return the verdict on a comparison: it returns what differs, raises, or warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            reason = compare()
        except GapviewError as error:
            return Verdict("error", str(error))
        except NotApplicable:
            raise
        except Exception as error:
            return Verdict("foreign", f"{type(error).__name__}: {error}")
    said = [str(one.message) for one in caught if issubclass(one.category, GapviewWarning)]
    if said:
        return Verdict("warned", " | ".join(said))
    return Verdict("silent", reason) if reason else Verdict("correct")


def difference(problem: TableProblem, views: Views) -> str:
    """Return in words what differs from the truth, or nothing.

    Rows are recognised by their values, which no two samples of a view share. So the result shows which true samples
    were joined, whatever ids they have.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> from gapview_lab.reliability.mistakes_bases import load_base
    >>> from gapview_lab.reliability.mistakes_oracle import difference
    >>> from gapview_lab.reliability.mistakes_tables import draw_problem
    >>> problem = draw_problem(load_base("made", None), "pandas", "person", np.random.default_rng(0))
    >>> difference(problem, Views({table.view: np.eye(3) for table in problem.tables}))
    "features of view 'view_0'"
    """
    if sorted(views.names) != sorted(problem.truth):
        return f"views {', '.join(views.names)} instead of {', '.join(problem.truth)}"
    n_true = len(problem.accepted)
    owner = np.full((views.n_samples, views.n_views), -1)
    for k, name in enumerate(views.names):
        truth = problem.truth[name]
        order = _order(views, k, problem.features[name], truth.shape[1])
        if order is None:
            return f"features of view '{name}'"
        matrix = views.matrices[k]
        values = (matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix))[:, order]
        found = _recognised(values, truth)
        if (found < 0).any():
            return f"values of {int((found < 0).sum())} of {len(found)} rows of view '{name}'"
        owner[views.rows(k), k] = found
    of_sample = owner.max(axis=1)
    if (mixed := ((owner >= 0) & (owner != of_sample[:, None])).any(axis=1)).any():
        return f"{int(mixed.sum())} of {len(mixed)} samples joined from different samples"
    true_mask = np.stack([~np.isnan(problem.truth[name][:, 0]) for name in views.names], axis=1)
    n_expected = int(true_mask.any(axis=1).sum())
    if len(np.unique(of_sample)) < len(of_sample):
        return f"{n_expected} samples split into {len(of_sample)}"
    if not np.array_equal(true_mask[of_sample], views.mask) or len(of_sample) != n_expected:
        return f"{int(true_mask.sum() - views.mask.sum())} rows lost of {int(true_mask.sum())}"
    if not (of_sample.min() >= 0 and of_sample.max() < n_true):
        return "unknown samples"
    return _wrong_ids(problem, views, of_sample)


def _order(views: Views, k: int, expected: list[str] | None, n_features: int) -> list[int] | None:
    names = views.feature_names[k]
    if expected is None or names is None:
        return list(range(n_features)) if views.n_features[k] == n_features else None
    place = {str(name): position for position, name in enumerate(names)}
    return [place[name] for name in expected] if sorted(place) == sorted(expected) else None


def _recognised(values: Array, truth: Array) -> Array:
    """Return for every row the true sample with these values, or −1."""
    there = np.flatnonzero(~np.isnan(truth[:, 0]))
    if not len(there):
        return np.full(len(values), -1)
    near = np.all(np.isclose(values[:, None, :], truth[None, there, :], rtol=1e-5, atol=1e-9), axis=2)
    return np.where(near.any(axis=1), there[near.argmax(axis=1)], -1)


def _wrong_ids(problem: TableProblem, views: Views, of_sample: Array) -> str:
    """Return whether samples have ids that are neither theirs nor plain row numbers."""
    ids = views.sample_ids.tolist()
    given = any(table.ids is not None for table in problem.tables)
    if not given or [str(key) for key in ids] == [str(row) for row in range(len(ids))]:
        return ""
    known = [{_plain(key) for key in problem.accepted[sample]} for sample in of_sample.tolist()]
    wrong = sum(_plain(key) not in own for key, own in zip(ids, known, strict=True))
    return f"ids of {wrong} of {len(ids)} samples" if wrong else ""


def _plain(key: Any) -> str:
    """Return an id without differences of form."""
    text = str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)
    text = re.sub(r"(?<=\d)[.,]0+$| 00:00:00$", "", text.strip())
    letters = [one for one in unicodedata.normalize("NFKD", text).casefold() if one.isalnum()]
    return "".join(letters).lstrip("0")
