"""What every clusterer of gapview has in common."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from ..backends.dask import demand_in_memory
from ..backends.disk import read_into_memory
from ..errors import NotFittedError
from ..persist.checkpoints.journal import fit_generator
from ..persist.model_file import save
from ..progress import phase
from ..scaling import SCALES
from ..utils.parameters import check_choice, check_integer
from ..utils.types import Array
from ..views import Views, training_views
from ..views.cells import PARTIAL_ROWS
from ._output import CLUSTER, OUTPUTS, as_series


class MultiViewClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Groups of samples from views with gaps.

    A method brings ``_check_parameters`` and ``_fit_views``; reading and checking the data, seeds and the attributes
    that all methods share are dealt with here.
    """

    n_clusters: int
    scale: str | None
    partial_rows: str
    random_state: Any

    labels_: Array
    embedding_: Array
    sample_ids_: Array
    views_: Views

    _fitted_attributes: tuple[str, ...] = ("labels_", "embedding_", "views_", "sample_ids_", "n_features_in_")

    def fit(self, views: Any, y: Any = None, *, mask: Any = None) -> Self:
        """Find groups among the samples.

        A fit that fails leaves the model as it was before.

        Parameters
        ----------
        views : list or dict of views, or Views
            See :class:`gapview.Views` for all that is accepted.
        y : ignored
            Here for scikit-learn's sake.
        mask : array-like of shape (n_samples, n_views), optional
            True where a sample has a view; by default rows of nothing but NaN are missing views.

        Returns
        -------
        self

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> GRMF(n_clusters=2, random_state=0).fit(data.views).labels_.shape
        (60,)
        """
        self._check_parameters()
        with self._training(views, mask) as training:
            self._fit_or_stay(training)
        return self

    def _training(self, views: Any, mask: Any) -> AbstractContextManager[Views]:
        """Read and check the training data; what they need besides is given back when the fit ends."""
        with phase("reading"):
            return nullcontext(training_views(views, mask, self.partial_rows, self._least_samples()))

    def _fit_or_stay(self, training: Views) -> None:
        before = dict(self.__dict__)
        try:
            for name in before:
                if name.endswith("_"):  # what an earlier fit has found must not mix with what this one finds
                    delattr(self, name)
            self._fit_views(self._placed(training), fit_generator(self.random_state))
            self.views_ = training.on_host()
            self.sample_ids_ = training.sample_ids
            self.n_features_in_ = sum(training.n_features)
        except BaseException:  # interruptions, too: the earlier model stays, whole
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def fit_predict(self, views: Any, y: Any = None, **options: Any) -> Any:
        """Find groups among the samples, and return the group of each.

        Parameters
        ----------
        views, y, **options
            As in :meth:`fit`.

        Returns
        -------
        array of shape (n_samples,)
            ``labels_``; after ``set_output(transform="pandas")`` the same as a series with the name ``"cluster"`` and
            the ids of the samples, after ``set_output(transform="polars")`` as one of polars, which has no place for
            ids: it is in the order of ``sample_ids_``.

        Examples
        --------
        >>> import pandas as pd
        >>> from gapview.baselines import Concat
        >>> blood = pd.DataFrame({"iron": [1.0, 1.1, 7.0, 7.1], "zinc": [5.0, 5.1, 1.0, 1.1]}, index=list("abcd"))
        >>> model = Concat(n_clusters=2, random_state=0).set_output(transform="pandas")
        >>> groups = model.fit_predict({"blood": blood})
        >>> groups.name, list(groups.index), bool(groups["a"] == groups["b"] != groups["c"])
        ('cluster', ['a', 'b', 'c', 'd'], True)
        """
        self.fit(views, y, **options)
        return as_series(self, self.labels_, self.views_, CLUSTER)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what ``fit_predict`` gives labels back in; ``labels_`` is an array in any case.

        Methods that have them give the results of ``predict``, ``transform`` and ``fit_transform`` back in the same.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            Arrays, or series and frames of pandas or polars. None leaves it as it is. The name is scikit-learn's.

        Returns
        -------
        self

        Examples
        --------
        >>> from gapview.baselines import ImputedKMeans
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
        >>> ImputedKMeans(n_clusters=2, random_state=0).set_output(transform="pandas").fit_predict(views).name
        'cluster'
        """
        check_choice("transform", transform, (None, *OUTPUTS))
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, from which :func:`gapview.load` makes it again, exactly.

        Everything is kept: settings, fitted attributes, the training data with their ids and the kind of container they
        came in, what ``set_output`` has set, the state of a ``RandomState``. The file holds numbers and text, no code;
        the customary ending is ``.gapview``. It holds the training data: give it to those only who may see them.

        Parameters
        ----------
        path : str or path
            The file. One that is there is replaced, once the new one is complete.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        DataFileError
            If the file cannot be written; what was there is untouched.
        InputTypeError
            If a setting or an id is of a kind that no model file can hold, such as a graph given as a frame.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import gapview
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "two.gapview"
        ...     gapview.GRMF(n_clusters=2, random_state=0).fit(views).save(path)
        ...     gapview.load(path).labels_.shape
        (60,)
        """
        demand_in_memory(self)
        save(read_into_memory(self), path)

    def _check_parameters(self) -> None:
        check_integer("n_clusters", self.n_clusters, low=1)
        check_choice("scale", self.scale, SCALES)
        check_choice("partial_rows", self.partial_rows, PARTIAL_ROWS)

    def _placed(self, views: Views) -> Views:
        """Bring the training data to where the fit is to run."""
        return views.on_host()

    def _least_samples(self) -> int:
        """Say how many samples a fit needs, one for every group."""
        return self.n_clusters

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        raise NotImplementedError

    def _demand_fitted(self) -> None:
        demand_in_memory(self)
        try:
            check_is_fitted(self, "labels_")
        except ValueError as error:
            raise NotFittedError(str(error)) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
