"""Small valid files of every kind, and arrays that would run code if they were unpickled."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import savemat

from gapview import GRMF, BridgedGRMF, __version__
from gapview.baselines import Concat
from gapview.datasets import make_views
from gapview.io.workbook_writing import workbook_content
from gapview.persist.checkpoints import Checkpoint, writing_every

from ..league.runs import LeagueRun
from ..paper.methods import as_setting
from ..paper.tasks import PaperRecord

__all__ = [
    "CANARY",
    "arrays",
    "checkpoint_parts",
    "fitted",
    "hdf5_files",
    "mat_files",
    "models",
    "r_files",
    "stores",
    "table_files",
    "texts",
    "trap",
    "workbooks",
]

CANARY = "code-was-run"  # the file that a trap makes in the folder where it is sprung


@dataclass(frozen=True)
class _Trap:
    """Object that writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (CANARY, "w")


@cache
def trap() -> bytes:
    """Return an array of objects as numpy pickles it."""
    sink = io.BytesIO()
    np.save(sink, np.array([_Trap()], dtype=object), allow_pickle=True)
    return sink.getvalue()


def _frame() -> Any:
    import pandas

    rng = np.random.RandomState(0)
    frame = pandas.DataFrame(rng.randn(12, 3).round(3), columns=["iron", "zinc", "größe"])
    frame.iloc[2, 1] = np.nan
    return frame.set_axis(pandas.Index([f"s{row}" for row in range(12)], name="id"), axis=0)


@cache
def texts() -> dict[str, bytes]:
    """Text tables in several dialects and encodings."""
    frame = _frame()
    words = frame.assign(sex=["f", "m"] * 6, seen=["2020-01-02"] * 12, note='say "a, b"')
    numbered = frame.set_axis(range(1, 13), axis=0)
    return {
        "comma.csv": frame.to_csv().encode(),
        "words.csv": words.to_csv().encode(),
        "semicolon.csv": words.to_csv(sep=";", decimal=",").encode("cp1252"),
        "tab.tsv": ("\ufeff" + frame.to_csv(sep="\t", lineterminator="\r\n")).encode(),
        "wide.txt": frame.to_csv(sep="|").encode("utf-16"),
        "spaces.txt": frame.to_csv(sep=" ", na_rep="NA").encode(),
        "bare.csv": frame.to_csv(header=False).encode(),
        "short.txt": frame.to_csv(sep="\t", index_label=False).encode(),
        "titled.csv": b"Results of 2020\n\n" + numbered.to_csv().encode(),
        "packed.csv.gz": gzip.compress(frame.to_csv().encode(), mtime=0),
        "packed.txt.gz": gzip.compress(words.to_csv(sep=";").encode("utf-16"), mtime=0),
        "packed.csv.zst": import_module("pyarrow").Codec("zstd").compress(words.to_csv().encode(), asbytes=True),
    }


@cache
def arrays() -> dict[str, bytes]:
    """Files of numpy."""
    rng = np.random.RandomState(0)
    plain: dict[str, Any] = {"view_0": rng.randn(6, 4), "view_1": rng.randn(6, 2).astype("f4")}
    mask = np.array([[1, 1], [1, 0], [0, 1], [1, 1], [1, 1], [1, 0]])
    about: dict[str, Any] = {
        "mask": mask,
        "y": [0, 0, 1, 1, 2, 2],
        "view_names": ["a", "b"],
        "sample_ids": list("uvwxyz"),
    }
    found = {"one.npy": rng.randn(5, 3), "text.npy": np.array(["a", "b"]), "cube.npy": rng.randint(0, 9, (2, 3, 2))}
    made = {}
    for name, array in found.items():
        np.save(sink := io.BytesIO(), array)
        made[name] = sink.getvalue()
    np.savez(sink := io.BytesIO(), **plain)
    made["plain.npz"] = sink.getvalue()
    np.savez_compressed(sink := io.BytesIO(), **plain, **about)
    return made | {"about.npz": sink.getvalue()}


@cache
def mat_files() -> dict[str, bytes]:
    """MATLAB files in the older formats."""
    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = np.eye(4, 5), sparse.csc_array(np.eye(4, 3))
    named = {"view_0": np.eye(4), "view_1": np.eye(4, 2), "sample_ids": np.array(list("uvwx"), dtype=object)}
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "cells.mat": ({"X": cell, "Y": [[1], [1], [2], [2]]}, {}),
        "packed.mat": (
            {"X": cell, "gt": [[1], [1], [2], [2]], "about": {"a": 1, "b": "text"}},
            {"do_compression": True},
        ),
        "named.mat": (named, {"do_compression": True}),
        "old.mat": ({"a": np.eye(4), "b": np.eye(4, 3)}, {"format": "4"}),
    }
    made = {}
    for name, (contents, options) in found.items():
        savemat(sink := io.BytesIO(), contents, **options)
        made[name] = sink.getvalue()
    return made


