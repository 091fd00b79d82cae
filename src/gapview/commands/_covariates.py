"""A table of what else is known of the samples: age, stage, survival time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import DataFileError, some
from ..io import read_table
from ..utils.words import counted
from ..views import Views
from ._console import Say

__all__ = ["read_covariates"]


def read_covariates(path: Path, id_columns: Sequence[str], views: Views, say: Say) -> Any:
    """Read a table of numbers and words, with the rows of samples that a model knows."""
    return _keyed(read_table(path, id_column=list(id_columns) or None), path, views, say)


def _others(count: int) -> str:
    return f"; {counted(count, 'row')} of other samples left out" if count else ""


def _keyed(frame: Any, file: Path, views: Views, say: Say) -> Any:
    """Keep the rows of samples that the model knows."""
    own = dict.fromkeys(str(key) for key in views.sample_ids.tolist())
    common = [key for key in frame.index if key in own]
    if not common:
        raise DataFileError(
            f"{file.name!r} has no sample of the model: it has ids such as {some(frame.index, 3)}, the model such as "
            f"{some(list(own), 3)}. Name the column of ids (--id), or write the ids in the same way."
        )
    say(
        "Table",
        f"{file.name}: {counted(frame.shape[1], 'column')} for {len(common):,} of the {views.n_samples:,} samples "
        f"of the model{_others(len(frame) - len(common))}.",
    )
    return frame.loc[common]
