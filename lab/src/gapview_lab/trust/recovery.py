"""``gapview-lab trust recovery``: recovered views against their true values, beside plain scikit-learn pipelines."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import click
import numpy as np
from scipy import sparse
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gapview import BridgedGRMF, Views, __version__
from gapview.datasets import hide_views
from gapview.errors import GapviewWarning
from gapview.graph.regression import explained_share
from gapview.io import read_table
from gapview.utils.storage import make_folder
from gapview.utils.types import Array, Matrix

from ..common.console import data_option, results_option
from ..league.bridged import middle_cells
from ..league.data import find_sources, hidden, load

__all__ = ["compare", "recovery"]

DATA = ("tcga_brca_mixomics", "msrcv1", "handwritten_2v", "handwritten_6v", "bbcsport_2v", "wikipedia", "scene15")
N_SEEDS = {"tcga_brca_mixomics": 3, "coread": 3}  # one otherwise
COREAD_RATE = 0.3
OURS = ("auto", "knn", "ridge", "neighbors", "bridge", "blend")
THEIRS = ("KNNImputer", "RidgeCV")
FIELDS = ("data", "seed", "view", "method", *OURS, *THEIRS, "expected", "seconds")


@click.command(short_help="Write results/trust/recovery.csv and recovery.md.")
@results_option("results/trust")
@data_option("the data sets of the league", required=True)
@click.option("--data", "names", multiple=True, help="Data sets; by default those of the page.")
def recovery(output: Path, data_dir: Path, names: Sequence[str]) -> None:
    """Hide views, recover them, and compare R² with that of RidgeCV, KNNImputer and the mean."""
    make_folder(output)
    rows: list[dict[str, Any]] = []
    for name, seed, given, whole, n_clusters in _problems(data_dir, names or (*DATA, "coread")):
        found = [{"data": name, "seed": seed} | row for row in compare(given, whole, n_clusters, seed)]
        rows += found
        click.echo(f"{name}, seed {seed}: {len(found)} views")
    with (output / "recovery.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{v:.4f}" if isinstance(v, float) else v for key, v in row.items()} for row in rows)
    (output / "recovery.md").write_text(_page(rows))


def _problems(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, int, Views, Views, int]]:
    """Yield each data set at its middle rate: views with some hidden, and the same samples with all they have."""
    for source, cell in middle_cells(find_sources(folder, lambda text: click.echo(text, err=True))):
        if source.name in names:
            loaded = load(source.name, source.path)
            for seed in range(N_SEEDS.get(source.name, 1)):
                given, target = hidden(loaded, cell, seed)
                place = {sample: i for i, sample in enumerate(loaded.data.views.sample_ids.tolist())}
                whole = loaded.data.views[np.array([place[sample] for sample in given.sample_ids.tolist()])]
                yield cell.text, seed, given, whole, len(np.unique(target))
    if "coread" in names and (folder / "omics" / "coread").is_dir():
        files = sorted(path for path in (folder / "omics" / "coread").glob("*.csv") if path.stem != "subtypes")
        tables = {path.stem: read_table(path).T for path in files}
        whole = Views({name: frame.loc[:, frame.std() > 0] for name, frame in tables.items()})
        for seed in range(N_SEEDS["coread"]):
            yield (
                f"coread, {COREAD_RATE:.0%} missing",
                seed,
                hide_views(whole, COREAD_RATE, random_state=seed),
                whole,
                4,
            )


def compare(given: Views, whole: Views, n_clusters: int, seed: int) -> list[dict[str, Any]]:
    """Return R² of every method for each view from which rows were hidden, against their true values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GapviewWarning)
        model = BridgedGRMF(n_clusters, selection="fixed", random_state=seed).fit(given.in_arrays(keep_sparse=True))
        begin = process_time()
        scores = model.recovery_scores()
        seconds = process_time() - begin
        ours = {way: _listed(model.recover(method=way)) for way in OURS}
    rows = []
    for k, name in enumerate(given.names):
        lost = whole.mask[:, k] & ~given.mask[:, k]
        if not lost.any():
            continue
        truth = whole.matrices[k][lost[whole.mask[:, k]]]
        guesses = {way: matrices[k][lost] for way, matrices in ours.items()} | _by_others(given, k, lost)
        r2 = {way: explained_share(truth, guess, given.matrices[k]) for way, guess in guesses.items()}
        one = scores.views[k]
        rows.append({"view": name, "method": one.method, **r2, "expected": one.best_r2, "seconds": seconds})
    return rows


