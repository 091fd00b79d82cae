"""Whitened views: the scale, its inverse, and when the choice admits it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.ndimage import gaussian_filter

from gapview import BridgedGRMF, Views
from gapview.datasets import hide_views, make_views
from gapview.errors import InputError
from gapview.metrics import clustering_accuracy
from gapview.scaling import fit_scaling


def faces(n_people: int = 10, n_each: int = 24, size: int = 20, seed: int = 1) -> tuple[list[np.ndarray], np.ndarray]:
    """Draw pictures of people in light from all sides: neighbours share the light rather than the person."""
    source = np.random.RandomState(seed)

    def surface(width: float) -> np.ndarray:
        drawn = gaussian_filter(source.normal(size=(size, size)), width)
        return drawn / drawn.std()

    common, pictures = 3 * surface(4), []
    for _ in range(n_people):
        slopes = np.gradient(common + 0.8 * surface(2))
        normals = np.stack([-slopes[1], -slopes[0], np.ones((size, size))])
        normals /= np.linalg.norm(normals, axis=0)
        colour = 1 + 0.25 * surface(1)
        for _ in range(n_each):
            light = np.array([source.uniform(-1, 1), source.uniform(-0.7, 0.7), 1.0])
            shade = np.maximum(np.tensordot(light / np.linalg.norm(light), normals, 1), 0)
            pictures.append(shade * colour * source.uniform(0.5, 1.5) + 0.06 * source.normal(size=(size, size)))
    blurred = [np.concatenate([part.ravel() for part in np.gradient(gaussian_filter(own, 1.2))]) for own in pictures]
    return [np.array([own.ravel() for own in pictures]), np.array(blurred)], np.repeat(np.arange(n_people), n_each)


def test_whitened_rows_have_the_same_variance_along_all_axes():
    rows = np.random.default_rng(0).normal(size=(300, 8)) @ np.random.default_rng(1).normal(size=(8, 8)) + 5
    scaling = fit_scaling("a", rows, "white+unit")
    assert scaling.axes is not None
    before = (rows - scaling.center) / scaling.spread
    white = (before @ scaling.axes) / scaling.sizes
    np.testing.assert_allclose(white.T @ white / 300, np.eye(white.shape[1]), atol=1e-9)
    kept = np.square(before @ scaling.axes).sum() / np.square(before).sum()
    assert 0.95 <= kept <= 1
    scaled = scaling.apply(rows)
    assert scaled.shape == rows.shape
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1)
    lengths = np.linalg.norm(white, axis=1)
    back = scaling.undo(scaled * lengths[:, None] / scaling.row_length)
    np.testing.assert_allclose(back, (before @ scaling.axes @ scaling.axes.T) * scaling.spread + scaling.center)


def test_words_are_not_whitened():
    words = sparse.random_array((60, 2000), density=0.02, rng=0).tocsr()
    with pytest.raises(InputError, match="sparse"):
        BridgedGRMF(2, scale="white+unit").fit([words, words])


def test_whitening_is_chosen_for_faces_in_changing_light_and_finds_the_people():
    views, people = faces()
    hidden = hide_views(Views(views), 0.2, random_state=0)
    chosen = BridgedGRMF(10, random_state=0).fit(hidden)
    usual = BridgedGRMF(10, scale="center+unit", random_state=0).fit(hidden)
    assert "white+unit" in chosen.setting_.scales
    assert "Whitened views" in str(chosen.selection_)
    found, before = (clustering_accuracy(people, model.labels_) for model in (chosen, usual))
    assert found > 0.9
    assert found > before + 0.05
    assert chosen.selection_.trials[chosen.selection_.chosen].score == max(t.score for t in chosen.selection_.trials)


@pytest.mark.parametrize("seed", range(3))
def test_whitening_is_not_chosen_for_plain_groups(seed):
    data = make_views(150, (20, 30), n_clusters=3, separation=4.0, missing_rate=0.3, random_state=seed)
    model = BridgedGRMF(3, random_state=0).fit(data.views)
    assert "white+unit" not in model.setting_.scales
    assert [trial.score for trial in model.selection_.trials if "white+unit" in trial.setting.scales] == [0.0]


def test_whitened_views_are_recovered_in_their_units():
    data = make_views(150, (20, 30), n_clusters=3, separation=4.0, missing_rate=0.3, random_state=0)
    model = BridgedGRMF(3, scale="white+unit", random_state=0).fit(data.views)
    assert clustering_accuracy(data.target, model.labels_) > 0.8
    for view, rows in zip(model.recover(method="basis"), data.views.matrices, strict=True):
        assert 0.05 < view.std() / rows.std() < 20
