"""gapview: groups of samples from several feature sets, when many samples lack some of them.

Examples
--------
>>> from gapview import GRMF
>>> from gapview.datasets import load_digits_views, paired_split
>>> data = load_digits_views()
>>> views = paired_split(data.views, 0.5, random_state=0)
>>> model = GRMF(n_clusters=10, random_state=0).fit(views)
>>> model.labels_[:3].shape
(3,)
"""

from importlib.metadata import version as _version

from . import baselines, datasets, errors, files, metrics, progress
from .annotation import annotate
from .estimators import GRMF, BridgedGRMF
from .model_files import load
from .views import Views

__version__ = _version("gapview")
__all__ = [
    "GRMF",
    "BridgedGRMF",
    "Views",
    "annotate",
    "baselines",
    "datasets",
    "errors",
    "files",
    "load",
    "metrics",
    "progress",
]
