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
from ..estimators import BridgedGRMF, MultiViewClusterer
from ..estimators.latent import LatentSpaceMixin
from ..graph.regression import explained_share
from ..io import ViewFile, join_views, summary_lines
from ..methods import METHODS
from ..metrics import clustering_scores
from ..persist.checkpoints import Checkpoint
from ..progress import tell
from ..trust import Markers
from ..trust.assessment import small_groups
from ..utils.messages import warn_user
from ..views import Views
from ..views.kinds import kind_argument, kind_per_view
from . import options, results
from .closing import Closing, show_batches, show_details, summary_of
from .console import Show, printable, run_command, show_notes, show_warnings
from .covariates import (
    adjust_option,
    batch_column,
    batch_correction_option,
    batch_of_files,
    batch_option,
    check_columns,
    check_covariates,
    compare_groups,
    covariates_option,
    omics_files,
    read_covariates,
    survival_option,
    warn_of_outcomes,
)
from .start import HOW_TO_CLUSTER, StartCommand

_DEMO = "demonstration"  # marks the record of a demonstration, which may be replaced


class NotTrustedError(click.ClickException):
    """The groups cannot be trusted, and ``--strict`` is given."""

    exit_code = 3


def cluster_files(
    show: Show,
    files: Sequence[str],
    output: Path,
    reading: Any,
    covariates: Path | None,
    batch: str | None,
    no_report: bool,
    no_assess: bool,
    force: bool,
    closing: Closing,
    verbose: bool = False,
    survival: Any = None,
    adjust: Sequence[str] = (),
    excel: bool = False,
    markers: str = "split",
    no_annotate: bool = False,
    **settings: Any,
) -> list[Path]:
    """Cluster the samples of files with a method and its settings, and write all results; return the files written.

    The summary and reasons not to trust the groups are added to ``closing``.
    """
    model = options.build_model(**settings)
    report = not no_report and isinstance(model, LatentSpaceMixin)  # which have what a report shows
    if report and (missing := results.missing_package("Writing a report (--no-report leaves it out)")):
        raise missing
    if excel and (missing := results.missing_writer()):
        raise missing
    times = [perf_counter()]
    with (
        _checkpoint(output, force, model) as checkpoint,
        results.results_folder(output, force=force) as folder,
        show_warnings(show) as warned,
    ):
        found = options.read_files(files, **reading)
        warn_of_outcomes(found)
        views = _join(found, settings["partial_rows"], show)
        record = results.input_facts(files, found, views) | {"description": _show_values(views, model, show)}
        table, batches = None, None
        if covariates is not None:
            table = read_covariates(covariates, reading["id_columns"], views, "the views", show)
            check_columns(table, views, survival, adjust)
            batches = None if batch is None else batch_column(table, batch, covariates)
            record["covariates"] = results.fingerprint(covariates) | {"batch": batch}
        elif batch is not None:
            batches = batch_of_files(omics_files(files), batch, reading["id_columns"], views)
            record["batch"] = batch
        times.append(perf_counter())
        _fit(model, views, batches, checkpoint, show)
        seconds_of_fit = perf_counter() - times[-1]
        record["kinds"] = [str(rule) for rule in model.kinds_ if not rule.is_identity]
        for text in record["kinds"]:
            show("Kind", f"{text}.")
        show_batches(model, show)
        if isinstance(model, LatentSpaceMixin) and not no_assess:
            closing.doubts += _assess(model)
        times.append(perf_counter())
        tell("Writing results")
        compared = {"covariates": table, "survival": survival, "adjust": adjust}
        record = results.write_results(folder, model, record, report=report, batches=batches, **compared)
        if table is not None:
            compare_groups(folder, model, table, survival, adjust, show)
        table_of_markers = _write_markers(folder, model, markers, show)
        if not no_annotate:
            results.write_copies(folder, model, _with_own_names(found, reading, show))
        if excel:
            results.write_workbook(folder, table_of_markers)
        times.append(perf_counter())
        seconds = dict(zip(("reading", "fitting", "writing"), np.diff(times).round(3).tolist(), strict=True))
        results.write_record(folder, record | {"warnings": warned, "seconds": seconds})
        if verbose:
            show_details(model, table_of_markers, seconds_of_fit, show)
    if not no_report and not report:
        show("Left out", f"report.html: it needs GRMF or BridgedGRMF, and {type(model).__name__} is another method.")
    written = results.written_files(output)
    closing.lines += summary_of(model, written, table_of_markers)
    return written


