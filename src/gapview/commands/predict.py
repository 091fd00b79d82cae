"""``gapview predict``: the groups of new samples, from any of the views; and the reading of new samples."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..errors import DataFileError, InputTypeError, some
from ..estimators.latent import LatentClusterer
from ..io import ViewFile, samples_of
from ..methods import load
from ..progress import tell
from ..utils.storage import make_folder
from ..utils.words import counted, joined
from ..views import Views, new_views
from .console import Show, run_command, show_notes, show_warnings
from .folder import check_new_file
from .options import file_option, named_paths, read_files, samples_options
from .record import write_samples

_FAR = 3.0  # distance, in units of the usual distance between neighbours, above which a group is doubtful
_ADVICE = " Columns of text can be encoded as columns of 0 and 1 (encode)."  # the model determines the encoding


def load_latent(path: Path, partial_rows: str | None) -> Any:
    """Return a model that can place new samples; ``partial_rows`` replaces its setting."""
    model = load(path)
    if not isinstance(model, LatentClusterer):
        raise InputTypeError(
            f"{path.name!r} holds a model of {type(model).__name__}, which has groups for its training samples only. "
            "Cluster the data with BridgedGRMF or GRMF for a model that places new samples and recovers views."
        )
    model.set_output(transform="default")  # tables are written from arrays
    return model if partial_rows is None else model.set_params(partial_rows=partial_rows)


def read_samples(model: Any, files: Sequence[str], show: Show, **reading: Any) -> tuple[Views, list[ViewFile]]:
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


def predict_files(
    show: Show, model: Path, files: Sequence[str], output: Path, partial_rows: str | None, force: bool, **reading: Any
) -> list[Path]:
    """Assign the samples of files to the groups of a model, and write a table; return its path."""
    check_new_file(output, [model, *(path for _, path in named_paths(files))], force=force)
    with show_warnings(show):
        tell("Loading the model")
        loaded = load_latent(model, partial_rows)
        tell("Reading files")
        new, _ = read_samples(loaded, files, show, **reading)
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
