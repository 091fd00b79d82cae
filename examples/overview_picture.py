"""Draw the picture of the README: breast tumours, their missing proteins, the groups, and what sets the groups apart.

python examples/overview_picture.py docs/images/overview.png
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib
import numpy as np
from sklearn.manifold import TSNE

from gapview import BridgedGRMF
from gapview.datasets import fetch_breast_cancer
from gapview.scaling import unit_rows

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap

INK, ABSENT = "#1f2933", "#d9dee4"
GROUPS = ["#0072b2", "#d55e00", "#009e73"]  # of Okabe and Ito, which colour-blind readers can tell apart
SUBTYPES = {"Basal": "#4b2a76", "Her2": "#a8478c", "LumA": "#6b7a89"}
VIEWS = {"mrna": "mRNA", "mirna": "microRNA", "protein": "proteins"}
N_FEATURES = 5  # of each group and view
TITLE = {"loc": "left", "fontsize": 11, "fontweight": "bold", "color": INK}


def main(path: str) -> None:
    data = fetch_breast_cancer()
    model = BridgedGRMF(n_clusters=3, random_state=0).fit(data.views)
    plt.rcParams.update({"font.size": 9, "text.color": INK, "ytick.color": INK, "font.family": "DejaVu Sans"})
    figure = plt.figure(figsize=(12, 5), dpi=130, layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[3.6, 8.4], wspace=0.02)
    draw_map(left.subplots(), model)
    draw_features(right, model, data)
    figure.savefig(path, facecolor="white", pil_kwargs={"optimize": True})


def draw_map(axes: Any, model: BridgedGRMF) -> None:
    """Draw every tumour, those without proteins as rings."""
    places = TSNE(random_state=0, init="pca", perplexity=25).fit_transform(unit_rows(model.embedding_))
    complete = model.views_.mask.all(axis=1)
    colors = np.array(GROUPS)[model.labels_]
    axes.scatter(*places[complete].T, c=colors[complete], s=22, linewidths=0, label="all three views")
    rings = {"facecolors": "white", "edgecolors": colors[~complete], "linewidths": 1.3}
    axes.scatter(*places[~complete].T, s=20, **rings, label="no proteins")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    legend = axes.legend(loc="lower right", frameon=False, handletextpad=0.1)
    for handle in legend.legend_handles:
        handle.set_edgecolor(INK)
    legend.legend_handles[0].set_facecolor(INK)
    axes.set_title(f"Groups of all {len(places)} tumours", **TITLE)


def draw_features(panel: Any, model: BridgedGRMF, data: Any) -> None:
    """Draw strips of the groups and the known subtypes above the features that differ most."""
    order = np.lexsort([~model.views_.mask.all(axis=1), model.labels_])  # within a group, complete tumours first
    markers = model.markers(random_state=0).to_frame()
    axes, *maps = rows = panel.subplots(4, 1, height_ratios=[5, 15, 15, 15])
    names = [str(name) for name in data.target_names]
    draw_strips(axes, model.labels_[order], data.target[order], names)
    for k, place in enumerate(maps):
        draw_heat_map(place, model, markers, k, order)
    n_lacking = int((~model.views_.mask[:, 2]).sum())
    maps[2].set_xlabel(f"{len(order)} tumours; grey: {n_lacking} of them have no proteins", color=INK)
    for place in rows:
        place.tick_params(length=0)
        place.spines[:].set_visible(False)
        place.set_xticks([])
        for edge in np.flatnonzero(np.diff(model.labels_[order])) + 0.5:
            place.axvline(edge, color="white", linewidth=2.5)
    axes.set_title("What sets them apart: features above (red) and below (blue) their mean", **TITLE)


def draw_strips(axes: Any, labels: Any, target: Any, names: list[str]) -> None:
    """Draw the group and the subtype of every tumour, with the name of each group and of its most frequent subtype."""
    colors = ListedColormap([*GROUPS, *(SUBTYPES[name] for name in names)])
    axes.imshow(np.stack([labels, target + 3]), aspect="auto", interpolation="nearest", cmap=colors, vmin=0, vmax=5)
    axes.axhline(0.5, color="white", linewidth=2.5)
    axes.set_yticks([0, 1], ["group found", "known subtype\n(never used)"])
    for group in range(3):
        inside = np.flatnonzero(labels == group)
        texts = [f"group {group}: {len(inside)}", names[np.bincount(target[inside]).argmax()]]
        for row, text in enumerate(texts):
            axes.text(inside.mean(), row, text, color="white", ha="center", va="center", weight="bold")


def draw_heat_map(axes: Any, model: BridgedGRMF, markers: Any, k: int, order: Any) -> None:
    """Draw the features of one view that are higher in a group, standardised; tumours without the view are grey."""
    views = model.views_
    own = markers[(markers["view"] == views.names[k]) & (markers["direction"] == "up")]
    best = own.sort_values("effect", ascending=False).groupby("group").head(N_FEATURES)
    present = views.matrices[k][:, best.sort_values("group", kind="stable")["feature"].astype(int)]
    values = np.full((views.n_samples, len(best)), np.nan)
    values[views.rows(k)] = (present - present.mean(axis=0)) / present.std(axis=0)
    cmap = matplotlib.colormaps["RdBu_r"].with_extremes(bad=ABSENT)
    axes.imshow(values[order].T, aspect="auto", interpolation="nearest", cmap=cmap, vmin=-2.5, vmax=2.5)
    axes.set_yticks([(len(best) - 1) / 2], [VIEWS[views.names[k]]])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "overview.png")
