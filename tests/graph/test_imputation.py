"""Imputed rows against their definition, new samples without a direction, weights of views."""

import numpy as np
import pytest
from scipy import sparse
from test_bridges import comparable, naive_donors

from gapview import BridgedGRMF, Views
from gapview.backends.memory import MemoryBackend
from gapview.choice.representation import IterationLimits, Setting, prepare, represent
from gapview.choice.selection import compute_view_weights
from gapview.choice.trials import Drawn
from gapview.clusters import balanced, balancing
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, ParameterError, ParameterTypeError, SolutionError
from gapview.factorization import Weights, build_problem, solve
from gapview.factorization.starts import data_start
from gapview.graph.donors import nearest_donors, query_rows, training_rows
from gapview.graph.imputation import donor_slope, impute_rows
from gapview.scaling import scale_views


@pytest.fixture(scope="module")
def made():
    return make_views(n_samples=80, n_features=(6, 8, 5), n_clusters=3, noise=2.0, missing_rate=0.4, random_state=3)


def by_hand(views, scaled, view, weights, nearby):
    """Impute a view of the training samples: mean of both kinds of neighbours, shrunk to the mean of the view."""
    rows = comparable(scaled, views)
    raw = np.full((views.n_samples, views.n_features[view]), np.nan)
    raw[views.rows(view)] = views.matrices[view]
    center = views.matrices[view].mean(axis=0)
    expected, actual = [], []
    for sample in views.rows(view):
        donors = naive_donors(rows, views, view, sample, weights)
        if donors:
            expected.append(raw[donors].mean(axis=0) - center)
            actual.append(raw[sample] - center)
    slope = np.clip(np.sum(np.multiply(expected, actual)) / np.sum(np.square(expected)), 0, 1)
    imputed = []
    for place, sample in enumerate(np.flatnonzero(~views.mask[:, view])):
        donors = naive_donors(rows, views, view, sample, weights)
        both = (nearby[place] + raw[donors].mean(axis=0)) / 2 if donors else nearby[place]
        imputed.append(center + slope * (both - center))
    return np.array(imputed), slope


def test_imputed_rows_against_their_definition(made):
    views, weights = made.views, [1.0, 0.5, 2.0]
    scaled = scale_views(views, "standard")[0]
    training = training_rows(scaled, views, weights)
    rng = np.random.RandomState(0)
    for view in range(3):
        nearby = rng.normal(size=((~views.mask[:, view]).sum(), views.n_features[view]))
        expected, slope = by_hand(views, scaled, view, weights, nearby)
        assert 0.2 < slope < 0.95  # so that the shrinkage matters
        donors = nearest_donors(training, view, training, np.flatnonzero(~views.mask[:, view]))
        found = impute_rows(views, view, donors, nearby, donor_slope(views, view, training))
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_training_samples_as_queries_have_the_same_rows(made):
    views = made.views
    scaled = scale_views(views, "standard")[0]
    training = training_rows(scaled, views)
    queries = query_rows(scaled, views, training)
    for table, query in zip(training, queries, strict=True):
        np.testing.assert_array_equal(table.points, query.points)
        assert query.unit == table.unit


@pytest.mark.filterwarnings("ignore:No sample links")
def test_sparse_view_without_validation_is_not_imputed_as_zeros():
    rng = np.random.RandomState(0)
    words = sparse.csr_array((rng.uniform(size=(40, 30)) < 0.2) * rng.uniform(1, 2, size=(40, 30)))
    mask = np.zeros((40, 2), dtype=bool)
    mask[:20, 0] = mask[20:, 1] = True
    model = BridgedGRMF(2, random_state=0).fit([words, words[:, ::-1]], mask=mask)
    for recovered, lacking in zip(model.recover(), ~mask.T, strict=True):
        assert (np.diff(recovered[lacking].indptr) > 0).all()


