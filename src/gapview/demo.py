"""The main job on the embedded example: hide views, cluster, recover, score, write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from .datasets import Dataset, load_digits_views, paired_split
from .estimators import BridgedGRMF
from .metrics import clustering_scores
from .storage import make_folder, write_table
from .views import Views

__all__ = ["DemoResult", "run_demo"]


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration did, how well, and what it wrote."""

    data: Dataset
    views: Views
    model: BridgedGRMF
    seconds: float
    scores: dict[str, float]
    recovery: dict[str, float]  # per view: error of the recovered rows over the error of filling in the mean
    files: list[Path]


def run_demo(folder: Path, paired_rate: float, seed: int) -> DemoResult:
    """Cluster the embedded digits with views hidden by the paper's protocol, and write the results to a folder."""
    target_folder = make_folder(folder)
    data = load_digits_views()
    views = paired_split(data.views, paired_rate, random_state=seed)
    begin = perf_counter()
    model = BridgedGRMF(n_clusters=10, random_state=seed).fit(views)
    seconds = perf_counter() - begin
    recovery = _recovery_errors(model, data.views)
    files = [target_folder / "labels.csv", target_folder / "embedding.csv"]
    shown = np.where(views.mask, "yes", "no")
    write_table(
        files[0],
        ["id", "label", "confidence", *(f"has_{name}" for name in views.names)],
        (
            [i, label, f"{confidence:.3f}", *row]
            for i, label, confidence, row in zip(views.sample_ids, model.labels_, model.confidence_, shown, strict=True)
        ),
    )
    write_table(
        files[1],
        ["id", *model.get_feature_names_out()],
        ([i, *(f"{x:.6g}" for x in row)] for i, row in zip(views.sample_ids, model.embedding_, strict=True)),
    )
    assert data.target is not None
    scores = clustering_scores(data.target, model.labels_)
    return DemoResult(data, views, model, seconds, scores, recovery, files)


def _recovery_errors(model: BridgedGRMF, truth: Views) -> dict[str, float]:
    errors = {}
    for k, (name, recovered) in enumerate(model.recover().items()):
        hidden = ~model.views_.mask[:, k]
        if hidden.any():
            true = truth.matrices[k][hidden]
            mean = model.views_.matrices[k].mean(axis=0)
            errors[name] = float(np.linalg.norm(recovered[hidden] - true) / np.linalg.norm(mean - true))
    return errors
