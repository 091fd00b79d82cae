"""``gapview-lab omics cohorts``: groups of patients against known classes and survival, beside other methods."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from gapview import Views
from gapview.datasets import hide_views, load_views
from gapview.errors import GapviewError, InputError
from gapview.io import join_views, read_table, read_views
from gapview.metrics import clustering_scores
from gapview.trust import survival_by_group
from gapview.utils.storage import make_folder
from gapview.utils.types import Array

from ..common.console import data_option, listed
from ..league.entrants import ENTRANTS

__all__ = ["COHORTS", "METHODS", "Cohort", "cohorts", "measure", "page", "read_cohort"]

Row = dict[str, Any]
AUTO = "auto"  # number of groups
METHODS = ("BridgedGRMF", "GRMF", "NEMO", "SNF", "MOFA", "PIMVC", "EEIMVC", "ImputedKMeans", "ImputedSpectral")
SCALES = ("default", "unit", "standard+unit")  # the default of all methods but the first is unit
RATES = (0.0, 0.3)
N_SEEDS = 2
KEY = ("data", "groups", "hidden", "method", "scale", "seed")
FIELDS = (*KEY, "n_groups", "ari", "nmi", "accuracy", "log_rank_p", "seconds")


@dataclass(frozen=True)
class Cohort:
    """Patients: their views, and known classes and survival where there are any."""

    name: str
    views: Views
    counts: tuple[int, ...]  # numbers of groups that are tried, besides auto
    target: Array | None = None
    times: Array | None = None
    events: Array | None = None
    scales: tuple[str, ...] = SCALES


def read_cohort(name: str, folder: Path) -> Cohort:
    """Return a cohort from the folder of data sets."""
    if name == "coread":
        views, table = _read(folder / "omics" / name, ("gex", "muts", "cnv"), "subtypes", orient="features")
        classes = table["cms_label"].to_numpy(str)
        return Cohort(name, views, (len(np.unique(classes)),), classes, *_outcome(table, "osMo", "osStat"))
    if name == "kirc":
        views, table = _read(folder / "omics" / name, ("GE", "ME", "MI"), "survival", orient=None)
        # Standardised principal components would be mostly noise
        return Cohort(name, views, (3, 4, 5), None, *_outcome(table, "Survival", "Death"), SCALES[:2])
    data = load_views(folder / f"{name}.npz")
    target = np.asarray(data.target)
    return Cohort(name, data.views, (len(np.unique(target)),), target)


COHORTS = {
    "coread": "Colorectal cancer: 500 genes, 200 mutations, 100 copy-number bands; overall survival",
    "kirc": "Kidney cancer: principal-component scores of three views; overall survival",
    "tcga_brca_mixomics": "Breast cancer: mRNA, miRNA, protein; proteins missing for 70 of 220 patients by nature",
}


def _read(folder: Path, names: Sequence[str], table: str, orient: str | None) -> tuple[Views, Any]:
    views = join_views(read_views([folder / f"{name}.csv" for name in names], orient=orient))
    return views, read_table(folder / f"{table}.csv").reindex([str(key) for key in views.sample_ids])


def _outcome(table: Any, time: str, event: str) -> tuple[Array, Array]:
    return table[time].to_numpy(float), table[event].to_numpy(float)


# -- runs --------------------------------------------------------------------------------------------------------------


def scores(cohort: Cohort, labels: Array) -> Row:
    """Return the scores of groups: against the classes, and the p-value of the log-rank test."""
    row: Row = dict.fromkeys(("ari", "nmi", "accuracy", "log_rank_p"), "")
    if cohort.target is not None:
        found = clustering_scores(cohort.target, labels)
        row |= {name: round(found[name], 4) for name in ("ari", "nmi", "accuracy")}
    if cohort.times is not None:
        try:
            row["log_rank_p"] = round(survival_by_group(labels, cohort.times, cohort.events).p_value, 5)
        except InputError:  # one group
            row["log_rank_p"] = 1.0
    return row


def measure(cohort: Cohort, count: int | str, rate: float, method: str, scale: str, seed: int) -> Row:
    """Run a method once; return a row of the table."""
    views = hide_views(cohort.views, rate, random_state=seed) if rate else cohort.views
    entrant = ENTRANTS[method]
    options = {**entrant.options, **({} if scale == SCALES[0] else {"scale": scale})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = perf_counter()
        labels = np.asarray(entrant.make(count, random_state=seed, **options).fit(views).labels_)
        seconds = perf_counter() - begin
    return {
        **{"data": cohort.name, "groups": count, "hidden": rate, "method": method, "scale": scale, "seed": seed},
        "n_groups": len(np.unique(labels)),
        **scores(cohort, labels),
        "seconds": round(seconds, 2),
    }


def _runs(cohort: Cohort, methods: Sequence[str], seed: int) -> Iterator[tuple[Any, ...]]:
    for rate in RATES:
        for method in methods:
            for count in cohort.counts:
                for scale in cohort.scales:
                    if method == METHODS[0] or scale != "unit":
                        yield count, rate, method, scale, seed
            if method == METHODS[0]:
                yield AUTO, rate, method, SCALES[0], seed


def run(
    found: Sequence[Cohort], methods: Sequence[str], n_seeds: int, n_jobs: int, done: Iterable[Row] = ()
) -> Iterator[Row]:
    """Yield the row of every run that is not done, as runs end; failed runs are skipped with a message."""
    finished = {tuple(str(row[name]) for name in KEY) for row in done}
    every = [(one, key) for seed in range(n_seeds) for one in found for key in _runs(one, methods, seed)]
    left = [(one, key) for one, key in every if (one.name, *map(str, key)) not in finished]
    with ProcessPoolExecutor(n_jobs) as pool:
        jobs = {pool.submit(measure, one, *key): key for one, key in left}
        for job in as_completed(jobs):
            try:
                yield job.result()
            except (GapviewError, ValueError, np.linalg.LinAlgError) as error:  # also of other packages
                click.echo(f"A run of {jobs[job][2]} failed: {error}", err=True)


def _can_run(names: Sequence[str]) -> list[str]:
    """Return the methods whose packages are installed; the others are named in a message."""
    chosen = []
    for name in names or METHODS:
        make = ENTRANTS[name].make
        problem = make.why_not() if hasattr(make, "why_not") else None
        if problem is None:
            chosen.append(name)
        else:
            click.echo(f"{name} is left out. {problem}", err=True)
    return chosen


# -- page --------------------------------------------------------------------------------------------------------------


def page(rows: Iterable[Row], found: Sequence[Cohort]) -> str:
    """Return the results as a page in Markdown."""
    every = [{name: str(row[name]) for name in FIELDS} for row in rows]
    n_seeds = len({row["seed"] for row in every})
    lines = [
        "# Cohorts of patients",
        "",
        "`gapview-lab omics cohorts` compares the groups of patients with known classes and with survival. Nothing is "
        "tuned: every method runs at its defaults, which scale rows to unit length (`BridgedGRMF` chooses the scale "
        "itself, and runs with `unit`, too), and once more with standardised features (`standard+unit`). MOFA is "
        "followed by k-means; PIMVC, EEIMVC and NEMO are those of iMML; SNF, ImputedKMeans and ImputedSpectral fill "
        f"missing views from the five nearest patients. Means over {n_seeds} seeds; log-rank p: medians, and in "
        "parentheses the number of seeds with p < "
        "0.05. 30 % hidden: of every view, at random, never the last view of a patient.",
    ]
    for cohort in found:
        own = [row for row in every if row["data"] == cohort.name]
        lines += ["", f"## {cohort.name}", "", _description(cohort)]
        counts: tuple[int | str, ...] = (*cohort.counts, AUTO)
        for count in counts:
            shown = [row for row in own if row["groups"] == str(count)]
            lines += ["", *_table(cohort, shown, count)] if shown else []
    return "\n".join(lines) + "\n"


def _description(cohort: Cohort) -> str:
    text = f"{COHORTS.get(cohort.name, cohort.name)}. {cohort.views.n_samples} patients."
    if cohort.target is not None:
        kinds, sizes = np.unique(cohort.target, return_counts=True)
        text += " Classes: " + ", ".join(f"{kind} ({size})" for kind, size in zip(kinds, sizes, strict=True)) + "."
        if cohort.times is not None:
            codes = np.searchsorted(kinds, cohort.target)
            text += f" Log-rank p of the classes themselves: {scores(cohort, codes)['log_rank_p']:.2g}."
    if cohort.events is not None:
        text += f" {int(np.nansum(cohort.events))} events."
    return text


def _table(cohort: Cohort, rows: Sequence[Row], count: int | str) -> list[str]:
    columns = [*(("ARI", "NMI", "ACC") if cohort.target is not None else ())]
    columns += ["log-rank p"] if cohort.times is not None else []
    columns += ["groups"] if count == AUTO else []
    head = [f"{name}, {'complete' if rate == 0 else f'{100 * rate:g} % hidden'}" for rate in RATES for name in columns]
    lines = [
        f"Number of groups: {count}",
        "",
        "| method | scale | " + " | ".join(head) + " |",
        "|---|---|" + "---|" * len(head),
    ]
    for method, scale in dict.fromkeys((row["method"], row["scale"]) for row in _in_order(rows)):
        cells = []
        for rate in RATES:
            own = [r for r in rows if (r["method"], r["scale"], r["hidden"]) == (method, scale, str(rate))]
            cells += [_cell(own, name) for name in columns]
        lines.append(f"| {method} | {scale} | " + " | ".join(cells) + " |")
    return lines


def _in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (SCALES.index(row["scale"]), METHODS.index(row["method"])))


def _cell(rows: Sequence[Row], column: str) -> str:
    if not rows:
        return "–"
    if column == "groups":
        return ", ".join(row["n_groups"] for row in sorted(rows, key=lambda row: row["seed"]))
    if column == "log-rank p":
        values = [float(row["log_rank_p"]) for row in rows]
        return f"{np.median(values):.3f} ({sum(value < 0.05 for value in values)})"
    name = {"ARI": "ari", "NMI": "nmi", "ACC": "accuracy"}[column]
    return f"{np.mean([float(row[name]) for row in rows]):.2f}"


@click.command()
@data_option("the cohorts", required=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("results/omics"), show_default=True,
    help="Folder for cohorts.md and cohorts.csv; finished runs in it are not repeated.",
)  # fmt: skip
@click.option("--data", multiple=True, callback=listed, help="Only these cohorts.")
@click.option("--methods", multiple=True, callback=listed, help="Only these methods.")
@click.option("--seeds", type=click.IntRange(1), default=N_SEEDS, show_default=True, help="Seeds of every run.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
def cohorts(
    data_dir: Path, output: Path, data: tuple[str, ...], methods: tuple[str, ...], seeds: int, jobs: int
) -> None:
    """Compare groups of patients with known classes and survival, with and without hidden views."""
    for given, known in ((data, tuple(COHORTS)), (methods, METHODS)):
        if unknown := [name for name in given if name not in known]:
            raise click.UsageError(f"{unknown[0]!r} is unknown. Choose among: {', '.join(known)}.")
    found = [read_cohort(name, data_dir) for name in data or COHORTS]
    file = make_folder(output) / "cohorts.csv"
    rows: list[Row] = list(csv.DictReader(file.read_text("utf-8").splitlines())) if file.exists() else []
    with file.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not rows:
            writer.writeheader()
        for row in run(found, _can_run(methods), seeds, jobs, list(rows)):
            rows.append(row)
            writer.writerow(row)
            stream.flush()
    (output / "cohorts.md").write_text(page(rows, found), encoding="utf-8")
