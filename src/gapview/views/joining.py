"""Joining views: the sample of every row of every view, and the mask of presence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, some
from ..utils.packing import as_objects
from ..utils.types import Array
from .containers import RawView, descends, has_default_index, repeats


def join(raw: Sequence[RawView], sample_ids: Any = None) -> tuple[Array, list[Array]]:
    """Return the ids of all samples and, for every view, the sample of each of its rows."""
    given = [view for view in raw if view.values is not None]
    if not given:
        raise InputError("There is no view: every one is None. Give at least one matrix.")
    keyed = {view.name: view.ids for view in given if view.ids is not None}
    if sample_ids is not None:
        ids, of = _given_ids(sample_ids, keyed), "sample_ids"
    else:
        for name, own in keyed.items():
            _demand_ids(f"view '{name}'", own)
        _demand_no_default_index_beside_ids(given, keyed)
        if keyed and not _same_rows(given, keyed):
            return _join_by_id(raw, keyed)
        ids = _as_integers(next(iter(keyed.values()))) if keyed else np.arange(given[0].n_rows)
        of = f"view '{next(iter(keyed), given[0].name)}'"
    demand_equal_length(given, len(ids), of)
    return ids, [np.arange(view.n_rows) for view in raw]


def _given_ids(sample_ids: Any, keyed: Mapping[str, Array]) -> Array:
    if keyed:
        raise InputError(
            f"sample_ids are for views without ids; {some(keyed)} are keyed by sample id. Leave sample_ids out."
        )
    if isinstance(sample_ids, str | bytes) or not hasattr(sample_ids, "__iter__"):
        raise InputTypeError(f"sample_ids must be a sequence with one id for each sample; got {sample_ids!r}.")
    ids = _as_integers(as_objects(np.ravel(sample_ids).tolist() if isinstance(sample_ids, np.ndarray) else sample_ids))
    _demand_ids("sample_ids", ids)
    return ids


def _join_by_id(raw: Sequence[RawView], keyed: Mapping[str, Array]) -> tuple[Array, list[Array]]:
    plain = [view.name for view in raw if view.values is not None and view.ids is None]
    if plain:
        raise InputError(
            f"The views {some(keyed)} are keyed by sample id and do not hold the same samples in the same order, but "
            f"{some(plain)} have no ids, so their rows cannot be matched. "
            "Give every view as a frame whose index holds the sample ids."
        )
    _demand_one_kind_of_id(keyed)
    position: dict[Any, int] = {}
    places = []
    for view in raw:
        ids = [] if view.ids is None else view.ids.tolist()
        places.append(np.asarray([position.setdefault(key, len(position)) for key in ids], dtype=np.intp))
    return _as_integers(as_objects(position)), places


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


def _same_rows(given: Sequence[RawView], keyed: Mapping[str, Array]) -> bool:
    """Return whether all views list the same samples in the same order."""
    first, *others = [ids.tolist() for ids in keyed.values()]
    return all(ids == first for ids in others) and all(view.n_rows == len(first) for view in given)


def _demand_no_default_index_beside_ids(given: Sequence[RawView], keyed: Mapping[str, Array]) -> None:
    unlabelled = [view.name for view in given if view.ids is None and view.container.kind == "pandas"]
    if keyed and unlabelled:
        raise InputError(
            f"The views {some(keyed)} are keyed by sample id, but the frame(s) {some(unlabelled)} have only the "
            "default index 0, 1, 2, …, which may or may not be the same samples. "
            "Set their index to the sample ids, or pass their values as an array if the rows are in the same order."
        )


def demand_equal_length(given: Sequence[RawView], n_samples: int, of: str) -> None:
    """Raise an error if views without sample ids differ in their numbers of rows."""
    lengths = {view.name: view.n_rows for view in given}
    if any(length != n_samples for length in lengths.values()):
        listed = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
        raise InputError(
            f"Views without sample ids must all have one row for each sample, {n_samples} as in {of}; {listed} rows. "
            "Put a row of NaN where a sample lacks a view, or give frames whose index holds the sample ids."
        )


def _demand_ids(where: str, ids: Array) -> None:
    """Raise an error unless every row has an id that occurs once."""
    listed = ids.tolist()
    empty = sum(key is None or type(key).__name__ in ("NAType", "NaTType") or key != key for key in listed)
    if empty:
        raise InputError(
            f"Every sample needs an id; in {where} {empty} row(s) have none. Fill them in or leave them out."
        )
    try:
        repeated = len(set(listed)) < len(listed)
    except TypeError as error:
        raise InputTypeError(f"Sample ids must be text, numbers or dates; in {where}: {error}.") from None
    if repeated:
        twice = repeats(listed)
        raise InputError(
            f"Sample ids must be unique within a view; in {where} {len(twice)} row(s) repeat an id: {some(twice)}. "
            "Average or drop the repeated rows first."
        )


def _demand_one_kind_of_id(keyed: Mapping[str, Array]) -> None:
    kinds = {name: _kind_of_id(ids) for name, ids in keyed.items()}
    if len(set(kinds.values()) - {"nothing"}) > 1:
        listed = ", ".join(f"'{name}' has {kind}" for name, kind in kinds.items())
        raise InputTypeError(
            f"Sample ids must be of one kind to be matched between views; {listed}. "
            "Convert them to one kind, for instance with frame.index.astype(str)."
        )


def _kind_of_id(ids: Array) -> str:
    if not len(ids):
        return "nothing"
    types = {type(key) for key in ids.tolist()}
    if types == {str}:
        return "text"
    return "numbers" if types <= {int, float, bool} else f"values of type {sorted(t.__name__ for t in types)[0]}"
