"""One contract for every backend: the same fit, the same results and the same errors, wherever the data are."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from places import NAMES, OTHERS, warned
from scipy import sparse
from sklearn.base import clone

import gapview
from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview.errors import GapviewError, GapviewWarning, InputError, NotFittedError, SolutionError
from problems import by_size_and_id

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

N, N_NEW = 240, 40  # the fewest samples for which a fit from files needs less memory than a fit in memory
FIRST, LAST = int(0.2 * N), int(0.6 * N)  # end of the first Dask block, and begin of the last
ESTIMATORS = {"GRMF": GRMF, "BridgedGRMF": BridgedGRMF}
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
everywhere = pytest.mark.parametrize("where", NAMES)
elsewhere = pytest.mark.parametrize("where", OTHERS)


# -- data ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Views of training samples and of new samples, over all samples; gaps are rows of NaN, or given by a mask."""

    views: list[np.ndarray]
    mask: np.ndarray | None
    new: list[np.ndarray]


def made(widths: tuple[int, ...], seed: int, dtype: Any = "float64", **options: Any) -> Data:
    options = {"n_clusters": 3, "missing_rate": 0.3, "separation": 4.0, "noise": 1.0, "random_state": seed} | options
    views = make_views(N + N_NEW, widths, dtype=dtype, **options).views
    whole = []
    for k, matrix in enumerate(views.matrices):
        array = np.full((N + N_NEW, matrix.shape[1]), np.nan, dtype=dtype)
        array[views.rows(k)] = matrix
        whole.append(array)
    return Data([array[:N] for array in whole], None, [array[N:] for array in whole])


def with_mask(data: Data) -> Data:
    """Hide the gaps by a mask; the values behind it are infinite, and must not be read."""
    mask = np.column_stack([~np.isnan(view[:, 0]) for view in data.views])
    return Data([np.where(np.isnan(view), np.inf, view) for view in data.views], mask, data.new)


def with_rare_view(data: Data, n_present: int) -> Data:
    """Hide the second view of every third sample, and the last of all but a few after the first Dask block."""
    _, second, last = data.views
    second[::3] = np.nan
    last[: FIRST + 1], last[FIRST + 1 + 3 * n_present :] = np.nan, np.nan
    last[FIRST + 1 :][np.arange(N - FIRST - 1) % 3 != 0] = np.nan
    return data


def in_order(data: Data) -> Data:
    """Hide the second view in the first Dask block, and the first view in the last one."""
    first, second = data.views
    second[:FIRST], first[LAST:] = np.nan, np.nan
    return data


def of_kinds(seed: int) -> Data:
    """Return counts of samples of different depth, shares, and codes of categories; each sample lacks some views."""
    rng = np.random.RandomState(seed)
    n, target = N + N_NEW, np.arange(N + N_NEW) % 3
    rates = rng.lognormal(2, 1, size=200) * np.exp(rng.normal(size=(3, 200)))
    counts = rng.poisson(rates[target] * rng.lognormal(0, 0.5, size=(n, 1))).astype(float)
    means = rng.uniform(0.1, 0.9, size=(3, 90))[target]
    shares = rng.beta(20 * means, 20 * (1 - means))
    likely = rng.randint(1, 5, size=(3, 30))
    codes = np.where(rng.uniform(size=(n, 30)) < 0.7, likely[target], rng.randint(1, 5, size=(n, 30))).astype(float)
    codes[:, :10] = codes[:, :10] > 2
    views = [counts, shares, codes]
    lacking = rng.randint(6, size=n)  # half of the samples have all views
    for k, view in enumerate(views):
        view[lacking == k] = np.nan
    return Data([view[:N] for view in views], None, [view[N:] for view in views])


def of_shares(seed: int) -> Data:
    """Return shares of a whole, such as histograms; each sample lacks some views."""
    rng = np.random.RandomState(seed)
    n, target = N + N_NEW, np.arange(N + N_NEW) % 3
    lacking, views = rng.randint(4, size=n), []  # half of the samples have both views
    for k, width in enumerate((120, 200)):
        amounts = rng.gamma(5 * rng.dirichlet(np.full(width, 0.3), size=3)[target] + 0.05)
        views.append(amounts / amounts.sum(axis=1, keepdims=True))
        views[k][lacking == k] = np.nan
    return Data([view[:N] for view in views], None, [view[N:] for view in views])


DATA = {
    "kinds": of_kinds(0),
    "shares": of_shares(0),
    "two": made((200, 120), 0),
    "three": with_mask(made((200, 90, 30), 1)),
    "float32": made((400, 240), 2, "float32"),
    "rare": with_rare_view(made((200, 90, 30), 3, missing_rate=0.0), 14),
    "ordered": in_order(made((200, 120), 4, missing_rate=0.0)),
}
PLAIN = made((200, 120), 5, missing_rate=0.0).views


def changed(view: int = 0, at: Any = ..., value: Any = np.nan, plain: Any = None) -> list[np.ndarray]:
    """Return complete views in which one has other values at some places."""
    views = [array.copy() for array in (PLAIN if plain is None else plain)]
    views[view][at] = value
    return views


def replaced(second: np.ndarray) -> list[np.ndarray]:
    """Return complete views with another second view."""
    return [PLAIN[0], second]


def without_view(*samples: int) -> list[np.ndarray]:
    """Return views that are both missing for some samples."""
    return changed(0, [*samples], plain=changed(1, [*samples]))


def shown(view: int, rows: Any) -> np.ndarray:
    """Return a mask that hides some rows of a view."""
    mask = np.ones((N, 2), dtype=bool)
    mask[rows, view] = False
    return mask


@contextmanager
def muted() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# -- fits ------------------------------------------------------------------------------------------------------


def random_codes() -> list[np.ndarray]:
    return [np.random.RandomState(k).uniform(size=(N, 3)) for k in range(3)]


def random_graphs() -> list[sparse.csr_array]:
    """Return graphs between all samples that are not symmetric."""
    return [sparse.random_array((N, N), density=0.04, rng=seed).tocsr() for seed in range(2)]


