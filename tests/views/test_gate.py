"""The same data through every interface: the same samples and matrices, or the same error."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

import gapview
from gapview import Views
from gapview.errors import DataFileError, GapviewError, GapviewWarning, InputError
from gapview.io import LIMITS, join_views, read_views, reading_with

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
rdata = pytest.importorskip("rdata")
pytest.importorskip("xlsxwriter")
pytest.importorskip("python_calamine")
pytest.importorskip("anndata")
pytest.importorskip("distributed")
pytest.importorskip("click")
dd = pytest.importorskip("dask.dataframe")

from click.testing import CliRunner  # noqa: E402

from gapview.backends.dask.tasks import Tasks  # noqa: E402
from gapview.backends.dask.views import collect_samples, read_blocks  # noqa: E402
from gapview.commands.cli import main  # noqa: E402
from gapview.commands.console import command_words  # noqa: E402

N = 12  # rows of a view; the views have 8 samples in common
# 12 digits, since a workbook has at most 16
VALUES = {view: np.random.RandomState(seed).normal(size=(N, 3)).round(12) for seed, view in enumerate("ab")}
FEATURES = {
    "a": ["ENSG00000141510", "ENSG00000012048", "ENSG00000139618"],
    "b": ["hsa-mir-21", "hsa-mir-155", "hsa-let-7"],
}
ROWS = {"a": list(range(N)), "b": list(range(N + 3, 3, -1))}  # the samples of each view; b has another order
OFFICE = ("xlsx", "rds", "csv.zst")
FILES = ("csv", "parquet", "feather", "h5ad", "10x", *OFFICE)
ALL = (*FILES, "pandas", "polars", "anndata", "dask", "command")
TABLES = ("csv", "parquet", "feather", *OFFICE, "pandas", "polars", "dask", "command")
WITH_INDEX = ("csv", "parquet", "feather", "xlsx", "csv.zst", "pandas", "dask", "command")


def table(view, ids=None, name="id", **more):
    """Return a view as a frame whose first column holds the ids, with further columns at the end."""
    features = dict(zip(FEATURES[view], VALUES[view].T, strict=True))
    columns = {} if ids is None else {name: ids}
    return pd.DataFrame({**columns, **features, **{key: list(cells) for key, cells in more.items()}})


def both(form_a, form_b=None, name_a="id", name_b="id"):
    """Return both views with ids made from the numbers of their samples."""
    return {
        "a": table("a", [form_a(row) for row in ROWS["a"]], name_a),
        "b": table("b", [(form_b or form_a)(row) for row in ROWS["b"]], name_b),
    }


def sample(row):
    return f"P{row + 10}"


def number(row):
    return 31 + 7 * ((5 * row) % 17)  # distinct, in no order


def turned(frame):
    """Return a table with a row for each feature; its first column has their names."""
    flipped = frame.set_index(frame.columns[0]).T
    return flipped.rename_axis(index="feature", columns=None).reset_index()


@dataclass
class Case:
    """Two tables, how they are read, and the result."""

    tables: dict[str, Any]
    interfaces: tuple[str, ...] = ALL
    options: dict[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()  # the same options of the command
    ids: Any = None  # function from the number of a sample to its id as text, if the tables can be joined
    error: str = ""  # the sentence of the error otherwise
    by_row: bool = False
    warning: str = ""
    more: tuple[str, ...] = ()  # features of view a besides its numbers
    index: bool = False  # the first column is the index of frames, without a name
    kinds: tuple[type, ...] = (InputError,)
    same_sentence: bool = True
    n_partitions: int = 2  # of Dask frames


def plain(**changes):
    tables = both(sample)
    for view, of_view in changes.items():
        tables[view] = tables[view].assign(**of_view)
    return tables


SEX = {"a": {"sex": list("fm") * 6}}
RECOVERED = {"gapview_recovered": [0, 1] * 6, "gapview_filled_cells": [0, 2] * 6}
TEXT_IDS = {"name_a": "tumour", "name_b": "biopsy"}

CASES = {
    "text ids": Case(both(sample), ids=sample),
    "text ids under different names": Case(both(sample, **TEXT_IDS), TABLES, ids=sample),
    "integers under an unknown name, shared": Case(
        both(number, name_a="mouse", name_b="mouse"), TABLES, ids=lambda row: str(number(row))
    ),
    "integers under unknown names, not shared": Case(
        both(number, name_a="mouse", name_b="rat"),
        TABLES,
        error=r"The column 'mouse' of A may hold sample ids: every row has another whole number.*id_column='mouse'",
    ),
    "integers under unknown names, named": Case(
        both(number, name_a="mouse", name_b="rat"),
        TABLES[:-2],
        {"id_column": ["mouse", "rat"]},
        ids=lambda row: str(number(row)),
    ),
    "whole numbers and floats": Case(
        both(number, lambda row: float(number(row))), TABLES, ids=lambda row: str(number(row))
    ),
    "a suffix": Case(
        both(sample, lambda row: f"{sample(row)}-01A"),
        error="A and B have no sample in common.*match but for .*'-01A'.*(?:id_pattern=|--id-pattern)",
    ),
    "id_pattern": Case(
        both(sample, lambda row: f"{sample(row)}-01A"),
        options={"id_pattern": r"P\d+"},
        command=("--id-pattern", r"P\d+"),
        ids=sample,
    ),
    "id_pattern of one view": Case(
        both(sample, lambda row: f"{sample(row)}-01A"),
        options={"id_pattern": {"b": "-01A$=>"}},
        command=("--id-pattern", "b=-01A$=>"),
        ids=sample,
    ),
    "one view transposed": Case(
        {"a": both(sample)["a"], "b": turned(both(sample)["b"])},
        error="Rows must be samples, but B seems to have features in rows.*--transpose B",
        n_partitions=1,  # of Dask frames the first rows are checked
    ),
    "all views transposed": Case(
        {view: turned(frame) for view, frame in both(sample).items()},
        error="Rows must be samples, but A and B seem to have features in rows.*--transpose all",
        n_partitions=1,
    ),
    "orient of one view": Case(
        {"a": both(sample)["a"], "b": turned(both(sample)["b"])},
        options={"orient": {"b": "features"}},
        command=("--transpose", "b"),
        ids=sample,
    ),
    "orient of all views": Case(
        {view: turned(frame) for view, frame in both(sample).items()},
        options={"orient": "features"},
        command=("--transpose", "all"),
        ids=sample,
    ),
    "row numbers of a larger table beside ids": Case(
        {
            view: frame.set_axis([3 * row + 2 for row in range(N)])
            for view, frame in both(sample, **{"name_a": "patient_id", "name_b": "patient_id"}).items()
        },
        WITH_INDEX,
        ids=sample,
        index=True,
    ),
    "row numbers of a larger table alone": Case(
        {
            view: table(view).set_axis([3 * row + 2 for row in range(start, start + N)])
            for view, start in (("a", 0), ("b", 2))
        },
        ("pandas", "parquet", "feather"),
        warning="numbers without a name, as if they were selected from a larger table",
        ids=lambda row: str(3 * row + 2),
        index=True,
    ),
    "leading zeros": Case(
        both(lambda row: f"{row + 1:03d}", lambda row: row + 1),
        error="no sample in common.*'0\\d+', .* has '\\d+',.*leading zeros.*(?:id_pattern='zeros'|--id-pattern zeros)",
    ),
    "Unicode forms": Case(
        both(
            lambda row: f"P{row + 10}" if row < 9 else f"Ren\u00e9{row}",
            lambda row: f"P{row + 10}" if row < 9 else f"Rene\u0301{row}",
        ),
        warning="Unicode form",
        ids=None,
    ),
    "repeated ids": Case(
        both(lambda row: sample(min(row, 10))),
        kinds=(InputError, DataFileError),
        error="'P20'",
        same_sentence=False,  # the sentence for files names lines
    ),
    "no ids, equal length": Case({view: table(view) for view in VALUES}, TABLES, by_row=True),
    "no ids, unequal length": Case(
        {"a": table("a"), "b": table("b").iloc[:-2]},
        TABLES,
        error="without sample ids must all have one row for each sample, 12 as in A; A has 12, B has 10 rows",
    ),
    "ids in one view only": Case(
        {"a": both(sample)["a"], "b": table("b")}, TABLES, error="B have no sample ids, while A has ids such as 'P10'"
    ),
    "a column of text": Case(
        plain(**SEX), TABLES, ids=sample, warning="1 column of text of A left out: 'sex'. Encode it"
    ),
    "drop": Case(plain(**SEX), TABLES, {"drop": "sex"}, ("--drop", "sex"), ids=sample),
    "drop of one view": Case(plain(**SEX), TABLES, {"drop": {"a": ["sex"]}}, ("--drop", "a=sex"), ids=sample),
    "encode": Case(plain(**SEX), TABLES, {"encode": True}, ("--encode",), ids=sample, more=("sex=f", "sex=m")),
    "columns of recover": Case(plain(a=RECOVERED), TABLES, ids=sample),
    "a column of ids that is absent": Case(
        both(sample), TABLES, {"id_column": "nobody"}, ("--id", "nobody"), error="no column 'nobody' in A"
    ),
}


# -- interfaces --------------------------------------------------------------------------------------------------------


def as_frame(case, frame):
    return frame.rename_axis(None) if case.index else frame.reset_index(drop=True)


def as_anndata(frame):
    import anndata

    keys, values = frame.iloc[:, 0].astype(str).tolist(), frame.iloc[:, 1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # repeated names
        obs, var = pd.DataFrame(index=keys), pd.DataFrame(index=list(values.columns))
        return anndata.AnnData(values.to_numpy(dtype=float), obs=obs, var=var)


def write_10x(data, folder):
    """Write a folder of 10x, in which features are in rows."""
    folder.mkdir()
    mmwrite(folder / "matrix.mtx", sparse.coo_array(data.X.T), precision=17)
    (folder / "barcodes.tsv").write_text("\n".join(data.obs_names))
    (folder / "features.tsv").write_text("".join(f"{name}\t{name}\tGene Expression\n" for name in data.var_names))


def write(case, interface, folder):
    paths = {}
    for view, frame in case.tables.items():
        paths[view] = path = folder / f"{view}.{interface.replace('command', 'csv')}"
        if interface == "h5ad":
            as_anndata(frame).write_h5ad(path)
        elif interface == "10x":
            write_10x(as_anndata(frame), path)
        elif interface == "xlsx":
            as_frame(case, frame).to_excel(path, index=case.index, engine="xlsxwriter")
        elif interface == "rds":
            rdata.write_rds(path, as_frame(case, frame))
        elif interface == "csv.zst":
            content = as_frame(case, frame).to_csv(index=case.index).encode()
            path.write_bytes(pa.Codec("zstd").compress(content, asbytes=True))
        elif interface in ("csv", "command"):
            as_frame(case, frame).to_csv(path, index=case.index)
        else:
            getattr(as_frame(case, frame), f"to_{interface}")(path)
    return paths


def read(case, interface, folder):
    """Read and join the tables of a case for a fit, through an interface."""
    frames = {view: as_frame(case, frame) for view, frame in case.tables.items()}
    if interface == "command":
        return read_by_command(case, write(case, interface, folder), folder)
    if interface in FILES:
        with reading_with(LIMITS, own_process=False):
            return join_views(read_views(write(case, interface, folder), **case.options))
    if interface == "dask":
        given = {
            view: dd.from_pandas(frame, npartitions=case.n_partitions, sort=False) for view, frame in frames.items()
        }
        blocks = read_blocks(tasks := Tasks(), given, None, "raise")
        return collect_samples(tasks, blocks, np.arange(blocks.n_samples))
    if interface == "polars":
        frames = {view: pl.DataFrame(frame.to_dict("list")) for view, frame in frames.items()}
    if interface == "anndata":
        frames = {view: as_anndata(frame) for view, frame in case.tables.items()}
    views = Views(frames, **case.options)
    views.demand_links()
    return views


def read_by_command(case, paths, folder):
    arguments = [f"{view}={path}" for view, path in paths.items()]
    quick = ["-k", "2", "--no-report", "--no-assess", "--set", "selection=fixed", "-o", str(folder / "out")]
    result = CliRunner().invoke(main, ["cluster", *arguments, *quick, *case.command])
    for line in result.output.splitlines():
        if line.startswith("Warning"):
            warnings.warn(line.removeprefix("Warning").strip(), GapviewWarning, stacklevel=1)
    if result.exit_code:
        assert isinstance(result.exception, SystemExit), result.exception
        raise InputError(result.stderr.removeprefix("Error:").strip())  # a command has no classes of errors
    return gapview.load(folder / "out" / "model.gapview").views_


def without_names(text):
    """Return a message without the names of files, sheets and views."""
    text = text.replace(" (sheet 'Sheet1')", "")
    for view in VALUES:
        text = re.sub(rf"view '{view}'|'{view}\.[\w.]+'|'{view}'(?!:)", view.upper(), text)
        text = re.sub(rf"--transpose {view}\b", f"--transpose {view.upper()}", text)
    return text


def without_examples(text):
    """Return a message without the examples of ids: blocks of Dask frames are in another order."""
    return re.sub(r"'[^']*'(?:, '[^']*')*", "…", text)


def outcome(case, interface, folder):
    """Return views or an error, and the warnings, without names of files and views."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GapviewWarning)
        try:
            found = read(case, interface, folder)
        except GapviewError as error:
            found = error
    said = [str(one.message) for one in caught if issubclass(one.category, GapviewWarning)]
    kept = sorted(without_names(text) for text in said if "a fit refuses them" not in text)
    return found, kept


