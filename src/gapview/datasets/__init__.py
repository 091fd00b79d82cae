"""Data: the embedded example, files, downloads, made data; and hiding views of complete data."""

from ._dataset import Dataset
from ._digits import load_digits_views
from ._fetch import fetch_handwritten
from ._files import load_views
from ._hiding import hide_views, paired_split
from ._made import make_views

__all__ = [
    "Dataset",
    "fetch_handwritten",
    "hide_views",
    "load_digits_views",
    "load_views",
    "make_views",
    "paired_split",
]
