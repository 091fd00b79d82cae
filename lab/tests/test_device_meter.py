"""What a fit asks of a device: waits and kernels do not grow with candidates, memory in step with the samples."""

import re

import pytest
from click.testing import CliRunner

from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview_lab.cli import main
from gapview_lab.speed.phases import CLOSED

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def meter():
    from gapview_lab.speed import device_meter

    return device_meter


def views(n_samples, widths=(60, 20)):
    data = make_views(n_samples, widths, n_clusters=4, missing_rate=0.25, dtype="float32", random_state=0).views
    return data.with_matrices([torch.as_tensor(matrix) for matrix in data.matrices])


def counts(meter, model, data):
    with meter.metered() as found:
        model.fit(data)
    return found


def test_numbers_copies_and_masks_are_waits(meter):
    rows = torch.arange(6.0).reshape(3, 2)
    with meter.metered() as found:
        float(rows.sum())
        rows.cpu().numpy()
        rows[rows[:, 0] > 1]
        torch.as_tensor([1.0])
        rows[[0, 1]] @ rows.T
    assert found.waits["other"] == 3
    assert found.uploads["other"] == 1
    assert found.kernels["other"] >= 4


def test_memory_is_that_of_tensors_alive(meter):
    with meter.metered() as found:
        rows = torch.zeros(1000, dtype=torch.float64)
        more = rows + 1
        del rows
        last = more * 2
    assert found.peak == 16_000
    assert found.held == 16_000
    del more, last
    assert found.held == 0


def test_waits_do_not_grow_with_the_candidates(meter):
    data = views(600)
    all_settings = counts(meter, BridgedGRMF(4, random_state=0), data)
    few = counts(meter, BridgedGRMF(4, reach=4, random_state=0), data)
    assert all_settings.waits[CLOSED] < 1.3 * few.waits[CLOSED]
    assert all_settings.waits[CLOSED] < 1000
    assert all_settings.kernels[CLOSED] < 25_000
    later = sum(count for phase, count in all_settings.waits.items() if phase != CLOSED)
    assert later < 250


@pytest.mark.parametrize("model", [GRMF(4, random_state=0), BridgedGRMF(4, selection="fixed", random_state=0)])
def test_memory_grows_with_a_small_multiple_of_the_views(meter, model):
    shrink, sizes = 100, (4000, 8000)
    peaks = []
    for n_samples in sizes:
        with meter.metered(shrink) as found:
            model.set_params(device="cpu").fit(views(n_samples, (240, 76)))
        peaks.append(found.peak)
    n_bytes = 4 * (240 + 76) * 0.75 * (sizes[1] - sizes[0])
    assert (peaks[1] - peaks[0]) / n_bytes < 3.5


def test_the_command_prints_every_phase():
    result = CliRunner().invoke(main, ["device-costs", "--method", "GRMF", "--samples", "300"])
    assert result.exit_code == 0, result.output
    assert re.search(r"Phase +neighbours: \d+ kernels, \d+ waits, \d+ copies, memory \d", result.output)
    assert re.search(r"Peak +\d+\.\d\d times the input of 0 MB", result.output)
