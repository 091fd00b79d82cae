"""``BridgedGRMF``: the method of the paper on a graph that reaches across views, with settings chosen from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..backends.base import Backend, SampleResults
from ..choice.candidates import plan_fit
from ..choice.n_clusters import MOST_CLUSTERS, ClusterCount
from ..choice.representation import IterationLimits, Setting, represent
from ..choice.selection import Selection, groups_again, single_choice
from ..choice.trials import Drawn, prepare_fit
from ..clusters import balanced
from ..graph.bridges import BRIDGES
from ..graph.communities import KMEANS, LEIDEN
from ..graph.knn import knn_graph, mean_neighbor_codes
from ..persist.registry import storable_method
from ..progress import phase, tell
from ..scaling import SCALES
from ..utils.messages import (
    LARGEST,
    MOST_COMPONENTS,
    MOST_REPEATS,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    warn_user,
)
from ..utils.types import Array
from ..views import Views
from ..views.cells import PARTIAL_ROWS, n_to_try
from .base import MultiViewClusterer, NoEffect
from .latent import LatentSpaceMixin
from .predict import project


@storable_method
class BridgedGRMF(LatentSpaceMixin, MultiViewClusterer):
    """Incomplete multi-view clustering by graph regularised factorisation, with bridges between views.

    The model of :class:`gapview.GRMF`, with another graph. There, a code explains the neighbours of its sample within
    one view; here, it explains all samples that can be reached in a few steps along a graph over all samples, whatever
    views they have. A sample without a view gets a code in it from its neighbours, and views that few samples share
    keep a common latent space. Scaling, bridge, reach and the weights of the views are chosen from the data, without
    labels; the other settings follow rules that suit most data. All of them can be given.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of groups; ``"auto"`` takes the number that the data suggest, see ``cluster_count_``. It is 1, with a
        warning, if groups cannot be distinguished from data without groups; see ``assessment_`` and :meth:`assess`.
    n_components : int or "auto", default="auto"
        Dimension K of the latent space; ``"auto"``: twice the number of groups.
    consensus_weight : float or "auto", default="auto"
        λ1: weight of the squared distance of codes to the consensus; ``"auto"``: 1. No effect with one view.
    sparsity_weight : float or "auto", default="auto"
        λ2: weight of the L1 norm of the codes; ``"auto"``: 0.001.
    n_neighbors : int or "auto", default="auto"
        Neighbours of a sample. ``"auto"`` is the rule of :class:`gapview.GRMF`.
    bridge : {"union", "joint", "both", "auto"}, default="auto"
        The graph: the union of the neighbours within each view; the neighbours in all views together, with missing
        views imputed; or the sum of both.
    reach : int or "auto", default="auto"
        Maximum number of steps h along the graph: H = (I + T + … + Tʰ)X with T the normalised graph.
    kind : str, None, or list or dict of these, default=None
        Kind of the values, such as ``"counts"``, as in :class:`gapview.GRMF`.
    n_top_features : int, None, or list or dict of these, default=None
        Features of a view that are kept, as in :class:`gapview.GRMF`.
    scale : str or None, or list or dict of these, default="auto"
        As in :class:`gapview.GRMF`, for all views or for each; ``"auto"``, the default, chooses for each view.
    view_weights : "auto", None, or list or dict of floats, default="auto"
        Weight of every view. None: all equal. ``"auto"`` follows ``selection``: with ``selection="auto"`` the weight of
        a view is the modularity of a first clustering on the graph of the view, so that a view of noise has little
        weight. Where views contradict the groups of these weights, equal weights are taken if the views agree more
        on theirs. With ``selection="fixed"`` all weights are equal.
    selection : {"auto", "fixed"}, default="auto"
        ``"auto"`` chooses scale, bridge, reach and view weights, where they are ``"auto"``, from the data. ``"fixed"``
        uses the defaults that suit most data (bridge "both", reach 4, equal weights) and tries nothing, at a fraction
        of the cost. No effect if all four are given.
    assign : {"kmeans", "leiden"}, default="kmeans"
        How groups are found: by k-means among the balanced codes, or by the Leiden algorithm on the bridge graph with
        the smallest resolution that gives ``n_clusters`` groups (needs the extra ``leiden``). k-means tends to groups
        of similar size; Leiden suits groups of very different sizes, such as types of cells.
    refine : bool, default=True
        Refine the groups by discriminant analysis of the views, where the views support each other; ``refined_`` says
        whether they do. Otherwise groups of k-means are refined by a mixture that gives every group a weight, so that
        they may differ in size. False keeps the groups that k-means or Leiden find.
    max_clusters : int, default=20
        Largest number of groups that is tried; only with ``n_clusters="auto"``.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=1e-5
        Stop when the objective changes by less than this share of its value.
    search : {"auto", "exact", "approximate"} or Search, default="auto"
        Search for neighbours: exact up to about 20,000 samples, then by an index that finds at least 0.95 of them;
        see :class:`gapview.graph.neighbors.Search` and ``neighbor_search_``. Settings are tried on at most 5000
        samples, or 20 for each group; there the search is ``"auto"``.
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
        Seed of k-means, of the samples on which settings are tried if there are more than 5000, and of the resamples of
        ``n_clusters="auto"``.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of every sample. Group 0 is the largest; equal sizes are ordered by the smallest sample id.
    embedding_ : array of shape (n_samples, n_components)
        Consensus code of every sample, in the order of ``sample_ids_``, not scaled.
    selection_ : Selection
        The candidates, their scores and the reason for the choice: ``print(model.selection_)``, ``.table``.
    setting_ : Setting
        The setting of the fit.
    cluster_count_ : ClusterCount
        With ``n_clusters="auto"``: the evidence for every number of groups, and the ``reason()`` for the suggestion.
    assessment_ : Assessment
        With ``n_clusters="auto"`` and after :meth:`assess`: whether the groups can be distinguished from null data.
    refined_ : bool
        Whether the groups were refined by discriminants.
    view_weights_ : array of shape (n_views,)
        Weight of every view, 1 on average.
    bases_ : list of arrays of shape (n_components, n_features)
        Uₖ, with orthonormal rows; with orthonormal columns if the view has fewer features than components.
    codes_ : list of arrays of shape (n_samples, n_components)
        Pₖ for all samples, also those without view k; zero rows for samples that no sample with view k reaches.
    part_ : array of shape (n_samples,)
        Part of every sample: 0 for all, unless no sample links some views with the others. Each part then has
        ``n_clusters`` groups of its own, those of part 0 first.
    confidence_ : array of shape (n_samples,)
        Confidence that every sample belongs to its group, from 0 to 1, see :func:`gapview.trust.sample_confidence`; 0
        in groups of fewer than five samples. With ``n_clusters="auto"`` and after :meth:`assess` it is a probability,
        see :func:`gapview.trust.calibrated_confidence`, and ``uncalibrated_confidence_`` has the values before.
    cluster_centers_ : array of shape (n_clusters, n_directions)
        Centres of the groups among the balanced codes scaled to unit length.
    balance_ : array of shape (n_components, n_directions)
        Maps codes to the space in which k-means has found the groups. The matrix of unity where views contradict each
        other: balanced codes favour groups of equal size.
    graph_ : csr_array of shape (n_samples, n_samples)
        T, the normalised graph over all samples.
    objective_ : array of shape (n_iter_,)
        Value of the objective after every iteration; it never rises, up to rounding in the type of the data.
    n_iter_ : int
        Iterations done.
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
        The training data, among which neighbours of new samples are searched.

    References
    ----------
    J. Wen, Z. Zhang, Y. Xu, Z. Zhong: Incomplete Multi-view Clustering via Graph Regularized Matrix Factorization.
    ECCV Workshops, 2018.

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> data = make_views(n_samples=200, n_clusters=3, missing_rate=0.3, random_state=0)
    >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(data.views)
    >>> model.score(data.views, data.target) > 0.95
    True
    >>> len(model.selection_.table) > 5
    True
    """

    selection_: Selection
    setting_: Setting
    cluster_count_: ClusterCount
    refined_: bool
    view_weights_: Array
    balance_: Array
    graph_: sparse.csr_array

    _fitted_attributes = ("setting_", "selection_", "refined_", "balance_", "graph_", "view_weights_")
    latent_recovery = "bridge"
    _no_effect = (
        NoEffect("max_clusters", lambda m, _: m.n_clusters != "auto", "n_clusters is given", "use n_clusters='auto'"),
        NoEffect(
            "selection",
            lambda model, views: not model._has_choice(views.n_views),
            "scale, bridge, reach and view_weights are given",
            "leave out one of them",
        ),
        NoEffect("consensus_weight", lambda _, views: views.n_views == 1, "there is one view", "give more views"),
        NoEffect("view_weights", lambda _, views: views.n_views == 1, "there is one view", "give more views"),
    )
    is_bridged = True

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        n_components: int | str = "auto",
        consensus_weight: float | str = "auto",
        sparsity_weight: float | str = "auto",
        n_neighbors: int | str = "auto",
        bridge: str = "auto",
        reach: int | str = "auto",
        kind: Any = None,
        n_top_features: Any = None,
        scale: Any = "auto",
        view_weights: Any = "auto",
        selection: str = "auto",
        assign: str = KMEANS,
        refine: bool = True,
        max_clusters: int = MOST_CLUSTERS,
        max_iter: int = 200,
        tol: float = 1e-5,
        search: Any = "auto",
        device: Any = None,
        memory_budget: Any = None,
        batch_correction: str = "none",
        partial_rows: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters  # type: ignore[assignment]
        self.n_components = n_components
        self.consensus_weight = consensus_weight
        self.sparsity_weight = sparsity_weight
        self.n_neighbors = n_neighbors
        self.bridge = bridge
        self.reach = reach
        self.kind = kind
        self.n_top_features = n_top_features
        self.scale = scale
        self.view_weights = view_weights
        self.selection = selection
        self.assign = assign
        self.refine = refine
        self.max_clusters = max_clusters
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
        most = {"n_clusters": LARGEST, "n_components": MOST_COMPONENTS, "reach": MOST_REPEATS}
        for name, high in most.items():
            check_integer(name, getattr(self, name), low=1, high=high, also=["auto"])
        for name in ("consensus_weight", "sparsity_weight"):
            check_real(name, getattr(self, name), low=0, also=["auto"])
        self._check_shared_parameters()
        check_choice("bridge", self.bridge, (*BRIDGES, "auto"))
        if self.scale is None or isinstance(self.scale, str):
            check_choice("scale", self.scale, (*SCALES, "auto"))
        check_choice("selection", self.selection, ("auto", "fixed"))
        check_choice("assign", self.assign, (KMEANS, LEIDEN))
        check_flag("refine", self.refine)
        check_integer("max_clusters", self.max_clusters, low=3)
        check_choice("partial_rows", self.partial_rows, PARTIAL_ROWS)
        self._check_kinds()

    def _has_choice(self, n_views: int) -> bool:
        """Return whether ``selection`` decides anything for so many views."""
        chosen = [self.scale, self.bridge, self.reach, *([self.view_weights] if n_views > 1 else [])]
        return any(isinstance(value, str) and value == "auto" for value in chosen)

    def _least_samples(self) -> int:
        return 1 if isinstance(self.n_clusters, str) else self.n_clusters

    def _most_clusters(self) -> int:
        return self.max_clusters if isinstance(self.n_clusters, str) else self.n_clusters

    def _fit(self, backend: Backend, random_state: np.random.RandomState) -> None:
        seed = int(random_state.randint(2**31 - 1))
        with phase("choice"):
            drawn = Drawn(backend.draw(n_to_try(self._most_clusters()), seed), backend.view_parts)
            plan = plan_fit(self, backend.views, drawn, seed)
            selection, setting, discriminants = plan.selection, plan.setting, plan.refinement.discriminants
            drawn_ids = drawn.views.sample_ids
            known = drawn.prepared(setting, plan.weights) if drawn.views is backend.views else None
            del drawn
        tell("Looking for neighbours")
        search, bridge = self._new_search(), setting.bridge
        prepared = prepare_fit(backend, known, setting, plan.weights, search, discriminants)
        del known
        # Balanced directions favour groups of equal size, and views that contradict each other cannot correct this
        keep_codes = self.refine and self.assign == KMEANS and plan.refinement.is_contradicted
        found = represent(prepared, setting, IterationLimits(self.max_iter, self.tol), keep_codes)
        graph = prepared.graphs[bridge]
        random_state = np.random.RandomState(seed)
        labels, confidence = self._find_clusters(
            backend, found.points, plan.n_clusters, random_state, graph, prepared.shares, self.assign, self.refine
        )
        self.refined_ = discriminants is not None
        self._set_solution(found.solution, search)
        codes, embedding = backend.codes(found.problem, found.solution, of_all=True)
        self.setting_, self.view_weights_ = setting, np.asarray(plan.weights)
        self.scalings_, self.balance_ = prepared.scalings, found.balance
        if plan.count is not None and plan.assessment is not None:
            self.cluster_count_, self.assessment_ = plan.count, plan.assessment
        if selection is not None:
            self.selection_ = selection
        backend.finish(self, {"graph_": graph}, SampleResults(codes, embedding, labels, confidence))
        if selection is None:
            reference: Any = getattr(self, "reference_", self)  # after a fit on a cluster
            self.selection_ = reference.selection_ = single_choice(setting, reference.labels_, prepared.explained)
        if plan.resamples is not None:
            self._finish_assessment(plan.resamples, drawn_ids, seed)
            if plan.n_clusters == 1:
                warn_user(" ".join(self.cluster_count_.reason().split()))

    def _embed(self, views: Views) -> Array:
        """Return the mean of the projected samples and of the codes of their neighbours; codes explain both."""
        counts, weights = self.setting_.n_neighbors, self.view_weights_
        trained, new = self.scaled(self.views_), self.scaled(views)
        across = mean_neighbor_codes(trained, self.views_, self.embedding_, new, views, counts, weights.tolist())
        return np.asarray((project(self, views, weights) + across) / 2)

    def _groups_again(self) -> Any:
        limits = IterationLimits(self.max_iter, self.tol)
        weights = self.view_weights_.tolist()
        return groups_again(self.setting_, self._n_of_part(), weights, self.n_neighbors, limits, self.assign)

    def _scales(self) -> Any:
        return self.setting_.scales

    def _balance_codes(self, embedding: Array) -> Array:
        return balanced(embedding, self.balance_)

    def _neighbor_graphs(self) -> list[sparse.csr_array]:
        rows = zip(self.scaled(self.views_), self.setting_.n_neighbors, strict=True)
        search = self._new_search()
        return [knn_graph(matrix, count, search) for matrix, count in rows]

    def _resample_parameters(self, part: Views, rows: Array) -> dict[str, Any]:
        """Return the settings of this fit, so that a resample does not choose again."""
        names = ("bridge", "reach", "n_components", "consensus_weight", "sparsity_weight")
        chosen = {name: getattr(self.setting_, name) for name in names}
        chosen |= {"scale": list(self.setting_.scales), "view_weights": self.view_weights_.tolist()}
        return chosen | super()._resample_parameters(part, rows)
