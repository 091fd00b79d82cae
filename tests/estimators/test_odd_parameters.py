"""Every parameter with every odd value: a fit that ends, or one of our errors, within seconds."""

from __future__ import annotations

import inspect
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from gapview import GRMF, BridgedGRMF, baselines
from gapview.datasets import hide_views, make_views, paired_split
from gapview.errors import GapviewError
from gapview.graph import knn_graph
from gapview.graph.neighbors import Search
from gapview.utils.messages import LARGEST


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


ODD = {
    "duration": np.timedelta64(5),
    "seconds": np.timedelta64(5, "s"),
    "date": np.datetime64("2020-01-01"),
    "10**30": 10**30,
    "-10**30": -(10**30),
    "10**400": 10**400,
    "10**5000": 10**5000,
    "largest": LARGEST,
    "nan": float("nan"),
    "inf": float("inf"),
    "1e308": 1e308,
    "1e-320": 1e-320,
    "text": "3",
    "no text": "",
    "bytes": b"3",
    "surrogate": "a\udcff",
    "list": [],
    "tuple": (1,),
    "dict": {},
    "set": set(),
    "object": object(),
    "unprintable": Unprintable(),
    "0-d array": np.array(3),
    "array": np.array([3, 3]),
    "decimal": Decimal(2),
    "half": Fraction(1, 2),
    "True": True,
    "np.True_": np.True_,
    "None": None,
    "-1": -1,
    "1.5": 1.5,
    "complex": 1j,
    "float16": np.float16(0.5),
    "longdouble": np.longdouble(0.5),
    "uint64": np.uint64(3),
    "class": int,
    "slice": slice(2),
}
POSITIVE = [np.abs(matrix) for matrix in make_views(24, (5, 4), n_clusters=2, random_state=0).views.matrices]
VIEWS = hide_views(POSITIVE, 0.2, random_state=0)
ESTIMATORS = [
    GRMF,
    BridgedGRMF,
    *(kind for kind in map(vars(baselines).get, baselines.__all__) if inspect.isclass(kind)),
]
PARAMETERS = [(kind, name) for kind in ESTIMATORS for name in kind().get_params()]


def refusal(call):
    """Return the message of our error, or nothing if the call ends well."""
    try:
        call()
    except GapviewError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("kind", "name"), PARAMETERS, ids=[f"{kind.__name__}-{name}" for kind, name in PARAMETERS])
@pytest.mark.filterwarnings("ignore")
def test_odd_parameters_of_estimators(kind, name):
    plain = {"n_clusters": 2, "max_iter": 3, "n_steps": 2, "selection": "fixed", "random_state": 0}
    for odd, value in ODD.items():
        if odd == "largest" and name == "max_iter":  # allowed, and may take as long
            continue
        known = kind().get_params()
        model = kind(**{key: given for key, given in plain.items() if key in known} | {name: value})
        message = refusal(lambda model=model: model.fit(POSITIVE if kind is baselines.PVC else VIEWS))
        assert len(message) < 1000
        assert message or len(model.labels_) == 24


@pytest.mark.parametrize("value", ["10**30", "10**5000", "duration", "nan", "text", "decimal", "True", "0-d array"])
def test_numbers_that_are_none_are_refused(value):
    for name in ("n_clusters", "n_neighbors", "max_iter", "n_init", "n_components"):
        with pytest.raises(GapviewError, match=f"{name} must be an integer of at least 1"):
            GRMF(**{name: ODD[value]}).fit(VIEWS)


def test_limits_are_named():
    with pytest.raises(GapviewError, match="n_init must be an integer of at least 1 and at most 10000; got 10001"):
        GRMF(2, n_init=10_001).fit(VIEWS)
    with pytest.raises(GapviewError, match=r"consensus_weight must be .*a float \(such as 1e30\)"):
        GRMF(2, consensus_weight=10**30).fit(VIEWS)


MODEL = GRMF(2, random_state=0).fit(VIEWS)
CALLS = {
    "predict": (lambda **more: MODEL.predict(VIEWS, **more), ["method", "n_neighbors"]),
    "recover": (lambda **more: MODEL.recover(VIEWS, **more), ["method", "n_neighbors"]),
    "cluster_stability": (
        lambda **more: MODEL.cluster_stability(**{"n_resamples": 2} | more),
        [*inspect.signature(MODEL.cluster_stability).parameters],
    ),
    "make_views": (
        lambda **more: make_views(**{"n_samples": 9} | more),
        ["n_features", "n_clusters", "separation", "noise", "dtype", "missing_rate", "random_state"],
    ),
    "hide_views": (
        lambda **more: hide_views(POSITIVE, **{"missing_rate": 0.2} | more),
        ["missing_rate", "random_state"],
    ),
    "paired_split": (
        lambda **more: paired_split(POSITIVE, **{"paired_rate": 0.5} | more),
        ["paired_rate", "order", "random_state"],
    ),
    "Search": (lambda **more: Search(**more), ["method", "recall", "seed"]),
    "knn_graph": (lambda **more: knn_graph(POSITIVE[0], **more), ["n_neighbors"]),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_odd_parameters_of_functions(call):
    function, names = CALLS[call]
    for name in names:
        for value in ODD.values():
            assert len(refusal(lambda name=name, value=value: function(**{name: value}))) < 1000


def test_numbers_of_numpy_are_numbers():
    views = [matrix.astype(np.float32) for matrix in POSITIVE]
    plain = GRMF(2, consensus_weight=50.0, sparsity_weight=0.01, tol=1e-4, random_state=0).fit(views)
    for kind in (np.float64, np.float32):
        same = GRMF(2, consensus_weight=kind(50), sparsity_weight=kind(0.01), tol=kind(1e-4), random_state=0).fit(views)
        assert same.embedding_.dtype == np.float32
        np.testing.assert_allclose(same.embedding_, plain.embedding_, atol=1e-6)
