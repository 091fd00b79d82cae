"""Joining views: the sample of every row of every view, and the mask of presence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from shlex import quote
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, described, some
from ..utils.packing import as_objects
from ..utils.types import Array
from .containers import RawView, descends, has_default_index, is_missing, repeats
from .keys import as_keys
from .tables import demand_digits

_BY_ROW = "Rows are matched by their position: row i of every view is sample i."


def join(raw: Sequence[RawView], sample_ids: Any = None) -> tuple[Array, list[Array], list[str]]:
    """Return the ids of all samples, for every view the sample of each of its rows, and notes on the join."""
    given = [view for view in raw if view.values is not None]
    if not given:
        raise InputError("There is no view: every one is None. Give at least one matrix.")
    keyed = [view for view in given if view.ids is not None]
    if sample_ids is not None:
        ids = _given_ids(sample_ids, [view.name for view in keyed])
        demand_equal_length(given, len(ids), "sample_ids")
        return ids, [np.arange(view.n_rows) for view in raw], []
    if not keyed:
        demand_equal_length(given, given[0].n_rows, f"view '{given[0].name}'")
        notes = [_BY_ROW] if len(given) > 1 else []
        return _row_ids(given), [np.arange(view.n_rows) for view in raw], notes
    demand_ids_everywhere(given)
    return _join_by_id(raw)


def _row_ids(given: Sequence[RawView]) -> Array:
    """Return the common index of frames without ids, or else row numbers."""
    indices = [view.numbering for view in given if view.numbering is not None]
    is_common = bool(indices) and all(index.tolist() == indices[0].tolist() for index in indices)
    if is_common and len(set(as_keys(indices[0].tolist())) - {None}) == given[0].n_rows:
        return _as_integers(indices[0])
    return np.arange(given[0].n_rows)


def _given_ids(sample_ids: Any, keyed: Sequence[str]) -> Array:
    if keyed:
        raise InputError(
            f"sample_ids are for views without ids; {some(keyed)} are keyed by sample id. Leave sample_ids out."
        )
    if isinstance(sample_ids, str | bytes) or not hasattr(sample_ids, "__iter__"):
        raise InputTypeError(f"sample_ids must be a sequence with one id for each sample; got {sample_ids!r}.")
    ids = as_objects(np.ravel(sample_ids).tolist() if isinstance(sample_ids, np.ndarray) else sample_ids)
    demand_ids("sample_ids", ids.tolist())
    return _as_integers(ids)


def _join_by_id(raw: Sequence[RawView]) -> tuple[Array, list[Array], list[str]]:
    """Match the rows of all views by their ids as text; samples are in the order of their first occurrence."""
    position: dict[str, int] = {}
    places, native = [], []
    for view in raw:
        own = [] if view.ids is None else view.ids.tolist()
        keys = keys_of(view)
        n_known = len(position)
        place = np.asarray([position.setdefault(key, len(position)) for key in keys], dtype=np.intp)
        places.append(place)
        native += [own[row] for row in np.flatnonzero(place >= n_known)]
    kinds = {_kind_of_id(view.ids) for view in raw if view.ids is not None and len(view.ids)}
    ids = as_objects(native if len(kinds) == 1 and kinds != {"text"} else position)
    if kinds == {"numbers"} and all(key.lstrip("+-").isdigit() for key in position):
        ids = as_objects([int(key) for key in position])
    return _as_integers(ids), places, []


def keys_of(view: RawView) -> list[str]:
    """Return the ids of a view as text, by which they are matched; raise an error unless every row has its own."""
    return demand_ids(f"view '{view.name}'", [] if view.ids is None else view.ids.tolist())


def read_mask(mask: Any, ids: Array, names: Sequence[str]) -> Array:
    """Return the mask of samples × views; a frame with sample ids as index is matched by sample and view."""
    shape = (len(ids), len(names))
    if mask is None:
        return np.ones(shape, dtype=bool)
    given = np.asarray(_aligned(mask, ids, names) if descends(mask, "pandas", "DataFrame") else mask)
    if given.shape != shape:
        raise InputError(
            f"mask must have one row for each sample and one column for each view, shape {shape}; "
            f"got shape {given.shape}."
        )
    if given.dtype == object:  # nullable booleans of pandas
        cells = given.ravel().tolist()
        given = np.array([c if isinstance(c, bool | int | float) and c in (0, 1) else 2 for c in cells]).reshape(shape)
    if given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
        raise InputError("mask must hold True (the sample has the view) and False, or 1 and 0; got other values.")
    return given.astype(bool)


def _aligned(mask: Any, ids: Array, names: Sequence[str]) -> Any:
    if not has_default_index(mask):
        keys = mask.index.astype(object).tolist()
        if len(set(keys)) < len(keys) or set(keys) != set(ids.tolist()):
            raise InputError(
                "mask is a frame with sample ids that are not those of the views: "
                f"{some([key for key in ids.tolist() if key not in set(keys)]) or 'some occur twice'}. "
                "Give it the ids of the samples as index, or pass its values if the rows are in the same order."
            )
        mask = mask.set_axis(keys, axis=0).loc[ids.tolist()]
    if not descends(mask.columns, "pandas", "RangeIndex"):
        if sorted(map(str, mask.columns)) != sorted(names):
            raise InputError(
                f"mask is a frame with the columns {some(mask.columns)}; the views are {some(names)}. "
                "Name its columns after the views, or pass its values if they are in the same order."
            )
        mask = mask.set_axis([str(column) for column in mask.columns], axis=1)[list(names)]
    return mask.to_numpy(dtype=object)


def _as_integers(ids: Array) -> Array:
    """Return ids that are all integers as an array of integers, and others unchanged."""
    if ids.dtype == object and all(type(key) is int for key in ids.tolist()) and len(ids):
        try:
            return ids.astype(np.int64)
        except OverflowError:
            return ids
    return ids


def demand_ids_everywhere(given: Sequence[RawView]) -> None:
    """Raise an error if some views have sample ids and others have none."""
    without, keyed = [view for view in given if view.ids is None], [view for view in given if view.ids is not None]
    if without and keyed:
        example, listed = keyed[0], some([view.name for view in without])
        ids = () if example.ids is None else example.ids[:3]
        raise InputError(
            f"Rows cannot be matched: the view(s) {listed} have no sample ids, while '{example.name}' has ids such as "
            f"{some(ids)}. Name the column that holds their ids (id_column), or add the ids. If the rows of all views "
            "are in the same order, give id_column=False."
        )


def demand_equal_length(given: Sequence[RawView], n_samples: int, of: str) -> None:
    """Raise an error if views without sample ids differ in their numbers of rows."""
    lengths = {view.name: view.n_rows for view in given}
    if any(length != n_samples for length in lengths.values()):
        _demand_none_transposed(given, [n_samples] if of == "sample_ids" else list(dict.fromkeys(lengths.values())))
        listed = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
        raise InputError(
            f"Views without sample ids must all have one row for each sample, {n_samples} as in {of}; {listed} rows. "
            "Put an empty row (NaN) where a sample lacks a view, or give the ids of the samples (id_column)."
        )


def _demand_none_transposed(given: Sequence[RawView], lengths: Sequence[int]) -> None:
    """Raise an error if the views have one of these numbers of rows once some of them are transposed."""
    turned = {}
    for n_samples in lengths:
        odd = [view for view in given if view.n_rows != n_samples]
        if all(view.values is not None and view.values.shape[1] == n_samples for view in odd):
            turned[n_samples] = [view.name for view in odd]
    if len(turned) == 1:
        ((n_samples, names),) = turned.items()
        sizes = "; ".join(
            f"'{view.name}' has {view.n_rows} rows and {n_samples} columns" for view in given if view.name in names
        )
        raise InputError(
            f"View {sizes}, where {n_samples} rows are expected: it seems to be transposed. A view has one row for "
            f"each sample; give {', '.join(f'{name}.T' for name in names)} (on the command line: "
            f"{' '.join(f'--transpose {quote(name)}' for name in names)})."
        )
    if turned:
        sizes = ", ".join(f"'{view.name}' is {view.n_rows} × {view.values.shape[1]}" for view in given)  # type: ignore[union-attr]
        raise InputError(
            f"Some views seem to be transposed: {sizes}. A view has one row for each sample and one column for each "
            "feature; transpose those that have features in rows (.T; on the command line: --transpose)."
        )


def demand_ids(where: str, ids: Sequence[Any]) -> list[str]:
    """Return ids as text; raise an error unless every row has an id that occurs once."""
    cells = [None if is_missing(key) else key for key in ids]
    odd = next((key for key in cells if not isinstance(key, Hashable)), None)
    if odd is not None:
        raise InputTypeError(f"Sample ids must be text, numbers or dates; in {where}: {described(odd)}.")
    demand_digits(where, [cell for cell in cells if isinstance(cell, float)])
    keys = as_keys(cells)
    empty = [row for row, key in enumerate(keys) if not key]
    if empty:
        raise InputError(
            f"Every sample needs an id; in {where} {len(empty)} row(s) have none, first row {empty[0] + 1}. Fill them "
            "in or leave them out."
        )
    if len(set(keys)) < len(keys):
        twice = repeats(keys)
        raise InputError(
            f"Sample ids must be unique within a view; in {where} {len(twice)} row(s) repeat an id: {some(twice)}. "
            "Average or drop the repeated rows first; if this is not the column of ids, name the right one (id_column)."
        )
    return [key for key in keys if key]


def _kind_of_id(ids: Array) -> str:
    types = {type(key) for key in ids.tolist()}
    if types == {str}:
        return "text"
    return "numbers" if types <= {int, float, bool} else f"values of type {sorted(t.__name__ for t in types)[0]}"
