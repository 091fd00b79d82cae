"""``gapview recover``: completed views, in the format and units of the files they came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..errors import extra
from ..io import SourceFormat, ViewFile, WrittenView, write_like
from ..progress import tell
from ..utils.words import counted, free_name, numbered
from ..views import Views
from .console import Show, run_command, show_notes, show_warnings
from .folder import RECORD, results_folder
from .options import fingerprint, fingerprints, folder_option, samples_options
from .predict import load_latent, read_samples
from .record import run_facts, sample_counts, view_facts, write_record


def recover_files(
    show: Show, model: Path, files: Sequence[str], output: Path, partial_rows: str | None, force: bool, **reading: Any
) -> list[Path]:
    """Complete every view of the samples, and write each to a file; return the files.

    Without files, the samples are those that the model was trained on.
    """
    with results_folder(output, force=force) as folder, show_warnings(show) as warned:
        tell("Loading the model")
        loaded = load_latent(model, partial_rows)
        sources: list[ViewFile] = []
        given = loaded.views_ = loaded.views_.in_arrays()
        if files:
            tell("Reading files")
            given, sources = read_samples(loaded, files, show, **reading)
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
