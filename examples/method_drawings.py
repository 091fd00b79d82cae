"""Draw the figures of docs/guide/how-it-works.md: the bridge graph, and the choice of the settings.

python examples/method_drawings.py docs/images
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from gapview import BridgedGRMF
from gapview.datasets import load_digits_views, paired_split

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, MUTED, LINE = "#1f2933", "#52606d", "#b8c1cc"
FIRST, SECOND, PATH = "#0072b2", "#d55e00", "#111111"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gapview",
    "font.size": 9,
    "font.family": "sans-serif",
    "text.color": INK,
}

# Two groups of samples: place, and whether the first and the second view are present
SAMPLES = {
    "a": (0.4, 2.6, True, False),
    "b": (1.3, 3.1, True, True),
    "c": (2.2, 2.7, False, True),
    "d": (1.2, 2.0, True, True),
    "e": (0.3, 1.6, False, True),
    "f": (3.3, 1.3, True, False),
    "g": (4.2, 1.7, True, True),
    "h": (5.0, 1.2, False, True),
    "i": (4.1, 0.6, True, True),
    "j": (3.2, 0.3, False, True),
}
NEAR = [set(pair) for pair in ("ab", "ad", "bd", "bc", "cd", "de", "fg", "fi", "gi", "gh", "hi", "ij")]
STEPS = ["ab", "bc"]  # from a sample with the first view alone to one with the second alone


def main(folder: str) -> None:
    with plt.rc_context(STYLE):
        save(draw_bridge(), Path(folder) / "bridge-graph.svg")
        save(draw_choice(), Path(folder) / "choice.svg")


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, facecolor="white", metadata={"Date": None, "Creator": None})


def draw_bridge() -> Any:
    """Draw the neighbours in each view, their union, and a path between samples that have no view in common."""
    figure, panels = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained")
    for k, (axes, color) in enumerate(zip(panels, (FIRST, SECOND), strict=False)):
        draw_links(axes, links_of(k), color)
        draw_samples(axes, shown=k)
        axes.set_title(f"Neighbours in view {k + 1}", fontsize=10, fontweight="bold", color=color)
    draw_links(panels[2], [link for k in range(2) for link in links_of(k)], LINE)
    draw_links(panels[2], map(set, STEPS), PATH, width=2.5)
    draw_samples(panels[2])
    panels[2].set_title("Bridge: both, and paths of several steps", fontsize=10, fontweight="bold")
    panels[2].annotate("has view 1 only", (0.4, 2.6), (-0.5, 3.45), arrowprops={"arrowstyle": "-", "color": MUTED})
    panels[2].annotate("has view 2 only", (2.2, 2.7), (2.7, 3.45), arrowprops={"arrowstyle": "-", "color": MUTED})
    for axes in panels:
        axes.set(xlim=(-0.7, 5.5), ylim=(-0.2, 3.7), aspect="equal")
        axes.axis("off")
    return figure


def links_of(k: int) -> list[set[str]]:
    """Return the pairs of neighbours that both have view ``k``."""
    return [pair for pair in NEAR if all(SAMPLES[name][2 + k] for name in pair)]


def draw_links(axes: Any, links: Iterable[set[str]], color: str, width: float = 1.5) -> None:
    for one, other in map(sorted, links):
        (x, y, *_), (to_x, to_y, *_) = SAMPLES[one], SAMPLES[other]
        axes.plot([x, to_x], [y, to_y], color=color, linewidth=width, zorder=1)


def draw_samples(axes: Any, shown: int | None = None) -> None:
    """Draw each sample as a disc: the left half is filled if it has the first view, the right half for the second."""
    for x, y, *present in SAMPLES.values():
        absent = shown is not None and not present[shown]
        left, right = (color if has else "white" for has, color in zip(present, (FIRST, SECOND), strict=True))
        style = {"fillstyle": "left", "markerfacecolor": left, "markerfacecoloralt": right, "markeredgecolor": INK}
        axes.plot(x, y, "o", markersize=15, alpha=0.2 if absent else 1.0, zorder=2, **style)


def draw_choice() -> Any:
    """Draw the three criteria and the score of every candidate for digits of which nine in ten lack a view."""
    views = paired_split(load_digits_views().views[:600], 0.1, random_state=0)
    table = [row for row in BridgedGRMF(n_clusters=10, random_state=0).fit(views).selection_.table if row["score"] > 0]
    names = {
        "union": "U: modularity,\neach view by itself",
        "joint": "J: modularity,\nall views together",
        "agreement": "a: agreement with\nother candidates",
        "score": "score",
    }
    figure, panels = plt.subplots(1, 4, figsize=(10, 4.2), layout="constrained", sharey=True)
    places, colors = np.arange(len(table)), [SECOND if row["chosen"] else FIRST for row in table]
    for axes, (name, title) in zip(panels, names.items(), strict=True):
        axes.scatter([row[name] for row in table], places, c=colors, s=26, zorder=2)
        axes.hlines(places, *axes.get_xlim(), color=LINE, linewidth=0.5, zorder=1)
        axes.margins(x=0.02)
        axes.set_title(title, fontsize=9.5, fontweight="bold")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(places, map(label_of, table))
    panels[0].invert_yaxis()
    return figure


def label_of(row: dict[str, Any]) -> str:
    """Return a candidate in words."""
    scale = ", ".join(dict.fromkeys(row["scale"].split(", ")))
    return f"{row['bridge']}, reach {row['reach']}, {scale}{' (chosen)' if row['chosen'] else ''}"


if __name__ == "__main__":
    main(sys.argv[1])
