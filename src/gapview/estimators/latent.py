"""What ``GRMF`` and ``BridgedGRMF`` share: fits anywhere, new samples, recovered views, trust in the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning

from ..backends.base import Backend, Handle
from ..backends.dask import is_for_cluster
from ..backends.disk.budget import check_memory_for_parts, read_budget
from ..backends.opening import open_backend
from ..backends.support import unsupported
from ..compute.arrays import host
from ..compute.engine import single_threaded_blas
from ..errors import GapviewWarning
from ..factorization import Solution
from ..graph.knn import mean_modularity, resolve_n_neighbors
from ..graph.neighbors import Search, SearchReport
from ..metrics import clustering_accuracy
from ..progress import phase, tell
from ..scaling import Scaling, unit_rows
from ..trust import Agreement, Stability, ViewEffects, cluster_stability, feature_effects, view_agreement
from ..utils.messages import check_choice, check_integer, check_real, muted, warn_user
from ..utils.types import Array, Matrix
from ..views import Views
from .base import as_frame, warn_no_effect, warn_unused_parameters
from .predict import fill_missing_rows, predict_labels, project, recover_rows

N_LATENT_NEIGHBORS = 10


class LatentSpaceMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Methods of a clusterer whose bases map samples into one latent space and back, wherever its data are.

    An estimator derives from it and from ``MultiViewClusterer``. It defines ``_fit``, the sequence of its steps, and
    ``_neighbor_graphs``.
    """

    n_neighbors: int | str
    max_iter: int
    tol: float
    search: Any
    device: Any
    memory_budget: Any

    bases_: list[Array]
    codes_: list[Array]
    cluster_centers_: Array
    confidence_: Array
    part_: Array
    scalings_: list[Scaling]
    objective_: Array
    n_iter_: int
    neighbor_search_: tuple[SearchReport, ...]

    _fitted_attributes: tuple[str, ...] = (
        *("bases_", "codes_", "scalings_", "cluster_centers_", "confidence_", "part_"),
        *("objective_", "n_iter_", "neighbor_search_"),
    )
    _recover_methods: tuple[str, ...] = ("neighbors", "basis")
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
        if read_budget(self.memory_budget) is not None and self.device is not None:
            raise unsupported("budget on a device", device=self.device)

    def _new_search(self) -> Search:
        """Return the search for neighbours of this fit, with an empty list of reports."""
        return replace(self.search) if isinstance(self.search, Search) else Search(self.search)

    def fit(self, views: Any, y: Any = None, *, mask: Any = None, checkpoint: Any = None) -> Self:
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
            If a parameter is not at its default and has no effect, with the parameter that overrides it. If the
            checkpoint cannot be written, for instance because the disk is full: the fit continues. If a part of it is
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
        # BLAS on one thread: its sums, and so the results, then do not depend on what else runs in the process
        with single_threaded_blas(), open_backend(self, views, mask, checkpoint) as backend, self._unchanged_on_error():
            warn_unused_parameters(self, backend.views)
            self._fit(backend, backend.generator(self.random_state))
        return self

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
    ) -> tuple[Handle, Handle]:
        """Run k-means on the points, or take the groups of the largest shares; return labels and confidence."""
        tell("Finding groups")
        with phase("k-means"):
            labels, self.cluster_centers_ = backend.cluster(points, n_clusters, random_state)
            if shares is not None:
                labels, self.cluster_centers_ = backend.reassign(points, shares, graph)
        with phase("confidence"):
            return labels, backend.confidence(points, labels, self.cluster_centers_, graph)

    def fit_transform(self, views: Any, y: Any = None, *, mask: Any = None, checkpoint: Any = None) -> Any:
        """Fit, and return the consensus representation of the samples, ``embedding_``.

        It differs from ``transform`` of the same samples, which does not use their graph.

        Parameters
        ----------
        views, y, mask, checkpoint : as in :meth:`fit`
            The data and the options of :meth:`fit`.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> GRMF(n_clusters=2, random_state=0).fit_transform(data.views).shape
        (60, 2)
        """
        more = {} if checkpoint is None else {"checkpoint": checkpoint}  # a subclass may have a fit without it
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

    def predict(
        self,
        views: Any,
        *,
        method: str = "neighbors",
        n_neighbors: int = N_LATENT_NEIGHBORS,
        return_distance: bool = False,
    ) -> Any:
        """Assign samples to the clusters found in training, from the views they have.

        Parameters
        ----------
        views : list or dict of views, or Views
            As in :meth:`transform`.
        method : {"neighbors", "centers"}, default="neighbors"
            Majority label of the nearest training samples in the latent space (of tied labels, that of the nearest
            sample), or label of the nearest cluster centre.
        n_neighbors : int, default=10
            Number of training samples; no effect with ``method="centers"``.
        return_distance : bool, default=False
            Also return the distance of each sample to the training data.

        Returns
        -------
        labels : array of shape (n_samples,)
            Or a series with the name ``"cluster"`` and the ids of the samples, after ``set_output``.
        distances : array of shape (n_samples,), if ``return_distance``
            Distance to the nearest training sample in the scaled features, divided by the median distance from a
            training sample to the nearest that is not its duplicate; the largest over the views. Around 1 for samples
            like those in training; much larger for samples unlike any.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
        >>> model = GRMF(n_clusters=3, random_state=0).fit(data.views[:150])
        >>> model.predict(data.views[150:]).shape
        (50,)
        >>> labels, distances = model.predict([data.views.matrices[0][150:], None], return_distance=True)
        >>> bool(0.5 < distances.mean() < 2)
        True
        """
        check_choice("method", method, ("neighbors", "centers"))
        check_integer("n_neighbors", n_neighbors, low=1)
        if method == "centers":
            self._warn_unused_neighbors(n_neighbors, method)
        return self._assign(views, return_distance, method=method, n_neighbors=n_neighbors)

    def _predict_views(self, views: Views, method: str = "neighbors", n_neighbors: int = N_LATENT_NEIGHBORS) -> Array:
        return predict_labels(self, views, self._embed(views), method, n_neighbors)

    def recover(self, views: Any = None, *, method: str = "neighbors", n_neighbors: int = N_LATENT_NEIGHBORS) -> Any:
        """Complete the missing views of samples, in the units of the data.

        Parameters
        ----------
        views : list or dict of views, or Views, optional
            Samples to complete, as in :meth:`transform`; by default the training samples.
        method : {"neighbors", "basis"}, default="neighbors"
            The mean of the nearest training samples in the latent space that have the view, or z U (Remark 5). The
            second is the paper's; it is less accurate, since K components cannot hold a whole view.
        n_neighbors : int, default=10
            Number of training samples in a mean; no effect with ``method="basis"``.

        Returns
        -------
        list or dict of views
            Every view complete, in the container of the input; present values are unchanged.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> model = GRMF(n_clusters=2, random_state=0).fit(data.views)
        >>> [view.shape for view in model.recover()]
        [(60, 20), (60, 30)]
        """
        check_choice("method", method, self._recover_methods)
        check_integer("n_neighbors", n_neighbors, low=1)
        if method == "basis":
            self._warn_unused_neighbors(n_neighbors, method)
        if is_for_cluster(self, views):
            return self._on_cluster("recover", views, method=method, n_neighbors=n_neighbors)
        self.check_fitted()
        given = self.views_ if views is None else self._read_new(views)
        embedding = self.embedding_ if views is None else self._embed(given)
        return fill_missing_rows(given, self._recover_rows(given, embedding, method, n_neighbors))

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

    def _recover_rows(self, views: Views, embedding: Array, method: str, n_neighbors: int) -> Iterator[Matrix]:
        """Yield for each view the recovered rows of the samples without it."""
        return recover_rows(self, views, embedding, method, n_neighbors)

    # -- trust -----------------------------------------------------------------------------------------------

    def cluster_stability(self, *, n_resamples: int = 20, share: float = 0.8, random_state: Any = None) -> Stability:
        """Repeat the fit on random subsets of the training samples, and measure which clusters and samples are stable.

        Settings that were chosen from the data are not chosen again. ``graph`` and ``init`` are cut to the samples
        drawn, and ``n_neighbors`` is lowered where a view has fewer samples. Each view keeps at least two samples. A
        resample on which the fit fails, for instance because a view has become constant, is skipped with a warning.
        The cost is about ``n_resamples`` fits.

        Parameters
        ----------
        n_resamples : int, default=20
            Number of resamples.
        share : float, default=0.8
            Share of the samples in a resample.
        random_state : int, RandomState or None, default=None
            Seed of the subsets and of the fits.

        Returns
        -------
        Stability
            ``jaccard`` for every cluster, ``stays`` for every sample, ``failures`` of skipped resamples; see
            :func:`gapview.trust.cluster_stability`.

        Raises
        ------
        SolutionError
            If the fit fails on every resample.
        ParameterError
            If a resample, which is held in memory, needs more than ``memory_budget``.

        Examples
        --------
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(views)
        >>> bool(model.cluster_stability(n_resamples=5, random_state=0).jaccard.min() > 0.8)
        True
        """
        self.check_fitted()
        check_real("share", share, low=0, high=1, open_low=True)
        check_memory_for_parts(self, share)
        views = _dense_where_centered(self.views_, self.scalings_)
        n_clusters = len(self.cluster_centers_)
        if self.part_.any():  # each part has groups of its own
            n_clusters = max(len(np.unique(self.labels_[self.part_ == part])) for part in np.unique(self.part_))

        def fit(rows: Array, seed: int) -> Array:
            part = views[rows]
            model = clone(self).set_params(**self._resample_parameters(part, rows))
            model.set_params(n_clusters=min(n_clusters, part.n_samples), random_state=seed)
            with muted(GapviewWarning):  # the fit to all samples has warned already
                return model.fit(part).labels_  # type: ignore[no-any-return]

        return cluster_stability(
            fit,
            self.labels_,
            n_resamples=n_resamples,
            share=share,
            random_state=random_state,
            mask=views.mask,
            n_least=self._least_per_view(),
        )

    def view_agreement(self) -> Agreement:
        """Return how far the neighbours within each view, and in each pair of views, have the same label.

        The neighbours are those of the fit: ``graph`` where it was given, else ``n_neighbors`` of them.

        Returns
        -------
        Agreement
            ``above_chance`` for every cluster and view, ``pair_above_chance`` for every cluster and two views; see
            :func:`gapview.trust.view_agreement`.

        Examples
        --------
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(views)
        >>> model.view_agreement().above_chance.shape
        (3, 2)
        """
        self.check_fitted()
        return view_agreement(self._neighbor_graphs(), self.views_.mask, self.labels_)

    def feature_effects(self) -> list[ViewEffects]:
        """Return how far every feature differs between each cluster and all other samples, for each view.

        Returns
        -------
        list of ViewEffects
            Standardised differences; :func:`gapview.trust.top_features` lists the strongest.

        Examples
        --------
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> from gapview.trust import top_features
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(views)
        >>> strongest = top_features(model.feature_effects(), n_top=1)
        >>> len(strongest)
        6
        """
        self.check_fitted()
        return feature_effects(self.views_, self.labels_)

    def _neighbor_graphs(self) -> list[sparse.csr_array]:
        """Return the graph of neighbours within every view, as in the fit."""
        raise NotImplementedError

    def _least_per_view(self) -> int:
        """Return the number of samples of each view that a resample needs."""
        return 2 if isinstance(self.n_neighbors, str) else self.n_neighbors + 1

    def _resample_parameters(self, part: Views, rows: Array) -> dict[str, Any]:
        """Return the parameters that differ for a fit to some of the training samples, ``rows``."""
        if isinstance(self.n_neighbors, str):
            return {}
        return {"n_neighbors": min(self.n_neighbors, *(matrix.shape[0] - 1 for matrix in part.matrices))}


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


def _dense_where_centered(views: Views, scalings: list[Scaling]) -> Views:
    """Return the training data with sparse views as dense arrays where the fit has centred them.

    Whether a sparse view is centred depends on its share of zeros, which may differ in a part of the samples.
    """
    matrices = [
        matrix.toarray() if sparse.issparse(matrix) and scaling.center is not None else matrix
        for matrix, scaling in zip(views.matrices, scalings, strict=True)
    ]
    return views.with_matrices(matrices)
