"""``GRMF``: the method of the paper, for any number of views and any pattern of gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ..backends.base import Backend, Handle, SampleResults
from ..factorization.loop import Solution, Weights, iterate, new_runs
from ..factorization.starts import ProblemBlocks, data_start
from ..graph.knn import resolve_n_neighbors
from ..graph.neighbors import Search
from ..persist.checkpoints import checkpointed
from ..persist.registry import storable_method
from ..progress import phase, tell
from ..utils.messages import MOST_COMPONENTS, MOST_REPEATS, check_integer, check_real
from ..utils.types import Array, Matrix
from ..views import Views
from ..views.checks import one_per_view
from .base import MultiViewClusterer, NoEffect
from .latent import LatentSpaceMixin


@storable_method
class GRMF(LatentSpaceMixin, MultiViewClusterer):
    """Incomplete multi-view clustering by graph regularised matrix factorisation (IMC_GRMF).

    Every view is factorised into codes of its samples and an orthonormal basis. A code explains its own sample and the
    neighbours of that sample. Samples seen in several views have one consensus code that ties their codes. k-means on
    the consensus codes gives the clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of groups.
    n_components : int, optional
        Dimension K of the latent space; by default the number of groups.
    consensus_weight : float, default=100.0
        λ1: weight of the squared distance of codes to the consensus. The paper tunes it between 1 and 100. No effect if
        no sample has two views.
    sparsity_weight : float, default=1e-3
        λ2: weight of the L1 norm of the codes. The paper tunes it between 1e-5 and 0.1.
    n_neighbors : int or "auto", default="auto"
        Neighbours of a sample in every view. ``"auto"`` is the paper's rule: 10, or n_samples / n_clusters − 4 for
        small groups, at least 2.
    graph : list or dict of matrices, optional
        Non-negative weights between samples, one square matrix for each view, over the samples that have the view or
        over all samples. They replace the nearest neighbours; ``n_neighbors`` and ``search`` then have no effect.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, for all views or for each; a dict may name some of the views. ``"counts"``: size factors
        and logarithms; ``"proteins"``: CLR of counts; ``"methylation"``: M-values of shares; ``"compositional"``: CLR
        of shares; ``"binary"``, ``"categorical"``: weights of rare values; ``"continuous"``: unchanged. ``"auto"``
        applies what ``Views.describe()`` proposes. None changes nothing.
    n_top_features : int, None, or list or dict of these, default=None
        Cluster only so many features of a view, those with the most variance; of counts and proteins, the most for
        their mean. None keeps all.
    scale : str or None, default="unit"
        ``"unit"``: rows of unit length (the paper); ``"center+unit"``: the same after centring the features;
        ``"standard"``: features of mean 0 and variance 1; ``"standard+view"``: the same, divided by the mean length of
        the rows; ``"standard+unit"``: the same with rows of unit length; ``"white+unit"``: the same with equal variance
        along all principal axes that hold 95 % of the variance; None: no scaling. Those with unit rows may follow
        square roots, as in ``"root+unit"``, for shares of a whole.
    init : {"random", "data"} or list or dict of arrays, default="random"
        Starting codes: uniform random numbers (the paper), computed from the data without random numbers, or given.
    n_init : int, default=1
        Number of random starts, which share their passes over the data; the solution with the smallest objective is
        kept. Only with ``init="random"``.
    max_iter : int, default=300
        Maximum number of iterations.
    tol : float, default=1e-5
        Stop when the objective changes by less than this share of its value. The paper uses ``tol=0, max_iter=100``;
        accuracy falls above 1e-4.
    search : {"auto", "exact", "approximate"} or Search, default="auto"
        Search for neighbours: exact up to about 20,000 samples, then by an index that finds at least 0.95 of them;
        see :class:`gapview.graph.neighbors.Search` and ``neighbor_search_``.
    device : str or None, default=None
        Device that computes the fit: ``"cuda"`` for a GPU, through PyTorch. None is the processor, or the device of
        tensors given as views. Methods for new samples use the processor. Views that do not fit into the memory
        of a GPU stay on the host, and blocks of them are copied when they are used.
    memory_budget : str, number or None, default=None
        Maximum memory of a fit besides the interpreter, as text (``"2GB"``, ``"500 MiB"``) or in bytes. A fit that
        needs more raises an error before it starts, with the memory it needs. Views that are memory maps of ``.npy``
        files (``np.load(path, mmap_mode="r")``) stay on disk if they do not fit into the budget, with scratch files in
        the folder for temporary files (``TMPDIR``). Methods other than ``fit`` read what they need into memory.
        With ``device``: the memory of the device.
    batch_correction : {"none", "harmony"}, default="none"
        Whether differences between batches are removed from the scaled views; ``fit(views, batch=...)`` gives the
        batches. ``"harmony"``: in each view, samples are assigned to soft clusters that favour a mixture of all
        batches, and the mean differences of the batches within each cluster are subtracted (Korsunsky et al. 2019, an
        own implementation). See ``batch_mixing_``.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        What to do with rows that have some but not all values, see :class:`gapview.Views`. Training data that are a
        ``Views`` have no such rows: give the rule to ``Views``.
    random_state : int, RandomState or None, default=None
        Seed of the starting codes and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_components)
        Consensus code of every sample, in the order of ``sample_ids_``, not scaled.
    bases_ : list of arrays of shape (n_components, n_features)
        Uₖ, with orthonormal rows; with orthonormal columns if the view has fewer features than components.
    codes_ : list of arrays of shape (n_present, n_components)
        Pₖ, for the samples that have view k.
    part_ : array of shape (n_samples,)
        Part of every sample: 0 for all, unless no sample links some views with the others. Each part then has
        ``n_clusters`` groups of its own, those of part 0 first.
    confidence_ : array of shape (n_samples,)
        Confidence that every sample belongs to its group, from 0 to 1, see :func:`gapview.trust.sample_confidence`; 0
        in groups of fewer than five samples. After :meth:`assess` it is a probability, see
        :func:`gapview.trust.calibrated_confidence`, and ``uncalibrated_confidence_`` has the values before.
    cluster_centers_ : array of shape (n_clusters, n_components)
        Centres of the groups among the codes scaled to unit length.
    objective_ : array of shape (n_iter_,)
        Value of Eq. (4) after every iteration; it never rises (Theorem 1), up to rounding in the type of the data:
        about 1e-7 of its value in single precision.
    n_iter_ : int
        Iterations done.
    graphs_ : list of csr_array
        Wₖ, between the samples that have view k.
    neighbor_search_ : tuple of SearchReport
        A report on every search for neighbours: its method, and the share of the true neighbours found.
    kinds_ : list of Preparation
        The fitted transform of every view by its kind, before it is scaled.
    scalings_ : list
        The fitted scaling of every view.
    corrections_ : tuple
        With ``batch_correction``: the correction of every view, None for a view whose samples are of one batch.
    batch_mixing_ : BatchMixing
        With ``batch_correction``: how well batches are mixed in every view before and after correction.
    sample_ids_ : array of shape (n_samples,)
        Ids of the samples.
    views_ : Views
        The training data, among which ``predict`` and ``recover`` search for neighbours.

    References
    ----------
    J. Wen, Z. Zhang, Y. Xu, Z. Zhong: Incomplete Multi-view Clustering via Graph Regularized Matrix Factorization.
    ECCV Workshops, 2018.

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = GRMF(n_clusters=3, random_state=0).fit(data.views)
    >>> model.labels_.shape, model.embedding_.shape
    ((200,), (200, 3))
    >>> model.score(data.views, data.target) > 0.95
    True
    >>> [view.shape for view in model.recover()]
    [(200, 20), (200, 30)]
    """

    graphs_: list[sparse.csr_array]

    _fitted_attributes = ("graphs_",)
    _no_effect = (
        NoEffect("n_init", lambda model, _: not model._starts_at_random(), "init is not 'random'", "use init='random'"),
        NoEffect("n_neighbors", lambda model, _: model.graph is not None, "graph is given", "leave out graph"),
        NoEffect("search", lambda model, _: model.graph is not None, "graph is given", "leave out graph"),
        NoEffect(
            "consensus_weight",
            lambda _, views: sum(views.n_present) == views.n_samples,
            "no sample has two views",
            "give views that share samples",
        ),
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        consensus_weight: float = 100.0,
        sparsity_weight: float = 1e-3,
        n_neighbors: int | str = "auto",
        graph: Any = None,
        kind: Any = None,
        n_top_features: Any = None,
        scale: str | None = "unit",
        init: Any = "random",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-5,
        search: Any = "auto",
        device: Any = None,
        memory_budget: Any = None,
        batch_correction: str = "none",
        partial_rows: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.consensus_weight = consensus_weight
        self.sparsity_weight = sparsity_weight
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.kind = kind
        self.n_top_features = n_top_features
        self.scale = scale
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.search = search
        self.device = device
        self.memory_budget = memory_budget
        self.batch_correction = batch_correction
        self.partial_rows = partial_rows
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise an error if a parameter has a wrong type or value."""
        super().check_parameters()
        self._check_shared_parameters()
        check_integer("n_components", self.n_components, low=1, high=MOST_COMPONENTS, also=[None])
        check_real("consensus_weight", self.consensus_weight, low=0)
        check_real("sparsity_weight", self.sparsity_weight, low=0)
        check_integer("n_init", self.n_init, low=1, high=MOST_REPEATS)

    def _starts_at_random(self) -> bool:
        return isinstance(self.init, str) and self.init == "random"

    def _fit(self, backend: Backend, random_state: np.random.RandomState) -> None:
        self.scalings_ = backend.scale(self.scale)
        tell("Looking for neighbours")
        search = self._new_search()
        with phase("neighbours"):
            graphs = self._build_graphs(backend, search)
        with phase("smoothing"):
            problem = backend.view_problem(graphs)
        solution = self._solve(backend, problem, random_state)
        problem = problem.without_data()
        self._set_solution(solution, search)
        codes, embedding = backend.codes(problem, solution, of_all=False)
        labels, confidence = self._find_clusters(backend, embedding, self.n_clusters, random_state)
        backend.finish(self, {"graphs_": graphs}, SampleResults(codes, embedding, labels, confidence))

    def _build_graphs(self, backend: Backend, search: Search) -> list[Handle]:
        if self.graph is not None:
            return backend.given_graphs(self.graph)
        return backend.neighbor_graphs(resolve_n_neighbors(self.n_neighbors, backend.views, self.n_clusters), search)

    def _solve(self, backend: Backend, problem: ProblemBlocks, random_state: np.random.RandomState) -> Solution:
        """Run Algorithm 1 from all starts in the same passes, and return the solution with the smallest objective."""
        weights = Weights(self.consensus_weight, self.sparsity_weight)
        n_components = self.n_components or self.n_clusters
        with phase("start"):
            if self._starts_at_random():
                starts = [backend.random_start(problem, n_components, random_state) for _ in range(self.n_init)]
            elif isinstance(self.init, str) and self.init == "data":
                starts = [checkpointed("start", lambda: data_start(problem, n_components, weights))]
            else:
                starts = [backend.given_start(problem, self.init, n_components)]
        runs = new_runs([weights] * len(starts), [n_components] * len(starts))
        with phase("iterations"), backend.sweep(problem, starts) as sweep:
            (best,) = iterate(sweep, runs, self.max_iter, self.tol, best_only=True).values()
        return best

    def _neighbor_graphs(self) -> list[sparse.csr_array]:
        return self.graphs_

    def _groups_again(self) -> Any:
        changed: dict[str, Any] = {"graph": None, "device": None, "memory_budget": None}
        if not isinstance(self.init, str):
            changed["init"] = "data"
        n_of_part = self._n_of_part()

        def fit(views: Views, seed: int) -> Array:
            own = LatentSpaceMixin._resample_parameters(self, views, np.arange(views.n_samples))
            own |= {"kind": None, "n_top_features": None}  # the views are prepared
            model = clone(self).set_params(**changed, **own)
            model.set_params(n_clusters=min(n_of_part, views.n_samples), random_state=seed)
            return np.asarray(model.fit(views).labels_)

        return fit

    def _scales(self) -> Any:
        return self.scale

    def _least_per_view(self) -> int:
        return super()._least_per_view() if self.graph is None else 2

    def _resample_parameters(self, part: Views, rows: Array) -> dict[str, Any]:
        changed = super()._resample_parameters(part, rows)
        kept = [np.isin(self.views_.rows(k), rows) for k in range(part.n_views)]
        if self.graph is not None:
            changed["graph"] = [graph[own][:, own] for graph, own in zip(self.graphs_, kept, strict=True)]
        if not isinstance(self.init, str):
            given = one_per_view(self.init, self.views_, "init must hold one array for each view")
            changed["init"] = [_codes_of(codes, self.views_, k, kept[k]) for k, codes in enumerate(given)]
        return changed


def _codes_of(codes: Any, views: Views, view: int, kept: Array) -> Matrix:
    """Return the codes of some of the samples that have a view; they are given for these samples or for all."""
    codes = codes if sparse.issparse(codes) else np.asarray(codes)
    return codes[views.rows(view)[kept] if codes.shape[0] == views.n_samples else kept]
