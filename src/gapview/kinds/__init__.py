"""Kinds of views: transforms such as logarithms of counts, fitted before the views are scaled."""

from .levels import Levels
from .preparation import Preparation, feature_views, fit_kind, fit_kind_blocks, prepared_views, resolved_kinds

__all__ = ["Levels", "Preparation", "feature_views", "fit_kind", "fit_kind_blocks", "prepared_views", "resolved_kinds"]
