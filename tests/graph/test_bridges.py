"""Bridges and imputation against naive versions written from their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from gapview import Views
from gapview.datasets import make_views
from gapview.factorization import Weights, build_problem, solve
from gapview.factorization.starts import data_start
from gapview.graph import bridges, donors
from gapview.graph.bridges import Reach, both_graphs, joint_graph, normalized, union_graph
from gapview.graph.donors import N_DONORS, training_rows
from gapview.graph.imputation import impute_views
from gapview.graph.knn import knn_graph, mean_neighbor_codes, symmetric_graph
from gapview.scaling import scale_views, suitable_scale, unit_rows
from problems import cases


def scaled_views(case, scale="unit"):
    views = Views(case.matrices, mask=case.mask)
    return views, scale_views(views, scale)[0]


@settings(max_examples=30)
@given(cases(), st.integers(1, 5), st.floats(0.1, 3))
def test_reach_is_the_sum_of_powers(case, n_steps, weight):
    views, scaled = scaled_views(case)
    graph = union_graph(scaled, views, [case.n_neighbors] * views.n_views, [1.0] * views.n_views)
    dense = graph.toarray()
    whole = weight * sum(np.linalg.matrix_power(dense, t) for t in range(n_steps + 1))
    rng = np.random.RandomState(case.seed)
    rows, columns = rng.permutation(len(views))[:5], rng.permutation(len(views))
    reach = Reach(graph, n_steps, rows, columns, weight)
    part = whole[np.ix_(rows, columns)]
    assert reach.shape == part.shape
    values = rng.normal(size=(len(columns), 3))
    np.testing.assert_allclose(reach @ values, part @ values, atol=1e-10)
    np.testing.assert_allclose(reach.T @ np.ones(5), part.T @ np.ones(5), atol=1e-10)
    np.testing.assert_allclose(reach[:, columns > 2].T @ np.ones(5), part[:, columns > 2].T @ np.ones(5), atol=1e-10)


@pytest.mark.parametrize("n_steps", [1, 4])
def test_products_in_local_order_are_the_same(n_steps, monkeypatch):
    data = make_views(300, (5, 7), n_clusters=3, missing_rate=0.3, random_state=0)
    graph = union_graph(data.views.matrices, data.views, [4, 4], [1.0, 1.0])
    before, edges = graph.copy(), graph.sum()
    everyone, values = np.arange(300), np.random.RandomState(0).normal(size=(120, 70))
    rows = np.sort(np.random.RandomState(1).permutation(300)[:120])
    expected = Reach(graph, n_steps, rows, everyone).T @ values, Reach(graph, n_steps, everyone, rows) @ values
    monkeypatch.setattr(bridges, "_FEWEST_ORDERED", 0)
    near = bridges.local_order(graph)
    places = near.place
    np.testing.assert_array_equal(np.sort(places), everyone)
    linked = graph.tocoo()
    assert np.abs(places[linked.row] - places[linked.col]).mean() < 0.8 * np.abs(linked.row - linked.col).mean()
    np.testing.assert_array_equal(Reach(graph, n_steps, rows, everyone, near=near).T @ values, expected[0])
    np.testing.assert_array_equal(Reach(graph, n_steps, everyone, rows, near=near) @ values, expected[1])
    assert graph.sum() == edges
    np.testing.assert_array_equal(graph.indices, before.indices)


@given(st.integers(3, 25), st.integers(1, 3), st.integers(0, 2**16), st.booleans())
def test_symmetric_graph_against_its_definition(n_rows, n_neighbors, seed, all_rows):
    rng = np.random.RandomState(seed)
    rows = np.arange(n_rows) if all_rows else np.sort(rng.permutation(n_rows)[: max(3, n_rows - 2)])
    count = min(n_neighbors, len(rows) - 1)
    ends = np.array([rng.permutation(np.setdiff1d(rows, row))[:count] for row in rows])
    expected = np.zeros((n_rows, n_rows), dtype=np.float32)
    expected[rows[:, None], ends] = 1
    graph = symmetric_graph(rows, ends, n_rows, np.float32)
    assert graph.dtype == np.float32
    assert graph.indices.dtype == np.int32
    assert graph.has_canonical_format
    np.testing.assert_array_equal(graph.toarray(), np.maximum(expected, expected.T))


def test_recorded_graphs_are_not_changed():
    views = make_views(60, (6, 8), missing_rate=0.3, random_state=0).views
    recorded = []

    def build(matrix, n_neighbors, search):
        recorded.append(knn_graph(matrix, n_neighbors, search))
        return recorded[-1]

    union_graph(views.matrices, views, [3, 3], [0.5, 2.0], build=build)
    assert all((graph.data == 1).all() for graph in recorded)


@settings(max_examples=30)
@given(cases())
def test_union_graph_against_its_definition(case):
    views, scaled = scaled_views(case)
    weights = np.arange(1.0, views.n_views + 1)
    total = np.zeros((len(views), len(views)))
    for k, matrix in enumerate(scaled):
        own = knn_graph(matrix, case.n_neighbors).toarray()
        degrees = np.maximum(own.sum(axis=1), 1)
        rows = views.rows(k)
        total[np.ix_(rows, rows)] += weights[k] * own / np.sqrt(np.outer(degrees, degrees))
    degrees = np.where(total.sum(axis=1) > 0, total.sum(axis=1), 1)
    found = union_graph(scaled, views, [case.n_neighbors] * views.n_views, weights)
    np.testing.assert_allclose(found.toarray(), total / np.sqrt(np.outer(degrees, degrees)), atol=1e-12)


def test_normalized_graph_never_stretches():
    rng = np.random.RandomState(0)
    weights = rng.uniform(size=(20, 20)) * (rng.uniform(size=(20, 20)) < 0.3)
    graph = normalized(sparse.csr_array(weights + weights.T))
    assert np.abs(np.linalg.eigvalsh(graph.toarray())).max() <= 1 + 1e-12


def naive_donors(rows, views, view, sample, weights):
    """Samples that have the view, nearest by the mean squared distance in the other views shared, by their weights."""
    distances = {}
    for other in np.flatnonzero(views.mask[:, view]):
        shared = [k for k in range(views.n_views) if k != view and views.mask[sample, k] and views.mask[other, k]]
        if other == sample or not shared:
            continue
        squares = [np.sum((rows[k][sample] - rows[k][other]) ** 2) for k in shared]
        distances[other] = np.average(squares, weights=[weights[k] for k in shared])
    return sorted(distances, key=distances.get)[:N_DONORS]


def comparable(scaled, views):
    """Lay every view out over all samples, divided by the root of its total variance unless its rows have length 1."""
    laid = []
    for k, matrix in enumerate(scaled):
        whole = np.full((views.n_samples, matrix.shape[1]), np.nan)
        directions = np.allclose(np.linalg.norm(matrix, axis=1), 1)
        whole[views.rows(k)] = matrix if directions else matrix / np.sqrt(matrix.var(axis=0).sum())
        laid.append(whole)
    return laid


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("scale", ["unit", "standard", None])
def test_imputation_against_its_definition(n_views, scale):
    data = make_views(n_samples=60, n_features=(20, 30, 7)[:n_views], n_clusters=3, missing_rate=0.4, random_state=1)
    views, weights = data.views, [1.0, 0.3, 2.0][:n_views]
    scaled = scale_views(views, scale)[0]
    imputed = impute_views(scaled, views, weights)
    rows = comparable(scaled, views)
    for view in range(n_views):
        having = views.mask[:, view]
        center = rows[view][having].mean(axis=0)
        expected, actual = [], []
        for sample in np.flatnonzero(having):
            donors = naive_donors(rows, views, view, sample, weights)
            if donors:
                expected.append(rows[view][donors].mean(axis=0) - center)
                actual.append(rows[view][sample] - center)
        expected, actual = np.array(expected), np.array(actual)
        slope = np.clip(np.sum(expected * actual) / np.sum(expected**2), 0, 1)
        explained = 1 - np.sum((actual - slope * expected) ** 2) / np.sum(actual**2)
        assert imputed.explained[view] == pytest.approx(explained)
        for sample in np.flatnonzero(~having):
            donors = naive_donors(rows, views, view, sample, weights)
            by_hand = center + slope * (rows[view][donors].mean(axis=0) - center) if donors else center
            np.testing.assert_allclose(imputed.rows[view][sample], by_hand, atol=1e-12)
            total = rows[view][having].var(axis=0).sum()
            assert imputed.variance[sample, view] == pytest.approx(total * (1 - explained if donors else 1.0))
        np.testing.assert_allclose(imputed.rows[view][having], rows[view][having], rtol=1e-14)
        assert not imputed.variance[having, view].any()


@pytest.mark.parametrize("size", [1e160, 1e-170, 1e30])
def test_units_of_the_data_do_not_matter(size):
    views = make_views(n_samples=60, n_clusters=3, missing_rate=0.4, random_state=1).views
    usual = impute_views(views.matrices, views)
    other = impute_views([matrix * size for matrix in views.matrices], views)
    np.testing.assert_allclose(other.explained, usual.explained, rtol=1e-6)
    np.testing.assert_allclose(other.rows[0], usual.rows[0], rtol=1e-6, atol=1e-9)


def test_joint_graph_against_all_expected_distances():
    views = make_views(n_samples=50, n_clusters=3, missing_rate=0.4, random_state=2).views
    scaled = scale_views(views, "unit")[0]
    imputed = impute_views(scaled, views)
    weights = np.array([1.0, 0.5])
    squares = np.zeros((50, 50))
    for rows, variance, weight in zip(imputed.rows, imputed.variance.T, weights, strict=True):
        squares += weight * (np.square(rows[:, None] - rows[None]).sum(axis=2) + variance[None])
    np.fill_diagonal(squares, np.inf)
    directed = np.zeros((50, 50))
    np.put_along_axis(directed, np.argsort(squares, axis=1)[:, :4], 1.0, axis=1)
    binary = np.maximum(directed, directed.T)
    degrees = binary.sum(axis=1)
    expected = binary / np.sqrt(np.outer(degrees, degrees))
    np.testing.assert_allclose(joint_graph(imputed, 4, weights).toarray(), expected, atol=1e-12)


@settings(max_examples=40)
@given(cases())
def test_any_pattern_gives_finite_symmetric_graphs(case):
    views, scaled = scaled_views(case)
    counts, ones = [case.n_neighbors] * views.n_views, [1.0] * views.n_views
    imputed = impute_views(scaled, views)
    union, joint = union_graph(scaled, views, counts, ones), joint_graph(imputed, case.n_neighbors, ones)
    for graph in (union, joint, both_graphs(union, joint)):
        assert graph.shape == (len(views), len(views))
        assert np.isfinite(graph.data).all()
        assert (graph.data > 0).all()
        assert abs(graph - graph.T).max() < 1e-12
        assert not graph.diagonal().any()
    assert ((imputed.explained >= 0) & (imputed.explained <= 1)).all()
    assert all(np.isfinite(rows).all() for rows in imputed.rows)


def test_samples_that_share_no_view_are_imputed_by_the_mean():
    rng = np.random.RandomState(0)
    mask = np.zeros((20, 2), dtype=bool)
    mask[:10, 0] = mask[10:, 1] = True
    views = Views([rng.normal(size=(20, 4)), rng.normal(size=(20, 5))], mask=mask)
    imputed = impute_views(views.matrices, views)
    assert imputed.explained.tolist() == [0.0, 0.0]
    np.testing.assert_allclose(imputed.rows[0][10:], np.tile(imputed.rows[0][:10].mean(axis=0), (10, 1)))
    np.testing.assert_allclose(imputed.variance[10:, 0], 1.0)


def test_independent_views_explain_nothing_of_each_other():
    rng = np.random.RandomState(0)
    views = Views([rng.normal(size=(300, 20)), rng.normal(size=(300, 20))])
    assert impute_views(views.matrices, views).explained.max() < 0.02
    tied = Views([views.matrices[0], views.matrices[0][:, ::-1]])
    assert impute_views(tied.matrices, tied).explained.min() > 0.1


def test_wide_views_keep_their_neighbours():
    """Beyond 256 features a view is replaced by principal components; as many as samples lose nothing."""
    rng = np.random.RandomState(0)
    values = unit_rows(rng.uniform(size=(60, 700)) * (rng.uniform(size=(60, 700)) < 0.05))
    mask = rng.uniform(size=(60, 2)) < 0.7
    mask[~mask.any(axis=1), 0] = True
    for form in (np.asarray, sparse.csr_array):
        wide = Views([form(values), form(values[:, ::-1].copy())], mask=mask)
        graph = joint_graph(impute_views(wide.matrices, wide), 3, [1.0, 1.0])
        assert graph.shape == (60, 60)
    points = impute_views(wide.matrices, wide).rows[0][wide.rows(0)]
    exact = wide.matrices[0].toarray()
    np.testing.assert_allclose(points @ points.T, exact @ exact.T, atol=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e30, 1e-30])
def test_principal_components_of_many_rows(monkeypatch, size):
    """Those from the Gram matrix, computed in blocks of rows, are those from the singular vectors."""
    monkeypatch.setattr(donors, "_MANY_ROWS", 100)
    monkeypatch.setattr(donors, "FEW_ROWS", 70)
    rng = np.random.RandomState(0)
    points = (rng.normal(size=(400, 5)) * [9, 7, 5, 3, 2]) @ rng.normal(size=(5, 20)) + 0.01 * rng.normal(
        size=(400, 20)
    )
    for dtype, rounding in ((np.float64, 1e-9), (np.float32, 1e-3)):
        views = Views([(points * size).astype(dtype)])
        table = training_rows(views.matrices, views, n_most=5)[0]
        left, values, _ = np.linalg.svd(points, full_matrices=False)
        assert table.points.dtype == dtype
        found = table.points * (table.unit / size)
        np.testing.assert_allclose(np.abs(found), np.abs(left[:, :5] * values[:5]), atol=rounding * values[0])


def test_order_of_samples_does_not_matter_for_wide_views():
    rng = np.random.RandomState(0)
    wide = rng.normal(size=(300, 600)) + np.repeat(rng.normal(size=(3, 600)), 100, axis=0)
    mask = rng.uniform(size=(300, 2)) < 0.7
    mask[~mask.any(axis=1), 0] = True
    views = Views([unit_rows(wide), unit_rows(wide[:, ::-1] + rng.normal(size=wide.shape))], mask=mask)
    order = rng.permutation(300)
    graphs = [joint_graph(impute_views(v.matrices, v), 5, [1.0, 1.0]).toarray() for v in (views, views[order])]
    assert ((graphs[0][np.ix_(order, order)] > 0) != (graphs[1] > 0)).sum() == 0


@settings(max_examples=25)
@given(cases(), st.integers(1, 6))
def test_objective_never_rises_across_bridges(case, n_steps):
    views, scaled = scaled_views(case)
    graph = union_graph(scaled, views, [case.n_neighbors] * views.n_views, [1.0] * views.n_views)
    everyone = np.arange(len(views))
    reaches = [Reach(graph, n_steps, views.rows(k), everyone) for k in range(views.n_views)]
    problem = build_problem(scaled, reaches, [everyone] * views.n_views, len(views))
    weights = Weights(case.consensus_weight, case.sparsity_weight)
    start = data_start(problem, case.n_components, weights)
    solution = solve(problem, weights, start, 20, tol=0)
    assert np.diff(solution.objective).max(initial=-1) <= 1e-9 * max(1.0, abs(solution.objective[0]))
    dense = [np.asarray(reach @ np.eye(len(everyone))) for reach in reaches]
    written_out = build_problem(scaled, [sparse.csr_array(a) for a in dense], [everyone] * views.n_views, len(views))
    assert written_out.constant == pytest.approx(problem.constant)
    np.testing.assert_allclose(written_out.degrees, problem.degrees, atol=1e-9)


def test_sparse_views_give_the_same_problem():
    rng = np.random.RandomState(0)
    values = unit_rows(rng.uniform(size=(40, 30)) * (rng.uniform(size=(40, 30)) < 0.3))
    graph = normalized(knn_graph(values, 3))
    reach = Reach(graph, 3, np.arange(0, 40, 2), np.arange(40))
    half = values[::2]
    dense = build_problem([half], [reach], [np.arange(40)], 40)
    thin = build_problem([sparse.csr_array(half)], [reach], [np.arange(40)], 40)
    basis, codes = rng.normal(size=(4, 30)), rng.normal(size=(len(dense.rows), 4))
    np.testing.assert_allclose(thin.terms[0].project(basis), dense.terms[0].project(basis), atol=1e-12)
    np.testing.assert_allclose(thin.terms[0].correlate(codes), dense.terms[0].correlate(codes), atol=1e-12)


def test_new_samples_get_the_codes_of_their_neighbours():
    rng = np.random.RandomState(0)
    known = Views([rng.normal(size=(30, 3)), rng.normal(size=(30, 4))], mask=rng.uniform(size=(30, 2)) < [[1.1, 0.6]])
    new = Views([rng.normal(size=(5, 3)), rng.normal(size=(5, 4))], mask=[[1, 1], [1, 0], [0, 1], [1, 1], [0, 1]])
    codes = rng.normal(size=(30, 2))
    found = mean_neighbor_codes(known.matrices, known, codes, new.matrices, new, [4, 3], [1.0, 0.25])
    for i in range(5):
        parts, weights = [], []
        for k, (count, weight) in enumerate([(4, 1.0), (3, 0.25)]):
            if new.mask[i, k]:
                row = new.matrices[k][np.searchsorted(new.rows(k), i)]
                order = np.argsort(np.linalg.norm(known.matrices[k] - row, axis=1))[:count]
                parts.append(codes[known.rows(k)[order]].mean(axis=0))
                weights.append(weight)
        np.testing.assert_allclose(found[i], np.average(parts, axis=0, weights=weights), atol=1e-12)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_scale_that_suits_a_view(as_sparse):
    rng = np.random.RandomState(0)
    form = sparse.csr_array if as_sparse else np.asarray
    even = rng.normal(size=(100, 20))
    words = rng.uniform(size=(100, 50)) * (rng.uniform(size=(100, 50)) < 0.05)
    assert suitable_scale(form(even)) == "center+unit"
    assert suitable_scale(form(even * np.geomspace(1, 1e4, 20))) == "standard+unit"
    assert suitable_scale(form(even * 1e-200)) == "center+unit"
    assert suitable_scale(form(words)) == "unit"
    assert suitable_scale(form(even[:, :3])) == "standard+view"
    assert suitable_scale(form(np.zeros((10, 4)))) == "unit"


def test_standard_view_has_rows_of_length_one_on_average():
    matrix = np.random.RandomState(0).normal(size=(50, 3)) * [1, 10, 100]
    scaled, scalings = scale_views(Views([matrix]), "standard+view")
    assert np.mean(np.square(scaled[0]).sum(axis=1)) == pytest.approx(1.0)
    np.testing.assert_allclose(scalings[0].undo(scaled[0]), matrix)
