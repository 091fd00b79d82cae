"""Groups by the Leiden algorithm, alone and as the groups of a fit."""

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from gapview import BridgedGRMF
from gapview.datasets import make_views
from gapview.errors import MissingExtraError, ParameterError
from gapview.graph.communities import leiden_groups, leiden_parts


def blocks(*sizes, degree=10, between=0.5, seed=0):
    """Return a random graph with about as many links of every sample within its group, as in k-NN graphs."""
    rng = np.random.RandomState(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    inside = np.minimum(degree / np.array(sizes), 0.9)[groups]
    chance = np.where(groups[:, None] == groups, inside, between / len(groups))
    upper = np.triu(rng.uniform(size=chance.shape) < chance, 1)
    return sparse.csr_array((upper | upper.T).astype(float)), groups


@pytest.fixture(autouse=True)
def _package():
    pytest.importorskip("sknetwork")


@pytest.mark.parametrize("sizes", [(40, 40, 40), (150, 60, 12), (100, 20, 20, 20)])
def test_groups_of_any_size_are_found(sizes):
    graph, groups = blocks(*sizes)
    assert adjusted_rand_score(groups, leiden_groups(graph, len(sizes))) > 0.95


@pytest.mark.parametrize("n_groups", [1, 2, 3, 7, 40])
def test_the_number_of_groups_is_exact(n_groups):
    graph, _ = blocks(40, 30, 20)
    assert len(np.unique(leiden_groups(graph, n_groups))) == n_groups


def test_groups_are_merged_where_they_are_linked():
    graph, groups = blocks(30, 30, 30, between=0.0)
    graph = graph.tolil()
    graph[0, 30] = graph[30, 0] = 1.0
    found = leiden_groups(graph.tocsr(), 2)
    assert adjusted_rand_score(groups == 2, found) == 1.0


def test_samples_without_neighbours_are_in_the_largest_group():
    graph, _ = blocks(40, 20)
    wide = sparse.csr_array(sparse.block_diag([graph, sparse.csr_array((2, 2))]))
    found = leiden_groups(wide, 2)
    assert found[60:].tolist() == [0, 0]
    assert (np.bincount(found) == [42, 20]).all()


def test_parts_have_groups_of_their_own():
    graph, groups = blocks(30, 30, 30, 30, between=0.0)
    assert adjusted_rand_score(groups, leiden_parts(graph, groups // 2, 2)) == 1.0


@pytest.mark.parametrize("refine", [True, False])
def test_a_fit_finds_groups_of_different_sizes(refine):
    data = make_views(n_samples=300, n_clusters=3, missing_rate=0.3, random_state=0)
    kept = np.concatenate([np.flatnonzero(data.target == group)[:size] for group, size in enumerate((100, 50, 30))])
    views, target = data.views[kept], data.target[kept]
    model = BridgedGRMF(3, assign="leiden", refine=refine, selection="fixed", random_state=0).fit(views)
    assert adjusted_rand_score(target, model.labels_) > 0.95
    assert model.cluster_centers_.shape[0] == 3
    assert adjusted_rand_score(target, model.predict(views)) > 0.95


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sknetwork.clustering", None)
    views = make_views(n_samples=60, n_clusters=2, random_state=0).views
    with pytest.raises(MissingExtraError, match=r"gapview\[leiden\]"):
        BridgedGRMF(2, assign="leiden", selection="fixed").fit(views)
    with pytest.raises(ParameterError, match="assign must be"):
        BridgedGRMF(2, assign="louvain").fit(views)
