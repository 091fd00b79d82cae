"""Neural networks in place of parts of BridgedGRMF, and the page on them."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

from gapview.datasets import make_views
from gapview.metrics import clustering_accuracy
from gapview_lab.cli import main
from gapview_lab.league import encoder as page
from gapview_lab.league import networks


@pytest.fixture(scope="module")
def made():
    return make_views(120, (8, 10), n_clusters=3, separation=6.0, missing_rate=0.3, random_state=0)


@pytest.fixture(scope="module")
def fit(made):
    return networks.Fit.of(made.views, 3, 0)


def test_refinement_of_the_same_starts_gives_the_labels_of_the_default(made, fit):
    starts = page.best_groups(fit.model.selection_, page.N_STARTS)
    assert clustering_accuracy(fit.model.labels_, fit.refined(starts)) == 1


def test_smoothed_rows_are_means_along_walks():
    rng = np.random.RandomState(0)
    transition = rng.uniform(size=(6, 6)) * (rng.uniform(size=(6, 6)) < 0.5)
    has = np.array([1, 0, 1, 1, 0, 1.0])
    rows = rng.normal(size=(6, 3)) * has[:, None]
    reached = sum(np.linalg.matrix_power(transition, steps) for steps in range(networks.REACH + 1))
    expected = reached @ rows / (reached @ has)[:, None]
    found = networks.smoothed_rows(rows, has, sparse.csr_array(transition))
    np.testing.assert_allclose(found, expected / np.sqrt(np.square(expected).mean()), rtol=1e-5)


def test_neighbors_are_drawn_by_their_weights():
    weights = sparse.csr_array(np.array([[0, 0.25, 0, 0.75], [1.0, 0, 0, 0], [0, 0, 0, 0], [0, 0.5, 0.5, 0]]))
    samples = np.repeat(np.arange(4), 20_000)
    drawn = networks.random_neighbors(weights, samples, np.random.RandomState(0))
    counts = np.zeros((4, 4))
    np.add.at(counts, (samples, drawn), 1 / 20_000)
    expected = weights.toarray()
    expected[2, 2] = 1  # no neighbours
    np.testing.assert_allclose(counts, expected, atol=0.02)
    assert not counts[expected == 0].any()


@pytest.mark.parametrize("name", page.CLASSIFIERS)
def test_training_in_rounds_corrects_groups(made, fit, name):
    if "PyTorch" in name:
        pytest.importorskip("torch")
    source = np.random.RandomState(0)
    start = np.where(source.uniform(size=120) < 0.2, source.randint(3, size=120), made.target)
    found = networks.train_in_rounds(fit, start, page.CLASSIFIERS[name])
    assert clustering_accuracy(made.target, start) < 0.93
    assert clustering_accuracy(made.target, found) > 0.97


@pytest.mark.parametrize("name", page.ENCODERS)
def test_encoders_separate_groups_and_depend_on_the_seed_alone(made, fit, name, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(networks, "N_STEPS", 100)
    points = networks.encode(fit, *page.ENCODERS[name])
    assert points.shape == (120, networks.WIDTH)
    assert clustering_accuracy(made.target, fit.groups(points)) > 0.95
    np.testing.assert_array_equal(points, networks.encode(fit, *page.ENCODERS[name]))


def test_the_page_compares_all_ways(made, monkeypatch, capsys):
    monkeypatch.setattr(page, "ENCODERS", {"an encoder": ("contrast", 1)})
    monkeypatch.setattr(page, "encode", lambda fit, *objective: fit.backend.scaled[0].mean() + np.eye(120)[:, :5])
    monkeypatch.setattr(page, "CLASSIFIERS", {"a network": networks.new_mlp_classifier})
    monkeypatch.setattr(page, "load_torch", lambda: np)  # for its version
    rows = list(page.try_ways(made.views, made.target, 0))
    ends = (page.KMEANS, page.REFINED, page.MORE)
    ways = ["".join(pair) for pair in product((page.CODES, "an encoder"), ends)]
    assert [row["way"] for row in rows] == [page.DEFAULT, *ways, "a network"]
    page._write([{"data": name, "rate": "0.3", "seed": "0", **row} for name in ("one", "two") for row in rows])
    text = capsys.readouterr().out
    assert all(f"| {way} |" in text for way in ways)
    assert f"the default has {100 * rows[0]['accuracy']:.1f}" in text


def test_an_error_names_the_extra_if_pytorch_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    result = CliRunner().invoke(main, ["encoder", "--data-dir", str(tmp_path), str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "pip install 'gapview[gpu]'" in result.output
    assert not (tmp_path / "out").exists()
