"""What a notebook shows of a fitted model: groups, views, and how far they can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.messages import counted
from ..utils.shown import Table, as_html, table_of
from ..views import Views


def fitted_html(model: Any) -> str:
    """Return the groups and the views of a fitted model as HTML; nothing of one that is not fitted, or on a cluster."""
    is_here = isinstance(getattr(model, "labels_", None), np.ndarray) and isinstance(
        getattr(model, "views_", None), Views
    )
    return as_html(_groups(model)) + as_html(_views(model)) if is_here else ""


def _groups(model: Any) -> Table:
    labels, assessment = model.labels_, getattr(model, "assessment_", None)
    sizes = np.bincount(labels)
    columns: dict[str, Any] = {"group": range(len(sizes)), "samples": sizes.tolist()}
    if isinstance(confidence := getattr(model, "confidence_", None), np.ndarray):
        sums = np.bincount(labels, weights=confidence)
        columns["mean confidence"] = [float(value) for value in sums / np.maximum(sizes, 1)]
    if assessment is not None and len(assessment.group_stability) == len(sizes) > 1:
        columns["stability"] = assessment.group_stability.tolist()
    return Table(
        f"{counted(len(labels), 'sample')} in {counted(int((sizes > 0).sum()), 'group')}",
        tuple(columns),
        list(zip(*columns.values(), strict=True)),
        _trust(model, assessment),
    )


def _trust(model: Any, assessment: Any) -> list[str]:
    if assessment is not None:
        notes = assessment.sentences()
    elif hasattr(model, "assess"):
        notes = ["Whether the groups can be distinguished from data without groups is not tested: see assess()."]
    else:
        notes = []
    return [*notes, *(test.warning for test in getattr(model, "associations_", ()) if test.is_warning)]


def _views(model: Any) -> Table:
    title, columns, rows, notes = table_of(model.views_)
    weights = getattr(model, "view_weights_", None)
    if isinstance(weights, np.ndarray) and len(weights) == len(rows):
        columns = (*columns, "weight")
        rows = [(*row, weight) for row, weight in zip(rows, weights.tolist(), strict=True)]
    return Table(title, columns, rows, notes)
