"""Parameters that several baselines share, the checks of all their parameters and of given starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from ..clusters import cluster_rows, warn_of_zeros
from ..errors import InputError, InputTypeError
from ..estimators.base import MultiViewClusterer, NoEffect
from ..persist.registry import storable_method
from ..progress import phase
from ..utils.messages import MOST_COMPONENTS, MOST_REPEATS, check_choice, check_flag, check_integer, check_real, shown
from ..utils.types import Array

Check = Callable[[str, Any], None]
T = TypeVar("T", bound=type)

NONNEGATIVE = ("raise", "shift", "clip")
COUNT = partial(check_integer, low=1)
_FLOATS = (int, float, np.integer, np.floating)  # fractions would turn arrays into arrays of objects
POSITIVE = partial(check_real, low=0, open_low=True, kinds=_FLOATS)
CHECKS: dict[str, Check] = {
    "affinity": partial(check_choice, choices=("rbf", "nearest_neighbors")),
    "basis_from": partial(check_choice, choices=("complete", "all")),
    "consensus": partial(check_choice, choices=("hard", "soft")),
    "n_components": partial(check_integer, low=1, high=MOST_COMPONENTS, also=[None]),
    "n_graph_neighbors": partial(check_integer, low=2),
    "n_neighbors": partial(check_integer, low=1, also=["auto"]),
    "nonnegative": partial(check_choice, choices=NONNEGATIVE),
    "output": partial(check_choice, choices=("cut", "codes")),
    "ridge_weight": POSITIVE,
    "max_iter": COUNT,
    "max_samples": partial(check_integer, low=1, also=[None]),
    **dict.fromkeys(("n_init", "n_steps"), partial(check_integer, low=1, high=MOST_REPEATS)),
    **dict.fromkeys(
        ("consensus_weight", "graph_weight", "smoothness_weight", "sparsity_weight", "tol"),
        partial(check_real, low=0, kinds=_FLOATS),
    ),
    **dict.fromkeys(("normalize", "scale_penalty"), check_flag),
    "weight_exponent": partial(check_real, low=1, high=100, open_low=True, kinds=_FLOATS),
}


def without(weight: str, parameter: str) -> NoEffect:
    """Return the rule that a parameter has no effect while a weight is 0."""
    return NoEffect(parameter, lambda model, _: getattr(model, weight) == 0, f"{weight} is 0", f"raise {weight}")


@dataclass_transform(eq_default=False, kw_only_default=True)
def baseline(kind: T) -> T:
    """Make a method a dataclass of its parameters, and register it for model files; a class decorator."""
    dataclass(kw_only=True, eq=False, repr=False)(kind)  # changed in place
    return storable_method(kind)


@dataclass(eq=False, repr=False)
class Baseline(MultiViewClusterer):
    """Base class of the baselines.

    Baselines are dataclasses: the fields are the parameters, and the generated ``__init__`` only stores them, as
    scikit-learn's ``clone`` requires. Parameters of the same name have the same check (``CHECKS``), unless a method
    brings its own in ``_checks``.
    """

    n_clusters: int = 8
    _: KW_ONLY
    kind: Any = None
    n_top_features: Any = None
    scale: str | None = "unit"
    partial_rows: str = "raise"
    random_state: Any = None

    _checks: ClassVar[tuple[tuple[str, Check], ...]] = ()

    def _cluster(self, embedding: Array, random_state: np.random.RandomState) -> None:
        """Run k-means on a representation with rows of unit length; set the attributes that hold the result."""
        n_empty = int((~embedding.any(axis=1)).sum())
        if n_empty:
            warn_of_zeros(n_empty)
        self.embedding_ = embedding
        with phase("k-means"):
            clustering = cluster_rows(embedding, self.n_clusters, random_state, normalize=False)
        self.labels_, self.cluster_centers_ = clustering.labels, clustering.centers

    def check_parameters(self) -> None:
        """Raise an error if a parameter has a wrong type or value."""
        super().check_parameters()
        checks = CHECKS | dict(self._checks)
        for name, value in self.get_params(deep=False).items():
            if name in checks:
                checks[name](name, value)


@dataclass(kw_only=True, eq=False, repr=False)
class FactorBaseline(Baseline):
    """Base class of the baselines that factorise every view into codes and a basis."""

    n_components: int | None = None
    init: Any = "random"
    tol: float = 1e-6

    _random_starts: ClassVar[tuple[str, ...]] = ("random",)  # names that ``init`` may be

    @property
    def _code_length(self) -> int:
        return self.n_components or self.n_clusters

    def _starts(self, name: str) -> bool:
        """Return whether ``init`` is this name; it may be a pair of arrays instead."""
        return isinstance(self.init, str) and self.init == name

    def _given_pair(self, pair: str) -> Sequence[Any]:
        """Return the two parts of a start given in ``init``; ``pair`` describes them in the error message."""
        if isinstance(self.init, str) or not isinstance(self.init, Sequence) or len(self.init) != 2:
            choices = ", ".join(map(repr, self._random_starts))
            raise InputTypeError(f"init must be {choices} or a pair {pair}; got {shown(self.init)}.")
        return self.init


def has_converged(objective: Sequence[float], tol: float, lag: int = 1) -> bool:
    """Return whether the relative change of the objective over the last ``lag`` values is below ``tol``."""
    if len(objective) <= lag:
        return False
    before, now = objective[-1 - lag], objective[-1]
    return abs(before - now) < tol * abs(before) or now == 0


def demand_room(
    model: Any, n_samples: int, n_squares: int, remedy: str = "Use another method or fewer samples"
) -> None:
    """Raise an error if there are more than ``max_samples`` for a method with ``n_squares`` matrices of n × n."""
    if model.max_samples is not None and n_samples > model.max_samples:
        raise InputError(
            f"{type(model).__name__} holds matrices of n_samples × n_samples: {n_samples} samples need about "
            f"{8 * n_squares * n_samples**2 / 2**30:.1f} GiB of memory, and time that grows with the square of their "
            f"number or faster; max_samples={model.max_samples}. {remedy}, or raise the limit: "
            f"max_samples={n_samples} (None for no limit)."
        )


def read_factor(values: Any, what: str, dtype: Any, *shapes: tuple[int, int]) -> Array:
    """Return a part of a given start as an array, not copied if possible, or raise an error."""
    try:
        array = np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"init must hold arrays of numbers; unreadable starting {what}: {error}.") from None
    if array.shape not in shapes or not np.isfinite(array).all():
        expected = " or ".join(map(str, dict.fromkeys(shapes)))
        flaw = " with NaN or infinity" if array.shape in shapes else ""
        got = f"got an array of shape {array.shape}{flaw}"
        raise InputError(f"The starting {what} in init must be finite numbers of shape {expected}; {got}.")
    return array
