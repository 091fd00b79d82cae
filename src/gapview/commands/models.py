"""Commands on a model: ``gapview predict``, ``recover``, ``markers``, ``report`` and ``info``."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence, Set
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse

from ..errors import DataFileError, InputError, InputTypeError, some
from ..estimators.latent import LatentSpaceMixin
from ..estimators.placement import Placement
from ..io import SourceFormat, ViewFile, WrittenView, samples_of, write_like
from ..io.array_files import frame_of
from ..io.workbook_writing import typed_table, workbook_content
from ..methods import describe, load
from ..progress import tell
from ..report import write_clustering_report
from ..utils.messages import counted, free_name, joined, numbered
from ..utils.storage import escape_formula, table_text
from ..views import Views, new_views
from ..views.cells import MOST_LACKING
from . import options, results
from .console import Show, printable, run_command, show_notes, show_warnings
from .covariates import adjust_option, check_covariates, covariates_option, read_covariates, survival_option
from .start import StartCommand

_ACCURACY = "recovery.csv"  # R² of every method of recovery, for each feature
_ADVICE = " Columns of text can be encoded as columns of 0 and 1 (encode)."  # the model determines the encoding


def _load(path: Path, partial_rows: str | None) -> Any:
    """Return a model; ``partial_rows`` replaces its setting."""
    tell("Loading the model")
    model = load(path)
    model.set_output(transform="default")  # tables are written from arrays
    return model if partial_rows is None else model.set_params(partial_rows=partial_rows)


def _read_samples(model: Any, files: Sequence[str], show: Show, **reading: Any) -> tuple[Views, list[ViewFile]]:
    """Return new samples from files of any of the views of a model, and these files; see :func:`read_files`.

    A sample may be in one file only. Missing values within rows are handled as ``partial_rows`` of the model says.
    """
    trained = model.views_
    encoded = any("=" in name for names in trained.feature_names if names is not None for name in names)
    found = options.read_files(files, encode=encoded, **reading)
    views = _match_views(found, {name for name, _ in options.named_paths(files)}, trained)
    for view in views:
        show("View", f"{view.path.name} is {view.summary}.")
        show_notes([note.removesuffix(_ADVICE) for note in view.notes], show)
    samples = samples_of(views, partial_rows=model.partial_rows)
    return new_views(samples, trained, model.partial_rows), views


def _match_views(found: Sequence[ViewFile], typed: Set[str | None], trained: Views) -> list[ViewFile]:
    """Return the files as views of the model, matched by the name typed, the name of the file, or the features."""
    matched: dict[str, ViewFile] = {}
    for view in found:
        name = _known_name(view, view.name in typed, trained)
        if name in matched:
            raise DataFileError(
                f"{matched[name].path.name!r} and {view.path.name!r} are both the view '{name}'. Give one file for "
                "each view; if one of them is another view, name it with name=path."
            )
        matched[name] = _aligned(replace(view, name=name), trained)
    return [matched[name] for name in trained.names if name in matched]


def _known_name(view: ViewFile, typed: bool, trained: Views) -> str:
    if view.name in trained.names:
        return view.name
    knows = f"The model knows the views {some(trained.names, 10)}"
    if typed:
        raise DataFileError(f"{knows}; got {view.name!r}. Give one of these names, an equals sign and the file.")
    fitting = [name for name in trained.names if _fits(view, trained, name, 0.0)]
    fitting = fitting or [name for name in trained.names if _fits(view, trained, name, MOST_LACKING)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise DataFileError(
            f"{view.path.name!r} has the features of the views {some(fitting)}. Say which it is, as in "
            f"{fitting[0]}={view.path.name}."
        )
    raise DataFileError(
        f"{view.path.name!r} has not the features of any view. {knows}; the file has {some(view.frame.columns, 8)}. "
        f"Say which view it is, as in {trained.names[0]}={view.path.name}, to see what it lacks."
    )


def _fits(view: ViewFile, trained: Views, name: str, most_lacking: float) -> bool:
    try:
        _aligned(replace(view, name=name), trained, most_lacking)
    except DataFileError:
        return False
    return True


def _aligned(view: ViewFile, trained: Views, most_lacking: float = MOST_LACKING) -> ViewFile:
    """Return the view with its features in the order of the model; a few that it lacks are NaN."""
    place = trained.names.index(view.name)
    names, count = trained.feature_names[place], trained.n_features[place]
    unnamed = view.format.kind in ("npy", "npz", "mat") or view.format.header == "none"
    if (names is None or unnamed) and view.frame.shape[1] != count:
        raise DataFileError(
            f"{view.path.name!r} has {counted(view.frame.shape[1], 'feature')}, and the view '{view.name}' of the "
            f"model has {count:,}. Columns without names are matched by their place: give the same columns."
        )
    if names is None or view.frame.columns.tolist() == list(names):
        return view
    return view.aligned([str(name) for name in names], most_lacking=most_lacking)


# -- groups ----------------------------------------------------------------------------------------------------------


def predict_files(
    show: Show, model: Path, files: Sequence[str], output: Path, partial_rows: str | None, force: bool, **reading: Any
) -> list[Path]:
    """Assign the samples of files to the groups of a model, and write a table; return its path."""
    results.check_new_file(output, [model, *(path for _, path in options.named_paths(files))], force=force)
    with show_warnings(show):
        loaded = _load(model, partial_rows)
        new, _ = _read_samples(loaded, files, show, **reading)
        tell("Placing samples")
        found = loaded.place(new)
        results.write_samples(output, new, _placed_columns(found))
    listed = joined([f"{size:,} in group {group}" for group, size in enumerate(np.bincount(found.labels)) if size])
    show("Groups", f"{counted(new.n_samples, 'sample')}: {listed}.")
    show("Unusual", found.summary())
    return [output]


def _placed_columns(found: Placement) -> dict[str, list[Any]]:
    """Return the columns of the table of new samples; numbers are rounded, and missing ones are empty."""
    numbers = {"confidence": found.confidence, "p_value": found.p_value}
    numbers |= {f"p_{name}": own for name, own in zip(found.view_names, found.p_values.T, strict=True)}
    texts = {name: ["" if x != x else f"{x:.3g}" for x in own] for name, own in numbers.items()}
    unusual = np.where(found.unusual, "yes", "no").tolist()
    return {"label": found.labels.tolist(), **texts, "unusual": unusual}


@click.command(
    cls=StartCommand,
    short_help="Put new samples into the groups of a model.",
    epilog="Example: gapview predict out/model.gapview new_blood.csv scans=march.csv -o new_labels.csv",
)
@options.samples_options("predicted.csv", folder=False, files_required=True)
def predict(**given: Any) -> None:
    """Put new samples into the groups of a model, from any of its views.

    Files are matched to views by NAME=FILE, by the name of the file, or by its features. Writes a table with the id,
    the label and its confidence, the p-value of every sample and of each of its views, whether the sample is unlike the
    training samples (p-value at most 0.05) and its views. If its name ends in .xlsx, it is a workbook for Excel.
    """
    run_command(predict_files, **given)


# -- recovered views -------------------------------------------------------------------------------------------------


def recover_files(
    show: Show, model: Path, files: Sequence[str], output: Path, partial_rows: str | None, force: bool, **reading: Any
) -> list[Path]:
    """Complete every view of the samples, and write each to a file; return the files.

    Without files, the samples are those that the model was trained on.
    """
    with results.results_folder(output, force=force) as folder, show_warnings(show) as warned:
        loaded = _load(model, partial_rows)
        if not isinstance(loaded, LatentSpaceMixin):
            raise InputTypeError(
                f"{model.name!r} holds a model of {type(loaded).__name__}, which cannot recover views. Cluster the "
                "data with BridgedGRMF or GRMF."
            )
        sources: list[ViewFile] = []
        given = loaded.views_ = loaded.views_.in_arrays()
        if files:
            given, sources = _read_samples(loaded, files, show, **reading)
        tell("Recovering views")
        recovered = loaded.recover(given.in_arrays() if sources else None)
        tell("Writing results")
        written = _write_all(folder, given, sources, recovered, show)
        accuracy = _write_accuracy(folder, loaded, given, show)
        record = results.run_facts() | {"model": results.fingerprint(model)}
        record |= results.input_facts(files, sources, given)
        names = {name: file.path.name for name, file in written.items()}
        results.write_record(folder, record | {"written": names, "recovery": accuracy, "warnings": warned})
    accuracies = [output / _ACCURACY] if accuracy else []
    return [*(output / file.path.name for file in written.values()), *accuracies, output / results.RECORD]


def _write_accuracy(folder: Path, model: Any, given: Views, show: Show) -> list[dict[str, Any]]:
    """Write R² of every method for each feature of the views that samples lack; return R² of these views."""
    lacking: Any = ~given.mask.all(axis=0)
    if not lacking.any():
        return []
    scores = model.recovery_scores()
    rows: list[list[Any]] = []
    for k in np.flatnonzero(lacking).tolist():
        one, features = scores.views[k], model.views_.feature_names[k]
        show("Recover", f"{one}.")
        names = numbered(given.n_features[k]) if features is None else [str(feature) for feature in features]
        values = [one.feature_r2.get(method, np.full(len(names), np.nan)) for method in model.recovery_candidates]
        texts = ([f"{value:.4f}" if np.isfinite(value) else "" for value in column] for column in values)
        rows += [
            [escape_formula(one.view), escape_formula(name), *own] for name, *own in zip(names, *texts, strict=True)
        ]
    header = ["view", "feature", *(f"R2_{method}" for method in model.recovery_candidates)]
    results.write_result(folder / _ACCURACY, table_text(header, rows))
    return [row for row, is_lacking in zip(scores.table, lacking.tolist(), strict=True) if is_lacking]


def _write_all(
    folder: Path, given: Views, sources: Sequence[ViewFile], recovered: Sequence[Any], show: Show
) -> dict[str, WrittenView]:
    """Write every view in the format of its file, or as CSV if it had none."""
    of_name = {view.name: view for view in sources}
    ids = [str(key) for key in given.sample_ids]
    taken = {results.RECORD, _ACCURACY}
    written = {}
    for place, (name, matrix) in enumerate(zip(given.names, recovered, strict=True)):
        features = given.feature_names[place]
        columns = numbered(matrix.shape[1]) if features is None else [str(feature) for feature in features]
        view = of_name.get(name) or _plain_csv(name, frame_of(matrix, ids, columns, "Writing tables"))
        target = folder / _file_name(view, sources, taken)
        taken.add(target.name)
        lacking = ~given.mask[:, place]
        filled = _filled_cells(view, ids, lacking)
        extras = {"gapview_recovered": lacking} | ({"gapview_filled_cells": filled} if filled.any() else {})
        frame = frame_of(sparse.csc_array(matrix) if view.is_sparse else matrix, ids, columns)
        written[name] = write_like(view, frame if view.keyed else frame.reset_index(drop=True), target, extras)
        _show_view(written[name], name, lacking, filled, show)
    return written


def _plain_csv(name: str, frame: Any) -> ViewFile:
    """Return the description of a CSV file for a view without a file."""
    source = SourceFormat("text", ".csv", ("id", *frame.columns), id_name="id", id_place="column")
    return ViewFile(name, Path(f"{_as_file_name(name)}.csv"), frame, True, source)


def _as_file_name(name: str) -> str:
    """Return the name of a view as a file name that is valid on every system."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("._")[:100] or "view"


