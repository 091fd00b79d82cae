"""The same input has the same outcome in memory, on disk and on Dask: accepted, or refused with the same message."""

from __future__ import annotations

import numpy as np
import pytest

from disk_problems import saved
from gapview import GRMF, BridgedGRMF
from gapview.backends.disk import fit_size, plan_memory
from gapview.choice import candidates as _plan
from gapview.errors import GapviewError
from gapview.views import Views

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

N_ROWS = 1200
PLACES = ["memory", "disk", "dask"]
each_place = pytest.mark.parametrize("place", PLACES)
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::gapview.errors.GapviewWarning"),
]


def fitted(model, arrays, place, folder, mask=None):
    """Fit a model to arrays in memory, as memory maps within the least budget, or as Dask arrays."""
    if place == "memory":
        return model.fit(arrays, mask=mask)
    if place == "dask":
        n_rows = len(arrays[0]) // 3 + 1
        return model.fit([da.from_array(array, chunks=(n_rows, -1)) for array in arrays], mask=mask)
    plain = [np.random.RandomState(0).normal(size=array.shape).astype(array.dtype) for array in arrays]
    plan = plan_memory(fit_size(model, Views(plain)))
    assert plan.least < plan.in_memory
    return model.set_params(memory_budget=plan.least).fit(saved(folder, arrays), mask=mask)


def outcome(model, arrays, place, folder, mask=None):
    """Return the message with which a fit is refused, or None."""
    try:
        fitted(model, arrays, place, folder, mask)
    except GapviewError as error:
        return f"{type(error).__name__}: {error}"
    return None


def normal(n_features=300, dtype=np.float64, n_rows=N_ROWS, seed=0):
    return np.random.RandomState(seed).normal(size=(n_rows, n_features)).astype(dtype)


class TestScaling:
    @each_place
    def test_spreads_that_overflow_are_refused(self, place, tmp_path):
        values = normal()
        values[:, 0] = 1.2e308 * np.sign(values[:, 0])
        message = outcome(GRMF(3, scale="standard+view", max_iter=2), [values], place, tmp_path)
        assert message == (
            "InputError: View 'view_0' holds values so large that the spreads of its features are not finite as "
            "float64. Divide the view by its largest value first."
        )

    @each_place
    def test_row_lengths_that_overflow_are_refused(self, place, tmp_path):
        message = outcome(GRMF(3, scale="unit", max_iter=2), [1e308 * np.sign(normal())], place, tmp_path)
        assert message is not None
        assert "view_0' holds values so large that the lengths of its rows are not finite as float64" in message

    @each_place
    def test_huge_rows_keep_a_finite_mean_length(self, place, tmp_path):
        """The sum of the lengths overflows; their mean does not."""
        values = normal()
        values *= 1e307 / np.linalg.norm(values, axis=1, keepdims=True)
        model = fitted(GRMF(3, scale="unit", max_iter=2, random_state=0), [values], place, tmp_path)
        assert model.scalings_[0].row_length == pytest.approx(1e307)

    @each_place
    @pytest.mark.parametrize("scale", ["center+unit", "standard", "standard+view", "standard+unit", "unit"])
    def test_the_same_rule_is_fitted(self, place, scale, tmp_path):
        values = [normal() * np.linspace(0.1, 9, 300) + 3, normal(7, np.float32, seed=1)]
        values[1][::3] = np.nan
        settings = {"init": "data", "scale": scale, "max_iter": 2, "random_state": 0}
        expected = GRMF(3, **settings).fit(values).scalings_
        found = fitted(GRMF(3, **settings), values, place, tmp_path).scalings_
        for ours, theirs in zip(found, expected, strict=True):
            for name in ("center", "spread", "row_length"):
                if getattr(theirs, name) is None:
                    assert getattr(ours, name) is None
                else:
                    np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-12)

    @each_place
    @pytest.mark.parametrize("bridge", [None, "union"])
    def test_unscaled_rows_whose_lengths_overflow_are_refused(self, place, bridge, tmp_path):
        values = 1.7e308 * np.sign(normal())
        model = GRMF(3, scale=None, init="data", max_iter=2)
        if bridge:
            model = BridgedGRMF(3, scale=None, bridge=bridge, selection="fixed", view_weights=None, max_iter=2)
        message = outcome(model, [values], place, tmp_path)
        assert message is not None
        assert message.startswith("SolutionError: The factorisation has reached numbers too large for float64.")

    @each_place
    def test_cells_hold_neighbours_of_huge_unscaled_rows(self, place, tmp_path):
        """Values beyond single precision whose squares are finite."""
        values = 1e100 * normal(300, n_rows=1500, seed=2)
        values[:, :5] *= 50
        model = GRMF(3, scale=None, init="data", search="approximate", max_iter=2, tol=0)
        found = fitted(model, [values], place, tmp_path).neighbor_search_[0]
        assert (found.method, found.recall >= 0.95) == ("approximate", True)

    @each_place
    def test_rounding_is_judged_in_the_type_of_the_view(self, place, tmp_path):
        """Rows of float32 that point the same way stay constant beside a view of float64."""
        lengths = np.random.RandomState(0).uniform(1, 2, size=(N_ROWS, 1))
        same_way = (lengths * np.random.RandomState(1).uniform(1, 2, size=(1, 300))).astype(np.float32)
        message = outcome(GRMF(3, scale="unit", max_iter=2), [same_way, normal(20)], place, tmp_path)
        assert message is not None
        assert "View 'view_0' is constant once scaled with scale='unit'" in message


