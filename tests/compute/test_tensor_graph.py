"""Sparse matrices of tensors: the results of SciPy, in parts of any size."""

import numpy as np
import pytest
from scipy import sparse

from gapview.compute import tensor_graph
from gapview.compute.arrays import divide_weights, expand_graph, graph_like, host, host_graph
from gapview.compute.tensor_graph import TensorGraph, symmetric_links
from gapview.graph.knn import symmetric_graph

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(params=[2**25, 7], ids=["whole", "parts"])
def size(request, monkeypatch):
    """Matrices are built as a whole, or in parts of few values."""
    monkeypatch.setattr(tensor_graph, "_VALUES_AT_A_TIME", request.param)


def made(shape, seed, density=0.3):
    return sparse.random_array(shape, density=density, format="csr", rng=np.random.default_rng(seed))


def tensors(graph):
    return graph_like(graph, torch.zeros(0, dtype=torch.float64))


def same(found, expected):
    assert found.columns.dtype == found.starts.dtype == torch.int32
    np.testing.assert_allclose(host_graph(found).toarray(), expected.toarray(), rtol=1e-12)
    assert host_graph(found).has_canonical_format


def test_sums_products_and_parts(size):
    one, other = made((9, 6), 0), made((9, 6), 1)
    same(tensors(one) + tensors(other), one + other)
    same(tensors(one).T, one.T.tocsr())
    kept = np.array([True, False, True, True, False, True])
    same(tensors(one)[:, kept], one[:, kept])
    values = np.random.default_rng(2).normal(size=(6, 3))
    np.testing.assert_allclose(host(tensors(one) @ torch.as_tensor(values)), one @ values)


def test_values_are_divided_by_their_rows_and_columns(size):
    graph, rows, columns = made((9, 6), 0), np.arange(1.0, 10), np.arange(2.0, 8)
    expected = divide_weights(graph, rows, columns, 3.0)
    given = tensors(graph)
    same(divide_weights(given, torch.as_tensor(rows), torch.as_tensor(columns), 3.0), expected)
    same(given, graph)
    divide_weights(given, torch.as_tensor(rows), torch.as_tensor(columns), 3.0, overwrite=True)
    same(given, expected)


def test_a_part_of_a_larger_matrix(size):
    graph, rows, columns = made((4, 3), 0, 0.6), np.array([0, 2, 5, 6]), np.array([1, 2, 7])
    same(expand_graph(tensors(graph), rows, columns, (7, 8)), expand_graph(graph, rows, columns, (7, 8)))


def test_links_in_both_directions(size):
    origins = np.array([0, 2, 3, 5, 8])
    ends = np.array([[2, 3], [0, 8], [5, 0], [0, 2], [5, 3]])
    expected = symmetric_graph(origins, ends.copy(), 9, np.float64)
    found = symmetric_links(torch.as_tensor(origins), torch.as_tensor(ends), 9, torch.float64)
    same(found, expected)
    assert found.T is found


def test_loops_are_left_out(size):
    graph = sparse.csr_array(made((8, 8), 0) + sparse.eye_array(8, format="csr"))
    expected = graph.copy()
    expected.setdiag(0)
    expected.eliminate_zeros()
    found = tensors(graph).without_loops()
    same(found, expected)
    assert found.without_loops() is found


def test_repeated_values_are_added_up(size):
    rows, columns = torch.tensor([2, 0, 2, 2]), torch.tensor([1, 1, 1, 0])
    found = TensorGraph.of(rows, columns, torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64), (3, 2))
    same(found, sparse.csr_array([[0.0, 2.0], [0.0, 0.0], [4.0, 4.0]]))
