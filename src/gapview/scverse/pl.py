"""Figures in the style of scanpy's ``pl``: of objects that :func:`gapview.annotate` or ``gapview.tl`` has annotated.

Each function draws on the axes given as ``ax``, or on new ones, and returns them. Needs ``gapview[report]``.
:mod:`gapview.plots` has further figures, of models.

Examples
--------
>>> import anndata, pandas
>>> import gapview
>>> from gapview.datasets import make_views
>>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
>>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
>>> model = gapview.tl.cluster(data, n_clusters=2)
>>> gapview.pl.map(data).get_title()
'60 samples in 2 groups'
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, some
from ..plots import plot_missing
from ..plots.coloring import of_column
from ..plots.drawing import draw_group_sizes, draw_map, draw_markers
from ..report.coloring import VIEW_COLORS, Coloring
from ..report.drawing import legend_beside
from ..report.style import axes_for
from ..scaling import unit_rows
from ..trust import Contributions
from ..utils.messages import check_integer, shorten, shown
from ..utils.types import Array
from .annotation import CONTRIBUTION, check_key, targets_of

__all__ = ["contributions", "heatmap", "map", "missing", "sizes"]
_LONGEST = 30  # characters of a name


def map(data: Any, *, color: str = "group", key: str = "gapview", ax: Any = None) -> Any:
    """Draw a map of the samples, as :func:`gapview.plots.plot_samples` does.

    Parameters
    ----------
    data : AnnData or MuData
        The annotated object.
    color : str, default="group"
        What the samples are coloured by: ``"group"``, ``"confidence"``, a column of ``obs``, or a feature of an
        AnnData.
    key : str, default="gapview"
        The key of the results.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
    >>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
    >>> model = gapview.tl.cluster(data, n_clusters=2)
    >>> gapview.pl.map(data).get_xlabel()
    'latent points, laid out by t-SNE'
    """
    target, known, labels = _labels(data, key)
    codes = np.asarray(target.obsm[f"X_{key}"])
    confidence, coloring = _confidence(target, key, known), _coloring(target, known, key, color)
    return draw_map(labels, lambda rows: unit_rows(codes[known[rows]]), confidence, None, coloring, ax=ax)


def sizes(data: Any, *, key: str = "gapview", ax: Any = None) -> Any:
    """Draw the number of samples of every group, by confidence.

    Parameters
    ----------
    data : AnnData or MuData
        The annotated object.
    key : str, default="gapview"
        The key of the results.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
    >>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
    >>> model = gapview.tl.cluster(data, n_clusters=2)
    >>> gapview.pl.sizes(data).get_title()
    'Sizes of the groups'
    """
    target, known, labels = _labels(data, key)
    return draw_group_sizes(labels, _confidence(target, key, known), ax=ax)


def missing(data: Any, *, ax: Any = None) -> Any:
    """Draw which samples lack which modalities, as :func:`gapview.plots.plot_missing` does.

    Parameters
    ----------
    data : MuData, or dict or list of AnnData
        The object; it need not be annotated.
    ax : matplotlib axes, optional
        Axes that the parts of the figure share; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
    >>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
    >>> gapview.pl.missing({"rna": data, "proteins": data[:20]}).get_title()
    '20 of 60 samples have all views'
    """
    return plot_missing(data, ax=ax)


def heatmap(data: Any, *, key: str = "gapview", n_top: int = 3, ax: Any = None) -> Any:
    """Draw the effects of the first markers of every group and view in all groups.

    Parameters
    ----------
    data : AnnData or MuData
        The object, with the table of :func:`gapview.tl.markers`.
    key : str, default="gapview"
        The key of the results.
    n_top : int, default=3
        Number of features for each group and view, those above the other samples with the smallest p-values.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
    >>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
    >>> table = gapview.tl.markers(data, gapview.tl.cluster(data, n_clusters=2))
    >>> len(gapview.pl.heatmap(data, n_top=2).get_yticks())
    4
    """
    check_integer("n_top", n_top, low=1)
    target, _, _ = _labels(data, key)
    if f"{key}_markers" not in target.uns:
        raise InputError(f"The object has no markers under {key!r}. Call gapview.tl.markers(data, model) first.")
    table = target.uns[f"{key}_markers"]
    return draw_markers({name: table[name].to_numpy() for name in table.columns}, n_top, ax)


def contributions(data: Any, *, key: str = "gapview", ax: Any = None) -> Any:
    """Draw the mean contribution of every view to each group, over the samples that have several views.

    See ``view_contributions`` of a model.

    Parameters
    ----------
    data : AnnData or MuData
        The annotated object, of a model with several views.
    key : str, default="gapview"
        The key of the results.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=60, n_clusters=2, random_state=0).views
    >>> names = pandas.DataFrame(index=[f"cell_{i}" for i in range(60)])
    >>> data = {f"view_{k}": anndata.AnnData(matrix, obs=names) for k, matrix in enumerate(views.matrices)}
    >>> model = gapview.tl.cluster(data, n_clusters=2)
    >>> gapview.pl.contributions(data["view_0"]).get_xlabel()
    'mean contribution to the group'
    """
    target, known, labels = _labels(data, key)
    views = [str(view) for view in target.uns[key]["view_names"]]
    columns = [f"{key}_{view}{CONTRIBUTION}" for view in views]
    if not all(column in target.obs for column in columns):
        raise InputError(f"The results under {key!r} are of a single view, so that no views can be compared.")
    shares = target.obs[columns].to_numpy(dtype=np.float64)[known]
    means = np.nan_to_num(Contributions(shares, shares).of_groups(labels))
    groups = np.arange(len(means))
    with axes_for(ax, 5.6, 1.2 + 0.26 * len(groups), "What each view contributes") as axes:
        left = np.zeros(len(groups))
        for k, view in enumerate(views):
            look = {"color": VIEW_COLORS[k % len(VIEW_COLORS)], "label": shorten(view, _LONGEST)}
            axes.barh(range(len(groups)), means[:, k], left=left, height=0.7, **look)
            left += means[:, k]
        axes.set_yticks(range(len(groups)), [f"group {group}" for group in groups])
        axes.invert_yaxis()
        axes.set(xlim=(0, 1), xlabel="mean contribution to the group")
        axes.grid(axis="y", visible=False)
        legend_beside(axes)
    return axes


def _labels(data: Any, key: str) -> tuple[Any, Array, Array]:
    """Return the annotated object, the rows that have a group, and the groups of these rows."""
    check_key(key)
    targets = targets_of(data)
    if len(targets) > 1:
        raise InputError("The figure needs one AnnData or MuData, as each holds its own samples; got several.")
    target = targets[0]
    if key not in target.obs or key not in target.uns:
        raise InputError(f"The object has no results under {key!r}. Call gapview.tl.cluster(data) first.")
    known = np.flatnonzero(target.obs[key].notna().to_numpy())
    return target, known, target.obs[key].to_numpy()[known].astype(np.int64)


def _confidence(target: Any, key: str, known: Array) -> Array | None:
    name = f"{key}_confidence"
    return target.obs[name].to_numpy(dtype=np.float64)[known] if name in target.obs else None


def _coloring(target: Any, known: Array, key: str, color: str) -> Coloring | None:
    """Return what samples are coloured by; None for their groups."""
    if color == "group":
        return None
    if color == "confidence" and (confidence := _confidence(target, key, known)) is not None:
        return Coloring(color, confidence, limits=(0.0, 1.0))
    ids = target.obs_names[known].to_numpy()
    if color in target.obs:
        return of_column(target.obs[color], ids, color)
    if hasattr(target, "obs_vector") and color in target.var_names:
        return of_column(target.obs_vector(color)[known], ids, color)
    raise InputError(
        "color must be 'group', 'confidence', a column of obs, or a feature of an AnnData; got "
        f"{shown(color)}. The columns are {some(list(target.obs.columns))}."
    )
