"""``gapview-lab encoder``: neural encoders and networks in place of discriminants, compared with BridgedGRMF.

Labels score, and train nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time

import click
import numpy as np
import sklearn

from gapview import __version__
from gapview.choice.selection import best_groups
from gapview.metrics import clustering_scores
from gapview.utils.storage import make_folder
from gapview.utils.types import Array
from gapview.views import Views

from ..common.console import data_option
from .bridged import middle_cells
from .choices import LARGEST, Row, by_data, gather, left_out, mean
from .data import find_sources
from .networks import Fit, encode, load_torch, new_mlp_classifier, new_network, train_in_rounds

__all__ = ["encoder"]

SCORES = {"accuracy": "ACC", "nmi": "NMI", "ari": "ARI"}
FIELDS = ("data", "rate", "seed", "way", *SCORES, "seconds")
DEFAULT, CODES = "BridgedGRMF (**the default**)", "codes of the default"
KMEANS, REFINED, MORE = ", k-means", ", refined", ", one more start of the default"
N_STARTS = 5  # groupings from which the default refines
# What an encoder is trained for, and the steps of the random walks whose ends it compares
ENCODERS: dict[str, tuple[str, int]] = {
    "contrast with neighbours": ("contrast", 1),  # tell the other end from other samples (InfoNCE)
    "contrast, walks of 4 steps": ("contrast", 4),
    "Barlow Twins with neighbours": ("decorrelate", 1),  # make both ends equal, and the outputs uncorrelated
    "reconstruction of smoothed rows": ("reconstruct", 0),  # of all views, also of those that a sample lacks
}
CLASSIFIERS = {
    "network instead of discriminants (PyTorch)": new_network,
    "network instead of discriminants (scikit-learn)": new_mlp_classifier,
}


@click.command(
    short_help="Write results/encoder.md.",
    epilog="Example: gapview-lab encoder --data-dir data results/encoder > results/encoder.md",
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@data_option("the data sets of the league", required=True)
def encoder(folder: Path, data_dir: Path) -> None:
    """Compare neural encoders with BridgedGRMF, and print a page of Markdown. Needs PyTorch.

    Measured figures go to a file in FOLDER; those that are there are not measured again. Small data come first.
    """
    load_torch()
    make_folder(folder)
    found = find_sources(data_dir, lambda text: click.echo(text, err=True))
    real = sorted((own for own in found if own.path and own.size <= LARGEST), key=lambda own: own.size)
    sources = [replace(source, rates=(cell.rate,)) for source, cell in middle_cells(real)]
    _write(gather(folder / "ways.csv", FIELDS, sources, try_ways))


def try_ways(views: Views, target: Array, seed: int) -> Iterator[Row]:
    """Cluster views by the default, by encoders and by self-training."""
    begin = process_time()

    def scored(way: str, labels: Array) -> Row:
        scores = clustering_scores(target, labels)
        return {"way": way, **{name: scores[name] for name in SCORES}, "seconds": round(process_time() - begin, 2)}

    fit = Fit.of(views, len(np.unique(target)), seed)
    model, starts = fit.model, best_groups(fit.model.selection_, N_STARTS)
    yield scored(DEFAULT, model.labels_)
    codes = fit.groups(model.latent_points(model.embedding_))
    for name, objective in [(CODES, None), *ENCODERS.items()]:
        begin = process_time()
        labels = codes if objective is None else fit.groups(encode(fit, *objective))
        yield scored(name + KMEANS, labels)
        refined = fit.refined([labels])
        yield scored(name + REFINED, labels if refined is None else refined)
        refined = fit.refined([*starts, labels])
        yield scored(name + MORE, model.labels_ if refined is None else refined)
    for name, new_classifier in CLASSIFIERS.items():  # where discriminants are refused, so are networks
        begin = process_time()
        yield scored(name, train_in_rounds(fit, codes, new_classifier) if model.refined_ else model.labels_)


def _write(rows: list[Row]) -> None:
    ways = list(dict.fromkeys(row["way"] for row in rows))
    tables = {score: {way: _of_way(rows, way, score) for way in ways} for score in (*SCORES, "seconds")}
    accuracy = tables["accuracy"]
    names = list(accuracy[DEFAULT])
    click.echo("# Neural encoders\n")
    click.echo(
        f"Written by `gapview-lab encoder` with gapview {__version__}, PyTorch {load_torch().__version__}, "
        f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}: {len(names)} data sets at the middle "
        "one of their rates in the league, one seed. Figures are percent, averaged over data sets; differences are "
        "those to the default. Seconds are processor time on the data set that takes longest; those of encoders and "
        "networks come on top of the default fit.\n\n"
        "Networks and discriminants never use labels; the table does, to compare.\n"
    )
    click.echo("| | ACC | NMI | ARI | ACC, difference | data sets better / worse by more than 1 | seconds |")
    click.echo("|---|---|---|---|---|---|---|")
    for way in ways:
        means = " | ".join(f"{mean(tables[score][way]):.1f}" for score in SCORES)
        gains = [accuracy[way][name] - accuracy[DEFAULT][name] for name in names]
        better, worse = sum(gain > 1 for gain in gains), sum(gain < -1 for gain in gains)
        longest = max(tables["seconds"][way].values()) / 100
        click.echo(f"| {way} | {means} | {np.mean(gains):+.1f} | {better} / {worse} | {longest:.1f} |")
    for score, word in SCORES.items():
        click.echo(
            f"\nLeave one data set out, {word}: what is best on all others has {left_out(tables[score]):.1f} on the "
            f"one left out, averaged over data sets; the default has {mean(tables[score][DEFAULT]):.1f}."
        )
    shown = [way for way in ways if not way.endswith((KMEANS, MORE))]
    click.echo(f"\n| ACC / NMI | {' | '.join(shown)} |\n|---|{'---|' * len(shown)}")
    for name in names:
        values = [f"{accuracy[way][name]:.1f} / {tables['nmi'][way][name]:.1f}" for way in shown]
        click.echo(f"| {name} | {' | '.join(values)} |")


def _of_way(rows: list[Row], way: str, score: str) -> dict[str, float]:
    return by_data({(row["data"], row["rate"], row["seed"]): float(row[score]) for row in rows if row["way"] == way})
