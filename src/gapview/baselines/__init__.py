"""The methods that the paper compares with, the five that it builds on, and two pipelines of scikit-learn."""

from .bipartite import BipartiteSpectral
from .concat import Concat
from .coregularized import CoRegularizedSpectral
from .dcnmf import DCNMF
from .gpmvc import GPMVC
from .img import IMG
from .imputed import ImputedKMeans, ImputedSpectral
from .kernel_completion import KernelCompletion
from .mean_filled import MeanFilledSpectral
from .mic import MIC
from .pvc import PVC
from .robust_kmeans import RobustMultiViewKMeans
from .single import BestSingleView, best_view_scores

__all__ = [
    "DCNMF",
    "GPMVC",
    "IMG",
    "MIC",
    "PVC",
    "BestSingleView",
    "BipartiteSpectral",
    "CoRegularizedSpectral",
    "Concat",
    "ImputedKMeans",
    "ImputedSpectral",
    "KernelCompletion",
    "MeanFilledSpectral",
    "RobustMultiViewKMeans",
    "best_view_scores",
]
