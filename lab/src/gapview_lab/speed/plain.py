"""Algorithm 1 as written: dense matrices, all products recomputed in every iteration.

The reference for speed, and the second opinion on the formulas: it follows the text of the paper, G and all, and
shares no line with the library's own loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapview.utils.types import Array

__all__ = ["plain_algorithm", "plain_graph"]


def plain_graph(features: Array, n_neighbors: int) -> Array:
    """Build the graph W of Eq. (3) as written: all distances, an n × n matrix of 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview_lab.speed import plain_graph
    >>> plain_graph(np.array([[0.0], [1.0], [3.0]]), 1)
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    squares = (features**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * features @ features.T
    np.fill_diagonal(distances, np.inf)  # no sample is its own neighbour
    near = np.argpartition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
    graph = np.zeros_like(distances)
    np.put_along_axis(graph, near, 1.0, axis=1)
    return np.asarray(np.maximum(graph, graph.T))


def plain_algorithm(
    features: Sequence[Array],
    graphs: Sequence[Array],
    n_paired: int,
    start: Sequence[Array],
    consensus_weight: float,
    sparsity_weight: float,
    n_iter: int,
) -> tuple[list[Array], list[Array], Array, list[float]]:
    """Run the paper's Algorithm 1 with dense n × n matrices.

    Parameters
    ----------
    features : sequence of arrays
        X⁽ᵏ⁾, scaled; in every view the first ``n_paired`` rows are the paired samples.
    graphs : sequence of dense arrays
        W⁽ᵏ⁾.
    n_paired : int
        Number of paired samples n_c.
    start : sequence of arrays
        Starting codes P⁽ᵏ⁾.
    consensus_weight, sparsity_weight : float
        λ1 and λ2.
    n_iter : int
        Number of iterations.

    Returns
    -------
    bases, codes, consensus, objective
        U⁽ᵏ⁾, P⁽ᵏ⁾, Pᶜ, and the value of Eq. (4) after every iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview_lab.speed import plain_algorithm
    >>> X, W = np.eye(4), np.ones((4, 4)) - np.eye(4)
    >>> start = [np.arange(8.0).reshape(4, 2)] * 2
    >>> _, codes, consensus, objective = plain_algorithm([X, X], [W, W], 4, start, 1.0, 0.1, n_iter=5)
    >>> codes[0].shape, consensus.shape, bool(np.diff(objective).max() <= 0)
    ((4, 2), (4, 2), True)
    """
    codes = [np.array(code) for code in start]
    bases: list[Array] = [np.empty(0)] * len(codes)
    choose = [np.eye(n_paired, len(code)) for code in codes]  # G⁽ᵏ⁾ of Eq. (5)
    degrees = [w.sum(axis=1) for w in graphs]
    consensus = sum(g @ p for g, p in zip(choose, codes, strict=True)) / len(codes)
    objective = []
    for _ in range(n_iter):
        for k, (x, w, d, g) in enumerate(zip(features, graphs, degrees, choose, strict=True)):
            left, _, right = np.linalg.svd((x.T @ w) @ codes[k], full_matrices=False)  # Eq. (9)
            bases[k] = right.T @ left.T
            a = bases[k] @ x.T @ w + consensus_weight * consensus.T @ g
            mass = d + consensus_weight * (g * g).sum(axis=0)
            target = (a / mass).T  # C / √M of Eq. (12)
            codes[k] = np.sign(target) * np.maximum(
                np.abs(target) - sparsity_weight / (2 * mass[:, None]), 0
            )  # Eq. (13)
        consensus = sum(g @ p for g, p in zip(choose, codes, strict=True)) / len(codes)  # Eq. (15)
        value = 0.0
        for x, w, d, p, u, g in zip(features, graphs, degrees, codes, bases, choose, strict=True):
            value += np.trace(x.T @ (d[:, None] * x)) + np.trace(u.T @ p.T @ (d[:, None] * p) @ u)  # Eq. (6)
            value -= 2 * np.trace(x.T @ w @ p @ u)
            value += consensus_weight * np.sum((g @ p - consensus) ** 2) + sparsity_weight * np.abs(p).sum()
        objective.append(float(value))
    return bases, codes, np.asarray(consensus), objective