class TestInput:
    @pytest.mark.parametrize(
        ("n_clusters", "change"),
        [
            (N_ROWS + 1, lambda values: None),
            (3, lambda values: values[1].fill(7.0)),
            (3, lambda values: values[1][1:].fill(np.nan)),
        ],
        ids=["clusters", "constant", "rare"],
    )
    def test_what_nothing_can_be_learnt_from(self, n_clusters, change, tmp_path):
        values = [normal(), normal(4, seed=1)]
        change(values)
        messages = {place: outcome(GRMF(n_clusters), values, place, tmp_path) for place in ("memory", "dask")}
        if n_clusters == 3:
            messages["disk"] = outcome(GRMF(n_clusters), values, "disk", tmp_path)
        assert len(set(messages.values())) == 1, messages
        assert None not in messages.values()

    def test_one_sample(self, tmp_path):
        values = [np.array([[1.0, 2.0]])]
        messages = {outcome(GRMF(1), values, place, tmp_path) for place in ("memory", "dask")}
        assert messages == {"InputError: Clustering needs at least 2 samples; got n_samples=1."}

    @each_place
    def test_a_view_whose_shown_rows_are_the_same_is_constant(self, place, tmp_path):
        values = [normal(), normal(4, seed=1)]
        mask = np.ones((N_ROWS, 2), dtype=bool)
        mask[::2, 1] = False
        values[1][mask[:, 1]] = 7.0
        message = outcome(GRMF(3), values, place, tmp_path, mask)
        assert message is not None
        assert "View 'view_1' is constant: all its 600 rows are the same" in message

    @pytest.mark.parametrize("kind", ["infinite", "partial", "without", "mask"])
    def test_counts_are_those_of_all_blocks(self, kind, tmp_path):
        values, mask = [normal(), normal(4, seed=1)], None
        if kind == "infinite":
            values[0][[3, 900], [0, 1]] = np.inf
        elif kind == "partial":
            values[0][[3, 900], [0, 1]] = np.nan
        else:
            values[1][[3, 900]] = np.nan
        if kind == "without":
            values[0][[3, 900]] = np.nan
        elif kind == "mask":
            mask = np.ones((N_ROWS, 2), dtype=bool)
        messages = {place: outcome(GRMF(3), values, place, tmp_path, mask) for place in PLACES}
        assert len(set(messages.values())) == 1, messages
        assert " 2 " in messages["dask"]
        assert "3, 900" in messages["dask"]

    @pytest.mark.parametrize(
        "other", [np.zeros(N_ROWS), np.zeros((N_ROWS, 2, 2)), np.zeros((N_ROWS - 1, 2)), np.zeros((N_ROWS, 0))]
    )
    def test_shapes(self, other, tmp_path):
        messages = set()
        for given in (other, da.from_array(other, chunks=400)):
            with pytest.raises(GapviewError) as refused:
                GRMF(3).fit([normal(), other] if given is other else [da.from_array(normal(), chunks=400), given])
            messages.add(str(refused.value))
        assert len(messages) == 1, messages

    def test_counts_in_frames(self):
        pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        values = normal(3, n_rows=60)
        values[[3, 50], 1] = np.nan
        frame = pd.DataFrame(values, index=[f"s{i}" for i in range(60)], columns=list("abc"))
        for given in (frame, dd.from_pandas(frame, npartitions=4)):
            with pytest.raises(GapviewError, match=r"'blood' has 2 row\(s\) of 60 with some but not all values"):
                GRMF(3).fit({"blood": given})


class TestTrialSamples:
    @each_place
    def test_a_rare_view_has_enough_neighbors(self, place, tmp_path):
        """A view that 12 of 20,000 samples have allows 10 neighbours."""
        values = [normal(20, n_rows=20_000), normal(3, n_rows=20_000, seed=1)]
        values[1][np.random.RandomState(0).permutation(20_000)[12:]] = np.nan
        model = BridgedGRMF(
            3, n_neighbors=10, bridge="union", reach=1, scale="standard", view_weights=None, max_iter=2, random_state=0
        )
        fitted(model, values, place, tmp_path)
        assert model.setting_.n_neighbors == (10, 10)

    @each_place
    def test_counts_in_messages_are_those_of_all_samples(self, place, tmp_path):
        values = [normal(20, n_rows=20_000), normal(3, n_rows=20_000, seed=1)]
        values[1][np.random.RandomState(0).permutation(20_000)[8:]] = np.nan
        model = BridgedGRMF(3, n_neighbors=10, bridge="union", selection="fixed", max_iter=2, random_state=0)
        message = outcome(model, values, place, tmp_path)
        assert message == (
            "ParameterError: n_neighbors=10 needs at least 11 samples in every view; view 'view_1' is present for 8. "
            "Use n_neighbors=7 or less, or 'auto'."
        )

    @pytest.mark.parametrize("n_clusters", [3, 30])
    def test_settings_are_tried_on_the_same_samples(self, n_clusters, tmp_path, monkeypatch):
        """As many as the rule gives, those of a rare view among them."""
        monkeypatch.setattr("gapview.views.cells.N_TRIED", 400)
        values = [normal(40), normal(5, seed=1)]
        values[1][np.random.RandomState(0).permutation(N_ROWS)[30:]] = np.nan
        tried = []

        def seen(part, *arguments, **settings):
            tried.append(part.sample_ids)
            return original(part, *arguments, **settings)

        original = _plan.try_settings
        monkeypatch.setattr(_plan, "try_settings", seen)
        for place in PLACES:
            model = BridgedGRMF(n_clusters, bridge="auto", reach=1, view_weights=None, max_iter=2, random_state=0)
            fitted(model, values, place, tmp_path)
        assert len(tried) == 3
        np.testing.assert_array_equal(tried[0], tried[2])
        assert len(tried[0]) >= max(400, 20 * n_clusters)
        assert np.isin(np.flatnonzero(~np.isnan(values[1][:, 0])), tried[0]).all()
        np.testing.assert_array_equal(tried[0], tried[1])
