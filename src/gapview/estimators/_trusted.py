"""What a fitted model says of how far to trust it; the functions behind it are in :mod:`gapview.trust`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ..backends.disk import check_memory_for_parts
from ..choice.selection import Setting
from ..errors import GapviewWarning
from ..graph.knn import knn_graph
from ..scaling import Scaling
from ..trust import Agreement, Stability, ViewEffects, cluster_stability, feature_effects, view_agreement
from ..utils.parameters import check_real
from ..utils.types import Array, Matrix
from ..utils.warnings import muted
from ..views import Views
from ..views.checks import one_per_view
from .base import MultiViewClusterer


class TrustedClusterer(MultiViewClusterer):
    """A clusterer that can be asked how far to trust it; its groups have centres in a latent space.

    It keeps the neighbours within its views, ``graphs_``, or says in ``setting_`` how many there were.
    """

    n_neighbors: int | str
    cluster_centers_: Array
    confidence_: Array
    graphs_: list[sparse.csr_array]
    scalings_: list[Scaling]
    setting_: Setting

    def cluster_stability(self, *, n_resamples: int = 20, share: float = 0.8, random_state: Any = None) -> Stability:
        """Repeat the fit on random subsets of the training samples, and see which groups and samples stay together.

        Settings that were chosen from the data stay as they were chosen. What was given for every sample (``graph``,
        ``init``) is cut to those drawn, and ``n_neighbors`` gives way where a view has fewer of them. No view is left
        without samples to compare; a resample on which the fit fails all the same, for instance because a view has
        become constant, is left out with a warning. Takes about as long as ``n_resamples`` fits.

        Parameters
        ----------
        n_resamples : int, default=20
            How often to repeat the fit.
        share : float, default=0.8
            Share of the samples in a resample.
        random_state : int, RandomState or None, default=None
            Seed of the subsets and of the fits.

        Returns
        -------
        Stability
            ``jaccard`` for every group, ``stays`` for every sample, ``failures`` where resamples were left out; see
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
        self._demand_fitted()
        check_real("share", share, low=0, high=1, open_low=True)
        check_memory_for_parts(self, share)
        pinned, views = self._pinned(), self._written_out()

        def fit(rows: Array, seed: int) -> Array:
            part = views[rows]
            model: Any = clone(pinned).set_params(random_state=seed, **self._settings_for(pinned, part, rows))
            with muted(GapviewWarning):  # said of all samples, by the fit itself
                return model.fit(part).labels_  # type: ignore[no-any-return]

        return cluster_stability(
            fit,
            self.labels_,
            n_resamples=n_resamples,
            share=share,
            random_state=random_state,
            mask=views.mask,
            n_least=2 if isinstance(self.n_neighbors, str) else self.n_neighbors + 1,
        )

    def view_agreement(self) -> Agreement:
        """Ask the neighbours within each view, and in each pair of views, whether they confirm the groups.

        The neighbours are those of the fit: ``graph`` where it was given, else as many as ``n_neighbors`` says.

        Returns
        -------
        Agreement
            ``above_chance`` for every group and view, ``pair_above_chance`` for every group and two views; see
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
        self._demand_fitted()
        return view_agreement(self._neighbor_graphs(), self.views_.mask, self.labels_)

    def feature_effects(self) -> list[ViewEffects]:
        """Say how far every feature sets every group apart from the others: standardised differences, view by view.

        Returns
        -------
        list of ViewEffects
            For the strongest of them see :func:`gapview.trust.top_features`.

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
        self._demand_fitted()
        return feature_effects(self.views_, self.labels_)

    def _pinned(self) -> Self:
        """Return an unfitted model that will do as this one has done, without choosing again."""
        return clone(self)  # type: ignore[no-any-return]

    def _neighbor_graphs(self) -> list[sparse.csr_array]:
        """Give the neighbours within every view, as the fit has seen them."""
        if hasattr(self, "graphs_"):
            return self.graphs_
        rows = zip(self.scalings_, self.views_.matrices, self.setting_.n_neighbors, strict=True)
        return [knn_graph(scaling.apply(matrix), count) for scaling, matrix, count in rows]

    def _written_out(self) -> Views:
        """Give the training data with sparse views written out where the fit has done so, too.

        Whether a sparse view may be centred depends on its share of zeros, and a part of it may lie on the other side.
        """
        matrices = [
            matrix.toarray() if sparse.issparse(matrix) and scaling.center is not None else matrix
            for matrix, scaling in zip(self.views_.matrices, self.scalings_, strict=True)
        ]
        return self.views_._like(tuple(matrices), self.views_.mask, self.views_.sample_ids)

    def _settings_for(self, pinned: Any, part: Views, rows: Array) -> dict[str, Any]:
        """Fit the settings of ``pinned`` to some of the training samples, ``rows``."""
        settings: dict[str, Any] = {"n_clusters": min(pinned.n_clusters, part.n_samples)}
        if not isinstance(pinned.n_neighbors, str):
            settings["n_neighbors"] = min(pinned.n_neighbors, *(matrix.shape[0] - 1 for matrix in part.matrices))
        if getattr(pinned, "graph", None) is not None:
            kept = [np.isin(self.views_.rows(k), rows) for k in range(part.n_views)]
            settings["graph"] = [graph[own][:, own] for graph, own in zip(self.graphs_, kept, strict=True)]
        if not isinstance(getattr(pinned, "init", "data"), str):
            given = one_per_view(pinned.init, self.views_, "init must hold one array for each view")
            settings["init"] = [_cut(codes, self.views_, k, rows) for k, codes in enumerate(given)]
        return settings


def _cut(codes: Any, views: Views, view: int, rows: Array) -> Matrix:
    """Keep the codes of some samples, given for those that have the view or for all."""
    codes = codes if sparse.issparse(codes) else np.asarray(codes)
    having = views.rows(view)
    return codes[having[np.isin(having, rows)] if codes.shape[0] == views.n_samples else np.isin(having, rows)]
