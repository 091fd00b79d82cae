"""``gapview cluster`` and ``gapview demo``: from files or the embedded example to groups, a model and a report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from ..datasets import load_digits_views, paired_split
from ..errors import some
from ..estimators import BridgedGRMF, MultiViewClusterer
from ..estimators.latent import LatentSpaceMixin
from ..io import ViewFile, join_views, summary_lines
from ..methods import METHODS
from ..metrics import clustering_scores
from ..persist.checkpoints import Checkpoint
from ..progress import tell
from ..utils.messages import counted, duration, joined
from ..views import Views
from . import options, results
from .console import Show, run_command, show_notes, show_warnings

_DEMO = "demonstration"  # marks the record of a demonstration, which may be replaced
_UNSURE = 0.5  # confidence at which two groups are equally likely


def cluster_files(
    show: Show, files: Sequence[str], output: Path, reading: Any, no_report: bool, force: bool, **settings: Any
) -> list[Path]:
    """Cluster the samples of files with a method and its settings, and write all results; return the files written."""
    model = options.build_model(**settings)
    report = not no_report and isinstance(model, LatentSpaceMixin)  # which have what a report shows
    if report and (missing := results.missing_package("Writing a report (--no-report leaves it out)")):
        raise missing
    times = [perf_counter()]
    with (
        _checkpoint(output, force, model) as checkpoint,
        results.results_folder(output, force=force) as folder,
        show_warnings(show) as warned,
    ):
        found = options.read_files(files, **reading)
        views = _join(found, settings["partial_rows"], show)
        record = results.input_facts(files, found, views) | {"description": _show_values(views, show)}
        times.append(perf_counter())
        _fit(model, views, checkpoint, show)
        times.append(perf_counter())
        _show_groups(model, times[2] - times[1], show)
        tell("Writing results")
        record = results.write_results(folder, model, record, report=report)
        times.append(perf_counter())
        seconds = dict(zip(("reading", "fitting", "writing"), np.diff(times).round(3).tolist(), strict=True))
        results.write_record(folder, record | {"warnings": warned, "seconds": seconds})
    if not no_report and not report:
        show("Left out", f"report.html: it needs GRMF or BridgedGRMF, and {type(model).__name__} is another method.")
    return results.written_files(output)


@contextmanager
def _checkpoint(output: Path, force: bool, model: MultiViewClusterer) -> Iterator[Checkpoint | None]:
    """Yield the checkpoint beside the results, None if the method has none; remove it once the results are complete.

    Errors and interruptions get a note about it.
    """
    target = Path(os.path.abspath(output))
    if not isinstance(model, LatentSpaceMixin) or not target.name:
        yield None
        return
    checkpoint = Checkpoint(target.with_name(results.short_name(target.name) + ".unfinished"), keep=True, replace=force)
    try:
        yield checkpoint
    except BaseException as error:
        if checkpoint.was_opened and checkpoint.is_there:
            error.add_note(
                f"Finished work is kept in {str(checkpoint.path)!r}; run the same command again to resume, or delete "
                "that folder."
            )
        raise
    checkpoint.remove()


def _fit(model: Any, views: Views, checkpoint: Checkpoint | None, show: Show) -> None:
    if checkpoint is None or not os.access(checkpoint.path.parent, os.W_OK):
        model.fit(views)
        return
    if checkpoint.is_there:
        show("Resuming", f"from {str(checkpoint.path)!r}, where an earlier run has kept its finished work.")
    model.fit(views, checkpoint=checkpoint)


def _join(found: list[ViewFile], partial_rows: str, show: Show) -> Views:
    """Join the views of files, and print what was read and how it was joined."""
    for view, line in zip(found, summary_lines(found), strict=True):
        show("View", line + ".")
        show_notes(view.notes, show)
    views = join_views(found, partial_rows=partial_rows)
    keyed = found[0].keyed
    text = f"{views.n_samples:,}, " + ("joined by their ids" if keyed else "in the order of the rows, numbered from 0")
    if views.n_views > 1:
        every = "both views" if views.n_views == 2 else f"all {views.n_views} views"
        text += f"; {int(views.mask.all(axis=1).sum()):,} of them have {every}"
    if views.n_views > 1 or not keyed:
        show("Samples", text + ".")
    return views


def _show_values(views: Views, show: Show) -> list[dict[str, Any]]:
    """Print what the values look like, except for warnings, which the fit gives; return the same for the record."""
    description = views.describe()
    for view in description.views:
        show("Values", f"{view}.")
        show_notes((finding.sentences for finding in view.findings if not finding.is_warning), show)
    return description.to_dict()


def _show_groups(model: MultiViewClusterer, seconds: float, show: Show) -> None:
    sizes = np.bincount(model.labels_)
    if hasattr(model, "cluster_count_"):
        show("Number", " ".join(model.cluster_count_.reason().split()))
    listed = joined([f"{size:,}" for size in sizes])
    groups = f"{len(sizes)} groups of {listed}" if len(sizes) > 1 else "one group"
    samples = ("all " if len(model.labels_) > 1 else "") + counted(len(model.labels_), "sample")
    time = duration(seconds) if seconds >= 10 else f"{seconds:.1f} s"
    show("Groups", f"{type(model).__name__} put {samples} into {groups}, in {time}.")
    if hasattr(model, "selection_"):
        show("Settings", str(model.selection_))
    if hasattr(model, "confidence_"):
        _show_confidence(model, show)


def _show_confidence(model: Any, show: Show) -> None:
    """Print the median confidence and the samples of low confidence."""
    order = np.argsort(model.confidence_, kind="stable")
    unsure = order[model.confidence_[order] < _UNSURE]
    text = f"the median confidence is {np.median(model.confidence_):.2f}, on a scale from 0 to 1."
    if len(unsure):
        ids = some([str(key) for key in model.sample_ids_[unsure]], 5)
        text += f" Below {_UNSURE}, and worth a look: {counted(len(unsure), 'sample')}, {ids}."
    show("Trust", text)


def _read_count(context: click.Context, parameter: click.Parameter, text: str) -> int | str:
    """Return the number of groups, or the word auto."""
    plain = text.strip().lower()
    if plain == "auto":
        return plain
    if not plain.isascii() or not plain.isdigit() or len(plain) > 9 or int(plain) < 1:
        raise click.BadParameter(f"{text!r} is neither a whole number of at least 1 nor the word auto.")
    return int(plain)


@click.command(
    short_help="Find groups in files of views.",
    epilog="Example: gapview cluster blood.csv scans.parquet genes.h5ad -k 5 -o out",
)
@options.files_argument(required=True)
@click.option(
    "-k", "--groups", "n_clusters", callback=_read_count, required=True, metavar="NUMBER|auto",
    help="Number of groups; auto takes the number that the data suggest.",
)  # fmt: skip
@options.output_option("gapview-results", folder=True)
@options.reading_options
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="BridgedGRMF", show_default=True,
    help="How groups are found.",
)  # fmt: skip
@click.option(
    "--scale", multiple=True, metavar="WAY",
    help="How values are scaled: unit, center+unit, standard, standard+view, standard+unit or none, for all views or "
    "with VIEW=WAY for each. By default BridgedGRMF chooses it (auto), and the others take unit.",
)  # fmt: skip
@click.option("--encode", is_flag=True, help="Turn columns of text with few different words into columns of 0 and 1.")
@options.partial_rows_option("raise")
@options.seed_option
@click.option("--set", "others", multiple=True, metavar="NAME=VALUE", help="Any other setting of the method.")
@click.option("--no-report", is_flag=True, help="Write no report.")
@options.force_option("results that are in the folder")
def cluster(**given: Any) -> None:
    """Find groups among samples that are described by several files, when many samples lack some of them.

    Every file is a view: a table with a row for each sample and a column for each feature. FILES may be .csv, .tsv or
    .txt (also .gz), .parquet, .feather, .npy, .npz, .mat, .h5ad and .h5mu; separators, decimal commas and encodings
    are detected. Samples are joined by their ids, in a column that is detected. Files that do not match, or have
    samples in columns, are refused with a proposal. A view is named after its file, or by NAME=FILE.

    Writes report.html, labels.csv, embedding.csv, model.gapview and run.json, all of them or none. If GRMF or
    BridgedGRMF run for longer than some seconds, finished work is kept in a folder beside the results, its name ends in
    .unfinished: after an interruption or a power cut, the same command resumes from there.
    """
    reading = {name: given.pop(name) for name in options.READING}
    run_command(cluster_files, reading=reading, **given)


# -- demonstration ---------------------------------------------------------------------------------------------------


def run_demo(show: Show, *, output: Path, paired_rate: float, random_state: int, force: bool) -> list[Path]:
    """Cluster the embedded digits with views hidden by the paper's protocol, and write the results to a folder.

    The folder is written completely or not at all. Results of an earlier demonstration are replaced; with ``force``,
    other results of gapview, too.
    """
    data = load_digits_views()
    views = paired_split(data.views, paired_rate, random_state=random_state)
    missing = results.missing_package()  # of the report; the rest needs no extra packages
    with results.results_folder(output, force=force or _DEMO in results.read_record(output)) as folder:
        begin = perf_counter()
        model = BridgedGRMF(n_clusters=10, random_state=random_state).fit(views)
        seconds = perf_counter() - begin
        errors = _recovery_errors(model, data.views)
        title = "Handwritten digits, with many of their views hidden"
        record = results.write_results(folder, model, {}, report=missing is None, title=title)
        record |= {"counts": results.sample_counts(views), _DEMO: {"paired_rate": paired_rate}}
        results.write_record(folder, record)
    _show_data(views, show)
    time = f"{seconds:.1f} s, the choice of its settings included"
    show("Groups", f"BridgedGRMF put all {views.n_samples} samples into {model.n_clusters} groups in {time}.")
    show("Settings", str(model.selection_))
    scores = {name: f"{100 * score:.1f} %" for name, score in clustering_scores(data.target, model.labels_).items()}
    text = f"accuracy {scores['accuracy']}, NMI {scores['nmi']}, purity {scores['purity']}"
    show("Scores", f"against the true digits, which the method never saw: {text}.")
    for name, share in errors.items():
        change = f"{100 * abs(1 - share):.0f} % {'below' if share < 1 else 'above'}"
        show("Recover", f"hidden {name}: error {change} that of filling in the mean.")
    if missing is not None:
        show("Left out", f"the report. {missing}")
    return results.written_files(output)


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
@options.output_option("gapview-demo", folder=True)
@click.option(
    "--paired-rate", type=click.FloatRange(0, 1), default=0.5, show_default=True,
    help="Share of the samples that keep both views.",
)  # fmt: skip
@options.seed_option
@options.force_option("results of other commands that are in the folder")
def demo(**given: Any) -> None:
    """Cluster the embedded handwritten digits with many of their views hidden."""
    run_command(run_demo, **given)
