"""The base class of all clusterers: reading data, seeds, attributes that all methods have, output, model files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Number
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from ..backends.dask import demand_in_memory, is_for_cluster
from ..backends.disk.views import read_into_memory
from ..backends.support import output_kind
from ..clusters import group_order, renumbered
from ..errors import InputTypeError, NotFittedError, described, extra
from ..persist.checkpoints.journal import fit_generator
from ..persist.model_file import save
from ..progress import phase
from ..scaling import SCALES, Scaling, scale_views
from ..utils.messages import check_choice, check_flag, check_integer, warn_user
from ..utils.types import Array, Matrix
from ..views import Views, compare, new_views, training_views
from ..views.cells import PARTIAL_ROWS
from .predict import distance_to_training, neighbor_vote

CLUSTER = "cluster"  # name of a series of labels
OUTPUTS = ("default", "pandas", "polars")


@dataclass(frozen=True)
class NoEffect:
    """A rule of an estimator: when one of its parameters has no effect.

    An estimator lists its rules in ``_no_effect``; those of its parent classes apply too.

    Examples
    --------
    >>> from gapview.estimators.base import NoEffect
    >>> rule = NoEffect("search", lambda model, views: model.graph is not None, "graph is given", "leave out graph")
    >>> rule.parameter
    'search'
    """

    parameter: str
    applies: Callable[[Any, Any], bool]  # of the model and its training data, Views or BlockedViews
    reason: str  # names the parameter or the property of the data that overrides this parameter
    remedy: str  # what to change for the parameter to have an effect


class MultiViewClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters samples described by several views, some of which may be missing.

    A subclass defines ``_fit_views``, and ``check_parameters`` and ``_no_effect`` for its own parameters.
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
    _no_effect: ClassVar[tuple[NoEffect, ...]] = (
        NoEffect(
            "partial_rows",
            lambda model, views: isinstance(views, Views) and views.partial_rows != model.partial_rows,
            "the training data are a Views, whose rows are complete already",
            "give it to Views(data, partial_rows=...)",
        ),
    )

    def fit(self, views: Any, y: Any = None, *, mask: Any = None) -> Self:
        """Cluster the samples.

        A fit that fails leaves the model as it was before.

        Parameters
        ----------
        views : list or dict of views, or Views
            See :class:`gapview.Views` for all that is accepted.
        y : ignored
            Present because scikit-learn passes it.
        mask : array-like of shape (n_samples, n_views), optional
            True where a sample has a view; by default rows of nothing but NaN are missing views.

        Returns
        -------
        self

        Warns
        -----
        GapviewWarning
            If a parameter is not at its default and has no effect, with the parameter that overrides it.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0)
        >>> GRMF(n_clusters=2, random_state=0).fit(data.views).labels_.shape
        (60,)
        """
        self.check_parameters()
        with phase("reading"):
            training = training_views(views, mask, self.partial_rows, self._least_samples())
        with self._unchanged_on_error():
            warn_unused_parameters(self, training)
            self._fit_views(training.on_host(), fit_generator(self.random_state))
            self._number_groups(training.sample_ids)
            self.views_, self.sample_ids_ = training.on_host(), training.sample_ids
            self.n_features_in_ = sum(training.n_features)
        return self

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Discard the results of an earlier fit; restore them if the fit within fails or is interrupted."""
        before = dict(self.__dict__)
        try:
            for name in before:
                if name.endswith("_"):
                    delattr(self, name)
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def fit_predict(self, views: Any, y: Any = None, **options: Any) -> Any:
        """Cluster the samples and return their labels.

        Parameters
        ----------
        views, y, **options
            As in :meth:`fit`.

        Returns
        -------
        array of shape (n_samples,)
            ``labels_``. After ``set_output(transform="pandas")`` a series with the name ``"cluster"`` and the sample
            ids as index; after ``set_output(transform="polars")`` a polars series in the order of ``sample_ids_``.

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

    def predict(self, views: Any, *, return_distance: bool = False) -> Any:
        """Assign samples to the groups found in training, from the views they have.

        A method that has a rule for new samples, such as centres or anchors, uses it. Other methods take the most
        frequent label among the nearest training samples, found in every view of the sample and averaged over its
        views; their number is the paper's rule (``n_neighbors="auto"`` of :class:`gapview.GRMF`).

        Parameters
        ----------
        views : list or dict of views, or Views
            Any subset of the views seen in training: a dict with some of their names, or a list with ``None`` for an
            absent view.
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
        >>> from gapview.baselines import Concat
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
        >>> model = Concat(n_clusters=3, random_state=0).fit(data.views[:150])
        >>> model.predict({"view_0": data.views.matrices[0][150:]}).shape
        (50,)
        """
        return self._assign(views, return_distance)

    def _assign(self, views: Any, return_distance: bool, **options: Any) -> Any:
        """Return what :meth:`predict` does; ``options`` are those of the rule for new samples."""
        check_flag("return_distance", return_distance)
        if is_for_cluster(self, views):
            return self._on_cluster("predict", views, return_distance=return_distance, **options)
        given = self._read_new(views)
        labels = self._predict_views(given, **options).astype(self.labels_.dtype)
        named = as_series(self, labels, given, CLUSTER)
        if not return_distance:
            return named
        return named, as_series(self, distance_to_training(self, given), given, "distance")

    def _predict_views(self, views: Views) -> Array:
        """Return the group of each sample; here by a vote of its neighbours in the views it has."""
        return neighbor_vote(self, views)

    def scaled(self, views: Views) -> list[Matrix]:
        """Return the matrices of views, scaled as in the fit.

        Parameters
        ----------
        views : Views
            Samples with the views of the model.

        Returns
        -------
        list of arrays or csr_arrays
            The present rows of each view.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
        >>> model = GRMF(n_clusters=2, random_state=0).fit(views)
        >>> [matrix.shape == given.shape for matrix, given in zip(model.scaled(views), views.matrices)]
        [True, True]
        """
        return [scaling.apply(matrix) for scaling, matrix in zip(self._scalings(), views.matrices, strict=True)]

    def _scalings(self) -> list[Scaling]:
        """Return the scaling of every view, fitted to the training samples."""
        return scale_views(self.views_, self.scale)[1]

    def _read_new(self, views: Any) -> Views:
        """Read new samples; warn if their values are unlike those of the training samples."""
        self.check_fitted()
        given = new_views(views, self.views_, self.partial_rows)
        for message in compare(given, self.views_):
            warn_user(message)
        return given

    def _on_cluster(self, name: str, views: Any, **options: Any) -> Any:
        """Apply a method to Dask collections block by block, or to a model that was fitted on a cluster."""
        from ..backends.dask.apply import apply_to_blocks  # needs the extra "dask"

        return apply_to_blocks(self, name, views, options)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the container that ``fit_predict`` returns; ``labels_`` is always an array.

        ``predict`` and, where the method has them, ``transform`` and ``fit_transform`` return the same container.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            Arrays, or series and frames of pandas or polars. None keeps the current setting. The name is
            scikit-learn's.

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
        """Write the fitted model to a file, from which :func:`gapview.load` restores it exactly.

        The file holds parameters, fitted attributes, the setting of ``set_output``, the state of a ``RandomState`` and
        the training data with their ids and containers. It holds numbers and text, no code. The usual ending is
        ``.gapview``. Since it holds the training data, share it only with people who may see them.

        Parameters
        ----------
        path : str or path
            The file. An existing file is replaced once the new one is complete.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        DataFileError
            If the file cannot be written; an existing file is unchanged.
        InputTypeError
            If a parameter or an id has a type that a model file cannot hold, such as a graph given as a frame.

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

    def check_parameters(self) -> None:
        """Raise an error if a parameter has a wrong type or value."""
        check_integer("n_clusters", self.n_clusters, low=1)
        check_choice("scale", self.scale, SCALES)
        check_choice("partial_rows", self.partial_rows, PARTIAL_ROWS)

    def _least_samples(self) -> int:
        """Return the number of samples that a fit needs."""
        return self.n_clusters

    def _fit_views(self, views: Views, random_state: np.random.RandomState) -> None:
        raise NotImplementedError

    def _number_groups(self, ids: Array) -> None:
        """Apply :func:`gapview.clusters.group_order` to every attribute that refers to groups by number."""
        order = group_order(self.labels_, ids, self.n_clusters)
        self.labels_ = renumbered(self.labels_, order)
        if hasattr(self, "cluster_centers_"):
            self.cluster_centers_: Array = self.cluster_centers_[order]

    def check_fitted(self) -> None:
        """Raise an error unless the model is fitted and its training data are in this process."""
        demand_in_memory(self)
        try:
            check_is_fitted(self, "labels_")
        except ValueError as error:
            raise NotFittedError(str(error)) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def demand_fitted(user: str, model: Any, kind: Any = MultiViewClusterer, named: str = "clusterer of gapview") -> None:
    """Raise an error unless the model is a fitted one of a kind; ``user`` and ``named`` are words of the message."""
    if not isinstance(model, kind):
        raise InputTypeError(f"{user} needs a fitted {named}; got {described(model)}.")
    model.check_fitted()


