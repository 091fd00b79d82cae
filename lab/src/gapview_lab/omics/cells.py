"""``gapview-lab omics cells``: time and memory of a fit to many cells with sparse genes and proteins."""

from __future__ import annotations

import csv
import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import process_time
from typing import Any

import click
import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from gapview import BridgedGRMF, Views, __version__
from gapview.utils.messages import duration
from gapview.utils.storage import make_folder
from gapview.utils.types import Array, Matrix

from ..common.console import results_option
from ..speed.machine import computer
from ..speed.phases import PhaseClock, clocked_phases, memory_now, peak_memory

__all__ = ["cells", "make_cells"]

N_TYPES = 12
_N_MARKERS = 40  # features of a view that are higher in a type
_DEPTHS = {"genes": 150.0, "proteins": 60.0}  # mean counts of a cell
_WIDTHS = {"genes": 2000, "proteins": 200}
_AT_A_TIME = 5000


@click.command(short_help="Write results/omics/cells.csv and cells.md.")
@results_option("results/omics")
@click.option("--cells", "n_cells", type=click.IntRange(500), default=100_000, show_default=True, help="Cells.")
def cells(output: Path, n_cells: int) -> None:
    """Fit BridgedGRMF to sparse counts of many cells, 40 % of each view missing in whole donors."""
    make_folder(output)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        row = pool.submit(measure, n_cells).result()  # in a process that has held nothing before
    with (output / "cells.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)
    (output / "cells.md").write_text(_page(row))


def make_cells(n_cells: int, seed: int = 0) -> tuple[dict[str, Matrix], Array, Array]:
    """Return sparse log-normalised views, whether a cell has each view, and the types of the cells.

    Five donors have equally many cells: two have genes alone, two proteins alone, and one both. Types have sizes in a
    geometric series; each has markers with eight times the mean of other types. Counts are Poisson variables with the
    depth of the cell.
    """
    state = np.random.RandomState(seed)
    types = state.choice(N_TYPES, n_cells, p=(shares := 0.75 ** np.arange(N_TYPES)) / shares.sum())
    donors = np.arange(n_cells) * 5 // n_cells
    mask = np.column_stack([np.isin(donors, (0, 1, 4)), np.isin(donors, (2, 3, 4))])
    views: dict[str, Matrix] = {}
    for k, (name, width) in enumerate(_WIDTHS.items()):
        profiles = np.tile(state.lognormal(0.0, 1.0, width), (N_TYPES, 1))
        for profile in profiles:
            profile[state.permutation(width)[: min(_N_MARKERS, width // 8)]] *= 8
        profiles /= profiles.sum(axis=1, keepdims=True)
        own, depth = types[mask[:, k]], _DEPTHS[name]
        blocks = []
        for begin in range(0, len(own), _AT_A_TIME):
            part = own[begin : begin + _AT_A_TIME]
            depths = state.lognormal(np.log(depth), 0.3, (len(part), 1))
            counts = sparse.csr_array(state.poisson(profiles[part] * depths).astype(np.float32))
            totals = np.maximum(counts.sum(axis=1), 1)
            blocks.append(sparse.csr_array(sparse.diags_array((depth / totals).astype(np.float32)) @ counts))
        whole = sparse.csr_array(sparse.vstack(blocks))
        whole.data = np.log1p(whole.data)
        views[name] = whole
    return views, mask, types


def measure(n_cells: int) -> dict[str, Any]:
    """Return time, memory and quality of a fit."""
    made, mask, types = make_cells(n_cells)
    ids = np.arange(n_cells)
    views = _as_views(made, mask, ids)
    n_bytes = sum(own.data.nbytes + own.indices.nbytes + own.indptr.nbytes for own in made.values())
    before, begin, clock = memory_now(), process_time(), PhaseClock()
    with warnings.catch_warnings(), clocked_phases(clock):
        warnings.simplefilter("ignore")
        model = BridgedGRMF(N_TYPES, random_state=0).fit(views)
    held = [type(matrix).__name__ for matrix in model.views_.matrices]
    return {
        "version": __version__,
        "computer": computer(),
        "cells": n_cells,
        "genes": f"{made['genes'].shape[0]} x {made['genes'].shape[1]}",
        "proteins": f"{made['proteins'].shape[0]} x {made['proteins'].shape[1]}",
        "filled": round(made["genes"].nnz / np.prod(made["genes"].shape), 4),
        "seconds": round(clock.total, 1),
        "processor_seconds": round(process_time() - begin, 1),
        "input_mb": round(n_bytes / 2**20),
        "before_mb": round(before),
        "peak_mb": round(peak_memory()),
        "held": " ".join(held),
        "bridge": model.setting_.bridge,
        "recall": round(min((one.recall for one in model.neighbor_search_), default=float("nan")), 4),
        "ari": round(float(adjusted_rand_score(types, model.labels_)), 4),
        **{
            f"seconds_{name.replace(' ', '_')}": round(value, 1)
            for name, value in clock.seconds.items()
            if value > 0.05
        },
    }


def _as_views(made: dict[str, Matrix], mask: Array, ids: Array) -> Views:
    """Return views of all cells, without copies of rows that are not there."""
    names = list(made)
    whole = {name: sparse.csr_array((len(ids), made[name].shape[1]), dtype=np.float32) for name in names}
    views = Views(whole, sample_ids=ids)
    return views.with_matrices([made[name] for name in names], mask)


def _page(row: dict[str, Any]) -> str:
    phases = {name.removeprefix("seconds_"): value for name, value in row.items() if name.startswith("seconds_")}
    dense = 4 * (_WIDTHS["genes"] + _WIDTHS["proteins"]) * row["cells"] / 2**20
    return "\n".join(
        [
            "# Many cells\n",
            f"Written by `gapview-lab omics cells --cells {row['cells']}` with gapview {row['version']} on "
            f"{row['computer']}. Made counts of {row['cells']:,} cells of {N_TYPES} types: {row['genes']} genes, "
            f"{row['filled']:.1%} of them not zero, and {row['proteins']} proteins, log-normalised and sparse. Of five "
            "donors, two have genes alone, two proteins alone, and one both: 40 % of each view is missing. "
            "`BridgedGRMF` with all defaults, from sparse matrices to labels. Other work on the "
            "computer adds to the time on the clock, not to the processor time.\n",
            "| figure | value |",
            "|---|---|",
            f"| time on the clock | {duration(row['seconds'])} |",
            f"| processor time | {duration(row['processor_seconds'])} |",
            f"| input | {row['input_mb']:,} MB, dense {dense:,.0f} MB |",
            f"| peak memory of the process | {row['peak_mb']:,} MB, {row['before_mb']:,} MB of them before the fit |",
            f"| views in the fitted model | {row['held']} |",
            f"| bridge | {row['bridge']} |",
            f"| share of neighbours found | {row['recall']:.3f} |",
            f"| adjusted Rand index with the types | {row['ari']:.3f} |",
            "\nSeconds by phase: " + ", ".join(f"{name} {value:,.0f}" for name, value in phases.items()) + ".\n",
        ]
    )