def _write_markers(folder: Path, model: MultiViewClusterer, how: str, show: Show) -> Markers | None:
    """Write the features that mark the groups, and return them; none of one group. Print why p-values are too small."""
    if how == "none" or len(np.unique(model.labels_)) == 1:
        return None
    tell("Comparing features")
    found = model.markers(split=how == "split", random_state=model.random_state)
    results.write_result(folder / results.MARKERS, results.markers_text(found))
    if how == "same":
        show("Markers", found.caveat)
    return found


def _with_own_names(found: list[ViewFile], reading: Any, show: Show) -> list[ViewFile]:
    """Return the files whose samples have the names of the observations, by which results are written into copies."""
    is_renamed = reading["no_id"] or reading["id_columns"] or reading["id_patterns"] or reading["transposed"]
    if is_renamed and any(map(results.is_omics, found)):
        show("Left out", "annotated copies of the files: their names of observations are not the ids of the samples.")
    return [] if is_renamed else found


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


def _fit(model: Any, views: Views, batches: Any, checkpoint: Checkpoint | None, show: Show) -> None:
    if checkpoint is None or not os.access(checkpoint.path.parent, os.W_OK):
        model.fit(views, batch=batches)
        return
    if checkpoint.is_there:
        show("Resuming", f"from {str(checkpoint.path)!r}, where an earlier run has kept its finished work.")
    model.fit(views, batch=batches, checkpoint=checkpoint)


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


def _show_values(views: Views, model: MultiViewClusterer, show: Show) -> list[dict[str, Any]]:
    """Print what the values look like, except for warnings, which the fit gives; return the same for the record.

    Kinds are proposed for views that have none.
    """
    description = views.describe()
    open_ones = description.with_kinds(kind_per_view(model.kind, views.names))
    for view in open_ones.views:
        show("Values", f"{view}.")
        show_notes((finding.sentences for finding in view.findings if not finding.is_warning), show)
    if proposed := open_ones.proposed_kinds:
        listed = " ".join(kind_argument(name, kind) for name, kind in proposed.items())
        show("Proposed", f"{listed}, from what the values look like; nothing is changed without it.")
    return description.to_dict()


def _assess(model: Any) -> list[str]:
    """Test whether the groups can be distinguished from null data; return reasons for doubt."""
    if not hasattr(model, "assessment_"):  # a fit with -k auto has made it
        model.assess(random_state=model.random_state)
    elif (text := small_groups(model.labels_)) is not None:
        warn_user(text)
    found = model.assessment_
    if np.isnan(found.p_value):
        return []
    if len(np.unique(model.labels_)) == 1:
        return [" ".join(model.cluster_count_.reason().split())]
    return [] if found.has_structure else [found.sentences()[0]]


def _read_count(context: click.Context, parameter: click.Parameter, text: str | None) -> int | str:
    """Return the number of groups, or the word auto."""
    if text is None:
        raise click.UsageError("How many groups? Give -k 3, or -k auto for the number that the data suggest.")
    plain = text.strip().lower()
    if plain == "auto":
        return plain
    if not plain.isascii() or not plain.isdigit() or len(plain) > 9 or int(plain) < 1:
        raise click.BadParameter(f"{text!r} is neither a whole number of at least 1 nor the word auto.")
    return int(plain)


