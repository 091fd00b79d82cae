"""The door: rows, columns and masks are matched by name, and results go back in what was given."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from gapview import GRMF, Views
from gapview.errors import GapviewWarning, InputError, InputTypeError

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
        numbers = self.backward.set_axis(pd.Index([5, 6, 7], name="sample"))
        frames = [self.forward.set_axis(pd.date_range("2020", periods=3)), numbers]
        with pytest.warns(GapviewWarning, match="no sample in common: 'view_0' has '2020-01-01'.*'view_1' has '5'"):
            views = Views(frames)
        assert views.mask.tolist() == [[True, False]] * 3 + [[False, True]] * 3
        for data in (views, frames):
            with pytest.raises(InputError, match="no sample in common: 'view_0' has '2020-01-01'.*'view_1' has '5'"):
                GRMF(2).fit(data)

    def test_whole_numbers_and_floats_are_one_sample(self):
        """Views with the same columns are not taken for transposed ones, whose columns are the samples."""
        values, ids = np.random.RandomState(0).normal(size=(9, 5)), np.arange(1000, 1009)
        frames = [pd.DataFrame(values, pd.Index(own, name="no")).add_prefix("f") for own in (ids, ids.astype(float))]
        views = Views(frames)
        assert views.sample_ids.tolist() == ids.tolist()
        assert views.mask.all()

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
        columns = {"sample_id": [7, 8, 9], "v": [1.0, 2.0, 3.0]}
        for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
            views = Views([frame])
            assert (views.sample_ids.tolist(), views.feature_names[0].tolist()) == ([7, 8, 9], ["v"])
            assert views.notes == ("View 'view_0': Sample ids are in the column 'sample_id'.",)
        for other in ("name", "sample_id"):  # the first of two such columns holds the ids
            views = Views([pl.DataFrame({"id": [7, 8], other: ["x", "y"], "v": [1.0, 2.0]})])
            assert (views.sample_ids.tolist(), views.feature_names[0].tolist()) == ([7, 8], ["v"])
            assert f"Left out, since every row has another value, as in ids: '{other}'." in views.notes[-1]

    def test_names_of_a_views_cannot_be_given_again(self):
        with pytest.raises(InputError, match="joined already. Leave out names, sample_ids, id_column"):
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
        straight, turned = (model.recover({"A": frame}, method="neighbors")["A"] for frame in (new, new[list("dcba")]))
        assert turned.loc["s0", "a"] == pytest.approx(straight.loc["s0", "a"])
        with pytest.raises(InputError, match="had 4 features in training and has 3"):
            model.transform({"A": new[list("abc")]})
        with pytest.raises(InputError, match="unknown view"):
            model.transform({"Q": new})

    def test_frames_keep_labels_and_the_name_of_the_index(self):
        frames = self.frames()
        whole = self.model(frames).recover({"B": frames["B"].iloc[:3]}, method="neighbors")
        assert list(whole["B"].columns) == [0, 1, 2]
        assert whole["A"].index.name == whole["B"].index.name == "patient"
        assert list(whole["A"].columns) == list("abcd")

    def test_one_view_of_several(self):
        model = self.model({"A": self.X, "B": self.Y})
        whole = model.recover(Views(self.Y[:3], names=["B"]), method="neighbors")
        assert {name: view.shape for name, view in whole.items()} == {"A": (3, 4), "B": (3, 3)}

    def test_a_single_frame_stays_a_frame(self):
        assert isinstance(self.model(self.frames()["A"]).recover(), pd.DataFrame)

    def test_trained_on_arrays_and_given_frames(self):
        model = self.model([self.X, self.Y])
        frame = pl.DataFrame(self.X, schema=list("abcd")).insert_column(0, pl.Series("who", self.ids))
        assert model.recover([frame, None], method="neighbors")[0].columns == ["who", "a", "b", "c", "d"]
        frame = pd.DataFrame(self.X, columns=list("abcd"), index=self.ids)
        assert list(model.recover([frame, None], method="neighbors")[0].columns) == list("abcd")

    def test_trained_sparse_and_given_dense(self):
        model = self.model([sparse.csr_array(self.X), sparse.csr_array(self.Y)])
        assert isinstance(model.recover([self.X, self.Y])[0], np.ndarray)
        assert sparse.issparse(model.recover()[0])


def _drawn(view, n_samples=40, seed=0):
    """Return rows drawn from a table in an order of its own: the index holds numbers of its rows."""
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame({f"{view}{k}": rng.normal(size=n_samples) for k in range(3)})
    frame.insert(0, "proband", 5000 + rng.permutation(n_samples))
    return frame.sample(frac=0.9, random_state=seed)


def test_rows_drawn_at_random_are_matched_by_a_common_column_and_not_by_their_numbers():
    one, other = _drawn("a", seed=1), _drawn("b", seed=2)
    views = Views({"a": one, "b": other})
    assert views.n_features == (3, 3)
    for k, frame in enumerate((one, other)):
        wanted = frame.set_index("proband").loc[views.sample_ids[views.rows(k)]]
        np.testing.assert_array_equal(views.matrices[k], wanted)


def test_numbers_of_rows_drawn_at_random_give_a_warning():
    frames = {name: _drawn(name, seed=seed).drop(columns="proband") for seed, name in enumerate("ab")}
    with pytest.warns(GapviewWarning, match="selected from a larger table"):
        Views(frames)


def test_left_over_numbers_of_anndata_give_a_warning():
    anndata = pytest.importorskip("anndata")
    rng = np.random.RandomState(0)
    cells = {name: anndata.AnnData(rng.normal(size=(40, 3))) for name in "ab"}
    with pytest.warns(GapviewWarning, match="selected from a larger table") as caught:
        Views({"a": cells["a"][::2], "b": cells["b"][1::3]})
    assert len(caught) == 1
    named = cells["a"][::3].copy()
    named.obs_names = named.obs_names.rename("cell")
    with warnings.catch_warnings():
        warnings.simplefilter("error", GapviewWarning)
        Views({"a": named, "b": named[::2].copy()})


def test_ids_of_new_samples_that_nearly_match_give_a_warning():
    rng = np.random.RandomState(0)
    frames = {name: pd.DataFrame(rng.uniform(size=(20, 4)), index=[f"s{k}" for k in range(20)]) for name in "ab"}
    model = GRMF(n_clusters=2, max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frames)
    with pytest.warns(GapviewWarning, match="may name the same samples.*the ending '-01A'"):
        model.predict({"a": frames["a"], "b": frames["b"].rename(index=lambda key: key + "-01A")})


@pytest.mark.parametrize("kind", [pl.Int128, pl.Decimal(10, 2), pl.Float32, pl.UInt8])
def test_ids_of_any_type_of_number_of_polars(kind):
    values = np.random.RandomState(0).normal(size=(20, 2))
    numbers = pl.Series("proband", range(100, 120)).cast(kind)
    one = pl.DataFrame(values, schema=["x", "y"]).insert_column(0, numbers)
    other = one.rename({"x": "v", "y": "w"}).sample(fraction=1, shuffle=True, seed=0)
    views = Views({"a": one, "b": other})
    np.testing.assert_array_equal(*views.matrices)


@pytest.mark.parametrize("n_rows", [30, 20])
def test_rows_are_matched_by_common_times(n_rows):
    times = pd.date_range("2020-01-01", periods=30, freq="h")
    values = np.random.RandomState(0).normal(size=(30, 2))
    one = pd.DataFrame({"time": times, "x": values[:, 0], "y": values[:, 1]})
    other = one.rename(columns={"x": "v", "y": "w"}).sample(n_rows, random_state=0).reset_index(drop=True)
    views = Views({"a": one, "b": other})
    np.testing.assert_array_equal(views.matrices[0][views.mask[:, 1]], views.matrices[1])
    with pytest.warns(GapviewWarning, match="left out: 'time'"):
        assert Views({"a": one}).n_features == (2,)


def test_times_that_differ_are_no_ids():
    times = pd.date_range("2020-01-01", periods=30, freq="h")
    one = pd.DataFrame({"time": times, "x": np.random.RandomState(0).normal(size=30)})
    with pytest.warns(GapviewWarning, match="left out: 'time'"):
        views = Views({"a": one, "b": one.assign(time=times + pd.Timedelta("1000D"))})
    assert views.mask.all()


def test_codes_for_missing_values_among_new_samples_give_a_warning():
    values = np.random.RandomState(0).uniform(size=(40, 4))
    model = GRMF(n_clusters=2, random_state=0).fit([values])
    new = values[:6].copy()
    new[2, 1] = -999
    with pytest.warns(GapviewWarning, match="-999 looks like a code for missing values"):
        model.predict([new])
