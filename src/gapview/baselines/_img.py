"""``IMG``: codes and a graph over all samples, learned together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..clusters import cluster_rows
from ..errors import InputError, InputTypeError
from ..estimators.base import MultiViewClusterer
from ..persist.registry import storable_method
from ..scaling import scale_views
from ..utils.parameters import check_choice, check_integer, check_real
from ..utils.types import Array
from ..utils.warnings import warn_user
from ..views import Views
from ._img_steps import Solution, Weights, build_problem, normalized_cut, solve

__all__ = ["IMG"]

_N_SQUARES = 5  # n × n matrices at the peak: the start, a graph and its Laplacian, two for the next graph


@storable_method
class IMG(MultiViewClusterer):
    """Incomplete multi-modal grouping: codes shared by all views, and a graph learned from the codes.

    Every view is factorised into codes P of its samples and a basis. A dense graph A over all samples, learned from
    smoothed codes Q = P, draws the codes of linked samples together. The groups come from a normalised cut of the
    graph. This is the form of the authors' released program, with bases learned from the complete samples alone.

    The method needs time in the cube and memory in the square of the number of samples, and works in float64.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Columns K of the codes; by default the number of groups.
    ridge_weight : float, default=1e-2
        λ: how firmly the bases are kept small.
    smoothness_weight : float, default=1.0
        β: how firmly codes of linked samples are drawn together.
    graph_weight : float, default=100.0
        γ: how evenly every sample spreads its links over the others.
    basis_from : {"complete", "all"}, default="complete"
        Learn the bases from samples that have every view (the released program) or, for each view, from all samples
        that have it (the problem as it is printed).
    output : {"cut", "codes"}, default="cut"
        Find groups by a normalised cut of the learned graph (the released program, though with 20 restarts of k-means
        in place of 100) or by k-means on the codes with rows scaled to unit length.
    scale : {"unit", "center+unit", "standard", "standard+view", "standard+unit", None}, default="unit"
        As in :class:`gapview.GRMF`. The graph depends on the scale of the codes, thus on that of the data.
    init : "random" or pair of arrays, default="random"
        Starting codes of shape (n_samples, n_components) and a matrix of shape (n_samples, n_samples) that stands in
        for the Laplacian of the graph in the first iteration; only its symmetric part counts. By default both are drawn
        uniformly from [0, 1), as the authors do.
    max_iter : int, default=200
        Most iterations.
    tol : float, default=1e-8
        Stop when no entry of P and Q differs by this much. The penalty μ on the difference starts at 0.1 and grows by
        a tenth in every iteration, up to 1e10.
    max_samples : int or None, default=5000
        Refuse more samples than this; ``None`` for no limit.
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
        max |P − Q| after every iteration. There is no ``objective_``: the method of multipliers with a growing penalty
        does not descend, and its measure of progress is this one.
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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        ridge_weight: float = 1e-2,
        smoothness_weight: float = 1.0,
        graph_weight: float = 100.0,
        basis_from: str = "complete",
        output: str = "cut",
        scale: str | None = "unit",
        init: Any = "random",
        max_iter: int = 200,
        tol: float = 1e-8,
        max_samples: int | None = 5000,
        partial_rows: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.ridge_weight = ridge_weight
        self.smoothness_weight = smoothness_weight
        self.graph_weight = graph_weight
        self.basis_from = basis_from
        self.output = output
        self.scale = scale
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.max_samples = max_samples
        self.partial_rows = partial_rows
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_components", self.n_components, low=1, also=[None])
        check_real("ridge_weight", self.ridge_weight, low=0, open_low=True)
        check_real("smoothness_weight", self.smoothness_weight, low=0)
        check_real("graph_weight", self.graph_weight, low=0, open_low=True)
        check_choice("basis_from", self.basis_from, ("complete", "all"))
        check_choice("output", self.output, ("cut", "codes"))
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0)
        check_integer("max_samples", self.max_samples, low=1, also=[None])

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        self._check_size(views.n_samples)
        scaled, _ = scale_views(views, self.scale)
        problem = build_problem(scaled, views, self.basis_from)
        codes, laplacian = self._start(views.n_samples, random_state)
        weights = Weights(self.ridge_weight, self.smoothness_weight, self.graph_weight)
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
                f"of memory, and time in the cube of their number; max_samples={self.max_samples} are allowed. Use "
                f"another method or fewer samples, or allow it with max_samples={n_samples} (None for no limit)."
            )

    def _start(self, n_samples: int, random_state: np.random.RandomState) -> tuple[Array, Array]:
        n_components = self.n_components or self.n_clusters
        if isinstance(self.init, str) and self.init == "random":
            codes = random_state.uniform(size=(n_samples, n_components))
            return codes, random_state.uniform(size=(n_samples, n_samples))
        return _own_start(self.init, n_samples, n_components)

    def _warn_unless_converged(self, solution: Solution) -> None:
        if self.tol > 0 and solution.residual[-1] >= self.tol:
            warn_user(
                f"IMG stopped at max_iter={self.max_iter} before codes and smoothed codes agreed: they differ by up to "
                f"{solution.residual[-1]:.1e}, tol={self.tol:.1e}. Raise max_iter or tol.",
                ConvergenceWarning,
            )


def _own_start(init: Any, n_samples: int, n_components: int) -> tuple[Array, Array]:
    if isinstance(init, str) or not isinstance(init, Sequence) or len(init) != 2:
        raise InputTypeError(
            "init must be 'random' or a pair of arrays, starting codes and a matrix in place of the Laplacian; got "
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
