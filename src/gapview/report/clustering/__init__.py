"""The report on one clustering: a fitted model becomes a summary, the summary a page, the page one HTML file."""

from ._report import clustering_page, write_clustering_report
from ._summary import Summary, summarise

__all__ = ["Summary", "clustering_page", "summarise", "write_clustering_report"]
