"""``gapview cluster``: from files to groups, a model, a report and a record of how they came about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from ..errors import some
from ..estimators import MultiViewClusterer
from ..estimators.latent import LatentClusterer
from ..io import join_views, summary_lines
from ..methods import METHODS
from ..persist.checkpoints import Checkpoint
from ..progress import tell
from ..utils.words import counted, duration, joined
from ..views import Views
from ._console import Say, new_console, progress_shown, saying, warnings_said
from ._folder import results_folder
from ._inputs import Inputs, fingerprint, read_inputs, say_notes
from ._options import (
    arguments_typed,
    duplicates_option,
    files_argument,
    folder_option,
    force_option,
    id_option,
    partial_rows_option,
)
from ._pages import can_report, demand_packages, write_report
from ._record import described_model, described_run, described_view, described_views, shown_run, write_record
from ._settings import MethodRequest, build_model
from ._tables import write_embedding, write_labels

__all__ = ["ClusterRequest", "cluster", "cluster_files"]

_UNFINISHED = ".unfinished"
_UNSURE = 0.5  # two groups have equal claims


@dataclass(frozen=True)
class ClusterRequest:
    """What is to be clustered, how, and where the results go."""

    inputs: Inputs
    method: MethodRequest
    output: Path
    encode: bool = False
    report: bool = True
    force: bool = False
    arguments: tuple[str, ...] = ()  # as typed, for the record


@dataclass
class _Clock:
    """How long every part of the work took."""

    seconds: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=perf_counter)

    def note(self, part: str) -> float:
        now = perf_counter()
        self.seconds[part], self.began = round(now - self.began, 3), now
        return self.seconds[part]


def cluster_files(request: ClusterRequest, say: Say) -> list[Path]:
    """Cluster the samples of files, and write everything that is found; return the files written."""
    model = build_model(request.method)
    report = request.report and can_report(type(model))
    if report:
        demand_packages("Writing a report (--no-report leaves it out)")
    clock = _Clock()
    checkpoint = _checkpoint(request, model)
    with (
        _said_what_is_kept(checkpoint),
        results_folder(request.output, force=request.force) as folder,
        warnings_said(say) as warned,
    ):
        tell("Reading files")
        views, record = _read(request, say)
        clock.note("reading")
        _fit(model, views, checkpoint, say)
        _say_groups(model, clock.note("fitting"), say)
        tell("Writing results")
        write_labels(folder / "labels.csv", model)
        write_embedding(folder / "embedding.csv", model)
        model.save(folder / "model.gapview")
        record |= described_run(request.arguments) | described_model(model)
        if report:
            tell("Writing the report")
            write_report(model, folder / "report.html", run=shown_run(record))
        clock.note("writing")
        write_record(folder, record | {"warnings": warned, "seconds": clock.seconds})
    if checkpoint is not None:  # only now the results are safe
        checkpoint.remove()
    if request.report and not report:
        say("Left out", f"report.html: it needs GRMF or BridgedGRMF, and {type(model).__name__} is another method.")
    names = ("labels.csv", "embedding.csv", "model.gapview", "run.json", *(["report.html"] if report else []))
    return [request.output / name for name in names]


def _checkpoint(request: ClusterRequest, model: MultiViewClusterer) -> Checkpoint | None:
    """Say where finished work is kept until the results are there: beside them, if the method can, and the disk."""
    target = Path(os.path.abspath(request.output))
    if not isinstance(model, LatentClusterer) or not target.name:
        return None
    return Checkpoint(target.with_name(target.name + _UNFINISHED), keep=True, replace=request.force)


def _fit(model: Any, views: Views, checkpoint: Checkpoint | None, say: Say) -> None:
    if checkpoint is None or not os.access(checkpoint.path.parent, os.W_OK):
        model.fit(views)
        return
    if checkpoint.is_there:
        say("Going on", f"from {str(checkpoint.path)!r}, where an earlier run has kept what it had finished.")
    model.fit(views, checkpoint=checkpoint)


@contextmanager
def _said_what_is_kept(checkpoint: Checkpoint | None) -> Iterator[None]:
    """Add to whatever ends the work that it need not be done again."""
    try:
        yield
    except BaseException as error:
        if checkpoint is not None and checkpoint.was_opened and checkpoint.is_there:
            error.add_note(
                f"What was finished is kept in {str(checkpoint.path)!r}; run the same command again to go on, or "
                "delete that folder."
            )
        raise


def _read(request: ClusterRequest, say: Say) -> tuple[Views, dict[str, Any]]:
    """Read and join the files, and say what was found in them."""
    found = [view for view, _ in read_inputs(request.inputs, encode=request.encode)]
    for view, line in zip(found, summary_lines(found), strict=True):
        say("View", line + ".")
        say_notes(view, say)
    views = join_views(found, partial_rows=request.method.partial_rows)
    _say_samples(views, found[0].keyed, say)
    record = {
        "files": [fingerprint(path) for path in dict.fromkeys(request.inputs.paths)],
        "views": [described_view(view) for view in found],
        "counts": described_views(views),
    }
    return views, record


def _say_samples(views: Views, keyed: bool, say: Say) -> None:
    """Say how the files were put together."""
    text = f"{views.n_samples:,}, " + ("joined by their ids" if keyed else "in the order of the rows, numbered from 0")
    if views.n_views > 1:
        every = "both views" if views.n_views == 2 else f"all {views.n_views} views"
        text += f"; {int(views.mask.all(axis=1).sum()):,} of them have {every}"
    if views.n_views > 1 or not keyed:
        say("Samples", text + ".")


def _say_groups(model: MultiViewClusterer, seconds: float, say: Say) -> None:
    sizes = np.bincount(model.labels_)
    if hasattr(model, "cluster_count_"):
        say("Number", " ".join(model.cluster_count_.reason().split()))
    listed = joined([f"{size:,}" for size in sizes])
    groups = f"{len(sizes)} groups of {listed}" if len(sizes) > 1 else "one group"
    say(
        "Groups",
        f"{type(model).__name__} put {'all ' if len(model.labels_) > 1 else ''}{counted(len(model.labels_), 'sample')} "
        f"into {groups}, in {duration(seconds) if seconds >= 10 else f'{seconds:.1f} s'}.",
    )
    if hasattr(model, "selection_"):
        say("Settings", str(model.selection_))
    if hasattr(model, "confidence_"):
        _say_confidence(model, say)


def _say_confidence(model: Any, say: Say) -> None:
    """Name those samples that belong to their group least clearly."""
    order = np.argsort(model.confidence_, kind="stable")
    unsure = order[model.confidence_[order] < _UNSURE]
    text = f"confidence is {np.median(model.confidence_):.2f} in the middle, on a scale from 0 to 1."
    if len(unsure):
        ids = some([str(key) for key in model.sample_ids_[unsure]], 5)
        text += f" Below {_UNSURE}, and worth a look: {counted(len(unsure), 'sample')}, {ids}."
    say("Trust", text)


def _read_count(context: click.Context, parameter: click.Parameter, text: str) -> int | str:
    """Read a number of groups, or the word auto."""
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
@files_argument(required=True)
@click.option(
    "-k", "--groups", "n_clusters", callback=_read_count, required=True, metavar="NUMBER|auto",
    help="Number of groups; auto takes the number that the data suggest.",
)  # fmt: skip
@folder_option("gapview-results")
@id_option
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="BridgedGRMF", show_default=True,
    help="How groups are found.",
)  # fmt: skip
@click.option(
    "--scale", multiple=True, metavar="WAY",
    help="How values are scaled: unit, center+unit, standard, standard+view, standard+unit or none, for all views or "
    "with VIEW=WAY for each. By default BridgedGRMF finds out (auto), and the others take unit.",
)  # fmt: skip
@click.option("--encode", is_flag=True, help="Turn columns of text with few different words into columns of 0 and 1.")
@duplicates_option
@partial_rows_option("raise")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of all that is random."
)
@click.option("--set", "others", multiple=True, metavar="NAME=VALUE", help="Any other setting of the method.")
@click.option("--no-report", is_flag=True, help="Write no report.")
@force_option("results that are in the folder")
def cluster(
    files: tuple[str, ...],
    n_clusters: int | str,
    output: Path,
    id_columns: tuple[str, ...],
    method: str,
    scale: tuple[str, ...],
    encode: bool,
    duplicates: str,
    partial_rows: str,
    seed: int,
    others: tuple[str, ...],
    no_report: bool,
    force: bool,
) -> None:
    """Find groups among samples that are described by several files, when many samples lack some of them.

    Every file is a view: a table with a row for each sample and a column for each feature. FILES may be .csv, .tsv or
    .txt (also .gz), .parquet, .feather, .npy, .npz, .mat, .h5ad and .h5mu; separators, decimal commas and encodings
    are found out. Samples are joined by their ids. A view is called as its file is, or as you say with NAME=FILE.

    Writes report.html, labels.csv, embedding.csv, model.gapview and run.json, all of them or none. While it runs for
    longer than some seconds, GRMF and BridgedGRMF keep what is finished in a folder beside the results, whose name ends
    in .unfinished: if the command is stopped, or the power fails, the same command goes on from there.
    """
    request = ClusterRequest(
        Inputs(files, id_columns, duplicates),
        MethodRequest(method, n_clusters, seed, partial_rows, scale, others),
        output,
        encode,
        not no_report,
        force,
        arguments_typed(),
    )
    console = new_console()
    say = saying(console)
    with progress_shown(console):
        written = cluster_files(request, say)
    for file in written:
        say("Report" if file.name == "report.html" else "Wrote", str(file))
