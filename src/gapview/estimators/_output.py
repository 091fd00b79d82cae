"""Results in the container that ``set_output`` selects, with the ids of the samples."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn import get_config

from ..errors import MissingExtraError
from ..utils.types import Array
from ..views import Views

__all__ = ["CLUSTER", "OUTPUTS", "as_frame", "as_series", "output_kind"]

CLUSTER = "cluster"  # name of a series of labels
OUTPUTS = ("default", "pandas", "polars")


def as_frame(model: Any, values: Array, views: Views) -> Any:
    """Return a pandas frame with the sample ids, if selected; scikit-learn makes all other containers."""
    if output_kind(model) != "pandas":
        return values
    return _library("pandas").DataFrame(values, index=_index(views))


def as_series(model: Any, values: Array, views: Views, name: str) -> Any:
    """Return a named series if frames are selected, with sample ids for pandas; else the array."""
    kind = output_kind(model)
    if kind == "pandas":
        return _library("pandas").Series(values, index=_index(views), name=name)
    return _library("polars").Series(name, values) if kind == "polars" else values


def output_kind(model: Any) -> str:
    """Return the container that ``set_output`` or else scikit-learn's configuration selects."""
    return str(getattr(model, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"]))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise MissingExtraError(name, "tables", f"set_output(transform={name!r})") from None


def _index(views: Views) -> Any:
    return _library("pandas").Index(views.sample_ids, name=views.id_name)