@pytest.mark.parametrize(
    ("name", "interface"),
    [
        (name, interface)
        for name, case in CASES.items()
        for interface in case.interfaces
        if not (interface == "dask" and case.options)  # a fit on Dask frames takes no options
        and not (interface == "command" and case.options and not case.command)
    ],
)
def test_every_interface_gives_the_same_answer(name, interface, tmp_path):
    case = CASES[name]
    found, warned = outcome(case, interface, tmp_path)
    of_pandas, warned_by_pandas = outcome(case, "pandas", tmp_path)
    words = command_words if interface == "command" else str
    assert bool(case.warning) == bool(warned), warned
    assert re.search(case.warning, " ".join(warned))
    like = without_examples if interface == "dask" else str
    assert [like(text) for text in warned] == [like(words(text)) for text in warned_by_pandas]
    if case.error:
        assert isinstance(found, case.kinds), found
        message = without_names(str(found))
        assert re.search(words(case.error), message), message
        if case.same_sentence:
            assert like(message) == like(words(without_names(str(of_pandas))))
        return
    assert isinstance(found, Views), found
    assert_same(found, of_pandas)
    if case.by_row:
        found = found[np.argsort(found.sample_ids)]
        assert found.sample_ids.tolist() == list(range(N))
        assert any("Rows are matched by their position" in note for note in of_pandas.notes)
        for k, view in enumerate(VALUES):
            np.testing.assert_array_equal(found.matrices[k], VALUES[view])
    elif case.ids is not None:
        assert_joined(case, found)


