"""A made folder of awkward files: the same blood values in every form that people send them in."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner, Result

from gapview.commands.cli import main
from gapview.datasets import make_views

N_SAMPLES, N_CLUSTERS = 90, 3


@dataclass(frozen=True)
class Awkward:
    """One awkward file, what is typed with it, and what is to come of it."""

    file: str
    content: bytes
    options: tuple[str, ...] = ()
    error: str | None = None  # what the message says; None: it works
    says: tuple[str, ...] = ()  # what is said besides
    ids: Mapping[str, str] = field(default_factory=dict)  # id in the file: id among the true ones, where they differ
    lost: frozenset[str] = frozenset()  # samples that are left out, since they have nothing else
    exact: bool = True  # all values are those of the plain file


@dataclass(frozen=True)
class Folder:
    """What is in the folder besides the awkward files."""

    blood: pd.DataFrame  # the true values, keyed by id
    scans: pd.DataFrame
    target: dict[str, int]  # the true group of every sample


def made() -> Folder:
    """Make two views of samples called 1 to 90, in three clear groups, of which each view lacks some."""
    data = make_views(
        n_samples=N_SAMPLES, n_clusters=N_CLUSTERS, n_features=(6, 8), noise=0.2, missing_rate=0.25, random_state=3
    )
    ids = np.array([str(number) for number in range(1, N_SAMPLES + 1)], dtype=object)
    frames = [
        pd.DataFrame(
            data.views.matrices[k].round(4),
            index=pd.Index(ids[data.views.rows(k)], name="id"),
            columns=[f"{name}_{j}" for j in range(data.views.n_features[k])],
        )
        for k, name in enumerate(("iron", "size"))
    ]
    return Folder(*frames, dict(zip(ids, data.target.tolist(), strict=True)))


def write_plain(folder: Path, truth: Folder) -> list[Path]:
    """Write both views as plain CSV."""
    paths = [folder / "blood.csv", folder / "scans.csv"]
    truth.blood.to_csv(paths[0])
    truth.scans.to_csv(paths[1])
    return paths


def awkward_files(truth: Folder) -> list[Awkward]:
    """Make every awkward form of the file of blood values."""
    blood = truth.blood
    plain = blood.to_csv()
    semicolons = blood.to_csv(sep=";", decimal=",")
    comments = blood.assign(comment=[f"seen on ward {i % 7}: Öhm" for i in range(len(blood))])
    extra = pd.concat([blood, blood.iloc[:5].set_axis([f"x{i}" for i in range(5)], axis=0)]).rename_axis("id")
    gaps = blood.copy()
    gaps.iloc[3, 1] = gaps.iloc[10, 0] = gaps.iloc[11, 4] = np.nan
    repeats = pd.concat([blood, blood.iloc[[4, 9]]])  # about 2 % of the rows
    numbers = blood.set_axis(blood.index.astype(int), axis=0).rename_axis("id")
    fractions = blood.set_axis(blood.index.astype(float), axis=0).rename_axis("id")
    zeros = blood.set_axis([f"{int(key):03d}" for key in blood.index], axis=0).rename_axis("id")
    lost = blood.set_axis([f"other{key}" for key in blood.index], axis=0).rename_axis("id")
    empty = pd.DataFrame(np.nan, index=blood.index, columns=blood.columns)
    return [
        Awkward("comma.csv", plain.encode()),
        Awkward("semicolon.csv", semicolons.encode(), says=("semicolons between fields and a decimal comma",)),
        Awkward("bom.csv", b"\xef\xbb\xbf" + plain.encode()),
        Awkward("excel.csv", ("sep=;\r\n" + semicolons.replace("\n", "\r\n")).encode("utf-8-sig")),
        Awkward("packed.csv.gz", gzip.compress(plain.encode(), mtime=0)),
        Awkward("ward.csv", comments.to_csv(sep=";", decimal=",").encode("cp1252"), says=("Windows-1252", "'comment'")),
        Awkward("tabs.tsv", blood.to_csv(sep="\t").encode()),
        Awkward("numbers.parquet", _parquet(numbers)),
        Awkward("fractions.csv", fractions.to_csv().encode()),
        Awkward("reordered.csv", blood.sample(frac=1, random_state=0).to_csv().encode()),
        Awkward("shuffled_columns.csv", blood[blood.columns[::-1]].to_csv().encode()),
        Awkward("extra.csv", extra.to_csv().encode(), ids={f"x{i}": blood.index[i] for i in range(5)}),
        Awkward(
            "text.csv",
            comments.to_csv().encode(),
            says=("1 column of text of 'text.csv' left out: 'comment'", "--encode"),
        ),
        Awkward("patient.csv", blood.reset_index(names="Patient No").to_csv(index=False).encode()),
        Awkward(
            "strange_id.csv",
            blood.reset_index(names="zz").assign(code=1.5)[["code", "zz", *blood.columns]].to_csv(index=False).encode(),
            options=("--id", "zz", "--id", "id"),
            exact=False,  # the column of codes is a feature
        ),
        Awkward("gaps.csv", gaps.to_csv().encode(), error=r"3 row\(s\).*--partial-rows fill.*--partial-rows drop"),
        Awkward("gaps.csv", gaps.to_csv().encode(), ("--partial-rows", "fill"), says=("3 cells",), exact=False),
        Awkward(
            "gaps.csv",
            gaps.to_csv().encode(),
            ("--partial-rows", "drop"),
            says=("3 cells", "without a row that has all its values left out"),
            lost=frozenset(gaps.index[gaps.isna().any(axis=1)]) - set(truth.scans.index),
            exact=False,
        ),
        Awkward("twice.csv", repeats.to_csv().encode(), error="2 sample ids more than once.*--duplicates first"),
        Awkward("twice.csv", repeats.to_csv().encode(), ("--duplicates", "first"), says=("the first row of each",)),
        Awkward("twice.csv", repeats.to_csv().encode(), ("--duplicates", "mean"), says=("the mean of their rows",)),
        Awkward("empty_view.csv", empty.to_csv().encode(), error="no column of numbers|holds no number"),
        Awkward("no_rows.csv", plain.split("\n")[0].encode(), error="no rows"),
        Awkward("nothing.csv", b"", error="0 bytes"),
        Awkward("zeros.csv", zeros.to_csv().encode(), error="no sample in common.*leading zeros.*--id-pattern zeros"),
        Awkward("lost.csv", lost.to_csv().encode(), error="no sample in common.*'other"),
        Awkward(
            "turned.csv", blood.T.to_csv().encode(), error="46 columns of 'blood' are ids of 'scans'.*--transpose blood"
        ),
        Awkward("no_ids.csv", blood.to_csv(index=False).encode(), error="Rows cannot be matched.*--id"),
        Awkward("workbook.csv", b"PK\x03\x04" + bytes(40), error="a zip archive.*Rename it to end in .npz or .xlsx"),
        Awkward("broken.csv.gz", gzip.compress(plain.encode(), mtime=0)[:200], error="cut off or damaged"),
        Awkward("infinite.csv", plain.replace(str(blood.iloc[0, 0]), "inf", 1).encode(), error="infinity"),
        Awkward("notes.docx", b"hello", error="does not end as a file that can be read"),
    ]


def _parquet(frame: pd.DataFrame) -> bytes:
    content: bytes = frame.to_parquet()
    return content


def run(*arguments: Any, code: int = 0) -> Result:
    """Run a command in this process, and demand its exit code."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def clustered(folder: Path, *arguments: Any) -> Path:
    """Cluster files quickly; return the model."""
    run("cluster", *arguments, "-k", "3", "-o", folder, "--no-report", "--set", "selection=fixed")
    return folder / "model.gapview"


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    """Read a table of results by its ids."""
    with path.open(newline="") as stream:
        return {row["id"]: row for row in csv.DictReader(stream)}


def write_in(folder: Path, suffix: str, frames: Mapping[str, pd.DataFrame]) -> None:
    """Write views in a format: a file for each, or all in one."""
    if suffix in (".h5ad", ".h5mu"):
        _write_omics(folder, suffix, frames)
        return
    for name, frame in frames.items():
        if suffix == ".parquet":
            frame.to_parquet(folder / f"{name}.parquet")
        else:
            np.savez(folder / f"{name}.npz", view_0=frame.to_numpy(), sample_ids=frame.index.to_numpy(dtype=str))


def _write_omics(folder: Path, suffix: str, frames: Mapping[str, pd.DataFrame]) -> None:
    import anndata
    import mudata
    from scipy import sparse

    objects = {
        name: anndata.AnnData(
            sparse.csr_matrix(frame.to_numpy()) if name == "scans" else frame.to_numpy(),
            obs=pd.DataFrame(index=frame.index.astype(str)),
            var=pd.DataFrame(index=list(frame.columns)),
        )
        for name, frame in frames.items()
    }
    if suffix == ".h5mu":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions to come
            mudata.MuData(objects).write(folder / "both.h5mu")
        return
    for name, data in objects.items():
        data.write_h5ad(folder / f"{name}.h5ad")
