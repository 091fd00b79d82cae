"""Figures for notebooks: matplotlib axes in, axes out.

Each function draws on the axes given as ``ax``, or on new ones, and returns them, so that users can change titles and
sizes and write files: ``axes.figure.savefig("map.png")``. No settings of matplotlib are changed. Colours are safe for
colour-blind readers; groups differ by marker, too. Needs ``gapview[report]``.

Examples
--------
>>> from gapview import BridgedGRMF
>>> from gapview.datasets import make_views
>>> from gapview.plots import plot_cluster_sizes
>>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
>>> axes = plot_cluster_sizes(BridgedGRMF(n_clusters=2, random_state=0).fit(views))
>>> axes.get_title()
'Sizes of the groups'
"""

from ._choice import plot_cluster_count
from ._features import plot_heatmap, plot_markers
from ._fit import plot_convergence, plot_top_features, plot_view_agreement, plot_weight_grid
from ._samples import plot_cluster_sizes, plot_missing, plot_samples, plot_survival

__all__ = [
    "plot_cluster_count",
    "plot_cluster_sizes",
    "plot_convergence",
    "plot_heatmap",
    "plot_markers",
    "plot_missing",
    "plot_samples",
    "plot_survival",
    "plot_top_features",
    "plot_view_agreement",
    "plot_weight_grid",
]
