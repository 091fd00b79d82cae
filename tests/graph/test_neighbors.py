"""The search for neighbours by all methods, against all distances."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.spatial.distance import cdist

from gapview.datasets import make_views
from gapview.errors import GapviewWarning, InputTypeError, MissingExtraError, ParameterError, ParameterTypeError
from gapview.graph.bridges import joint_graph
from gapview.graph.imputation import impute_views
from gapview.graph.neighbors import Search, SearchReport, nearest, without_last
from gapview.graph.neighbors import search as limits
from gapview.scaling import unit_rows

WIDTHS = st.sampled_from([1, 2, 5, 70, 300])
MATRICES = arrays(np.float64, st.tuples(st.integers(3, 15), WIDTHS), elements=st.floats(-100, 100, width=32))


def all_distances(points, queries=None):
    """Compute all distances in float64; nothing is its own neighbour."""
    table = cdist(points if queries is None else queries, points)
    if queries is None:
        np.fill_diagonal(table, np.inf)
    return table


def true_recall(points, distances, queries=None):
    """Return the share of what was found that is no farther than the last true neighbour."""
    k = distances.shape[1]
    radius = np.partition(all_distances(points, queries), k - 1, axis=1)[:, k - 1]
    return float((distances <= radius[:, None] * (1 + 1e-5)).mean())


def check_consistent(points, distances, indices, queries=None, rtol=1e-5):
    """Check that distances belong to the indices and are sorted, and that no point is found twice or by itself."""
    asked = points if queries is None else queries
    direct = np.linalg.norm(points[indices].astype(np.float64) - asked[:, None].astype(np.float64), axis=2)
    np.testing.assert_allclose(distances, direct, rtol=rtol)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (np.diff(np.sort(indices, axis=1), axis=1) > 0).all()
    if queries is None:
        assert (indices != np.arange(len(points))[:, None]).all()


@pytest.fixture
def few_pairs(monkeypatch):
    """Lower the size beyond which search is approximate."""
    monkeypatch.setattr(limits, "EXACT_PAIRS", 1000**2)


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "error", "words"),
        [
            ({"method": "hnsw"}, ParameterError, "method must be one of 'auto', 'exact', 'approximate'"),
            ({"recall": 0}, ParameterError, "recall must be a finite number above 0 and at most 1"),
            ({"recall": "high"}, ParameterTypeError, "recall must be"),
            ({"seed": -1}, ParameterError, "seed must be an integer of at least 0"),
            ({"seed": None}, ParameterTypeError, "seed must be"),
        ],
    )
    def test_bad_settings(self, settings, error, words):
        with pytest.raises(error, match=words):
            Search(**settings)

    def test_frozen_and_compared_by_settings(self):
        search = Search(recall=0.9)
        nearest(np.eye(3), 1, search=search)
        assert search == Search(recall=0.9)
        assert len(search.done) == 1
        with pytest.raises(AttributeError):
            search.recall = 0.5

    def test_bad_counts(self):
        for count, allowed in ((4, 3), (9, 3)):
            with pytest.raises(ParameterError, match=f"at most {allowed}"):
                nearest(np.eye(4), count)
        with pytest.raises(ParameterError, match="at most 4"):
            nearest(np.eye(4), 5, np.eye(4))
        with pytest.raises(ParameterError, match="n_neighbors must be an integer of at least 1"):
            nearest(np.eye(4), 0)
        assert nearest(np.eye(4), 4, np.eye(4))[1].shape == (4, 4)

    def test_mixed_kinds(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(InputTypeError, match="both be arrays or both be tensors; got ndarray and Tensor"):
            nearest(np.eye(4), 1, torch.eye(4))


class TestMethodUsed:
    def test_exact_up_to_the_limit(self):
        search = Search()
        nearest(np.eye(5), 2, search=search)
        nearest(np.eye(5), 2, np.eye(5)[:3], search=search)
        nearest(np.eye(5), 2, np.empty((0, 5)), search=search)
        assert search.done == [SearchReport("exact", "scikit-learn", 5, n, 2) for n in (5, 3, 0)]

    def test_sizes(self):
        search = Search()
        most = limits.EXACT_PAIRS
        assert search.is_exact(20_000, 20_000, most)
        assert not search.is_exact(20_001, 20_000, most)
        assert search.is_exact(10**6, 1000, most)  # building cells for a million points costs more
        assert not search.is_exact(10**6, 10_000, most)
        assert Search(recall=1.0).is_exact(10**6, 10**6, most)
        assert Search("exact").is_exact(10**6, 10**6, most)
        assert not Search("approximate").is_exact(10, 10, most)

    def test_graphs_beyond_the_limit(self, few_pairs):
        pytest.importorskip("faiss")
        views = make_views(1500, (5, 7), n_clusters=3, missing_rate=0.3, random_state=0).views
        graph = joint_graph(impute_views(views.matrices, views), 5, [1.0, 1.0])
        assert graph.shape == (1500, 1500)
        assert graph.diagonal().sum() == 0


class TestWithoutLastColumn:
    """Queries without their last column find what a copy with zeros in that column finds."""

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("shift", [0.0, 100.0])
    @pytest.mark.parametrize("method", ["exact", "approximate"])
    def test_the_same_as_a_copy(self, dtype, shift, method):
        pytest.importorskip("faiss")
        points = (make_views(600, (70,), n_clusters=4, random_state=0).views.matrices[0] + shift).astype(dtype)
        points[:, -1] = np.random.RandomState(0).uniform(size=600)
        copied = points.copy()
        copied[:, -1] = 0
        found, expected = (nearest(points, 5, asked, search=Search(method)) for asked in (without_last(points), copied))
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_array_equal(found[0], expected[0])

    def test_points_stay_as_they_are(self):
        points = np.random.RandomState(0).normal(size=(50, 4))
        before = points.copy()
        nearest(points, 3, without_last(points))
        np.testing.assert_array_equal(points, before)


class TestWithoutFaiss:
    @pytest.fixture(autouse=True)
    def absent(self, monkeypatch, few_pairs):
        monkeypatch.setitem(sys.modules, "faiss", None)

    def test_warns_of_the_cost_and_searches_exactly(self):
        points = np.random.RandomState(0).normal(size=(1200, 3))
        search = Search()
        with pytest.warns(GapviewWarning, match=r"about \d+ s and up to 1.0 GiB.*gapview\[fast\]") as caught:
            distances, indices = nearest(points, 3, search=search)
        assert caught[0].filename == __file__
        np.testing.assert_allclose(distances, np.sort(all_distances(points), axis=1)[:, :3], atol=1e-6)
        check_consistent(points, distances, indices)
        assert search.done == [SearchReport("exact", "scikit-learn", 1200, 1200, 3)]

    def test_approximate_search_is_an_error(self):
        with pytest.raises(MissingExtraError, match=r"Approximate search for neighbours needs.*gapview\[fast\]"):
            nearest(np.eye(4), 1, search=Search("approximate"))

    def test_small_searches_need_nothing(self):
        assert nearest(np.eye(4), 1)[1].shape == (4, 1)


class TestTinyApproximate:
    """Approximate search of a few points probes cells until the recall is reached, or is exact."""

    @settings(max_examples=15)
    @given(MATRICES, st.integers(1, 4), st.booleans(), st.booleans())
    def test_any_points(self, matrix, k, as_sparse, own):
        pytest.importorskip("faiss")
        k = min(k, len(matrix) - 1)
        points = sparse.csr_array(matrix) if as_sparse else matrix
        queries = None if own else matrix[:2] + 0.5
        given = None if own else sparse.csr_array(queries) if as_sparse else queries
        search = Search("approximate", recall=1.0)
        distances, indices = nearest(points, k, given, search=search)
        assert search.done[0].recall == 1.0
        np.testing.assert_allclose(distances, np.sort(all_distances(matrix, queries), axis=1)[:, :k], atol=2e-3)
        assert (indices >= 0).all()
        if own:
            assert (indices != np.arange(len(matrix))[:, None]).all()

    @pytest.mark.parametrize("value", [0.0, 1.0, 1e8])
    @pytest.mark.parametrize("width", [3, 70])
    def test_constant_points(self, value, width):
        pytest.importorskip("faiss")
        points = np.full((300, width), value)
        distances, indices = nearest(points, 4, search=Search("approximate"))
        assert (distances == 0).all()
        check_consistent(points, distances, indices)


class TestExactAnywhere:
    """Results do not depend on whether points are rescaled or centred."""

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("exponent", [-100, -31, -29, 29, 31, 100])
    def test_powers_of_two(self, dtype, exponent):
        points = np.random.RandomState(0).normal(size=(80, 4)).astype(dtype)
        expected = nearest(points, 3)
        found = nearest(np.ldexp(points, exponent), 3)
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_allclose(found[0], np.ldexp(expected[0], exponent), rtol=1e-6)

    def test_unit_rows_far_out(self):
        points = unit_rows(np.random.RandomState(0).normal(size=(200, 5))) + 1e7
        np.testing.assert_array_equal(nearest(points, 3)[1], np.argsort(all_distances(points), axis=1)[:, :3])
