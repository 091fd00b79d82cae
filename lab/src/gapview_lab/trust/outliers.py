"""``gapview-lab trust outliers``: how many junk rows and how many real new samples ``place`` flags."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from gapview import Views, __version__
from gapview.datasets import load_views
from gapview.errors import GapviewError
from gapview.report.style import SERIES, SOFT, new_figure
from gapview.trust import Novelty
from gapview.utils.storage import make_folder
from gapview.utils.types import Array
from gapview.views.cells import dense

from ..common.console import data_option, results_option
from ..common.figures import figure_files

__all__ = ["junk", "measure", "outliers"]

Row = dict[str, Any]
FIELDS = ("data", "seed", "where", "kind", "n_rows", "flagged")
REAL, TOGETHER = "real", "all views"
LARGEST, N_HELD_OUT, ALPHA, GOAL = 1250, 5, 0.05, 0.95


def junk(views: Views, trained: Views, seed: int) -> Iterator[tuple[str, Views]]:
    """Yield kinds of junk made of the rows of real samples, in every view."""
    source = np.random.RandomState(seed)
    matrices = [dense(matrix).astype(float) for matrix in views.matrices]
    known = [dense(matrix).astype(float) for matrix in trained.matrices]
    yield "× 1000", views.with_matrices([1000 * matrix for matrix in matrices])
    shifted = [matrix + 5 * own.std(axis=0) for matrix, own in zip(matrices, known, strict=True)]
    yield "+ 5 SD", views.with_matrices(shifted)
    yield "permuted", views.with_matrices([_permuted(matrix, source) for matrix in matrices])
    yield "zeros", views.with_matrices([np.zeros_like(matrix) for matrix in matrices])
    is_positive = [own.min() >= 0 for own in known]
    if any(is_positive):
        pairs = zip(matrices, is_positive, strict=True)
        yield "−x", views.with_matrices([-matrix if positive else matrix for matrix, positive in pairs])


def _permuted(matrix: Array, source: np.random.RandomState) -> Array:
    return np.stack([source.permutation(row) for row in matrix]) if len(matrix) else matrix


def measure(views: Views, seed: int) -> Iterator[Row]:
    """Yield the shares flagged of real and junk rows, in each view and of samples, with a fifth held out.

    The p-values are those of ``place``, which do not depend on the groups of a model.
    """
    order = np.random.RandomState(seed).permutation(views.n_samples)[:LARGEST]
    n_new = len(order) // N_HELD_OUT
    new, trained = views[np.sort(order[:n_new])], views[np.sort(order[n_new:])]
    known = Novelty(trained)
    for kind, given in ((REAL, new), *junk(new, trained, seed)):
        of_views, together = known.p_values(given)
        yield {"where": TOGETHER, "kind": kind, "n_rows": n_new, "flagged": (together <= ALPHA).mean()}
        for k, name in enumerate(views.names):
            own = of_views[given.mask[:, k], k]
            is_made = kind != "−x" or dense(trained.matrices[k]).min() >= 0
            if len(own) and is_made:
                yield {"where": name, "kind": kind, "n_rows": len(own), "flagged": (own <= ALPHA).mean()}


@click.command(
    short_help="Write results/trust/outliers.md.",
    epilog="Example: gapview-lab trust outliers --data-dir data -o results/trust",
)
@data_option("data sets as .npz files", required=True)
@results_option("results/trust")
@click.option("--n-seeds", default=3, show_default=True, help="Number of splits of each data set.")
@click.option("--data", "only", multiple=True, help="Name of a data set; by default all.")
def outliers(data_dir: Path, output: Path, n_seeds: int, only: tuple[str, ...]) -> None:
    """Hold out a fifth of the samples, and measure how many of them, and of junk made of them, are flagged."""
    rows: list[Row] = []
    for path in sorted(data_dir.glob("*.npz")):
        if only and path.stem not in only:
            continue
        try:
            data = load_views(path)
        except GapviewError as error:
            click.echo(f"{path.name}: {error}", err=True)
            continue
        for seed in range(n_seeds):
            rows += [{"data": path.stem, "seed": seed, **row} for row in measure(data.views, seed)]
        click.echo(f"{path.stem} done", err=True)
    make_folder(output)
    with (output / "outliers.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | {"flagged": f"{row['flagged']:.4f}"} for row in rows)
    (output / "outliers.md").write_text(page(rows, n_seeds), encoding="utf-8")
    _draw(_shares(rows, only=TOGETHER), output / "outliers")


def _draw(shares: dict[tuple[str, str, str], float], path: Path) -> None:
    """Draw a dot for every data set and kind of rows: the share of samples flagged."""
    kinds = list(dict.fromkeys(kind for _, _, kind in shares))
    with new_figure(6, 2.6) as figure:
        axes = figure.subplots()
        axes.axvline(ALPHA, color=SOFT, linewidth=1)
        for place, kind in enumerate(kinds):
            values = sorted(value for (_, _, own), value in shares.items() if own == kind)
            offsets = 0.25 * np.sin(2.4 * np.arange(len(values)))  # equal shares do not hide each other
            color = SERIES[0 if kind == REAL else 1].color
            axes.plot(values, place + offsets, "o", color=color, markersize=4, alpha=0.7)
        axes.set_yticks(range(len(kinds)), kinds)
        axes.invert_yaxis()
        axes.set(xlabel="share of samples flagged (p ≤ 0.05); a dot for each data set", xlim=(-0.02, 1.02))
    figure_files(figure, path)


def page(rows: list[Row], n_seeds: int) -> str:
    """Return the page of Markdown: medians, every data set, every exception."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    whole = _shares(rows, only=TOGETHER)
    names = list(dict.fromkeys(name for name, _, _ in whole))
    lines = [
        "# New samples unlike those of training",
        "",
        f"Written by `gapview-lab trust outliers` with gapview {__version__}. A fifth of the samples of each data set",
        f"(of at most {LARGEST:,}) is held out, in {n_seeds} split(s), and compared with the others. The table shows",
        "the share of held-out samples with p ≤ 0.05, as they are (*real*: false alarms, 5 % expected), and with all",
        "their views replaced by junk made of the same rows: × 1000, plus 5 standard deviations of each feature,",
        "features permuted, zeros, and the opposite sign in views that are never negative. The p-values are those of",
        "`place`; they use no labels and no groups. The scores were chosen with these data sets in sight.",
        "",
        "![Share of samples flagged](outliers.svg)",
        "",
        f"| data set | {' | '.join(kinds)} |",
        f"|---|{'---|' * len(kinds)}",
    ]
    for name in names:
        cells = [whole.get((name, TOGETHER, kind)) for kind in kinds]
        lines.append(f"| {name} | {' | '.join(_percent(cell) for cell in cells)} |")
    medians = [np.median([v for (_, _, own), v in whole.items() if own == kind]) for kind in kinds]
    means = [np.mean([v for (_, _, own), v in whole.items() if own == kind]) for kind in kinds]
    lines.append(f"| **median** | {' | '.join(_percent(value) for value in medians)} |")
    lines.append(f"| **mean** | {' | '.join(_percent(value) for value in means)} |")
    lines += ["", "## Exceptions", "", f"Samples: junk of which less than {GOAL:.0%} is flagged.", ""]
    lines += _exceptions(whole) or ["* none"]
    of_views = {key: value for key, value in _shares(rows).items() if key[1] != TOGETHER}
    lines += ["", f"Single views: junk of which less than {GOAL:.0%} is flagged by the p-value of the view.", ""]
    lines += _exceptions(of_views) or ["* none"]
    return "\n".join(lines) + "\n"


def _shares(rows: list[Row], only: str | None = None) -> dict[tuple[str, str, str], float]:
    """Return the mean share over the splits, for data set, place and kind."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if only is None or row["where"] == only:
            found.setdefault((row["data"], row["where"], row["kind"]), []).append(float(row["flagged"]))
    return {key: float(np.mean(values)) for key, values in found.items()}


def _exceptions(shares: dict[tuple[str, str, str], float]) -> list[str]:
    below = [(*key, value) for key, value in shares.items() if key[2] != REAL and value < GOAL]
    return [f"* {name}, {where}, {kind}: {_percent(value)}" for name, where, kind, value in below]


def _percent(share: Any) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
