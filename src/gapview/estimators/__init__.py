"""The estimators: the paper's method, and the contract that all clusterers share."""

from ._base import MultiViewClusterer
from ._bridged import BridgedGRMF
from ._grmf import GRMF

__all__ = ["GRMF", "BridgedGRMF", "MultiViewClusterer"]
