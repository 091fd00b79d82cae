"""Files of results: tables of groups and points, and ``run.json``, which holds what is needed to repeat a command."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..estimators import MultiViewClusterer
from ..io import ViewFile
from ..progress import tell
from ..report import write_clustering_report
from ..utils.storage import write_table, write_whole
from ..views import Views
from .folder import RECORD

_PACKAGES = ("gapview", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "anndata", "faiss-cpu", "torch")


# -- tables ----------------------------------------------------------------------------------------------------------


def write_results(
    folder: Path, model: MultiViewClusterer, record: Mapping[str, Any], *, report: bool, title: str | None = None
) -> dict[str, Any]:
    """Write labels, embedding, the model itself and a report to a folder; return the record with facts added."""
    write_labels(folder / "labels.csv", model)
    prefix = type(model).__name__.lower()
    write_table(
        folder / "embedding.csv",
        ["id", *(f"{prefix}{place}" for place in range(model.embedding_.shape[1]))],
        ([key, *(f"{x:.6g}" for x in row)] for key, row in zip(model.sample_ids_, model.embedding_, strict=True)),
    )
    model.save(folder / "model.gapview")
    record = {**record, **run_facts(), **_model_facts(model)}
    if report:
        tell("Writing the report")
        write_clustering_report(model, folder / "report.html", title=title, run=report_facts(record))
    return record


def written_files(folder: Path) -> list[Path]:
    """Return the paths of the results of clustering in a folder."""
    names = ("labels.csv", "embedding.csv", "model.gapview", RECORD, "report.html")
    return [folder / name for name in names if (folder / name).exists()]


def write_labels(path: Path, model: MultiViewClusterer) -> None:
    """Write for every training sample its group, its confidence if the method has one, and which views it has."""
    columns = {"label": model.labels_.tolist()}
    if hasattr(model, "confidence_"):
        columns["confidence"] = [f"{value:.3f}" for value in model.confidence_]
    write_samples(path, model.views_, columns)


def write_samples(path: Path, views: Views, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write for every sample its id, the values of the columns, and which views it has."""
    presence = np.where(views.mask, "yes", "no").tolist()
    rows: Iterable[Any] = zip(views.sample_ids.tolist(), *columns.values(), presence, strict=True)
    header = ["id", *columns, *(f"has_{name}" for name in views.names)]
    write_table(path, header, ([*row, *has] for *row, has in rows))


# -- the record ------------------------------------------------------------------------------------------------------


def run_facts() -> dict[str, Any]:
    """Return the command that was typed, the versions of packages, the machine and the time."""
    context = click.get_current_context(silent=True)
    arguments = context.find_root().obj or () if context else ()
    versions = {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}
    return {
        "command": shlex.join(["gapview", *arguments]),
        "arguments": list(arguments),
        "versions": {name: found for name, found in versions.items() if found},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def view_facts(view: ViewFile) -> dict[str, Any]:
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
    if hasattr(model, "cluster_count_"):
        found["cluster_count"] = model.cluster_count_.reason()
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
    write_whole(folder / RECORD, content.encode())


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