def _file_name(view: ViewFile, sources: Sequence[ViewFile], taken: set[str]) -> str:
    """Return the name of the file of the view; if that held several views, the name of the view."""
    shared = sum(other.path == view.path for other in sources) > 1
    stem, suffix = view.file_name
    if shared or stem + suffix in taken:
        stem = _as_file_name(view.name)
    return free_name(stem, {name[: -len(suffix)] for name in taken if name.endswith(suffix)}) + suffix


def _filled_cells(view: ViewFile, ids: list[str], lacking: Any) -> Any:
    """Return for every sample the number of empty cells in its row of the file, which are filled now."""
    if view.is_sparse:
        return np.zeros(len(ids), dtype=np.int64)
    gaps = view.frame.isna().sum(axis=1).rename(index=str).reindex(ids, fill_value=0)
    return np.where(lacking, 0, gaps.to_numpy())


def _show_view(written: WrittenView, name: str, lacking: Any, filled: Any, show: Show) -> None:
    marks = written.extra_columns.get("gapview_recovered")
    text = f"'{name}': {counted(int(lacking.sum()), 'row')} of {len(lacking):,} recovered"
    text += f", marked in column '{marks}'" if marks else ""
    if filled.any():
        text += f"; {counted(int(filled.sum()), 'empty cell')} filled in other rows"
    show("View", text + ".")
    show_notes(written.notes, show)


