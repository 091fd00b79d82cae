"""Functions in the style of scanpy's ``tl``: data first, results are written into the object.

Examples
--------
>>> import anndata, pandas
>>> import gapview
>>> from gapview.datasets import make_views
>>> views = make_views(n_samples=60, n_clusters=2, random_state=0).views
>>> names = pandas.DataFrame(index=[f"cell_{i}" for i in range(60)])
>>> rna, proteins = (anndata.AnnData(matrix, obs=names) for matrix in views.matrices)
>>> data = {"rna": rna, "proteins": proteins[:40].copy()}
>>> model = gapview.tl.cluster(data, n_clusters=2)
>>> gapview.tl.markers(data, model).shape
(100, 12)
"""

from __future__ import annotations

from typing import Any

from ..errors import InputError, extra, some
from ..estimators.base import MultiViewClusterer, demand_fitted
from ..estimators.latent import LatentSpaceMixin
from ..methods import METHODS
from ..trust import Assessment
from ..utils.messages import check_choice
from ..views import Views
from .annotation import annotate, check_key, targets_of

__all__ = ["assess", "cluster", "markers"]


def cluster(
    data: Any,
    n_clusters: int | str = "auto",
    *,
    method: str = "BridgedGRMF",
    layer: Any = None,
    obsm: Any = None,
    raw: Any = False,
    batch_key: str | None = None,
    key_added: str = "gapview",
    recover: bool = False,
    random_state: Any = 0,
    **settings: Any,
) -> MultiViewClusterer:
    """Cluster the samples of a MuData, an AnnData or several AnnData, and write the results into them.

    Parameters
    ----------
    data : MuData, AnnData, or dict or list of AnnData
        The views: modalities, or single objects. Samples are matched by name, and may lack views.
    n_clusters : int or "auto", default="auto"
        Number of groups; other methods than BridgedGRMF need a number.
    method : str, default="BridgedGRMF"
        Name of the method, one of ``gapview.methods.METHODS``.
    layer, obsm, raw : optional
        The matrix that is read in place of ``X``, for all views or as a dict for some, see :class:`gapview.Views`.
    batch_key : str, optional
        Column of ``obs`` with the batches, against which the groups are tested.
    key_added, recover
        As in :func:`gapview.annotate`, which lists all that is written.
    random_state : int, RandomState or None, default=0
        Seed of the fit.
    **settings
        Other parameters of the method.

    Returns
    -------
    fitted clusterer
        For :func:`assess`, :func:`markers`, ``predict`` of new samples and ``save``.

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
    >>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
    >>> model = gapview.tl.cluster(data, n_clusters=2)
    >>> data.obs["gapview"].value_counts().to_list()
    [30, 30]
    """
    check_key(key_added)
    check_choice("method", method, tuple(METHODS))
    targets = targets_of(data)
    batches = None if batch_key is None else _column(targets, batch_key)
    model: MultiViewClusterer = METHODS[method](n_clusters, random_state=random_state, **settings)
    model.check_parameters()
    model.fit(Views(data, layer=layer, obsm=obsm, raw=raw, partial_rows=model.partial_rows), batch=batches)
    annotate(model, data, key_added=key_added, recover=recover)
    return model


def _column(targets: list[Any], name: str) -> Any:
    """Return a column of obs of all samples, from the first object that has a value."""
    having = [one.obs[name] for one in targets if name in one.obs]
    if not having:
        known = dict.fromkeys(str(column) for one in targets for column in one.obs)
        raise InputError(
            f"batch_key must be a column of obs; got {name!r}. The columns are {some(known, 10) or 'none'}."
        )
    pandas = extra("pandas", "tables", "Reading batches")
    column = pandas.concat([one.astype(object) for one in having]).dropna()
    column = column[~column.index.duplicated()]
    samples = dict.fromkeys(key for one in targets for key in one.obs_names)
    return column.reindex(list(samples))


def assess(data: Any, model: Any, *, key_added: str = "gapview", random_state: Any = 0, **options: Any) -> Assessment:
    """Test whether the groups can be distinguished from data without groups, and write the result into the object.

    Parameters
    ----------
    data : MuData, AnnData, or dict or list of AnnData
        The annotated object.
    model : fitted GRMF or BridgedGRMF
        From :func:`cluster`.
    key_added : str, default="gapview"
        The key of the results.
    random_state, **options
        As in :meth:`gapview.BridgedGRMF.assess`.

    Returns
    -------
    Assessment
        Its ``p_value``, ``has_structure``, ``group_stability`` and sentences are in ``.uns[key_added]["assessment"]``.

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
    >>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
    >>> found = gapview.tl.assess(data, gapview.tl.cluster(data, n_clusters=2))
    >>> bool(data.uns["gapview"]["assessment"]["has_structure"])
    True
    """
    demand_fitted("assess", model, LatentSpaceMixin, "GRMF or BridgedGRMF")
    targets = _annotated(data, key_added)
    found: Assessment = model.assess(random_state=random_state, **options)
    facts = {"p_value": found.p_value, "has_structure": found.has_structure, "text": " ".join(found.sentences())}
    for target in targets:
        target.uns[key_added]["assessment"] = facts | {"group_stability": found.group_stability.copy()}
    return found


def markers(data: Any, model: Any, *, key_added: str = "gapview", split: bool = True, random_state: Any = 0) -> Any:
    """Compare every feature between each group and all other samples, and write the table into the object.

    Parameters
    ----------
    data : MuData, AnnData, or dict or list of AnnData
        The annotated object.
    model : fitted clusterer
        From :func:`cluster`.
    key_added : str, default="gapview"
        The key of the results.
    split, random_state
        As in :meth:`gapview.BridgedGRMF.markers`.

    Returns
    -------
    pandas.DataFrame
        The columns of :class:`gapview.trust.Markers`, also in ``.uns[key_added + "_markers"]``. The figure
        ``gapview.pl.heatmap`` draws it.

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
    >>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
    >>> gapview.tl.markers(data, gapview.tl.cluster(data, n_clusters=2)).columns[:5].to_list()
    ['view', 'feature', 'group', 'effect', 'direction']
    """
    demand_fitted("markers", model)
    targets = _annotated(data, key_added)
    frame = model.markers(split=split, random_state=random_state).to_frame()
    frame["feature"] = frame["feature"].astype(str)  # as names of variables are
    for target in targets:
        target.uns[f"{key_added}_markers"] = frame.set_axis(frame.index.astype(str), axis=0)
    return frame


def _annotated(data: Any, key: str) -> list[Any]:
    check_key(key)
    targets = targets_of(data)
    if any(key not in target.uns for target in targets):
        raise InputError(
            f"The object has no results under {key!r}. Call gapview.tl.cluster(data, key_added={key!r}) first, or "
            f"gapview.annotate(model, data, key_added={key!r})."
        )
    return targets
