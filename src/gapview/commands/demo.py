"""The main job on the embedded example: hide views, cluster, recover, score, write, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from ..datasets import Dataset, load_digits_views, paired_split
from ..estimators import BridgedGRMF
from ..metrics import clustering_scores
from ..progress import tell
from ..views import Views
from ._folder import RECORD, read_record, results_folder
from ._pages import lacking_package, write_report
from ._record import described_model, described_run, described_views, shown_run, write_record
from ._tables import write_embedding, write_labels

__all__ = ["DemoResult", "run_demo"]

_DEMONSTRATED = "demonstration"  # in the record of a folder: there is nothing in it that could not be had again


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
    report: Path | None  # None if a package is lacking …
    without_report: str  # … and what to do about it


def run_demo(
    folder: Path, paired_rate: float, seed: int, *, force: bool = False, arguments: Sequence[str] = ()
) -> DemoResult:
    """Cluster the embedded digits with views hidden by the paper's protocol, and write the results to a folder.

    The folder is there whole or not at all. What an earlier demonstration has left in it is replaced; with ``force``,
    other results of gapview, too.
    """
    data = load_digits_views()
    assert data.target is not None
    views = paired_split(data.views, paired_rate, random_state=seed)
    without = lacking_package()  # the demonstration needs no more than the core; the report does
    with results_folder(folder, force=force or _DEMONSTRATED in read_record(folder)) as prepared:
        begin = perf_counter()
        model = BridgedGRMF(n_clusters=10, random_state=seed).fit(views)
        seconds = perf_counter() - begin
        recovery = _recovery_errors(model, data.views)
        write_labels(prepared / "labels.csv", model)
        write_embedding(prepared / "embedding.csv", model)
        model.save(prepared / "model.gapview")
        record = described_run(arguments) | described_model(model)
        if without is None:
            tell("Writing the report")
            title = "Handwritten digits, with many of their views hidden"
            write_report(model, prepared / "report.html", title=title, run=shown_run(record))
        write_record(prepared, record | {"counts": described_views(views), _DEMONSTRATED: {"paired_rate": paired_rate}})
    files = [folder / name for name in ("labels.csv", "embedding.csv", "model.gapview", RECORD)]
    report = None if without else folder / "report.html"
    scores = clustering_scores(data.target, model.labels_)
    return DemoResult(data, views, model, seconds, scores, recovery, files, report, str(without or ""))


def _recovery_errors(model: BridgedGRMF, truth: Views) -> dict[str, float]:
    errors = {}
    for k, (name, recovered) in enumerate(model.recover().items()):
        hidden = ~model.views_.mask[:, k]
        if hidden.any():
            true = truth.matrices[k][hidden]
            mean = model.views_.matrices[k].mean(axis=0)
            errors[name] = float(np.linalg.norm(recovered[hidden] - true) / np.linalg.norm(mean - true))
    return errors
