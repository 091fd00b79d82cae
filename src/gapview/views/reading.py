"""Reading all views of a data set from their containers, with their ids and in the same orientation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..utils.messages import check_flag
from ..utils.packing import as_objects
from .containers import Container, RawView, demand_distinct_columns, read_other
from .frames import as_frame, is_frame
from .id_patterns import IdPattern, note_on_rewrite, read_pattern, rewrite_all
from .keys import as_keys
from .orientation import read_orientation
from .places import IN_X, Places, columns_at
from .tables import check_dropped, check_id_column, find_id_columns, read_drop, report_row_numbers


@dataclass(frozen=True)
class Reading:
    """How views are read: the parameters of :class:`gapview.Views` on ids, columns and orientation."""

    id_column: Any = None
    id_pattern: Any = None
    orient: Any = None
    drop: Any = None
    encode: bool = False
    places: Places = IN_X  # of the matrices in AnnData


AS_GIVEN = Reading()
TRANSPOSED = "Transposed, as requested: the columns are the samples, and their names are the ids."


def read_views(
    pairs: Sequence[tuple[str, Any]], reading: Reading = AS_GIVEN, *, is_sample: bool = False
) -> list[RawView]:
    """Read views from their containers, without checking their values; frames are read together to detect their ids.

    ``is_sample`` says that frames hold only some of the rows, so that ids in common are not expected.
    """
    names = [name for name, _ in pairs]
    check_flag("encode", reading.encode)
    drop = read_drop(reading.drop, names)
    transposed = read_orientation(reading.orient, names)
    patterns = dict(zip(names, read_pattern(reading.id_pattern, names), strict=True))
    frames = {name: as_frame(name, view) for name, view in pairs if is_frame(view)}
    columns = {name: frame.names for name, frame in frames.items()}
    omics = {name: view for name, view in pairs if hasattr(view, "var_names")}
    reading.places.demand_known(names)
    reading.places.demand_omics(bool(omics))
    columns |= {name: list(map(str, columns_at(name, view, reading.places.of(name)))) for name, view in omics.items()}
    check_dropped(dict(zip(names, drop, strict=True)), columns)
    wanted = check_id_column(reading.id_column)
    by_features = {name for name, is_transposed in zip(names, transposed, strict=True) if is_transposed}
    joined = [frame for name, frame in frames.items() if name not in by_features]
    found = dict(
        zip((frame.name for frame in joined), find_id_columns(joined, wanted, is_sample=is_sample), strict=True)
    )
    for name in by_features & set(frames):
        found[name] = find_id_columns([frames[name]], None)[0].of_features()
    raw = []
    for (name, view), own, is_transposed in zip(pairs, drop, transposed, strict=True):
        frame = frames.get(name)
        one = (
            _without(read_other(name, view, wanted, reading.places.of(name)), own)
            if frame is None
            else frame.read(found[name], own, reading.encode)
        )
        raw.append(_transposed(one) if is_transposed else one)
    raw = _rewritten(raw, patterns)
    keyed = [one for one in raw if one.ids is not None]
    if not frames and all(one.may_be_row_numbers for one in keyed):
        report_row_numbers([f"view '{one.name}'" for one in keyed], [set(map(str, _ids(one))) for one in keyed])
    return raw


def _rewritten(raw: list[RawView], patterns: Mapping[str, IdPattern | None]) -> list[RawView]:
    """Return views with rewritten ids."""
    keys = {
        one.name: [key or "" for key in as_keys(one.ids.tolist())]
        for one in raw
        if one.ids is not None and patterns[one.name] is not None
    }
    rewritten = rewrite_all(keys, patterns)
    notes = {name: note_on_rewrite(keys[name], new) for name, new in rewritten.items()}
    return [
        replace(one, ids=as_objects(rewritten[one.name]), notes=(*one.notes, note))
        if (note := notes.get(one.name))
        else one
        for one in raw
    ]


def _ids(view: RawView) -> list[Any]:
    return [] if view.ids is None else view.ids.tolist()


def _without(view: RawView, dropped: Set[str]) -> RawView:
    """Return a view without the columns of these names."""
    columns = view.container.columns
    if view.values is None or columns is None or not dropped:
        return view
    kept = [place for place, column in enumerate(columns) if str(column) not in dropped]
    container = replace(view.container, columns=tuple(columns[place] for place in kept))
    return replace(view, values=view.values[:, kept], container=container)


def _transposed(view: RawView) -> RawView:
    """Return a view that was given with a row for each feature and a column for each sample."""
    if view.values is None:
        return view
    columns, kind = view.container.columns, view.container.kind
    values = view.values.T.tocsr() if sparse.issparse(view.values) else np.ascontiguousarray(view.values.T)
    features = None if view.ids is None else tuple(view.ids.tolist())
    if features is not None:
        demand_distinct_columns(view.name, features)
    ids = None if columns is None or list(columns) == list(range(len(columns))) else as_objects(columns)
    return RawView(view.name, values, ids, Container(kind, features, None), notes=(*view.notes, TRANSPOSED))
