"""Ridge regression of a view on the other views, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from gapview import Views
from gapview.graph.regression import ViewAxes, explained_share, mean_rows, ridge_rows


def linear(n_samples=120, n_lost=30, widths=(6, 5), noise=0.5, seed=0):
    """Return two views, one a linear map of the other with noise, and which rows of it are hidden."""
    rng = np.random.RandomState(seed)
    first = rng.normal(size=(n_samples, widths[0])) * [1, 5, 0.2, 3, 1, 10]
    second = first @ rng.normal(size=widths) + noise * rng.normal(size=(n_samples, widths[1]))
    mask = np.ones((n_samples, 2), dtype=bool)
    mask[-n_lost:, 1] = False
    return first, second, mask


def recovered(views, view=1):
    samples = ViewAxes(views).predictors(views)
    return ridge_rows(views.matrices[view], samples, view, samples[~views.mask[:, view]])


def test_the_weights_are_those_of_scikit_learn_for_some_penalty():
    first, second, mask = linear()
    found = recovered(Views([first, second], mask=mask))
    scaled = (first - first.mean(axis=0)) / first.std(axis=0)
    spread = second[:90].std(axis=0)
    gaps, errors = [], []
    for penalty in np.logspace(-4, 6, 400):
        ridge = Ridge(penalty).fit(scaled[:90], second[:90] / spread)
        gaps.append(np.abs(ridge.predict(scaled[90:]) * spread - found).max())
        errors.append(np.square(second[90:] - ridge.predict(scaled[90:]) * spread).sum())
    assert min(gaps) < 0.02
    assert np.square(second[90:] - found).sum() < 1.05 * min(errors)


def test_noise_is_recovered_as_the_mean():
    rng = np.random.RandomState(0)
    views = Views([rng.normal(size=(200, 10)), rng.normal(size=(200, 8))], mask=np.arange(200)[:, None] < [200, 150])
    found = recovered(views)
    assert np.abs(found - views.matrices[1].mean(axis=0)).max() < 0.5


def test_wide_views_of_few_samples():
    rng = np.random.RandomState(1)
    factor = rng.normal(size=(80, 3))
    tables = [factor @ rng.normal(size=(3, m)) + rng.normal(size=(80, m)) for m in (700, 900)]
    views = Views(tables, mask=np.arange(80)[:, None] < [80, 60])
    assert explained_share(tables[1][60:], recovered(views), views.matrices[1]) > 0.6


def test_each_sample_is_recovered_from_the_views_it_has():
    """A view that predicts perfectly is used where it is present, and does no harm where it is missing."""
    rng = np.random.RandomState(2)
    exact, vague = rng.normal(size=(300, 4)), rng.normal(size=(300, 4))
    target = exact @ rng.normal(size=(4, 3)) + 0.1 * vague[:, :3]
    mask = np.ones((300, 3), dtype=bool)
    mask[200:, 2] = mask[250:, 0] = mask[:50, 1] = False
    found = recovered(Views([exact, vague, target], mask=mask), 2)
    assert explained_share(target[200:250], found[:50], target[:200]) > 0.95
    assert explained_share(target[250:], found[50:], target[:200]) > -0.1


def test_sparse_rows_stay_sparse_and_not_negative():
    rng = np.random.RandomState(3)
    words = sparse.csr_array(rng.poisson(0.05, size=(100, 400)).astype(np.float32))
    views = Views([rng.normal(size=(100, 5)), words], mask=np.arange(100)[:, None] < [100, 80])
    found, means = recovered(views), mean_rows(views.matrices[1], 3)
    for rows in (found, means):
        assert sparse.issparse(rows)
        assert rows.dtype == np.float32
        assert rows.min() >= 0
        assert np.diff(rows.indptr).max() <= 11 * words.nnz / 100
    assert found.shape == (20, 400)


@pytest.mark.parametrize("size", [1e-200, 1e200, 1e306])
def test_units_do_not_matter(size):
    first, second, mask = linear()
    plain = recovered(Views([first, second], mask=mask))
    scale = size / np.abs(second).max()
    np.testing.assert_allclose(recovered(Views([first, second * scale], mask=mask)) / scale, plain, rtol=1e-6)


def test_constant_features_and_hardly_any_samples():
    first, second, mask = linear()
    second[:, 0] = 7.0
    first[:, 1] = 3.0
    np.testing.assert_allclose(recovered(Views([first, second], mask=mask))[:, 0], 7.0)
    mask[3:, 1] = False  # three samples: the mean
    found = recovered(Views([first, second], mask=mask))
    np.testing.assert_allclose(found, np.repeat(second[:3].mean(axis=0)[None], len(found), axis=0))


def test_r2_is_that_of_scikit_learn_on_standardised_features():
    rng = np.random.RandomState(4)
    known = rng.normal(size=(50, 3)) * [1, 100, 0.01]
    truth = np.concatenate([known, known[::-1]])  # the same mean, about which scikit-learn takes the sum of squares
    guess = truth + rng.normal(size=truth.shape) * [0.5, 10, 0.01]
    assert explained_share(truth, guess, known) == pytest.approx(r2_score(truth, guess))
