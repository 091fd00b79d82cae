"""Parameters that several baselines share, and the checks of all their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

from ..estimators.base import MultiViewClusterer, NoEffect
from ..utils.messages import check_choice, check_flag, check_integer, check_real

Checks = Mapping[str, Callable[[str, Any], None]]

NONNEGATIVE = ("raise", "shift", "clip")
CHECKS: Checks = {
    "basis_from": partial(check_choice, choices=("complete", "all")),
    "consensus": partial(check_choice, choices=("hard", "soft")),
    "max_samples": partial(check_integer, low=1, also=[None]),
    "n_components": partial(check_integer, low=1, also=[None]),
    "n_graph_neighbors": partial(check_integer, low=2),
    "n_neighbors": partial(check_integer, low=1, also=["auto"]),
    "nonnegative": partial(check_choice, choices=NONNEGATIVE),
    "output": partial(check_choice, choices=("cut", "codes")),
    "ridge_weight": partial(check_real, low=0, open_low=True),
    "tol": partial(check_real, low=0),
    **dict.fromkeys(("max_iter", "n_init", "n_steps"), partial(check_integer, low=1)),
    **dict.fromkeys(
        ("consensus_weight", "graph_weight", "smoothness_weight", "sparsity_weight"), partial(check_real, low=0)
    ),
    **dict.fromkeys(("normalize", "scale_penalty"), check_flag),
}


def without(weight: str, parameter: str) -> NoEffect:
    """Return the rule that a parameter has no effect while a weight is 0."""
    return NoEffect(parameter, lambda model, _: getattr(model, weight) == 0, f"{weight} is 0", f"raise {weight}")


@dataclass(eq=False, repr=False)
class Baseline(MultiViewClusterer):
    """Base class of the baselines.

    Baselines are dataclasses: the fields are the parameters, and the generated ``__init__`` only stores them, as
    scikit-learn's ``clone`` requires. Parameters of the same name have the same check (``CHECKS``), unless a method
    brings its own in ``_checks``.
    """

    n_clusters: int = 8
    _: KW_ONLY
    scale: str | None = "unit"
    partial_rows: str = "raise"
    random_state: Any = None

    _checks: ClassVar[Checks] = {}

    def check_parameters(self) -> None:
        """Raise an error if a parameter has a wrong type or value."""
        super().check_parameters()
        checks = {**CHECKS, **self._checks}
        for name, value in self.get_params(deep=False).items():
            if name in checks:
                checks[name](name, value)


@dataclass(kw_only=True, eq=False, repr=False)
class FactorBaseline(Baseline):
    """Base class of the baselines that factorise every view into codes and a basis."""

    n_components: int | None = None
    init: Any = "random"
    tol: float = 1e-6

    @property
    def _code_length(self) -> int:
        return self.n_components or self.n_clusters

    def _starts(self, name: str) -> bool:
        """Return whether ``init`` is this name; it may be a pair of arrays instead."""
        return isinstance(self.init, str) and self.init == name
