"""Data sets: the embedded example, files, downloads and synthetic data; and hiding of views."""

from ._loading import Dataset, fetch_handwritten, load_digits_views, load_views
from ._synthetic import hide_views, make_views, paired_split

__all__ = [
    "Dataset",
    "fetch_handwritten",
    "hide_views",
    "load_digits_views",
    "load_views",
    "make_views",
    "paired_split",
]
