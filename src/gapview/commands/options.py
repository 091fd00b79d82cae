"""Options that several commands share, the files that they name, and the method that they describe."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..errors import ParameterError
from ..estimators import BridgedGRMF, MultiViewClusterer
from ..io import DUPLICATES, ViewFile
from ..io._reading import Options, open_files, read_sources
from ..methods import METHODS
from ..progress import tell
from ..views.cells import PARTIAL_ROWS
from ..views.id_patterns import read_options
from ..views.numerals import check_marks
from ..views.orientation import read_transpose
from ..views.places import read_places
from .console import STANDARD_OUTPUT

Decorator = Callable[[Any], Any]

_OWN_OPTIONS = {
    "n_clusters": "-k",
    "kind": "--kind",
    "n_top_features": "--top-features",
    "scale": "--scale",
    "partial_rows": "--partial-rows",
    "batch_correction": "--batch-correction",
    "random_state": "--seed",
}
_WORDS = {"none": None, "true": True, "false": False}


# -- declarations ----------------------------------------------------------------------------------------------------

id_option = click.option(
    "--id", "id_columns", multiple=True, metavar="NAME",
    help="Column that holds the sample ids; repeat it if files name it differently. By default it is detected.",
)  # fmt: skip
no_id_option = click.option(
    "--no-id", is_flag=True, help="Do not read sample ids: row i of every file is the same sample."
)
id_pattern_option = click.option(
    "--id-pattern", "id_patterns", multiple=True, metavar="PATTERN",
    help="Rewrite the ids: a regular expression of which the first group, or the whole match, is the id; "
    "PATTERN=>TEXT replaces every match; lower, nfc, ascii, spaces, hyphens, zeros and separators unify the form. "
    "VIEW=PATTERN is for one view.",
)  # fmt: skip
transpose_option = click.option(
    "--transpose", "transposed", multiple=True, metavar="VIEW",
    help="View whose file has a row for each feature and a column for each sample; all stands for every file. none "
    "accepts files that look like it as they are.",
)  # fmt: skip
drop_option = click.option(
    "--drop", "dropped", multiple=True, metavar="COLUMN",
    help="Column to leave out of every file that has it; VIEW=COLUMN is for one view.",
)  # fmt: skip
duplicates_option = click.option(
    "--duplicates", type=click.Choice(DUPLICATES), default="raise", show_default=True,
    help="Rows that share an id: refuse them, keep the first, or take their mean.",
)  # fmt: skip
decimal_option = click.option(
    "--decimal", type=click.Choice([",", "."]),
    help="Decimal mark of files with numbers such as 1,234 whose other numbers do not show it.",
)  # fmt: skip
sheet_option = click.option(
    "--sheet", "sheets", multiple=True, metavar="SHEET",
    help="Sheet of a workbook to read, instead of all sheets with numbers; FILE=SHEET is for one file or view.",
)  # fmt: skip
layer_option = click.option(
    "--layer", "layers", multiple=True, metavar="LAYER",
    help="Layer of .h5ad and .h5mu files to read instead of X; VIEW=LAYER is for one view.",
)  # fmt: skip
obsm_option = click.option(
    "--obsm", "embeddings", multiple=True, metavar="KEY",
    help="Array in obsm of .h5ad and .h5mu files to read instead of X; VIEW=KEY is for one view.",
)  # fmt: skip
raw_option = click.option(
    "--raw", "raw", multiple=True, metavar="VIEW",
    help="View to read from raw of its .h5ad or .h5mu file instead of X; all stands for every view.",
)  # fmt: skip
thousands_option = click.option("--thousands", type=click.Choice([",", "."]), help="Thousands separator of such files.")
seed_option = click.option(
    "--seed", "random_state", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed."
)
model_argument = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")


# Names of the options with which files are read: those of reading_options, and --encode
READING = (
    "id_columns",
    "no_id",
    "id_patterns",
    "transposed",
    "dropped",
    "duplicates",
    "encode",
    "decimal",
    "thousands",
    "sheets",
    "layers",
    "embeddings",
    "raw",
)


def reading_options(command: Any) -> Any:
    """Declare how files are read: the ids of the samples, the orientation, and the columns."""
    ids = (id_option, no_id_option, id_pattern_option, duplicates_option)
    parts = (sheet_option, layer_option, obsm_option, raw_option)
    return _all_of(*ids, transpose_option, drop_option, decimal_option, thousands_option, *parts)(command)


def files_argument(*, required: bool) -> Decorator:
    """Declare the files of views."""
    return click.argument("files", nargs=-1, required=required, metavar="FILES..." if required else "[FILES]...")


def output_option(default: str, *, folder: bool) -> Decorator:
    """Declare the folder for several results, or the file for one."""
    text = "Folder for the results." if folder else "File for the result; - writes it to standard output."
    path = click.Path(path_type=Path, file_okay=not folder, dir_okay=folder)
    callback = _no_standard_output if folder else None
    return click.option(
        "-o", "--output", type=path, default=Path(default), show_default=True, callback=callback, help=text
    )


def _no_standard_output(context: click.Context, parameter: click.Parameter, folder: Path) -> Path:
    """Return the folder for the results, or raise an error if it is ``-``."""
    if folder == STANDARD_OUTPUT:
        command = context.info_name
        raise click.BadParameter(f"'-' stands for standard output, and {command} writes several files: name a folder.")
    return folder


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
    return _all_of(model_argument, files, target, reading_options, rows, force)


def _all_of(*options: Decorator) -> Decorator:
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


def read_files(
    files: Sequence[str],
    *,
    id_columns: Sequence[str] = (),
    no_id: bool = False,
    id_patterns: Sequence[str] = (),
    transposed: Sequence[str] = (),
    dropped: Sequence[str] = (),
    duplicates: str = "raise",
    encode: bool = False,
    decimal: str | None = None,
    thousands: str | None = None,
    sheets: Sequence[str] = (),
    layers: Sequence[str] = (),
    embeddings: Sequence[str] = (),
    raw: Sequence[str] = (),
) -> list[ViewFile]:
    """Return all views in the order of the files."""
    tell("Reading files")
    if no_id and id_columns:
        raise ParameterError(f"--id {id_columns[0]} and --no-id contradict each other. Give one of them.")
    id_column = False if no_id else list(id_columns) or None
    marks = check_marks(decimal, thousands)
    typed = named_paths(files)
    is_raw = True if "all" in raw else dict.fromkeys(raw, True)
    places = read_places(_of_each(layers, "--layer"), _of_each(embeddings, "--obsm"), is_raw or False)
    options = Options(
        id_column=id_column, places=places, encode=encode, duplicates=duplicates, decimal=marks,
        sheet=_sheets(sheets, typed),
    )  # fmt: skip
    sources = open_files(typed, options)
    names = [source.name for source in sources]
    patterns = read_options(id_patterns, names)
    of_file = {source.path.name: source.name for source in sources}
    orient = read_transpose([of_file.get(Path(name).name, name) for name in transposed], names)
    return read_sources(sources, replace(options, id_pattern=patterns, orient=orient, drop=_drop(dropped, names)))


def _sheets(sheets: Sequence[str], typed: Sequence[tuple[str | None, Path]]) -> dict[str, list[str]] | None:
    """Return the names of sheets for each file or view, under the empty name those for all others."""
    known = {name for view, path in typed for name in (view, path.name, path.stem) if name}
    found: dict[str, list[str]] = {}
    for text in sheets:
        key, equals, sheet = text.partition("=")
        is_pair = bool(equals) and Path(key).name in known
        found.setdefault(Path(key).name if is_pair else "", []).append(sheet if is_pair else text)
    return found or None


def _of_each(given: Sequence[str], option: str) -> Any:
    """Return one name for all views, or a dict with one for each."""
    found: dict[str, str] = {}
    for text in given:
        view, equals, name = text.rpartition("=")
        if found.setdefault(view if equals else "", name) != name:
            raise ParameterError(f"{option} {text} and {option} {found[view]} contradict each other. Give one of them.")
    return found or None


def _drop(dropped: Sequence[str], names: Sequence[str]) -> Any:
    """Return the columns to leave out, for all views or for each."""
    pairs = [(view, column) for view, equals, column in (text.partition("=") for text in dropped) if view in names]
    if not pairs:
        return list(dropped) or None
    everywhere = [text for text in dropped if text.partition("=")[0] not in names]
    return {name: [*everywhere, *(column for view, column in pairs if view == name)] for name in names}


# -- the method ------------------------------------------------------------------------------------------------------


def build_model(
    method: str,
    n_clusters: int | str,
    *,
    kind: Sequence[str] = (),
    top_features: Sequence[str] = (),
    scale: Sequence[str] = (),
    others: Sequence[str] = (),
    **settings: Any,
) -> MultiViewClusterer:
    """Return the estimator, its parameters checked before any file is read.

    ``kind``, ``top_features`` and ``scale`` hold one value for all views, or "view=value" for each; ``others`` holds
    "name=value".

    >>> build_model("GRMF", 3, others=["tol=1e-4"])
    GRMF(n_clusters=3, tol=0.0001)
    """
    estimator = METHODS[method]
    if n_clusters == "auto" and estimator is not BridgedGRMF:
        raise ParameterError(
            f"-k auto is for BridgedGRMF only; {method} needs a number, such as -k 5. To find one, run BridgedGRMF "
            "with -k auto first."
        )
    if scale:
        settings["scale"] = _by_view(scale, "--scale", "unit", "standard")
    if kind:
        settings["kind"] = _by_view(kind, "--kind", "counts", "proteins")
    if top_features:
        settings["n_top_features"] = _by_view(top_features, "--top-features", "2000", "500")
    if settings.get("batch_correction", "none") == "none":
        settings.pop("batch_correction", None)
    elif "batch_correction" not in estimator._get_param_names():
        raise ParameterError(f"--batch-correction is for GRMF and BridgedGRMF, and {method} is another method.")
    model: MultiViewClusterer = estimator(n_clusters, **settings, **_others(method, others))
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


def _by_view(given: Sequence[str], option: str, first: str, second: str) -> Any:
    """Return one value for all views, or a dict with one for each; ``first`` and ``second`` are examples."""
    pairs = [text.rpartition("=") for text in given]
    if len(given) == 1 and not pairs[0][1]:
        return value_of(given[0])
    if not all(equals for _, equals, _ in pairs) or len({name for name, _, _ in pairs}) < len(pairs):
        raise ParameterError(
            f"{option} takes one value for all views, such as {option} {first}, or one for each view, such as {option} "
            f"blood={second} {option} scans={first}; got {', '.join(given)}."
        )
    return {name: value_of(way) for name, _, way in pairs}


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
