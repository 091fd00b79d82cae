"""Graphs between samples: nearest neighbours, k-NN graphs, bridges across views, imputation of missing rows."""

from .bridges import Reach, both_graphs, joint_graph, normalized, union_graph
from .imputation import ImputedViews, impute_views
from .knn import knn_graph, modularity, neighbor_rule

__all__ = [
    "ImputedViews",
    "Reach",
    "both_graphs",
    "impute_views",
    "joint_graph",
    "knn_graph",
    "modularity",
    "neighbor_rule",
    "normalized",
    "union_graph",
]
