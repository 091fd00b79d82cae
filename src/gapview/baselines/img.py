"""``IMG``: codes and a graph over all samples, learned jointly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..clusters import cluster_rows
from ..errors import InputError, InputTypeError
from ..persist.registry import storable_method
from ..scaling import scale_views
from ..utils.parameters import check_real
from ..utils.types import Array
from ..utils.warnings import warn_user
from ..views import Views
from .base import Checks, FactorBaseline
from .img_steps import IMGSolution, IMGWeights, build_problem, normalized_cut, solve

_N_SQUARES = 5  # n × n matrices at peak memory: the start, a graph and its Laplacian, two for the next graph


@storable_method
@dataclass(kw_only=True, eq=False, repr=False)
class IMG(FactorBaseline):
    """Incomplete multi-modal grouping: codes shared by all views, and a graph learned from the codes.

    Every view is factorised into codes P of its samples and a basis. A dense graph A over all samples, learned from
    smoothed codes Q = P, draws the codes of linked samples together. The groups come from a normalised cut of the
    graph. As in the authors' program, bases are learned from the complete samples only.

    The method needs time in the cube and memory in the square of the number of samples, and works in float64.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Columns K of the codes; by default the number of groups.
    ridge_weight : float, default=1e-2
        λ: weight of the penalty on the squares of the bases.
    smoothness_weight : float, default=1.0
        β: weight of the graph penalty on the codes.
    graph_weight : float, default=100.0
        γ: weight of the penalty on the squares of the graph; larger values give more even links.
    basis_from : {"complete", "all"}, default="complete"
        Learn the bases from samples that have every view (the authors' program) or, for each view, from all samples
        that have it (the published problem).
    output : {"cut", "codes"}, default="cut"
        Compute groups by a normalised cut of the learned graph (the authors' program, but with 20 restarts of k-means
        instead of 100) or by k-means on the codes with rows scaled to unit length.
    scale : {"unit", "center+unit", "standard", "standard+view", "standard+unit", None}, default="unit"
        As in :class:`gapview.GRMF`. The graph depends on the scale of the codes, thus on that of the data.
    init : "random" or pair of arrays, default="random"
        Starting codes of shape (n_samples, n_components) and a matrix of shape (n_samples, n_samples) that
        replaces the Laplacian of the graph in the first iteration; only its symmetric part is used. By default both
        are drawn uniformly from [0, 1), as the authors do.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=1e-8
        Stop when no entry of P and Q differs by this much. The penalty μ on the difference starts at 0.1 and grows by
        a tenth in every iteration, up to 1e10.
    max_samples : int or None, default=5000
        Raise an error for more samples than this; ``None`` for no limit.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`.
    random_state : int, RandomState or None, default=None
        Seed of the start and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample.
    embedding_ : array of shape (n_samples, n_components)
        P, the codes, not scaled; for both kinds of output.
    bases_ : list of arrays of shape (n_components, n_features)
        U of every view.
    affinity_matrix_ : array of shape (n_samples, n_samples)
        A, symmetric and non-negative.
    residual_ : array of shape (n_iter_,)
        max |P − Q| after every iteration, which measures convergence. There is no ``objective_``: the method of
        multipliers with a growing penalty does not decrease it.
    n_iter_ : int
        Iterations done.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.

    References
    ----------
    H. Zhao, H. Liu, Y. Fu: Incomplete Multi-Modal Visual Data Grouping. IJCAI, 2016.

    Examples
    --------
    >>> from gapview.baselines import IMG
    >>> from gapview.datasets import make_views
    >>> from gapview.metrics import clustering_accuracy
    >>> data = make_views(n_samples=100, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = IMG(n_clusters=3, tol=1e-4, random_state=0).fit(data.views)
    >>> model.embedding_.shape, model.affinity_matrix_.shape
    ((100, 3), (100, 100))
    >>> clustering_accuracy(data.target, model.labels_) > 0.8
    True
    """

    ridge_weight: float = 1e-2
    smoothness_weight: float = 1.0
    graph_weight: float = 100.0
    basis_from: str = "complete"
    output: str = "cut"
    max_iter: int = 200
    tol: float = 1e-8
    max_samples: int | None = 5000

    _checks: ClassVar[Checks] = {"graph_weight": partial(check_real, low=0, open_low=True)}

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        self._check_size(views.n_samples)
        scaled, _ = scale_views(views, self.scale)
        problem = build_problem(scaled, views, self.basis_from)
        codes, laplacian = self._start(views.n_samples, random_state)
        weights = IMGWeights(self.ridge_weight, self.smoothness_weight, self.graph_weight)
        solution = solve(problem, weights, codes, laplacian, self.max_iter, self.tol)
        self._warn_unless_converged(solution)
        self.embedding_, self.bases_, self.affinity_matrix_ = solution.codes, solution.bases, solution.affinity
        self.residual_, self.n_iter_ = solution.residual, len(solution.residual)
        cut = self.output == "cut"
        points = normalized_cut(solution.affinity, self.n_clusters) if cut else solution.codes
        self.labels_ = cluster_rows(points, self.n_clusters, random_state, normalize=not cut).labels

    def _check_size(self, n_samples: int) -> None:
        if self.max_samples is not None and n_samples > self.max_samples:
            needed = _N_SQUARES * 8 * n_samples**2 / 2**30
            raise InputError(
                f"IMG holds several matrices of n_samples × n_samples: {n_samples} samples need about {needed:.1f} GiB "
                f"of memory, and time that grows with the cube of their number; max_samples={self.max_samples}. "
                f"Use another method or fewer samples, or raise the limit: max_samples={n_samples} (None for no limit)."
            )

    def _start(self, n_samples: int, random_state: np.random.RandomState) -> tuple[Array, Array]:
        if self._starts("random"):
            codes = random_state.uniform(size=(n_samples, self._code_length))
            return codes, random_state.uniform(size=(n_samples, n_samples))
        return _read_start(self.init, n_samples, self._code_length)

    def _warn_unless_converged(self, solution: IMGSolution) -> None:
        if self.tol > 0 and solution.residual[-1] >= self.tol:
            warn_user(
                f"IMG stopped at max_iter={self.max_iter} before codes and smoothed codes agreed: they differ by up to "
                f"{solution.residual[-1]:.1e}, tol={self.tol:.1e}. Raise max_iter or tol.",
                ConvergenceWarning,
            )


def _read_start(init: Any, n_samples: int, n_components: int) -> tuple[Array, Array]:
    if isinstance(init, str) or not isinstance(init, Sequence) or len(init) != 2:
        raise InputTypeError(
            "init must be 'random' or a pair of arrays, starting codes and a matrix instead of the Laplacian; got "
            f"{init!r}."
        )
    shapes = (n_samples, n_components), (n_samples, n_samples)
    try:
        codes, laplacian = (np.asarray(array, dtype=np.float64) for array in init)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"The two parts of init must be arrays of numbers: {error}.") from None
    for name, array, shape in zip(("codes", "Laplacian"), (codes, laplacian), shapes, strict=True):
        if array.shape != shape or not np.isfinite(array).all():
            raise InputError(
                f"The starting {name} in init must be finite numbers of shape {shape}; got an array of shape "
                f"{array.shape}{'' if array.shape != shape else ' with NaN or infinity'}."
            )
    return codes, laplacian
