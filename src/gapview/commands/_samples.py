"""New samples for a model: which file is which of its views, and the samples in the order and units it knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import DataFileError, InputTypeError, some
from ..estimators.latent import LatentClusterer
from ..io import ViewFile, samples_of
from ..methods import load
from ..utils.words import counted
from ..views import Views
from ._console import Say
from ._inputs import Inputs, read_inputs, say_notes

__all__ = ["SamplesRequest", "load_latent", "match_views", "read_samples"]

_ADVICE = " Columns of text can be encoded as columns of 0 and 1 (encode)."  # the model has settled that


@dataclass(frozen=True)
class SamplesRequest:
    """A model, files of samples (none: those it was trained on, where a command allows that), and where results go."""

    model: Path
    inputs: Inputs
    output: Path
    partial_rows: str | None = None
    force: bool = False
    arguments: tuple[str, ...] = ()


def load_latent(path: Path, partial_rows: str | None = None) -> Any:
    """Load a model that can place new samples; ``partial_rows`` takes the place of what it was trained with."""
    model = load(path)
    if not isinstance(model, LatentClusterer):
        raise InputTypeError(
            f"{path.name!r} holds a model of {type(model).__name__}, which has groups for its training samples only. "
            "Cluster the data with BridgedGRMF or GRMF for a model that places new samples and recovers views."
        )
    model.set_output(transform="default")  # tables are written here from arrays, whatever it gives others
    return model if partial_rows is None else model.set_params(partial_rows=partial_rows)


def read_samples(inputs: Inputs, model: Any, say: Say) -> tuple[Views, list[ViewFile]]:
    """Read new samples from files of any of the views of a model.

    Samples need not be in more than one file. Gaps in rows are dealt with as the model says, from its training data.
    """
    trained = model.views_
    encoded = any("=" in name for names in trained.feature_names if names is not None for name in names)
    views = match_views(read_inputs(inputs, encode=encoded), trained)
    for view in views:
        say("View", f"{view.path.name} is {view.summary}.")
        say_notes(replace(view, notes=tuple(note.removesuffix(_ADVICE) for note in view.notes)), say)
    return model._read_new(samples_of(views, partial_rows=model.partial_rows)), views


def match_views(found: Sequence[tuple[ViewFile, bool]], trained: Views) -> list[ViewFile]:
    """Find the view of the model that every file is: by the name typed, by the name of the file, by its features."""
    matched: dict[str, ViewFile] = {}
    for view, typed in found:
        name = _known_name(view, typed, trained)
        if name in matched:
            raise DataFileError(
                f"{matched[name].path.name!r} and {view.path.name!r} are both the view '{name}'. Give one file for "
                "each view; if one of them is another view, say so with name=path."
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
    """Put the features of a file into the order that the model knows."""
    place = trained.names.index(view.name)
    names, count = trained.feature_names[place], trained.n_features[place]
    if names is None or _has_no_names(view):
        # By their place alone: more or fewer of them would mean other features
        if view.frame.shape[1] != count:
            raise DataFileError(
                f"{view.path.name!r} has {counted(view.frame.shape[1], 'feature')}, and the view '{view.name}' of the "
                f"model has {count:,}. Columns without names are matched by their place: give the same columns."
            )
        if names is None:
            return view
    return view if view.frame.columns.tolist() == list(names) else view.aligned([str(name) for name in names])


def _has_no_names(view: ViewFile) -> bool:
    return view.format.kind in ("npy", "npz", "mat") or view.format.header == "none"
