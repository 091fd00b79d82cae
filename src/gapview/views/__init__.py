"""Views: the entry point for data, where input is read, joined and checked."""

from .checks import demand_enough, is_constant, new_views, training_views
from .core import Views
from .counts import SampleCounts

__all__ = ["SampleCounts", "Views", "demand_enough", "is_constant", "new_views", "training_views"]
