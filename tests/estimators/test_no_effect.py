"""Parameters without effect: a value other than the default gives a warning that names what overrides it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from gapview import GRMF, BridgedGRMF, Views
from gapview.baselines import DCNMF, GPMVC, PVC, Concat
from gapview.datasets import make_views
from gapview.errors import GapviewWarning
from gapview.estimators.base import NoEffect
from gapview.graph.neighbors import Search
from gapview.methods import METHODS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def made():
    return make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views


@pytest.fixture(scope="module")
def positive(made):
    return Views([np.abs(matrix) for matrix in make_views(60, (6, 5), n_clusters=2, random_state=0).views.matrices])


def ring(n_samples):
    weights = sparse.lil_array((n_samples, n_samples))
    for i in range(n_samples):
        weights[i, (i + 1) % n_samples] = weights[(i + 1) % n_samples, i] = 1.0
    return sparse.csr_array(weights)


GRAPHS = [ring(60), ring(60)]
GIVEN = {"scale": "unit", "bridge": "union", "reach": 2, "view_weights": None}
# Each: the model, what it has no effect because of, and which warning that gives
UNUSED = {
    "starts that are not random": (
        GRMF(2, init="data", n_init=5),
        "n_init=5 has no effect, since init is not 'random'",
    ),
    "neighbours of a given graph": (GRMF(2, graph=GRAPHS, n_neighbors=3), "n_neighbors=3 .*graph is given"),
    "search beside a given graph": (GRMF(2, graph=GRAPHS, search="exact"), "search='exact' .*graph is given"),
    "search object beside a graph": (GRMF(2, graph=GRAPHS, search=Search("exact")), "search has no effect.*graph"),
    "most groups of a given number": (BridgedGRMF(2, max_clusters=5), "max_clusters=5 .*n_clusters is given"),
    "nothing left to choose": (
        BridgedGRMF(2, selection="fixed", **GIVEN),
        "selection='fixed' .*scale, bridge, reach and view_weights are given",
    ),
}


def fitted(model, views, **options):
    return clone(model).set_params(random_state=0).fit(views, **options)


@pytest.mark.parametrize("case", UNUSED)
def test_unused_parameters_are_named(case, made):
    model, message = UNUSED[case]
    with pytest.warns(GapviewWarning, match=message) as heard:
        fitted(model, made)
    (warning,) = [warning for warning in heard if warning.category is GapviewWarning]
    assert warning.filename == __file__
    assert " or " in str(warning.message)  # what to do


@pytest.mark.parametrize("case", UNUSED)
def test_the_parameter_has_no_effect_indeed(case, made):
    model, message = UNUSED[case]
    name = message.split("=")[0].split()[0]
    default = type(model)().get_params()[name]
    with pytest.warns(GapviewWarning, match=name):
        one = fitted(model, made)
    other = fitted(clone(model).set_params(**{name: default}), made)
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    np.testing.assert_array_equal(one.labels_, other.labels_)


@pytest.mark.filterwarnings("ignore:No sample links")
def test_one_view_needs_no_weights(made):
    single = made.matrices[0]
    for model in (GRMF(2, consensus_weight=5.0), BridgedGRMF(2, consensus_weight=5.0, selection="fixed")):
        with pytest.warns(GapviewWarning, match=r"consensus_weight=5.0 has no effect.*view"):
            fitted(model, single)
    with pytest.warns(GapviewWarning, match="view_weights has no effect, since there is one view"):
        fitted(BridgedGRMF(2, view_weights=[3.0], selection="fixed"), single)
    apart = Views(list(make_views(40, (5, 4), n_clusters=2, random_state=0).views.matrices))
    mask = np.arange(40)[:, None] % 2 == np.arange(2)
    with pytest.warns(GapviewWarning, match="consensus_weight=5.0 has no effect, since no sample has two views"):
        fitted(GRMF(2, consensus_weight=5.0), apart, mask=mask)


@pytest.mark.parametrize("method", [GRMF(2), BridgedGRMF(2, selection="fixed"), Concat(2)])
def test_partial_rows_of_complete_views(method, made):
    model = clone(method).set_params(partial_rows="fill")
    with pytest.warns(GapviewWarning, match=r"partial_rows='fill' .*are a Views.*Views\(data, partial_rows=\.\.\.\)"):
        fitted(model, made)
    arrays = list(make_views(60, (6, 5), n_clusters=2, random_state=0).views.matrices)
    fitted(model, arrays)  # they might have gaps
    fitted(model, Views(arrays, partial_rows="fill"))  # the same rule, then also for new samples
    fitted(model, Views(arrays, partial_rows="fill")[:50])


def test_neighbours_that_predict_and_recover_do_not_use(made):
    model = fitted(GRMF(2), made)
    with pytest.warns(GapviewWarning, match="n_neighbors=5 has no effect, since method='centers'"):
        model.predict(made, method="centers", n_neighbors=5)
    with pytest.warns(GapviewWarning, match="n_neighbors=5 has no effect, since method='basis'"):
        model.recover(method="basis", n_neighbors=5)
    model.predict(made, method="centers")
    model.recover(method="basis")


@pytest.mark.parametrize("name", METHODS)
def test_defaults_never_warn(name, positive):
    model = METHODS[name](2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The neighbour graph of the filled")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for views in (positive, positive.matrices[0]):
            clone(model).fit(views)


@pytest.mark.parametrize("name", METHODS)
def test_rules_are_about_parameters(name):
    rules = [rule for kind in METHODS[name].__mro__ for rule in vars(kind).get("_no_effect", ())]
    assert all(isinstance(rule, NoEffect) and rule.parameter in METHODS[name]().get_params() for rule in rules)


def test_repeated_fits_do_not_repeat_the_warning(made):
    for model in (GRMF(2, init="data", n_init=5), BridgedGRMF(2, max_clusters=5, selection="fixed")):
        with pytest.warns(GapviewWarning):
            found = fitted(model, made)
        found.cluster_stability(n_resamples=2, random_state=0)


@pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits
def test_a_grid_over_parameters_that_matter_is_silent(made):
    grid = {"n_init": [1, 2], "consensus_weight": [1.0, 10.0]}
    GridSearchCV(GRMF(2, random_state=0), grid, cv=2, refit=False).fit(made)


RIVALS = [
    (DCNMF(2, consensus_weight=3.0, max_iter=5), "consensus_weight=3.0 .*consensus is not 'soft'"),
    (DCNMF(2, graph_weight=0, n_neighbors=3, max_iter=5), "n_neighbors=3 .*graph_weight is 0"),
    (GPMVC(2, graph_weight=0, n_neighbors=3, max_iter=2, n_steps=3), "n_neighbors=3 .*graph_weight is 0"),
    (PVC(2, sparsity_weight=0, scale_penalty=False), "scale_penalty=False .*sparsity_weight is 0"),
]


@pytest.mark.parametrize(("model", "message"), RIVALS)
def test_unused_parameters_of_other_methods(model, message, positive):
    with pytest.warns(GapviewWarning, match=message) as heard:
        fitted(model, positive)
    assert sum(warning.category is GapviewWarning for warning in heard) == 1