@click.command(
    cls=StartCommand,
    start=HOW_TO_CLUSTER,
    short_help="Find groups in files of views.",
    epilog="Example: gapview cluster blood.csv scans.parquet genes.h5ad -k 5 -o out",
)
@options.files_argument(required=True)
@click.option(
    "-k", "--groups", "n_clusters", callback=_read_count, metavar="NUMBER|auto",
    help="Number of groups; auto takes the number that the data suggest.  [required]",
)  # fmt: skip
@options.output_option("gapview-results", folder=True)
@options.reading_options
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="BridgedGRMF", show_default=True,
    help="How groups are found.",
)  # fmt: skip
@click.option(
    "--kind", multiple=True, metavar="KIND",
    help="What the values are, for all views or with VIEW=KIND for each: counts (logarithms of size factors), proteins "
    "(CLR of counts), methylation (M-values of shares), compositional (CLR of shares), binary, categorical or "
    "continuous (unchanged). auto applies the kinds that the values suggest. By default nothing is changed.",
)  # fmt: skip
@click.option(
    "--top-features", multiple=True, metavar="NUMBER",
    help="Cluster only so many features, those with the most variance for their mean; VIEW=NUMBER is for one view.",
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
@covariates_option
@batch_option
@survival_option
@adjust_option
@batch_correction_option
@click.option("--excel", is_flag=True, help="Also write all tables as sheets of the workbook results.xlsx, for Excel.")
@click.option(
    "--markers", type=click.Choice(["split", "same", "none"]), default="split", show_default=True,
    help="How features are compared between the groups in markers.csv: split tests each feature against groups that "
    "are found without it; same tests the groups themselves, which makes p-values too small; none writes no table.",
)  # fmt: skip
@click.option("--no-annotate", is_flag=True, help="Write no annotated copies of .h5ad and .h5mu files.")
@click.option("--no-report", is_flag=True, help="Write no report.")
@click.option("--no-assess", is_flag=True, help="Do not test whether the groups can be distinguished from noise.")
@click.option(
    "--strict", is_flag=True,
    help="Exit with code 3 if the groups cannot be distinguished from noise; results are written all the same.",
)  # fmt: skip
@click.option(
    "-v", "--verbose", is_flag=True, help="Also print the chosen settings with reasons, every test, and the time."
)
@options.force_option("results that are in the folder")
def cluster(strict: bool, **given: Any) -> None:
    """Find groups among samples that are described by several files, when many samples lack some of them.

    Every file is a view: a table with a row for each sample and a column for each feature. FILES may be .csv, .tsv or
    .txt (also .gz or .zst), .parquet, .feather, workbooks of Excel (.xlsx, .xls; also .ods) with a view in each sheet,
    .npy, .npz, .mat, .h5ad, .h5mu, matrices of 10x (.h5, or a folder with matrix.mtx), and tables and matrices of R
    (.rds, .rda). Separators, decimal commas and encodings are detected. Samples are joined by their ids, in a column
    that is detected. Files that do not match, or have samples in columns, are refused with a proposal. A view is named
    after its file, or by NAME=FILE.

    The groups are compared with those of null data, which have none. If they cannot be distinguished, a warning says
    so; with -k auto, all samples are then in one group.

    Writes report.html, labels.csv, embedding.csv, model.gapview and run.json, all of them or none; contributions.csv,
    how much each view contributes to the group of each sample; markers.csv, every feature compared between each group
    and all other samples; with --covariates also covariates.csv, a test for every column, and survival.csv, medians and
    hazard ratios of the groups; and of .h5ad and .h5mu files a copy with the results (NAME_annotated.h5ad). If GRMF or
    BridgedGRMF run for longer than some seconds, finished work is kept in a folder beside the results, its name ends in
    .unfinished: after an interruption or a power cut, the same command resumes from there.
    """
    check_covariates(given)
    if given["batch"] is not None and given["covariates"] is None and not omics_files(given["files"]):
        raise click.UsageError("--batch names a column of a table: give the table with --covariates.")
    if given["batch"] is None and given["batch_correction"] != "none":
        raise click.UsageError("--batch-correction needs the batches: give their column with --batch.")
    if strict and given["no_assess"]:
        raise click.UsageError("--strict needs the test that --no-assess leaves out: give one of them.")
    reading = {name: given.pop(name) for name in options.READING}
    closing = Closing()
    run_command(cluster_files, reading=reading, closing=closing, **given)
    if strict and closing.doubts:
        raise NotTrustedError(printable(" ".join(closing.doubts)))


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
        accuracy = _recovery_accuracy(model, data.views)
        title = "Handwritten digits, with many of their views hidden"
        record = results.write_results(folder, model, {}, report=missing is None, title=title)
        record |= {"counts": results.sample_counts(views), _DEMO: {"paired_rate": paired_rate}}
        results.write_record(folder, record)
    _show_data(views, show)
    time = f"{seconds:.1f} s, the choice of its settings included"
    show("Groups", f"BridgedGRMF put all {views.n_samples} samples into {model.n_clusters} groups in {time}.")
    tried = f"{len(model.selection_.trials)} candidates were compared"
    show("Settings", f"{tried}, without labels; `gapview info {output / 'model.gapview'}` shows the choice.")
    scores = {name: f"{100 * score:.1f} %" for name, score in clustering_scores(data.target, model.labels_).items()}
    text = f"accuracy {scores['accuracy']}, NMI {scores['nmi']}, purity {scores['purity']}"
    show("Scores", f"against the true digits, which the method never saw: {text}.")
    for name, (method, r2) in accuracy.items():
        show("Recover", f"hidden {name}: R² {r2:.2f} by {method!r}; 0 is filling in the mean, 1 is perfect.")
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


def _recovery_accuracy(model: BridgedGRMF, truth: Views) -> dict[str, tuple[str, float]]:
    """Return for every view the method that recovers it, and R² of the hidden rows against their true values."""
    accuracy = {}
    recovered, methods = model.recover(), [one.method for one in model.recovery_scores().views]
    for k, (name, rows) in enumerate(recovered.items()):
        hidden, known = ~model.views_.mask[:, k], model.views_.matrices[k]
        if hidden.any():
            accuracy[name] = methods[k], explained_share(truth.matrices[k][hidden], rows[hidden], known)
    return accuracy


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
