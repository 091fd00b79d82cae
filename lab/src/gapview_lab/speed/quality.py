"""Effect of approximate neighbours and single precision on accuracy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gapview.estimators import GRMF, BridgedGRMF
from gapview.graph.neighbors import Search
from gapview.metrics import clustering_accuracy
from gapview.utils.types import Array
from gapview.views import Views

from .results import Measured

__all__ = ["BY_CHANCE", "EXACT", "measure_quality"]

EXACT = "exact neighbours, float64"
BY_CHANCE = "GRMF, random start"  # shown, but not judged: a last digit decides in which local minimum it ends
_MODELS: Mapping[str, Callable[..., Any]] = {
    BY_CHANCE: GRMF,
    "GRMF, start from the data": lambda count, **more: GRMF(count, init="data", **more),
    "BridgedGRMF, fixed setting": lambda count, **more: BridgedGRMF(count, selection="fixed", **more),
}


def measure_quality(hidden: Sequence[tuple[Views, Array]], n_clusters: int) -> list[Measured]:
    """Compare mean accuracies over all ways of hiding views; only neighbours and precision differ."""
    found = []
    for name, make in _MODELS.items():
        exact, fast, recalls = [], [], []
        for seed, (views, target) in enumerate(hidden):
            model = make(n_clusters, search="exact", random_state=seed).fit(as_type(views, np.float64))
            exact.append(100 * clustering_accuracy(target, model.labels_))
            model = make(n_clusters, search=Search("approximate"), random_state=seed).fit(as_type(views, np.float32))
            fast.append(100 * clustering_accuracy(target, model.labels_))
            recalls += [report.recall for report in model.neighbor_search_]
        note = f"mean over {len(hidden)}; recall at least {min(recalls):.3f}"
        if len(hidden) > 1:  # tells a loss from chance: a start that ends elsewhere moves a score by points
            error = np.std(np.subtract(fast, exact), ddof=1) / len(hidden) ** 0.5
            note += f"; standard error of the difference {error:.2f}"
        found.append(Measured.points(name, float(np.mean(fast)), EXACT, float(np.mean(exact)), note))
    return found


def as_type(views: Views, dtype: Any) -> Views:
    """Return the same views in numbers of another type."""
    return views.with_matrices([matrix.astype(dtype) for matrix in views.matrices])
