"""``gapview-lab trust batches``: how often the tests for batches report random batches, and batches that shift."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.metrics import adjusted_rand_score

from gapview import BridgedGRMF
from gapview.datasets import make_views
from gapview.errors import GapviewWarning
from gapview.trust import group_association
from gapview.trust.association import BATCH, CERTAIN, SIGNIFICANT
from gapview.utils.messages import muted
from gapview.utils.storage import make_folder
from gapview.utils.types import Array

from ..common.console import results_option

__all__ = ["batches", "null_row", "shift_row"]

Row = dict[str, Any]
FIELDS = ("kind", "seed", "samples", "groups", "batches", "p", "least_p", "warning", "ari", "batch_ari")
N_NULL, N_SHIFTED = 1000, 20
SHIFTS = (0.0, 3.0)  # between batches, in standard deviations of a view


def null_row(seed: int) -> Row:
    """Return the result for random groups and random batches of unequal sizes."""
    state = np.random.RandomState(seed)
    n_samples, n_groups, n_batches = state.randint(40, 1001), state.randint(2, 13), state.randint(2, 13)
    groups, parts = (_parts(n_samples, count, state) for count in (n_groups, n_batches))
    return {"kind": "random batches", "seed": seed, **_tested(groups, parts)}


def _parts(n_samples: int, n_parts: int, state: np.random.RandomState) -> Array:
    """Return parts of unequal sizes, each of at least one sample."""
    drawn = state.choice(n_parts, n_samples, p=state.dirichlet(np.full(n_parts, 2.0)))
    drawn[:n_parts] = np.arange(n_parts)
    return np.asarray(state.permutation(drawn))


def shift_row(shift: float, seed: int) -> Row:
    """Return the result of a fit to groups in three batches, whose features are shifted at random."""
    data = make_views(n_samples=200, n_clusters=4, missing_rate=0.3, random_state=seed)
    state = np.random.RandomState(seed)
    plate = state.randint(3, size=200)
    moved = []
    for k, matrix in enumerate(data.views.matrices):
        shifts = shift * matrix.std() * state.normal(size=(3, matrix.shape[1]))
        moved.append(matrix + shifts[plate[data.views.rows(k)]])
    with muted(GapviewWarning):
        labels = BridgedGRMF(4, selection="fixed", random_state=seed).fit_predict(data.views.with_matrices(moved))
    scores = (adjusted_rand_score(truth, labels) for truth in (data.target, plate))
    figures = dict(zip(("ari", "batch_ari"), (f"{score:.3f}" for score in scores), strict=True))
    return {"kind": f"shift of {shift:g} SD", "seed": seed, **_tested(labels, plate), **figures}


def _tested(labels: Array, parts: Array) -> Row:
    found = group_association(labels, [f"batch {part}" for part in parts], BATCH)
    sizes = {"samples": len(labels), "groups": len(np.unique(labels)), "batches": len(np.unique(parts))}
    if found is None:
        return sizes | {"p": 1.0, "least_p": 1.0, "warning": False}
    least = min(group.adjusted for group in found.groups)
    return sizes | {"p": found.association.p_value, "least_p": least, "warning": found.is_warning}


def _rows(n_null: int, n_shifted: int) -> Iterator[Row]:
    yield from map(null_row, range(n_null))
    for shift in SHIFTS:
        for seed in range(n_shifted):
            yield shift_row(shift, seed)


def page(rows: list[Row]) -> str:
    """Return the results as a page in Markdown."""
    lines = [
        "# Groups and batches",
        "",
        "Written by `gapview-lab trust batches`. Random batches: groups and batches that are independent: "
        "40 to 1,000 samples, 2 to 12 of each, unequal sizes. Shifts: `BridgedGRMF(selection='fixed')` on made data "
        "(200 samples, 4 groups, 30 % of each view missing) in 3 batches, whose features are moved at random by this "
        f"multiple of the standard deviation of the view. A warning needs a large effect and p < {CERTAIN:g}, see the "
        "guide on batches.",
        "",
        f"| data | data sets | p ≤ {SIGNIFICANT:g}, all groups | p ≤ {SIGNIFICANT:g}, any group | warnings | "
        "median ARI with the true groups | with batches |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        shares = [np.mean([row[name] <= SIGNIFICANT for row in own]) for name in ("p", "least_p")]
        shares.append(np.mean([row["warning"] for row in own]))
        scores = [
            f"{np.median([float(row[name]) for row in own]):.2f}" if name in own[0] else "–"
            for name in ("ari", "batch_ari")
        ]
        cells = [kind, f"{len(own):,}", *(f"{100 * share:.1f} %" for share in shares), *scores]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@click.command(
    short_help="Count false alarms of the tests for batches.",
    epilog="Example: gapview-lab trust batches -o results/trust",
)
@results_option("results/trust")
@click.option("--n-null", type=click.IntRange(1), default=N_NULL, show_default=True, help="Random batches.")
@click.option("--n-shifted", type=click.IntRange(1), default=N_SHIFTED, show_default=True, help="Fits for each shift.")
def batches(output: Path, n_null: int, n_shifted: int) -> None:
    """Test groups against batches that have no effect, and against batches that shift the features."""
    rows = list(_rows(n_null, n_shifted))
    make_folder(output)
    with (output / "batches.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | {name: f"{row[name]:.4g}" for name in ("p", "least_p")} for row in rows)
    (output / "batches.md").write_text(page(rows), encoding="utf-8")
