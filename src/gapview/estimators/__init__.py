"""The estimators: the paper's method, its extension by bridges, and the base class of all clusterers."""

from .base import MultiViewClusterer
from .bridged import BridgedGRMF
from .grmf import GRMF

__all__ = ["GRMF", "BridgedGRMF", "MultiViewClusterer"]
