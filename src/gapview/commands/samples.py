"""``gapview predict`` and ``gapview recover``: the groups of new samples, and the views that samples lack."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..errors import DataFileError, InputTypeError, extra, some
from ..estimators.latent import LatentSpaceMixin
from ..io import SourceFormat, ViewFile, WrittenView, samples_of, write_like
from ..methods import load
from ..progress import tell
from ..utils.storage import make_folder
from ..utils.words import counted, free_name, joined, numbered
from ..views import Views, new_views
from .console import Show, run_command, show_notes, show_warnings
from .options import file_option, fingerprint, fingerprints, folder_option, named_paths, read_files, samples_options
from .results import (
    RECORD,
    check_new_file,
    results_folder,
    run_facts,
    sample_counts,
    view_facts,
    write_record,
    write_samples,
)

_FAR = 3.0  # distance, in units of the usual distance between neighbours, above which a group is doubtful
_ADVICE = " Columns of text can be encoded as columns of 0 and 1 (encode)."  # the model determines the encoding


def _load_latent(path: Path, partial_rows: str | None) -> Any:
    """Return a model that can place new samples; ``partial_rows`` replaces its setting."""
    model = load(path)
    if not isinstance(model, LatentSpaceMixin):
        raise InputTypeError(
            f"{path.name!r} holds a model of {type(model).__name__}, which has groups for its training samples only. "
            "Cluster the data with BridgedGRMF or GRMF for a model that places new samples and recovers views."
        )
    model.set_output(transform="default")  # tables are written from arrays
    return model if partial_rows is None else model.set_params(partial_rows=partial_rows)


def _read_samples(model: Any, files: Sequence[str], show: Show, **reading: Any) -> tuple[Views, list[ViewFile]]:
    """Return new samples from files of any of the views of a model, and these files; see :func:`read_files`.

    A sample may be in one file only. Missing values within rows are handled as ``partial_rows`` of the model says.
    """
    trained = model.views_
    encoded = any("=" in name for names in trained.feature_names if names is not None for name in names)
    found = read_files(files, encode=encoded, **reading)
    views = _match_views(found, {name for name, _ in named_paths(files)}, trained)
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
    fitting = [name for name in trained.names if _fits(view, trained, name)]
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


def _fits(view: ViewFile, trained: Views, name: str) -> bool:
    try:
        _aligned(replace(view, name=name), trained)
    except DataFileError:
        return False
    return True


def _aligned(view: ViewFile, trained: Views) -> ViewFile:
    """Return the view with its features in the order of the model."""
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
    return view.aligned([str(name) for name in names])


# -- groups ----------------------------------------------------------------------------------------------------------


def predict_files(
    show: Show, model: Path, files: Sequence[str], output: Path, partial_rows: str | None, force: bool, **reading: Any
) -> list[Path]:
    """Assign the samples of files to the groups of a model, and write a table; return its path."""
    check_new_file(output, [model, *(path for _, path in named_paths(files))], force=force)
    with show_warnings(show):
        tell("Loading the model")
        loaded = _load_latent(model, partial_rows)
        tell("Reading files")
        new, _ = _read_samples(loaded, files, show, **reading)
        tell("Placing samples")
        labels, distances = loaded.predict(new, return_distance=True)
        make_folder(output.parent)
        columns = {"label": labels.tolist(), "distance": [f"{value:.3f}" for value in distances]}
        write_samples(output, new, columns)
    sizes = np.bincount(labels, minlength=len(loaded.cluster_centers_))
    listed = joined([f"{size:,} in group {group}" for group, size in enumerate(sizes) if size])
    show("Groups", f"{counted(new.n_samples, 'sample')}: {listed}.")
    far = int((distances > _FAR).sum())
    if far:
        show(
            "Far off",
            f"{counted(far, 'sample')} more than {_FAR:g} times as far from any training sample as these are from each "
            "other: see the column distance, and trust their groups less.",
        )
    return [output]


@click.command(
    short_help="Put new samples into the groups of a model.",
    epilog="Example: gapview predict out/model.gapview new_blood.csv scans=march.csv -o new_labels.csv",
)
@samples_options(file_option("predicted.csv"), files_required=True, replaces="a file that is there")
def predict(**options: Any) -> None:
    """Put new samples into the groups of a model, from any of its views.

    Files are matched to views by NAME=FILE, by the name of the file, or by its features. Writes a table with the id,
    the label, the distance from the training samples (about 1 is usual) and the views of every sample.
    """
    run_command(predict_files, **options)


# -- recovered views -------------------------------------------------------------------------------------------------


def recover_files(
    show: Show, model: Path, files: Sequence[str], output: Path, partial_rows: str | None, force: bool, **reading: Any
) -> list[Path]:
    """Complete every view of the samples, and write each to a file; return the files.

    Without files, the samples are those that the model was trained on.
    """
    with results_folder(output, force=force) as folder, show_warnings(show) as warned:
        tell("Loading the model")
        loaded = _load_latent(model, partial_rows)
        sources: list[ViewFile] = []
        given = loaded.views_ = loaded.views_.in_arrays()
        if files:
            tell("Reading files")
            given, sources = _read_samples(loaded, files, show, **reading)
        tell("Recovering views")
        recovered = loaded.recover(given.in_arrays() if sources else None)
        tell("Writing results")
        written = _write_all(folder, given, sources, recovered, show)
        record = run_facts() | {
            "model": fingerprint(model),
            "files": fingerprints(files),
            "views": [view_facts(view) for view in sources],
            "counts": sample_counts(given),
            "written": {name: file.path.name for name, file in written.items()},
            "warnings": warned,
        }
        write_record(folder, record)
    return [*(output / file.path.name for file in written.values()), output / RECORD]


def _write_all(
    folder: Path, given: Views, sources: Sequence[ViewFile], recovered: Sequence[Any], show: Show
) -> dict[str, WrittenView]:
    """Write every view in the format of its file, or as CSV if it had none."""
    of_name = {view.name: view for view in sources}
    taken = {RECORD}
    written = {}
    for place, (name, matrix) in enumerate(zip(given.names, recovered, strict=True)):
        frame = _frame(matrix, given, place)
        view = of_name.get(name) or _plain_csv(name, frame)
        target = folder / _file_name(view, sources, taken)
        taken.add(target.name)
        lacking = ~given.mask[:, place]
        filled = _filled_cells(view, given, lacking) if name in of_name else np.zeros(given.n_samples, dtype=np.int64)
        extras = {"recovered": lacking} | ({"filled_cells": filled} if filled.any() else {})
        written[name] = write_like(view, _like(view, frame), target, extras)
        _show_view(written[name], name, lacking, filled, show)
    return written


def _frame(matrix: Any, given: Views, place: int) -> Any:
    """Return a completed view as a frame."""
    pandas = extra("pandas", "tables", "Writing tables")
    names = given.feature_names[place]
    columns = numbered(matrix.shape[1]) if names is None else [str(name) for name in names]
    index = pandas.Index([str(key) for key in given.sample_ids], dtype=object)
    return pandas.DataFrame(matrix, index=index, columns=columns)


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
    stem = view.path.name[: -len(view.format.suffix)]
    if shared or view.path.name in taken:
        stem = _as_file_name(view.name)
    suffix = view.path.name[-len(view.format.suffix) :]
    return free_name(stem, {name[: -len(suffix)] for name in taken if name.endswith(suffix)}) + suffix


def _filled_cells(view: ViewFile, given: Views, lacking: Any) -> Any:
    """Return for every sample the number of empty cells in its row, which are filled now."""
    if view.is_sparse:
        return np.zeros(given.n_samples, dtype=np.int64)
    gaps = view.frame.isna().sum(axis=1).rename(index=str).reindex(map(str, given.sample_ids), fill_value=0)
    return np.where(lacking, 0, gaps.to_numpy())


def _like(view: ViewFile, frame: Any) -> Any:
    """Return a frame stored as that of the view: with or without ids, sparse or dense."""
    if not view.keyed:
        frame = frame.reset_index(drop=True)
    if not view.is_sparse:
        return frame
    pandas = extra("pandas", "tables", "Writing tables")
    return frame.astype(pandas.SparseDtype(frame.to_numpy().dtype, 0))


def _show_view(written: WrittenView, name: str, lacking: Any, filled: Any, show: Show) -> None:
    marks = written.extra_columns["recovered"]
    text = f"'{name}': {counted(int(lacking.sum()), 'row')} of {len(lacking):,} recovered, marked in column '{marks}'"
    if filled.any():
        text += f"; {counted(int(filled.sum()), 'empty cell')} filled in other rows"
    show("View", text + ".")
    show_notes(written.notes, show)


@click.command(
    short_help="Complete the views that samples lack.",
    epilog="Example: gapview recover out/model.gapview blood.csv scans.csv -o completed",
)
@samples_options(folder_option("gapview-recovered"), files_required=False, replaces="results that are in the folder")
def recover(**options: Any) -> None:
    """Complete the views that samples lack, in the format and units of the files.

    Files are matched to views by NAME=FILE, by the name of the file, or by its features. Every view of the model is
    written for all samples of the files; the column 'recovered' is 1 where a row is no measurement. Without FILES, the
    samples that the model was trained on are completed, and written as CSV.
    """
    run_command(recover_files, **options)
