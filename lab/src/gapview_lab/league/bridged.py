"""``gapview-lab bridged``: cost of BridgedGRMF; its confidence, number of groups, predictions and recovered views.

Labels are used to score only. ``gapview-lab league`` compares its accuracy with that of other methods.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import click
import numpy as np
import sklearn
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF, BridgedGRMF, __version__
from gapview.estimators.latent import N_LATENT_NEIGHBORS
from gapview.estimators.predict import predict_labels, project
from gapview.metrics import clustering_accuracy
from gapview.utils.types import Array, Matrix
from gapview.views import Views

from ..common.console import data_option
from .data import LeagueCell, Source, find_sources, hidden, load

__all__ = ["bridged"]

N_SEEDS = 1
LARGEST = 5_000_000  # samples × features


@click.command(
    short_help="Write results/bridged.md.",
    epilog="Example: gapview-lab bridged --data-dir data > results/bridged.md",
)
@data_option("the data sets of the league", required=True)
def bridged(data_dir: Path) -> None:
    """Measure cost, confidence, predictions and recovered views of BridgedGRMF, and print a page of Markdown."""
    found = find_sources(data_dir, lambda text: click.echo(text, err=True))
    sources = [source for source in found if source.size <= LARGEST]
    click.echo("# BridgedGRMF: cost, trust, new samples\n")
    click.echo(
        f"Written by `gapview-lab bridged` with gapview {__version__}, numpy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}, Python {platform.python_version()} on {os.cpu_count()} cores. {N_SEEDS} seed(s) "
        "(folds) for each rate; rates and ways of hiding views are those of the league. Labels score, and choose "
        "nothing.\n"
    )
    cost(sources)
    confidence(sources)
    number_of_groups(sources)
    new_samples(sources)
    recovery(sources)


def middle_cells(sources: list[Source]) -> Iterator[tuple[Source, LeagueCell]]:
    """Yield one cell for each data set, at its middle rate."""
    for source in sources:
        yield source, source.cells[len(source.cells) // 2]


def cost(sources: list[Source]) -> None:
    click.echo("## What the choice costs\n")
    click.echo(
        'Seconds of processor time for a fit with settings chosen (`selection="auto"`, views weighed) and with one '
        'setting (`selection="fixed"`), the better of two runs each, after each other in the same process.\n'
    )
    click.echo("| data | chosen | fixed | ratio |\n|---|---|---|---|")
    for source, cell in middle_cells(sources):
        views, target = hidden(load(source.name, source.path), cell, 0)
        times = {}
        for selection in ("auto", "fixed"):
            spent = []
            for _ in range(2):
                begin = process_time()
                BridgedGRMF(len(np.unique(target)), selection=selection, random_state=0).fit(views)
                spent.append(process_time() - begin)
            times[selection] = min(spent)
        ratio = times["auto"] / times["fixed"]
        click.echo(f"| {cell.text} | {times['auto']:.2f} | {times['fixed']:.2f} | {ratio:.1f} |")


def confidence(sources: list[Source]) -> None:
    click.echo("\n## Confidence\n")
    click.echo(
        "Accuracy over all samples and over the half with the highest `confidence_`, and the rank correlation of "
        "confidence with how often a sample stays in its group when the fit is repeated on 80 % of the samples (5 "
        "times).\n"
    )
    click.echo("| data | all | confident half | difference | rank correlation with resampling |\n|---|---|---|---|---|")
    for source in sources:
        for cell in source.cells:
            found = []
            for seed in range(N_SEEDS):
                views, target = hidden(load(source.name, source.path), cell, seed)
                model = BridgedGRMF(len(np.unique(target)), selection="fixed", random_state=seed).fit(views)
                half = np.argsort(-model.confidence_, kind="stable")[: len(target) // 2]
                stays = model.cluster_stability(n_resamples=5, random_state=seed).stays if seed == 0 else None
                found.append(
                    (
                        _matched_share(target, model.labels_, slice(None)),
                        _matched_share(target, model.labels_, half),
                        np.nan if stays is None else _rank_correlation(stays, model.confidence_),
                    )
                )
            every, best, rank = np.nanmean(found, axis=0)
            click.echo(f"| {cell.text} | {every:.1f} | {best:.1f} | {best - every:+.1f} | {rank:.2f} |")


def _matched_share(target: Array, labels: Array, chosen: slice | Array) -> float:
    """Return the accuracy of some samples, under the best matching of groups and classes for all samples."""
    classes, known = np.unique(target, return_inverse=True)
    table = np.zeros((labels.max() + 1, len(classes)))
    np.add.at(table, (labels, known), 1)
    groups, matched = linear_sum_assignment(-table)
    partner = np.full(labels.max() + 1, -1)
    partner[groups] = matched
    return 100 * float(np.mean((partner[labels] == known)[chosen]))


def _rank_correlation(stays: Array, values: Array) -> float:
    known = np.isfinite(stays)
    if np.ptp(stays[known]) == 0 or np.ptp(values[known]) == 0:
        return np.nan
    return float(spearmanr(stays[known], values[known]).statistic)


def number_of_groups(sources: list[Source]) -> None:
    click.echo('\n## `n_clusters="auto"`\n')
    click.echo("What was suggested for each seed, between 2 and 20.\n")
    click.echo("| data | true | suggested |\n|---|---|---|")
    for source in sources:
        for cell in source.cells:
            found = []
            for seed in range(N_SEEDS):
                views, target = hidden(load(source.name, source.path), cell, seed)
                model = BridgedGRMF("auto", selection="fixed", random_state=seed).fit(views)
                found.append(str(model.cluster_count_.suggested))
            click.echo(f"| {cell.text} | {len(np.unique(target))} | {', '.join(found)} |")


def new_samples(sources: list[Source]) -> None:
    click.echo("\n## New samples\n")
    click.echo(
        "A fifth of the samples is kept out of the fit and predicted: adjusted Rand index with the groups they get if "
        "they are clustered along, through the bridge and by projection alone (Remark 1); and accuracies.\n"
    )
    click.echo(
        "| data | Rand, bridge | Rand, projection | accuracy, bridge | accuracy, projection |\n|---|---|---|---|---|"
    )
    totals = []
    for source, cell in middle_cells(sources):
        found = []
        for seed in range(N_SEEDS):
            views, target = hidden(load(source.name, source.path), cell, seed)
            order = np.random.RandomState(seed).permutation(len(views))
            new, known = np.sort(order[: len(views) // 5]), np.sort(order[len(views) // 5 :])
            make = BridgedGRMF(len(np.unique(target)), selection="fixed", random_state=seed)
            along = make.fit(views).labels_[new]
            make.fit(views[known])
            across = make.predict(views[new])
            by_projection = project(make, views[new], make.view_weights_)
            projected = predict_labels(make, views[new], by_projection, "neighbors", N_LATENT_NEIGHBORS)
            found.append(
                [adjusted_rand_score(along, labels) for labels in (across, projected)]
                + [100 * clustering_accuracy(target[new], labels) for labels in (across, projected)]
            )
        means = np.mean(found, axis=0)
        totals.append(means)
        click.echo(f"| {cell.text} | {means[0]:.2f} | {means[1]:.2f} | {means[2]:.1f} | {means[3]:.1f} |")
    means = np.mean(totals, axis=0)
    click.echo(f"| mean | {means[0]:.2f} | {means[1]:.2f} | {means[2]:.1f} | {means[3]:.1f} |")


def recovery(sources: list[Source]) -> None:
    click.echo("\n## Recovered views\n")
    click.echo(
        "Squared error of hidden rows, as a share of that of filling in the mean of the view; averaged over views. "
        "Data from which nothing was hidden are left out.\n"
    )
    click.echo(
        "| data | bridge | latent neighbours | basis (the paper) | GRMF, latent neighbours |\n|---|---|---|---|---|"
    )
    totals = []
    for source, cell in middle_cells(sources):
        loaded = load(source.name, source.path)
        found = []
        for seed in range(N_SEEDS):
            views, target = hidden(loaded, cell, seed)
            whole = _whole(views, loaded.data.views)
            model = BridgedGRMF(len(np.unique(target)), selection="fixed", random_state=seed).fit(views)
            paper = GRMF(len(np.unique(target)), init="data", random_state=seed).fit(views)
            shares = [_error(model.recover(method=way), views, whole) for way in ("bridge", "neighbors", "basis")]
            found.append([*shares, _error(paper.recover(), views, whole)])
        means = np.nanmean(found, axis=0) if not np.isnan(found).all() else None
        if means is not None:
            totals.append(means)
            click.echo(f"| {cell.text} | " + " | ".join(f"{share:.2f}" for share in means) + " |")
    click.echo("| mean | " + " | ".join(f"{share:.2f}" for share in np.mean(totals, axis=0)) + " |")


def _whole(views: Views, everything: Views) -> Views:
    """Return the same samples in the same order with nothing hidden."""
    place = {sample: i for i, sample in enumerate(everything.sample_ids.tolist())}
    return everything[np.array([place[sample] for sample in views.sample_ids.tolist()])]


def _error(recovered: list[Matrix] | dict[str, Matrix], views: Views, whole: Views) -> float:
    """Return the mean over the views from which rows were hidden; NaN if there is none."""
    shares = []
    for k, matrix in enumerate(recovered.values() if isinstance(recovered, dict) else recovered):
        was_hidden = whole.mask[:, k] & ~views.mask[:, k]
        if was_hidden.any():
            true = _dense(whole.matrices[k])[was_hidden[whole.mask[:, k]]]
            mean = _dense(views.matrices[k]).mean(axis=0)
            shares.append(np.square(_dense(matrix)[was_hidden] - true).sum() / np.square(mean - true).sum())
    return float(np.mean(shares)) if shares else np.nan


def _dense(matrix: Matrix) -> Array:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
