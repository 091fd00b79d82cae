"""``gapview-lab omics batches``: types of cells and donors in mosaic data, with and without batch correction."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

from gapview import BridgedGRMF, Views, __version__
from gapview.errors import DataFileError, MissingExtraError, extra
from gapview.metrics import batch_mixing
from gapview.utils.storage import make_folder
from gapview.utils.types import Array

from ..common.console import data_option, results_option

__all__ = ["batches", "normalised"]

FIELDS = ("method", "seed", "ari", "nmi", "ari_donors", "mixing", "seconds", "processor_seconds")
_N_AXES = 30


@click.command(short_help="Write results/omics/batches.csv and batches.md.")
@results_option("results/omics")
@data_option("omics/pbmc_mosaic.h5mu", required=True)
@click.option("--seeds", default=3, show_default=True, help="Random seeds.")
def batches(output: Path, data_dir: Path, seeds: int) -> None:
    """Cluster cells of four donors, of which one has RNA alone and one proteins alone, in eight groups."""
    make_folder(output)
    views, types, donors = normalised(data_dir / "omics" / "pbmc_mosaic.h5mu")
    n_groups, rows = len(np.unique(types)), []
    for seed in range(seeds):
        for name, run in _methods(views, donors, n_groups, seed):
            begin = perf_counter(), process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                labels, points = run()
            taken = perf_counter() - begin[0], process_time() - begin[1]
            scores = _scores(labels, points, types, donors)
            rows.append({"method": name, "seed": seed, **scores, **dict(zip(FIELDS[-2:], taken, strict=True))})
            click.echo(f"{name}, seed {seed}: ARI {scores['ari']:.3f}, mixing {scores['mixing']:.3f}")
    with (output / "batches.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{v:.4f}" if isinstance(v, float) else v for key, v in row.items()} for row in rows)
    (output / "batches.md").write_text(_page(rows, seeds))


def normalised(path: Path) -> tuple[Views, Array, Array]:
    """Return log-normalised RNA and centred log-ratios of proteins, the types of the cells and their donors."""
    mudata = extra("mudata", "omics", "Reading a MuData file")
    if not path.exists():
        raise DataFileError(f"{path.name!r} is not in the folder of data. Give the folder with --data-dir.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = mudata.read_h5mu(path)
    frames = {}
    for name, table in data.mod.items():
        counts = table.to_df().astype(np.float64)
        if name == "rna":
            totals = counts.sum(axis=1)
            frames[name] = np.log1p(counts.div(totals, axis=0) * totals.median())
        else:
            logs = np.log1p(counts)
            frames[name] = logs.sub(logs.mean(axis=1), axis=0)
    views = Views(frames)
    known = data.obs.loc[views.sample_ids]
    return views, known["celltype"].astype(str).to_numpy(), known["batch"].astype(str).to_numpy()


def _methods(
    views: Views, donors: Array, n_groups: int, seed: int
) -> Iterator[tuple[str, Callable[[], tuple[Array, Array]]]]:
    """Yield names, and functions that return groups and the points in which mixing is measured."""

    def ours(**settings: Any) -> Callable[[], tuple[Array, Array]]:
        def run() -> tuple[Array, Array]:
            model = BridgedGRMF(n_groups, random_state=seed, **settings).fit(views, batch=donors)
            return model.labels_, model.latent_points(model.embedding_)

        return run

    yield "gapview", ours()
    yield "gapview, harmony", ours(batch_correction="harmony")
    yield "gapview, leiden", ours(assign="leiden")
    yield "gapview, harmony, leiden", ours(batch_correction="harmony", assign="leiden")
    yield "imputed + k-means", lambda: _of_points(_imputed(views), n_groups, seed)
    yield "imputed + Harmony + k-means", lambda: _of_points(_harmony(_imputed(views), donors, seed), n_groups, seed)


def _imputed(views: Views) -> Array:
    """Return principal components of standardised views, completed by the nearest cells."""
    tables = []
    for k, matrix in enumerate(views.matrices):
        table = np.full((views.n_samples, matrix.shape[1]), np.nan)
        table[views.rows(k)] = StandardScaler().fit_transform(np.asarray(matrix))
        tables.append(table)
    filled = KNNImputer(n_neighbors=10).fit_transform(np.hstack(tables))
    return np.asarray(PCA(_N_AXES, random_state=0).fit_transform(filled))


def _harmony(points: Array, donors: Array, seed: int) -> Array:
    """Return points corrected by harmonypy, which is GPL and is not installed with gapview or its lab."""
    try:
        harmonypy = import_module("harmonypy")
    except ImportError:
        raise MissingExtraError("harmonypy", "harmony", "Harmony as a rival", "gapview-lab") from None
    frame = extra("pandas", "tables", "The table of donors").DataFrame({"donor": donors})
    found = np.asarray(harmonypy.run_harmony(points, frame, "donor", random_state=seed, verbose=False).Z_corr)
    return found if found.shape == points.shape else found.T


def _of_points(points: Array, n_groups: int, seed: int) -> tuple[Array, Array]:
    return KMeans(n_groups, n_init=10, random_state=seed).fit_predict(points), points


def _scores(labels: Array, points: Array, types: Array, donors: Array) -> dict[str, float]:
    return {
        "ari": float(adjusted_rand_score(types, labels)),
        "nmi": float(normalized_mutual_info_score(types, labels)),
        "ari_donors": float(adjusted_rand_score(donors, labels)),
        "mixing": batch_mixing(points, donors),
    }


def _page(rows: list[dict[str, Any]], seeds: int) -> str:
    lines = [
        "# Batches\n",
        f"Written by `gapview-lab omics batches` with gapview {__version__}. `pbmc_mosaic.h5mu`: 1600 blood cells of "
        "four donors, of which one has RNA alone, one proteins alone, and two both; eight types of cells. RNA is "
        "log-normalised, proteins are centred log-ratios. Every method makes eight groups, without labels. Means over "
        f"{seeds} random seeds. *ARI, NMI*: with the types of the cells. *Donors*: ARI with the donors. *Mixing*: "
        "median iLISI of the donors with perplexity 30, scaled to [0, 1], in the representation in which groups are "
        "found. *Imputed*: `KNNImputer` on standardised features, 30 principal components. Harmony is `harmonypy`. "
        "Seconds: on the clock, and of processor time, the choice of all settings included.\n",
        "| method | ARI | smallest | NMI | donors | mixing | seconds | processor |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        mean = {key: float(np.mean([row[key] for row in own])) for key in FIELDS[2:]}
        least = min(row["ari"] for row in own)
        figures = [mean["ari"], least, mean["nmi"], mean["ari_donors"], mean["mixing"]]
        seconds = f"{mean['seconds']:.0f} | {mean['processor_seconds']:.0f}"
        lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in figures) + f" | {seconds} |")
    return "\n".join(lines) + "\n"
