"""Search among tensors gives what search among arrays gives; wherever torch is installed, on the processor."""

from __future__ import annotations

import numpy as np
import pytest
from test_neighbors import check_consistent, true_recall

from gapview.datasets import make_views
from gapview.errors import InputError, ParameterError
from gapview.graph.neighbors import Search, SearchReport, cells, nearest
from gapview.graph.neighbors import search as limits
from gapview.graph.neighbors.search import CellSetting
from gapview.scaling import unit_rows

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gapview.graph.neighbors import torch_search  # noqa: E402  # imports torch

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def made(n_samples, width, dtype="float32"):
    return unit_rows(make_views(n_samples, [width], n_clusters=10, dtype=dtype, random_state=0).views.matrices[0])


def searched(points, n_neighbors=10, queries=None, device="cpu", **settings):
    search = Search(**settings)
    tensors = [None if rows is None else torch.from_numpy(rows).to(device) for rows in (points, queries)]
    distances, indices = nearest(tensors[0], n_neighbors, tensors[1], search=search)
    assert distances.dtype == tensors[0].dtype
    assert distances.device == indices.device == tensors[0].device
    return distances.cpu().numpy(), indices.cpu().numpy(), search.done[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestExact:
    def test_as_among_arrays(self, device, dtype):
        points = made(700, 12, dtype)
        points, queries = points[:600], points[600:]
        for asked in (None, queries):
            distances, indices, report = searched(points, 5, asked, device)
            expected = nearest(points, 5, asked)
            np.testing.assert_array_equal(indices, expected[1])
            np.testing.assert_allclose(distances, expected[0], rtol=1e-6 if dtype == "float32" else 1e-12)
            assert report == SearchReport("exact", "torch", 600, 600 if asked is None else 100, 5)

    def test_in_small_blocks(self, device, dtype, monkeypatch):
        points = made(300, 6, dtype)
        expected = searched(points, 4, device=device)[1]
        monkeypatch.setattr(cells, "_N_VALUES_TENSOR", 1000)
        monkeypatch.setattr(cells, "_N_VALUES_GPU", 1000)
        np.testing.assert_array_equal(searched(points, 4, device=device)[1], expected)

    def test_duplicates_and_constants(self, device, dtype):
        points = np.repeat(made(50, 6, dtype), 4, axis=0)
        distances, indices, _ = searched(points, 3, device=device)
        assert (distances == 0).all()
        check_consistent(points, distances, indices)
        assert (searched(np.full((30, 3), 7.0, dtype=dtype), 29, device=device)[0] == 0).all()

    def test_all_there_are(self, device, dtype):
        points = made(40, 3, dtype)
        np.testing.assert_array_equal(
            searched(points, 39, device=device)[1].sum(axis=1), np.arange(40).sum() - np.arange(40)
        )


@pytest.mark.parametrize("change", [lambda x: x + 1e6, lambda x: x * 1e150, lambda x: x * 1e-150, lambda x: x * 1e300])
@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_any_place_and_size(change, method):
    points = made(900, 8, "float64")
    moved = change(points)
    distances, indices, _ = searched(moved, 5, method=method)
    stretch = change(np.ones(1))[0] - change(np.zeros(1))[0]
    back = (moved - moved[0]) / stretch
    check_consistent(back, distances / stretch, indices, rtol=1e-7)
    assert true_recall(back, distances / stretch) >= (1.0 if method == "exact" else 0.95)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_ties_stay_exact(dtype):
    """Points near the origin are not moved to their mean, which would round the differences between them."""
    points = np.random.RandomState(0).randint(-9, 10, size=(500, 3)).astype(dtype)
    distances = searched(points, 6)[0]
    np.testing.assert_array_equal(distances, nearest(points, 6)[0].astype(dtype))
    n_tied = (distances[:, 1:] == distances[:, :-1]).sum()
    assert n_tied == (np.diff(np.round(np.square(distances)), axis=1) == 0).sum() > 100


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("place", [0.0, 3.0, 9.0, 1000.0])
def test_places_at_which_products_round_more(dtype, place):
    """Near and far from the origin, in units of the spread of the points: the nearest are found by products."""
    points = np.random.RandomState(0).normal(size=(2000, 3)).astype(dtype) + np.asarray(place, dtype=dtype)
    distances, indices, _ = searched(points, 5, method="exact")
    check_consistent(points, distances, indices)
    assert true_recall(points, distances) == 1.0


def test_beyond_the_type():
    points = torch.tensor([[-1.7e308], [1.7e308]], dtype=torch.float64)
    assert torch.isinf(nearest(points, 1)[0]).all()
    assert (nearest(torch.full((3, 1), 1e308, dtype=torch.float64), 1)[0] == 0).all()


@pytest.mark.parametrize("device", DEVICES)
class TestCells:
    @pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
    def test_recall_is_kept(self, device, recall):
        points = made(4000, 12)
        distances, indices, report = searched(points, device=device, method="approximate", recall=recall)
        truth = true_recall(points, distances)
        assert truth >= recall - 0.005
        assert report.recall == pytest.approx(truth, abs=0.03)
        assert (report.method, report.engine) == ("approximate", "torch")
        check_consistent(points, distances, indices)

    def test_beyond_the_limit(self, device, monkeypatch):
        monkeypatch.setattr(limits, "EXACT_PAIRS", 1000**2)
        monkeypatch.setattr(limits, "EXACT_PAIRS_GPU", 1000**2)
        points = made(5000, 20, "float64")
        points, queries = points[:4000], points[4000:]
        distances, indices, report = searched(points, 5, queries, device)
        assert report.method == "approximate"
        assert report.n_probes < report.n_cells / 2
        assert true_recall(points, distances, queries) >= 0.95
        check_consistent(points, distances, indices, queries, rtol=1e-10)

    def test_in_small_blocks(self, device, monkeypatch):
        points = made(1500, 8)
        expected = searched(points, device=device, method="approximate")
        monkeypatch.setattr(cells, "_N_VALUES_TENSOR", 2000)
        monkeypatch.setattr(cells, "_N_VALUES_GPU", 2000)
        monkeypatch.setattr(torch_search, "_N_FOUND", 10000)
        monkeypatch.setattr(torch_search, "_N_FOUND_GPU", 10000)
        found = searched(points, device=device, method="approximate")
        assert (found[1] == expected[1]).mean() > 0.99  # but for rounding of the centres
        check_consistent(points, found[0], found[1])

    def test_duplicates(self, device):
        points = np.repeat(made(300, 6), 10, axis=0)
        distances, indices, _ = searched(points, 9, device=device, method="approximate")
        assert (distances == 0).mean() >= 0.95
        check_consistent(points, distances, indices)

    def test_rows_that_the_cells_cannot_fill(self, device, monkeypatch):
        monkeypatch.setattr(torch_search.TensorKernel, "propose", lambda kernel, *_: CellSetting(kernel.n_cells, 1, 30))
        points = made(1000, 4)
        distances, indices, report = searched(points, 60, device=device, method="approximate", recall=0.05)
        assert report.n_probes == 1
        assert (indices >= 0).all()
        check_consistent(points, distances, indices)

    def test_all_distances_where_cells_do_not_help(self, device):
        points = np.random.RandomState(0).standard_normal((1000, 40)).astype(np.float32)
        distances, _, report = searched(points, device=device, method="approximate", recall=0.99)
        assert (report.method, report.n_cells) == ("exact", 0)
        assert true_recall(points, distances) == 1.0

    def test_seeds(self, device):
        points = made(4000, 12)
        settings = {"device": device, "method": "approximate", "recall": 0.5}
        first, again = searched(points, seed=1, **settings), searched(points, seed=1, **settings)
        np.testing.assert_array_equal(first[1], again[1])
        assert first[2] == again[2]
        assert (searched(points, seed=2, **settings)[1] != first[1]).any()


class TestInput:
    def test_no_queries(self):
        distances, indices = nearest(torch.eye(4), 2, torch.empty((0, 4)))
        assert distances.shape == indices.shape == (0, 2)
        assert indices.dtype == torch.int64

    def test_input_is_left_alone_and_gradients_pass_by(self):
        points = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
        before = points.detach().clone()
        distances, _ = nearest(points, 2)
        assert torch.equal(points.detach(), before)
        (distances * points[:, :2]).sum().backward()  # would fail on tensors of inference mode

    def test_products_in_full_precision(self):
        products = torch.backends.cuda.matmul
        new = hasattr(products, "fp32_precision")
        before = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("high")
            seen = []
            watched = torch.from_numpy(made(30, 3))
            original = cells.relative_squares

            def relative_squares(*arguments):
                seen.append(products.fp32_precision == "tf32" if new else products.allow_tf32)
                return original(*arguments)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(cells, "relative_squares", relative_squares)
                nearest(watched, 2)
            assert seen == [False]
            assert torch.get_float32_matmul_precision() == "high"
        finally:
            torch.set_float32_matmul_precision(before)

    def test_bad_input(self):
        with pytest.raises(InputError, match=r"in float32 or float64; got 2 dimension\(s\) of torch.int64"):
            nearest(torch.eye(3, dtype=torch.int64), 1)
        with pytest.raises(InputError, match="one type and lie on one device"):
            nearest(torch.eye(3), 1, torch.eye(3, dtype=torch.float64))
        with pytest.raises(ParameterError, match="at most 2"):
            nearest(torch.eye(3), 3)
