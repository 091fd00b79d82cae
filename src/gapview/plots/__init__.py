"""Figures for notebooks: matplotlib axes in, axes out.

Each function draws on the axes given as ``ax``, or on new ones, and returns them, so that titles, sizes and files are
in the user's hands: ``axes.figure.savefig("map.png")``. Nothing is shown by force and no setting of matplotlib is
changed. Colours can be told apart by colour-blind people; groups differ by marker, too. Needs ``gapview[report]``.

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

from ._fit import plot_convergence, plot_top_features, plot_view_agreement
from ._grid import plot_weight_grid
from ._samples import plot_cluster_sizes, plot_missing, plot_samples

__all__ = [
    "plot_cluster_sizes",
    "plot_convergence",
    "plot_missing",
    "plot_samples",
    "plot_top_features",
    "plot_view_agreement",
    "plot_weight_grid",
]