def warn_unused_parameters(model: Any, views: Any) -> None:
    """Warn of each parameter of a model that is not at its default and has no effect on the fit to these views."""
    for kind in type(model).__mro__:
        for rule in vars(kind).get("_no_effect", ()):
            if rule.applies(model, views):
                value = getattr(model, rule.parameter)
                warn_no_effect(type(model).__init__, rule.parameter, value, rule.reason, rule.remedy)


def warn_no_effect(function: Callable[..., Any], parameter: str, value: Any, reason: str, remedy: str) -> None:
    """Warn that a parameter of a function has no effect, unless its value is the default."""
    declared = inspect.signature(function).parameters.get(parameter)
    is_plain = value is None or isinstance(value, str | Number)
    if declared is None or (is_plain and value == declared.default):
        return
    given = f"{parameter}={value!r}" if is_plain else parameter
    warn_user(f"{given} has no effect, since {reason}. Leave out {parameter}, or {remedy}.")


# -- containers of results -----------------------------------------------------------------------------------


def as_frame(model: Any, values: Array, views: Views) -> Any:
    """Return a pandas frame with the sample ids, if selected; scikit-learn makes all other containers."""
    if output_kind(model) != "pandas":
        return values
    return _library("pandas").DataFrame(values, index=_index(views))


def as_series(model: Any, values: Array, views: Views, name: str) -> Any:
    """Return a named series if frames are selected, with sample ids for pandas; else the array."""
    kind = output_kind(model)
    if kind == "pandas":
        return _library("pandas").Series(values, index=_index(views), name=name)
    return _library("polars").Series(name, values) if kind == "polars" else values


def _library(name: str) -> Any:
    return extra(name, "tables", f"set_output(transform={name!r})")


def _index(views: Views) -> Any:
    return _library("pandas").Index(views.sample_ids, name=views.id_name)
