"""``gapview-lab trust structure``: whether noise is reported as one group, and labelled data as groups."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from time import process_time
from typing import Any

import click
import numpy as np
from sklearn.metrics import adjusted_rand_score

from gapview import BridgedGRMF, Views
from gapview.datasets import hide_views
from gapview.errors import GapviewError
from gapview.estimators.assessing import MOST_CALIBRATING, SHARE
from gapview.trust.structure import MOST_SAMPLES
from gapview.utils.storage import make_folder
from gapview.utils.types import Array

from ..common.console import data_option, listed
from ..league.bridged import middle_cells
from ..league.data import LeagueCell, Source, find_sources, hidden, load

__all__ = ["measure", "noise_views", "structure"]

Row = dict[str, Any]
NOISE = ("gaussian", "uniform", "heavy-tailed", "correlated features")
N_PER_KIND = 25
COUNTS: tuple[int | str, ...] = ("auto", 4)
MOST_COST = 40  # fits with selection="fixed" that an assessment should cost at most
CLEAR = 0.3  # adjusted Rand index from which structure must be found
FIELDS = (
    *("data", "seed", "samples", "views", "k", "k_tested", "ari", "p_value", "has_structure"),
    *("agreement_p_value", "null_fits", "seconds", "fixed_fits"),
)


def noise_views(kind: str, seed: int) -> Views:
    """Return 100 to 400 samples of noise in 2 or 3 views of 5 to 59 features, 30 % of each view missing.

    Heavy-tailed features have a t distribution with 3 degrees of freedom (even seeds) or are log-normal (odd seeds).
    Correlated features have three common factors, each view its own.
    """
    state = np.random.RandomState(1000 * NOISE.index(kind) + seed)
    n_samples, n_views = state.randint(100, 401), state.randint(2, 4)
    matrices = [_noise(kind, seed, n_samples, state.randint(5, 60), state) for _ in range(n_views)]
    return hide_views(Views(matrices), 0.3, random_state=seed)


def _noise(kind: str, seed: int, n_samples: int, n_features: int, state: np.random.RandomState) -> Array:
    size = (n_samples, n_features)
    if kind == "uniform":
        return state.uniform(size=size)
    if kind == "heavy-tailed":
        return np.exp(state.normal(size=size)) if seed % 2 else state.standard_t(3, size=size)
    values = state.normal(size=size)
    if kind == "correlated features":
        values += state.normal(size=(n_samples, 3)) @ state.normal(size=(3, n_features))
    return values


def measure(name: str, seed: int, views: Views, n_clusters: int | str, target: Array | None = None) -> Row:
    """Fit and assess; return a row of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BridgedGRMF(n_clusters, random_state=seed).fit(views)
        begin = process_time()
        found = model.assessment_ if n_clusters == "auto" else model.assess(random_state=seed)
        seconds = process_time() - begin
        fixed = 1.0 if n_clusters == "auto" else _seconds_of_fit(views[np.arange(found.n_samples)], n_clusters, seed)
    is_timed = n_clusters != "auto"
    return {
        "data": name,
        "seed": seed,
        "samples": views.n_samples,
        "views": views.n_views,
        "k": n_clusters,
        "k_tested": found.null_groups.shape[2],
        "ari": "" if target is None else round(float(adjusted_rand_score(target, model.labels_)), 3),
        "p_value": round(found.p_value, 4),
        "has_structure": found.has_structure,
        "agreement_p_value": round(found.agreement_p_value, 4),
        "null_fits": found.n_fits,
        "seconds": round(seconds, 1) if is_timed else "",
        "fixed_fits": round(seconds / fixed, 1) if is_timed else "",
    }


def _seconds_of_fit(views: Views, n_clusters: int | str, seed: int) -> float:
    """Return the processor time of a fit with fixed settings: the median of three."""
    times = []
    for _ in range(3):
        begin = process_time()
        BridgedGRMF(n_clusters, selection="fixed", random_state=seed).fit(views)
        times.append(process_time() - begin)
    return float(np.median(times))


def _measure_noise(kind: str, seed: int, n_clusters: int | str) -> Row:
    return measure(kind, seed, noise_views(kind, seed), n_clusters)


def _measure_data(source: Source, cell: LeagueCell) -> Row:
    loaded = load(source.name, source.path)
    views, target = hidden(loaded, cell, 0)
    return measure(source.name, 0, views, len(np.unique(target)), target)


