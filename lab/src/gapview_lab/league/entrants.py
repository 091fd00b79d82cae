"""The methods of the league, and the settings tried with labels: at most twelve each, the default among them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gapview.baselines import (
    DCNMF,
    GPMVC,
    IMG,
    MIC,
    PVC,
    BestSingleView,
    BipartiteSpectral,
    Concat,
    CoRegularizedSpectral,
    ImputedKMeans,
    ImputedSpectral,
    KernelCompletion,
    MeanFilledSpectral,
    RobustMultiViewKMeans,
)
from gapview.errors import ParameterError
from gapview.estimators import GRMF, BridgedGRMF

from ..paper.methods import IN_SIGHT, Setting, as_setting, grid_of
from . import rivals

__all__ = ["BY_LABELS", "ENTRANTS", "N_SETTINGS", "QUICK_METHODS", "Entrant", "choose_entrants"]

N_SETTINGS = 12  # the most that any method is given, so that none is tuned harder than the others
BY_LABELS = "by labels"  # BestSingleView takes the view that agrees best with the labels, no setting of its own
_SCALES = ("unit", "standard+unit")


@dataclass(frozen=True)
class Entrant:
    """A method that takes part; without labels it runs at its defaults."""

    name: str
    make: Callable[..., Any]  # make(n_clusters, random_state=…, **settings) has fit(views), and then labels_
    tried: tuple[Setting, ...] = ({},)  # with labels; each says only what differs from the default
    options: Setting = field(default_factory=dict)  # the same in every run
    note: str = ""
    cost: float = 1.0  # rough seconds on a thousand samples of a thousand features
    is_ours: bool = False  # not a rival of ours
    needs_complete_view: bool = False  # absent where every view has gaps

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings tried with labels, the default first."""
        return tuple(map(as_setting, self.tried))

    @property
    def program(self) -> str:
        """Package and version; the package alone if it is not installed."""
        package = getattr(self.make, "distribution", "gapview")
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            return str(package)


