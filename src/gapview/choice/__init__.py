"""Choose settings and the number of clusters without labels."""

from .n_clusters import ClusterCount, suggest_n_clusters
from .representation import Setting
from .selection import Selection, Trial

__all__ = ["ClusterCount", "Selection", "Setting", "Trial", "suggest_n_clusters"]
