"""``gapview-lab refinement``: how much the refinement of groups is worth, and how much its constants matter."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import numpy as np
import sklearn

from gapview import BridgedGRMF, __version__
from gapview import refinement as discriminants
from gapview.backends.memory import MemoryBackend
from gapview.choice.candidates import list_candidates
from gapview.choice.representation import IterationLimits, prepare, represent
from gapview.clusters import cluster_parts
from gapview.metrics import clustering_scores
from gapview.utils.storage import make_folder
from gapview.utils.types import Array
from gapview.views import Views

from ..common.console import data_option
from .bridged import middle_cells
from .choices import LARGEST, Row, by_data, gather, left_out, mean
from .data import find_sources

__all__ = ["refinement"]

FIELDS = ("data", "rate", "seed", "change", "accuracy", "nmi")
KEPT, OURS = "groups as k-means finds them", "refined (**the default**)"
# Constants of gapview.refinement
CHANGES: dict[str, dict[str, Any]] = {
    OURS: {},
    "whether views agree or not": {"_AGREE": -1.0},
    "only if views agree, kappa ≥ 0.7": {"_AGREE": 0.7, "_EXPLAIN": 2.0},
    "linear discriminants for any number of samples": {"_MANY_SAMPLES": 10**9},
    "a kernel for any number of samples": {"_MANY_SAMPLES": 0},
    "25 axes": {"_N_AXES": 25},
    "100 axes": {"_N_AXES": 100},
    "covariance shrunk by 0.05": {"_SHRINKAGE": 0.05},
    "covariance shrunk by 0.5": {"_SHRINKAGE": 0.5},
    "12 rounds": {"_N_ROUNDS": 12, "_N_AVERAGED": 6},
    "a kernel half as wide": {"_DECAY": 4.0},
    "600 landmarks, 200 directions": {"_N_LANDMARKS": 600, "_N_DIRECTIONS": 200},
    "scores not sharpened": {"_SHARPNESS": (1.0,)},
    "no neighbours in the last step": {"N_WALKS": 0},
}


@click.command(
    short_help="Write results/refinement.md.",
    epilog="Example: gapview-lab refinement --data-dir data results/refinement > results/refinement.md",
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@data_option("the data sets of the league", required=True)
def refinement(folder: Path, data_dir: Path) -> None:
    """Compare groups with and without refinement, with one constant changed at a time, and print a page of Markdown.

    Measured figures go to a file in FOLDER; those that are there are not measured again.
    """
    make_folder(folder)
    found = find_sources(data_dir, lambda text: click.echo(text, err=True))
    small = [source for source in found if source.size <= LARGEST]
    sources = [replace(source, rates=(cell.rate,)) for source, cell in middle_cells(small)]
    _write(gather(folder / "changes.csv", FIELDS, sources, try_changes))


def try_changes(views: Views, target: Array, seed: int) -> Iterator[Row]:
    """Refine the groups of the fixed setting with each of the changes."""
    n_clusters = len(np.unique(target))
    setting = list_candidates(BridgedGRMF(n_clusters, selection="fixed"), views, views, n_clusters)[0]
    backend = MemoryBackend(views)
    prepared = prepare(backend, setting.scales, setting.n_neighbors, (1.0,) * views.n_views)
    points = represent(prepared, setting, IterationLimits(200, 1e-5)).points
    labels = cluster_parts(points, backend.parts, n_clusters, np.random.RandomState(seed)).labels
    present = [views.rows(k) for k in range(views.n_views)]
    graph = prepared.graphs["both"]
    yield _scored(KEPT, target, labels)
    for change, constants in CHANGES.items():
        with patch.dict(vars(discriminants), constants):
            trained = discriminants.refine(
                backend.scaled, views, graph, [labels], backend.parts, prepared.explained, seed
            )
            if trained.discriminants is None:
                yield _scored(change, target, labels)
                continue
            shares = trained.discriminants.shares(backend.scaled, present, views.n_samples)
            walked = discriminants.walk(shares, discriminants.transition_of(graph))
            yield _scored(change, target, walked.argmax(axis=1))


def _scored(change: str, target: Array, labels: Array) -> Row:
    scores = clustering_scores(target, labels)
    return {"change": change, "accuracy": scores["accuracy"], "nmi": scores["nmi"]}


def _write(rows: list[Row]) -> None:
    tables = {score: _by_change(rows, score) for score in ("accuracy", "nmi")}
    names = list(tables["accuracy"][OURS])
    click.echo("# Refinement of groups\n")
    click.echo(
        f"Written by `gapview-lab refinement` with gapview {__version__}, numpy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}, Python {platform.python_version()}: {len(names)} data sets at the middle one "
        'of their rates in the league, one seed. The groups are those of `BridgedGRMF(selection="fixed")`, refined by '
        "all samples. Figures are percent, averaged over data sets; differences are those to the first row.\n\n"
        "Discriminants and rounds never use labels; the table does, to compare. Constants were chosen with most of "
        "these data in sight, so that the rows are optimistic; the figures left out below are less so.\n"
    )
    click.echo("| | ACC | NMI | largest loss of ACC on a data set | data sets that lose more than 1 |")
    click.echo("|---|---|---|---|---|")
    kept = {score: tables[score][KEPT] for score in tables}
    click.echo(f"| {KEPT} | {mean(kept['accuracy']):.1f} | {mean(kept['nmi']):.1f} | | |")
    for change in CHANGES:
        own = tables["accuracy"][change]
        losses = {name: kept["accuracy"][name] - own[name] for name in names}
        gains = [mean(tables[score][change]) - mean(kept[score]) for score in tables]
        click.echo(
            f"| {change} | {gains[0]:+.1f} | {gains[1]:+.1f} | {max(losses.values()):.1f} | "
            f"{sum(loss > 1 for loss in losses.values())} of {len(names)} |"
        )
    for score, word in (("accuracy", "ACC"), ("nmi", "NMI")):
        found = left_out(tables[score])
        click.echo(
            f"\nLeave one data set out, {word}: what is best on all others has {found:.1f} on the one left out, "
            f"averaged over data sets; the default has {mean(tables[score][OURS]):.1f}, groups that are kept "
            f"{mean(kept[score]):.1f}."
        )
    click.echo("\n| data set | ACC / NMI kept | refined |\n|---|---|---|")
    for name in names:
        shown = [f"{tables['accuracy'][c][name]:.1f} / {tables['nmi'][c][name]:.1f}" for c in (KEPT, OURS)]
        click.echo(f"| {name} | {shown[0]} | {shown[1]} |")


def _by_change(rows: list[Row], score: str) -> dict[str, dict[str, float]]:
    return {
        change: by_data({(r["data"], r["rate"], r["seed"]): float(r[score]) for r in rows if r["change"] == change})
        for change in (KEPT, *CHANGES)
    }