KINDS = ["counts", "methylation", "categorical"]

# Every fit: a model, and the data. The settings together cover all scales.
COMMON: dict[str, Any] = {"search": "exact", "tol": 1e-7, "max_iter": 25, "random_state": 0}
SINGLE = COMMON | {"tol": 1e-5}  # changes of the objective that single precision can represent
FIXED: dict[str, Any] = {"selection": "fixed", "bridge": "union", **COMMON}
FITS = {
    "GRMF-two": (GRMF(3, init="data", **COMMON), "two"),
    "GRMF-three": (GRMF(3, init="data", scale="standard+unit", consensus_weight=1.0, **COMMON), "three"),
    "GRMF-float32": (GRMF(3, init="data", scale="center+unit", sparsity_weight=0.05, **SINGLE), "float32"),
    "GRMF-rare": (GRMF(3, init="data", scale="standard+view", n_components=6, **COMMON), "rare"),
    "GRMF-ordered": (GRMF(3, init="data", scale=None, n_neighbors=4, **COMMON), "ordered"),
    "GRMF-codes": (GRMF(3, init=random_codes(), consensus_weight=10.0, **COMMON), "three"),
    "GRMF-graphs": (GRMF(3, init="data", graph=random_graphs(), tol=1e-7, random_state=0), "two"),
    "BridgedGRMF-two": (BridgedGRMF(3, **FIXED), "two"),
    "BridgedGRMF-three": (BridgedGRMF(3, scale=["unit", "standard", None], view_weights=[1, 2, 3], **FIXED), "three"),
    "BridgedGRMF-float32": (BridgedGRMF(3, scale="standard+view", n_components=3, **FIXED | SINGLE), "float32"),
    "BridgedGRMF-rare": (BridgedGRMF(3, reach=9, **FIXED), "rare"),
    "BridgedGRMF-ordered": (BridgedGRMF(3, reach=1, consensus_weight=1.0, **FIXED), "ordered"),
    "GRMF-kinds": (GRMF(3, init="data", kind=KINDS, n_top_features=[150, 60, None], **COMMON), "kinds"),
    "BridgedGRMF-kinds": (BridgedGRMF(3, kind=KINDS, n_top_features=[150, None, None], **FIXED), "kinds"),
    "GRMF-shares": (GRMF(3, init="data", scale="root+standard+unit", **COMMON), "shares"),
    "BridgedGRMF-shares": (BridgedGRMF(3, **FIXED), "shares"),
    "BridgedGRMF-choice": (BridgedGRMF(3, bridge="union", **COMMON), "two"),
    "BridgedGRMF-all": (BridgedGRMF(3, **COMMON), "two"),
    "BridgedGRMF-joint": (BridgedGRMF(3, **FIXED | {"bridge": "joint"}), "two"),
    "BridgedGRMF-joint-three": (
        BridgedGRMF(3, scale=["unit", "standard", None], view_weights=[1, 2, 3], **FIXED | {"bridge": "joint"}),
        "three",
    ),
    "BridgedGRMF-joint-ordered": (BridgedGRMF(3, reach=1, **FIXED | {"bridge": "joint"}), "ordered"),
    "BridgedGRMF-both": (BridgedGRMF(3, **FIXED | {"bridge": "both"}), "two"),
    "BridgedGRMF-both-rare": (BridgedGRMF(3, reach=9, **FIXED | {"bridge": "both"}), "rare"),
    "BridgedGRMF-both-float32": (
        BridgedGRMF(3, scale="standard+view", **FIXED | SINGLE | {"bridge": "both"}),
        "float32",
    ),
    "BridgedGRMF-both-kinds": (
        BridgedGRMF(3, kind=KINDS, n_top_features=[150, None, None], **FIXED | {"bridge": "both"}),
        "kinds",
    ),
}
each_fit = pytest.mark.parametrize("fit", FITS)


@pytest.fixture(scope="module")
def fitted(places):
    """Return a function that returns the model of a fit by a backend; every fit is done once."""
    done = {}

    def model(fit, where):
        if (fit, where) not in done:
            estimator, name = FITS[fit]
            done[fit, where] = places(where).fit(estimator, DATA[name].views, DATA[name].mask)
        return done[fit, where]

    return model


def tolerance(fit: str) -> float:
    """Return the relative tolerance: single precision has about 7 digits, and sums of blocks are rounded apart."""
    return 2e-6 if "float32" in fit else 1e-9


def close(ours: Any, theirs: Any, share: float) -> None:
    """Check that arrays differ by no more than a share of the largest value."""
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=share * np.abs(theirs).max())


@each_fit
@elsewhere
def test_labels_are_those_of_memory(fit, where, fitted, places):
    labels, expected = places(where).host(fitted(fit, where).labels_), fitted(fit, "memory").labels_
    assert labels.dtype == expected.dtype
    np.testing.assert_array_equal(labels, expected)


@each_fit
@everywhere
def test_groups_are_numbered_by_size_then_by_smallest_id(fit, where, fitted, places):
    labels = places(where).host(fitted(fit, where).labels_)
    np.testing.assert_array_equal(labels, by_size_and_id(labels, range(N)))


def apart(target: np.ndarray) -> list[np.ndarray]:
    """Return complete views in which the groups of a target are far apart."""
    rng = np.random.RandomState(0)
    return [20 * rng.normal(size=(3, view.shape[1]))[target] + rng.normal(size=view.shape) for view in PLAIN]


@each_estimator
@everywhere
def test_groups_of_equal_size_are_numbered_by_their_smallest_row(estimator, where, places):
    target = np.arange(N)[::-1] % 3
    views = apart(target)
    options = {"init": "data"} if estimator == "GRMF" else {"bridge": "union", "selection": "fixed"}
    place = places(where)
    labels = place.host(place.fit(ESTIMATORS[estimator](3, random_state=0, **options), views).labels_)
    np.testing.assert_array_equal(labels, np.arange(N) % 3)


