"""Views larger than a device: blocks of their rows are copied there, with the results of a fit in memory."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF, BridgedGRMF
from gapview.backends import streamed
from gapview.backends.streamed import StreamedBackend
from gapview.compute import arrays
from gapview.datasets import make_views
from gapview.errors import InputError, ParameterError
from gapview.graph import donors

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
BUDGET = "3 MB"  # of the device; with all data there, a fit needs more


@pytest.fixture(scope="module")
def made():
    return make_views(1200, (150, 20, 40), n_clusters=4, missing_rate=0.3, random_state=0)


@pytest.fixture
def opened(monkeypatch):
    """Blocks are small; the streamed fits are listed."""
    found = []

    class Noted(StreamedBackend):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            found.append(self)

    monkeypatch.setattr(streamed, "StreamedBackend", Noted)
    monkeypatch.setattr(arrays, "_ROWS_AT_A_TIME", 100)
    return found


def together(model, views, **settings):
    """Fit on the device with all data there, and with data on the host."""
    here = model.set_params(device="cpu", memory_budget=None).fit(views)
    found = here.labels_, here.objective_, here.confidence_, here.embedding_
    there = model.set_params(memory_budget=BUDGET, **settings).fit(views)
    return found, (there.labels_, there.objective_, there.confidence_, there.embedding_)


@pytest.mark.parametrize(
    "model",
    [
        GRMF(4, random_state=0),
        GRMF(4, init="data", scale="standard+view", random_state=0),
        BridgedGRMF(4, selection="fixed", random_state=0),
        BridgedGRMF(4, selection="fixed", scale=None, bridge="joint", random_state=0),
        BridgedGRMF(4, selection="fixed", bridge="union", search="approximate", random_state=0),
        BridgedGRMF(4, random_state=0),
    ],
    ids=["random", "data", "bridged", "joint", "approximate", "chosen"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_results_are_those_of_data_on_the_device(made, model, dtype, opened):
    views = made.views.with_matrices([matrix.astype(dtype) for matrix in made.views.matrices])
    expected, found = together(model, views)
    assert len(opened) == 1
    assert len(opened[0].scaled[0].tiles) > 1
    tolerance = 1e-8 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(found[1], expected[1], rtol=tolerance)
    np.testing.assert_allclose(found[2], expected[2], atol=100 * tolerance)
    if dtype == np.float64:
        np.testing.assert_array_equal(found[0], expected[0])
    assert adjusted_rand_score(found[0], expected[0]) > 0.99


def test_many_rows_are_imputed_in_few_directions(made, opened, monkeypatch):
    monkeypatch.setattr(donors, "_MANY_ROWS", 100)
    monkeypatch.setattr(donors, "_TALL", 1)
    monkeypatch.setattr("gapview.graph.imputation._MOST_COMPONENTS", 60)
    expected, found = together(BridgedGRMF(4, selection="fixed", random_state=0), made.views)
    assert opened
    np.testing.assert_array_equal(found[0], expected[0])


def test_views_by_their_kinds(made, opened):
    counts = made.views.with_matrices([np.round(np.exp(matrix / 3)) for matrix in made.views.matrices])
    expected, found = together(BridgedGRMF(4, selection="fixed", kind="counts", random_state=0), counts)
    assert opened
    np.testing.assert_array_equal(found[0], expected[0])


def test_new_samples_and_views_use_the_processor(made, opened):
    model = GRMF(4, device="cpu", memory_budget=BUDGET, random_state=0).fit(made.views)
    assert opened
    assert all(isinstance(matrix, np.ndarray) for matrix in model.views_.matrices)
    assert model.predict(made.views[:10]).shape == (10,)
    assert all(isinstance(view, np.ndarray) for view in model.recover())


def test_data_that_fit_are_on_the_device(made, opened):
    GRMF(4, device="cpu", memory_budget="1 GB", random_state=0).fit(made.views)
    GRMF(4, device="cpu", random_state=0).fit(made.views)
    assert not opened


def test_too_small_a_device_is_refused(made):
    with pytest.raises(ParameterError, match=r"memory of the device.*take about 1\.2 MB; you gave 1 MB"):
        GRMF(4, device="cpu", memory_budget="1 MB").fit(made.views)


def test_sparse_views_are_refused(made):
    from scipy import sparse

    views = [sparse.csr_array(matrix) for matrix in make_views(1200, (150, 60), random_state=0).views.matrices]
    with pytest.raises(InputError, match="View 'view_0' is sparse, and a device takes dense views only"):
        GRMF(4, device="cpu", memory_budget=BUDGET).fit(views)
