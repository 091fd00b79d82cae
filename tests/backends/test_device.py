"""The same fit on tensors: one set of formulas, whatever the arrays are."""

import builtins

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF, BridgedGRMF
from gapview.compute.arrays import graph_like, host, host_graph, is_tensor
from gapview.compute.kmeans import kmeans_of_tensor, kmeans_of_tensors
from gapview.compute.tensor_graph import TensorGraph
from gapview.datasets import make_views
from gapview.errors import MissingExtraError, ParameterError
from gapview.graph.bridges import both_graphs, joint_graph, union_graph
from gapview.graph.imputation import impute_views
from gapview.graph.knn import knn_graph, modularities, modularity
from gapview.scaling import SCALES, scale_views
from gapview.views import measures

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
each_device = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(scope="module")
def made():
    return make_views(400, (12, 300, 7), n_clusters=4, missing_rate=0.4, random_state=0)


@each_device
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [
        GRMF(4, random_state=0),
        GRMF(4, init="data", random_state=0),
        GRMF(4, n_init=3, random_state=0),
        BridgedGRMF(4, selection="fixed", random_state=0),
    ],
    ids=["random", "data", "starts", "bridged"],
)
def test_a_fit_is_the_same_on_tensors(made, model, dtype, device):
    whole = [matrix.astype(dtype) for matrix in made.views.matrices]
    views = made.views.with_matrices(tuple(whole), made.views.mask, made.views.sample_ids)
    here = model.fit(views)
    bases, codes, objective, labels, trust = here.bases_, here.codes_, here.objective_, here.labels_, here.confidence_
    there = model.set_params(device=device).fit(views)
    model.set_params(device=None)
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(there.objective_[-1], objective[-1], rtol=tolerance)
    assert adjusted_rand_score(there.labels_, labels) == pytest.approx(1.0)
    np.testing.assert_allclose(there.confidence_, trust, atol=10 * tolerance)
    for ours, theirs, basis, other in zip(codes, there.codes_, bases, there.bases_, strict=True):
        assert theirs.dtype == dtype
        size = np.abs(ours @ basis).max()  # rows in the space of the features: the latent space may be turned
        np.testing.assert_allclose(theirs @ other, ours @ basis, atol=10 * tolerance * size)


@each_device
def test_settings_are_chosen_on_tensors_too(made, device):
    here = BridgedGRMF(4, random_state=0).fit(made.views)
    there = BridgedGRMF(4, random_state=0, device=device).fit(made.views)
    assert adjusted_rand_score(there.labels_, here.labels_) > 0.95
    assert there.selection_.explained == pytest.approx(here.selection_.explained, abs=0.02)
    new = made.views[:20]
    np.testing.assert_array_equal(there.predict(new).shape, (20,))
    assert all(isinstance(view, np.ndarray) for view in there.recover())


@each_device
@pytest.mark.parametrize(("shape", "separation"), [((12, 300, 7), 4.0), ((60, 40), 3.0)])
def test_candidates_have_the_same_groups_on_tensors(device, shape, separation):
    data = make_views(600, shape, n_clusters=5, separation=separation, missing_rate=0.4, random_state=0)
    here = BridgedGRMF(5, refine=False, random_state=0).fit(data.views).selection_
    there = BridgedGRMF(5, refine=False, random_state=0, device=device).fit(data.views).selection_
    assert there.setting == here.setting
    assert [trial.setting for trial in there.trials] == [trial.setting for trial in here.trials]
    for ours, theirs in zip(here.trials, there.trials, strict=True):
        assert adjusted_rand_score(theirs.labels, ours.labels) > 0.9
        np.testing.assert_allclose(theirs.score, ours.score, atol=0.05)


@each_device
def test_candidates_of_huge_values_are_tried_one_by_one(made, device):
    views = made.views.with_matrices([matrix * 1e30 for matrix in made.views.matrices])
    model = BridgedGRMF(4, scale=None, random_state=0)
    here = model.fit(views).labels_
    assert adjusted_rand_score(model.set_params(device=device).fit(views).labels_, here) > 0.95


