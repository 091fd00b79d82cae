"""Writing the report, where a method and the packages at hand allow it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputTypeError, MissingExtraError
from ..estimators import MultiViewClusterer
from ..estimators.latent import LatentClusterer

__all__ = ["can_report", "demand_packages", "lacking_package", "write_report"]


def can_report(method: type[MultiViewClusterer]) -> bool:
    """Tell whether a method finds what a report shows: a latent space, with confidence."""
    return issubclass(method, LatentClusterer)


def lacking_package(purpose: str = "Writing a report") -> MissingExtraError | None:
    """Return the error about the package that is not installed, if one is not."""
    lacking = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    return MissingExtraError(lacking[0], "report", purpose) if lacking else None


def demand_packages(purpose: str = "Writing a report") -> None:
    """Refuse to start what would fail at its end."""
    error = lacking_package(purpose)
    if error is not None:
        raise error


def write_report(model: MultiViewClusterer, path: Path, **settings: Any) -> Path:
    """Write the report of a fitted model."""
    if not can_report(type(model)):
        raise InputTypeError(
            f"A report needs a model of GRMF or BridgedGRMF; this is one of {type(model).__name__}. Cluster the data "
            "with one of the two."
        )
    demand_packages()
    from ..report import write_clustering_report  # with its drawings it takes long to import

    return write_clustering_report(model, path, **settings)