@cache
def hdf5_files() -> dict[str, bytes]:
    """HDF5: AnnData, MuData, matrices of 10x, and MATLAB's newer format."""
    import anndata
    import h5py
    import mudata

    frame = _frame().fillna(0)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        dense = anndata.AnnData(frame)
        dense.write_h5ad(folder / "dense.h5ad")
        anndata.AnnData(sparse.csr_matrix(frame), obs=dense.obs).write_h5ad(folder / "sparse.h5ad", compression="gzip")
        mudata.MuData({"rna": dense}).write(folder / "two.h5mu")
        with h5py.File(folder / "tenx.h5", "w") as archive:
            counts, group = sparse.csc_array(np.eye(3, 4)), archive.create_group("matrix")
            for part in ("data", "indices", "indptr", "shape"):
                group[part] = getattr(counts, part)
            group["barcodes"] = np.array(["c0", "c1", "c2", "c3"], dtype="S")
            kinds = ["Gene Expression", "Gene Expression", "Antibody Capture"]
            for part, words in (("id", "xyz"), ("name", "abc"), ("feature_type", kinds)):
                group[f"features/{part}"] = np.array(list(words), dtype="S")
        with h5py.File(folder / "newer.mat", "w") as archive:
            archive["view_0"] = np.eye(4)
            archive.create_dataset("view_1", data=np.ones((5, 4)), compression="gzip", chunks=(2, 2))
        return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@cache
def table_files() -> dict[str, bytes]:
    """Parquet and Feather."""
    import pandas

    frame = _frame()
    words = frame.reset_index().assign(kind=pandas.Categorical(["x", "y", "z"] * 4))
    made = {}
    for codec in ("snappy", "zstd", "gzip"):
        words.to_parquet(sink := io.BytesIO(), compression=codec)
        made[f"{codec}.parquet"] = sink.getvalue()
    frame.to_feather(sink := io.BytesIO())
    made["index.feather"] = sink.getvalue()
    words.to_feather(sink := io.BytesIO(), compression="uncompressed")
    made["plain.arrow"] = sink.getvalue()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first version is no longer advised
        import_module("pyarrow.feather").write_feather(frame.reset_index(), f"{folder}/old.feather", version=1)
        return made | {"old.feather": Path(folder, "old.feather").read_bytes()}


@cache
def workbooks() -> dict[str, bytes]:
    """Workbooks of Excel, with a sheet for each view."""
    frame = _frame().fillna(0).reset_index()
    rows = [frame.columns.tolist(), *frame.to_numpy().tolist()]
    about = [["Results of 2020"], [], *rows, ["mean", "=AVERAGE(B4)", True]]
    return {
        "one.xlsx": workbook_content({"blood": rows}),
        "several.xlsx": workbook_content({"blood": rows, "scans": about, "read me": [["by"], ["us"]]}),
    }


@cache
def r_files() -> dict[str, bytes]:
    """Tables and matrices of R, compressed or not."""
    rdata = import_module("rdata")
    frame = _frame().fillna(0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the encoding is a guess
        rdata.write_rds(f"{folder}/frame.rds", frame.rename_axis(None))
        rdata.write_rds(f"{folder}/plain.rds", frame.reset_index(), compression=None)
        rdata.write_rda(f"{folder}/several.rda", {"blood": frame.reset_index(), "m": np.eye(4), "v": np.ones(3)})
        return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}


@cache
def models() -> dict[str, bytes]:
    """Model files of three methods."""
    views = make_views(12, (4, 3), n_clusters=2, missing_rate=0.3, random_state=0).views
    found: dict[str, Any] = {
        "grmf.gapview": GRMF(2, init="data", random_state=0),
        "bridged.gapview": BridgedGRMF(2, selection="fixed", random_state=0),
        "concat.gapview": Concat(2, n_init=1, random_state=0),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, model in found.items():
            model.fit(views).save(Path(folder) / name)
        return {name: (Path(folder) / name).read_bytes() for name in found}


def fitted(checkpoint: Path | None = None) -> Any:
    """Fit a small model with a checkpoint, or resume from it."""
    views = make_views(12, (4, 3), n_clusters=2, missing_rate=0.3, random_state=0).views
    kept = None if checkpoint is None else Checkpoint(checkpoint, keep=True)
    return GRMF(2, init="data", random_state=0).fit(views, checkpoint=kept)


@cache
def checkpoint_parts() -> dict[str, bytes]:
    """Return the files of a checkpoint: every step of a fit, though it takes no time."""
    with writing_every(0.0, most_share=1e9), tempfile.TemporaryDirectory() as folder:
        fitted(Path(folder) / "kept")
        return {file.name: file.read_bytes() for file in sorted((Path(folder) / "kept").iterdir())}


@cache
def stores() -> dict[str, bytes]:
    """Results of the experiments, and the records of two kinds of runs."""
    setting = as_setting({"max_iter": 2})
    paper = [
        PaperRecord("tables", "buaa", "GRMF", setting, 0.5, fold, accuracy=0.5, seconds=1.0, version=__version__)
        for fold in range(3)
    ]
    paper += [
        PaperRecord("figure5", "buaa", "GRMF", setting, 0.7, 0, iteration=turn, version=__version__) for turn in (1, 2)
    ]
    league = [
        LeagueRun("digits", "0" * 8, "paired", 0.5, seed, "Concat", as_setting({}), 100, version=__version__)
        for seed in range(3)
    ]
    run = {"command": "x", "seconds": 1.0, "peak_memory_mb": 2.0, "files": ["a.html"], "fingerprint": "f", "n_jobs": 1}
    return {
        "paper.csv": _as_csv(paper),
        "league.csv": _as_csv(league),
        "bench.json": json.dumps(run).encode(),
        "run.json": json.dumps({"results": ["labels.csv"], "command": "gapview"}).encode(),
    }


def _as_csv(records: list[Any]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(asdict(records[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(record) for record in records)
    return text.getvalue().encode()
