"""``run.json``: everything that is needed to repeat a command, and to know its results again."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators import MultiViewClusterer
from ..io import ViewFile
from ..utils.storage import write_whole
from ..views import Views
from ._folder import RECORD

__all__ = ["described_model", "described_run", "described_view", "described_views", "shown_run", "write_record"]

_PACKAGES = ("gapview", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "anndata", "faiss-cpu", "torch")


def described_run(arguments: Sequence[str]) -> dict[str, Any]:
    """Say what was typed, with which versions, and when."""
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


def described_view(view: ViewFile) -> dict[str, Any]:
    """Say what was read as one view."""
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


def described_views(views: Views) -> dict[str, Any]:
    """Count the samples after joining."""
    return {
        "samples": views.n_samples,
        "with_all_views": int(views.mask.all(axis=1).sum()),
        "with_view": dict(zip(views.names, views.mask.sum(axis=0).tolist(), strict=True)),
    }


def described_model(model: MultiViewClusterer) -> dict[str, Any]:
    """Say with which settings the groups were found, and how large they are."""
    found: dict[str, Any] = {
        "method": type(model).__name__,
        "seed": model.random_state,
        "settings": model.get_params(deep=False),
        "group_sizes": np.bincount(model.labels_).tolist(),
    }
    for name in ("setting_", "view_weights_", "n_iter_"):  # what was chosen where a setting says "auto"
        if hasattr(model, name):
            found[name.removesuffix("_")] = getattr(model, name)
    if hasattr(model, "selection_"):
        found["selection"] = str(model.selection_)
    if hasattr(model, "cluster_count_"):
        found["cluster_count"] = model.cluster_count_.reason()
    return found


def shown_run(record: Mapping[str, Any]) -> dict[str, Any]:
    """Take what a report shows of a run: notes and warnings may name samples, which a report may have to leave out."""
    files = [f"{file['path']} ({file['bytes']:,} bytes, SHA-256 {file['sha256']})" for file in record.get("files", [])]
    shown = {name: record[name] for name in ("command", "machine", "finished")}
    return shown | ({"files": files} if files else {})


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record, which names the files written before it."""
    results = sorted(file.name for file in folder.iterdir())
    content = json.dumps(_plain({**record, "results": results}), indent=2, ensure_ascii=False)
    write_whole(folder / RECORD, content.encode())


def _plain(value: Any) -> Any:
    """Turn what settings may hold into what JSON knows."""
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
