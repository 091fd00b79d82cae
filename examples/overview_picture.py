"""Draw the picture of the README: what is missing, the groups found, and what a missing view would have looked like.

python examples/overview_picture.py docs/images/overview.png
"""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
from sklearn.manifold import TSNE

from gapview import BridgedGRMF
from gapview.datasets import load_digits_views, paired_split
from gapview.metrics import clustering_scores
from gapview.scaling import unit_rows

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, MUTED, PRESENT = "#1f2933", "#7b8794", "#3b6ea8"


def main(path: str) -> None:
    data = load_digits_views()
    views = paired_split(data.views, 0.5, random_state=0)
    model = BridgedGRMF(n_clusters=10, random_state=0).fit(views)
    scores = clustering_scores(data.target, model.labels_)

    plt.rcParams.update({"font.size": 9, "text.color": INK, "font.family": "DejaVu Sans"})
    figure = plt.figure(figsize=(12, 4.2), dpi=150, layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[2.2, 4.4, 4.6])
    draw_gaps(left, views)
    draw_groups(middle, model, scores["accuracy"])
    draw_recovered(right, model, data, views)
    figure.savefig(path, facecolor="white")


def draw_gaps(panel: plt.Figure, views) -> None:
    axes = panel.subplots()
    order = np.lexsort(views.mask.T)[::-1]
    axes.imshow(
        np.where(views.mask[order], 1.0, 0.0),
        aspect="auto",
        interpolation="nearest",
        cmap=matplotlib.colors.ListedColormap(["#eceff3", PRESENT]),
    )
    axes.set_xticks(range(views.n_views), views.names)
    axes.set_yticks([])
    axes.set_ylabel(f"{views.n_samples} samples", color=MUTED)
    axes.axvline(0.5, color="white", linewidth=3)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("Half lack a view", loc="left", fontsize=10, fontweight="bold")


def draw_groups(panel: plt.Figure, model: BridgedGRMF, accuracy: float) -> None:
    axes = panel.subplots()
    places = TSNE(random_state=0, init="pca", perplexity=40).fit_transform(unit_rows(model.embedding_))
    axes.scatter(*places.T, c=model.labels_, cmap="tab10", s=5, linewidths=0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.set_title(
        f"10 groups over all of them ({100 * accuracy:.0f} % right)", loc="left", fontsize=10, fontweight="bold"
    )


def draw_recovered(panel: plt.Figure, model: BridgedGRMF, data, views) -> None:
    pixels = model.recover()["pixels"]
    hidden = np.flatnonzero(~views.mask[:, 0])
    chosen = [hidden[data.target[hidden] == digit][2] for digit in range(10)]
    rows = panel.subplots(4, 5)
    for column, sample in enumerate(chosen):
        half, place = divmod(column, 5)
        for row, image in ((2 * half, data.views.matrices[0][sample]), (2 * half + 1, pixels[sample])):
            axes = rows[row, place]
            axes.imshow(image.reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(False)
    for row in range(4):
        rows[row, 0].set_ylabel(("hidden", "recovered")[row % 2], color=MUTED, fontsize=8)
    panel.suptitle(
        "Pixels of samples that only had Fourier coefficients", x=0.02, ha="left", fontsize=10, fontweight="bold"
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "overview.png")
