"""k-means on tensors: all restarts at once, since a device is idle with one."""

from __future__ import annotations

from typing import Any

__all__ = ["kmeans_of_tensor"]

_MOST_ITERATIONS = 300
_N_SEEDED = 2**15  # rows among which the first centres are looked for
_N_DISTANCES = 2**28  # held at a time
_ROUNDING = 1e-6
_TOLERANCE = 1e-4  # of the variance of the points, as scikit-learn has it


def kmeans_of_tensor(points: Any, n_clusters: int, n_init: int, seed: int) -> tuple[Any, Any]:
    """Find groups of rows by Lloyd's algorithm from ``n_init`` starts; the start with the smallest inertia counts.

    First centres are drawn as in k-means++ (Arthur and Vassilvitskii, 2007), among a sample of the rows.

    Returns
    -------
    labels, centers
        Tensors on the device of the points.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(points), generator=generator)[:_N_SEEDED].to(points.device)
    centers = torch.stack([_spread_out(points[chosen], n_clusters, generator) for _ in range(n_init)])
    enough = _TOLERANCE * float(points.var(dim=0, correction=0).mean())
    for _ in range(_MOST_ITERATIONS):
        _, sums, counts = _assigned(points, centers)
        moved = torch.where(counts[..., None] > 0, sums / counts.clamp(min=1)[..., None], centers)
        change = float((moved - centers).square().sum(dim=(1, 2)).max())
        centers = moved
        if change <= enough:
            break
    inertia = _assigned(points, centers)[0]
    # The first of those that differ by no more than rounding, which may differ from run to run
    best = centers[int((inertia <= inertia.min() * (1 + _ROUNDING)).int().argmax())]
    return _nearest_center(points, best[None])[1][:, 0], best


def _spread_out(points: Any, n_clusters: int, generator: Any) -> Any:
    import torch

    first = int(torch.randint(len(points), (1,), generator=generator))
    centers = [points[first]]
    distances = (points - centers[0]).square().sum(dim=1)
    for _ in range(1, n_clusters):
        ends = distances.double().cumsum(dim=0)
        drawn = torch.rand(1, generator=generator, dtype=torch.float64).to(points.device) * ends[-1]
        centers.append(points[torch.searchsorted(ends, drawn).clamp(max=len(points) - 1)[0]])
        distances = torch.minimum(distances, (points - centers[-1]).square().sum(dim=1))
    return torch.stack(centers)


def _nearest_center(points: Any, centers: Any) -> tuple[Any, Any]:
    """Return for every row and start the squared distance of the nearest centre, and which it is."""
    n_starts, n_clusters, _ = centers.shape
    flat = centers.reshape(n_starts * n_clusters, -1)
    squares = flat.square().sum(dim=1) - 2 * (points @ flat.T)
    smallest, labels = squares.reshape(len(points), n_starts, n_clusters).min(dim=2)
    return smallest + points.square().sum(dim=1, keepdim=True), labels


def _assigned(points: Any, centers: Any) -> tuple[Any, Any, Any]:
    """Return for every start its inertia, and sum and number of the rows nearest to each centre."""
    import torch

    n_starts, n_clusters, width = centers.shape
    inertia = torch.zeros(n_starts, dtype=torch.float64, device=points.device)
    sums = torch.zeros((n_starts * n_clusters, width), dtype=points.dtype, device=points.device)
    counts = torch.zeros(n_starts * n_clusters, dtype=points.dtype, device=points.device)
    groups = torch.arange(n_clusters, device=points.device)
    for block in points.split(max(1, _N_DISTANCES // (n_starts * n_clusters))):
        distances, labels = _nearest_center(block, centers)
        inertia += distances.clamp(min=0).sum(dim=0, dtype=torch.float64)
        for start in range(n_starts):
            # A product adds up in the same order every time, which adding row by row on a device does not
            members = (labels[:, start, None] == groups).to(points.dtype)
            part = slice(start * n_clusters, (start + 1) * n_clusters)
            sums[part] += members.T @ block
            counts[part] += members.sum(dim=0)
    return inertia, sums.reshape(centers.shape), counts.reshape(n_starts, n_clusters)
