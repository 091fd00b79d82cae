"""The groups of several settings at once, on a device: many settings cost about as many steps as one.

The samples of a choice are few, so that a device spends its time on starting steps and waiting for the host, not on
numbers. Here every step is for all settings and all views: the first index of a tensor is that of the setting, the
second, where there is one, that of the view. Views have as many columns as the widest; those added are 0. The formulas
are those of :mod:`gapview.factorization`, in single precision, as in other trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ..compute.arrays import host
from ..compute.kmeans import kmeans_of_tensors
from ..factorization.loop import Weights
from ..utils.types import Array
from .representation import IterationLimits, Setting

_MOST_IMPROVED, _TOLERANCE = 100, 1e-7  # of iterations on moments
_STEPS_BETWEEN = 5  # of them between two tests of whether they end, for which the host waits
_NEARLY_SINGULAR = 1e-10


@dataclass(frozen=True)
class _Problems:
    """The problems of several settings; a sample without a code in a view has zeros there."""

    smoothed: Any  # settings × views × samples × columns
    columns: Any  # of all views side by side, those that are not added
    degrees: Any  # settings × views × samples; 1 where there is no code
    has_code: Any  # the same: 1 where there is a code, else 0
    tied: Any  # the same: 1 where the sample has codes in several views, too
    n_codes: Any  # settings × samples
    constant: Any  # settings

    def masses(self, consensus_weight: float) -> Any:
        """Return d + λ1 for tied codes and d for others."""
        return self.degrees + consensus_weight * self.tied

    def mean_codes(self, codes: Any) -> Any:
        """Return the mean of the codes of every sample."""
        return codes.sum(dim=1) / self.n_codes.clamp(min=1)[:, :, None]


def groups_together(
    prepared: Any,
    settings: Sequence[Setting],
    n_clusters: int,
    n_init: int,
    n_vectors: int,
    seed: int,
    limits: IterationLimits,
) -> list[Array | None]:
    """Return the groups of settings that share views, weights and components; None where numbers are too large.

    Parameters
    ----------
    prepared : ViewGraphs
        The scaled views of few samples and their graphs, on a device.
    settings : sequence of Setting
        The settings.
    n_clusters : int
        Number of groups.
    n_init : int
        Number of restarts of k-means.
    n_vectors : int
        Number of leading singular vectors that stand for a view.
    seed : int
        Random seed of k-means.
    limits : IterationLimits
        When iterations stop.
    """
    weights = Weights(settings[0].consensus_weight, settings[0].sparsity_weight)
    try:
        problems = _smooth(prepared, settings, n_vectors)
        consensus, is_finite = _iterate(problems, _start(problems, settings[0].n_components, weights), weights, limits)
        points = _balanced_rows(consensus)
        is_finite = is_finite & points.any(dim=2).any(dim=1)
        labels = kmeans_of_tensors(points, n_clusters, n_init, seed)[0]
    except torch.linalg.LinAlgError:  # numbers that are not finite
        return [None] * len(settings)
    found = host(torch.cat([labels, is_finite[:, None].to(labels.dtype)], dim=1))
    return [own[:-1].astype(np.int32) if own[-1] else None for own in found]


def _smooth(prepared: Any, settings: Sequence[Setting], n_vectors: int) -> _Problems:
    """Smooth all views by the longest reach of every bridge; shorter reaches are passed on the way."""
    backend, view_weights = prepared.backend, prepared.view_weights
    views = [_leading_scores(rows.float(), n_vectors) for rows in backend.scaled]
    n_samples, n_views, width = backend.views.n_samples, len(views), max(rows.shape[1] for rows in views)
    device = views[0].device
    start = torch.zeros((n_samples, n_views * width + n_views + 1), device=device)
    squares = torch.zeros(n_samples, dtype=torch.float64, device=device)
    for k, (rows, given, weight) in enumerate(zip(views, backend.scaled, view_weights, strict=True)):
        samples = torch.as_tensor(backend.views.rows(k), device=device)
        start[samples, k * width : k * width + rows.shape[1]] = rows
        start[samples, n_views * width + k] = 1
        squares[samples] += weight * given.double().square().sum(dim=1)
    start[:, -1] = 1
    wanted = {(setting.bridge, setting.reach) for setting in settings}
    found = {}
    for bridge in {bridge for bridge, _ in wanted}:
        graph, total = prepared.graphs[bridge], start
        graph = replace(graph, values=graph.values.float())
        for n_steps in range(1, max(reach for own, reach in wanted if own == bridge) + 1):
            total = (graph @ total).add_(start)
            if (bridge, n_steps) in wanted:
                found[bridge, n_steps] = total
    total = torch.stack([found[setting.bridge, setting.reach] for setting in settings])
    of_views = torch.tensor(view_weights, device=device)
    smoothed = total[:, :, : n_views * width].unflatten(2, (n_views, width)).transpose(1, 2)
    smoothed = smoothed * of_views[:, None, None]
    degrees = total[:, :, n_views * width : -1].transpose(1, 2) * of_views[:, None]
    has_code = degrees > 0
    n_codes = has_code.sum(dim=1)
    columns = torch.cat([torch.arange(rows.shape[1]) + k * width for k, rows in enumerate(views)]).to(device)
    return _Problems(
        smoothed,
        columns,
        degrees.where(has_code, 1.0),
        has_code.float(),
        (has_code & (n_codes >= 2)[:, None]).float(),
        n_codes.float(),
        total[:, :, -1].double() @ squares,
    )


def _leading_scores(rows: Any, n_most: int) -> Any:
    """Return rows on their leading right singular vectors; narrow rows as they are."""
    if rows.shape[1] <= n_most:
        return rows
    wide = rows.double()
    return rows @ torch.linalg.eigh(wide.T @ wide)[1].flip(1)[:, :n_most].float()


# -- start and iterations --------------------------------------------------------------------------------------


def _start(problems: _Problems, n_components: int, weights: Weights) -> Any:
    """Return starting codes; see :func:`gapview.factorization.starts.data_start`."""
    columns, width, mass = problems.columns, problems.smoothed.shape[3], problems.masses(weights.consensus)
    share = (problems.has_code * problems.degrees / mass).sum(dim=1)
    share = share.where(share > 0, 1.0)
    means = _side_by_side(problems.smoothed / problems.degrees[..., None], columns)
    weighted = problems.smoothed / mass[..., None]
    pulled = _side_by_side(weighted * problems.tied[..., None], columns)
    quadratic = _products(pulled, pulled * (weights.consensus / share)[..., None])
    covariance = _products(means, means)
    view = torch.div(columns, width, rounding_mode="floor")
    shared = _products(problems.has_code.transpose(1, 2), problems.has_code.transpose(1, 2)).clamp(min=1)
    covariance /= shared[:, view][:, :, view]
    own = _products(problems.smoothed, weighted)  # of every view with itself
    places = columns - view * width
    quadratic += own[:, view[:, None], places[:, None], places] * (view[:, None] == view)
    n_directions = min(n_components, len(columns))
    leading = torch.linalg.eigh(covariance)[1].flip(2)[:, :, :n_directions]
    bases = _improved(_apart(leading.transpose(1, 2), problems), quadratic, problems)
    projected = problems.smoothed @ bases.float().transpose(2, 3)
    consensus = (projected / mass[..., None]).sum(dim=1) / share[..., None]
    codes = (projected + weights.consensus * problems.tied[..., None] * consensus[:, None]) / mass[..., None]
    codes = codes * problems.has_code[..., None]
    return torch.nn.functional.pad(codes, (0, n_components - n_directions))


def _products(one: Any, other: Any) -> Any:
    """Return the products of columns, summed over the rows, in double precision."""
    return (one.transpose(-1, -2) @ other).double()


def _side_by_side(values: Any, columns: Any) -> Any:
    """Return the columns of all views side by side: settings × rows × columns."""
    return values.transpose(1, 2).flatten(2)[:, :, columns]


def _apart(bases: Any, problems: _Problems) -> Any:
    """Return bases of all views side by side as orthonormal bases of every view: settings × views × K × columns."""
    n_settings, n_views, _, width = problems.smoothed.shape
    whole = bases.new_zeros((n_settings, bases.shape[1], n_views * width))
    whole[:, :, problems.columns] = bases
    return _orthonormal(whole.unflatten(2, (n_views, width)).transpose(1, 2))


def _orthonormal(slopes: Any) -> Any:
    """Return the nearest matrices with orthonormal rows, as far as the slopes have directions."""
    slopes = slopes.double()
    slopes = slopes / slopes.abs().amax(dim=(2, 3), keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    values, vectors = torch.linalg.eigh(slopes @ slopes.transpose(2, 3))
    kept = values > _NEARLY_SINGULAR * values[..., -1:]
    inverse = torch.where(kept, values, 1.0).rsqrt() * kept
    return (vectors * inverse[..., None, :]) @ (vectors.transpose(2, 3) @ slopes)


def _improved(bases: Any, quadratic: Any, problems: _Problems) -> Any:
    """Return bases that increase the quadratic form; see :func:`gapview.factorization.starts.data_start`."""
    value = torch.full_like(quadratic[:, 0, 0], -torch.inf)
    active = torch.ones_like(value, dtype=torch.bool)
    for done in range(_MOST_IMPROVED):
        stacked = _side_by_side(bases, problems.columns)
        slopes = stacked @ quadratic
        before, value = value, torch.where(active, (slopes * stacked).sum(dim=(1, 2)), value)
        active = active & (value - before > _TOLERANCE * value.abs())
        if done % _STEPS_BETWEEN == 0 and not bool(active.any()):
            break
        bases = torch.where(active[:, None, None, None], _apart(slopes, problems), bases)
    return bases


def _iterate(problems: _Problems, codes: Any, weights: Weights, limits: IterationLimits) -> tuple[Any, Any]:
    """Run Algorithm 1 for all settings; return the mean codes, and whether the objectives are finite.

    A setting that has converged keeps its codes.
    """
    mass, tied = problems.masses(weights.consensus), problems.tied[..., None]
    half, ties = weights.sparsity / 2, weights.consensus * tied
    active = torch.ones_like(problems.constant, dtype=torch.bool)
    objective = torch.full_like(problems.constant, torch.inf)
    consensus = problems.mean_codes(codes)
    for _ in range(limits.max_iter):
        bases = _orthonormal(codes.transpose(2, 3) @ problems.smoothed).float()
        drawn = problems.smoothed @ bases.transpose(2, 3) + ties * consensus[:, None]
        new = (drawn - drawn.clamp(-half, half)) / mass[..., None] * problems.has_code[..., None]
        before, after = consensus, problems.mean_codes(new)
        value = -_total(new.square() * problems.degrees[..., None]) - _total(ties * (new - after[:, None]).square())
        value += 2 * _total(ties * ((before - after) * after)[:, None])
        value += problems.constant
        codes = torch.where(active[:, None, None, None], new, codes)
        consensus = torch.where(active[:, None, None], after, consensus)
        change = (objective - value).abs()
        is_settled = (change <= limits.tol * objective.abs()) & objective.isfinite()
        objective = torch.where(active, value, objective)
        active = active & ~is_settled & value.isfinite()
        if not bool(active.any()):
            break
    return consensus, objective.isfinite()


def _total(values: Any) -> Any:
    return values.flatten(1).sum(dim=1, dtype=torch.float64)


# -- groups ----------------------------------------------------------------------------------------------------


def _balanced_rows(consensus: Any) -> Any:
    """Return balanced rows of unit length; see :func:`gapview.clusters.balancing`."""
    size = consensus.abs().amax(dim=(1, 2), keepdim=True)
    shrunk = (consensus / size.where(size > 0, 1.0)).double()
    values, vectors = torch.linalg.eigh(shrunk.transpose(1, 2) @ shrunk)
    n_components = consensus.shape[2]
    least = max((n_components * torch.finfo(consensus.dtype).eps) ** 2, n_components * torch.finfo(torch.float64).eps)
    kept = values > values[:, -1:] * least
    matrix = vectors * (torch.where(kept, values, 1.0) ** -0.25 * kept)[:, None]
    points = shrunk @ matrix
    lengths = points.norm(dim=2, keepdim=True)
    return (points / lengths.where(lengths > 0, 1.0)).float()
