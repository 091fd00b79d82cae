"""Memory budgets: what is refused before the work, and what they promise beyond ``fit``.

Measured peaks of fits, their messages, and budgets that cannot be read: ``test_disk_fits.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest

from disk_problems import saved, with_gaps
from gapview import GRMF, BridgedGRMF
from gapview.backends.disk.budget import fit_size, plan_memory
from gapview.datasets import make_views
from gapview.errors import ParameterError

SETTINGS = {
    "GRMF": {"init": "data", "max_iter": 10, "tol": 0, "random_state": 0},
    "BridgedGRMF": {
        **{"selection": "fixed", "bridge": "union", "scale": "center+unit", "view_weights": None},
        **{"max_iter": 10, "tol": 0, "random_state": 0},
    },
}
METHODS = {"GRMF": GRMF, "BridgedGRMF": BridgedGRMF}
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    data = make_views(800, (300, 200), n_clusters=3, missing_rate=0.3, random_state=3)
    return data.views, saved(tmp_path_factory.mktemp("views"), with_gaps(data.views))


def plan_of(method, views):
    return plan_memory(fit_size(METHODS[method](3, **SETTINGS[method]), views))


@each_method
def test_the_reported_need_is_the_need(method, made):
    """One byte less than what the message asks for is refused with that number, and as much is enough."""
    views, maps = made
    plan = plan_of(method, views)
    for data, need in ((views, plan.in_memory), (maps, plan.least)):
        model = METHODS[method](3, **SETTINGS[method])
        with (
            patch.object(METHODS[method], "_fit", side_effect=AssertionError("the work has begun")),
            pytest.raises(ParameterError, match=r"this needs [\d.]+ MB, you gave [\d.]+ MB: use a larger budget"),
        ):
            model.set_params(memory_budget=need - 1).fit(data)
        assert model.set_params(memory_budget=need).fit(data).labels_.shape == (800,)


@each_method
def test_a_fit_that_is_refused_leaves_the_earlier_model(method, made):
    views, _ = made
    model = METHODS[method](3, **SETTINGS[method]).fit(views)
    before = model.labels_
    with pytest.raises(ParameterError, match="memory_budget"):
        model.set_params(memory_budget="2MB").fit(views)
    assert model.labels_ is before


@each_method
def test_stability_repeats_fits_within_the_budget(method, made):
    """Resamples are held in memory: a budget for the disk alone is refused before the first of them."""
    views, maps = made
    plan = plan_of(method, views)
    settings = {"n_resamples": 3, "random_state": 0}
    plain = METHODS[method](3, **SETTINGS[method]).fit(views).cluster_stability(**settings)
    enough = METHODS[method](3, memory_budget=plan.in_memory, **SETTINGS[method]).fit(maps)
    np.testing.assert_allclose(enough.cluster_stability(**settings).jaccard, plain.jaccard)
    little = METHODS[method](3, memory_budget=plan.least, **SETTINGS[method]).fit(maps)
    with pytest.raises(ParameterError, match=r"holds one resample .* this needs \d+ MB, you gave \d+ MB: use a larger"):
        little.cluster_stability(share=1.0, **settings)
    more = little.set_params(memory_budget=plan.in_memory)
    np.testing.assert_allclose(more.cluster_stability(**settings).jaccard, plain.jaccard)


_PEAK = """
import json, sys, warnings
import numpy as np
import gapview
from gapview.datasets import make_views
def memory(name):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))
method, settings, budget = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
warnings.simplefilter("ignore")
views = make_views(6000, (250, 150), n_clusters=3, missing_rate=0.3, dtype="float32", random_state=0).views
getattr(gapview, method)(3, **settings).fit(views[:300])
before = memory("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
getattr(gapview, method)(3, memory_budget=budget, **settings).fit(views)
print(memory("VmHWM") - before)
"""


@each_method
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peaks are read from /proc")
def test_fits_of_views_in_memory_stay_within_the_reported_need(method):
    views = make_views(6000, (250, 150), n_clusters=3, missing_rate=0.3, dtype="float32", random_state=0).views
    budget = plan_of(method, views).in_memory
    command = [sys.executable, "-c", _PEAK, method, json.dumps(SETTINGS[method]), str(budget)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < budget
