"""``gapview demo``: hide views of the embedded example, cluster, recover, score, and write the results."""

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
from ..report import write_clustering_report
from ..views import Views
from .folder import RECORD, read_record, results_folder
from .record import model_facts, report_facts, run_facts, sample_counts, write_model, write_record
from .report import missing_package

_DEMO = "demonstration"  # marks the record of a demonstration, which may be replaced


@dataclass(frozen=True)
class DemoResult:
    """The data, model, scores and files of a demonstration."""

    data: Dataset
    views: Views
    model: BridgedGRMF
    seconds: float
    scores: dict[str, float]
    recovery: dict[str, float]  # per view: error of the recovered rows over the error of filling in the mean
    files: list[Path]
    report: Path | None  # None if a package is missing …
    without_report: str  # … and how to install it


def run_demo(
    folder: Path, paired_rate: float, seed: int, *, force: bool = False, arguments: Sequence[str] = ()
) -> DemoResult:
    """Cluster the embedded digits with views hidden by the paper's protocol, and write the results to a folder.

    The folder is written completely or not at all. Results of an earlier demonstration are replaced; with ``force``,
    other results of gapview, too.
    """
    data = load_digits_views()
    assert data.target is not None
    views = paired_split(data.views, paired_rate, random_state=seed)
    without = missing_package()  # of the report; the rest needs no extra packages
    with results_folder(folder, force=force or _DEMO in read_record(folder)) as prepared:
        begin = perf_counter()
        model = BridgedGRMF(n_clusters=10, random_state=seed).fit(views)
        seconds = perf_counter() - begin
        recovery = _recovery_errors(model, data.views)
        write_model(prepared, model)
        record = run_facts(arguments) | model_facts(model)
        if without is None:
            tell("Writing the report")
            title = "Handwritten digits, with many of their views hidden"
            write_clustering_report(model, prepared / "report.html", title=title, run=report_facts(record))
        write_record(prepared, record | {"counts": sample_counts(views), _DEMO: {"paired_rate": paired_rate}})
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
