"""Where the matrix of a view stands in an AnnData: X, a layer, an array of obsm, or raw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError, InputTypeError, some

_EVERY_VIEW = ""


@dataclass(frozen=True)
class Places:
    """The places of matrices by the name of the view, as paths in an AnnData: ``layers/counts``, ``obsm/X_pca``."""

    of_view: Mapping[str, str] = field(default_factory=dict)

    def of(self, *names: str | None) -> str:
        """Return the place of the matrix of a view that may be known by several names; by default ``X``."""
        given = [self.of_view[name] for name in names if name and name in self.of_view]
        return given[0] if given else self.of_view.get(_EVERY_VIEW, "X")

    @property
    def names(self) -> list[str]:
        """The views that are named."""
        return [name for name in self.of_view if name != _EVERY_VIEW]

    def demand_known(self, names: Sequence[str]) -> None:
        """Raise an error if a view that is named does not exist."""
        if unknown := [name for name in self.names if name not in names]:
            raise InputError(f"layer, obsm and raw name the view {some(unknown)}; there is {some(names, 10)}.")

    def demand_omics(self, is_omics: bool) -> None:
        """Raise an error if places are given, and no view is an AnnData."""
        if self.of_view and not is_omics:
            raise InputError(
                "layer, obsm and raw choose a matrix of an AnnData or MuData, and no view is one. Leave them out."
            )


IN_X = Places()


def read_places(layer: Any = None, obsm: Any = None, raw: Any = False) -> Places:
    """Return the places that the parameters of :class:`gapview.Views` name.

    >>> read_places({"rna": "counts"}, {"atac": "X_lsi"}).of("atac")
    'obsm/X_lsi'
    """
    found: dict[str, str] = {}
    for parameter, given, prefix in (("layer", layer, "layers/"), ("obsm", obsm, "obsm/"), ("raw", raw, "raw/X")):
        if given is None or given is False:
            continue
        pairs = given if isinstance(given, Mapping) else {_EVERY_VIEW: given}
        for name, value in pairs.items():
            place = _read_place(parameter, value, prefix)
            if place is not None and found.setdefault(str(name), place) != place:
                of = f" of view '{name}'" if name else ""
                raise InputError(f"The matrix{of} is given as {found[str(name)]} and as {place}. Give one of them.")
    return Places(found)


def _read_place(parameter: str, value: Any, prefix: str) -> str | None:
    if parameter == "raw":
        if not isinstance(value, bool):
            raise InputTypeError(
                f"raw must be True or False, or a dict with one for each of some views; got {value!r}."
            )
        return prefix if value else None
    if value is not None and (not isinstance(value, str) or not value):
        raise InputTypeError(f"{parameter} must be a name, or a dict with one for each of some views; got {value!r}.")
    return None if value is None else prefix + value


def matrix_at(name: str, view: Any, place: str) -> Any:
    """Return the matrix of an AnnData at a place, without a copy."""
    part, _, key = place.partition("/")
    if part == "X":
        return view.X
    if part == "raw":
        if view.raw is None:
            raise _lacking(name, view, "raw")
        return view.raw.X
    holder = view.layers if part == "layers" else view.obsm
    if key not in holder:
        raise _lacking(name, view, place)
    values = holder[key]
    return values.to_numpy() if hasattr(values, "columns") else values  # a frame


def columns_at(name: str, view: Any, place: str) -> list[Any]:
    """Return the names of the columns of the matrix of an AnnData at a place."""
    part, _, key = place.partition("/")
    if part == "raw" and view.raw is not None:
        return list(view.raw.var_names)
    if part != "obsm":
        return list(view.var_names)
    values = view.obsm.get(key)
    if hasattr(values, "columns"):
        return list(map(str, values.columns))
    return [f"{key}_{column + 1}" for column in range(matrix_at(name, view, place).shape[1])]


def _lacking(name: str, view: Any, place: str) -> InputError:
    there = [f"layers/{key}" for key in view.layers] + [f"obsm/{key}" for key in view.obsm]
    there += ["raw"] if view.raw is not None else []
    return InputError(
        f"View '{name}' is an AnnData without {place}; beside X it has {some(there, 10) or 'no other matrix'}. Name "
        "one of these, or give a dict with a name for each of the views that have it."
    )
