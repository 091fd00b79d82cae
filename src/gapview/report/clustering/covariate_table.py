"""Tables of covariates: rows matched to samples, columns read as numbers or categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import InputError, InputTypeError, ParameterError, extra, some
from ...io.tables import as_keys
from ...utils.types import Array
from ...views.containers import descends

_YES = {"1", "1.0", "true", "yes", "y", "t", "dead", "deceased", "died", "event"}
_NO = {"0", "0.0", "false", "no", "n", "f", "alive", "living", "censored", "none"}


@dataclass(frozen=True)
class Column:
    """One column with a value for every sample: numbers, NaN if missing, or texts, None if missing."""

    numbers: Array | Any = field(repr=False)
    texts: list[str | None] = field(repr=False)
    is_number: bool
    flags: Array | None = field(repr=False)  # 0, 1 and NaN, if the column may hold events


@dataclass(frozen=True)
class CovariateTable:
    """A table with one row for each sample."""

    columns: Mapping[str, Column]
    left_out: tuple[tuple[str, str], ...]
    n_matched: int
    n_unknown: int  # rows that belong to no sample

    def check_pair(self, time: str, event: str) -> tuple[str, str]:
        """Return the names of two columns; raise an error unless they hold times and events."""
        lacking = [name for name in (time, event) if name not in self.columns]
        if lacking:
            raise ParameterError(
                f"survival names columns that covariates does not have: {some(lacking)}; it has {some(self.columns)}."
            )
        if not self.columns[time].is_number or self.columns[event].flags is None:
            raise ParameterError(
                "survival must name a column of times, as numbers, and a column of events, 1 if the event was observed "
                f"and 0 if not; got '{time}' and '{event}', which hold other values."
            )
        return time, event


def read_pairs(survival: Any) -> list[tuple[str, str]] | None:
    """Return the pairs of columns with times and events; None to detect them by name."""
    if survival is None:
        return None
    pairs = [survival] if isinstance(survival, tuple) and all(isinstance(name, str) for name in survival) else survival
    fitting = isinstance(pairs, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
        for pair in pairs
    )
    if not fitting:
        raise ParameterError(
            "survival must be a pair of columns, (time, event), a list of such pairs, or None to find them by their "
            f"names; got {survival!r}."
        )
    return [(str(time), str(event)) for time, event in pairs]


def match_covariates(covariates: Any, sample_ids: Array, *, no_ids: bool) -> CovariateTable:
    """Return the columns of a frame in the order of the samples."""
    frame, wanted = _as_pandas(covariates), as_keys(sample_ids.tolist())
    keys, key_column = _row_keys(frame, wanted)
    row_of = {key: row for row, key in enumerate(keys) if key is not None}
    places = np.array([-1 if key is None else row_of.get(key, -1) for key in wanted])
    columns: dict[str, Column] = {}
    left_out: list[tuple[str, str]] = []
    for position, name in enumerate(map(str, frame.columns)):
        if position == key_column:
            continue
        column = _read_column(frame.iloc[:, position], places, set(wanted) if no_ids else set())
        if isinstance(column, str):
            left_out.append((name, column))
        elif name in columns:
            left_out.append((name, "there is another column of this name"))
        else:
            columns[name] = column
    n_matched = int((places >= 0).sum())
    return CovariateTable(columns, tuple(left_out), n_matched, len(keys) - n_matched)


def _as_pandas(covariates: Any) -> Any:
    if not descends(covariates, "pandas", "DataFrame") and not descends(covariates, "polars", "DataFrame"):
        raise InputTypeError(
            "covariates must be a pandas frame whose index holds the sample ids, or a pandas or polars frame with a "
            f"column of them; got {type(covariates).__name__}."
        )
    pd = extra("pandas", "tables", "Reading covariates")
    return covariates if isinstance(covariates, pd.DataFrame) else pd.DataFrame(covariates.to_dict(as_series=False))


def _row_keys(frame: Any, wanted: list[str | None]) -> tuple[list[str | None], int | None]:
    """Return the ids of the rows: the index, or if it matches no sample, the column that matches most and its place."""
    known = set(wanted)
    keys, position = as_keys(_cells(frame.index)), None
    if not known & set(keys):
        columns = [as_keys(_cells(frame.iloc[:, j])) for j in range(frame.shape[1])]
        n_known = [len(known & set(column)) for column in columns]
        if not any(n_known):
            raise InputError(
                "covariates has a row for none of the samples: neither its index nor a column holds their ids. The "
                f"samples are called {some(wanted)}; its index begins with {some(keys)}. Make the sample ids its index."
            )
        position = int(np.argmax(n_known))
        keys = columns[position]
    repeated = Counter(key for key in keys if key in known) - Counter(known)
    if repeated:
        raise InputError(
            f"covariates must have one row for each sample; {repeated.total()} row(s) repeat an id: "
            f"{some(repeated.elements())}. Keep one row of each."
        )
    return keys, position


def _cells(values: Any) -> list[Any]:
    """Return the cells of a column or an index, None for missing ones."""
    return [None if _is_missing(cell) else cell for cell in values.astype(object).tolist()]


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _read_column(values: Any, places: Array, ids: set[str | None]) -> Column | str:
    """Return a column in the order of the samples, or the reason why it is left out."""
    if getattr(values.dtype, "kind", "O") in "mMc":
        return "dates, spans of time and complex numbers are not compared"
    cells = _cells(values)
    ordered = [None if place < 0 else cells[place] for place in places]
    given = [cell for cell in ordered if cell is not None]
    if any(isinstance(cell, list | dict | set | tuple | np.ndarray) for cell in given):
        return "its cells are neither numbers nor text"
    if not given:
        return "it is empty for all samples"
    numeric = all(
        isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool) for cell in given
    )
    # A column with two different numbers is a category, such as 0 and 1 for no and yes
    is_number = numeric and len(set(given)) > 2
    texts = [None if cell is None else str(cell) for cell in ordered]
    if not is_number and _are_ids({text.strip() for text in texts if text is not None}, ids):
        return "it holds ids of samples"
    numbers = np.array([float(cell) if numeric and cell is not None else np.nan for cell in ordered])
    return Column(numbers, texts, is_number, _flags(texts))


def _flags(texts: list[str | None]) -> Array | None:
    words = {text.strip().lower() for text in texts if text is not None}
    if not words or not words <= _YES | _NO or not words & _YES:
        return None
    return np.array([np.nan if text is None else float(text.strip().lower() in _YES) for text in texts])


def _are_ids(texts: set[str], ids: set[str | None]) -> bool:
    named = texts & ids
    # 0 and 1 are ordinary values, even if they are ids; many different ids are not
    return any(not text.isdigit() for text in named if text) or (len(named) > 2 and 2 * len(named) > len(texts))
