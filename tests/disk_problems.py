"""Views in files, and fits in a separate process that measures its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

_PROGRAM = """
import json, sys, warnings
import numpy as np
import gapview
from gapview.datasets import make_views

def memory(name):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

folder, method, settings, n_views = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
warnings.simplefilter("ignore")
small = make_views(300, (20, 30), n_clusters=3, missing_rate=0.3, random_state=0).views
kept = {name: value for name, value in settings.items() if name not in ("memory_budget", "n_clusters")}
getattr(gapview, method)(3, **kept).fit(small)  # loads the libraries: the interpreter's own footprint
views = [np.load(f"{folder}/{k}.npy", mmap_mode="r") for k in range(n_views)]
before = memory("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # resets the high-water mark
model = getattr(gapview, method)(**settings).fit(views)
np.save(f"{folder}/labels.npy", model.labels_)
print(json.dumps({"peak": memory("VmHWM") - before, "recalls": [done.recall for done in model.neighbor_search_]}))
"""


def saved(folder: Path, matrices: list[np.ndarray], order: str = "C") -> list[np.memmap]:
    """Save views, and open them as memory maps."""
    for k, matrix in enumerate(matrices):
        np.save(folder / f"{k}.npy", np.asarray(matrix, order=order))
    return [np.load(folder / f"{k}.npy", mmap_mode="r") for k in range(len(matrices))]


def with_gaps(views) -> list[np.ndarray]:
    """Write views out over all samples, NaN where they are missing."""
    matrices = []
    for k, matrix in enumerate(views.matrices):
        whole = np.full((views.n_samples, matrix.shape[1]), np.nan, dtype=matrix.dtype)
        whole[views.rows(k)] = matrix
        matrices.append(whole)
    return matrices


def fit_in_process(folder: Path, method: str, n_views: int, **settings) -> tuple[np.ndarray, dict]:
    """Fit views in a folder in another process; return the labels, and the growth of its peak memory in bytes."""
    arguments = [sys.executable, "-c", _PROGRAM, str(folder), method, json.dumps(settings), str(n_views)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "labels.npy"), json.loads(done.stdout)
