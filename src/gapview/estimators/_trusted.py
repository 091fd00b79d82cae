"""What a fitted model says of how far to trust it; the functions behind it are in :mod:`gapview.trust`."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import clone

from ..graph import knn_graph, resolve_n_neighbors
from ..scaling import Scaling
from ..trust import Agreement, Stability, ViewEffects, cluster_stability, feature_effects, view_agreement
from ..views import Array
from ._base import MultiViewClusterer


class TrustedClusterer(MultiViewClusterer):
    """A clusterer that can be asked how far to trust it; its groups have centres in a latent space."""

    cluster_centers_: Array
    confidence_: Array
    scalings_: list[Scaling]

    def cluster_stability(self, *, n_resamples: int = 20, share: float = 0.8, random_state: Any = None) -> Stability:
        """Repeat the fit on random subsets of the training samples, and see which groups and samples stay together.

        Settings that were chosen from the data stay as they were chosen. Takes about as long as ``n_resamples`` fits.

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
            ``jaccard`` for every group, ``stays`` for every sample; see :func:`gapview.trust.cluster_stability`.

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
        pinned = self._pinned()

        def fit(rows: Array, seed: int) -> Array:
            model: Any = clone(pinned).set_params(random_state=seed)
            return model.fit(self.views_[rows]).labels_  # type: ignore[no-any-return]

        return cluster_stability(fit, self.labels_, n_resamples=n_resamples, share=share, random_state=random_state)

    def view_agreement(self) -> Agreement:
        """Ask the neighbours within each view, and in each pair of views, whether they confirm the groups.

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
        counts = resolve_n_neighbors("auto", self.views_, len(self.cluster_centers_))
        rows = zip(self.scalings_, self.views_.matrices, counts, strict=True)
        graphs = [knn_graph(scaling.apply(matrix), count) for scaling, matrix, count in rows]
        return view_agreement(graphs, self.views_.mask, self.labels_)

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
