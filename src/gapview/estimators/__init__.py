"""The estimators: the paper's method, and the contract that all clusterers share."""

from ._bridged import BridgedGRMF
from ._grmf import GRMF
from .base import MultiViewClusterer

__all__ = ["GRMF", "BridgedGRMF", "MultiViewClusterer", "list_candidates"]