def in_order(views):
    return views[np.argsort(np.array(views.sample_ids, dtype=str), kind="stable")]


def assert_same(found, expected):
    """Check that samples, presence and matrices are the same, in any order of samples."""
    one, other = in_order(found), in_order(expected)
    assert list(map(str, one.sample_ids)) == list(map(str, other.sample_ids))
    assert (one.names, one.n_features) == (other.names, other.n_features)
    np.testing.assert_array_equal(one.mask, other.mask)
    for matrix, same in zip(one.matrices, other.matrices, strict=True):
        np.testing.assert_array_equal(as_dense(matrix), as_dense(same))


def as_dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def assert_joined(case, found):
    """Check the join against the numbers of the samples."""
    everyone = list(map(str, found.sample_ids))
    rows = ROWS if not case.warning.startswith("numbers without") else {"a": range(N), "b": range(2, N + 2)}
    for k, view in enumerate(VALUES):
        own = dict(zip(map(case.ids, rows[view]), VALUES[view], strict=True))
        present = [key for key, has in zip(everyone, found.mask[:, k], strict=True) if has]
        assert sorted(present) == sorted(own)
        n_features = VALUES[view].shape[1]
        np.testing.assert_array_equal(as_dense(found.matrices[k])[:, :n_features], [own[key] for key in present])
        assert found.feature_names[k].tolist() == [*FEATURES[view], *(case.more if view == "a" else ())]