@pytest.mark.parametrize("size", [1e150, 1e-150])
def test_imputation_does_not_depend_on_units(made, size):
    views = made.views
    model = BridgedGRMF(3, scale="standard", selection="fixed", random_state=0)
    usual = model.fit(views).recover()
    whole = [np.full((len(views), m), np.nan) for m in views.n_features]
    for k, matrix in enumerate(views.matrices):
        whole[k][views.rows(k)] = matrix * size
    for recovered, expected in zip(model.fit(whole).recover(), usual, strict=True):
        np.testing.assert_allclose(recovered / size, expected, rtol=1e-6, atol=1e-9)


def test_rows_of_zeros_are_placed_with_a_warning(made):
    model = BridgedGRMF(3, scale="unit", selection="fixed", random_state=0).fit(made.views)
    with pytest.warns(GapviewWarning, match=r"1 sample\(s\) have no place"):
        model.predict([np.vstack([made.views.matrices[0][:2], np.zeros(6)]), None, None])


def test_views_count_by_their_weights_in_the_problem(made):
    """The weights are factors of the sums over neighbours, and of nothing else."""
    views, weights = made.views, (0.2, 1.8, 1.0)
    setting = Setting(("standard",) * 3, (5, 5, 5), "both", 3, 4, 1.0, 1e-3)
    backend = MemoryBackend(views)
    prepared = prepare(backend, setting.scales, setting.n_neighbors, weights)
    found = represent(prepared, setting, IterationLimits(15, 0))
    everyone, graph = np.arange(len(views)), prepared.graphs["both"].toarray()
    whole = sum(np.linalg.matrix_power(graph, t) for t in range(4))
    graphs = [sparse.csr_array(weight * whole[views.rows(k)]) for k, weight in enumerate(weights)]
    problem = build_problem(backend.scaled, graphs, [everyone] * 3, len(views))
    expected = solve(problem, Weights(1.0, 1e-3), data_start(problem, 4, Weights(1.0, 1e-3)), 15, 0)
    np.testing.assert_allclose(found.solution.objective, expected.objective, rtol=1e-8)
    # up to signs and rotations of the latent space, the points are the balanced codes
    points = balanced(expected.consensus, balancing(expected.consensus))
    np.testing.assert_allclose(found.points @ found.points.T, points @ points.T, atol=1e-6)


def test_a_view_of_few_groups_keeps_its_weight():
    """Its modularity is the largest possible, though that is small for two groups."""
    data = make_views(n_samples=240, n_clusters=6, separation=12.0, random_state=0)
    mask = np.ones((240, 2), dtype=bool)
    mask[data.target >= 2, 1] = False
    whole = [np.where(mask[:, [k]], matrix, np.nan) for k, matrix in enumerate(data.views.matrices)]
    setting = Setting(("standard", "standard"), (5, 5), "both", 4, 12, 1.0, 1e-3)
    weights = compute_view_weights(
        Drawn(Views(whole), np.zeros(2, dtype=int)), setting, 6, 0, IterationLimits(100, 1e-5)
    )
    np.testing.assert_allclose(weights, [1.0, 1.0], atol=0.05)


def test_a_number_of_groups_needs_a_representation_other_than_zero(made):
    with pytest.raises(SolutionError, match="sparsity_weight"):
        BridgedGRMF("auto", sparsity_weight=1e6, random_state=0).fit(made.views)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"view_weights": [1.0]}, ParameterError),
        ({"view_weights": 3}, ParameterTypeError),
        ({"view_weights": {"view_0": 1.0}}, ParameterError),
        ({"scale": ["unit"]}, ParameterError),
        ({"scale": 7}, ParameterTypeError),
        ({"scale": {"view_0": "unit", "view_1": "unit", "other": "unit"}}, ParameterError),
        ({"scale": ["unit", "unit", "odd"]}, ParameterError),
    ],
)
def test_errors_name_the_setting(made, settings, error):
    with pytest.raises(error, match=next(iter(settings))):
        BridgedGRMF(3, **settings).fit(made.views)
