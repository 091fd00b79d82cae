"""The methods that the paper compares with, and two pipelines of scikit-learn."""

from .concat import Concat
from .dcnmf import DCNMF
from .gpmvc import GPMVC
from .img import IMG
from .imputed import ImputedKMeans, ImputedSpectral
from .mic import MIC
from .pvc import PVC
from .single import BestSingleView, best_view_scores

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
