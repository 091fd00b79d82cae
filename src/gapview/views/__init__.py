"""The one door for data: reading, joining and checking views."""

from .checks import as_views, demand_enough, is_constant, new_views, training_views
from .core import Views

__all__ = ["Views", "as_views", "demand_enough", "is_constant", "new_views", "training_views"]
