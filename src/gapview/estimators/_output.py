"""Results in the kind of container that was asked for by ``set_output``, with the ids of the samples."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn import get_config

from ..errors import MissingExtraError
from ..utils.types import Array
from ..views import Views

__all__ = ["CLUSTER", "OUTPUTS", "as_frame", "as_series"]

CLUSTER = "cluster"  # what a series of labels is called
OUTPUTS = ("default", "pandas", "polars")


def as_frame(model: Any, values: Array, views: Views) -> Any:
    """Give a pandas frame its sample ids, where such frames are asked for; scikit-learn makes all other containers."""
    if asked_for(model) != "pandas":
        return values
    return _library("pandas").DataFrame(values, index=_index(views))


def as_series(model: Any, values: Array, views: Views, name: str) -> Any:
    """Make a named series of one value for each sample, where frames are asked for; polars has no place for ids."""
    kind = asked_for(model)
    if kind == "pandas":
        return _library("pandas").Series(values, index=_index(views), name=name)
    return _library("polars").Series(name, values) if kind == "polars" else values


def asked_for(model: Any) -> str:
    """Return what ``set_output`` has set for the model, else what scikit-learn's configuration says."""
    return str(getattr(model, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"]))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise MissingExtraError(name, "tables", f"set_output(transform={name!r})") from None


def _index(views: Views) -> Any:
    """Make an index of the sample ids, named as in the first frame that has a name for it."""
    names = [place.id_name for place in views._containers if place.id_name is not None]
    return _library("pandas").Index(views.sample_ids, name=names[0] if names else None)
