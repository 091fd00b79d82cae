"""The methods and the settings that are tried: nine each, one for methods without settings.

The paper's seven methods come first, then those without figures in print.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from gapview.baselines import (
    DCNMF,
    GPMVC,
    IMG,
    PVC,
    BestSingleView,
    BipartiteSpectral,
    Concat,
    CoRegularizedSpectral,
    MeanFilledSpectral,
    RobustMultiViewKMeans,
)
from gapview.estimators import GRMF, MultiViewClusterer

__all__ = ["COMPARED", "IN_SIGHT", "NOT_RUN", "Compared", "Setting", "as_setting", "grid_of", "read_setting"]

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """A method, the settings tried with labels, and the setting used without labels."""

    name: str
    make: Callable[..., MultiViewClusterer]
    grid: tuple[Setting, ...]
    fixed: Setting
    options: Setting = field(default_factory=dict)  # the same in every run
    nonnegative: bool = False  # made for values of at least 0: views with negative ones are shifted
    large_options: Setting = field(default_factory=dict)  # as well, on data of thousands of samples
    note: str = ""


def grid_of(**values: tuple[Any, ...]) -> tuple[Setting, ...]:
    """Return every combination of the values."""
    return tuple(dict(zip(values, combination, strict=True)) for combination in product(*values.values()))


IN_SIGHT = "the settings tried were drawn up with scores in sight and in its favour"
COMPARED = {
    method.name: method
    for method in (
        Compared(
            "BSV",
            BestSingleView,
            ({},),
            {},
            note="nothing to set; by labels the better view is taken in every single run, not only on fold 0",
        ),
        Compared("Concat", Concat, ({},), {}, note="nothing to set"),
        Compared(
            "PVC",
            PVC,
            grid_of(sparsity_weight=(0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)),
            {"sparsity_weight": 1e-2},
            nonnegative=True,
        ),
        Compared(
            "IMG",
            IMG,
            grid_of(smoothness_weight=(0.1, 1.0, 10.0), graph_weight=(1.0, 10.0, 100.0)),
            {"smoothness_weight": 1.0, "graph_weight": 100.0},
            large_options={"tol": 1e-4},
            note="its cost grows with the cube of the samples; with thousands of them it stops at tol = 1e-4",
        ),
        Compared(
            "DCNMF",
            DCNMF,
            grid_of(graph_weight=(0.02, 0.1, 1.0), sparsity_weight=(0.0, 1e-3, 1e-2)),
            {"graph_weight": 0.1, "sparsity_weight": 1e-2},
            nonnegative=True,
            note="a reconstruction from two sentences, its program and paper were not at hand",
        ),
        Compared(
            "GPMVC",
            GPMVC,
            grid_of(consensus_weight=(0.03, 0.1, 1.0), graph_weight=(0.01, 0.1, 1.0)),
            {"consensus_weight": 0.1, "graph_weight": 0.1},
            nonnegative=True,
        ),
        Compared(
            "GRMF",
            GRMF,
            grid_of(consensus_weight=(1.0, 10.0, 100.0), sparsity_weight=(1e-5, 1e-3, 1e-1)),
            {"consensus_weight": 100.0, "sparsity_weight": 1e-3},
            options={"tol": 0.0, "max_iter": 100},
            note="the paper's method: 100 iterations from a random start",
        ),
        Compared(
            "CoRegularizedSpectral",
            CoRegularizedSpectral,
            (
                *grid_of(form=("pairwise",), consensus_weight=(0.01, 0.05, 0.1, 0.5, 1.0)),
                *grid_of(form=("centroid",), consensus_weight=(0.01, 0.05, 0.1, 0.5)),
            ),
            {"form": "pairwise", "consensus_weight": 0.01},
            note=IN_SIGHT,
        ),
        Compared(
            "MeanFilledSpectral",
            MeanFilledSpectral,
            (
                *grid_of(affinity=("rbf",), consensus_weight=(1e-3, 3e-3, 1e-2, 3e-2, 1e-1)),
                *grid_of(affinity=("nearest_neighbors",), consensus_weight=(1e-2, 5e-2, 1e-1, 5e-1)),
            ),
            {"affinity": "rbf", "consensus_weight": 1e-2},
            note=f"a reconstruction from its description in the paper; {IN_SIGHT}",
        ),
        Compared(
            "RobustMultiViewKMeans",
            RobustMultiViewKMeans,
            grid_of(weight_exponent=(1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)),
            {"weight_exponent": 5.0},
        ),
        Compared(
            "BipartiteSpectral",
            BipartiteSpectral,
            grid_of(n_anchors=("auto", 50, 500), n_neighbors=(3, 5, 10)),
            {"n_anchors": "auto", "n_neighbors": 5},
            note=IN_SIGHT,
        ),
    )
}
# Methods that the protocol leaves no data for
NOT_RUN = {"KernelCompletion": "not run: needs a complete view, and both views have gaps at every paired rate"}


def as_setting(setting: Setting) -> str:
    """Write a setting as one short line that is the same for the same setting."""
    return json.dumps(dict(setting), sort_keys=True)


def read_setting(text: str) -> dict[str, Any]:
    """Return the setting of such a line."""
    return dict(json.loads(text))
