"""Data sets: the embedded example, files, downloads and synthetic data; and hiding of views."""

from ._fetching import fetch_breast_cancer, fetch_coread, fetch_kirc, fetch_pbmc_mosaic
from ._loading import Dataset, fetch_handwritten, load_digits_views, load_views
from ._synthetic import hide_views, make_views, paired_split

__all__ = [
    "Dataset",
    "fetch_breast_cancer",
    "fetch_coread",
    "fetch_handwritten",
    "fetch_kirc",
    "fetch_pbmc_mosaic",
    "hide_views",
    "load_digits_views",
    "load_views",
    "make_views",
    "paired_split",
]
