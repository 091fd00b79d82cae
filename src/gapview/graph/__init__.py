"""Graphs between samples: nearest neighbours, k-NN graphs, bridges across views, imputation of missing rows."""

from .bridges import Reach, both_graphs, joint_graph, normalized, union_graph
from .imputation import Completion, complete_views
from .knn import knn_graph, modularity, neighbor_rule

__all__ = [
    "Completion",
    "Reach",
    "both_graphs",
    "complete_views",
    "joint_graph",
    "knn_graph",
    "modularity",
    "neighbor_rule",
    "normalized",
    "union_graph",
]
