"""The figure of the number of groups and the evidence for it."""

from __future__ import annotations

from typing import Any

from ..choice import ClusterCount
from ..errors import InputTypeError, described
from ..report.drawing import legend_beside
from ..report.style import INK, SERIES, axes_for
from ..utils.messages import counted


def plot_cluster_count(found: Any, *, ax: Any = None) -> Any:
    """Draw the evidence for every number of groups: modularity, stability, and the score of both.

    Parameters
    ----------
    found : ClusterCount or fitted clusterer
        The result of :func:`gapview.choice.suggest_n_clusters`, or a model that was fitted with ``n_clusters="auto"``.
    ax : matplotlib axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_cluster_count
    >>> views = make_views(n_samples=60, n_clusters=3, missing_rate=0.3, random_state=0).views
    >>> plot_cluster_count(BridgedGRMF(n_clusters="auto", random_state=0).fit(views)).get_title()
    '3 groups suggested'
    """
    count = getattr(found, "cluster_count_", found)
    if not isinstance(count, ClusterCount):
        raise InputTypeError(
            "The figure needs a model that was fitted with n_clusters='auto', or the result of suggest_n_clusters; got "
            f"{described(found)}."
        )
    lines = {"score": (count.score, SERIES[6]), "stability": (count.stability, SERIES[5])}
    lines["modularity"] = count.modularity, SERIES[3]
    with axes_for(ax, 5.8, 3.2, f"{counted(count.suggested, 'group')} suggested") as axes:
        for name, (values, look) in lines.items():
            axes.plot(count.counts, values, label=name, linewidth=2.2 if name == "score" else 1.3, **look.options())
        axes.set(xlabel="number of groups", ylim=(min(0.0, 1.05 * float(count.modularity.min())), 1.04))
        axes.xaxis.get_major_locator().set_params(integer=True)
        if count.suggested == 1:
            axes.set_xlabel("number of groups; no division is distinguished from data without groups")
        else:
            axes.axvline(count.suggested, color=INK, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
        legend_beside(axes)
    return axes
