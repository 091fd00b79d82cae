"""The estimators: the paper's method, and the contract that all clusterers share."""

from ._base import MultiViewClusterer
from ._bridged import BridgedGRMF
from ._grmf import GRMF
from ._plan import list_candidates

__all__ = ["GRMF", "BridgedGRMF", "MultiViewClusterer", "list_candidates"]
