"""Classes that a model file may name: methods, and the records that fitted models hold."""

from __future__ import annotations

from typing import Any, TypeVar

from ..clusters import Clustering
from ..errors import InputTypeError
from ..graph.neighbors import Search, SearchReport
from ..scaling import Scaling
from ..views import Views
from ..views.containers import Container

__all__ = ["METHODS", "RECORDS", "method_name", "storable_method", "storable_record"]

T = TypeVar("T", bound=type)

METHODS: dict[str, type[Any]] = {}  # filled by the decorator storable_method
RECORDS: dict[str, type[Any]] = {
    record.__name__: record for record in (Clustering, Container, Scaling, Search, SearchReport, Views)
}


def storable_method(method: T) -> T:
    """Register an estimator, so that model files can hold it; a class decorator."""
    METHODS[method.__name__] = method
    return method


def storable_record(record: T) -> T:
    """Register a frozen dataclass, so that model files can hold its instances; a class decorator."""
    RECORDS[record.__name__] = record
    return record


def method_name(model: Any) -> str:
    """Return the name of a model's class.

    Raises
    ------
    InputTypeError
        If the class is not registered, for example a subclass that a user has written.
    """
    kind = type(model)
    if METHODS.get(kind.__name__) is not kind:
        raise InputTypeError(
            f"A model file can hold the methods of gapview ({', '.join(METHODS)}); got a {kind.__name__} from the "
            f"module '{kind.__module__}'. Keep a class of your own with joblib.dump."
        )
    return kind.__name__