def _tried(default: Setting, settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """Return settings without default values; the default setting comes first."""
    short = [{name: value for name, value in one.items() if default.get(name, one) != value} for one in settings]
    return ({}, *(one for one in short if one))


def _own(make: Callable[..., Any], settings: Iterable[Setting], **more: Any) -> Entrant:
    default = {name: parameter.default for name, parameter in inspect.signature(make).parameters.items()}
    return Entrant(make.__name__, make, _tried(default, settings), **more)


def _rival(make: type[rivals.Rival], default: Setting, settings: Iterable[Setting], **more: Any) -> Entrant:
    return Entrant(make.__name__, make, _tried({"scale": "unit"} | dict(default), settings), **more)


_SHIFTED = "made for values of at least 0: views with negative ones have their lowest value subtracted"
_ALL_SCALES = ("unit", "standard+unit", "standard", None)
_BRIDGES = ("both", "union", "joint")

ENTRANTS: Mapping[str, Entrant] = {
    entrant.name: entrant
    for entrant in (
        Entrant(
            "BridgedGRMF",
            BridgedGRMF,
            note="chooses its settings itself, without labels; nothing is left to tune",
            cost=10.0,
            is_ours=True,
        ),
        Entrant(
            "BridgedGRMF-fixed",
            BridgedGRMF,
            _tried(
                {"scale": "auto", "bridge": "both", "reach": 4},
                (
                    *grid_of(bridge=_BRIDGES, reach=(1, 4, 16)),
                    *grid_of(scale=("standard+unit",), bridge=_BRIDGES),
                ),
            ),
            options={"selection": "fixed"},
            note="one setting for all data",
            cost=2.0,
            is_ours=True,
        ),
        _own(
            GRMF,
            grid_of(scale=_SCALES, consensus_weight=(1.0, 10.0, 100.0), sparsity_weight=(1e-3, 1e-1)),
            note="the paper's method",
        ),
        _own(
            BestSingleView,
            (*grid_of(scale=_ALL_SCALES), *grid_of(scale=_ALL_SCALES, view=(BY_LABELS,))),
            note="has no more to set; with labels the better view is taken, too",
            cost=0.5,
        ),
        _own(Concat, grid_of(scale=_ALL_SCALES), note="has no more to set", cost=0.5),
        _own(ImputedKMeans, grid_of(scale=_ALL_SCALES, n_neighbors=(5, 10, 20))),
        _own(
            ImputedSpectral,
            grid_of(scale=_SCALES, n_neighbors=(5, 20), n_graph_neighbors=(5, 10, 20)),
        ),
        _own(PVC, grid_of(scale=_SCALES, nonnegative=(None, "shift"), sparsity_weight=(1e-4, 1e-3, 1e-2))),
        _own(
            IMG,
            grid_of(scale=_SCALES, smoothness_weight=(0.1, 1.0, 10.0), graph_weight=(10.0, 100.0)),
            note="its cost grows with the cube of the samples, of which it takes 5000 at most",
            cost=10.0,
        ),
        _own(
            DCNMF,
            grid_of(scale=_SCALES, graph_weight=(0.02, 0.1, 1.0), sparsity_weight=(1e-3, 1e-2)),
            options={"nonnegative": "shift"},
            note=_SHIFTED,
            cost=2.0,
        ),
        _own(
            GPMVC,
            grid_of(scale=_SCALES, consensus_weight=(0.03, 0.1, 1.0), graph_weight=(0.1, 1.0)),
            options={"nonnegative": "shift"},
            note=_SHIFTED,
            cost=10.0,
        ),
        _own(
            MIC,
            grid_of(scale=_SCALES, consensus_weight=(1e-3, 1e-2, 1e-1), sparsity_weight=(1e-2, 1e-1)),
            options={"nonnegative": "shift"},
            note=_SHIFTED,
            cost=10.0,
        ),
        _own(
            CoRegularizedSpectral,
            grid_of(scale=_SCALES, form=("pairwise", "centroid"), consensus_weight=(0.01, 0.05, 0.5)),
            note=f"a sample that lacks a view is an isolated vertex of its graph; {IN_SIGHT}",
        ),
        _own(
            MeanFilledSpectral,
            grid_of(scale=_SCALES, affinity=("rbf", "nearest_neighbors"), consensus_weight=(1e-3, 1e-2, 1e-1)),
            note=f"a reconstruction from its description in the paper; takes 5000 samples at most; {IN_SIGHT}",
            cost=5.0,
        ),
        _own(
            RobustMultiViewKMeans,
            grid_of(scale=_SCALES, weight_exponent=(1.5, 2.0, 3.0, 5.0, 10.0, 20.0)),
            note="missing rows have weight 0",
            cost=5.0,
        ),
        _own(
            BipartiteSpectral,
            grid_of(scale=_SCALES, n_anchors=("auto", 500), n_neighbors=(3, 5, 10)),
            note=f"made for many samples, its cost grows linearly with their number; {IN_SIGHT}",
            cost=0.5,
        ),
        _own(
            KernelCompletion,
            grid_of(scale=_SCALES, ridge_weight=(1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)),
            note="needs a complete view, so it is absent where every view has gaps",
            cost=5.0,
            needs_complete_view=True,
        ),
        _rival(
            rivals.PIMVC,
            {"lamb": 100000, "k": 3},
            grid_of(scale=_SCALES, lamb=(10, 100000), k=(3, 7, 13)),
            note="of the package iMML; takes no more groups than the narrowest view has features",
            cost=5.0,
        ),
        _rival(
            rivals.NEMO,
            {"num_neighbors_ratio": 6},
            [
                {"scale": scale, **setting}
                for scale in _SCALES
                for setting in (
                    *grid_of(num_neighbors_ratio=(3, 6, 12)),
                    *grid_of(num_neighbors=(10, 20, 30)),
                )
            ],
            note="of the package iMML",
        ),
        _rival(
            rivals.EEIMVC,
            {"lambda_reg": 1.0},
            grid_of(scale=_SCALES, lambda_reg=(1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0)),
            note="of the package iMML",
        ),
        _rival(
            rivals.MOFA,
            {"factors": 10},
            grid_of(scale=_SCALES, factors=(3, 5, 10, 15, 20, 30)),
            note=(
                "factors of the package mofapy2, then k-means with 20 restarts; views are brought to unit variance, "
                "set with scores in sight and in its favour"
            ),
            cost=5.0,
        ),
        _rival(
            rivals.SNF,
            {"K": 20, "mu": 0.5},
            grid_of(scale=_SCALES, K=(10, 20, 30), mu=(0.5, 0.8)),
            note="of the package snfpy; knows no gaps: missing views are filled from the five nearest samples",
        ),
    )
}
QUICK_METHODS = ("BridgedGRMF", "BridgedGRMF-fixed", "GRMF", "Concat", "ImputedKMeans", "ImputedSpectral")


def choose_entrants(names: Sequence[str], say: Callable[[str], None], *, runs: bool = True) -> list[Entrant]:
    """Return the methods named, in the order of the league; by default all that can run here.

    Methods that do not run, since their results are stored, need no package.

    Raises
    ------
    ParameterError
        If a name is unknown.
    MissingExtraError
        If the package of a method asked for is not installed; those not asked for are only spoken of.
    """
    unknown = [name for name in names if name not in ENTRANTS]
    if unknown:
        raise ParameterError(f"There is no method {unknown[0]!r} in the league. Choose among: {', '.join(ENTRANTS)}.")
    chosen = []
    for entrant in ENTRANTS.values():
        if names and entrant.name not in names:
            continue
        problem = entrant.make.why_not() if hasattr(entrant.make, "why_not") else None
        if problem is None or (names and not runs):
            chosen.append(entrant)
        elif names:
            raise problem
        else:
            say(f"{entrant.name}: {problem}")
    return chosen
