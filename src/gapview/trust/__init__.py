"""How far to trust a clustering: samples, groups, views and features, judged without labels.

Everything here is a function of arrays, so that any method's groups can be judged; nothing is of size n × n.
"""

from ._agreement import Agreement, view_agreement
from ._effects import FeatureEffect, ViewEffects, feature_effects, top_features
from .confidence import sample_confidence
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
