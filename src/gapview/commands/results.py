"""Results on disk: folders written completely or not at all, tables of samples, and the record of a run."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import platform
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..errors import DataFileError, InputError, MissingExtraError, some
from ..estimators import MultiViewClusterer
from ..io import ViewFile
from ..io.workbook_writing import typed_table, workbook_content
from ..progress import tell
from ..report import write_clustering_report
from ..scverse import write_annotated
from ..trust import Markers
from ..utils.messages import free_name, warn_user
from ..utils.storage import (
    escape_formula,
    find_target,
    keep_permissions,
    lock_folder,
    make_folder,
    sync_folder,
    table_text,
    write_table,
    write_whole,
)
from ..views import Views
from ..views.sample_columns import read_batch
from .console import STANDARD_OUTPUT, signals_ignored
from .covariates import COVARIATES, SURVIVAL
from .options import named_paths

WORKBOOK = "results.xlsx"
MARKERS, CONTRIBUTIONS = "markers.csv", "contributions.csv"
ANNOTATED = "_annotated"  # ends the name of a copy of an omics file
_N_IN_WORKBOOK = 500  # markers of each group and view, since a sheet has few rows
RECORD = "run.json"  # lists, under "results", the files that were written with it
_PACKAGES = ("gapview", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "anndata", "faiss-cpu", "torch")
_OF_THE_SYSTEM = {".DS_Store", "Thumbs.db", "desktop.ini"}
_LONGEST_NAME = 200  # bytes; systems allow 255
_STAGED = r"\.{name}\.[0-9a-f]{{12}}"  # results that are being written
_REPLACED = _STAGED + r"\.old"  # results that are being replaced


@contextmanager
def results_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder for results, which is renamed to ``path`` at the end and removed on an error.

    A folder that is not empty is an error. With ``force`` results of gapview are replaced, all of them together and
    when the new ones are complete; a folder that holds anything else is still an error.
    """
    try:
        target = path.resolve()  # results are written beside the target of a link, on the same disk
    except (OSError, RuntimeError) as error:
        raise DataFileError(f"{str(path)!r} cannot be a folder for the results: {error}.") from None
    _remove_leftovers(target)
    filled = _check_replaceable(path, target, force)
    empty = os.path.isdir(target) and not filled
    made = [folder for folder in (target.parent, *target.parent.parents) if not os.path.exists(folder)]
    # An empty folder may be impossible to replace, such as a mounted disk: results are written inside it
    staging = (target if empty else target.parent) / f".{short_name(target.name)}.{secrets.token_hex(6)}"
    with ExitStack() as in_use:
        try:
            _make(staging, path, target.parent, in_use)
            yield staging
            with _locked(target.parent), signals_ignored():
                put_in_place(staging, target, empty=empty, filled=filled)
        except BaseException:
            with signals_ignored():
                shutil.rmtree(staging, ignore_errors=True)
                for folder in made:
                    with suppress(OSError):
                        folder.rmdir()
            raise


