"""What ``GRMF`` and ``BridgedGRMF`` share: fits anywhere, new samples, recovered views, trust in the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from ..backends.base import Backend, Handle
from ..backends.dask import dask_kind, is_for_cluster
from ..backends.disk.budget import read_budget
from ..backends.opening import open_backend
from ..backends.support import unsupported
from ..compute.arrays import host
from ..compute.engine import single_threaded_blas
from ..correction import CORRECTIONS, Correction
from ..factorization import Solution
from ..graph.communities import KMEANS, LEIDEN
from ..graph.knn import mean_modularity, resolve_n_neighbors
from ..graph.neighbors import Search, SearchReport
from ..metrics import clustering_accuracy
from ..progress import phase, showing, tell
from ..scaling import Scaling, unit_rows
from ..trust.mixing import BatchMixing, measure_mixing
from ..utils.messages import check_choice, check_integer, check_real, warn_user
from ..utils.types import Array
from ..views import Views
from ..views.sample_columns import read_batch
from .assessing import AssessedMixin
from .base import as_frame, warn_no_effect, warn_unused_parameters
from .predict import fill_missing_rows, predict_labels, predict_shares, project
from .recovery import BLEND, SIMPLE_METHODS, Recoverer, RecoveryScores, recovered_rows, recovery_of

N_LATENT_NEIGHBORS = 10
N_DESCRIBED = 2000  # samples from which kinds of views are proposed


class LatentSpaceMixin(AssessedMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Methods of a clusterer whose bases map samples into one latent space and back, wherever its data are.

    An estimator derives from it and from ``MultiViewClusterer``. It defines ``_fit``, the sequence of its steps,
    ``_neighbor_graphs`` and ``_groups_again``.
    """

    n_neighbors: int | str
    max_iter: int
    tol: float
    search: Any
    device: Any
    memory_budget: Any
    batch_correction: str

    bases_: list[Array]
    codes_: list[Array]
    cluster_centers_: Array
    confidence_: Array
    part_: Array
    scalings_: list[Scaling]
    corrections_: tuple[Correction | None, ...]  # of every view; empty without correction
    batch_mixing_: BatchMixing  # after a fit with batch_correction
    objective_: Array
    n_iter_: int
    neighbor_search_: tuple[SearchReport, ...]

    _fitted_attributes: tuple[str, ...] = (
        *("bases_", "codes_", "scalings_", "cluster_centers_", "confidence_", "part_"),
        *("objective_", "n_iter_", "neighbor_search_"),
    )
    latent_recovery = "neighbors"  # the method that recovers a view where no other can be compared with it
    is_bridged = False  # whether codes explain samples that are reached across views

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    # -- fit -------------------------------------------------------------------------------------------------

    def _check_shared_parameters(self) -> None:
        """Check the parameters that mean the same in all subclasses."""
        check_integer("n_neighbors", self.n_neighbors, low=1, also=["auto"])
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0)
        if not isinstance(self.search, Search):
            check_choice("search", self.search, ("auto", "exact", "approximate"))
        read_budget(self.memory_budget)
        check_choice("batch_correction", self.batch_correction, CORRECTIONS)
        if self.memory_budget is not None and self.batch_correction != "none":
            raise unsupported("correction within a budget", way=self.batch_correction)

    def _new_search(self) -> Search:
        """Return the search for neighbours of this fit, with an empty list of reports."""
        return replace(self.search) if isinstance(self.search, Search) else Search(self.search)

    def fit(self, views: Any, y: Any = None, *, mask: Any = None, batch: Any = None, checkpoint: Any = None) -> Self:
        """Cluster the samples.

        A fit that fails leaves the model as it was before.

        Parameters
        ----------
        views : list or dict of views, or Views
            See :class:`gapview.Views` for all that is accepted. Dask arrays, and Dask dataframes whose index holds the
            sample ids, are fitted on the cluster of the current ``distributed.Client``. Results with a row for each
            sample then are Dask arrays, and ``reference_`` is an ordinary model with a sample of the training data.
        y : ignored
            Present because scikit-learn passes it.
        mask : array-like of shape (n_samples, n_views), optional
            True where a sample has a view; by default rows of nothing but NaN are missing views.
        batch : array-like of shape (n_samples,), optional
            Batch of every sample, such as plate, run or site: in the order of the samples, or a pandas Series with
            sample ids as index. The groups are tested against it, see ``associations_``. It changes them only with
            ``batch_correction``. Not for Dask collections.
        checkpoint : str or path, optional
            A new or empty folder in which finished work is stored during the fit, about every ten seconds. If the fit
            is interrupted (Ctrl-C, a crash, a power cut), the same fit with the same folder resumes there and gives the
            same result. The folder is created when there is something to store, and deleted when the fit has ended. It
            holds neighbours, codes and labels, not the views. On a cluster: a folder that all workers can access, or an
            address for fsspec, written every ten iterations. It holds codes, and is not deleted, because results that
            are lost with a worker are recomputed from it: delete it when the results are stored. Two fits on a cluster
            must not use the same folder; this is not checked.

        Returns
        -------
        self

        Raises
        ------
        DataFileError
            If the checkpoint belongs to other data, other parameters or another version of gapview, with the
            difference; if another fit uses it; or if the folder holds anything else. The folder is not changed.

        Warns
        -----
        GapviewWarning
            If a parameter is not at its default and has no effect, with the parameter that overrides it. If the groups
            are largely explained by batch, or by which views a sample lacks: Cramér's V of at least 0.5 with p < 0.01,
            or a group that lies mostly in one batch; see :class:`gapview.trust.GroupAssociation`. With
            ``batch_correction``, if the samples of a view are grouped by batch before correction. If the checkpoint
            cannot be written, for instance because the disk is full: the fit continues. If a part of it is
            damaged: that part is computed again.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> GRMF(n_clusters=2, random_state=0).fit(data.views).labels_.shape
        (60,)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model = GRMF(n_clusters=2, random_state=0).fit(data.views, checkpoint=pathlib.Path(folder) / "fit")
        """
        self.check_parameters()
        if batch is not None and dask_kind(views) is not None:
            raise unsupported("batch on a cluster")
        # BLAS on one thread: its sums, and so the results, then do not depend on what else runs in the process
        opened = open_backend(self, views, mask, batch, checkpoint)
        with showing(), single_threaded_blas(), opened as backend, self._unchanged_on_error():
            warn_unused_parameters(self, backend.views)
            training: Any = backend.views  # in this process they have ids
            batches = None if batch is None else read_batch(batch, training.sample_ids)
            self.kinds_ = backend.prepare(*self._kinds_of(backend.views, lambda: backend.draw(N_DESCRIBED, 0)))
            self._fit(backend, backend.generator(self.random_state))
            if dask_kind(views) is None:  # labels on a cluster are not in this process
                self._test_associations(batches)
                self._measure_mixing()
        return self

    def _measure_mixing(self) -> None:
        """Measure what the correction has done to the batches; warn of views that are grouped by batch without it."""
        if self.views_.batches is None:
            return
        views = self.prepared(self.views_)
        scaled = [(scaling.apply, own) for scaling, own in zip(self.scalings_, self.corrections_, strict=True)]
        points = self.latent_points(self.embedding_)
        self.batch_mixing_ = measure_mixing(views, scaled, points, len(np.unique(self.labels_)))
        for text in self.batch_mixing_.warnings():
            warn_user(text)

    def _fit(self, backend: Backend, random_state: np.random.RandomState) -> None:
        """Run the steps of the fit, and set the fitted attributes."""
        raise NotImplementedError

    def _set_solution(self, solution: Solution, search: Search) -> None:
        """Set the attributes that describe the factorisation; warn unless it has converged."""
        warn_unless_converged(self, solution)
        self.bases_ = [host(basis) for basis in solution.bases]
        self.objective_, self.n_iter_ = solution.objective, solution.n_iter
        self.neighbor_search_ = tuple(search.done)

    def _find_clusters(
        self,
        backend: Backend,
        points: Handle,
        n_clusters: int,
        random_state: np.random.RandomState,
        graph: Handle | None = None,
        shares: Handle | None = None,
        assign: str = KMEANS,
        free_sizes: bool = False,
    ) -> tuple[Handle, Handle]:
        """Run k-means on the points or Leiden on the graph, or take the groups of the largest shares.

        With ``free_sizes`` and without shares, a mixture with a weight for each group follows k-means. Returns labels
        and confidence.
        """
        tell("Finding groups")
        with phase("k-means"):
            if shares is not None:
                backend.warn_of_zeros(points)
                labels, self.cluster_centers_ = backend.reassign(points, shares, graph)
            elif assign == LEIDEN:
                seed = int(random_state.randint(2**31 - 1))
                labels, self.cluster_centers_ = backend.communities(points, n_clusters, seed, graph)
            else:
                labels, self.cluster_centers_ = backend.cluster(points, n_clusters, random_state)
            if shares is None and free_sizes and assign == KMEANS and n_clusters > 1 and not backend.view_parts.any():
                weights = backend.mixture_shares(points, self.cluster_centers_)
                weighed, centers = backend.reassign(points, weights, graph)
                if centers.any(axis=1).all():  # no group is lost
                    labels, self.cluster_centers_ = weighed, centers
        with phase("confidence"):
            return labels, backend.confidence(points, labels, self.cluster_centers_, graph)

    def fit_transform(
        self, views: Any, y: Any = None, *, mask: Any = None, batch: Any = None, checkpoint: Any = None
    ) -> Any:
        """Fit, and return the consensus representation of the samples, ``embedding_``.

        It differs from ``transform`` of the same samples, which does not use their graph.

        Parameters
        ----------
        views, y, mask, batch, checkpoint : as in :meth:`fit`
            The data and the options of :meth:`fit`.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> GRMF(n_clusters=2, random_state=0).fit_transform(data.views).shape
        (60, 2)
        """
        more = {"batch": batch, "checkpoint": checkpoint}  # a subclass may have a fit without them
        more = {name: value for name, value in more.items() if value is not None}
        return as_frame(self, self.fit(views, y, mask=mask, **more).embedding_, self.views_)

    # -- new samples -----------------------------------------------------------------------------------------

    def transform(self, views: Any) -> Any:
        """Return the codes of samples in the latent space, from the views they have.

        By x Uᵀ, averaged over the views of a sample (Remark 1); with bridges, the mean of that and of the codes of its
        neighbours in these views.

        Parameters
        ----------
        views : list or dict of views, or Views
            Any subset of the views seen in training: a dict with some of their names, or a list with ``None`` for an
            absent view.

        Returns
        -------
        array of shape (n_samples, n_components)
            Or a frame, after ``set_output``.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, random_state=0)
        >>> model = GRMF(n_clusters=2, random_state=0).fit(data.views[:50])
        >>> model.transform({"view_1": data.views.matrices[1][50:]}).shape
        (10, 2)
        """
        if is_for_cluster(self, views):
            return self._on_cluster("transform", views)
        given = self._read_new(views)
        return as_frame(self, self._embed(given), given)

    def predict(self, views: Any, *, method: str = "neighbors", n_neighbors: int = N_LATENT_NEIGHBORS) -> Any:
        """Assign samples to the clusters found in training, from the views they have.

        Every sample gets a cluster, also one unlike all training samples: :meth:`place` returns p-values.

        Parameters
        ----------
        views : list or dict of views, or Views
            As in :meth:`transform`.
        method : {"neighbors", "centers"}, default="neighbors"
            Majority label of the nearest training samples in the latent space (of tied labels, that of the nearest
            sample), or label of the nearest cluster centre.
        n_neighbors : int, default=10
            Number of training samples; no effect with ``method="centers"``.

        Returns
        -------
        labels : array of shape (n_samples,)
            Or a series with the name ``"cluster"`` and the ids of the samples, after ``set_output``.

        Warns
        -----
        GapviewWarning
            If a view seems to be in other units, or if more samples are unlike those of training than chance explains.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
        >>> model = GRMF(n_clusters=3, random_state=0).fit(data.views[:150])
        >>> model.predict(data.views[150:]).shape
        (50,)
        >>> model.predict([data.views.matrices[0][150:], None]).shape
        (50,)
        """
        check_choice("method", method, ("neighbors", "centers"))
        check_integer("n_neighbors", n_neighbors, low=1)
        if method == "centers":
            self._warn_unused_neighbors(n_neighbors, method)
        return self._assign(views, method=method, n_neighbors=n_neighbors)

    def _predict_views(self, views: Views, method: str = "neighbors", n_neighbors: int = N_LATENT_NEIGHBORS) -> Array:
        return predict_labels(self, views, self._embed(views), method, n_neighbors)

    def _predict_shares(self, views: Views) -> Array:
        return predict_shares(self, views, self._embed(views), N_LATENT_NEIGHBORS)

    def recover(self, views: Any = None, *, method: str = "auto", n_neighbors: int = N_LATENT_NEIGHBORS) -> Any:
        """Complete the missing views of samples, in the units of the data.

        Parameters
        ----------
        views : list or dict of views, or Views, optional
            Samples to complete, as in :meth:`transform`; by default the training samples.
        method : str, default="auto"
            ``"auto"`` takes for each view the best of all but the last on held-out samples, see
            :meth:`recovery_scores`.

            * ``"mean"``: the mean of the view.
            * ``"knn"``: the mean of the 5 nearest training samples that have the view, by the other views.
            * ``"ridge"``: ridge regression on the other views that the sample has; the penalty minimises the
              generalised cross-validation error. Views with more than 256 features are replaced by principal axes.
            * ``"neighbors"``: the mean of the nearest training samples in the latent space that have the view.
            * ``"bridge"``, of :class:`gapview.BridgedGRMF` only: the mean of ``"knn"`` and ``"neighbors"``, shrunk
              towards the mean of the view by the error measured on present rows.
            * ``"blend"``: the mean of ``"ridge"`` and ``"bridge"``, or of ``"ridge"`` and ``"neighbors"``.
            * ``"basis"``: z U (Remark 5), the paper's; K components cannot hold a whole view.
        n_neighbors : int, default=10
            Number of training samples in the latent space that are averaged; no effect with methods that do not use
            them.

        Returns
        -------
        list or dict of views
            Every view complete, in the container of the input; present values are unchanged. Sparse views stay sparse.

        Warns
        -----
        GapviewWarning
            If recovered values of a view are about its mean, since no method is better on held-out samples. If no
            sample links the views of a sample with another: its rows there are the mean.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> model = GRMF(n_clusters=2, random_state=0).fit(data.views)
        >>> [view.shape for view in model.recover()]
        [(60, 20), (60, 30)]
        """
        check_choice("method", method, ("auto", *self.recovery_candidates, "basis"))
        check_integer("n_neighbors", n_neighbors, low=1)
        if method in (*SIMPLE_METHODS, "basis"):
            self._warn_unused_neighbors(n_neighbors, method)
        if is_for_cluster(self, views):
            return self._on_cluster("recover", views, method=method, n_neighbors=n_neighbors)
        self.check_fitted()
        given = self.views_ if views is None else self._read_new(views)
        embedding = self.embedding_ if views is None else self._embed(given)
        return fill_missing_rows(given, recovered_rows(Recoverer(self, given, embedding, n_neighbors), method))

    @property
    def recovery_candidates(self) -> tuple[str, ...]:
        """The methods of :meth:`recover` that are compared on held-out samples."""
        return tuple(dict.fromkeys((*SIMPLE_METHODS, "neighbors", self.latent_recovery, BLEND)))

    def recovery_scores(self, *, n_neighbors: int = N_LATENT_NEIGHBORS) -> RecoveryScores:
        """Return how well each view is recovered from the others, by every method, on held-out samples.

        Each view is hidden from a fifth of the samples that have it and another one, the model is fitted again with the
        same settings, and the hidden rows are recovered; then from the next fifth. The cost is five fits, to at most
        2000 samples, and fewer of wide views.

        Parameters
        ----------
        n_neighbors : int, default=10
            As in :meth:`recover`.

        Returns
        -------
        RecoveryScores
            For each view R² of every method, of the whole view and of every feature, and the method of the highest R²,
            which :meth:`recover` uses. Computed once.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> model = GRMF(n_clusters=2, random_state=0).fit(data.views)
        >>> first = model.recovery_scores().views[0]
        >>> first.r2["mean"], first.r2[first.method] > 0.3, len(first.feature_r2["ridge"])
        (0.0, True, 20)
        """
        check_integer("n_neighbors", n_neighbors, low=1)
        model: Any = getattr(self, "reference_", self)  # after a fit on a cluster
        model.check_fitted()
        return RecoveryScores(recovery_of(model, n_neighbors))

    def score(self, views: Any, y: Any = None) -> float:
        """Return how good the clusters are on these samples; higher is better.

        Without ``y``: the modularity of the predicted labels on the neighbour graphs of the views, averaged over the
        views. It needs no known labels, so that ``GridSearchCV`` can choose parameters by it. With ``y``: the accuracy
        after matching.

        Parameters
        ----------
        views : list or dict of views, or Views
            As in :meth:`transform`.
        y : array of shape (n_samples,), optional
            Known labels, in the order of the samples.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, random_state=0)
        >>> model = GRMF(n_clusters=2, random_state=0).fit(data.views)
        >>> model.score(data.views) > 0.3, model.score(data.views, data.target)
        (True, 1.0)
        """
        if is_for_cluster(self, views):
            return float(self._on_cluster("score", views, y=y))
        given = self._read_new(views)
        labels = self._predict_views(given)
        if y is not None:
            return clustering_accuracy(y, labels)
        counts = resolve_n_neighbors("auto", given, len(self.cluster_centers_))
        return float(mean_modularity([labels], self.scaled(given), given, counts)[0])

    def _warn_unused_neighbors(self, n_neighbors: int, method: str) -> None:
        reason, remedy = f"method='{method}' uses no neighbours", "use method='neighbors'"
        warn_no_effect(LatentSpaceMixin.predict, "n_neighbors", n_neighbors, reason, remedy)

    def _scalings(self) -> list[Scaling]:
        return self.scalings_

    def _embed(self, views: Views) -> Array:
        """Return the codes of new samples."""
        return project(self, views, np.ones(views.n_views))

    def latent_points(self, embedding: Array) -> Array:
        """Return codes as unit rows: the rows that k-means clusters and among which neighbours are found.

        Codes of :class:`gapview.BridgedGRMF` are balanced first, as in the fit.

        Parameters
        ----------
        embedding : array of shape (n_samples, n_components)
            Codes, such as those of :meth:`transform` or ``embedding_``.

        Returns
        -------
        array of shape (n_samples, n_directions)

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
        >>> model = GRMF(n_clusters=2, random_state=0).fit(views)
        >>> model.latent_points(model.embedding_).shape[0]
        60
        """
        return np.asarray(unit_rows(self._balance_codes(embedding)))

    def _balance_codes(self, embedding: Array) -> Array:
        """Return codes in the space that k-means clusters."""
        return embedding


def warn_unless_converged(model: Any, solution: Solution) -> None:
    """Warn if ``max_iter`` was reached before the objective changed by less than ``tol``."""
    if model.tol > 0 and not solution.converged:
        if solution.n_iter == 1:
            state = "one iteration shows no change of it"
        else:
            before, last = solution.objective[-2:]
            state = f"its last relative change was {abs(before - last) / abs(before) if before else 0.0:.1e}"
        warn_user(
            f"{type(model).__name__} stopped at max_iter={model.max_iter} before the objective settled: {state}, "
            f"tol={float(model.tol):.1e}. Raise max_iter or tol.",
            ConvergenceWarning,
        )
