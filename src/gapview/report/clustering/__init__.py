"""The report on one clustering: a fitted model becomes a summary, the summary a page, the page one HTML file."""

from .summary import Summary, summarise
from .writing import clustering_page, write_clustering_report

__all__ = ["Summary", "clustering_page", "summarise", "write_clustering_report"]
