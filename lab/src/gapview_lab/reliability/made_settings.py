"""Random settings for every clusterer, mostly valid and short runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from gapview.scaling import SCALES
from gapview.utils.types import Array, Matrix

__all__ = ["METHODS", "settings_for"]

# Every clusterer, and how often it is drawn
METHODS = {
    "GRMF": 35,
    "BridgedGRMF": 25,
    "PVC": 6,
    "IMG": 5,
    "DCNMF": 7,
    "GPMVC": 6,
    "MIC": 6,
    "BestSingleView": 4,
    "Concat": 3,
    "ImputedSpectral": 4,
    "ImputedKMeans": 3,
    "CoRegularizedSpectral": 6,
    "MeanFilledSpectral": 5,
    "RobustMultiViewKMeans": 6,
    "BipartiteSpectral": 6,
    "KernelCompletion": 5,
}
_WEIGHTS = (0.0, 1e-12, 1e-5, 1e-3, 0.1, 1.0, 10.0, 100.0, 1e6, 1e30)


class _Chance:
    """A source of settings."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def one_of(self, *values: Any) -> Any:
        """Draw one of some values, of any type."""
        return values[int(self.rng.integers(len(values)))]

    def often(self, usual: Any, *others: Any, share: float = 0.6) -> Any:
        """Draw the usual value, or with lower probability one of the others."""
        return usual if self.rng.random() < share else self.one_of(*others)

    def integer(self, low: int, high: int) -> int:
        """Draw an integer."""
        return int(self.rng.integers(low, high + 1))


def settings_for(
    method: str, rng: np.random.Generator, views: list[Matrix], mask: Array, *, has_torch: bool
) -> dict[str, Any]:
    """Draw settings for a method on these views."""
    chance = _Chance(rng)
    n_samples, n_clusters = mask.shape[0], _n_clusters(chance, mask.shape[0])
    if n_samples > 60:  # as many groups as hundreds of samples would take all the time there is
        n_clusters = min(n_clusters, 60 if method in ("GRMF", "BridgedGRMF") else 20)
    found: dict[str, Any] = {
        "n_clusters": n_clusters,
        "scale": chance.often("unit", *SCALES),
        "partial_rows": chance.often("fill", "drop", "raise"),
        "random_state": chance.integer(0, 2**31 - 1),
    }
    if method == "GRMF":
        found |= _of_grmf(chance, views, mask, n_clusters)
    elif method == "BridgedGRMF":
        found |= _of_bridged(chance, len(views), n_samples, n_clusters)
    else:
        found |= _OF_RIVALS[method](chance, n_samples, n_clusters)
    if method in ("GRMF", "BridgedGRMF"):
        found["search"] = chance.often("auto", "exact", "approximate", share=0.9)
        place = rng.random()
        if place < 0.05 and has_torch and not any(sparse.issparse(view) for view in views):
            found["device"] = "cpu"
        elif place < 0.1:
            found["memory_budget"] = chance.one_of("1GB", "200MB", "1MB", 1000)
    return found


