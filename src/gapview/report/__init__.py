"""HTML reports: the report on a clustering, and the blocks, the rendering and the figures of any page.

A page is built from the classes in :mod:`.page` and rendered by :func:`.page.render`, which does not depend on its
contents. Its figures have the style of :mod:`.style`.
"""

from .clustering import write_clustering_report

__all__ = ["write_clustering_report"]