@each_estimator
@pytest.mark.parametrize("where", ["memory", "dask", "cluster"])
@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_the_label_of_an_id_does_not_depend_on_the_order_of_the_rows(estimator, where, ids, places):
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    target, keys = np.arange(N) % 3, rng.permutation(10 * N)[:N]
    names = keys if ids == "numbers" else [f"patient {key}" for key in keys]
    views = apart(target)
    options = {"init": "data"} if estimator == "GRMF" else {"bridge": "union", "selection": "fixed"}
    place, expected = places(where), by_size_and_id(target, list(names))
    for rows in (np.arange(N), rng.permutation(N)):
        frames = {
            name: pd.DataFrame(view[rows], index=np.asarray(names)[rows])
            for name, view in zip("ab", views, strict=True)
        }
        model = place.fit(ESTIMATORS[estimator](3, random_state=0, **options), frames)
        found = dict(zip(place.host(model.sample_ids_).tolist(), place.host(model.labels_).tolist(), strict=True))
        np.testing.assert_array_equal([found[key] for key in names], expected)


@each_fit
@everywhere
def test_the_objective_is_that_of_memory_and_never_rises(fit, where, fitted):
    model, expected = fitted(fit, where), fitted(fit, "memory")
    assert model.n_iter_ == expected.n_iter_ == len(model.objective_)
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=tolerance(fit))
    assert (np.diff(model.objective_) <= tolerance(fit) * np.abs(model.objective_[:-1])).all()


@each_fit
@elsewhere
def test_fitted_attributes_are_those_of_memory(fit, where, fitted, places):
    model, expected, host = fitted(fit, where), fitted(fit, "memory"), places(where).host
    share = 100 * tolerance(fit)
    for name in ("embedding_", "confidence_"):
        close(host(getattr(model, name)), getattr(expected, name), share)
    for name in ("bases_", "codes_"):
        for ours, theirs in zip(getattr(model, name), getattr(expected, name), strict=True):
            close(host(ours), theirs, share)
    for ours, theirs in zip(model.scalings_, expected.scalings_, strict=True):
        for name in ("center", "spread", "row_length"):
            assert (getattr(ours, name) is None) == (getattr(theirs, name) is None)
            if getattr(theirs, name) is not None:
                np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=share, atol=share)
    close(model.cluster_centers_, expected.cluster_centers_, share)
    np.testing.assert_array_equal(host(model.sample_ids_), expected.sample_ids_)
    assert model.n_features_in_ == expected.n_features_in_
    assert [done.method for done in model.neighbor_search_] == [done.method for done in expected.neighbor_search_]
    if where not in ("dask", "cluster"):  # no worker has the whole graph
        graphs, others = ([m.graph_] if hasattr(m, "graph_") else m.graphs_ for m in (model, expected))
        for ours, theirs in zip(host(graphs), host(others), strict=True):
            close(ours, theirs, share)
    if isinstance(model, BridgedGRMF):
        assert model.setting_ == expected.setting_
        np.testing.assert_allclose(model.view_weights_, expected.view_weights_)
        close(model.balance_, expected.balance_, share)


@elsewhere
def test_the_same_settings_are_tried_with_the_same_scores(where, fitted):
    ours, theirs = fitted("BridgedGRMF-choice", where).selection_, fitted("BridgedGRMF-choice", "memory").selection_
    assert ours.n_samples == theirs.n_samples
    assert len(ours.table) == len(theirs.table) > 5
    np.testing.assert_allclose([row["score"] for row in ours.table], [row["score"] for row in theirs.table])
    assert ours.reason == theirs.reason


# -- other input -------------------------------------------------------------------------------------------------

PRESENT = [view[~np.isnan(view[:, 0])] for view in DATA["two"].views]
BRIEF: dict[str, Any] = {"init": "data", "search": "exact", "max_iter": 3, "tol": 0, "random_state": 0}
OTHER_INPUT = {
    "random codes": (GRMF(3, n_init=2, max_iter=3, tol=0, random_state=0), DATA["two"].views),
    "codes of present samples": (
        GRMF(3, **BRIEF | {"init": [codes[: len(own)] for codes, own in zip(random_codes(), PRESENT, strict=False)]}),
        DATA["two"].views,
    ),
    "graphs of present samples": (
        GRMF(3, **BRIEF | {"search": "auto", "graph": [np.maximum(np.corrcoef(own), 0.2) - 0.2 for own in PRESENT]}),
        DATA["two"].views,
    ),
    "nothing to fill": (GRMF(3, partial_rows="fill", **BRIEF), DATA["two"].views),
    "dropped rows": (GRMF(3, partial_rows="drop", **BRIEF), changed(0, ([3, 200], 0))),
    "rows of zeros": (GRMF(3, **BRIEF), changed(0, [3, 40, 200], 0.0, plain=changed(1, [3, 41]))),
    "integers": (GRMF(3, **BRIEF), [np.round(10 * view).astype(np.int32) for view in PLAIN]),
    "two types": (GRMF(3, **BRIEF), [PLAIN[0].astype(np.float32), PLAIN[1]]),
    "names": (BridgedGRMF(3, **FIXED), dict(zip("ab", DATA["two"].views, strict=True))),
    "a number of clusters": (
        BridgedGRMF(
            "auto", max_clusters=4, **FIXED | {"scale": "unit", "reach": 2, "selection": "auto"}, view_weights=None
        ),
        DATA["two"].views,
    ),
    "rows of zeros in a joint bridge": (
        BridgedGRMF(3, **FIXED | {"bridge": "both", "scale": "unit"}),
        changed(0, [3, 40, 200], 0.0, plain=changed(1, [3, 41, *range(60, 120)])),
    ),
    "one view in a joint bridge": (BridgedGRMF(3, **FIXED | {"bridge": "joint"}), PLAIN[:1]),
    "overlapping groups": (GRMF(3, **BRIEF), made((200, 120), 3, separation=1.5).views),
    "a choice for overlapping groups": (
        BridgedGRMF(3, bridge="union", search="exact", random_state=0),
        made((200, 120), 1, separation=1.5).views,
    ),
}


