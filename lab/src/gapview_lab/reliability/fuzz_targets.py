"""The targets of the fuzzer: how inputs are generated, and how they are used."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gapview import __version__, describe, load
from gapview.commands.covariates import read_covariates
from gapview.commands.results import read_record, results_folder, write_labels
from gapview.datasets import load_views
from gapview.errors import DataFileError
from gapview.io import ViewFile, join_views, read_views, summary_lines, write_like

from ..common.run_file import RunFile
from ..league.runs import LeagueStore
from ..paper.store import PaperStore
from . import fuzz_seeds as seeds
from .fuzz_pages import make_page, run_page
from .mutations import (
    mutated,
    mutated_gzip,
    mutated_json,
    mutated_mat,
    mutated_model,
    mutated_npy,
    mutated_npz,
)

__all__ = ["TARGETS", "Case", "Target", "case_of"]


@dataclass(frozen=True)
class Case:
    """One input: files with their contents, and settings."""

    files: Mapping[str, bytes]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """One reader: its share of all inputs, how an input is generated, and the function to test.

    The function is given the folder of the input files and a folder in which alone it may write.
    """

    share: float
    make: Callable[[random.Random], Case]
    run: Callable[[Case, Path, Path], None]


def case_of(target: str, index: int, seed: int) -> Case:
    """Generate one input; deterministic for given numbers."""
    return TARGETS[target].make(random.Random(f"{seed}/{target}/{index}"))


def _damaged(found: Mapping[str, bytes], name: str, rng: random.Random) -> bytes:
    """Damage a file, half of the time inside its structure."""
    content, others = found[name], [*found.values(), seeds.trap()]
    deep = {
        ".gz": mutated_gzip,
        ".npy": mutated_npy,
        ".npz": mutated_npz,
        ".xlsx": mutated_npz,
        ".rds": mutated_gzip,
        ".rda": mutated_gzip,
        ".mat": mutated_mat,
        ".gapview": mutated_model,
    }.get(Path(name).suffix)
    starts = {mutated_mat: b"MATLAB 5.0", mutated_gzip: b"\x1f\x8b"}
    is_plain = deep is None or not content.startswith(starts.get(deep, b""))
    if is_plain or rng.random() < (0.1 if deep is mutated_model else 0.4):
        return mutated(content, rng, others)
    return deep(content, rng, [seeds.trap()])  # type: ignore[misc]


def _make_file(found: Callable[[], Mapping[str, bytes]], *ends: str) -> Callable[[random.Random], Case]:
    def make(rng: random.Random) -> Case:
        name = rng.choice([name for name in found() if not ends or name.endswith(ends)])
        return Case({name: _damaged(found(), name, rng)}, _settings(rng))

    return make


def _settings(rng: random.Random) -> dict[str, Any]:
    return {
        "id_column": rng.choice((*[None] * 12, "id", "iron", ["x", "id"], "")),
        "encode": rng.random() < 0.3,
        "duplicates": rng.choice(("raise", "first", "mean")),
    }


def _read(case: Case, folder: Path, out: Path) -> None:
    """Read a file; check that accepted values are numbers, and write them again."""
    views = read_views([folder / name for name in case.files], **case.settings)
    for place, view in enumerate(views):
        _demand_numbers(view)
        if place == 0 and not view.is_sparse and view.frame.size < 1000:
            write_like(view, view.frame, out / f"again{view.format.suffix}", {"recovered": [0] * len(view.frame)})
    summary_lines(views)


def _demand_numbers(view: ViewFile) -> None:
    values = view.frame.sparse.to_coo().data if view.is_sparse else view.frame.to_numpy()
    assert values.dtype in (np.float32, np.float64), f"a view of type {values.dtype}"
    assert view.frame.size, "a view without values"
    assert view.frame.columns.is_unique, "columns of one name"
    assert not view.keyed or view.frame.index.is_unique, "samples of one id"


def _read_arrays(case: Case, folder: Path, out: Path) -> None:
    """Read a file of arrays with both readers."""
    refused = None
    (name,) = case.files
    if not name.endswith(".npy"):
        try:
            load_views(folder / name)
        except DataFileError as error:
            refused = error
    _read(case, folder, out)
    if refused is not None:
        raise refused


def _make_join(rng: random.Random) -> Case:
    found = {**seeds.texts(), **seeds.arrays()}
    names = rng.sample([name for name in seeds.texts() if not name.startswith("titled")], rng.choice((2, 2, 3)))
    if rng.random() < 0.1:
        names.append("plain.npz")
    hurt = rng.choice(names)
    contents = {name: _damaged(found, name, rng) if name == hurt else found[name] for name in names}
    return Case(contents, {**_settings(rng), "partial_rows": rng.choice(("raise", "fill", "drop"))})


def _join(case: Case, folder: Path, out: Path) -> None:
    settings = dict(case.settings)
    partial_rows = settings.pop("partial_rows")
    files = read_views([folder / name for name in case.files], **settings)
    summary_lines(files)
    views = join_views(files, partial_rows=partial_rows)
    assert len(set(views.sample_ids.tolist())) == views.n_samples
    assert all(np.isfinite(np.asarray(getattr(matrix, "data", matrix))).all() for matrix in views.matrices)


def _load_model(case: Case, folder: Path, out: Path) -> None:
    """Load a model; check that an accepted model predicts."""
    (name,) = case.files
    str(describe(folder / name))
    model = load(folder / name)
    if hasattr(model, "predict"):
        model.predict(model.views_)
    if hasattr(model, "recover"):
        model.recover()
    write_labels(out / "labels.csv", model)
    model.save(out / "again.gapview")


def _make_covariates(rng: random.Random) -> Case:
    found = {**seeds.texts(), **{name: seeds.table_files()[name] for name in ("snappy.parquet", "index.feather")}}
    name = rng.choice(list(found))
    return Case({name: _damaged(found, name, rng)}, {"id_columns": rng.choice(((), (), ("id",), ("iron",)))})


class _Samples:
    """The part of views that the reader of covariates uses."""

    sample_ids = np.array([*(f"s{row}" for row in range(12)), *map(str, range(1, 13))], dtype=object)
    n_samples = 24


def _covariates(case: Case, folder: Path, out: Path) -> None:
    (name,) = case.files
    samples: Any = _Samples()
    frame = read_covariates(folder / name, case.settings["id_columns"], samples, "the model", lambda head, text: None)
    assert frame.index.isin(samples.sample_ids).all()


def _make_store(rng: random.Random) -> Case:
    name = rng.choice(list(seeds.stores()))
    content = seeds.stores()[name]
    if name.endswith(".json") and rng.random() < 0.6:
        return Case({name: json.dumps(mutated_json(json.loads(content), rng)).encode()})
    return Case({name: mutated(content, rng, list(seeds.stores().values()))})


def _open_store(case: Case, folder: Path, out: Path) -> None:
    """Open existing results, and append to them."""
    ((name, content),) = case.files.items()
    if name.endswith(".csv"):
        path = out / name
        path.write_bytes(content)
        store: Any = PaperStore(path, __version__) if name == "paper.csv" else LeagueStore(path, __version__, 10.0)
        store.done()
        store.add(store.records[:1])
    elif name == "bench.json":
        (out / "run.json").write_bytes(content)
        run = RunFile(out)
        run.describe("x", 1, 1)
        run.unchanged("f")
    else:
        (out / "there").mkdir()
        (out / "there" / "run.json").write_bytes(content)
        read_record(out / "there")
        with results_folder(out / "there", force=True) as new:
            (new / "labels.csv").write_text("id,label\n")


def _make_checkpoint(rng: random.Random) -> Case:
    parts = dict(seeds.checkpoint_parts())
    hurt = rng.choice(list(parts))
    return Case({**parts, hurt: mutated(parts[hurt], rng, list(parts.values()))})


@cache
def _expected() -> list[int]:
    return list(seeds.fitted().labels_.tolist())


def _resume(case: Case, folder: Path, out: Path) -> None:
    """Resume from a damaged checkpoint; check that the result is the same as without one."""
    (out / "kept").mkdir()
    for name, content in case.files.items():
        (out / "kept" / name).write_bytes(content)
    assert seeds.fitted(out / "kept").labels_.tolist() == _expected(), "other labels"


TARGETS: dict[str, Target] = {
    "text tables": Target(0.32, _make_file(seeds.texts), _read),
    "joins": Target(0.10, _make_join, _join),
    "covariates": Target(0.08, _make_covariates, _covariates),
    ".npy": Target(0.08, _make_file(seeds.arrays, ".npy"), _read_arrays),
    ".npz": Target(0.12, _make_file(seeds.arrays, ".npz"), _read_arrays),
    ".mat": Target(0.06, _make_file(seeds.mat_files), _read_arrays),
    ".parquet and .feather": Target(0.03, _make_file(seeds.table_files), _read),
    "Excel": Target(0.01, _make_file(seeds.workbooks), _read),
    "R": Target(0.01, _make_file(seeds.r_files), _read),
    "HDF5": Target(0.01, _make_file(seeds.hdf5_files), _read),
    ".gapview": Target(0.11, _make_file(seeds.models), _load_model),
    "checkpoints": Target(0.02, _make_checkpoint, _resume),
    "results taken up": Target(0.049, _make_store, _open_store),
    "reports": Target(0.001, lambda rng: Case({}, make_page(rng)), run_page),
}
