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

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import baselines, datasets, errors, io, metrics, plots, progress, trust
    from .estimators import GRMF, BridgedGRMF
    from .methods import describe, load
    from .scverse import annotate, pl, tl
    from .views import Views

__version__ = _version("gapview")
__all__ = [
    "GRMF",
    "BridgedGRMF",
    "Views",
    "annotate",
    "baselines",
    "datasets",
    "describe",
    "errors",
    "io",
    "load",
    "metrics",
    "pl",
    "plots",
    "progress",
    "tl",
    "trust",
]
_MODULES = {
    "GRMF": "estimators",
    "BridgedGRMF": "estimators",
    "Views": "views",
    "annotate": "scverse",
    "describe": "methods",
    "load": "methods",
}
_SUBMODULES = {"pl": "scverse.pl", "tl": "scverse.tl"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import gapview`` is fast."""
    if name not in __all__:
        raise AttributeError(f"module 'gapview' has no attribute {name!r}")
    module = _import_module(f".{_MODULES.get(name) or _SUBMODULES.get(name, name)}", __name__)
    value = getattr(module, name) if name in _MODULES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
