"""Options that several commands share, the files that they name, and the method that they describe."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..errors import DataFileError, ParameterError
from ..estimators import BridgedGRMF, MultiViewClusterer
from ..io import DUPLICATES, ViewFile, read_views
from ..methods import METHODS
from ..progress import tell
from ..views.cells import PARTIAL_ROWS

Decorator = Callable[[Any], Any]

_OWN_OPTIONS = {"n_clusters": "-k", "scale": "--scale", "partial_rows": "--partial-rows", "random_state": "--seed"}
_WORDS = {"none": None, "true": True, "false": False}


# -- declarations ----------------------------------------------------------------------------------------------------

id_option = click.option(
    "--id", "id_columns", multiple=True, metavar="NAME",
    help="Column that holds the sample ids; repeat it if files name it differently. By default it is detected.",
)  # fmt: skip
duplicates_option = click.option(
    "--duplicates", type=click.Choice(DUPLICATES), default="raise", show_default=True,
    help="Rows that share an id: refuse them, keep the first, or take their mean.",
)  # fmt: skip
seed_option = click.option(
    "--seed", "random_state", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed."
)
model_argument = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")


def files_argument(*, required: bool) -> Decorator:
    """Declare the files of views."""
    return click.argument("files", nargs=-1, required=required, metavar="FILES..." if required else "[FILES]...")


def output_option(default: str, *, folder: bool) -> Decorator:
    """Declare the folder for several results, or the file for one."""
    text = "Folder for the results." if folder else "File for the result."
    path = click.Path(path_type=Path, file_okay=not folder, dir_okay=folder)
    return click.option("-o", "--output", type=path, default=Path(default), show_default=True, help=text)


def force_option(what: str) -> Decorator:
    """Declare the permission to replace existing files."""
    return click.option("--force", is_flag=True, help=f"Replace {what}.")


def partial_rows_option(default: str | None) -> Decorator:
    """Declare what to do with rows that lack some values; None stands for the setting of the model."""
    return click.option(
        "--partial-rows", type=click.Choice(PARTIAL_ROWS),
        default=default, show_default=True if default else "as in training",
        help="Rows that have some but not all values: refuse them, fill their gaps, or drop them.",
    )  # fmt: skip


def samples_options(output: str, *, folder: bool, files_required: bool) -> Decorator:
    """Declare the options of all commands on new samples; ``output`` is the default folder or file for the results."""
    files, rows = files_argument(required=files_required), partial_rows_option(None)
    force = force_option("results that are in the folder" if folder else "a file that is there")
    target = output_option(output, folder=folder)
    options = (model_argument, files, target, id_option, duplicates_option, rows, force)

    def declare(command: Any) -> Any:
        for option in reversed(options):  # decorators are applied from the last to the first
            command = option(command)
        return command

    return declare


# -- files -----------------------------------------------------------------------------------------------------------


def named_paths(files: Sequence[str]) -> list[tuple[str | None, Path]]:
    """Return the name typed for each file, if any, and its path; a file is typed as a path, or as name=path."""
    found: list[tuple[str | None, Path]] = []
    for argument in files:
        name, equals, path = argument.partition("=")
        if not equals or os.path.exists(argument):  # the name of a file may hold an equals sign
            found.append((None, Path(argument)))
        elif name and path:
            found.append((name, Path(path)))
        else:
            raise ParameterError(f"A file is given as its path, or as name=path; got {argument!r}.")
    return found


def read_files(files: Sequence[str], *, id_columns: Sequence[str], duplicates: str, encode: bool) -> list[ViewFile]:
    """Return all views in the order of the files."""
    tell("Reading files")
    read = partial(read_views, id_column=list(id_columns) or None, encode=encode, duplicates=duplicates)
    typed = named_paths(files)
    plain = [str(path) for name, path in typed if name is None]
    unnamed = read(plain) if plain else []
    found: list[ViewFile] = []
    for name, path in typed:
        found += read({name: path}) if name else [view for view in unnamed if view.path == path]
    name, n_views = Counter(view.name for view in found).most_common(1)[0]
    if n_views > 1:
        raise DataFileError(f"The view '{name}' is given more than once. Give every view a name of its own.")
    return found


# -- the method ------------------------------------------------------------------------------------------------------


def build_model(
    method: str, n_clusters: int | str, *, scale: Sequence[str] = (), others: Sequence[str] = (), **settings: Any
) -> MultiViewClusterer:
    """Return the estimator, its parameters checked before any file is read.

    ``scale`` holds one scaling for all views, or "view=scaling" for each; ``others`` holds "name=value".

    >>> build_model("GRMF", 3, others=["tol=1e-4"])
    GRMF(n_clusters=3, tol=0.0001)
    """
    kind = METHODS[method]
    if n_clusters == "auto" and kind is not BridgedGRMF:
        raise ParameterError(
            f"-k auto is for BridgedGRMF only; {method} needs a number, such as -k 5. To find one, run BridgedGRMF "
            "with -k auto first."
        )
    if scale:
        settings["scale"] = _scale(scale)
    model: MultiViewClusterer = kind(n_clusters, **settings, **_others(method, others))
    model.check_parameters()
    return model


def _others(method: str, pairs: Sequence[str]) -> dict[str, Any]:
    known = METHODS[method]._get_param_names()
    settings = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ParameterError(f"--set takes a name and a value, such as --set max_iter=500; got {pair!r}.")
        if name in _OWN_OPTIONS:
            raise ParameterError(f"{name} has an option of its own: give {_OWN_OPTIONS[name]} instead of --set {pair}.")
        if name not in known:
            listed = ", ".join(other for other in known if other not in _OWN_OPTIONS)
            raise ParameterError(f"{method} has no setting {name!r}; it has {listed}.")
        if name in settings:
            raise ParameterError(f"--set {name} is given more than once. Give it once.")
        settings[name] = value_of(text)
    return settings


def _scale(given: Sequence[str]) -> Any:
    """Return one scaling for all views, or a dict with one for each."""
    pairs = [text.partition("=") for text in given]
    if len(given) == 1 and not pairs[0][1]:
        return _WORDS.get(given[0].lower(), given[0])
    if not all(equals for _, equals, _ in pairs) or len({name for name, _, _ in pairs}) < len(pairs):
        raise ParameterError(
            "--scale takes one scaling for all views, such as --scale unit, or one for each view, such as --scale "
            f"blood=standard --scale scans=unit; got {', '.join(given)}."
        )
    return {name: _WORDS.get(way.lower(), way) for name, _, way in pairs}


def value_of(text: str) -> Any:
    """Return the number, true, false, none, list or mapping that a text stands for; else the text.

    >>> value_of("1e-4"), value_of("none"), value_of("[1, 2]"), value_of("exact")
    (0.0001, None, [1, 2], 'exact')
    """
    plain = text.strip()
    if plain.lower() in _WORDS:
        return _WORDS[plain.lower()]
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return plain
