"""Trust in a clustering without known labels: measures for samples, clusters, views and features.

All functions take arrays, so that they apply to the labels of any method. No array has n × n elements.
"""

from ._effects import FeatureEffect, ViewEffects, feature_effects, top_features
from .confidence import Agreement, sample_confidence, view_agreement
from .stability import Stability, cluster_stability

__all__ = [
    "Agreement",
    "FeatureEffect",
    "Stability",
    "ViewEffects",
    "cluster_stability",
    "feature_effects",
    "sample_confidence",
    "top_features",
    "view_agreement",
]