@each_device
@pytest.mark.parametrize("scale", SCALES)
def test_scaling_and_graphs_are_the_same(made, scale, device):
    views = made.views
    moved = views.to_device(device)
    ours, theirs = scale_views(views, scale)[0], scale_views(moved, scale)[0]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(host(b), a, rtol=1e-9, atol=1e-12)
    counts, weights = [5, 4, 3], [1.0, 0.5, 2.0]
    for a, b in zip(ours, theirs, strict=True):
        assert abs(host_graph(knn_graph(b, 5)) - knn_graph(a, 5)).max() == 0
    union = union_graph(ours, views, counts, weights), union_graph(theirs, moved, counts, weights)
    completion = impute_views(ours[:1] + ours[2:], some(views)), impute_views(theirs[:1] + theirs[2:], some(moved))
    np.testing.assert_allclose(completion[1].explained, completion[0].explained, rtol=1e-9)
    joint = [joint_graph(each, 4, [1.0, 2.0]) for each in completion]
    for a, b in (union, joint, (both_graphs(union[0], joint[0]), both_graphs(union[1], joint[1]))):
        assert abs(host_graph(b) - a).max() < 1e-12


def some(views):
    """Leave out the wide view, whose leading directions depend on random numbers."""
    kept = [0, 2]
    part = views.with_matrices([views.matrices[k] for k in kept], views.mask[:, kept])
    part.names = tuple(views.names[k] for k in kept)
    return part


@each_device
def test_a_graph_of_tensors_behaves_like_one_of_scipy(device):
    rng = np.random.RandomState(0)
    dense = rng.uniform(size=(6, 4)) * (rng.uniform(size=(6, 4)) < 0.5)
    rows, columns = np.nonzero(dense)
    parts = [torch.as_tensor(part, device=device) for part in (rows, columns, dense[rows, columns])]
    graph = TensorGraph.of(*parts, (6, 4))
    values = torch.as_tensor(rng.normal(size=(4, 3)), device=device)
    np.testing.assert_allclose(host(graph @ values), dense @ host(values))
    np.testing.assert_allclose(host_graph(graph.T).toarray(), dense.T)
    kept = np.array([True, False, True, True])
    np.testing.assert_allclose(host_graph(graph[:, kept]).toarray(), dense[:, kept])
    twice = TensorGraph.of(*(torch.cat([part, part]) for part in parts), (6, 4))
    np.testing.assert_allclose(host_graph(twice).toarray(), 2 * dense)


@each_device
def test_the_facts_on_columns_are_those_of_arrays(made, device, monkeypatch):
    monkeypatch.setattr(measures, "is_on_device", is_tensor)
    monkeypatch.setattr(measures, "_DEVICE_CELLS", 3000)
    rows = np.column_stack([made.views.matrices[0][:200], np.zeros(200), np.arange(200.0) - 7])
    rows[3, 1] = -0.0
    rows = np.column_stack([rows, rows[:, 2]]).astype(np.float32)
    here, there = (measures.ColumnFacts.of(view) for view in (rows, torch.as_tensor(rows, device=device)))
    for field in ("low", "high", "n_zeros", "n_integers"):
        np.testing.assert_array_equal(getattr(there, field), getattr(here, field))
    np.testing.assert_array_equal(there.digest.view(np.uint64), here.digest)


@each_device
def test_modularity_of_several_labellings(made, device):
    graph = knn_graph(made.views.matrices[0], 5)
    rng = np.random.RandomState(0)
    labelings = [rng.randint(count, size=graph.shape[0]) for count in (2, 5, 3)]
    there = modularities(graph_like(graph, torch.zeros(0, dtype=torch.float64, device=device)), labelings)
    np.testing.assert_allclose(there, [modularity(graph, labels) for labels in labelings], rtol=1e-12)


@each_device
def test_kmeans_finds_what_is_there(device):
    data = make_views(600, [5], n_clusters=4, separation=12.0, random_state=0)
    points = torch.as_tensor(data.views.matrices[0], device=device)
    labels, centers = kmeans_of_tensor(points, 4, 5, 0)
    assert adjusted_rand_score(data.target, host(labels)) == 1.0
    for group in range(4):
        np.testing.assert_allclose(host(centers[group]), host(points[labels == group].mean(dim=0)), atol=0.05)
    again = kmeans_of_tensor(points, 4, 5, 0)[0]
    assert (again == labels).all()
    several = kmeans_of_tensors(torch.stack([points, points * 3]), 4, 5, 0)
    assert (several[0] == labels).all()
    np.testing.assert_allclose(host(several[1][1]), 3 * host(centers), atol=1e-9)


def test_what_a_device_cannot_take_is_said(made, monkeypatch):
    with pytest.raises(ParameterError, match=r"device must be None or the name of a device.*got 'nowhere'"):
        GRMF(2, device="nowhere").fit(made.views)
    real = builtins.__import__

    def without_torch(name, *args, **kwargs):
        if name == "torch":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    with pytest.raises(MissingExtraError, match=r"gapview\[gpu\]"):
        GRMF(2, device="cpu").fit(made.views)