@pytest.mark.parametrize("case", OTHER_INPUT)
@pytest.mark.parametrize("where", [name for name in OTHERS if name != "cluster"])
def test_other_input_has_the_result_of_memory(case, where, places):
    model, data = OTHER_INPUT[case]
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        theirs = places("memory").fit(model, data)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        ours = places(where).fit(model, data)
    assert warned(records) == warned(expected)
    assert ours.n_iter_ == theirs.n_iter_
    rounding = 1e-7 if case == "two types" else 1e-9  # a view is scaled in its own type
    np.testing.assert_allclose(ours.objective_, theirs.objective_, rtol=rounding)
    np.testing.assert_array_equal(places(where).host(ours.labels_), theirs.labels_)
    if case == "a number of clusters":
        assert ours.cluster_count_.suggested == theirs.cluster_count_.suggested == 3


@elsewhere
def test_recovered_views_keep_their_types(where, places):
    place, data = places(where), [DATA["two"].views[0].astype(np.float32), DATA["two"].views[1]]
    recovered = place.call(place.fit(GRMF(3, **BRIEF), data), "recover", data)
    assert [view.dtype for view in recovered] == [np.float32, np.float64]


# -- new samples -------------------------------------------------------------------------------------------------


def new_samples(fit: str) -> dict[str, Any]:
    """Return new samples with missing views: None in a list, some of the names in a dict, and rows of NaN."""
    views = DATA[FITS[fit][1]].new
    has = [~np.isnan(view[:, 0]) for view in views]
    return {
        "a list with None": [None, views[1][has[1]], *[None for _ in views[2:]]],
        "a dict with some names": {"view_0": views[0][has[0]]},
        "rows of NaN": views,
    }


each_new = pytest.mark.parametrize("new", ["a list with None", "a dict with some names", "rows of NaN"])
some_fits = pytest.mark.parametrize(
    "fit", [f"{name}-{data}" for name in ESTIMATORS for data in ("two", "three", "kinds")]
)


@some_fits
@each_new
@elsewhere
def test_new_samples_are_those_of_memory(fit, new, where, fitted, places):
    model, expected, data, place = fitted(fit, where), fitted(fit, "memory"), new_samples(fit)[new], places(where)
    for options in ({}, {"method": "centers"}):
        labels = place.call(model, "predict", data, **options)
        np.testing.assert_array_equal(labels, expected.predict(data, **options))
    close(place.call(model, "transform", data), expected.transform(data), 1e-7)
    ours, theirs = place.call(model, "recover", data), expected.recover(data)
    assert type(ours) is type(theirs)
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    for own, other in zip(ours, theirs, strict=True):
        close(own, other, 1e-7)


@some_fits
@elsewhere
def test_training_samples_are_recovered_as_in_memory(fit, where, fitted, places):
    ours, theirs = places(where).whole(fitted(fit, where)).recover(), fitted(fit, "memory").recover()
    for own, other in zip(ours, theirs, strict=True):
        close(own, other, 1e-7)


