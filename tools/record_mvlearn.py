"""Record the scores of mvlearn's co-regularised spectral clustering on two complete data sets.

mvlearn 0.5.0 needs older packages than gapview, so this runs in an environment of its own (Python 3.11):

    python3.11 -m venv mvlearn-env
    mvlearn-env/bin/pip install numpy==1.23.5 scipy==1.10.1 scikit-learn==1.2.2 joblib==1.2.0 pandas==1.5.3 \
        matplotlib==3.7.5 seaborn==0.12.2
    mvlearn-env/bin/pip install --no-deps mvlearn==0.5.0
    OMP_NUM_THREADS=1 mvlearn-env/bin/python tools/record_mvlearn.py "$GAPVIEW_DATA" results/baselines/mvlearn.csv

`--no-deps`, since mvlearn asks for matplotlib 3.3.4 at most, which has no wheels for Python 3.11; its clustering does
not draw, so a newer one that imports will do.

Every row of every view is scaled to unit length. The number of clusters is the number of classes, and all but v_lambda
and random_state is mvlearn's default. Its default v_lambda is 2, the last of the values here.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import mvlearn
import numpy as np
from mvlearn.cluster import MultiviewCoRegSpectralClustering
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import normalize

DATA = ("bbcsport_2v", "handwritten_2v")
V_LAMBDAS = (0.01, 0.05, 0.1, 0.5, 1, 2)
COLUMNS = ("data", "v_lambda", "seed", "accuracy", "nmi", "ari", "seconds", "mvlearn")


def load(path: Path) -> tuple[list[np.ndarray], np.ndarray]:
    """Return both views with rows of unit length, and the classes."""
    with np.load(path, allow_pickle=False) as file:
        views = [normalize(file[name].astype(np.float64)) for name in ("view_0", "view_1")]
        return views, file["y"]


def accuracy(classes: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of samples in the class matched to their cluster, one to one, by the best matching."""
    counts = contingency_matrix(classes, labels)
    return counts[linear_sum_assignment(counts, maximize=True)].sum() / len(classes)


def main() -> None:
    """Cluster each data set with every v_lambda and seed, and write one line for each run as it ends."""
    parser = argparse.ArgumentParser(description="Record mvlearn's co-regularised spectral clustering.")
    parser.add_argument("data", type=Path, help="folder of the data sets (.npz)")
    parser.add_argument("output", type=Path, help="the .csv file to write")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, from 0 (default 10)")
    options = parser.parse_args()
    if MultiviewCoRegSpectralClustering().v_lambda not in V_LAMBDAS:
        raise SystemExit("V_LAMBDAS lacks the default of this version of mvlearn.")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in DATA:
            views, classes = load(options.data / f"{name}.npz")
            for v_lambda in V_LAMBDAS:
                for seed in range(options.seeds):
                    model = MultiviewCoRegSpectralClustering(
                        n_clusters=len(np.unique(classes)), v_lambda=v_lambda, random_state=seed
                    )
                    start = time.perf_counter()
                    labels = model.fit_predict(views)
                    seconds = time.perf_counter() - start
                    scores = (
                        accuracy(classes, labels),
                        normalized_mutual_info_score(classes, labels, average_method="max"),
                        adjusted_rand_score(classes, labels),
                    )
                    rounded = [f"{score:.6f}" for score in scores]
                    writer.writerow([name, v_lambda, seed, *rounded, f"{seconds:.2f}", mvlearn.__version__])
                    file.flush()


if __name__ == "__main__":
    main()
