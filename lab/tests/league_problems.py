"""Small problems of the league: data files of every kind, and results made up from scores."""

from __future__ import annotations

import numpy as np

from gapview import GRMF
from gapview.datasets import make_views
from gapview_lab.league.entrants import Entrant
from gapview_lab.league.runs import SCORES, LeagueRun, LeagueTask
from gapview_lab.league.summary import LABEL_FREE, LABEL_TUNED, summarise


def save(path, n_views=2, n_samples=40, labels=True, **more):
    """Write a data file of well separated groups; a view that ``mask`` hides is NaN."""
    made = make_views(n_samples, (6, 7, 8)[:n_views], n_clusters=3, random_state=0)
    arrays = [matrix.copy() for matrix in made.views.matrices]
    if "mask" in more:
        for k, array in enumerate(arrays):
            array[~np.asarray(more["mask"], dtype=bool)[:, k]] = np.nan
    extra = {"y": made.target} if labels else {}
    np.savez(path, **{f"view_{k}": array for k, array in enumerate(arrays)}, **extra, **more)
    return path


def folds(count=3, n_samples=40):
    return np.array([np.random.RandomState(k).permutation(n_samples) for k in range(count)])


def masks(count=2, n_samples=40, n_views=2):
    found = np.ones((count, n_samples, n_views), dtype=np.uint8)
    for k in range(count):
        found[k, k :: n_views + 2, k % n_views] = 0
    return found


def gaps(n_samples=40, n_views=3):
    mask = np.ones((n_samples, n_views), dtype=np.uint8)
    mask[::4, 0] = 0
    return mask


def league_of(scores, failed=(), tuned=False):
    """Make tasks and runs from scores by (data, rate, method, setting): one value for every seed."""
    runs = {}
    for (data, rate, method, setting), values in scores.items():
        for seed, value in enumerate(values):
            task = LeagueTask(data, "", "paired", rate, seed, method, setting, 1)
            bad = (data, rate, method, seed) in failed
            marks = {} if bad else dict(zip(SCORES, (value, value**2, value / 2, value), strict=True))
            runs[task] = LeagueRun(**vars(task), status="no luck" if bad else "done", seconds=value, **marks)
    methods = dict.fromkeys(method for _, _, method, _ in scores)
    entrants = [Entrant(name, GRMF, is_ours=name.startswith("Ours")) for name in methods]
    return summarise(runs, list(runs), entrants, LABEL_TUNED if tuned else LABEL_FREE)