def run(
    sources: Sequence[Source], n_per_kind: int, n_jobs: int, done: Collection[tuple[str, str, str]] = ()
) -> Iterator[Row]:
    """Yield the row of every run, as runs end; failed runs are skipped with a message, and noise that is done."""
    with ProcessPoolExecutor(n_jobs) as pool:
        jobs = [pool.submit(_measure_data, *each) for each in middle_cells(list(sources))]
        jobs += [
            pool.submit(_measure_noise, kind, seed, count)
            for count in COUNTS
            for seed in range(n_per_kind)
            for kind in NOISE
            if (kind, str(seed), str(count)) not in done
        ]
        for job in as_completed(jobs):
            try:
                yield job.result()
            except GapviewError as error:
                click.echo(f"A run failed: {error}", err=True)


def page(rows: Iterable[Row]) -> str:
    """Return the results as a page in Markdown."""
    listed = list(rows)
    noise = [row for row in listed if row["data"] in NOISE]
    data = [row for row in listed if row["data"] not in NOISE]
    lines = [
        "## Is there structure?",
        "",
        '`gapview-lab trust structure` measures `assess()` and `n_clusters="auto"` of `BridgedGRMF` at the level 0.05.',
        "",
        "Noise: made data sets without groups (100 to 400 samples, 2 or 3 views, 30 % of each missing). Heavy-tailed: "
        "t with 3 degrees of freedom, and log-normal.",
        "",
        "| noise | k | data sets | reported as one group |",
        "|---|---|---|---|",
    ]
    for count in COUNTS:
        for kind in NOISE:
            own = [row for row in noise if row["data"] == kind and str(row["k"]) == str(count)]
            lines.append(f"| {kind} | {count} | {len(own)} | {sum(not _is_true(row) for row in own)} |")
    lines += ["", *_data_table(data)]
    costs = {row["data"]: float(row["fixed_fits"]) for row in data if row["fixed_fits"] != ""}
    if costs:
        above = [f"{name} {cost:.0f}" for name, cost in costs.items() if cost > MOST_COST]
        lines += [
            "",
            "Cost of `assess()`, the calibration of the confidence included, in processor time of a fit with "
            f'`selection="fixed"` to the same samples, at most {MOST_SAMPLES:,}: median '
            f"{np.median(list(costs.values())):.0f}; above {MOST_COST}: {', '.join(above) or 'none'}. The fits that "
            f"calibrate the confidence have more samples, up to {SHARE * MOST_CALIBRATING:,.0f}: groups of many "
            "samples are found less often among few, so that fewer samples would give a confidence that is too low. In "
            "views with more features than samples, leaving out the refinement saves less than in others.",
        ]
    lines += [
        "",
        "More: [confidence](trust/calibration.md), [new samples](trust/outliers.md), [batches](trust/batches.md), "
        "[recovered views](trust/recovery.md).",
    ]
    return "\n".join(lines) + "\n"


def _data_table(rows: list[Row]) -> list[str]:
    lines = [
        f"Labelled data at the middle rate of missing views. Structure must be found where the ARI is above {CLEAR:g}.",
        "",
        "| data | samples | k | ARI | p | structure | p of agreement | fixed fits |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: str(row["data"])):
        found = "yes" if _is_true(row) else "no" if float(row["ari"]) <= CLEAR else "**no**"
        shown = (row["data"], row["samples"], row["k"], row["ari"], row["p_value"], found)
        lines.append("| " + " | ".join(map(str, (*shown, row["agreement_p_value"], row["fixed_fits"]))) + " |")
    return lines


def _is_true(row: Row) -> bool:
    return str(row["has_structure"]) == "True"


def read_rows(path: Path) -> list[Row]:
    """Return the rows that earlier runs have written; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@click.command()
@data_option("labelled data sets")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True)
@click.option("--data", multiple=True, callback=listed, help="Only these data sets; others keep their earlier figures.")
@click.option("--per-kind", type=click.IntRange(0), default=N_PER_KIND, show_default=True, help="Noise of each kind.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--resume", is_flag=True, help="Keep the rows that are stored, and measure what is missing.")
def structure(
    data_dir: Path | None, output: Path, data: tuple[str, ...], per_kind: int, jobs: int, resume: bool
) -> None:
    """Report noise as one group, and find structure in labelled data; writes trust/structure.csv and trust.md."""
    sources = [] if data_dir is None else find_sources(data_dir, lambda text: click.echo(text, err=True))
    sources = [source for source in sources if not data or source.name in data]
    measured = {source.name for source in sources} | (set(NOISE) if per_kind else set())
    make_folder(output / "trust")
    path = output / "trust" / "structure.csv"
    rows = [row for row in read_rows(path) if resume or row["data"] not in measured]
    done = {(row["data"], row["seed"], row["k"]) for row in rows}
    sources = [source for source in sources if source.name not in {name for name, *_ in done}]
    for row in run(sources, per_kind, jobs, done):
        rows.append(row)
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    (output / "trust.md").write_text("# Trust\n\n" + page(rows), encoding="utf-8")
