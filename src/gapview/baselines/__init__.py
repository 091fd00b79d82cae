"""The methods the paper compares with, and two that a scikit-learn user would reach for."""

from ._concat import Concat
from ._img import IMG
from ._imputed import ImputedKMeans, ImputedSpectral
from ._single import BestSingleView, best_view_scores

__all__ = ["IMG", "BestSingleView", "Concat", "ImputedKMeans", "ImputedSpectral", "best_view_scores"]