@some_fits
@everywhere
def test_a_saved_model_is_the_same(fit, where, fitted, places, tmp_path):
    model = places(where).whole(fitted(fit, where))
    model.save(tmp_path / "model.gapview")
    again, new = gapview.load(tmp_path / "model.gapview"), new_samples(fit)["rows of NaN"]
    assert all(isinstance(matrix, np.ndarray) for matrix in again.views_.matrices)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    for ours, theirs in zip(again.recover(), model.recover(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


# -- errors ------------------------------------------------------------------------------------------------------


ONE_WAY = np.random.RandomState(0).uniform(1, 2, size=(N, 1)) * np.random.RandomState(1).uniform(1, 2, size=(1, 120))
HUGE = np.sign(PLAIN[0]) + (PLAIN[0] == 0)
ONLY_UNION = {"scale": None, "bridge": "union", "view_weights": None, "selection": "fixed"}


@dataclass(frozen=True)
class Bad:
    """A fit that every backend refuses: data, parameters, and the beginning of the error, as a regular expression."""

    message: str
    views: Any = None  # complete views by default
    mask: Any = None
    settings: Any = None


BAD_DATA = {
    "gaps in rows": Bad(r"InputError: View 'view_0' has 2 row\(s\) of 240.* 3, 200\.", changed(0, ([3, 200], [0, 1]))),
    "infinity": Bad(
        r"InputError: View 'view_1' contains infinity \(inf\) in 2 row\(s\).* 3, 200\.",
        changed(1, ([3, 200], [0, 1]), np.inf),
    ),
    "samples without a view": Bad(
        r"InputError: Every sample needs at least one view; 2 sample.*: 3, 200\.", without_view(3, 200)
    ),
    "negative counts": Bad(
        r"InputError: View 'view_0' has kind='counts', which needs values from 0 on; its smallest value is -\d",
        settings={"kind": "counts"},
    ),
    "more than two values": Bad(
        "InputError: View 'view_0' has kind='binary', which needs features of two values; 200 of 200 have more",
        settings={"kind": ["binary", None]},
    ),
    "shares in percent": Bad(
        r"InputError: View 'view_1' has kind='methylation', .* its largest value is \d",
        changed(0, ..., np.abs(PLAIN[0]), plain=replaced(np.abs(PLAIN[1]))),
        settings={"kind": {"view_1": "methylation"}},
    ),
    "the kind of another view": Bad(
        "ParameterError: kind must be one of .* no view is named 'rna'", settings={"kind": {"rna": "counts"}}
    ),
    "constant": Bad("InputError: View 'view_1' is constant: all its 240 rows", changed(1, ..., 7.0)),
    "constant where shown": Bad(
        "InputError: View 'view_1' is constant: all its 120 rows", changed(1, np.s_[::2], 7.0), shown(1, np.s_[1::2])
    ),
    "constant once scaled": Bad(
        "InputError: View 'view_1' is constant once scaled with scale='unit'",
        replaced(ONE_WAY),
        settings={"scale": "unit"},
    ),
    "constant in single precision": Bad(
        "InputError: View 'view_1' is constant once scaled with scale='unit'",
        replaced(ONE_WAY.astype(np.float32)),
        settings={"scale": "unit"},
    ),
    "None": Bad(r"InputError: View 'view_1' is present for 0 sample\(s\)", replaced(None)),
    "rows that are dropped": Bad(
        "InputError: Every sample needs at least one view; 1 sample.* none left: 3",
        changed(0, (3, 0), plain=changed(1, 3)),
        settings={"partial_rows": "drop"},
    ),
    "one row of a view": Bad(r"InputError: View 'view_1' is present for 1 sample\(s\)", changed(1, np.s_[1:])),
    "no row of a view": Bad(r"InputError: View 'view_1' is present for 0 sample\(s\)", changed(1)),
    "text": Bad("InputTypeError: View 'view_1' must hold numbers", replaced(np.full((N, 2), "a"))),
    "complex numbers": Bad("InputError: View 'view_1' holds complex numbers", replaced(PLAIN[1] + 1j)),
    "dates": Bad(
        "InputTypeError: View 'view_1' must hold numbers", replaced(np.full((N, 2), np.datetime64("2020-01-01")))
    ),
    "numbers of rows": Bad("InputError: .*'view_0' has 240, 'view_1' has 239 rows", replaced(PLAIN[1][1:])),
    "one dimension": Bad("InputError: View 'view_1' must be 2-dimensional", replaced(PLAIN[1][:, 0].copy())),
    "three dimensions": Bad("InputError: View 'view_1' must be 2-dimensional", replaced(PLAIN[1].reshape(N, 60, 2))),
    "no features": Bad("InputError: View 'view_1' has no features", replaced(np.empty((N, 0)))),
    "one sample": Bad(
        "InputError: Clustering needs at least 2 samples", [view[:1] for view in PLAIN], settings={"n_clusters": 1}
    ),
    "no samples": Bad(
        "InputError: Clustering needs at least 2 samples", [view[:0] for view in PLAIN], settings={"n_clusters": 1}
    ),
    "mask of another shape": Bad(
        r"InputError: mask .*\(240, 2\); got shape \(240, 3\)", mask=np.ones((N, 3), dtype=bool)
    ),
    "mask of too few rows": Bad(
        r"InputError: mask .*\(240, 2\); got shape \(239, 2\)", mask=np.ones((N - 1, 2), dtype=bool)
    ),
    "mask of one dimension": Bad(r"InputError: mask .*\(240, 2\); got shape \(240,\)", mask=np.ones(N, dtype=bool)),
    "mask of other numbers": Bad("InputError: mask.*True.*False", mask=np.full((N, 2), 2)),
    "mask of text": Bad("InputError: mask.*True.*False", mask=np.full((N, 2), "yes")),
    "mask that shows a missing row": Bad(
        "InputError: mask marks view 'view_1' as present for 2 sample",
        changed(1, [3, 200]),
        mask=np.ones((N, 2), dtype=bool),
    ),
    "mask that hides all views of a sample": Bad(
        "InputError: Every sample needs at least one view; 1 sample", mask=shown(0, 5) & shown(1, 5)
    ),
    "row lengths near the maximum": Bad(
        "InputError: View 'view_0' holds values so large that the lengths of its rows",
        [1e308 * HUGE, PLAIN[1]],
        settings={"scale": "unit"},
    ),
    "spreads near the maximum": Bad(
        "InputError: View 'view_0' holds values so large that the spreads of its features",
        [np.where(np.arange(200) == 0, 1.2e308 * HUGE, PLAIN[0]), PLAIN[1]],
        settings={"scale": "standard+view"},
    ),
}
BAD_PARAMETERS = {
    "more clusters than samples": Bad(
        "InputError: n_clusters=241 is more than the number of samples: n_samples=240", settings={"n_clusters": N + 1}
    ),
    "no clusters": Bad("ParameterError: n_clusters must", settings={"n_clusters": 0}),
    "clusters as text": Bad("ParameterTypeError: n_clusters must", settings={"n_clusters": "two"}),
    "scale": Bad("ParameterError: scale must be one of", settings={"scale": "minmax"}),
    "search": Bad("ParameterError: search must be one of", settings={"search": "nearest"}),
    "n_neighbors": Bad("ParameterError: n_neighbors must", settings={"n_neighbors": 0}),
    "too many neighbours": Bad(
        "ParameterError: n_neighbors=10 needs at least 11 samples.*'view_1' is present for 8",
        changed(1, np.s_[8:]),
        settings={"n_neighbors": 10},
    ),
    "n_components": Bad("ParameterError: n_components must", settings={"n_components": 0}),
    "consensus_weight": Bad("ParameterError: consensus_weight must", settings={"consensus_weight": -1.0}),
    "sparsity_weight": Bad("ParameterError: sparsity_weight must", settings={"sparsity_weight": np.nan}),
    "a penalty that leaves nothing": Bad("SolutionError: .*sparsity_weight", settings={"sparsity_weight": 1e9}),
    "max_iter": Bad("ParameterError: max_iter must", settings={"max_iter": 0}),
    "tol": Bad("ParameterError: tol must", settings={"tol": -1.0}),
    "partial_rows": Bad("ParameterError: partial_rows must be one of", settings={"partial_rows": "guess"}),
    "random_state": Bad("ParameterError: random_state", settings={"random_state": "seed"}),
    "memory_budget": Bad("ParameterError: memory_budget must be None, a finite", settings={"memory_budget": "lots"}),
}
CODES = [np.ones((N, 3)), np.ones((N, 3))]
GRAPHS = [np.eye(N), np.eye(N)]
BAD_GRMF = {
    "numbers near the maximum": Bad(
        "SolutionError: The factorisation has reached numbers too large for float64",
        [1.7e308 * HUGE, PLAIN[1]],
        settings={"scale": None, "init": "data"},
    ),
    "init as text": Bad("InputTypeError: init must be 'random', 'data', or one array", settings={"init": "zeros"}),
    "init of one view": Bad(
        "InputTypeError: init must be 'random', 'data', or one array", settings={"init": CODES[:1]}
    ),
    "init without a name": Bad(
        "InputTypeError: init must be 'random', 'data'", settings={"init": {"view_0": CODES[0]}}
    ),
    "init of another width": Bad(
        "InputError: The starting codes of view 'view_1' must be", settings={"init": [CODES[0], np.ones((N, 2))]}
    ),
    "init of another length": Bad(
        "InputError: The starting codes of view 'view_1' must be", settings={"init": [CODES[0], np.ones((N - 1, 3))]}
    ),
    "init of one dimension": Bad(
        "InputError: The starting codes of view 'view_1' must be", settings={"init": [CODES[0], np.ones(N)]}
    ),
    "init of words": Bad(
        "InputTypeError: The starting codes of view 'view_1'", settings={"init": [CODES[0], np.full((N, 3), "a")]}
    ),
    "init of complex numbers": Bad(
        "InputTypeError: The starting codes of view 'view_1'", settings={"init": [CODES[0], CODES[1] + 1j]}
    ),
    "init with NaN": Bad(
        "InputError: The starting codes of view 'view_1' must be finite",
        settings={"init": [CODES[0], CODES[1] * np.nan]},
    ),
    "graph as text": Bad("InputTypeError: graph must be None or one square matrix", settings={"graph": "knn"}),
    "graph of one view": Bad("InputTypeError: graph must be None or one square matrix", settings={"graph": GRAPHS[:1]}),
    "graph of another shape": Bad(
        "InputError: The graph of view 'view_1' must be 240 × 240", settings={"graph": [GRAPHS[0], np.eye(5)]}
    ),
    "graph with negative weights": Bad(
        "InputError: The graph of view 'view_1' must hold weights of at least 0",
        settings={"graph": [GRAPHS[0], -GRAPHS[1]]},
    ),
    "graph with NaN": Bad(
        "InputError: The graph of view 'view_1' must hold weights of at least 0",
        settings={"graph": [GRAPHS[0], np.nan * GRAPHS[1]]},
    ),
    "graph without edges": Bad(
        "InputError: The graph of view 'view_1' has no edge", settings={"graph": [GRAPHS[0], 0 * GRAPHS[1]]}
    ),
    "graph of words": Bad(
        "InputTypeError: The graph of view 'view_1'", settings={"graph": [GRAPHS[0], np.full((N, N), "a")]}
    ),
    "n_init": Bad("ParameterError: n_init must", settings={"n_init": 0}),
}
BAD_BRIDGED = {
    "numbers near the maximum": Bad(
        "SolutionError: The factorisation has reached numbers too large for float64",
        [1.7e308 * HUGE, PLAIN[1]],
        settings=ONLY_UNION | {"scale": None},
    ),
    "bridge": Bad("ParameterError: bridge must be one of", settings={"bridge": "all"}),
    "reach": Bad("ParameterError: reach must", settings={"reach": 0}),
    "selection": Bad("ParameterError: selection must be one of", settings={"selection": "none"}),
    "max_clusters": Bad("ParameterError: max_clusters must", settings={"max_clusters": 2}),
    "scale of one view": Bad("Parameter.*Error: scale", settings={"scale": ["unit"]}),
    "scale of a view": Bad("ParameterError: scale", settings={"scale": ["unit", "minmax"]}),
    "weights of one view": Bad("Parameter.*Error: view_weights", settings={"view_weights": [1.0]}),
    "weights of nothing": Bad("ParameterError: .*view_weights", settings={"view_weights": [0.0, 0.0]}),
    "negative weights": Bad("ParameterError: .*view_weights", settings={"view_weights": [1.0, -1.0]}),
}
BAD = {
    **{f"{estimator}-{name}": bad for estimator in ESTIMATORS for name, bad in (BAD_DATA | BAD_PARAMETERS).items()},
    **{f"GRMF-{name}": bad for name, bad in BAD_GRMF.items()},
    **{f"BridgedGRMF-{name}": bad for name, bad in BAD_BRIDGED.items()},
}
QUICK = {"GRMF": {"max_iter": 2}, "BridgedGRMF": {"bridge": "union", "selection": "fixed", "max_iter": 2}}


def error_of(place: Any, model: Any, views: Any, mask: Any = None) -> str:
    """Return the class and the text of the error of a fit."""
    with muted(), pytest.raises(Exception) as refused:  # noqa: PT011
        place.fit(model, views, mask)
    return f"{type(refused.value).__name__}: {refused.value}"


def refusal(place: Any, name: str) -> str:
    """Return the class and the text of the error of a bad fit."""
    bad, estimator = BAD[name], name.split("-")[0]
    model = ESTIMATORS[estimator](**{"n_clusters": 3, **QUICK[estimator], **(bad.settings or {})})
    views = PLAIN if bad.views is None else bad.views
    return error_of(place, model, views, bad.mask)


@pytest.fixture(scope="module")
def refusals(places):
    """Return a function that returns the error of a fit in memory; every fit is done once."""
    done = {}

    def expected(name):
        if name not in done:
            done[name] = refusal(places("memory"), name)
        return done[name]

    return expected


@pytest.mark.parametrize("bad", BAD)
def test_bad_fits_are_refused_in_memory(bad, refusals):
    assert re.match(BAD[bad].message, refusals(bad))


@pytest.mark.parametrize("bad", BAD)
@elsewhere
def test_errors_are_those_of_memory(bad, where, refusals, places):
    assert refusal(places(where), bad) == refusals(bad)


def frames_of(**changes: Any) -> dict[str, Any]:
    """Return two views of the same samples as frames with ids."""
    pd = pytest.importorskip("pandas")
    ids = [f"s{i:03d}" for i in range(N)]
    frames = {
        name: pd.DataFrame(view[:, :4], index=ids).add_prefix("f") for name, view in zip("ab", PLAIN, strict=True)
    }
    return {name: changes.get(name, lambda frame: frame)(frame) for name, frame in frames.items()}


BAD_FRAMES = {
    "numbers as text": lambda frame: frame.assign(stage="2"),
    "gaps in rows": lambda frame: frame.assign(f1=frame["f1"].where(~frame.index.isin(["s005", "s200"]))),
    "infinity": lambda frame: frame.assign(f1=[np.inf, *frame["f1"][1:]]),
    "constant": lambda frame: frame * 0.0 + 1.0,
    "a name twice": lambda frame: frame.set_axis(["f0", "f1", "f2", "f0"], axis=1),
    "an id twice": lambda frame: frame.set_axis(["s000", *frame.index[:-1]], axis=0),
    "ids of numbers": lambda frame: frame.set_axis(np.arange(1000, 1000 + N), axis=0),
}


@pytest.mark.parametrize("where", ["dask", "cluster"])
@pytest.mark.parametrize("bad", BAD_FRAMES)
def test_errors_of_frames_are_those_of_memory(bad, where, places):
    pytest.importorskip("dask.dataframe")
    frames = frames_of(b=BAD_FRAMES[bad])
    assert error_of(places(where), GRMF(3), frames) == error_of(places("memory"), GRMF(3), frames)


BAD_NEW = {
    "an unknown view": {"blood": PLAIN[0]},
    "too few views without names": [PLAIN[0]],
    "other features": [PLAIN[0][:, :7], PLAIN[1]],
    "gaps in rows": changed(0, ([[3], [200]], range(PLAIN[0].shape[1] // 2))),
    "infinity": changed(0, ([3, 200], 0), np.inf),
    "samples without a view": without_view(3, 200),
    "numbers of rows": replaced(PLAIN[1][1:]),
    "no views": [None, None],
    "text": replaced(np.full((N, 120), "a")),
}


# Dask checks new samples block by block, when they are computed: numbers and ids are those of a block
OF_A_BLOCK = ("gaps in rows", "infinity", "samples without a view")


@pytest.mark.parametrize("bad", BAD_NEW)
@elsewhere
def test_errors_of_new_samples_are_those_of_memory(bad, where, fitted, places):
    texts = []
    for place in (places("memory"), places(where)):
        with pytest.raises(Exception) as refused:  # noqa: PT011
            place.call(fitted("GRMF-two", place.name), "predict", BAD_NEW[bad])
        texts.append(f"{type(refused.value).__name__}: {refused.value}")
    if bad in OF_A_BLOCK and where in ("dask", "cluster"):
        texts = [re.sub(r"\d+(, \d+)*", "…", text) for text in texts]
    assert texts[1] == texts[0]


# -- what some backends do not do ----------------------------------------------------------------------------------

GAPS = changed(0, (3, 0))
ONLY_HERE = r"^(device|memory_budget) is for fits in this process, .* leave (device|memory_budget) out"
IN_CSR = r"Convert them with \.map_blocks\(lambda block: block\.toarray\(\)\), or fit in memory"
UNSUPPORTED = {
    "device": (GRMF(3, device="cpu"), PLAIN, {"dask": ONLY_HERE}),
    "memory_budget": (GRMF(3, memory_budget="1GB"), PLAIN, {"dask": ONLY_HERE}),
    "filled gaps": (
        GRMF(3, partial_rows="fill"),
        GAPS,
        {"disk": "Use partial_rows='drop', or fill the gaps", "dask": "Use partial_rows='drop', or fill the gaps"},
    ),
    "frames": (
        GRMF(3).set_output(transform="pandas"),
        PLAIN,
        {"dask": r"stay Dask arrays.* Use set_output\(transform='default'\)"},
    ),
    "sparse views": (
        GRMF(3),
        replaced(sparse.csr_array(PLAIN[1])),
        {"dask": IN_CSR, "device": r"Leave device out, or pass the view as a dense array \(\.toarray\(\)\)"},
    ),
}


@pytest.mark.parametrize(
    ("name", "where"),
    [
        (name, where)
        for name, (_, _, messages) in UNSUPPORTED.items()
        for where in OTHERS
        if where.replace("cluster", "dask") in messages
    ],
)
def test_what_a_backend_does_not_do_is_refused_with_advice(name, where, places):
    model, views, messages = UNSUPPORTED[name]
    with pytest.raises(GapviewError, match=messages[where.replace("cluster", "dask")]):
        places(where).fit(model, views)


@pytest.mark.parametrize("where", ["dask", "cluster"])
@pytest.mark.parametrize("fit", ["GRMF-two", "BridgedGRMF-two"])
def test_what_a_model_fitted_in_blocks_does_not_do_is_refused_with_advice(fit, where, fitted, places, tmp_path):
    model, place = fitted(fit, where), places(where)
    new = new_samples(fit)["rows of NaN"]
    for method in (lambda: model.save(tmp_path / "model"), model.view_agreement, model.feature_effects):
        with pytest.raises(NotFittedError, match=r"Use model\.reference_"):
            method()
    with pytest.raises(NotFittedError, match=r"Use model\.reference_"):
        model.cluster_stability()
    with pytest.raises(InputError, match=r"give the views, recover\(views\).* or use model\.reference_"):
        model.recover()
    with pytest.raises(InputError, match="give views in memory"):
        place.call(model, "score", new)
    with pytest.raises(InputError, match="place takes views in memory"):
        place.call(model, "place", new)
    np.testing.assert_array_equal(model.place(new).labels, model.predict(new))
    assert model.score(new) == pytest.approx(fitted(fit, "memory").score(new))


@each_estimator
@pytest.mark.parametrize("where", ["disk", "tensors"])
def test_sparse_views_are_those_of_memory(estimator, where, places):
    settings = {"GRMF": {"init": "data"}, "BridgedGRMF": FIXED | {"scale": "unit"}}[estimator] | {"random_state": 0}
    model, views = ESTIMATORS[estimator](3, **settings), replaced(sparse.csr_array(PLAIN[1] * (PLAIN[1] > 2)))
    expected = places("memory").fit(model, views)
    place = places("memory" if where == "disk" else where)  # a sparse view is not in a file, but counts in the budget
    ours = place.fit(model.set_params(memory_budget="1GB" if where == "disk" else None), views)
    np.testing.assert_allclose(ours.objective_, expected.objective_, rtol=1e-9)
    np.testing.assert_array_equal(ours.labels_, expected.labels_)
    close(ours.embedding_, expected.embedding_, 1e-7)


# -- the conduct of a fit ----------------------------------------------------------------------------------------

UNUSED = {
    "a given start and a given graph": (
        GRMF(3, init="data", graph=random_graphs(), n_init=5, n_neighbors=3, search="exact"),
        PLAIN,
        [
            "n_init=5 has no effect, since init is not 'random'",
            "n_neighbors=3 has no effect, since graph is given",
            "search='exact' has no effect, since graph is given",
        ],
    ),
    "no sample in two views": (
        GRMF(3, consensus_weight=5.0),
        changed(0, np.s_[::2], plain=changed(1, np.s_[1::2])),
        [
            "No sample links these 2 parts of the views: 'view_0' (120 samples); 'view_1' (120 samples)",
            "consensus_weight=5.0 has no effect, since no sample has two views",
        ],
    ),
    "nothing to choose": (
        BridgedGRMF(3, scale="unit", reach=2, view_weights=None, max_clusters=5, **FIXED),
        PLAIN,
        [
            "max_clusters=5 has no effect, since n_clusters is given",
            "selection='fixed' has no effect, since scale, bridge, reach and view_weights are given",
        ],
    ),
    "one view": (
        BridgedGRMF(3, consensus_weight=5.0, view_weights=[2.0], **FIXED),
        PLAIN[:1],
        [
            "consensus_weight=5.0 has no effect, since there is one view",
            "view_weights has no effect, since there is one view",
        ],
    ),
}


@pytest.mark.parametrize("name", UNUSED)
@everywhere
def test_parameters_without_effect_give_the_same_warnings(name, where, places):
    model, views, texts = UNUSED[name]
    with pytest.warns(GapviewWarning) as records:
        places(where).fit(clone(model).set_params(max_iter=2), views)
    assert [text.split(". ")[0] for text in warned(records)] == texts


@each_estimator
@everywhere
def test_parts_that_no_sample_links_have_groups_of_their_own(estimator, where, places):
    views = [view.copy() for view in made((200, 90, 120), 6, missing_rate=0.0, separation=8.0).views]
    views[0][150:], views[1][150:], views[2][:150] = np.nan, np.nan, np.nan
    model = GRMF(3, init="data", **COMMON) if estimator == "GRMF" else BridgedGRMF(3, **FIXED)
    with pytest.warns(GapviewWarning, match="No sample links these 2 parts of the views"):
        theirs = clone(model).fit(views)
    place = places(where)
    with muted():
        ours = place.fit(model, views)
    np.testing.assert_array_equal(place.host(ours.part_), np.arange(N) >= 150)
    np.testing.assert_array_equal(place.host(ours.labels_), theirs.labels_)
    assert [set(own.tolist()) for own in (theirs.labels_[:150], theirs.labels_[150:])] == [{0, 1, 2}, {3, 4, 5}]
    # The codes of a part do not depend on those of another, and a rotation between them changes nothing
    np.testing.assert_allclose(place.host(ours.confidence_), theirs.confidence_, atol=0.01)
    new = [None, None, views[2][150:155]]
    assert set(place.call(ours, "predict", new).tolist()) <= {3, 4, 5}


@each_estimator
@everywhere
def test_a_fit_that_fails_leaves_the_model_as_it_was(estimator, where, fitted, places):
    place, data = places(where), DATA["two"].views
    unfitted, bad = place.prepared(ESTIMATORS[estimator](3), PLAIN), BAD_DATA["constant"].views
    with pytest.raises(InputError):
        place.refit(unfitted, bad)
    assert not [name for name in vars(unfitted) if name.endswith("_")]
    model = copy.copy(fitted(f"{estimator}-two", where)).set_params(sparsity_weight=1e9)
    before = dict(vars(model))
    for views, error in ((bad, InputError), (data, SolutionError)):  # before the work begins, and near its end
        with pytest.raises(error):
            place.refit(model, views)
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())


@each_estimator
@everywhere
def test_the_same_random_state_gives_the_same_result(estimator, where, fitted, places):
    place, data, is_random = places(where), DATA["two"].views, estimator == "GRMF"
    model = GRMF(3, random_state=7, max_iter=2) if is_random else FITS["BridgedGRMF-two"][0]
    first, second = place.fit(model, data) if is_random else fitted("BridgedGRMF-two", where), place.fit(model, data)
    for name in ("labels_", "embedding_", "confidence_"):
        np.testing.assert_array_equal(place.host(getattr(first, name)), place.host(getattr(second, name)))


@pytest.mark.parametrize("fit", ["GRMF-codes", "BridgedGRMF-two"])
@everywhere
def test_parameters_are_unchanged_by_a_fit(fit, where, fitted, places):
    given, (model, data) = FITS[fit][0].get_params(), FITS[fit]
    chosen = places(where).prepared(model, DATA[data].views, DATA[data].mask).get_params()
    changed_by_backend = {"disk": {"memory_budget"}, "device": {"device"}}.get(where, set())
    after = fitted(fit, where).get_params()
    assert {name for name in after if str(after[name]) != str(given[name])} == changed_by_backend
    assert str(after) == str(chosen)
    unfitted = clone(fitted(fit, where))
    assert str(unfitted.get_params()) == str(after)
    assert not [name for name in vars(unfitted) if name.endswith("_")]


@pytest.mark.parametrize("fit", ["GRMF-two", "BridgedGRMF-two"])
@everywhere
def test_a_checkpoint_does_not_change_the_result(fit, where, fitted, places, tmp_path):
    place, (model, data) = places(where), FITS[fit]
    ours = place.fit(model, DATA[data].views, DATA[data].mask, checkpoint=tmp_path / "fit")
    theirs = fitted(fit, where)
    np.testing.assert_array_equal(ours.objective_, theirs.objective_)
    for name in ("labels_", "embedding_", "confidence_"):
        np.testing.assert_array_equal(place.host(getattr(ours, name)), place.host(getattr(theirs, name)))
