"""A column with one value for each sample, such as batches, in the order of the samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, described, some
from ..utils.types import Array
from .containers import descends, has_default_index, is_missing
from .keys import as_keys


def read_batch(batch: Any, sample_ids: Array) -> list[str | None]:
    """Return the batch of every sample as text, None where it is missing.

    Parameters
    ----------
    batch : array-like, pandas or polars Series, or mapping
        One value for each sample in their order; a pandas Series with an index other than 0, 1, 2, … and a mapping
        are matched by sample id, and may lack samples.
    sample_ids : array of shape (n_samples,)
        The samples.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.views.sample_columns import read_batch
    >>> read_batch({"a": 1.0, "b": 2, "d": 1}, np.array(["b", "c", "a"]))
    ['2', None, '1']
    """
    cells = match_column(batch, sample_ids, "batch")
    odd = next((cell for cell in cells if isinstance(cell, list | tuple | dict | set | np.ndarray)), None)
    if odd is not None:
        raise InputTypeError(f"batch must have one value for each sample, a number or text; one is {described(odd)}.")
    values = as_keys([None if is_missing(cell) or cell == "" else cell for cell in cells])
    n_known = sum(value is not None for value in values)
    n_batches = len(Counter(value for value in values if value is not None))
    if not n_known:
        raise InputError("batch has no value for any sample. Give the batch of every sample, or leave batch out.")
    if n_batches > max(n_known // 2, 2):
        raise InputError(
            f"batch must name the batch of every sample, and a batch has several samples; got {n_batches:,} different "
            f"values for {n_known:,} samples, such as {some(values)}. Give the column of plates, runs or sites."
        )
    return values


def match_column(column: Any, sample_ids: Array, name: str) -> list[Any]:
    """Return the value of every sample, in their order, and None for samples without one; ``name`` is for messages.

    A pandas Series with an index other than 0, 1, 2, … and a mapping are matched by sample id.
    """
    if descends(column, "pandas", "Series") and not has_default_index(column):
        pairs = list(zip(column.index.astype(object).tolist(), column.astype(object).tolist(), strict=True))
        return _matched(pairs, sample_ids, name)
    if isinstance(column, Mapping):
        return _matched(list(column.items()), sample_ids, name)
    if descends(column, "pandas", "DataFrame") or descends(column, "polars", "DataFrame"):
        raise InputTypeError(
            f"{name} must be one column, with one value for each sample; got a {type(column).__name__} with the "
            f"columns {some(column.columns)}. Give one of them, frame[name]."
        )
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise InputTypeError(
            f"{name} must have one value for each sample: an array, a list, or a pandas Series whose index holds the "
            f"sample ids; got {described(column)}."
        )
    cells = column.astype(object).tolist() if descends(column, "pandas", "Series") else _listed(column)
    if len(cells) != len(sample_ids):
        raise InputError(
            f"{name} must have one value for each of the {len(sample_ids):,} samples; got {len(cells):,}. Give a "
            "pandas Series whose index holds the sample ids, which is matched by id."
        )
    return cells


def _listed(column: Any) -> list[Any]:
    cells = column.tolist() if hasattr(column, "tolist") else list(column)
    return [cell[0] if isinstance(cell, list) and len(cell) == 1 else cell for cell in cells]  # one column of a matrix


def _matched(pairs: list[tuple[Any, Any]], sample_ids: Array, name: str) -> list[Any]:
    """Return the values in the order of the samples, None for samples without one."""
    keys, wanted = as_keys([key for key, _ in pairs]), as_keys(sample_ids.tolist())
    repeated = [key for key, count in Counter(keys).items() if count > 1 and key in set(wanted)]
    if repeated:
        raise InputError(f"{name} must have one value for each sample; these ids occur twice: {some(repeated)}.")
    value_of = {key: value for key, (_, value) in zip(keys, pairs, strict=True)}
    if not set(wanted) & set(keys):
        raise InputError(
            f"{name} is keyed by ids of which none is a sample: it has {some(keys)}, the samples are {some(wanted)}. "
            "Give the ids of the samples as its index, or an array in their order."
        )
    return [value_of.get(key) for key in wanted]
