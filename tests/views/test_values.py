"""Values of every type are read as the same numbers, or refused by one of our errors."""

from __future__ import annotations

import os
import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import gapview
from gapview import GRMF, Views
from gapview.errors import GapviewError, GapviewWarning
from gapview.report import write_clustering_report

pd = pytest.importorskip("pandas")

N = 12
A = np.random.RandomState(0).normal(size=(N, 4))
IDS = [f"s{i}" for i in range(N)]
FEW = A > 1.0


def with_cell(cell):
    cells = A.astype(object)
    cells[0, 0] = cell
    return cells


def read(view):
    (matrix,) = Views([view]).matrices
    return matrix.toarray() if sparse.issparse(matrix) else matrix


# -- arrays ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "number"),
    [(Decimal("2.5"), 2.5), (Fraction(1, 2), 0.5), (True, 1.0), (np.True_, 1.0), (2**70, 2.0**70), (np.int8(3), 3.0)],
)
def test_objects_that_are_numbers(cell, number):
    assert read(with_cell(cell))[0, 0] == number


@pytest.mark.parametrize(
    "cell", [10**400, -(10**400), Fraction(10**400, 3), Decimal("1e999")], ids=["+", "-", "fraction", "decimal"]
)
def test_objects_beyond_the_largest_float(cell):
    with pytest.raises(GapviewError, match="contains infinity.*1 row.*below 1.8e308"):
        Views([with_cell(cell)])


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("3", "text"),
        (b"3", "text"),
        (bytearray(b"3"), "text"),
        (1j, "complex"),
        (np.complex64(1j), "complex"),
        (object(), "type object"),
        ([1], "type list"),
        (np.array([1.0]), "type ndarray"),
        (np.timedelta64(5), "type timedelta64"),
        (np.datetime64("2020-01-01"), "type datetime64"),
        (datetime(2020, 1, 1), "type datetime"),
        (timedelta(1), "type timedelta"),
        (Decimal("sNaN"), "signaling NaN"),
    ],
)
@pytest.mark.parametrize("wrap", [np.asarray, np.ma.asarray], ids=["array", "masked array"])
def test_objects_that_are_no_numbers(cell, found, wrap):
    with pytest.raises(GapviewError, match=f"'view_0' .*{found}"):
        Views([wrap(with_cell(cell))])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (A.astype(str), "text"),
        (A.astype("S"), "text"),
        (A + 1j, "complex"),
        (A.astype(np.clongdouble), "complex"),
        (np.zeros((N, 2), dtype=[("a", float)]), "type"),
        (np.zeros((N, 2), dtype="V8"), "type"),
        (np.full((N, 2), np.datetime64("2020-01-01")), "type datetime64"),
        (np.full((N, 2), np.timedelta64(3)), "type timedelta64"),
        (A.astype(np.longdouble) * np.longdouble("1e400"), "infinity")
        if np.finfo(np.longdouble).max > np.finfo(float).max
        else (A * np.inf, "infinity"),
    ],
)
@pytest.mark.parametrize("wrap", [np.asarray, np.ma.asarray], ids=["array", "masked array"])
def test_arrays_that_hold_no_real_numbers(values, found, wrap):
    with pytest.raises(GapviewError, match=f"'view_0' .*{found}"):
        Views([wrap(values)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "longdouble", ">f8", "int8", "uint64", "bool"])
def test_masked_values_are_missing(dtype):
    values = np.abs(A).astype(dtype)
    hidden = np.repeat((np.arange(N) == 3)[:, None], 4, axis=1)
    plain = Views([values, A])
    masked = Views([np.ma.array(values, mask=hidden), A])
    assert masked.mask[:, 0].tolist() == [row != 3 for row in range(N)]
    np.testing.assert_array_equal(masked.matrices[0], plain.matrices[0][~hidden[:, 0]])
    assert masked.matrices[0].dtype == plain.matrices[0].dtype
    np.testing.assert_array_equal(Views([np.ma.array(values)]).matrices[0], plain.matrices[0])


def test_masked_objects_are_not_read():
    cells = np.ma.array(with_cell("text"), mask=False)
    cells[0] = np.ma.masked
    assert Views([cells, A]).n_present == (N - 1, N)