def short_name(name: str) -> str:
    """Return a name to which a suffix can be added: a digest of one so long that the system may refuse more."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= _LONGEST_NAME else hashlib.sha256(encoded).hexdigest()


@contextmanager
def _explained(what: str, advice: str) -> Iterator[None]:
    """Turn an error of the system into one that says what failed, why, and what to do."""
    try:
        yield
    except OSError as error:
        raise DataFileError(f"{what}: {error.strerror}. {advice}") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other command has locked a folder, and lock it."""
    lock = None
    with suppress(OSError):  # not readable: results are moved without a lock
        lock = lock_folder(folder, wait=True)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary folders of commands that were killed: they are not locked any more.

    If a command was killed while it replaced results and only the old ones are left, these are restored.
    """
    name = re.escape(short_name(target.name))
    with suppress(OSError), _locked(target.parent):
        for folder in (target.parent, target):
            left = [item for item in folder.iterdir() if item.is_dir()] if folder.is_dir() else []
            for item in left:
                if re.fullmatch(_REPLACED.format(name=name), item.name) and not os.path.lexists(target):
                    item.rename(target)
                elif re.fullmatch(f"{_STAGED}|{_REPLACED}".format(name=name), item.name):
                    with suppress(BlockingIOError):
                        lock = lock_folder(item)
                        if lock is not None:  # without locks it may be in use
                            shutil.rmtree(item, ignore_errors=True)
                            os.close(lock)


def _make(staging: Path, path: Path, parent: Path, in_use: ExitStack) -> None:
    """Make the folder to write into, and lock it, which marks it as in use."""
    with _explained(f"Cannot make the folder {str(path)!r}", "Choose another folder for the results."):
        parent.mkdir(parents=True, exist_ok=True)
        with _locked(parent):
            staging.mkdir()
            in_use.enter_context(_locked(staging))


def _check_replaceable(path: Path, target: Path, force: bool) -> bool:
    """Return whether there are results to be replaced; raise an error for a folder that must not be."""
    if not os.path.exists(target):
        return False
    try:
        there = sorted(item.name for item in target.iterdir() if item.name not in _OF_THE_SYSTEM)
    except OSError as error:
        raise DataFileError(f"{str(path)!r} cannot be a folder for the results: {error.strerror}.") from None
    if not there:
        return False
    others = [name for name in there if name not in _results_in(target)]
    if others:
        raise DataFileError(
            f"The folder {str(path)!r} holds something else than results of gapview, {some(others)}, and is left as it "
            "is. Choose another folder for the results."
        )
    if not force:
        raise DataFileError(
            f"The folder {str(path)!r} holds results already. Choose another folder, or replace them with --force."
        )
    if target == Path.cwd():
        raise DataFileError(
            f"The folder {str(path)!r} is the one you are in, and cannot be replaced from within. Go to another one, "
            "or choose another folder for the results."
        )
    return True


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record in a folder; an empty one if it is missing or damaged."""
    try:
        found = json.loads((folder / RECORD).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _results_in(folder: Path) -> set[str]:
    """Return the names of the files that the record in a folder lists."""
    listed = read_record(folder).get("results")
    return {RECORD, *(name for name in listed if isinstance(name, str))} if isinstance(listed, list) else set()


def put_in_place(staging: Path, target: Path, *, empty: bool, filled: bool) -> None:
    """Move complete results to their folder, which is empty, filled with results, or missing."""
    with _explained(f"The results cannot be put into {str(target)!r}", "What was there is untouched."):
        if empty:
            _move_up(staging, target)
        elif filled:
            _swap(staging, target)
        else:
            staging.rename(target)
        sync_folder(target.parent)


def _move_up(staging: Path, target: Path) -> None:
    moved: list[Path] = []
    there = {item.name for item in target.iterdir()} - _OF_THE_SYSTEM
    if [name for name in there if not re.fullmatch(_STAGED.format(name=re.escape(short_name(target.name))), name)]:
        raise FileExistsError(errno.EEXIST, "another command has put something there meanwhile")
    try:
        for file in sorted(staging.iterdir()):
            moved.append(file.rename(target / file.name))
        staging.rmdir()
    except OSError:
        for file in moved:
            file.unlink(missing_ok=True)
        raise


def _swap(staging: Path, target: Path) -> None:
    """Replace the old folder by the new one; restore the old one on an error."""
    old = target.parent / f".{short_name(target.name)}.{secrets.token_hex(6)}.old"
    for new, replaced in [(staging, target), *((file, target / file.name) for file in staging.iterdir())]:
        if replaced.exists():
            keep_permissions(new, replaced.stat())
    target.rename(old)
    try:
        staging.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_new_file(path: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Raise an error if a file cannot be written, exists, unless ``force``, or is one of the inputs."""
    if path == STANDARD_OUTPUT:
        return
    _, there = find_target(path)
    if there and any(os.path.exists(other) and path.samefile(other) for other in inputs):
        raise DataFileError(f"{str(path)!r} is one of the files to read. Give another name for the result.")
    if there and not force:
        raise DataFileError(f"The file {str(path)!r} is there already. Choose another, or replace it with --force.")


def write_result(path: Path, content: bytes) -> None:
    """Write the only result of a command to a file, whose folder is made, or to standard output."""
    if path != STANDARD_OUTPUT:
        make_folder(path.parent)
        write_whole(path, content)
        return
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the program that reads it has ended, as `head` does
        raise
    except OSError as error:
        raise DataFileError(f"Cannot write to standard output: {error.strerror}.") from None


# -- tables ----------------------------------------------------------------------------------------------------------


def write_results(
    folder: Path,
    model: MultiViewClusterer,
    record: Mapping[str, Any],
    *,
    report: bool,
    title: str | None = None,
    covariates: Any = None,
    batches: Any = None,
    survival: Any = None,
    adjust: Sequence[str] = (),
    assess: bool = False,
) -> dict[str, Any]:
    """Write labels, embedding, the model itself and a report to a folder; return the record with facts added."""
    write_labels(folder / "labels.csv", model, batches)
    prefix, points = type(model).__name__.lower(), model.embedding_
    header = ["id", *(f"{prefix}{place}" for place in range(points.shape[1]))]
    ids = _written_ids(model.views_)
    rows = ([key, *(f"{x:.6g}" for x in point)] for key, point in zip(ids, points, strict=True))
    write_table(folder / "embedding.csv", header, rows)
    if model.views_.n_views > 1:
        write_contributions(folder / CONTRIBUTIONS, model)
    model.save(folder / "model.gapview")
    record = {**record, **run_facts(), **_model_facts(model)}
    if report:
        tell("Writing the report")
        facts = report_facts(record)
        compared = {"covariates": covariates, "survival": survival, "adjust": adjust}
        write_clustering_report(model, folder / "report.html", title=title, run=facts, assess=assess, **compared)
    return record


def write_workbook(folder: Path, markers: Markers | None = None) -> None:
    """Write all tables of the results in a folder into one workbook, with a sheet for each; of markers the first."""
    tables = sorted(folder.glob("*.csv"), key=lambda file: (file.stem != "labels", file.stem))
    sheets = {file.stem: file.read_bytes() for file in tables if file.name != MARKERS}
    if markers is not None:
        sheets[Path(MARKERS).stem] = markers_text(markers.top(_N_IN_WORKBOOK))
    write_whole(
        folder / WORKBOOK, workbook_content({name: typed_table(text.decode()) for name, text in sheets.items()})
    )


def markers_text(markers: Markers) -> bytes:
    """Return the table of markers as CSV."""
    columns = []
    for values in markers.columns.values():
        if values.dtype.kind == "f":
            columns.append(["" if x != x else f"{x:.6g}" for x in values.tolist()])
        else:
            columns.append([escape_formula(str(x)) for x in values.tolist()])
    return table_text(list(markers.columns), zip(*columns, strict=True))


def write_contributions(path: Path, model: MultiViewClusterer) -> None:
    """Write for every sample how much each of its views contributes to its group, and how far it supports it."""
    found, names = model.view_contributions(), model.views_.names
    parts = {"contribution": found.share, "support": found.support}
    header = ["id", "label", *(f"{part}_{name}" for part in parts for name in names)]
    texts = ([["" if x != x else f"{x:.3f}" for x in row] for row in values.tolist()] for values in parts.values())
    rows = zip(_written_ids(model.views_), model.labels_.tolist(), *texts, strict=True)
    write_table(path, header, ([key, label, *shares, *support] for key, label, shares, support in rows))


def is_omics(view: ViewFile) -> bool:
    """Return whether a view is from a file of AnnData or MuData."""
    return view.path.suffix.lower() in (".h5ad", ".h5mu")


def write_copies(folder: Path, model: MultiViewClusterer, found: Sequence[ViewFile]) -> None:
    """Write an annotated copy of every omics file among the inputs; warn of one that cannot be written."""
    sources = dict.fromkeys(view.path for view in found if is_omics(view))
    taken: set[str] = set()
    for source in sources:
        name = free_name(source.stem + ANNOTATED, taken)
        taken.add(name)
        try:
            write_annotated(model, source, folder / f"{name}{source.suffix}")
        except (DataFileError, InputError) as error:
            warn_user(str(error))


def missing_writer() -> MissingExtraError | None:
    """Return the error that the package for workbooks is not installed, if it is not."""
    return None if find_spec("xlsxwriter") else MissingExtraError("xlsxwriter", "excel", "Writing a workbook (--excel)")


def written_files(folder: Path) -> list[Path]:
    """Return the paths of the results of clustering in a folder."""
    tables = ("labels.csv", "embedding.csv", CONTRIBUTIONS, MARKERS, COVARIATES, SURVIVAL, WORKBOOK)
    names = (*tables, "model.gapview", RECORD, "report.html")
    copies = sorted(folder.glob(f"*{ANNOTATED}.h5*"))
    return [*(folder / name for name in names if (folder / name).exists()), *copies]


def missing_package(purpose: str = "Writing a report") -> MissingExtraError | None:
    """Return the error about the first package for reports that is not installed, if any."""
    missing = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    return MissingExtraError(missing[0], "report", purpose) if missing else None


def write_labels(path: Path, model: MultiViewClusterer, batches: Any = None) -> None:
    """Write for every training sample its group, its confidence and its batch if known, and which views it has."""
    columns = {"label": model.labels_.tolist()}
    if hasattr(model, "confidence_"):
        columns["confidence"] = [f"{value:.3f}" for value in model.confidence_]
    if batches is not None:
        columns["batch"] = ["" if part is None else part for part in read_batch(batches, model.sample_ids_)]
    write_samples(path, model.views_, columns)


def write_samples(path: Path, views: Views, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write for every sample its id, the values of the columns, and which views it has."""
    presence = np.where(views.mask, "yes", "no").tolist()
    rows: Iterable[Any] = zip(_written_ids(views), *columns.values(), presence, strict=True)
    header = ["id", *columns, *(f"has_{name}" for name in views.names)]
    content = table_text(header, ([*row, *has] for *row, has in rows))
    if path.suffix.lower() == ".xlsx":
        content = workbook_content({"samples": typed_table(content.decode())})
    write_result(path, content)


def _written_ids(views: Views) -> list[str]:
    """Return the ids of samples as they are written into tables, so that a spreadsheet runs none as a formula."""
    return [escape_formula(str(key)) for key in views.sample_ids.tolist()]


# -- the record ------------------------------------------------------------------------------------------------------


def run_facts() -> dict[str, Any]:
    """Return the command that was typed, the versions of packages, the machine and the time."""
    context = click.get_current_context(silent=True)
    arguments = context.find_root().obj or () if context else ()
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "command": shlex.join(["gapview", *arguments]),
        "arguments": list(arguments),
        "versions": versions,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def input_facts(files: Sequence[str], found: Sequence[ViewFile], views: Views) -> dict[str, Any]:
    """Return the different files that were typed, what was read from them, and the samples after joining."""
    typed = [fingerprint(path) for path in dict.fromkeys(path for _, path in named_paths(files))]
    return {"files": typed, "views": [_view_facts(view) for view in found], "counts": sample_counts(views)}


def fingerprint(path: Path) -> dict[str, Any]:
    """Return the path of a file as typed, its size, and the SHA-256 of its bytes; of a folder, of all files in it."""
    if os.path.isdir(path):
        inside = [fingerprint(file) for file in sorted(path.iterdir()) if file.is_file()]
        listed = "".join(f"{Path(file['path']).name} {file['sha256']}\n" for file in inside)
        digest = hashlib.sha256(os.fsencode(listed)).hexdigest()
        return {"path": str(path), "bytes": sum(file["bytes"] for file in inside), "sha256": digest}
    advice = "Put it back, and run the command again."  # deleted since it was read
    with _explained(f"The file {str(path)!r} can no longer be read", advice), path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return {"path": str(path), "bytes": os.fstat(stream.fileno()).st_size, "sha256": digest}


def _view_facts(view: ViewFile) -> dict[str, Any]:
    """Return what was read as one view."""
    n_samples, n_features = view.frame.shape
    return {
        "name": view.name,
        "file": str(view.path),
        "samples": n_samples,
        "features": n_features,
        "share_of_cells_empty": view.share_empty,
        "id_column": view.format.id_name,
        "notes": list(view.notes),
    }


def sample_counts(views: Views) -> dict[str, Any]:
    """Return the numbers of samples after joining."""
    return {
        "samples": views.n_samples,
        "with_all_views": int(views.mask.all(axis=1).sum()),
        "with_view": dict(zip(views.names, views.mask.sum(axis=0).tolist(), strict=True)),
    }


def _model_facts(model: MultiViewClusterer) -> dict[str, Any]:
    """Return the settings with which the groups were found, and the sizes of the groups."""
    found: dict[str, Any] = {
        "method": type(model).__name__,
        "seed": model.random_state,
        "settings": model.get_params(deep=False),
        "group_sizes": np.bincount(model.labels_).tolist(),
    }
    for name in ("setting_", "view_weights_", "n_iter_"):  # the values used for "auto"
        if hasattr(model, name):
            found[name.removesuffix("_")] = getattr(model, name)
    if hasattr(model, "selection_"):
        found["selection"] = str(model.selection_)
    found["associations"] = model.associations_
    if hasattr(model, "batch_mixing_"):
        found["batch_mixing"] = model.batch_mixing_
    if hasattr(model, "cluster_count_"):
        found["cluster_count"] = model.cluster_count_.reason()
    if hasattr(model, "assessment_"):
        facts = {name: value for name, value in vars(model.assessment_).items() if name != "null_groups"}
        found["assessment"] = facts | {"text": str(model.assessment_)}
    return found


def report_facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a report shows of a record: without notes and warnings, which may name samples."""
    files = [f"{file['path']} ({file['bytes']:,} bytes, SHA-256 {file['sha256']})" for file in record.get("files", [])]
    facts = {name: record[name] for name in ("command", "machine", "finished")}
    return facts | ({"files": files} if files else {})


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record, which lists the files written before it."""
    results = sorted(file.name for file in folder.iterdir())
    content = json.dumps(_plain({**record, "results": results}), indent=2, ensure_ascii=False)
    write_whole(folder / RECORD, content.encode(errors="backslashreplace"))  # in JSON an escape sequence


def _plain(value: Any) -> Any:
    """Return a value in types that JSON can hold."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)
