"""``gapview demo``: hide views of the embedded example, cluster, recover, score, and write the results."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from ..datasets import load_digits_views, paired_split
from ..estimators import BridgedGRMF
from ..metrics import clustering_scores
from ..views import Views
from .console import Show, run_command
from .folder import read_record, results_folder
from .options import folder_option, force_option, seed_option
from .record import sample_counts, write_record, write_results, written_files
from .report import missing_package

_DEMO = "demonstration"  # marks the record of a demonstration, which may be replaced


def run_demo(show: Show, *, output: Path, paired_rate: float, random_state: int, force: bool) -> list[Path]:
    """Cluster the embedded digits with views hidden by the paper's protocol, and write the results to a folder.

    The folder is written completely or not at all. Results of an earlier demonstration are replaced; with ``force``,
    other results of gapview, too.
    """
    data = load_digits_views()
    views = paired_split(data.views, paired_rate, random_state=random_state)
    missing = missing_package()  # of the report; the rest needs no extra packages
    with results_folder(output, force=force or _DEMO in read_record(output)) as folder:
        begin = perf_counter()
        model = BridgedGRMF(n_clusters=10, random_state=random_state).fit(views)
        seconds = perf_counter() - begin
        errors = _recovery_errors(model, data.views)
        title = "Handwritten digits, with many of their views hidden"
        record = write_results(folder, model, {}, report=missing is None, title=title)
        write_record(folder, record | {"counts": sample_counts(views), _DEMO: {"paired_rate": paired_rate}})
    _show_data(views, show)
    show(
        "Groups",
        f"BridgedGRMF put all {views.n_samples} samples into {model.n_clusters} groups "
        f"in {seconds:.1f} s, the choice of its settings included.",
    )
    show("Settings", str(model.selection_))
    scores = {name: f"{100 * score:.1f} %" for name, score in clustering_scores(data.target, model.labels_).items()}
    show(
        "Scores",
        f"against the true digits, which the method never saw: accuracy {scores['accuracy']}, "
        f"NMI {scores['nmi']}, purity {scores['purity']}.",
    )
    for name, share in errors.items():
        change = f"{100 * abs(1 - share):.0f} % {'below' if share < 1 else 'above'}"
        show("Recover", f"hidden {name}: error {change} that of filling in the mean.")
    if missing is not None:
        show("Left out", f"the report. {missing}")
    return written_files(output)


def _show_data(views: Views, show: Show) -> None:
    """Print the size of the example, and how many samples keep which views."""
    sizes = " and ".join(f"{name} ({m} features)" for name, m in zip(views.names, views.n_features, strict=True))
    both = views.mask.all(axis=1)
    single = ", ".join(f"{int((views.mask[:, k] & ~both).sum())} only {name}" for k, name in enumerate(views.names))
    show("Data", f"{views.n_samples} handwritten digits in two views: {sizes}.")
    show("Hidden", f"{int(both.sum())} samples keep both views, {single}.")


def _recovery_errors(model: BridgedGRMF, truth: Views) -> dict[str, float]:
    """Return for every view the error of its recovered rows over the error of filling in the mean."""
    errors = {}
    for k, (name, recovered) in enumerate(model.recover().items()):
        hidden = ~model.views_.mask[:, k]
        if hidden.any():
            true = truth.matrices[k][hidden]
            mean = model.views_.matrices[k].mean(axis=0)
            errors[name] = float(np.linalg.norm(recovered[hidden] - true) / np.linalg.norm(mean - true))
    return errors


@click.command(short_help="Cluster the embedded example.", epilog="Example: gapview demo --paired-rate 0.3 -o out")
@folder_option("gapview-demo")
@click.option(
    "--paired-rate", type=click.FloatRange(0, 1), default=0.5, show_default=True,
    help="Share of the samples that keep both views.",
)  # fmt: skip
@seed_option
@force_option("results of other commands that are in the folder")
def demo(**options: Any) -> None:
    """Cluster the embedded handwritten digits with many of their views hidden."""
    run_command(run_demo, **options)
