"""Putting views side by side: which row of which view belongs to which sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, some
from ._containers import Array, RawView


def join(raw: Sequence[RawView], sample_ids: Any = None) -> tuple[Array, list[Array]]:
    """Return the ids of all samples and, for every view, the sample that each of its rows belongs to."""
    given = [view for view in raw if view.values is not None]
    if not given:
        raise InputError("There is no view: every one is None. Give at least one matrix.")
    if sample_ids is not None:
        ids = _unique("sample_ids", np.asarray(sample_ids, dtype=object))
        _demand_equal_length(given, len(ids), "sample_ids")
        return ids, [np.arange(_length(view)) for view in raw]
    keyed = [view for view in given if not view.positional]
    for view in keyed:
        _unique(f"view '{view.name}'", view.ids)
    plain = [view.name for view in given if view.positional]
    unlabelled = [view.name for view in given if view.positional and view.container == "pandas"]
    if keyed and unlabelled:
        raise InputError(
            f"The views {some([view.name for view in keyed])} are keyed by sample id, but the frame(s) "
            f"{some(unlabelled)} "
            "have only the default index 0, 1, 2, …, which may or may not mean the same samples. Set their index to "
            "the sample ids, or pass their values as an array if the rows are in the same order."
        )
    if not keyed or _same_rows(given, keyed):
        first = keyed[0] if keyed else given[0]
        n_samples = _length(first)
        _demand_equal_length(given, n_samples, f"view '{first.name}'")
        ids = first.ids if keyed and first.ids is not None else np.arange(n_samples)
        return ids, [np.arange(_length(view)) for view in raw]
    if len(keyed) < len(given):
        raise InputError(
            f"The views {some([view.name for view in keyed])} are keyed by sample id and do not hold the same samples "
            f"in the same order, but {some(plain)} came without ids, so their rows cannot be matched. "
            "Give every view as a frame whose index holds the sample ids."
        )
    _demand_one_kind_of_id(keyed)
    return _join_by_id(raw)


def _join_by_id(raw: Sequence[RawView]) -> tuple[Array, list[Array]]:
    position: dict[Any, int] = {}
    places = []
    for view in raw:
        ids = [] if view.ids is None else view.ids.tolist()
        places.append(np.asarray([position.setdefault(key, len(position)) for key in ids], dtype=np.intp))
    ids = np.empty(len(position), dtype=object)
    ids[:] = list(position)
    kinds = {view.ids.dtype for view in raw if view.ids is not None}
    return (ids.astype(kinds.pop()) if len(kinds) == 1 else ids), places


def _same_rows(given: Sequence[RawView], keyed: Sequence[RawView]) -> bool:
    """Tell whether all views list the same samples in the same order."""
    first = keyed[0].ids
    same_ids = all(np.array_equal(first, view.ids) for view in keyed[1:])  # type: ignore[arg-type]
    return same_ids and all(_length(view) == len(first) for view in given)  # type: ignore[arg-type]


def _length(view: RawView) -> int:
    return 0 if view.values is None else int(view.values.shape[0])


def _demand_equal_length(given: Sequence[RawView], n_samples: int, of: str) -> None:
    lengths = {view.name: _length(view) for view in given}
    if any(length != n_samples for length in lengths.values()):
        listed = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
        raise InputError(
            f"Views without sample ids must all have one row for each sample, {n_samples} as in {of}; {listed} rows. "
            "Put a row of NaN where a sample lacks a view, or give frames whose index holds the sample ids."
        )


def _unique(where: str, ids: Array | None) -> Array:
    assert ids is not None
    listed = ids.tolist()
    if len(set(listed)) < len(listed):
        seen: set[Any] = set()
        twice = [key for key in listed if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        raise InputError(
            f"Sample ids must be unique within a view; in {where} {len(twice)} row(s) repeat an id: {some(twice)}. "
            "Average or drop the repeated rows first."
        )
    return ids


def _demand_one_kind_of_id(keyed: Sequence[RawView]) -> None:
    kinds = {view.name: _kind_of_id(view.ids) for view in keyed}
    if len(set(kinds.values()) - {"nothing"}) > 1:
        listed = ", ".join(f"'{name}' has {kind}" for name, kind in kinds.items())
        raise InputTypeError(
            f"Sample ids must be of one kind to be matched between views; {listed}. "
            "Convert them to one kind, for instance with frame.index.astype(str)."
        )


def _kind_of_id(ids: Array | None) -> str:
    if ids is None or not len(ids):
        return "nothing"
    types = {type(key) for key in ids.tolist()}
    if types == {str}:
        return "text"
    return "numbers" if types <= {int, float, bool} else "other objects"
