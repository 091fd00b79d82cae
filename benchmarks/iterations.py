"""How much faster the iterations are than Algorithm 1 as written, both in one run.

GAPVIEW_DATA=… python benchmarks/iterations.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gapview.datasets import load_views, paired_split
from gapview.experiments import compare_iterations


def main() -> None:
    folder = os.environ.get("GAPVIEW_DATA")
    if not folder:
        sys.exit("Set GAPVIEW_DATA to the folder that holds handwritten_2v.npz.")
    data = load_views(Path(folder) / "handwritten_2v.npz")
    print("100 iterations, handwritten (2000 samples), fold 0, K = 10")
    print("paired   plain dense   gapview    ratio   largest difference of a code")
    for rate in (0.1, 0.5, 0.9):
        speed = compare_iterations(paired_split(data.views, rate, order=data.folds[0]), n_clusters=10, n_iter=100)
        times = f"{100 * speed.plain:9.2f} s  {100 * speed.fast:7.3f} s"
        print(f"{rate:6.1f}  {times}  {speed.ratio:5.0f} ×   {speed.difference:.1e}")


if __name__ == "__main__":
    main()