def _n_clusters(chance: _Chance, n_samples: int) -> int:
    near = chance.often(max(1, n_samples - 1), n_samples, n_samples // 2 + 1, n_samples + 1, share=0.4)
    return int(chance.often(chance.integer(1, min(6, max(1, n_samples // 2))), near, share=0.85))


def _n_components(chance: _Chance, n_samples: int, usual: Any) -> Any:
    return chance.often(usual, 1, 2, chance.integer(1, 30), n_samples, n_samples + 3, share=0.7)


def _n_neighbors(chance: _Chance, n_samples: int, usual: Any = "auto") -> Any:
    return chance.often(usual, 1, 2, chance.integer(1, 12), max(1, n_samples - 1), n_samples + 5, share=0.7)


def _of_grmf(chance: _Chance, views: list[Matrix], mask: Array, n_clusters: int) -> dict[str, Any]:
    n_samples = mask.shape[0]
    n_components = _n_components(chance, min(n_samples, 100), None)
    found = {
        "n_components": n_components,
        "consensus_weight": chance.often(100.0, *_WEIGHTS, 1e300),
        "sparsity_weight": chance.often(1e-3, *_WEIGHTS, share=0.75),
        "n_neighbors": _n_neighbors(chance, n_samples),
        "init": chance.one_of("random", "random", "data"),
        "n_init": chance.often(1, 2, 5, share=0.8),
        "max_iter": chance.often(chance.integer(2, 25), 1, 100, share=0.85),
        "tol": chance.often(1e-5, 0.0, 1e-12, 1.0),
    }
    if chance.rng.random() < 0.06:
        shape = (n_samples, n_components or n_clusters)
        size = chance.one_of(1.0, 0.0, 1e-200, 1e100)
        found["init"] = [chance.rng.normal(size=shape) * size for _ in views]
    if chance.rng.random() < 0.06:
        found["graph"] = [_own_graph(chance, n_samples) for _ in views]
    return found


def _own_graph(chance: _Chance, n_samples: int) -> Any:
    graph = sparse.random_array((n_samples, n_samples), density=0.2, rng=chance.rng)
    graph = sparse.csr_array(graph * chance.one_of(1.0, 1e-100, 1e100))
    return chance.one_of(graph, graph + graph.T, graph.toarray())


def _of_bridged(chance: _Chance, n_views: int, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return {
        "n_clusters": chance.often(n_clusters, "auto", share=0.93),
        "n_components": _n_components(chance, n_samples, "auto"),
        "consensus_weight": chance.often("auto", *_WEIGHTS, share=0.75),
        "sparsity_weight": chance.often("auto", *_WEIGHTS, share=0.8),
        "n_neighbors": _n_neighbors(chance, n_samples),
        "bridge": chance.often("auto", "union", "joint", "both", share=0.4),
        "reach": chance.often("auto", 1, 2, 7, 40, share=0.4),
        "scale": chance.often("auto", *SCALES, [chance.one_of(*SCALES) for _ in range(n_views)], share=0.5),
        "view_weights": chance.often(
            "auto", None, [float(10.0 ** chance.integer(-5, 5)) for _ in range(n_views)], share=0.5
        ),
        "selection": chance.often("fixed", "auto", share=0.75),
        "max_clusters": chance.integer(3, 5),
        "max_iter": chance.often(chance.integer(2, 20), 1, 60, share=0.9),
        "tol": chance.often(1e-5, 0.0, 1e-2),
    }


def _of_factors(chance: _Chance, n_samples: int) -> dict[str, Any]:
    return {
        "n_components": _n_components(chance, min(n_samples, 20), None),  # steps take time in the square of it
        "max_iter": chance.often(chance.integer(2, 8), 1, 30, share=0.9),
        "tol": chance.often(1e-6, 0.0, 1e-2),
    }


def _of_pvc(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return _of_factors(chance, n_samples) | {
        "sparsity_weight": chance.often(1e-3, *_WEIGHTS, share=0.75),
        "scale_penalty": chance.one_of(True, False),
        "nonnegative": chance.one_of(None, None, "raise", "shift", "clip"),
    }


def _of_img(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return _of_factors(chance, n_samples) | {
        "ridge_weight": chance.often(1e-2, *_WEIGHTS, share=0.75),
        "smoothness_weight": chance.often(1.0, *_WEIGHTS, share=0.75),
        "graph_weight": chance.often(100.0, *_WEIGHTS, share=0.75),
        "basis_from": chance.one_of("complete", "all"),
        "output": chance.one_of("cut", "codes"),
    }


def _of_dcnmf(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return _of_factors(chance, n_samples) | {
        "consensus": chance.one_of("hard", "soft"),
        "graph_weight": chance.often(0.1, *_WEIGHTS, share=0.75),
        "sparsity_weight": chance.often(1e-2, *_WEIGHTS, share=0.75),
        "consensus_weight": chance.often(10.0, *_WEIGHTS, share=0.75),
        "n_neighbors": _n_neighbors(chance, n_samples, chance.one_of("auto", 2)),
        "nonnegative": chance.one_of("raise", "shift", "clip"),
        "max_iter": chance.often(chance.integer(2, 40), 1, 100, share=0.9),
    }


def _of_gpmvc(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return _of_factors(chance, n_samples) | {
        "consensus_weight": chance.often(0.1, *_WEIGHTS, share=0.75),
        "graph_weight": chance.often(0.1, *_WEIGHTS, share=0.75),
        "n_neighbors": _n_neighbors(chance, n_samples, chance.one_of("auto", 2)),
        "nonnegative": chance.one_of("raise", "shift", "clip"),
        "init": chance.one_of("aligned", "aligned", "independent"),
        "max_iter": chance.integer(1, 6),
        "n_steps": chance.integer(1, 15),
    }


def _of_mic(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return _of_factors(chance, n_samples) | {
        "consensus_weight": chance.often(0.01, *_WEIGHTS, share=0.75),
        "sparsity_weight": chance.often(0.01, *_WEIGHTS, share=0.75),
        "normalize": chance.one_of(True, False),
        "nonnegative": chance.one_of("raise", "shift", "clip"),
        "max_iter": chance.integer(1, 6),
        "n_steps": chance.integer(1, 15),
    }


def _of_single(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return {"n_neighbors": _n_neighbors(chance, n_samples), "n_init": chance.integer(1, 4)}


def _of_concat(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return {"n_init": chance.integer(1, 4)}


def _of_spectral(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return {
        "n_neighbors": _n_neighbors(chance, n_samples, 5),
        "n_graph_neighbors": _n_neighbors(chance, n_samples, 10),
    }


def _of_imputed(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return {"n_neighbors": _n_neighbors(chance, n_samples, 5), "n_init": chance.integer(1, 4)}


def _of_coupled(chance: _Chance, n_samples: int) -> dict[str, Any]:
    return {
        "consensus_weight": chance.often(0.05, *_WEIGHTS, share=0.6),
        "affinity": chance.one_of("nearest_neighbors", "rbf"),
        "n_neighbors": _n_neighbors(chance, n_samples),
        "max_iter": chance.often(chance.integer(2, 20), 1, 100, share=0.9),
        "tol": chance.often(1e-6, 0.0, 1e-2),
        "max_samples": chance.often(5000, None, 20, share=0.8),
    }


def _of_coregularized(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return _of_coupled(chance, n_samples) | {"form": chance.one_of("pairwise", "centroid")}


def _of_mean_filled(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return _of_coupled(chance, n_samples) | {"filled_weight": chance.often("auto", 0.0, 1e-12, 0.5, 1.0)}


def _exponent(chance: _Chance) -> float:
    return float(chance.often(5.0, 1 + 1e-12, 1.001, 1.5, 2.0, 100.0, 1e6, 1e300))


def _of_robust(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return {
        "weight_exponent": _exponent(chance),
        "n_init": chance.integer(1, 4),
        "max_iter": chance.often(chance.integer(2, 25), 1, 100, share=0.85),
        "tol": chance.often(1e-6, 0.0, 1e-2),
    }


def _of_bipartite(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return {
        "n_anchors": chance.often("auto", 1, 2, chance.integer(1, 30), n_samples, n_samples + 5),
        "n_neighbors": _n_neighbors(chance, n_samples, 5),
        "weight_exponent": _exponent(chance),
        "max_iter": chance.often(chance.integer(2, 25), 1, 50, share=0.85),
        "tol": chance.often(1e-6, 0.0, 1e-2),
    }


def _of_completion(chance: _Chance, n_samples: int, n_clusters: int) -> dict[str, Any]:
    return {
        "n_components": _n_components(chance, n_samples, None),
        "ridge_weight": chance.often(1.0, *_WEIGHTS, share=0.7),
        "max_samples": chance.often(5000, None, 20, share=0.8),
    }


_OF_RIVALS = {
    "PVC": _of_pvc,
    "IMG": _of_img,
    "DCNMF": _of_dcnmf,
    "GPMVC": _of_gpmvc,
    "MIC": _of_mic,
    "BestSingleView": _of_single,
    "Concat": _of_concat,
    "ImputedSpectral": _of_spectral,
    "ImputedKMeans": _of_imputed,
    "CoRegularizedSpectral": _of_coregularized,
    "MeanFilledSpectral": _of_mean_filled,
    "RobustMultiViewKMeans": _of_robust,
    "BipartiteSpectral": _of_bipartite,
    "KernelCompletion": _of_completion,
}
