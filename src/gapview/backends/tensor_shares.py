"""The shares of groups in samples on a device: discriminants, mixtures and walks along a graph, without the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..compute.arrays import like
from ..compute.tensor_graph import TensorGraph
from ..mixture import Mixture
from ..refinement import Discriminants, ViewDiscriminants
from ..scaling import unit_rows
from ..utils.types import Array

_VALUES_AT_A_TIME = 2**26


def discriminant_shares(
    discriminants: Discriminants, scaled: Sequence[Any], present: Sequence[Array], n_samples: int
) -> Any:
    """Return the share of each group in every sample; see :meth:`gapview.refinement.Discriminants.shares`."""
    total = like(np.zeros((n_samples, len(discriminants.offset)), dtype=np.float32), scaled[0][:0])
    counts = total.new_zeros((n_samples, 1))
    for view, rows, samples in zip(discriminants.views, scaled, present, strict=True):
        places = like(samples, total)
        for part, scores in _scores(view, rows):
            total.index_add_(0, places[part], scores)
        counts[places] += 1
    total /= counts.clamp(min=1)
    total *= discriminants.sharpness
    total += like(discriminants.offset, total).float()
    return total.softmax(dim=1)


def _scores(view: ViewDiscriminants, rows: Any) -> Iterator[tuple[slice, Any]]:
    """Yield parts of the rows of a view, and their scores."""
    none = rows[:0]
    axes, weights, offset = (like(own, none).to(none.dtype) for own in (view.axes, view.weights, view.offset))
    landmarks = None if view.landmarks is None else like(view.landmarks, none).to(none.dtype)
    middle = like(view.center @ view.axes, none).to(none.dtype)
    width = max(rows.shape[1], axes.shape[1] if landmarks is None else len(landmarks))
    step = max(1, _VALUES_AT_A_TIME // width)
    for begin in range(0, rows.shape[0], step):
        part = slice(begin, begin + step)
        points = (rows[part] / view.size) @ axes - middle
        if landmarks is not None:
            points = _squares(points, landmarks).mul_(-view.decay).exp_()
        yield part, (points @ weights + offset).float()


def mixture_shares(mixture: Mixture, rows: Any) -> Any:
    """Return the probability of each group for every row; see :meth:`gapview.mixture.Mixture.shares`."""
    points = unit_rows(rows)
    squares = _squares(points, like(mixture.centers, points).to(points.dtype))
    weights = like(mixture.log_weights, points).to(points.dtype)
    return (weights - squares / (2 * mixture.variance)).softmax(dim=1)


def _squares(rows: Any, others: Any) -> Any:
    """Return squared distances of rows to a few others."""
    lengths = rows.square().sum(dim=1, keepdim=True) + others.square().sum(dim=1)
    return lengths.addmm(rows, others.T, alpha=-2).clamp_(min=0)


def tensor_transition(graph: TensorGraph, dtype: Any) -> TensorGraph:
    """Return a graph with the weights of every sample divided by their sum; 0 for samples without neighbours."""
    graph = replace(graph, values=graph.values.to(dtype))
    ones = graph.values.new_ones(graph.shape[0])
    degrees = graph @ ones
    return graph.divided(degrees.where(degrees > 0, 1.0), ones)
