"""Small problems for the non-negative factorisations."""

from __future__ import annotations

import warnings

import numpy as np

from gapview.errors import GapviewWarning
from problems import hidden


def fitted(model, matrices, mask):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GapviewWarning)  # few distinct codes in tiny problems, views without a link
        return model.fit(hidden(matrices, mask))


def made(seed=0, n_samples=30, sizes=(8, 6), n_components=3, share=0.6):
    """Non-negative views of low rank plus noise with gaps, and a start; the first samples have all views."""
    rng = np.random.RandomState(seed)
    codes = rng.uniform(size=(n_samples, n_components)) ** 3
    clean = [codes @ rng.uniform(size=(n_components, m)) ** 3 for m in sizes]
    matrices = [matrix + 0.05 * rng.uniform(size=matrix.shape) for matrix in clean]
    mask = rng.uniform(size=(n_samples, len(sizes))) < share
    mask[np.arange(n_samples), rng.randint(len(sizes), size=n_samples)] = True
    mask[:6] = True
    start = rng.uniform(size=(n_samples, n_components)), [rng.uniform(size=(n_components, m)) for m in sizes]
    return matrices, mask, start


def thinned(matrix):
    """Set what is small in a row to zero, but never a whole row: equal rows would have neighbours by chance."""
    return np.where(matrix < 0.25 * matrix.max(axis=1, keepdims=True), 0, matrix)
