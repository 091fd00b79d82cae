"""Draw the picture of docs/guide/trust.md: the statistic of noise and of digits among those of null data.

python examples/trust_picture.py docs/images/trust.png
"""

from __future__ import annotations

import sys
import warnings

import matplotlib
import numpy as np

from gapview import BridgedGRMF, Views
from gapview.datasets import hide_views, load_digits_views, paired_split

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, NULL, UNIFORM, FOUND = "#1f2933", "#7b8794", "#c4ccd4", "#b3401f"


def main(path: str) -> None:
    state = np.random.RandomState(0)
    noise = hide_views(Views([state.normal(size=(400, 20)), state.normal(size=(400, 30))]), 0.3, random_state=0)
    digits = paired_split(load_digits_views().views[:400], 0.5, random_state=0)
    plt.rcParams.update({"font.size": 9, "text.color": INK, "font.family": "DejaVu Sans"})
    figure, panels = plt.subplots(1, 2, figsize=(9, 3), dpi=150, layout="constrained", sharey=True)
    for axes, (title, views, n_clusters) in zip(
        panels, (("Noise, 4 groups", noise, 4), ("Digits, 10 groups", digits, 10)), strict=True
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # a level of 1 never stops early, so that all null data sets are drawn
            found = BridgedGRMF(n_clusters, random_state=0).fit(views).assess(n_null=39, alpha=1.0, random_state=0)
        for values, color, name in zip(found.null_statistics, (NULL, UNIFORM), ("Gaussian", "uniform"), strict=True):
            axes.hist(values, bins=12, color=color, alpha=0.8, label=f"{name} null data")
        axes.axvline(found.statistic, color=FOUND, linewidth=2, label="the data")
        axes.set_title(f"{title}: p = {found.p_value:.2g}")
        axes.set_xlabel("modularity³ × stability (null data: at most)")
        axes.set_xlim(left=0)
    panels[0].set_ylabel("null data sets")
    panels[1].legend(frameon=False)
    figure.savefig(path, facecolor="white")


if __name__ == "__main__":
    main(sys.argv[1])