def _by_others(given: Views, view: int, lost: Array) -> dict[str, Array]:
    """Return hidden rows by pipelines that a user of scikit-learn would write."""
    tables = [np.full((given.n_samples, m), np.nan) for m in given.n_features]
    for k, matrix in enumerate(given.matrices):
        tables[k][given.rows(k)] = _dense(matrix)
    others = np.hstack([table for k, table in enumerate(tables) if k != view])
    known = given.mask[:, view] & ~np.isnan(others).all(axis=1)
    filled = SimpleImputer(keep_empty_features=True)
    ridge = make_pipeline(filled, StandardScaler(), RidgeCV(np.logspace(-2, 5, 15)))
    ridge.fit(others[known], tables[view][known])
    scaled = StandardScaler().fit(np.hstack([others, tables[view]]))
    complete = KNNImputer(keep_empty_features=True).fit_transform(scaled.transform(np.hstack([others, tables[view]])))
    complete = scaled.inverse_transform(complete)[:, others.shape[1] :]
    return {"KNNImputer": complete[lost], "RidgeCV": ridge.predict(others[lost])}


def _dense(matrix: Matrix) -> Array:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def _listed(recovered: Any) -> list[Matrix]:
    return list(recovered.values()) if isinstance(recovered, dict) else list(recovered)


def _page(rows: Sequence[dict[str, Any]]) -> str:
    """Return the page: means over views and seeds for each data set, best in bold, and where auto is not the best."""
    columns = (*OURS, *THEIRS, "expected")
    lines = [
        "# Recovered views\n",
        f"Written by `gapview-lab trust recovery` with gapview {__version__}; `BridgedGRMF(selection='fixed')`. R² of "
        "hidden rows against their true values: 1 − squared error / squared error of the mean of the view, features "
        "standardised unless mostly zero; the mean has 0. Averaged over views and seeds (splits). *auto* is what "
        "`recover()` does; *expected* is the R² that `recovery_scores()` reports for it without the true values. "
        "`KNNImputer` (5 neighbours) and `RidgeCV` (missing predictors at their mean) are scikit-learn's, on "
        "standardised features of the other views. Seconds: processor time of `recovery_scores()`.\n",
        "| data | views × seeds | " + " | ".join(columns) + " | seconds |",
        "|---|---|" + "---|" * (len(columns) + 1),
    ]
    for name in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == name]
        means = {column: float(np.mean([row[column] for row in own])) for column in columns}
        best = max(means[column] for column in (*OURS, *THEIRS))
        cells = [f"**{m:.3f}**" if m == best and c != "expected" else f"{m:.3f}" for c, m in means.items()]
        seconds = np.mean([row["seconds"] for row in own])
        lines.append(f"| {name} | {len(own)} | " + " | ".join(cells) + f" | {seconds:.1f} |")
    worse = [row for row in rows if row["auto"] < max(row[way] for way in (*OURS[1:], *THEIRS)) - 0.01]
    lines += [f"\nViews where *auto* is more than 0.01 below the best of the others: {len(worse)} of {len(rows)}.\n"]
    if worse:
        lines += ["| data | seed | view | auto | its method | best | R² of the best |", "|---|---|---|---|---|---|---|"]
    for row in worse:
        way = max((*OURS[1:], *THEIRS), key=lambda name: row[name])
        numbers = f"{row['auto']:.3f} | {row['method']} | {way} | {row[way]:.3f}"
        lines.append(f"| {row['data']} | {row['seed']} | {row['view']} | {numbers} |")
    return "\n".join(lines) + "\n"
