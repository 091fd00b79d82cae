"""The methods the paper compares with, and two that a scikit-learn user would reach for."""

from ._concat import Concat
from ._dcnmf import DCNMF
from ._gpmvc import GPMVC
from ._img import IMG
from ._imputed import ImputedKMeans, ImputedSpectral
from ._mic import MIC
from ._pvc import PVC
from ._single import BestSingleView, best_view_scores

__all__ = [
    "DCNMF",
    "GPMVC",
    "IMG",
    "MIC",
    "PVC",
    "BestSingleView",
    "Concat",
    "ImputedKMeans",
    "ImputedSpectral",
    "best_view_scores",
]
