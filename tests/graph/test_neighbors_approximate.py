"""Approximate search with faiss: the recall is reached, and distances belong to the points returned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from test_neighbors import all_distances, check_consistent, true_recall

from gapview.datasets import make_views
from gapview.errors import GapviewWarning
from gapview.graph.neighbors import Search, array_search, nearest
from gapview.graph.neighbors import search as limits
from gapview.graph.neighbors.search_space import search_space
from gapview.scaling import unit_rows

pytest.importorskip("faiss")


def made(n_samples, width, dtype="float32"):
    return unit_rows(make_views(n_samples, [width], n_clusters=10, dtype=dtype, random_state=0).views.matrices[0])


def searched(points, n_neighbors=10, queries=None, **settings):
    search = Search("approximate", **settings)
    distances, indices = nearest(points, n_neighbors, queries, search=search)
    return distances, indices, search.done[0]


def some_recall(points, distances, seed=7):
    """Return the recall on 1000 of the queries."""
    rows = np.random.RandomState(seed).choice(len(points), 1000, replace=False)
    table = np.stack([np.square(points - points[row]).sum(axis=1) for row in rows])
    table[np.arange(len(rows)), rows] = np.inf
    k = distances.shape[1]
    radius = np.sqrt(np.partition(table, k - 1, axis=1)[:, k - 1])
    return float((distances[rows] <= radius[:, None] * (1 + 1e-5)).mean())


def search_one_cell(monkeypatch):
    """Replace the number of probes of any proposal by 1."""
    propose = array_search.ArrayKernel.propose
    monkeypatch.setattr(array_search.ArrayKernel, "propose", lambda *given: replace(propose(*given), n_probes=1))


class TestRecall:
    def test_kept_at_30_000(self):
        points = made(30_000, 40)
        search = Search()  # beyond the limit by itself
        distances, indices = nearest(points, 10, search=search)
        report = search.done[0]
        assert (report.method, report.engine) == ("approximate", "faiss")
        assert report.recall >= 0.95
        assert some_recall(points, distances) >= 0.95
        assert report.n_probes < report.n_cells / 4
        check_consistent(points, distances, indices)

    @pytest.mark.parametrize("width", [12, 81])  # by all features, and by few directions
    @pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
    def test_what_is_asked_for(self, width, recall):
        points = made(4000, width)
        distances, indices, report = searched(points, recall=recall)
        truth = true_recall(points, distances)
        assert truth >= recall - 0.005
        assert report.recall == pytest.approx(truth, abs=0.03)
        assert report.method == "approximate"
        check_consistent(points, distances, indices)

    def test_more_cells_for_more_recall(self):
        points = made(4000, 12)
        probes = [searched(points, recall=recall)[2].n_probes for recall in (0.5, 0.9, 0.99)]
        assert probes[0] < probes[1] < probes[2]

    def test_other_queries(self):
        points = made(5000, 70)
        points, queries = points[:4000], points[4000:]
        distances, indices, report = searched(points, 5, queries)
        assert report.n_queries == 1000
        assert true_recall(points, distances, queries) >= 0.95
        check_consistent(points, distances, indices, queries)

    def test_a_point_finds_itself_among_other_queries(self):
        points = made(3000, 12)
        assert (searched(points, 2, points, recall=0.99)[1][:, 0] == np.arange(3000)).mean() > 0.999

    def test_all_distances_where_cells_do_not_help(self, monkeypatch):
        monkeypatch.setattr(limits, "EXACT_PAIRS", 1000**2)
        points = np.random.RandomState(0).standard_normal((1500, 40))
        with pytest.warns(GapviewWarning, match="No cheaper search finds 99% of the neighbours"):
            distances, _, report = searched(points, recall=0.99)
        assert (report.method, report.recall, report.n_cells) == ("exact", 1.0, 0)
        assert true_recall(points, distances) == 1.0

    def test_all_features_where_few_directions_leave_out_too_much(self):
        rng = np.random.RandomState(0)
        centers = rng.normal(size=(3, 64)) * 100  # the leading directions separate these, but no points inside a group
        points = (centers[rng.randint(3, size=3000)] + rng.normal(size=(3000, 64))).astype(np.float32)
        distances, indices, report = searched(points, 5)
        assert report.n_candidates == 6
        assert true_recall(points, distances) >= 0.95
        check_consistent(points, distances, indices, rtol=1e-4)

    def test_more_cells_where_the_proposal_misses_the_recall(self, monkeypatch):
        points = made(3000, 12)
        n_needed = searched(points)[2].n_probes
        search_one_cell(monkeypatch)
        distances, _, report = searched(points)
        assert report.method == "approximate"
        assert 1 < report.n_probes < 2 * n_needed
        assert true_recall(points, distances) >= 0.945

    def test_all_distances_where_no_number_of_cells_reaches_the_recall(self, monkeypatch):
        search, tried = array_search.ArrayKernel.search, []

        def miss(kernel, setting, rows):
            tried.append(setting)
            found, distances = search(kernel, setting, rows)
            return found, distances + 1

        monkeypatch.setattr(array_search.ArrayKernel, "search", miss)
        points = made(3000, 12)
        distances, _, report = searched(points)
        assert report.method == "exact"
        assert true_recall(points, distances) == 1.0
        probes = [setting.n_probes for setting in tried]
        assert probes == sorted(set(probes))
        assert len(probes) > 1
        assert probes[-1] <= tried[0].n_cells / 2 + 1

    @pytest.mark.parametrize("width", [12, 81])
    def test_regression_the_estimate_is_not_from_rows_that_centres_were_fitted_to(self, width):
        points = made(4000, width)
        reports = []
        errors = []
        for seed in range(6):
            distances, _, report = searched(points, seed=seed)
            reports.append(report)
            errors.append(report.recall - true_recall(points, distances))
        assert all(report.recall < 1 for report in reports)
        assert abs(np.mean(errors)) < 0.006


class TestNothingIsLost:
    @pytest.mark.parametrize("width", [6, 66])
    def test_duplicates(self, width):
        rows = made(400, width)
        points = np.repeat(rows, 10, axis=0)[np.random.RandomState(0).permutation(4000)]
        distances, indices, report = searched(points, 9)
        assert report.recall >= 0.95
        assert (distances[:, :9] == 0).mean() >= 0.95
        check_consistent(points, distances, indices)

    def test_more_neighbours_than_a_cell_holds(self):
        points = made(2000, 8)
        distances, indices, _ = searched(points, 300)
        assert true_recall(points, distances) >= 0.95
        check_consistent(points, distances, indices)

    def test_rows_that_the_cells_cannot_fill(self, monkeypatch):
        rng = np.random.RandomState(0)
        crowd, alone = rng.normal(size=(1990, 3)), rng.normal(size=(10, 3)) * 50 + 1000
        points = np.vstack([crowd, alone]).astype(np.float32)
        search_one_cell(monkeypatch)
        distances, indices, report = searched(points, 20, recall=0.05)
        assert (report.method, report.n_probes) == ("approximate", 1)
        check_consistent(points, distances, indices, rtol=1e-3)
        assert np.isfinite(distances).all()
        np.testing.assert_allclose(distances[-10:], np.sort(all_distances(points)[-10:], axis=1)[:, :20], rtol=1e-3)

    def test_as_many_as_there_are(self):
        points = made(60, 5)
        distances, indices, _ = searched(points, 59)
        check_consistent(points, distances, indices)


class TestNumbers:
    @pytest.mark.parametrize("width", [10, 64])
    def test_float64_distances_are_exact(self, width):
        points = made(2500, width, "float64")
        distances, indices, report = searched(points)
        assert report.recall >= 0.95
        check_consistent(points, distances, indices, rtol=1e-12)

    @pytest.mark.parametrize(
        "change", [lambda x: x + 1e6, lambda x: x * 1e150, lambda x: x * 1e-150, lambda x: x * 1e300, lambda x: x - 300]
    )
    @pytest.mark.parametrize("width", [10, 64])
    def test_any_place_and_size(self, change, width):
        points = made(2500, width, "float64")
        moved = change(points)
        distances, indices, report = searched(moved)
        assert report.method == "approximate"
        stretch = change(np.ones(1))[0] - change(np.zeros(1))[0]
        back = (moved - moved[0]) / stretch
        check_consistent(back, distances / stretch, indices, rtol=1e-9)
        assert true_recall(back, distances / stretch) >= 0.95

    def test_float32_far_out_and_huge(self):
        points = made(2500, 10)
        for moved, size in (
            (points + 100, 1.0),
            (points * np.float32(1e30), 1e30),
            (points * np.float32(1e-30), 1e-30),
        ):
            distances, indices, _ = searched(moved)
            back = moved.astype(np.float64) / size
            check_consistent(back, distances / size, indices)
            assert true_recall(back, distances / size) >= 0.95

    def test_any_layout(self):
        points = made(2000, 10)
        expected = searched(points)[1]
        np.testing.assert_array_equal(searched(np.asfortranarray(points))[1], expected)
        np.testing.assert_array_equal(searched(np.repeat(points, 2, axis=1)[:, ::2])[1], expected)

    def test_seeds(self):
        points = made(4000, 70)
        first = searched(points, recall=0.6, seed=1)
        again = searched(points, recall=0.6, seed=1)
        np.testing.assert_array_equal(first[1], again[1])
        assert first[2] == again[2]
        assert (searched(points, recall=0.6, seed=2)[1] != first[1]).any()

    def test_input_is_left_alone(self):
        points = made(2000, 10, "float64") + 1e5
        before = points.copy()
        searched(points)
        np.testing.assert_array_equal(points, before)


def texts(n_samples, n_words, seed=0):
    """Make counts of words of texts that are about a few subjects each, with rows of unit length."""
    rng = np.random.RandomState(seed)
    subjects = rng.dirichlet(np.full(n_words, 0.05), 20)
    shares = rng.dirichlet(np.full(20, 0.1), n_samples) @ subjects
    counts = np.stack([rng.multinomial(60, share / share.sum()) for share in shares])
    return unit_rows(sparse.csr_array(np.log1p(counts)))


class TestSparse:
    # Dense, and in their leading directions
    @pytest.mark.parametrize(("n_words", "dtype"), [(100, "float64"), (600, "float32")])
    def test_recall_and_distances(self, n_words, dtype):
        points = texts(1200, n_words).astype(dtype)
        distances, indices, report = searched(points)
        dense = points.toarray()
        assert report.method == "approximate"
        assert true_recall(dense, distances) >= 0.945
        check_consistent(dense, distances, indices, rtol=1e-5)

    def test_other_queries_of_any_size(self):
        points = texts(1600, 600) * 1e160
        points, queries = points[:1200], points[1200:]
        distances, indices, _ = searched(points, 5, queries)
        dense, asked = points.toarray() / 1e160, queries.toarray() / 1e160
        assert true_recall(dense, distances / 1e160, asked) >= 0.945
        check_consistent(dense, distances / 1e160, indices, asked)

    def test_empty_rows(self):
        points = texts(1200, 600).tolil()
        points[::100] = 0
        points = sparse.csr_array(points)
        distances, indices, _ = searched(points, 5)
        assert (distances[::100] == 0).mean() >= 0.95
        check_consistent(points.toarray(), distances, indices)

    @pytest.mark.parametrize("own", [True, False])
    def test_residuals_count_for_points_only(self, own):
        points = texts(700, 600)
        space = search_space(points, None if own else points[:50], 0)
        np.testing.assert_allclose(np.linalg.norm(space.points, axis=1), 1, rtol=1e-5)  # projection and residual
        queries = space.float32_queries(np.arange(50))
        np.testing.assert_allclose(queries[:, :-1], space.points[:50, :-1], atol=1e-6)
        assert (space.points[:, -1] > 0.01).all()
        assert (queries[:, -1] == 0).all()


def test_no_queries_have_no_neighbours():
    distances, indices = nearest(np.eye(5), 2, np.empty((0, 5)), search=Search("approximate"))
    assert distances.shape == indices.shape == (0, 2)
