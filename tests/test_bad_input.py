"""Every bad input gets one of our errors, which says what was expected, what came and what to do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gapview import GRMF, Views
from gapview.datasets import hide_views, make_views, paired_split
from gapview.errors import GapviewError, GapviewWarning, NotFittedError

pd = pytest.importorskip("pandas")

RNG = np.random.RandomState(0)
A = RNG.normal(size=(12, 4))
B = RNG.normal(size=(12, 5))
MISSING = np.full((1, 4), np.nan)


def put(matrix, row, value):
    changed = matrix.copy()
    changed[row] = value
    return changed


DATA = {
    "no views": ([], {}, ValueError, "There are no views.*Expected a list or a dict.*empty list"),
    "no views in a dict": ({}, {}, ValueError, "empty dict"),
    "a number": (3, {}, TypeError, "Expected a list or a dict of views.*got an object of type int"),
    "nothing": (None, {}, TypeError, "got None"),
    "a string": ("data.csv", {}, TypeError, "Expected a list or a dict of views.*str"),
    "a set as a view": ([{1, 2}], {}, TypeError, "not a matrix"),
    "all None": ([None, None], {}, ValueError, "every one is None"),
    "a 3-dimensional array": (np.zeros((2, 12, 4)), {}, ValueError, "2-dimensional.*3 dimensions.*list with one 2-D"),
    "a vector": ([np.zeros(12), B], {}, ValueError, r"2-dimensional.*1 dimensions.*reshape\(-1, 1\)"),
    "ragged rows": ([[[1, 2], [3]], B], {}, ValueError, "unequal length.*2-D array"),
    "no features": ([np.empty((12, 0)), B], {}, ValueError, "no features"),
    "a sample with no view": (
        [put(A, 3, np.nan), put(B, 3, np.nan)],
        {},
        ValueError,
        "at least one view; 1 sample.*: 3. Leave",
    ),
    "a view with no sample": ([A, np.full((12, 5), np.nan)], {}, ValueError, "'view_1' is present for 0 sample"),
    "a view with one sample": (
        [A, B],
        {"mask": [[1, 1], *[[1, 0]] * 11]},
        ValueError,
        "'view_1' is present for 1 sample",
    ),
    "infinity": ([put(A, (2, 1), np.inf), B], {}, ValueError, r"'view_0' contains infinity.*1 row.*sample\(s\) 2"),
    "infinity in a sparse view": (
        [sparse.csr_array(put(A, (2, 1), -np.inf)), B],
        {},
        ValueError,
        "'view_0' contains infinity",
    ),
    "text": ([np.array([["a", "b"]] * 12), B], {}, TypeError, "'view_0' must hold numbers"),
    "numbers as text": (
        [pd.DataFrame(A).assign(n="2"), B],
        {},
        TypeError,
        "column 'n' holds numbers as text.*to_numeric",
    ),
    "complex numbers": ([A + 1j, B], {}, ValueError, "complex"),
    "unequal length": ([A, B[:10]], {}, ValueError, "'view_0' has 12, 'view_1' has 10 rows.*empty row"),
    "unequal frames without ids": ([pd.DataFrame(A), pd.DataFrame(B[:10])], {}, ValueError, "without sample ids"),
    "duplicate ids": (
        [pd.DataFrame(A, index=["p"] * 2 + list("abcdefghij"))],
        {},
        ValueError,
        "unique.*1 row.*'p'.*Average or drop",
    ),
    "ids beside no ids": (
        [pd.DataFrame(A, index=list("abcdefghijkl")), pd.DataFrame(B)],
        {},
        ValueError,
        "'view_1' have no sample ids, while 'view_0' has ids such as 'a', 'b', 'c'",
    ),
    "frames that differ beside an array": (
        [pd.DataFrame(A, index=list("abcdefghijkl")), pd.DataFrame(B, index=list("bacdefghijkl")), A],
        {},
        ValueError,
        "'view_2' have no sample ids, while 'view_0' has ids",
    ),
    "a mask of another shape": (
        [A, B],
        {"mask": np.ones((12, 3))},
        ValueError,
        r"\(12, 2\); got shape \(12, 3\)",
    ),
    "a mask of other values": ([A, B], {"mask": np.full((12, 2), 2)}, ValueError, "True.*False"),
    "a mask of text": ([A, B], {"mask": np.full((12, 2), "yes")}, ValueError, "True.*False"),
    "a mask that shows nothing but NaN": (
        [put(A, 0, np.nan), B],
        {"mask": np.ones((12, 2))},
        ValueError,
        "mask marks view 'view_0' as present for 1 sample",
    ),
    "one sample in total": ([A[:1], B[:1]], {}, ValueError, "at least 2 samples"),
    "no sample at all": ([A[:0], B[:0]], {}, ValueError, "at least 2 samples"),
    "a constant view": ([A, np.ones((12, 5))], {}, ValueError, "'view_1' is constant"),
    "a constant sparse view": ([A, sparse.csr_array(np.ones((12, 5)))], {}, ValueError, "'view_1' is constant"),
    "a view constant once scaled": ([A, np.arange(1.0, 13)[:, None]], {}, ValueError, "constant once scaled.*standard"),
    "gaps in rows": ([put(A, (0, 0), np.nan), B], {}, ValueError, "some but not all values"),
}


@pytest.mark.parametrize("name", DATA)
def test_bad_data(name):
    data, fit, kind, message = DATA[name]
    with pytest.raises(GapviewError, match=message) as caught:
        GRMF(2, random_state=0).fit(data, **fit)
    assert isinstance(caught.value, kind)


def test_columns_that_hold_no_numbers():
    days = pd.date_range("2020", periods=12)
    with pytest.warns(GapviewWarning) as caught:
        model = GRMF(2, random_state=0).fit([pd.DataFrame(A).assign(stage="II", day=days), B])
    assert model.n_features_in_ == A.shape[1] + B.shape[1]
    warned = " ".join(str(warning.message) for warning in caught)
    assert "1 column of text of view 'view_0' left out: 'stage'" in warned
    assert "1 column of dates or times of view 'view_0' left out: 'day'" in warned
    with (
        pytest.warns(GapviewWarning, match="left out: 'day'"),
        pytest.raises(GapviewError, match="'view_0' has no features"),
    ):
        GRMF(2, random_state=0).fit([pd.DataFrame({"day": days}), B])


def test_ids_of_two_kinds_are_compared_as_text():
    ids = list(range(21, 33))
    texts = [str(key) for key in ids]
    frames = [pd.DataFrame(A, index=pd.Index(ids, name="sample")), pd.DataFrame(B[::-1], index=texts[::-1])]
    model = GRMF(2, random_state=0).fit(frames)
    assert model.sample_ids_.tolist() == texts
    np.testing.assert_array_equal(model.labels_, GRMF(2, random_state=0).fit([A, B]).labels_)


SETTINGS = {
    "n_clusters": [(0, ValueError), (-1, ValueError), (2.5, TypeError), ("two", TypeError), (True, TypeError)],
    "n_components": [(0, ValueError), ("many", TypeError)],
    "consensus_weight": [(-1, ValueError), (np.nan, ValueError), (np.inf, ValueError), ("1", TypeError)],
    "sparsity_weight": [(-1e-9, ValueError), (None, TypeError)],
    "n_neighbors": [(0, ValueError), (1.5, TypeError), ("ten", TypeError), (12, ValueError)],
    "scale": [("minmax", ValueError), (1, ValueError)],
    "init": [("zeros", TypeError), (np.zeros(3), TypeError), ([np.zeros((12, 2))], TypeError)],
    "graph": [("knn", TypeError), ([np.eye(12)], TypeError), ({"view_0": np.eye(12)}, TypeError)],
    "max_iter": [(0, ValueError), (1.0, TypeError)],
    "tol": [(-1e-5, ValueError), ("small", TypeError)],
    "partial_rows": [("guess", ValueError)],
    "random_state": [("seed", ValueError)],
}


@pytest.mark.parametrize(("name", "value", "kind"), [(n, v, k) for n, pairs in SETTINGS.items() for v, k in pairs])
def test_bad_settings(name, value, kind):
    with pytest.raises(kind, match=name) as caught:
        GRMF(**{"n_clusters": 2, name: value}).fit([A, B])
    assert isinstance(caught.value, GapviewError)


def test_more_clusters_than_samples():
    with pytest.raises(GapviewError, match="n_clusters=13 is more than.*n_samples=12.*fewer clusters"):
        GRMF(13).fit([A, B])


def test_view_with_fewer_samples_than_neighbors():
    mask = np.ones((12, 2), dtype=bool)
    mask[4:, 1] = False
    with pytest.raises(GapviewError, match="n_neighbors=4.*'view_1' is present for 4.*n_neighbors=3 or less"):
        GRMF(2, n_neighbors=4).fit([A, B], mask=mask)
    GRMF(2, n_neighbors="auto", random_state=0).fit([A, B], mask=mask)  # the rule gives way


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([np.eye(5), np.eye(12)], "12 × 12.*got 5 × 5"),
        ([-np.eye(12), np.eye(12)], "at least 0"),
        ([np.full((12, 12), np.nan), np.eye(12)], "finite"),
        ([np.zeros((12, 12)), np.eye(12)], "no edge"),
        ([np.full((12, 12), "a"), np.eye(12)], "matrix of numbers"),
    ],
)
def test_bad_graphs(graph, message):
    with pytest.raises(GapviewError, match=message):
        GRMF(2, graph=graph).fit([A, B])


@pytest.mark.parametrize(
    ("init", "message"),
    [([np.zeros((12, 3)), np.zeros((12, 2))], "12 × 2"), ([np.full((12, 2), np.nan), np.zeros((12, 2))], "finite")],
)
def test_bad_starts(init, message):
    with pytest.raises(GapviewError, match=message):
        GRMF(2, init=init).fit([A, B])


def test_penalty_that_leaves_nothing():
    with pytest.raises(GapviewError, match="zero.*sparsity_weight"):
        GRMF(2, sparsity_weight=1e6, random_state=0).fit([A, B])


def test_too_few_distinct_samples_for_the_clusters():
    rows = np.repeat(np.eye(3), 4, axis=0)
    with pytest.warns(GapviewWarning, match="Only 3 distinct groups.*n_clusters=5"):
        GRMF(5, n_neighbors=2, consensus_weight=1.0, init="data", random_state=0).fit([rows, rows])


@pytest.mark.parametrize("scale", ["standard", "standard+unit", "standard+view", "center+unit"])
def test_standard_scale_of_a_sparse_view(scale):
    thin = np.zeros((len(A), 30))
    thin[np.arange(len(A)), np.arange(len(A)) % 30] = 1.0
    with pytest.raises(GapviewError, match="sparse.*toarray"):
        GRMF(2, scale=scale).fit([sparse.csr_array(thin), B])
    # Stored as sparse, but full of numbers: nothing is lost by writing it out
    stored = GRMF(2, scale=scale, init="data", random_state=0).fit([sparse.csr_array(A), B])
    np.testing.assert_allclose(
        stored.embedding_, GRMF(2, scale=scale, init="data", random_state=0).fit([A, B]).embedding_, atol=1e-9
    )


def test_use_before_fit():
    for method in ("transform", "predict", "recover", "score"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(GRMF(2), method)([A, B])


def test_predict_options():
    model = GRMF(2, random_state=0).fit([A, B])
    with pytest.raises(GapviewError, match="method must be one of 'neighbors', 'centers'"):
        model.predict([A, B], method="nearest")
    with pytest.raises(GapviewError, match="method must be one of 'auto', 'mean', .*'basis'"):
        model.recover([A, B], method="median")
    with pytest.raises(GapviewError, match="n_neighbors"):
        model.predict([A, B], n_neighbors=0)


def test_names_and_ids_that_do_not_fit():
    with pytest.raises(GapviewError, match="a unique name to each of the 2 views"):
        Views([A, B], names=["same", "same"])
    with pytest.raises(GapviewError, match="sample_ids"):
        Views([A, B], sample_ids=[1, 2])
    with pytest.raises(GapviewError, match="repeat an id"):
        Views([A, B], sample_ids=[1] * 12)
    with pytest.raises(GapviewError, match="no column 'who'"):
        Views([pd.DataFrame(A)], id_column="who")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_split([A, B], 1.5), "paired_rate must be a finite number of at least 0 and at most 1"),
        (lambda: paired_split([A, B], 0.5, order=[0, 0, 1]), "permutation of 0 … 11"),
        (lambda: paired_split([A, put(B, 0, np.nan)], 0.5), "every view; 1 of 12 lack one.*hide_views"),
        (lambda: hide_views([A, B], 0.9), "missing_rate=0.9.*lower rate"),
        (lambda: hide_views([A], 0.1), "lower rate"),
        (lambda: make_views(10, (3, 0)), "at least 1; got 0|at least one feature"),
        (lambda: make_views(0), "n_samples must be an integer of at least 1; got 0"),
        (lambda: make_views(dtype="int8"), "dtype must be one of"),
    ],
)
def test_bad_calls_of_the_data_functions(call, message):
    with pytest.raises(GapviewError, match=message):
        call()


def test_a_failed_fit_leaves_the_old_one_usable():
    model = GRMF(2, random_state=0).fit([A, B])
    labels = model.predict([A, B])
    with pytest.raises(GapviewError):
        model.fit([A, np.ones((12, 5))])
    np.testing.assert_array_equal(model.predict([A, B]), labels)
