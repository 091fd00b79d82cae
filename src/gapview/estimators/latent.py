"""What follows from a latent space that all views share: new samples, recovered views, a score without labels."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..backends.dask import dask_kind, is_for_cluster
from ..backends.disk import read_budget, within_budget
from ..compute import single_threaded_blas
from ..errors import ParameterError
from ..graph.knn import mean_modularity, resolve_n_neighbors
from ..graph.neighbors import Search, SearchReport
from ..metrics import clustering_accuracy
from ..persist.checkpoints import recording
from ..progress import phase
from ..utils.parameters import check_choice, check_integer
from ..views import Views
from ._output import as_frame
from ._placing import PlacingClusterer

N_LATENT_NEIGHBORS = 10


class LatentClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PlacingClusterer):  # type: ignore[misc]
    """A clusterer whose bases carry samples into one latent space and back, in memory, from disk or on a cluster."""

    search: Any
    device: Any
    memory_budget: Any

    neighbor_search_: tuple[SearchReport, ...]

    _fitted_attributes: tuple[str, ...] = ("bases_", "scalings_", "cluster_centers_", "confidence_")

    def _check_place_and_search(self) -> None:
        if not isinstance(self.search, Search):
            check_choice("search", self.search, ("auto", "exact", "approximate"))
        if read_budget(self.memory_budget) is not None and self.device is not None:
            raise ParameterError(
                f"memory_budget is for fits on the processor, and device={self.device!r}: leave one of them out."
            )

    def _training(self, views: Any, mask: Any) -> AbstractContextManager[Views]:
        if self.memory_budget is None:
            return super()._training(views, mask)
        return within_budget(self, views, mask, self._least_samples())

    def _placed(self, views: Views) -> Views:
        if self.device is None:
            return views
        with phase("to the device"):
            return views.to_device(self.device)

    def _new_search(self) -> Search:
        """Return how to look for neighbours in this fit, with an empty list of what was done."""
        return replace(self.search) if isinstance(self.search, Search) else Search(self.search)

    def fit(self, views: Any, y: Any = None, *, mask: Any = None, checkpoint: Any = None) -> Self:
        """Find groups among the samples.

        A fit that fails leaves the model as it was before.

        Parameters
        ----------
        views : list or dict of views, or Views
            See :class:`gapview.Views` for all that is accepted. Dask arrays, and Dask dataframes whose index holds the
            sample ids, are fitted on the cluster of the current ``distributed.Client``; results with a row for each
            sample then are Dask arrays, and ``reference_`` is an ordinary model with a sample of the training data.
        y : ignored
            Here for scikit-learn's sake.
        mask : array-like of shape (n_samples, n_views), optional
            True where a sample has a view; by default rows of nothing but NaN are missing views.
        checkpoint : str or path, optional
            A folder, new or empty, in which finished work is kept while the fit goes on, about every ten seconds. If
            the fit is cut off, by Ctrl-C, a crash or a power cut, the same fit with the same folder goes on from there,
            and finds what it would have found. The folder is made when there is something to keep, and deleted when the
            fit has ended. It holds neighbours, codes and labels, not the views. On a cluster: a folder that all workers
            reach, or an address that fsspec knows, written every ten iterations; it holds codes, and stays when the
            fit has ended, since results that are lost with a worker are made again from it: remove it when these
            are stored elsewhere. Nobody watches there that two fits do not use the same one.

        Returns
        -------
        self

        Raises
        ------
        DataFileError
            If the checkpoint belongs to other data, other settings, another state of the generator ``random_state`` or
            another version of gapview (in a development install: other source code), with what differs; if it is in use
            by another fit; or if the folder holds anything else. It is left as it is.

        Warns
        -----
        GapviewWarning
            If the checkpoint cannot be written, for instance because the disk is full: the fit goes on. If a part of it
            is damaged: that part is computed again.

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
        self._check_parameters()
        if dask_kind(views) is not None:
            from ._dask_grmf import fit_on_cluster  # needs the extra "dask"

            fit_on_cluster(self, views, mask, checkpoint)
            return self
        # BLAS on one thread: its sums, and so the results, then do not depend on what else runs in the process
        with single_threaded_blas(), self._training(views, mask) as training, recording(checkpoint, self, training):
            self._fit_or_stay(training)
        return self

    def fit_transform(self, views: Any, y: Any = None, *, mask: Any = None, checkpoint: Any = None) -> Any:
        """Fit, and return the consensus representation of the samples, ``embedding_``.

        It has seen every sample's neighbours; ``transform`` of the same samples has not, and differs. Parameters are
        those of :meth:`fit`.

        Parameters
        ----------
        views, y, mask, checkpoint : as in :meth:`fit`
            The data, and what else :meth:`fit` takes.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> GRMF(n_clusters=2, random_state=0).fit_transform(data.views).shape
        (60, 2)
        """
        more = {} if checkpoint is None else {"checkpoint": checkpoint}  # a class made from this one may know of none
        return as_frame(self, self.fit(views, y, mask=mask, **more).embedding_, self.views_)

    def transform(self, views: Any) -> Any:
        """Carry samples into the latent space, from whatever views they have.

        By x Uᵀ, averaged over the views of a sample (Remark 1); through a bridge, by the mean of that and of the
        codes of its neighbours in these views.

        Parameters
        ----------
        views : list or dict of views, or Views
            Any subset of the views seen in training: a dict with some of their names, or a list with ``None`` for a
            view that is not there.

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
        return self._where_views_are("transform", views)

    def predict(
        self,
        views: Any,
        *,
        method: str = "neighbors",
        n_neighbors: int = N_LATENT_NEIGHBORS,
        return_distance: bool = False,
    ) -> Any:
        """Assign samples to the groups found in training, from whatever views they have.

        Parameters
        ----------
        views : list or dict of views, or Views
            As in :meth:`transform`.
        method : {"neighbors", "centers"}, default="neighbors"
            By vote of the nearest training samples in the latent space (if it ends in a tie, the nearest of the tied
            decides), or by the nearest centre of a group.
        n_neighbors : int, default=10
            How many training samples vote.
        return_distance : bool, default=False
            Also return how far each sample lies from anything seen in training.

        Returns
        -------
        labels : array of shape (n_samples,)
            Or a series with the name ``"cluster"`` and the ids of the samples, after ``set_output``.
        distances : array of shape (n_samples,), if ``return_distance``
            Distance to the nearest training sample in the scaled features, in units of the usual (median) distance from
            a training sample to the nearest that is not its duplicate, in the view in which it is
            largest. Around 1 for samples like those in training; well above for samples unlike any.

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
        options = {"method": method, "n_neighbors": n_neighbors, "return_distance": return_distance}
        return self._where_views_are("predict", views, **options)

    def recover(self, views: Any = None, *, method: str = "neighbors", n_neighbors: int = N_LATENT_NEIGHBORS) -> Any:
        """Complete the missing views of samples, in the units of the data.

        Parameters
        ----------
        views : list or dict of views, or Views, optional
            Samples to complete, as in :meth:`transform`; by default the training samples.
        method : {"neighbors", "basis"}, default="neighbors"
            The mean of the nearest training samples in the latent space that have the view, or z U (Remark 5). The
            second is the paper's; it recovers less well, since K components cannot hold a whole view.
        n_neighbors : int, default=10
            How many training samples are averaged.

        Returns
        -------
        list or dict of views
            Every view complete, in the kind of container that came; present values are untouched.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> model = GRMF(n_clusters=2, random_state=0).fit(data.views)
        >>> [view.shape for view in model.recover()]
        [(60, 20), (60, 30)]
        """
        check_choice("method", method, ("neighbors", "basis"))
        check_integer("n_neighbors", n_neighbors, low=1)
        return self._where_views_are("recover", views, method=method, n_neighbors=n_neighbors)

    def score(self, views: Any, y: Any = None) -> float:
        """Say how good the groups are on these samples; the higher, the better.

        Without ``y``: the modularity of the predicted groups on the neighbour graphs of the views themselves, averaged
        over the views. It needs no labels, so that ``GridSearchCV`` can choose settings by it. With ``y``: the accuracy
        after matching.

        Parameters
        ----------
        views : list or dict of views, or Views
            As in :meth:`transform`.
        y : array of shape (n_samples,), optional
            Known groups, in the order of the samples.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, random_state=0)
        >>> model = GRMF(n_clusters=2, random_state=0).fit(data.views)
        >>> model.score(data.views) > 0.3, model.score(data.views, data.target)
        (True, 1.0)
        """
        return float(self._where_views_are("score", views, y=y))

    def _where_views_are(self, name: str, views: Any, **options: Any) -> Any:
        """Do what a method does: by ``_name`` here, or block by block where the data or the model are on a cluster."""
        if is_for_cluster(self, views):
            from ..backends.dask.apply import apply_to_blocks  # needs the extra "dask"

            return apply_to_blocks(self, name, views, options)
        return getattr(self, f"_{name}")(views, **options)

    def _score(self, views: Any, y: Any) -> float:
        given = self._read_new(views)
        labels = np.asarray(self.predict(given))
        if y is not None:
            return clustering_accuracy(y, labels)
        scaled = self._scaled(given)
        counts = resolve_n_neighbors("auto", given, len(self.cluster_centers_))
        return float(mean_modularity([labels], scaled, given, counts)[0])
