"""The door: what goes in, and what a Views is then."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from gapview import Views
from gapview.errors import GapviewWarning, InputError, InputTypeError
from gapview.views import new_views
from problems import cases, hidden

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
B = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [3.0, 3.0, 0.5]])


def test_list_and_dict_of_arrays():
    views = Views([A, B])
    assert views.names == ("view_0", "view_1")
    assert views.n_features == (2, 3)
    assert views.shape == (3, 5)
    assert len(views) == 3
    assert views.sample_ids.tolist() == [0, 1, 2]
    assert Views({"blood": A, "scans": B}).names == ("blood", "scans")
    assert Views([A, B], names=["x", "y"]).names == ("x", "y")
    assert Views([A, B], sample_ids=["p", "q", "r"]).sample_ids.tolist() == ["p", "q", "r"]


def test_rows_of_nan_are_missing_views():
    gappy = A.copy()
    gappy[1] = np.nan
    views = Views([gappy, B])
    assert views.mask.tolist() == [[True, True], [False, True], [True, True]]
    np.testing.assert_array_equal(views.matrices[0], A[[0, 2]])
    assert views.rows(0).tolist() == [0, 2]


def test_values_under_the_mask_never_matter():
    wild = A.copy()
    wild[1] = [np.inf, np.nan]
    mask = [[1, 1], [0, 1], [1, 1]]
    np.testing.assert_array_equal(Views([wild, B], mask=mask).matrices[0], Views([A, B], mask=mask).matrices[0])


def test_types_of_numbers():
    assert [m.dtype for m in Views([A.astype(np.uint8), A.astype(np.float32), B]).matrices] == ["f8", "f4", "f8"]
    assert Views([A.astype(np.float16)]).matrices[0].dtype == np.float32
    assert Views([A > 2]).matrices[0].dtype == np.float64
    assert Views([A.astype(np.longdouble)]).matrices[0].dtype == np.float64
    assert Views([A.astype(">f8")]).matrices[0].sum() == A.sum()
    thin = sparse.csr_array(A)
    thin.data = thin.data.astype(">f8")
    assert Views([thin]).matrices[0].sum() == A.sum()


def test_none_in_object_arrays_is_missing():
    views = Views([np.array([[None, None], [2, 3]], dtype=object), A[:2]])
    assert views.mask.tolist() == [[False, True], [True, True]]


def test_frames_join_on_the_index():
    blood = pd.DataFrame(A, index=["ann", "bob", "cyd"], columns=["hb", "fe"])
    scans = pd.DataFrame(B, index=["cyd", "dan", "ann"])
    views = Views({"blood": blood, "scans": scans})
    assert views.sample_ids.tolist() == ["ann", "bob", "cyd", "dan"]
    assert views.mask.tolist() == [[True, True], [True, False], [True, True], [False, True]]
    np.testing.assert_array_equal(views.matrices[1], B[[2, 0, 1]])
    assert views.feature_names[0].tolist() == ["hb", "fe"]


def test_frames_and_arrays_give_the_same_views():
    frames = Views([pd.DataFrame(A), pd.DataFrame(B)])
    np.testing.assert_array_equal(frames.matrices[1], B)
    assert frames.sample_ids.tolist() == [0, 1, 2]
    mixed = [pd.DataFrame(A, index=list("abc")), B]
    with pytest.raises(InputError, match="'view_1' have no sample ids, while 'view_0' has ids.*id_column=False"):
        Views(mixed)
    assert Views(mixed, id_column=False).sample_ids.tolist() == ["a", "b", "c"]


def test_frames_of_pandas_types():
    frame = pd.DataFrame(
        {"a": pd.array([1, None, 3], dtype="Int64"), "b": pd.array([True, None, False], dtype="boolean")}
    )
    views = Views([frame, B])
    assert views.mask[:, 0].tolist() == [True, False, True]
    assert Views([pd.DataFrame(A, dtype=np.float32)]).matrices[0].dtype == np.float32
    ids = pd.DataFrame({"patient": ["x", "y", "z"]})
    keyed = [pd.DataFrame(matrix).join(ids) for matrix in (A, B)]
    assert Views(keyed, id_column="patient").sample_ids.tolist() == ["x", "y", "z"]


def test_polars_frames():
    blood = pl.DataFrame({"patient": ["ann", "bob"], "hb": [1.0, 2.0], "fe": [3, 4]})
    scans = pl.DataFrame({"patient": ["bob", "cyd"], "size": [5.0, None]}).with_columns(pl.col("size").fill_null(9.0))
    views = Views({"blood": blood, "scans": scans})
    assert views.sample_ids.tolist() == ["ann", "bob", "cyd"]
    assert views.matrices[1].ravel().tolist() == [5.0, 9.0]
    assert Views([blood.lazy()]).n_samples == 2
    assert Views([pl.DataFrame({"id": [7, 8], "x": [1.0, 2.0]})]).sample_ids.tolist() == [7, 8]
    assert (
        Views([pl.DataFrame({"id": ["a", "b"], "x": pl.Series([1.0, 2.0], dtype=pl.Float32)})]).matrices[0].dtype
        == "f4"
    )
    assert Views([pl.DataFrame({"x": [1.0, 2.0]})] * 2).notes[-1].startswith("Rows are matched by their position")
    worded = pl.DataFrame({"id": ["a", "b", "c"], "word": ["b", "b", "d"]})
    with (
        pytest.warns(GapviewWarning, match="1 column of text of view 'view_0' left out: 'word'"),
        pytest.raises(InputError, match="has no features"),
    ):
        Views([worded], id_column="id")
    assert Views([worded], encode=True).feature_names[0].tolist() == ["word=b", "word=d"]
    with pytest.raises(InputTypeError, match="'word' holds numbers as text"):
        Views([pl.DataFrame({"id": ["a", "b"], "word": ["1", "2"], "x": [1.0, 2.0]})])


def test_sparse_views_stay_sparse():
    views = Views([sparse.csc_matrix(A), sparse.coo_array(B)], mask=[[1, 1], [0, 1], [1, 0]])
    assert all(isinstance(matrix, sparse.csr_array) for matrix in views.matrices)
    np.testing.assert_array_equal(views.matrices[0].toarray(), A[[0, 2]])
    empty_row = sparse.csr_array(np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert Views([empty_row]).mask.all()  # zeros are values


@pytest.mark.filterwarnings("ignore::FutureWarning")  # mudata's own
def test_anndata_and_mudata():
    ad = pytest.importorskip("anndata")
    mu = pytest.importorskip("mudata")
    rna = ad.AnnData(A, obs=pd.DataFrame(index=["a", "b", "c"]), var=pd.DataFrame(index=["g1", "g2"]))
    protein = ad.AnnData(sparse.csr_matrix(B[:2]), obs=pd.DataFrame(index=["c", "a"]))
    for data in ({"rna": rna, "protein": protein}, mu.MuData({"rna": rna, "protein": protein})):
        views = Views(data)
        assert views.names == ("rna", "protein")
        assert views.sample_ids.tolist() == ["a", "b", "c"]
        assert views.mask.tolist() == [[True, True], [True, False], [True, True]]
        assert views.feature_names[0].tolist() == ["g1", "g2"]
        np.testing.assert_array_equal(views.matrices[1].toarray(), B[[1, 0]])


def test_one_view_needs_no_list():
    for data in (A, pd.DataFrame(A), sparse.csr_array(A)):
        assert Views(data).n_views == 1


def test_views_pass_through():
    views = Views([A, B])
    assert Views(views).matrices is views.matrices
    assert Views(views, mask=[[1, 1], [1, 0], [0, 1]]).mask.sum() == 4


def test_mask_as_a_frame_is_matched_by_id_and_name():
    blood = pd.DataFrame(A, index=["a", "b", "c"])
    mask = pd.DataFrame({"scans": [True, False, True], "blood": [True, True, False]}, index=["c", "b", "a"])
    views = Views({"blood": blood, "scans": pd.DataFrame(B, index=["a", "b", "c"])}, mask=mask)
    assert views.mask.tolist() == [[False, True], [True, False], [True, True]]


@pytest.mark.parametrize("rows", [[2, 0], slice(1, 3), np.array([True, False, True]), 1, (np.array([0, 2]), ...), []])
def test_slicing(rows):
    mask = np.array([[1, 1], [0, 1], [1, 0]], dtype=bool)
    views = Views([A, B], mask=mask)
    chosen = np.atleast_1d(np.arange(3)[rows[0] if isinstance(rows, tuple) else rows]).astype(int)
    part = views[rows]
    np.testing.assert_array_equal(part.mask, mask[chosen])
    np.testing.assert_array_equal(part.sample_ids, chosen)
    for k, matrix in enumerate((A, B)):
        np.testing.assert_array_equal(part.matrices[k], matrix[chosen[mask[chosen, k]]])


@settings(max_examples=40)
@given(cases(), st.data())
def test_slicing_is_indexing(case, data):
    views = Views(hidden(case.matrices, case.mask))
    np.testing.assert_array_equal(views.mask, case.mask)
    rows = data.draw(st.lists(st.integers(0, len(views) - 1), min_size=1, max_size=20))
    part = views[rows]
    for k, matrix in enumerate(case.matrices):
        np.testing.assert_array_equal(part.matrices[k], matrix[rows][case.mask[rows, k]])


def test_no_silent_conversion_to_one_array():
    with pytest.raises(InputTypeError, match="several matrices"):
        np.asarray(Views([A, B]))


class TestPartialRows:
    gappy = np.array([[1.0, np.nan, 3.0], [1.1, 2.0, 3.1], [0.9, 2.2, 2.9], [9.0, 8.0, 7.0], [9.1, 8.2, 7.1]])
    other = np.arange(10.0).reshape(5, 2)

    def test_refused_with_a_count_and_the_cure(self):
        with pytest.raises(InputError, match=r"'view_0' has 1 row.*of 5.*partial_rows='fill'.*partial_rows='drop'"):
            Views([self.gappy, self.other])

    def test_drop_takes_the_view_as_missing(self):
        views = Views([self.gappy, self.other], partial_rows="drop")
        assert views.mask[:, 0].tolist() == [False, True, True, True, True]

    def test_drop_must_leave_a_view(self):
        with pytest.raises(InputError, match="at least one view"):
            Views([self.gappy], partial_rows="drop")

    def test_fill_takes_the_nearest_rows(self):
        filled = Views([self.gappy, self.other], partial_rows="fill").matrices[0]
        assert np.isfinite(filled).all()
        np.testing.assert_array_equal(filled[1:], self.gappy[1:])

    def test_fill_without_a_value_to_take(self):
        empty = self.gappy.copy()
        empty[:, 1] = np.nan
        with pytest.raises(InputError, match="without a single value"):
            Views([empty, self.other], partial_rows="fill")

    def test_sparse_rows_with_gaps(self):
        with pytest.raises(InputError, match="partial_rows"):
            Views([sparse.csr_array(self.gappy), self.other])
        filled = Views([sparse.csr_array(self.gappy), self.other], partial_rows="fill").matrices[0]
        assert sparse.issparse(filled)
        assert np.isfinite(filled.data).all()


class TestNewViews:
    trained = Views({"blood": pd.DataFrame(A, columns=["hb", "fe"]), "scans": B})

    def test_any_subset_by_name(self):
        views = new_views({"scans": B[:2]}, self.trained)
        assert views.mask.tolist() == [[False, True], [False, True]]
        assert views.n_features == (2, 3)

    def test_none_for_a_view_that_is_not_there(self):
        assert new_views([A[:1], None], self.trained).mask.tolist() == [[True, False]]

    def test_columns_are_matched_by_name(self):
        swapped = pd.DataFrame(A[:, ::-1], columns=["fe", "hb"])
        np.testing.assert_array_equal(new_views({"blood": swapped}, self.trained).matrices[0], A)

    def test_gaps_are_filled_from_the_training_rows(self):
        row = new_views({"blood": [[1.0, np.nan]]}, self.trained, "fill").matrices[0]
        assert np.isfinite(row).all()

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            ({"urine": A}, "unknown view.*'urine'"),
            ([A], "1 view.s. without names"),
            ({"blood": B}, "had 2 features in training and has 3"),
            ({"blood": pd.DataFrame(A, columns=["hb", "zn"])}, "'zn' are new"),
        ],
    )
    def test_other_views_are_refused(self, data, message):
        with pytest.raises(InputError, match=message):
            new_views(data, self.trained)


def test_results_go_back_into_the_container_that_came():
    frames = Views({"x": pd.DataFrame(A, index=list("abc"), columns=["u", "v"])})
    back = frames.give_back([A + 1])
    assert list(back["x"].columns) == ["u", "v"]
    assert list(back["x"].index) == ["a", "b", "c"]
    assert isinstance(Views([A, B]).give_back([A, B]), list)
    assert isinstance(Views(A).give_back([A]), np.ndarray)
    polars = Views({"x": pl.DataFrame({"who": ["a", "b", "c"], "u": A[:, 0], "v": A[:, 1]})}).give_back([A])
    assert polars["x"].columns == ["who", "u", "v"]
