"""The base class of all clusterers: reading data, seeds, attributes that all methods have, output, model files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Number
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..backends.dask import demand_in_memory, is_for_cluster
from ..backends.disk.views import read_into_memory
from ..backends.support import output_kind
from ..clusters import group_order, renumbered
from ..compute.engine import single_threaded_blas
from ..correction import apply_corrections
from ..errors import GapviewWarning, InputTypeError, NotFittedError, described, extra
from ..graph.bridges import unite_graphs
from ..graph.knn import knn_graph, resolve_n_neighbors
from ..kinds import Preparation, feature_views, fit_kind, prepared_views, resolved_kinds
from ..persist.checkpoints.journal import fit_generator
from ..persist.model_file import save
from ..progress import phase, showing
from ..scaling import SCALES, Scaling, scale_views
from ..trust import Contributions, GroupAssociation, Markers, find_markers, group_association, view_contributions
from ..trust.association import BATCH, MISSING_VIEWS, missing_views_association
from ..utils.messages import check_choice, check_flag, check_integer, check_real, muted, warn_user
from ..utils.types import Array, Matrix
from ..views import Views, new_views, training_views
from ..views.cells import PARTIAL_ROWS
from ..views.kinds import AUTO, check_kind, is_for_each, kind_per_view, top_per_view
from ..views.sample_columns import read_batch
from .placement import ALPHA, Placement, known_novelty, view_notes
from .predict import neighbor_shares
from .shown import fitted_html

CLUSTER = "cluster"  # name of a series of labels
OUTPUTS = ("default", "pandas", "polars")
# Training data of models, transformed by their kinds: with the features that are kept, and with all
_prepared: WeakKeyDictionary[Any, tuple[Views, list[Preparation], dict[bool, Views]]] = WeakKeyDictionary()
_TIE = 1e-9  # added to the share of the label, for equal shares


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
    kind: Any = None
    n_top_features: Any = None
    scale: str | None
    partial_rows: str
    random_state: Any

    labels_: Array
    embedding_: Array
    sample_ids_: Array
    views_: Views
    kinds_: list[Preparation]  # not in files of gapview 0.1
    associations_: tuple[GroupAssociation, ...]  # with missing views and batches; not in files of gapview 0.1

    _fitted_attributes: tuple[str, ...] = ("labels_", "embedding_", "views_", "sample_ids_", "n_features_in_")
    _no_effect: ClassVar[tuple[NoEffect, ...]] = (
        NoEffect(
            "partial_rows",
            lambda model, views: isinstance(views, Views) and views.partial_rows != model.partial_rows,
            "the training data are a Views, whose rows are complete already",
            "give it to Views(data, partial_rows=...)",
        ),
        NoEffect(
            "n_top_features",
            lambda model, views: _keeps_all_features(model, views),
            "no view has more features",
            "lower it",
        ),
    )

    def fit(self, views: Any, y: Any = None, *, mask: Any = None, batch: Any = None) -> Self:
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
        batch : array-like of shape (n_samples,), optional
            Batch of every sample, such as plate, run or site: in the order of the samples, or a pandas Series with
            sample ids as index. The groups are tested against it, see ``associations_``; it does not change them.

        Returns
        -------
        self

        Warns
        -----
        GapviewWarning
            If a parameter is not at its default and has no effect, with the parameter that overrides it. If the groups
            are largely explained by batch, or by which views a sample lacks.

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
            training = training_views(views, mask, self.partial_rows, self._least_samples(), self.kind)
        batches = None if batch is None else read_batch(batch, training.sample_ids)
        with showing(), self._unchanged_on_error():
            warn_unused_parameters(self, training)
            given = training.on_host()
            parts = zip(given.names, given.one_by_one(), *self._kinds_of(given, lambda: given), strict=True)
            self.kinds_ = [fit_kind(*part) for part in parts]
            self._fit_views(prepared_views(given, self.kinds_), fit_generator(self.random_state))
            self._number_groups(training.sample_ids)
            self.views_, self.sample_ids_ = training.on_host(), training.sample_ids
            self.n_features_in_ = sum(training.n_features)
            self._test_associations(batches)
        return self

    def _test_associations(self, batches: Sequence[str | None] | None) -> None:
        """Test the groups against missing views and batches; warn if these largely explain the groups."""
        tests = [missing_views_association(self.labels_, self.views_.mask, self.views_.names)]
        if batches is not None:
            tests.append(group_association(self.labels_, batches, BATCH))
            if tests[-1] is None:
                warn_user("batch has no effect: all samples with a batch are in one batch or in one group.")
        self.associations_ = tuple(test for test in tests if test is not None)
        for test in self.associations_:
            # Samples that no shared view connects are in different groups by construction; a warning has reported it
            is_known = test.factor == MISSING_VIEWS and bool(np.any(getattr(self, "part_", 0)))
            if test.is_warning and not is_known:
                warn_user(test.warning)

    def _kinds_of(self, views: Any, draw: Callable[[], Views]) -> tuple[list[str | None], list[int | None]]:
        """Return the kind of each view, and the number of features to keep; "auto" by the values of some samples."""
        kinds = found = kind_per_view(self.kind, views.names)
        if AUTO in kinds:
            found = resolved_kinds(kinds, draw())
        if AUTO in kinds and not any(found):
            warn_user("kind='auto' has no effect: no kind is proposed for the values of any view. Leave it out.")
        return found, top_per_view(self.n_top_features, views.names)

    def prepared(self, views: Views, *, all_features: bool = False) -> Views:
        """Return views as the fit scales and clusters them: transformed by their kinds, with the features it keeps.

        Parameters
        ----------
        views : Views
            Samples with the views of the model, in the units of the data.
        all_features : bool, default=False
            Whether features that ``n_top_features`` leaves out are returned, too.

        Returns
        -------
        Views
            The same object if the model has neither kinds nor ``n_top_features``.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import GRMF, Views
        >>> views = Views({"rna": np.random.RandomState(0).poisson(5, size=(40, 6))})
        >>> model = GRMF(n_clusters=2, kind="counts", random_state=0).fit(views)
        >>> bool(model.prepared(views).matrices[0].max() < 4)
        True
        """
        rules: list[Preparation] = getattr(self, "kinds_", [])
        if all(rule.is_identity for rule in rules):
            return views
        all_features = all_features and any(rule.kept is not None for rule in rules)
        if views is not getattr(self, "views_", None):
            return prepared_views(views, rules, all_features=all_features)
        source, of_rules, known = _prepared.get(self, (None, None, {}))
        if source is not views or of_rules is not rules:
            known = {}
            _prepared[self] = views, rules, known
        if all_features not in known:
            known[all_features] = prepared_views(views, rules, all_features=all_features)
        return known[all_features]

    def _kind_parameters(self, views: Views) -> dict[str, Any]:
        """Return the parameters with which a fit to some of the samples and views prepares them in the same way."""
        kinds = {rule.name: rule.kind for rule in getattr(self, "kinds_", ()) if rule.kind and rule.name in views.names}
        if not is_for_each(self.n_top_features):
            return {"kind": kinds or None}
        named = dict(zip(self.views_.names, top_per_view(self.n_top_features, self.views_.names), strict=True))
        return {"kind": kinds or None, "n_top_features": {name: named[name] for name in views.names}}

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

    def predict(self, views: Any) -> Any:
        """Assign samples to the groups found in training, from the views they have.

        A method that has a rule for new samples, such as centres or anchors, uses it. Other methods take the most
        frequent label among the nearest training samples, found in every view of the sample and averaged over its
        views; their number is the paper's rule (``n_neighbors="auto"`` of :class:`gapview.GRMF`).

        Every sample gets a group, also one unlike all training samples: :meth:`place` returns p-values.

        Parameters
        ----------
        views : list or dict of views, or Views
            Any subset of the views seen in training: a dict with some of their names, or a list with ``None`` for an
            absent view. Up to a fifth of the features of a view may be missing: they are filled from the nearest
            training samples, with a warning.

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
        >>> from gapview.baselines import Concat
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
        >>> model = Concat(n_clusters=3, random_state=0).fit(data.views[:150])
        >>> model.predict({"view_0": data.views.matrices[0][150:]}).shape
        (50,)
        """
        return self._assign(views)

    def _assign(self, views: Any, **options: Any) -> Any:
        """Return what :meth:`predict` does; ``options`` are those of the rule for new samples."""
        if is_for_cluster(self, views):
            return self._on_cluster("predict", views, **options)
        given = self._read_new(views)
        labels = self._predict_views(given, **options).astype(self.labels_.dtype)
        return as_series(self, labels, given, CLUSTER)

    def predict_proba(self, views: Any) -> Any:
        """Return the share of each group in the rule by which :meth:`predict` assigns samples.

        For neighbours, the shares of their votes; for centres and distances, affinities that fall exponentially with
        the distance. The group of :meth:`predict` has the largest share.

        Parameters
        ----------
        views : list or dict of views, or Views
            As in :meth:`predict`.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            Rows sum to 1. Or a frame with the columns ``cluster0``, ``cluster1``, …, after ``set_output``.

        Examples
        --------
        >>> from gapview.baselines import Concat
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
        >>> model = Concat(n_clusters=3, random_state=0).fit(data.views[:150])
        >>> model.predict_proba(data.views[150:]).shape
        (50, 3)
        """
        if is_for_cluster(self, views):
            return self._on_cluster("predict_proba", views)
        given = self._read_new(views)
        return as_columns(self, self._proba(given, self._predict_views(given)), given, CLUSTER)

    @property
    def n_groups(self) -> int:
        """The number of groups, which ``n_clusters="auto"`` leaves to the fit."""
        return len(self.cluster_centers_) if hasattr(self, "cluster_centers_") else self.n_clusters

    def _proba(self, views: Views, labels: Array) -> Array:
        """Return shares of all groups that sum to 1; of equal ones, that of the label is the largest."""
        shares = self._predict_shares(views).astype(np.float64)
        shares[np.arange(len(labels)), labels] += _TIE
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def place(self, views: Any, *, alpha: float = ALPHA) -> Placement:
        """Assign samples to groups, and report which of them are unlike those of training.

        Each view of a sample is compared with the same view of at most about 1,000 training samples: its size, its
        values, its zeros, and its distances to the nearest ones. The p-value is the share of training samples that are
        at least as unusual, each judged as if it were new (conformal prediction).

        Parameters
        ----------
        views : list or dict of views, or Views
            As in :meth:`predict`.
        alpha : float, default=0.05
            Samples with a p-value of at most ``alpha`` are unusual. Of samples like those in training, this share is
            unusual by chance.

        Returns
        -------
        Placement
            ``labels``, ``proba``, ``confidence``, ``p_values`` for every view, ``p_value``, ``unusual``, ``notes``.

        Warns
        -----
        GapviewWarning
            As in :meth:`predict`.

        Examples
        --------
        >>> import warnings
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
        >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(data.views[:150])
        >>> bool(model.place(data.views[150:]).unusual.mean() < 0.2)
        True
        >>> with warnings.catch_warnings(action="ignore"):
        ...     found = model.place([1000 * matrix[150:] for matrix in data.views.matrices])
        >>> bool(found.unusual.all()), found.notes[0][:86]
        (True, "View 'view_0' of the new samples is unlike that of the training samples: most values a")
        """
        check_real("alpha", alpha, low=0, high=1, open_low=True)
        if is_for_cluster(self, views):
            return self._on_cluster("place", views, alpha=alpha)  # type: ignore[no-any-return]
        self.check_fitted()
        given = new_views(views, self.views_, self.partial_rows)
        trained, prepared = self.prepared(self.views_), self.prepared(given)
        of_views, together = known_novelty(trained).p_values(prepared)
        notes = view_notes(prepared, trained, of_views, alpha)
        for note in notes:
            warn_user(note)
        labels = self._predict_views(given).astype(self.labels_.dtype)
        proba = self._proba(given, labels)
        return Placement(
            labels,
            proba,
            proba[np.arange(len(labels)), labels],
            of_views,
            together,
            together <= alpha,
            (*given.notes, *notes),
            alpha,
            given.sample_ids,
            self.views_.names,
        )

    def _predict_views(self, views: Views) -> Array:
        """Return the group of each sample; here by a vote of its neighbours in the views it has."""
        return np.asarray(self._predict_shares(views).argmax(axis=1))

    def _predict_shares(self, views: Views) -> Array:
        """Return the shares of groups for each sample, of which :meth:`_predict_views` takes the largest.

        Here, shares of the votes of neighbours.
        """
        return neighbor_shares(self, views)

    def scaled(self, views: Views) -> list[Matrix]:
        """Return the matrices of views, prepared by their kinds and scaled as in the fit.

        Samples with a batch are corrected for it.

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
        pairs = zip(self._scalings(), self.prepared(views).matrices, strict=True)
        rows = [scaling.apply(matrix) for scaling, matrix in pairs]
        return apply_corrections(rows, getattr(self, "corrections_", ()), views)

    def _scalings(self) -> list[Scaling]:
        """Return the scaling of every view, fitted to the training samples."""
        return scale_views(self.prepared(self.views_), self.scale)[1]

    def _read_new(self, views: Any) -> Views:
        """Read new samples; warn if their values are unlike those of the training samples."""
        self.check_fitted()
        given = new_views(views, self.views_, self.partial_rows)
        for note in view_notes(self.prepared(given), self.prepared(self.views_)):
            warn_user(note)
        return given

    def _on_cluster(self, name: str, views: Any, **options: Any) -> Any:
        """Apply a method to Dask collections block by block, or to a model that was fitted on a cluster."""
        from ..backends.dask.apply import apply_to_blocks  # needs the extra "dask"

        return apply_to_blocks(self, name, views, options)

    # -- what the groups are made of -------------------------------------------------------------------------

    def markers(self, *, split: bool = True, random_state: Any = 0) -> Markers:
        """Compare every feature between each group and all other samples: effect, direction, test and FDR.

        Parameters
        ----------
        split : bool, default=True
            Test each feature against groups that are found without it, from the other half of the features. This costs
            two fits to at most 5,000 samples. False tests the groups themselves, which were computed from the
            features: p-values are then too small.
        random_state : int, RandomState or None, default=0
            Seed of the halves and of the fits.

        Returns
        -------
        Markers
            A row for each group, view and feature; ``to_frame()`` is a pandas frame, ``caveat`` says what the p-values
            mean. See :func:`gapview.trust.find_markers`.

        Examples
        --------
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> markers = BridgedGRMF(n_clusters=3, random_state=0).fit(views).markers()
        >>> len(markers), bool(markers.columns["fdr"][0] < 1e-6)
        (150, True)
        """
        self.check_fitted()
        check_flag("split", split)
        with showing(), single_threaded_blas():
            fit = self._groups_again() if split else None
            views = feature_views(self.views_, getattr(self, "kinds_", ()))
            return find_markers(views, self.labels_, fit, random_state=random_state)

    def _groups_again(self) -> Any:
        """Return a function of prepared views and a seed that clusters them with the setting of this model."""
        declared = inspect.signature(type(self).__init__).parameters
        own_start = {
            name: declared[name].default
            for name in ("init", "graph")
            if name in declared and not isinstance(getattr(self, name), str)
        }

        plain = {name: None for name in ("kind", "n_top_features") if name in declared}

        def fit(views: Views, seed: int) -> Array:
            model = clone(self).set_params(**own_start, **plain)
            model.set_params(n_clusters=min(self.n_groups, views.n_samples), random_state=seed)
            with muted(GapviewWarning):  # the fit to all samples has warned already
                return np.asarray(model.fit(views).labels_)

        return fit

    def view_contributions(self) -> Contributions:
        """Return for each sample how far each of its views supports its group, and the share of each view in that.

        The support of a view is the share of the neighbours in it that are in the group of the sample, above chance;
        shares are in proportion to it and to the weight of the view. See :func:`gapview.trust.view_contributions`.

        Returns
        -------
        Contributions
            ``support`` and ``share``, both with a row for each sample and a column for each view.

        Examples
        --------
        >>> from gapview.baselines import Concat
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> Concat(n_clusters=3, random_state=0).fit(views).view_contributions().share.shape
        (90, 2)
        """
        self.check_fitted()
        weights = getattr(self, "view_weights_", None)
        return view_contributions(self._known_graphs(), self.views_.mask, self.labels_, weights)

    def sample_graph(self) -> sparse.csr_array:
        """Return one graph over all samples: the bridge of the fit, or the normalised sum of the graphs of the views.

        Returns
        -------
        csr_array of shape (n_samples, n_samples)
            Symmetric weights of at least 0, without loops.

        Examples
        --------
        >>> from gapview.baselines import Concat
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> Concat(n_clusters=3, random_state=0).fit(views).sample_graph().shape
        (90, 90)
        """
        self.check_fitted()
        if hasattr(self, "graph_"):
            graph = sparse.csr_array(self.graph_)
        else:
            rows = [self.views_.rows(k) for k in range(self.views_.n_views)]
            parts = zip(self._known_graphs(), rows, [1.0] * len(rows), strict=True)
            graph = sparse.csr_array(unite_graphs(parts, self.views_.n_samples, overwrite=False))
        graph = sparse.csr_array((graph + graph.T) / 2)
        graph.setdiag(0)
        graph.eliminate_zeros()
        return graph

    def _known_graphs(self) -> list[sparse.csr_array]:
        """Return the graphs of neighbours within the views; computed once for a fitted model."""
        if "_view_graphs_" not in self.__dict__:  # a name that the next fit discards
            self._view_graphs_ = self._neighbor_graphs()
        return self._view_graphs_

    def _neighbor_graphs(self) -> list[sparse.csr_array]:
        """Return the graph of neighbours within every view."""
        counts = resolve_n_neighbors("auto", self.views_, self.n_groups)
        return [knn_graph(matrix, count) for matrix, count in zip(self.scaled(self.views_), counts, strict=True)]

    # -- containers and files --------------------------------------------------------------------------------

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
        self._check_kinds()

    def _check_kinds(self) -> None:
        if not is_for_each(self.kind):
            check_kind("kind", self.kind)
        if not is_for_each(self.n_top_features):
            check_integer("n_top_features", self.n_top_features, low=1, also=[None])

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

    def _repr_html_inner(self) -> str:
        """Return what scikit-learn shows of the parameters, below what the fit has found."""
        return fitted_html(self) + str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = fitted_html(self) + bundle["text/html"]
        return bundle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _keeps_all_features(model: Any, views: Any) -> bool:
    """Return whether ``n_top_features`` leaves no feature out; one of several categories becomes several features."""
    kinds = kind_per_view(model.kind, views.names)
    counts = zip(top_per_view(model.n_top_features, views.names), views.n_features, kinds, strict=True)
    return all(
        n_top is None or (n_top >= n_features and kind not in ("categorical", AUTO))
        for n_top, n_features, kind in counts
    )


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


def as_columns(model: Any, values: Array, views: Views, name: str) -> Any:
    """Return a frame with numbered columns if frames are selected, with sample ids for pandas; else the array."""
    kind, columns = output_kind(model), [f"{name}{place}" for place in range(values.shape[1])]
    if kind == "pandas":
        return _library("pandas").DataFrame(values, index=_index(views), columns=columns)
    return _library("polars").DataFrame(values, schema=columns) if kind == "polars" else values


def _library(name: str) -> Any:
    return extra(name, "tables", f"set_output(transform={name!r})")


def _index(views: Views) -> Any:
    return _library("pandas").Index(views.sample_ids, name=views.id_name)