def test_masked_graphs_and_starts_are_refused():
    square = np.ma.array(np.ones((N, N)), mask=np.eye(N, dtype=bool))
    with pytest.raises(GapviewError, match="graph of view 'view_0'.*masked"):
        GRMF(2, graph=[square]).fit([A])
    with pytest.raises(GapviewError, match="starting codes of view 'view_0'.*masked"):
        GRMF(2, init=[np.ma.array(A[:, :2], mask=FEW[:, :2])]).fit([A])
    with pytest.raises(GapviewError, match="starting codes of view 'view_0'"):
        GRMF(2, init=[with_cell(10**400)[:, :2]]).fit([A])


# -- sparse matrices -------------------------------------------------------------------------------------------


def damaged(kind, part, place, value, n_rows=N, n_columns=5):
    matrix = sparse.random(n_rows, n_columns, 0.5, format="csr", random_state=0).asformat(kind)
    getattr(matrix, part)[place] = value
    return matrix


DAMAGED = {
    "csr index": lambda **size: damaged("csr", "indices", 3, 10**6, **size),
    "csr negative index": lambda **size: damaged("csr", "indices", 3, -5, **size),
    "csr pointer": lambda **size: damaged("csr", "indptr", 3, 10**6, **size),
    "csr falling pointer": lambda **size: damaged("csr", "indptr", 3, 0, **size),
    "csc index": lambda **size: damaged("csc", "indices", 3, 10**6, **size),
    "csc pointer": lambda **size: damaged("csc", "indptr", 1, 10**6, **size),
    "bsr index": lambda **size: damaged("bsr", "indices", 0, 77, **size),
    "coo row": lambda **size: damaged("coo", "row", 1, 10**6, **size),
    "coo column": lambda **size: damaged("coo", "col", 1, -1, **size),
    "lil row": lambda **size: damaged("lil", "rows", 0, [99], **size),
    "lil lengths": lambda **size: damaged("lil", "rows", 0, list(range(999)), **size),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_sparse_matrices_are_refused(case):
    matrix = DAMAGED[case]()
    with pytest.raises(GapviewError, match="View 'view_0' is a damaged sparse matrix"):
        Views([matrix])
    square = DAMAGED[case](n_columns=N)
    with pytest.raises(GapviewError, match="The graph of view 'view_0' is a damaged sparse matrix"):
        GRMF(2, graph=[square]).fit([A])
    codes = DAMAGED[case](n_columns=2)
    with pytest.raises(GapviewError, match="starting codes of view 'view_0' is a damaged sparse matrix"):
        GRMF(2, init=[codes]).fit([A])


def test_arrays_of_sparse_matrices_that_differ_in_length():
    matrix = sparse.csr_array(A)
    matrix.data = matrix.data[:-3]
    with pytest.raises(GapviewError, match="damaged sparse matrix"):
        Views([matrix])
    matrix = sparse.coo_array(A)
    matrix.coords = (matrix.coords[0], matrix.coords[1][:-1])
    with pytest.raises(GapviewError, match="damaged sparse matrix"):
        Views([matrix])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_formats_hold_the_same_numbers(kind, make):
    values = np.where(FEW, A, 0)
    given = make(values).asformat(kind)
    np.testing.assert_array_equal(read(given), values)
    assert given.format == kind


def test_repeated_places_of_sparse_matrices_are_summed():
    rows, columns = np.array([0, 0, 1, 1, 2, 0]), np.array([1, 1, 0, 2, 2, 1])
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, -4.0])
    repeated = sparse.coo_array((values, (rows, columns)), shape=(3, 3))
    unsorted = sparse.csr_array((values, np.array([1, 1, 1, 2, 0, 2]), np.array([0, 3, 5, 6])), shape=(3, 3))
    np.testing.assert_array_equal(read(repeated), repeated.toarray())
    np.testing.assert_array_equal(read(unsorted), unsorted.toarray())
    assert unsorted.nnz == 6  # the user's matrix is not changed
    assert Views([unsorted]).matrices[0].has_canonical_format


# -- containers in place of rows -------------------------------------------------------------------------------


