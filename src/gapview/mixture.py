"""Groups of any size: a mixture of normal distributions with one variance, started from the centres of k-means.

k-means cuts a large group and enlarges small ones, since it assigns every sample to the nearest centre. A mixture also
weighs how many samples each group has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.metrics.pairwise import euclidean_distances

from .compute.engine import single_threaded
from .scaling import unit_rows
from .utils.types import Array

_MOST_ROWS = 2**15  # that a mixture is fitted to
_MOST_ITERATIONS = 100
_TOLERANCE = 1e-4  # change of a share
_SMALLEST = 1e-9
_LEAST_VARIANCE = 1e-9  # of unit rows: groups of equal rows have none


@dataclass(frozen=True)
class Mixture:
    """Normal distributions of unit rows with one variance in all directions."""

    centers: Array  # groups × directions
    log_weights: Array  # log of the share of the samples in each group
    variance: float

    def shares(self, rows: Array) -> Array:
        """Return the probability of each group for every row, which is scaled to unit length first.

        Parameters
        ----------
        rows : array of shape (n_samples, n_directions)
            The representation.
        """
        with single_threaded():
            squares = euclidean_distances(unit_rows(rows).astype(np.float64), self.centers, squared=True)
        return np.asarray(softmax(self.log_weights - squares / (2 * self.variance), axis=1))


def rows_to_fit(n_samples: int) -> Array:
    """Return the positions of the samples that a mixture is fitted to: all, or some of very many."""
    return np.sort(np.random.RandomState(0).permutation(n_samples)[:_MOST_ROWS])


def fit_mixture(rows: Array, centers: Array) -> Mixture:
    """Fit a mixture by expectation and maximisation, which starts from the nearest centre of every row.

    Parameters
    ----------
    rows : array of shape (n_samples, n_directions)
        The representation; scaled to unit length.
    centers : array of shape (n_groups, n_directions)
        Centres of unit rows.

    Returns
    -------
    Mixture

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.mixture import fit_mixture
    >>> rows = np.array([[1.0, 0.0]] * 8 + [[0.6, 0.8]] + [[0.0, 1.0]] * 2)
    >>> mixture = fit_mixture(rows, np.eye(2))
    >>> np.exp(mixture.log_weights).round(2), int(mixture.shares(rows).argmax(axis=1)[8])
    (array([0.73, 0.27]), 1)
    """
    points = unit_rows(rows).astype(np.float64)
    squares = euclidean_distances(points, centers, squared=True)
    shares = np.eye(len(centers))[squares.argmin(axis=1)]
    for _ in range(_MOST_ITERATIONS):
        weights = shares.sum(axis=0)
        centers = shares.T @ points / np.maximum(weights, _SMALLEST)[:, None]
        within = (shares * euclidean_distances(points, centers, squared=True)).sum()
        variance = max(float(within) / points.size, _LEAST_VARIANCE)
        mixture = Mixture(centers, np.log(np.maximum(weights / len(points), _SMALLEST)), variance)
        before, shares = shares, mixture.shares(points)
        if np.abs(shares - before).max() < _TOLERANCE:
            break
    return mixture
