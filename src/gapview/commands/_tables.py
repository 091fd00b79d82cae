"""The tables of results: the group of every sample, and where it lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators import MultiViewClusterer
from ..utils.storage import write_table
from ..utils.types import Array
from ..views import Views

__all__ = ["write_embedding", "write_labels", "write_predictions"]


def write_labels(path: Path, model: MultiViewClusterer) -> None:
    """Write for every training sample its group, how clearly it belongs there, and which views it has."""
    columns = {"label": model.labels_.tolist()}
    if hasattr(model, "confidence_"):  # some methods do not tell
        columns["confidence"] = [f"{value:.3f}" for value in model.confidence_]
    _write(path, model.views_, columns)


def write_predictions(path: Path, new: Views, labels: Array, distances: Array) -> None:
    """Write for every new sample its group, how far it is from anything in training, and which views it has."""
    _write(path, new, {"label": labels.tolist(), "distance": [f"{value:.3f}" for value in distances]})


def _write(path: Path, views: Views, columns: dict[str, Sequence[Any]]) -> None:
    shown = np.where(views.mask, "yes", "no").tolist()
    rows: Iterable[Any] = zip(views.sample_ids.tolist(), *columns.values(), shown, strict=True)
    write_table(
        path,
        ["id", *columns, *(f"has_{name}" for name in views.names)],
        ([*row, *has] for *row, has in rows),
    )


def write_embedding(path: Path, model: MultiViewClusterer) -> None:
    """Write where every training sample lies in the space in which groups were found."""
    prefix = type(model).__name__.lower()
    write_table(
        path,
        ["id", *(f"{prefix}{place}" for place in range(model.embedding_.shape[1]))],
        ([key, *(f"{x:.6g}" for x in row)] for key, row in zip(model.sample_ids_, model.embedding_, strict=True)),
    )