def test_containers_within_a_view_are_refused_at_once():
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(np.ones((2000, 300), dtype=np.float32))
    began = time.perf_counter()
    for view in ((adata, "counts"), [adata], ("counts", adata)):
        with pytest.raises(GapviewError, match=r"View 'rna' is a (tuple|list) that holds.*AnnData.*by layer='counts'"):
            Views({"rna": view})
    assert time.perf_counter() - began < 0.2


@pytest.mark.parametrize("part", [pd.DataFrame(A), sparse.csr_array(A)], ids=["frame", "sparse"])
def test_frames_and_sparse_matrices_within_a_view(part):
    for view in ((part, "x"), [part], [part, part]):
        with pytest.raises(GapviewError, match=f"holds an object of type {type(part).__name__}.*itself"):
            Views({"a": view})


def test_lists_of_rows_are_views():
    for rows in ([*A], [tuple(row) for row in A], A.tolist(), [pd.Series(row) for row in A]):
        np.testing.assert_array_equal(read(rows), A)


# -- backed AnnData --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_parts_of_backed_files(tmp_path, make):
    anndata = pytest.importorskip("anndata")
    whole = anndata.AnnData(make(A), obs=pd.DataFrame(index=IDS), var=pd.DataFrame(index=list("abcd")))
    whole.write_h5ad(tmp_path / "whole.h5ad")
    backed = anndata.read_h5ad(tmp_path / "whole.h5ad", backed="r")
    for part in (np.s_[[3, 1, 2]], np.s_[2:9:3], np.s_[:, ["c", "a"]]):
        np.testing.assert_array_equal(*(read_dense(adata[part]) for adata in (backed, whole)))
    for part in (np.s_[::-1], np.s_[:, ::-1]):
        with pytest.raises(GapviewError, match=r"View 'a' is a part of a backed AnnData.*to_memory\(\)"):
            Views({"a": backed[part]})
        assert Views({"a": whole[part]}).n_samples == N


def read_dense(adata):
    views = Views({"a": adata})
    return pd.DataFrame(views.give_back([np.asarray(sparse.csr_array(views.matrices[0]).toarray())])["a"])


# -- frames ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("Int64", [1, 2] * 6),
        ("Float32", [1.5, 2.5] * 6),
        ("boolean", [True, False] * 6),
        ("category", [1, 2] * 6),
        ("Sparse[float]", [0.0, 2.5] * 6),
        ("longdouble", [1.5, 2.5] * 6),
        ("int64[pyarrow]", [1, 2] * 6),
        ("float[pyarrow]", [1.5, 2.5] * 6),
        ("bool[pyarrow]", [True, False] * 6),
    ],
)
def test_columns_of_pandas_types(dtype, values):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": A[:, 0], "b": pd.Series(values, dtype=dtype)}).set_axis(IDS)
    np.testing.assert_array_equal(read(frame), np.column_stack([A[:, 0], np.asarray(values, dtype=float)]))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.date_range("2020", periods=N)),
        pd.Series(pd.to_timedelta(range(N))),
        pd.Series(pd.period_range("2020", periods=N)),
        pd.Series([1j] * N),
        pd.Series([1j] * N, dtype=object),
        pd.Series([np.timedelta64(1, "Y")] * N, dtype=object),
        pd.Series([np.timedelta64(5)] * N, dtype=object),
        pd.Series([10**400] * N, dtype=object),
    ],
    ids=["dates", "durations", "periods", "complex", "complex objects", "years", "units", "huge"],
)
def test_columns_without_numbers(column):
    frame = pd.DataFrame({"a": A[:, 0], "b": column}).set_axis(IDS)
    if column.dtype.kind in "Mm" or "period" in str(column.dtype) or isinstance(column[0], np.timedelta64):
        with pytest.warns(GapviewWarning, match="1 column of dates or times of view 'view_0' left out: 'b'"):
            assert Views([frame]).n_features == (1,)
        return
    with pytest.raises(GapviewError, match="'view_0' (must hold numbers.*'b'|contains infinity)"):
        Views([frame])


