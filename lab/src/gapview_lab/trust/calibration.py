"""``gapview-lab trust calibration``: whether confidence is the share of resamples that keep a sample.

Every data set is fitted at two rates. ``calibrate`` of the model calibrates the confidence, as ``assess`` and
``gapview cluster`` do; other resamples measure how often each sample is kept. Labels give the number of groups and
nothing else.
"""

from __future__ import annotations

import csv
import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from gapview import BridgedGRMF
from gapview.datasets import hide_views, load_views
from gapview.estimators.assessing import MOST_CALIBRATING, N_CALIBRATING, SHARE
from gapview.report.style import SERIES, SOFT, new_figure
from gapview.trust import calibration_error
from gapview.trust.stability import FEWEST_RESAMPLES
from gapview.utils.storage import make_folder
from gapview.utils.types import Array
from gapview.views import Views

from ..common.console import data_option, listed, results_option
from ..common.figures import figure_files
from ..league.data import LeagueCell, Source, find_sources, hidden, load
from ..omics.batches import normalised
from ..omics.cohorts import read_cohort

__all__ = ["calibration"]

N_TRUE = 50
SEED_USED, SEED_TRUE = 1, 2
N_UNLABELED = 4  # groups of data sets without labels
TARGET_POOLED, TARGET_EACH = 0.05, 0.10
FIELDS = ("data", "rate", "samples", "groups", "resamples", "kept", "plain", "calibrated", "error_plain", "error")
CURVES = {"calibrated": "calibrated_confidence", "plain": "confidence_"}
NOISE = tuple(f"noise-{n_clusters}" for n_clusters in (4, 40, 90))
COHORTS = {"coread": 4, "kirc": 3}  # groups
RATES = (0.0, 0.3)  # of data sets that are not in the league


class Task(NamedTuple):
    """A data set at one rate."""

    name: str
    rate: float
    read: Callable[[], tuple[Views, int]]  # returns the views and the number of groups


class Samples(NamedTuple):
    """What was measured for the samples of a data set at one rate."""

    labels: Array
    plain: Array  # confidence_ of the fit
    calibrated: Array
    kept: Array  # share of the other resamples that keep the sample
    n_drawn: Array  # number of these resamples