@click.command(
    cls=StartCommand,
    short_help="Complete the views that samples lack.",
    epilog="Example: gapview recover out/model.gapview blood.csv scans.csv -o completed",
)
@options.samples_options("gapview-recovered", folder=True, files_required=False)
def recover(**given: Any) -> None:
    """Complete the views that samples lack, in the format and units of the files.

    Files are matched to views by NAME=FILE, by the name of the file, or by its features. Every view of the model is
    written for all samples of the files; the column 'gapview_recovered' is 1 where a row is no measurement. Without
    FILES, the samples that the model was trained on are completed, and written as CSV.

    Each view is recovered by the method of the highest R² on held-out training samples; recovery.csv holds R² of every
    method for each feature.
    """
    run_command(recover_files, **given)


# -- markers ---------------------------------------------------------------------------------------------------------


def markers_of_model(
    show: Show, model: Path, output: Path, same: bool, top: int | None, random_state: int, force: bool
) -> list[Path]:
    """Compare features between the groups of a model, and write a table; return its path."""
    results.check_new_file(output, [model], force=force)
    with show_warnings(show):
        loaded = _load(model, None)
        if len(np.unique(loaded.labels_)) == 1:
            raise InputError(f"{model.name!r} has one group, so that there is nothing to compare. Cluster with -k 2.")
        tell("Comparing features")
        found = loaded.markers(split=not same, random_state=random_state)
        show("Markers", str(found))
        found = found if top is None else found.top(top)
        content = results.markers_text(found)
        if output.suffix.lower() == ".xlsx":
            content = workbook_content({"markers": typed_table(content.decode())})
        results.write_result(output, content)
    return [output]