def test_columns_of_polars_types():
    pl = pytest.importorskip("polars")

    def frame(values, dtype):
        return pl.DataFrame({"id": IDS, "a": A[:, 0], "b": pl.Series(values, dtype=dtype)})

    numbers = [(Decimal("1.5"), pl.Decimal(5, 2)), (3, pl.UInt64), (True, pl.Boolean), (2.5, pl.Float32)]
    for value, dtype in numbers:
        np.testing.assert_array_equal(read(frame([value] * N, dtype))[:, 1], np.full(N, float(value)))
    for value, dtype in [("x", pl.Categorical), (date(2020, 1, 1), pl.Date), (timedelta(1), pl.Duration)]:
        with pytest.warns(GapviewWarning, match="left out: 'b'"):
            assert Views([frame([value] * N, dtype)]).n_features == (1,)
    with pytest.raises(GapviewError, match="'b' holds values of type list"):
        Views([frame([[1]] * N, pl.List(pl.Int64))])


# -- transposed arrays -----------------------------------------------------------------------------------------


def test_transposed_arrays_are_named():
    tall, wide = np.ones((100, 7)), np.ones((40, 100))
    for views in ({"a": tall, "b": wide}, {"b": wide, "a": tall}, {"a": tall, "b": wide, "c": tall}):
        with pytest.raises(
            GapviewError,
            match=r"'b' has 40 rows and 100 columns.*100 rows.*transposed.*give b\.T \(on.*--transpose b\)\.",
        ):
            Views(views)
    with pytest.raises(
        GapviewError, match=r"'b' has 40 rows.*; 'c' has 7 rows.*give b\.T, c\.T \(on.*--transpose b --transpose c\)\."
    ):
        Views({"a": tall, "b": wide, "c": tall.T})
    with pytest.raises(GapviewError, match=r"Some views seem.*'a' is 12 × 4, 'b' is 4 × 12\..*\.T"):
        Views({"a": A, "b": A.T})
    with pytest.raises(GapviewError, match=r"'b' has 4 rows and 12 columns.*give b\.T"):
        Views({"a": A, "b": A.T}, sample_ids=IDS)
    with pytest.raises(GapviewError, match="must all have one row for each sample"):
        Views({"a": tall, "b": wide, "c": np.ones((99, 7))})


# -- names -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("views", "what"),
    [
        ({"blood\udcff": A}, r"the name of a view, 'blood\\udcff'"),
        ({"a": pd.DataFrame(A, index=IDS, columns=["x\ud800", "b", "c", "d"])}, r"a feature of view 'a', 'x\\ud800'"),
        ({"a": pd.DataFrame(A, index=["x\udc80", *IDS[1:]])}, r"a sample id, 'x\\udc80'"),
    ],
)
def test_lone_surrogates_in_names_are_refused(views, what):
    with pytest.raises(GapviewError, match=f"UTF-8; {what}, cannot.*Rename"):
        Views(views)
    with pytest.raises(GapviewError, match=f"UTF-8; {what}, cannot.*Rename"):
        GRMF(2).fit(views)


def test_lone_surrogates_in_given_names_and_ids_are_refused():
    with pytest.raises(GapviewError, match="UTF-8; the name of a view"):
        Views([A], names=["\udcff"])
    for name in (3, "b"):  # names that are no text become text
        assert Views([A], names=[name]).names == (str(name),)
    with pytest.raises(GapviewError, match="UTF-8; a sample id"):
        Views([A], sample_ids=["\udcff", *IDS[1:]])


# -- paths -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x\ud800", "x\0"])
def test_paths_that_no_file_can_have(tmp_path, name):
    model = GRMF(2, random_state=0).fit([A])
    path = f"{tmp_path}/{name}"
    for use in (model.save, gapview.load, gapview.describe, lambda path: model.fit([A], checkpoint=path)):
        with pytest.raises(GapviewError, match="No file or folder can be called|no file"):
            use(path)
    with pytest.raises(GapviewError, match="No file or folder can be called"):
        write_clustering_report(model, path, assess=False)


def test_paths_that_are_not_utf_8(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"\xff.gapview")
    try:
        with open(path, "wb"):
            pass
    except OSError:
        pytest.skip("the file system has names of UTF-8 only")
    model = GRMF(2, random_state=0).fit([A])
    model.save(os.fsdecode(path))
    np.testing.assert_array_equal(gapview.load(os.fsdecode(path)).labels_, model.labels_)