@click.command(
    short_help="Compare confidence with how often samples are kept.",
    epilog="Example: gapview-lab trust calibration --data-dir data -o results/trust",
)
@results_option("results/trust")
@data_option("the data sets of the league, with or without labels", required=True)
@click.option("--data", multiple=True, callback=listed, help="Only these data sets, by name, separated by commas.")
@click.option(
    "--resamples", type=click.IntRange(1), default=N_TRUE, show_default=True, help="Resamples that measure the truth."
)
@click.option("--again", is_flag=True, help="Calibrate stored data sets again, and keep what is known of their groups.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
def calibration(output: Path, data_dir: Path, data: tuple[str, ...], resamples: int, again: bool, jobs: int) -> None:
    """Compare confidence, before and after calibration, with how often resamples keep a sample.

    Writes calibration.csv, calibration.md and a picture, of all data sets that are measured or stored in the folder
    samples. Finished data sets are stored there.
    """
    folder = output / "samples"
    make_folder(folder)
    tasks = _tasks(data_dir)
    todo = [
        (task, folder, resamples)
        for task in tasks
        if (not data or task.name in data) and (again or not _file(task, folder).exists())
    ]
    with multiprocessing.get_context("spawn").Pool(min(jobs, max(1, len(todo)))) as pool:
        pool.starmap(_measure, todo, chunksize=1)
    done = [task for task in tasks if _file(task, folder).exists()]
    missing = sorted({task.name for task in tasks} - {task.name for task in done})
    write_results({(task.name, task.rate): read_samples(_file(task, folder)) for task in done}, output, missing)


def _tasks(data_dir: Path) -> list[Task]:
    """Return every data set at its lowest and at its highest rate, files without labels, omics and noise."""
    found = [
        Task(source.name, rate, partial(_read_labeled, source, rate))
        for source in find_sources(data_dir, lambda _: None)
        for rate in sorted({source.rates[0], source.rates[-1]})
    ]
    labeled, folder = {task.name for task in found}, data_dir / "omics"
    others: dict[str, Callable[[], tuple[Views, int]]] = {
        path.stem: partial(_read_unlabeled, path) for path in sorted(data_dir.glob("*.npz")) if path.stem not in labeled
    }
    others |= {name: partial(_read_cohort, name, data_dir) for name in COHORTS if (folder / name).is_dir()}
    if (cells := folder / "pbmc_mosaic.h5mu").exists():
        others["pbmc"] = partial(_read_cells, cells)
    found += [Task(name, rate, partial(_read_hidden, read, rate)) for name, read in others.items() for rate in RATES]
    return found + [Task(name, 0.0, partial(_read_noise, int(name.partition("-")[2]))) for name in NOISE]


def _read_labeled(source: Source, rate: float) -> tuple[Views, int]:
    cell = LeagueCell(source.name, source.hiding, rate)
    views, target = hidden(load(source.name, source.path), cell, 0)
    return views, len(np.unique(target))


def _read_unlabeled(path: Path) -> tuple[Views, int]:
    return load_views(path).views, N_UNLABELED


def _read_cohort(name: str, data_dir: Path) -> tuple[Views, int]:
    return read_cohort(name, data_dir).views, COHORTS[name]


def _read_cells(path: Path) -> tuple[Views, int]:
    views, types, _ = normalised(path)
    return views, len(np.unique(types))


def _read_noise(n_clusters: int) -> tuple[Views, int]:
    rng = np.random.RandomState(7)
    return Views([rng.normal(size=(200, 20)), rng.normal(size=(200, 30))]), n_clusters


def _read_hidden(read: Callable[[], tuple[Views, int]], rate: float) -> tuple[Views, int]:
    """Read views, and hide a share of each."""
    views, n_clusters = read()
    return (hide_views(views, rate, random_state=0) if rate else views), n_clusters


def _measure(task: Task, folder: Path, n_resamples: int) -> None:
    views, n_clusters = task.read()
    model = BridgedGRMF(n_clusters, selection="fixed", random_state=0).fit(views)
    model.calibrate(random_state=SEED_USED)
    path = _file(task, folder)
    before = read_samples(path) if path.exists() else None
    if before is not None and np.array_equal(before.labels, model.labels_):
        kept, n_drawn = before.kept, before.n_drawn
    else:
        settings = {"share": SHARE, "feature_share": SHARE, "random_state": SEED_TRUE}
        truth = model.cluster_stability(n_resamples=n_resamples, **settings)
        kept, n_drawn = truth.kept, truth.n_drawn
    write_samples(Samples(model.labels_, model.uncalibrated_confidence_, model.confidence_, kept, n_drawn), path)


def _file(task: Task, folder: Path) -> Path:
    return folder / f"{task.name}-{task.rate:g}.npz"


def write_samples(samples: Samples, path: Path) -> None:
    """Write what was measured for the samples of a data set."""
    np.savez_compressed(path, **samples._asdict())


def read_samples(path: Path) -> Samples:
    """Read what was measured for the samples of a data set."""
    with np.load(path, allow_pickle=False) as archive:
        return Samples(**{name: archive[name] for name in Samples._fields})


# -- page ---------------------------------------------------------------------------------------------------------


def write_results(found: dict[tuple[str, float], Samples], folder: Path, missing: Sequence[str] = ()) -> None:
    """Write the table, the picture and the page, with the names of data sets that are not measured."""
    rows = [_row(name, rate, samples) for (name, rate), samples in found.items()]
    with (folder / "calibration.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(rows)
    pooled = [samples for (name, _), samples in found.items() if name not in NOISE]
    if pooled:
        _draw(pooled, folder / "calibration")
    (folder / "calibration.md").write_text("\n".join(_lines(rows, pooled, missing)) + "\n", encoding="utf-8")


def _row(name: str, rate: float, samples: Samples) -> tuple[str, ...]:
    means = (float(np.nanmean(samples.kept)), float(samples.plain.mean()), float(samples.calibrated.mean()))
    errors = [calibration_error(values, samples.kept) for values in (samples.plain, samples.calibrated)]
    counts = (len(samples.labels), int(samples.labels.max()) + 1, round(samples.n_drawn.mean() / SHARE))
    return (name, f"{rate:g}", *map(str, counts), *(f"{value:.3f}" for value in (*means, *errors)))


def _together(pooled: list[Samples], name: str) -> Array:
    return np.concatenate([getattr(samples, name) for samples in pooled])


def _lines(rows: list[tuple[str, ...]], pooled: list[Samples], missing: Sequence[str]) -> list[str]:
    real = [row for row in rows if row[0] not in NOISE]
    lines = [
        "## Confidence of samples\n",
        f"Written by `gapview-lab trust calibration`: `BridgedGRMF(selection='fixed')` at two rates of each data set. "
        f"`calibrate` uses {FEWEST_RESAMPLES} to {N_CALIBRATING} resamples; others, with other seeds, measure how "
        "often a sample is kept (column resamples). A sample is kept if it is in the matched group and this group has, "
        "without the sample, a Jaccard similarity of at least 0.5; groups of fewer than five drawn samples are not "
        f"kept. A resample has {SHARE:.0%} of the samples and of the features of each view; resamples that calibrate "
        f"have at most {SHARE * MOST_CALIBRATING:,.0f} samples. The error is the expected calibration error over ten "
        "bins; it includes the chance of the resamples of this column.\n",
    ]
    if pooled:
        kept = _together(pooled, "kept")
        errors = [calibration_error(_together(pooled, name), kept) for name in ("plain", "calibrated")]
        above = sorted({row[0] for row in real if float(row[-1]) > TARGET_EACH})
        lines += [
            "![Calibration curves](calibration.svg)\n",
            f"All samples together: {errors[0]:.3f} for `confidence_`, {errors[1]:.3f} after calibration (target "
            f"{TARGET_POOLED:g}). Data sets above {TARGET_EACH:g} after calibration: {', '.join(above) or 'none'}.\n",
        ]
    if noise := [row for row in rows if row[0] in NOISE]:
        lines.append(
            f"In noise ({noise[0][2]} samples, {' / '.join(row[3] for row in noise)} groups) the mean of `confidence_` "
            f"is {' / '.join(row[6] for row in noise)}, calibrated {' / '.join(row[7] for row in noise)}.\n"
        )
    if missing:
        lines.append(f"Not measured by this version: {', '.join(missing)}.\n")
    heads = (*FIELDS[:6], "`confidence_`", "calibrated", "error of `confidence_`", "error calibrated")
    table = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return [*lines, table[0], "|" + "---|" * len(FIELDS), *table[1:]]


def _draw(pooled: list[Samples], path: Path) -> None:
    """Draw mean ``kept`` against mean confidence, in ten bins of equal size over all data sets."""
    kept = _together(pooled, "kept")
    known = np.isfinite(kept)
    with new_figure(5, 4) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, label="perfect")
        for (name, label), series in zip(CURVES.items(), SERIES, strict=False):
            values = _together(pooled, name)[known]
            bins = np.array_split(np.argsort(values, kind="stable"), 10)
            means = [(values[own].mean(), kept[known][own].mean()) for own in bins]
            axes.plot(*zip(*means, strict=True), marker="o", color=series.color, label=label)
        axes.set(xlabel="mean confidence", ylabel="share of resamples that keep the sample")
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02))
        axes.legend(frameon=False)
    figure_files(figure, path)
