"""Many fits in one process, and many at once: nothing grows, nobody disturbs another."""

import mmap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gapview_lab.reliability.load import Job, at_once, in_a_row
from gapview_lab.reliability.process import Watch

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc")


def test_fits_in_a_row_leave_nothing_behind():
    found = in_a_row(24, n_samples=60, warm_up=6, n_kinds=3)  # the quick ones
    assert found.same == 24
    assert found.threads[1] <= found.threads[0]
    assert found.open_files[1] <= found.open_files[0]
    assert found.temporary_files == 0
    assert found.kilobytes_per_fit < 100  # so few fits tell no more


def test_growth_is_seen(monkeypatch):
    kept, run = [], Job.__call__

    def leaking(job):
        pages = mmap.mmap(-1, 2**19)  # from the system: what is free in the process already would not show
        pages.write(b"\1" * 2**19)
        kept.append(pages)
        return run(job)

    monkeypatch.setattr(Job, "__call__", leaking)
    found = in_a_row(9, n_samples=50, warm_up=1, n_kinds=1)
    assert 300 < found.kilobytes_per_fit < 700
    assert not found.holds


def test_fits_at_once_in_threads_find_what_they_find_alone():
    found = at_once("threads", 5, n_samples=60)
    assert found.holds, found


def test_fits_at_once_in_processes_find_what_they_find_alone():
    found = at_once("processes", 2, n_samples=60)
    assert found.holds, found


def test_watch_sees_threads_that_run():
    def work():
        matrix = np.ones((600, 600))
        for _ in range(20):
            np.linalg.svd(matrix[:200, :200])

    with Watch() as watch, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: work(), range(3)))
    assert watch.most_busy >= 2
