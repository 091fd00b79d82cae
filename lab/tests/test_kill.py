"""Fits that are killed and resumed give the same model."""

from __future__ import annotations

import sys

import pytest

from gapview_lab.reliability.kill import ESTIMATORS, kill_and_go_on

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fits_that_are_killed_go_on_and_find_the_same(estimator):
    found = list(kill_and_go_on(estimator, 2, n_samples=60, seed=1))
    assert [(one.same, one.n_damaged) for one in found] == [(True, 0)] * len(found)
