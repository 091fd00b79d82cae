"""Trust in a clustering without known labels: measures for samples, clusters, views and features.

All functions take arrays, so that they apply to the labels of any method. No array has n × n elements.
"""

from ._effects import FeatureEffect, ViewEffects, feature_effects, top_features
from .agreement import Agreement, view_agreement
from .assessment import Assessment
from .association import Association, GroupAssociation, GroupShare, associate, group_association, holm
from .calibration import calibrated_confidence, calibration_error
from .confidence import sample_confidence
from .contributions import Contributions, view_contributions
from .markers import Markers, find_markers
from .mixing import BatchMixing, ViewMixing
from .novelty import Novelty, conformal_p_values
from .stability import Stability, cluster_stability
from .structure import assess_structure
from .survival import GroupSurvival, survival_by_group

__all__ = [
    "Agreement",
    "Assessment",
    "Association",
    "BatchMixing",
    "Contributions",
    "FeatureEffect",
    "GroupAssociation",
    "GroupShare",
    "GroupSurvival",
    "Markers",
    "Novelty",
    "Stability",
    "ViewEffects",
    "ViewMixing",
    "assess_structure",
    "associate",
    "calibrated_confidence",
    "calibration_error",
    "cluster_stability",
    "conformal_p_values",
    "feature_effects",
    "find_markers",
    "group_association",
    "holm",
    "sample_confidence",
    "survival_by_group",
    "top_features",
    "view_agreement",
    "view_contributions",
]
