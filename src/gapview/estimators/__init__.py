"""The estimators: the paper's method, and the contract that all clusterers share."""

from ._base import MultiViewClusterer
from ._grmf import GRMF

__all__ = ["GRMF", "MultiViewClusterer"]