@click.command(
    cls=StartCommand,
    short_help="Compare features between the groups of a model.",
    epilog="Example: gapview markers out/model.gapview --top 50 -o markers.csv",
)
@options.model_argument
@options.output_option("markers.csv", folder=False)
@click.option(
    "--same", is_flag=True,
    help="Test the groups themselves, which were computed from the features, so that p-values are too small.",
)  # fmt: skip
@click.option("--top", type=click.IntRange(min=1), help="Only so many features of each group and view.")
@options.seed_option
@options.force_option("a file that is there")
def markers(**given: Any) -> None:
    """Compare every feature between each group of a model and all other samples.

    Writes a table with the view, the feature, the group, the effect (Hedges' g) and its direction, means, the share of
    the samples of the group that have the view, shares of values other than 0, the p-value of a rank-sum test and the
    false discovery rate. Each feature is tested against groups that are found without it, from half of the features. If
    the name of the table ends in .xlsx, it is a workbook for Excel.
    """
    run_command(markers_of_model, **given)


# -- reports and descriptions ----------------------------------------------------------------------------------------


def report_model(
    show: Show,
    model: Path,
    output: Path,
    covariates: Path | None,
    id_columns: Sequence[str],
    force: bool,
    sheet: str | None = None,
    **more: Any,
) -> list[Path]:
    """Write the report of a model; return its path."""
    if missing := results.missing_package():
        raise missing
    results.check_new_file(output, [path for path in (model, covariates) if path], force=force)
    with show_warnings(show):
        tell("Loading the model")
        loaded = load(model)
        of_model = (id_columns, loaded.views_, "the model", show, sheet)
        table = None if covariates is None else read_covariates(covariates, *of_model)
        if not isinstance(loaded, LatentSpaceMixin):
            raise InputTypeError(
                f"A report needs a model of GRMF or BridgedGRMF; this is one of {type(loaded).__name__}. Cluster the "
                "data with one of the two."
            )
        tell("Writing the report")
        facts = results.report_facts(results.run_facts())
        with tempfile.TemporaryDirectory() as folder:
            page = write_clustering_report(loaded, Path(folder) / "report.html", covariates=table, run=facts, **more)
            results.write_result(output, page.read_bytes())
    return [output]


@click.command(
    cls=StartCommand,
    short_help="Write a report about a model.",
    epilog="Example: gapview report out/model.gapview --covariates patients.csv --no-ids -o report.html",
)
@options.model_argument
@options.output_option("report.html", folder=False)
@covariates_option
@click.option("--sheet", help="Sheet of the table, if it is a workbook with several.")
@options.id_option
@survival_option
@adjust_option
@click.option(
    "--no-ids", is_flag=True, help="Omit sample ids and values of single samples, for a report that is shared."
)
@click.option("--title", help="Title of the report.")
@options.force_option("a file that is there")
def report(**given: Any) -> None:
    """Write one HTML file about the groups of a model: it needs no network, and can be sent by e-mail."""
    check_covariates(given)
    run_command(report_model, head="Report", **given)


@click.command(
    cls=StartCommand, short_help="Describe a model file.", epilog="Example: gapview info out/model.gapview --json"
)
@options.model_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON, for other programs.")
def info(model: Path, as_json: bool) -> None:
    """Describe a model file: method, settings, views, samples and groups, what was chosen and why.

    Only the beginning of the file is read; the groups themselves are not checked.
    """
    found = describe(model)
    click.echo(json.dumps(asdict(found), indent=2) if as_json else printable(str(found)))
