"""The door: rows, columns and masks are matched by name, and results go back in what was given."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gapview import Views
from gapview.errors import InputError, InputTypeError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
B = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [3.0, 3.0, 0.5]])


class TestNothingIsMatchedWrongly:
    """Rows, columns and masks are matched by name where there are names, and refused where that cannot be done."""

    forward = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=list("pqr"))
    backward = pd.DataFrame({"y": [30.0, 20.0, 10.0]}, index=list("rqp"))

    def test_sample_ids_beside_ids_of_the_frames(self):
        with pytest.raises(InputError, match="are keyed by sample id. Leave sample_ids out"):
            Views({"a": self.forward, "b": self.backward}, sample_ids=["p", "q", "r"])

    def test_classes_made_from_frames(self):
        class Frame(pd.DataFrame):
            pass

        views = Views({"a": Frame(self.forward), "b": Frame(self.backward)})
        assert views.matrices[1].ravel().tolist() == [10, 20, 30]

    def test_masks_in_frames(self):
        data = {"a": self.forward, "b": self.backward}
        mask = pd.DataFrame({"b": [1, 0, 1], "a": [0, 1, 1]}, index=list("rqp"))
        expected = [[True, True], [True, False], [False, True]]
        assert Views(data, mask=mask).mask.tolist() == expected
        assert Views(data, mask=mask.astype("boolean")).mask.tolist() == expected
        with pytest.raises(InputError, match="columns 'B', 'A'; the views are 'a', 'b'"):
            Views(data, mask=mask.set_axis(["B", "A"], axis=1))
        with pytest.raises(InputError, match="sample ids that are not those of the views"):
            Views(data, mask=mask.set_axis([1, 2, 3], axis=0))
        with pytest.raises(InputError, match="True.*False"):
            Views(data, mask=mask.astype("boolean").mask(mask == 0))

    def test_masks_with_dates(self):
        days = pd.date_range("2020-01-01", periods=3)
        data = {"a": self.forward.set_axis(days), "b": self.backward.set_axis(days[::-1])}
        mask = pd.DataFrame({"a": [1, 1, 0], "b": [1, 1, 1]}, index=days[::-1])
        views = Views(data, mask=mask)
        assert views.mask[:, 0].tolist() == [False, True, True]
        assert views.sample_ids[0] == days[0]

    def test_dates_and_numbers_do_not_meet(self):
        with pytest.raises(InputTypeError, match="values of type Timestamp.*numbers"):
            Views([self.forward.set_axis(pd.date_range("2020", periods=3)), self.backward.set_axis([5, 6, 7])])

    def test_a_mask_cannot_show_what_is_not_there(self):
        with pytest.raises(InputError, match="present for 1 sample.s. that have no values in it, among them 'r'"):
            Views({"a": self.forward.iloc[:2], "b": self.backward}, mask=np.ones((3, 2)))

    @pytest.mark.parametrize(
        "ids",
        [["p", None, "r"], ["p", pd.NA, "r"], [1.0, np.nan, 3.0], [pd.NaT, pd.Timestamp(1), pd.Timestamp(2)]],
    )
    def test_missing_ids(self, ids):
        with pytest.raises(InputError, match="needs an id; in view 'a' 1 row.s. have none"):
            Views({"a": self.forward.set_axis(pd.Index(ids))})

    def test_missing_ids_in_polars(self):
        with pytest.raises(InputError, match="needs an id"):
            Views([pl.DataFrame({"id": ["p", None], "x": [1.0, 2.0]})])

    def test_repeated_names_of_features(self):
        for columns in (["a", "a"], [1, "1"]):
            with pytest.raises(InputError, match="unique names; view 'view_0' has 1 that repeat one"):
                Views([pd.DataFrame(A, columns=columns)])

    def test_masked_arrays(self):
        values = np.ma.masked_equal([[1.0, 2.0], [-999, -999], [3, 4]], -999)
        assert Views([values, B]).mask[:, 0].tolist() == [True, False, True]

    def test_columns_that_look_like_ids(self):
        with pytest.raises(InputError, match="default index.*'sample_id'.*id_column='sample_id'"):
            Views([pd.DataFrame({"sample_id": [7, 8, 9], "v": [1.0, 2.0, 3.0]})])
        named = pl.DataFrame({"id": [7, 8], "name": ["x", "y"], "v": [1.0, 2.0]})
        with pytest.raises(InputTypeError, match="'name'"):  # a column named id holds the ids, so this one is text
            Views([named])
        with pytest.raises(InputError, match="'sample_id', 'id' could be it"):
            Views([pl.DataFrame({"id": [7, 8], "sample_id": ["x", "y"], "v": [1.0, 2.0]})])

    def test_names_of_a_views_cannot_be_given_again(self):
        with pytest.raises(InputError, match="names and sample ids"):
            Views(Views([A]), names=["x"])

    @pytest.mark.parametrize("rows", ["a", [True, False], 99, (0, 1)])
    def test_rows_that_are_not_there(self, rows):
        with pytest.raises(InputError, match="indexed by samples alone|by position, slice or boolean mask"):
            Views([A])[rows]

    def test_a_views_goes_through_its_samples(self):
        assert [part.sample_ids.tolist() for part in Views([A])] == [[0], [1], [2]]

    @pytest.mark.parametrize(
        "view", [sparse.coo_array([1.0, 2.0]), np.empty((0, 3), dtype=object), np.array([[np.ones(1)]], dtype=object)]
    )
    def test_odd_shapes(self, view):
        with pytest.raises((InputError, InputTypeError)):
            Views([view, view], mask=None)[:1].matrices[0].sum() if view.shape[0] else Views([view, A])

    @pytest.mark.parametrize("ids", ["abc", 5, [["a"], ["b"], ["c"]]])
    def test_odd_ids(self, ids):
        with pytest.raises((InputError, InputTypeError), match="sample_ids"):
            Views([A], sample_ids=ids)

    def test_ids_of_other_kinds(self):
        assert Views([A], sample_ids=[("a", 1), ("a", 2), ("b", 1)]).sample_ids[1] == ("a", 2)
        assert Views([A], sample_ids=np.array([["x", "y", "z"]])).sample_ids.tolist() == ["x", "y", "z"]
        with pytest.raises(InputTypeError, match="names"):
            Views([A], names=5)


class TestGivingBack:
    """Recovered views come in what was given, filled where needed from the right columns."""

    @staticmethod
    def model(data, **settings):
        from gapview import GRMF

        return GRMF(2, random_state=0, tol=1e-2, **settings).fit(data)

    X, Y = np.random.RandomState(0).normal(size=(20, 4)), np.random.RandomState(1).normal(size=(20, 3))
    ids = tuple(f"s{i}" for i in range(20))

    def frames(self):
        a = pd.DataFrame(self.X * [1, 100, 1, 1], columns=list("abcd"), index=pd.Index(self.ids, name="patient"))
        return {"A": a, "B": pd.DataFrame(self.Y, index=a.index)}

    def test_gaps_are_filled_after_columns_are_in_order(self):
        model, new = self.model(self.frames(), partial_rows="fill"), self.frames()["A"]
        new.iloc[0, 0] = np.nan
        straight, turned = (model.recover({"A": frame})["A"] for frame in (new, new[list("dcba")]))
        assert turned.loc["s0", "a"] == pytest.approx(straight.loc["s0", "a"])
        with pytest.raises(InputError, match="had 4 features in training and has 3"):
            model.transform({"A": new[list("abc")]})
        with pytest.raises(InputError, match="unknown view"):
            model.transform({"Q": new})

    def test_frames_keep_labels_and_the_name_of_the_index(self):
        frames = self.frames()
        whole = self.model(frames).recover({"B": frames["B"].iloc[:3]})
        assert list(whole["B"].columns) == [0, 1, 2]
        assert whole["A"].index.name == whole["B"].index.name == "patient"
        assert list(whole["A"].columns) == list("abcd")

    def test_one_view_of_several(self):
        model = self.model({"A": self.X, "B": self.Y})
        whole = model.recover(Views(self.Y[:3], names=["B"]))
        assert {name: view.shape for name, view in whole.items()} == {"A": (3, 4), "B": (3, 3)}

    def test_a_single_frame_stays_a_frame(self):
        assert isinstance(self.model(self.frames()["A"]).recover(), pd.DataFrame)

    def test_trained_on_arrays_and_given_frames(self):
        model = self.model([self.X, self.Y])
        frame = pl.DataFrame(self.X, schema=list("abcd")).insert_column(0, pl.Series("who", self.ids))
        assert model.recover([frame, None])[0].columns == ["who", "a", "b", "c", "d"]
        assert list(model.recover([self.frames()["A"], None])[0].columns) == list("abcd")

    def test_trained_sparse_and_given_dense(self):
        model = self.model([sparse.csr_array(self.X), sparse.csr_array(self.Y)])
        assert isinstance(model.recover([self.X, self.Y])[0], np.ndarray)
        assert sparse.issparse(model.recover()[0])
