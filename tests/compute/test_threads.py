"""Threads of BLAS and warnings of several fits at once: limits are lifted again, and fits do not affect each other."""

import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gapview import GRMF
from gapview.clusters import cluster_rows
from gapview.compute.engine import available_threads
from gapview.datasets import make_views
from gapview.errors import GapviewWarning
from gapview.utils.messages import ignoring, muted, warn_user

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc")


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def in_new_process(code, **environment):
    """Run code in a new interpreter with four threads, whatever the environment of the tests is."""
    environment = {
        "OMP_NUM_THREADS": "4",
        "OPENBLAS_NUM_THREADS": "4",
        "PYTHONPATH": os.pathsep.join(sys.path),
    } | environment
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_regression_limit_of_blas_is_lifted_by_whoever_leaves_last():
    """With newer threadpoolctl, a limit could be lifted only by the thread that had set it first."""
    printed = in_new_process("""
import numpy, scipy.linalg
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threadpoolctl import threadpool_info
from gapview.compute.engine import single_threaded_blas

def look():
    print(max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"), end=" ")

look()
first, second = ExitStack(), ExitStack()
with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
    one.submit(first.enter_context, single_threaded_blas()).result()
    other.submit(second.enter_context, single_threaded_blas()).result()
    look()
    one.submit(first.close).result()
    look()
    other.submit(second.close).result()
    look()
""").split()
    assert printed[1:] == ["1", "1", printed[0]]


def test_regression_blas_is_limited_in_any_thread():
    """After a fit in one thread, those in others ran with all threads of BLAS in each of ours."""
    printed = in_new_process("""
import threading
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
from gapview.compute.engine import single_threaded_blas

def look():
    with single_threaded_blas():
        print(max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"), end=" ")

look()
thread = threading.Thread(target=look)
thread.start()
thread.join()
""")
    assert printed.split() == ["1", "1"]


def test_threads_of_all_fits_together_are_no_more_than_the_cores():
    with threadpool_limits(4, user_api="blas"):
        usual = max(blas_threads())  # may be less than asked for
        with available_threads() as n_first:
            assert n_first == usual
            with ThreadPoolExecutor(1) as pool:

                def another():
                    with available_threads() as n_threads:
                        return n_threads

                assert pool.submit(another).result() == 1
        with available_threads() as n_again:
            assert n_again == usual


def test_process_of_a_pool_keeps_to_one_core_unless_told():
    code = """
import multiprocessing
import numpy, scipy.linalg
from gapview.compute.engine import available_threads

def ask(queue):
    with available_threads() as n_threads:
        queue.put(n_threads)

context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=ask, args=(queue,))
child.start()
print(queue.get(timeout=60))
child.join()
"""
    assert in_new_process(code, OMP_NUM_THREADS="", OPENBLAS_NUM_THREADS="").strip() == "1"
    assert int(in_new_process(code)) >= 1


def test_regression_fits_in_threads_leave_filters_of_warnings_as_they_were():
    """Filters were swapped and put back by several threads, so that some stayed for good."""
    before = list(warnings.filters)
    entered, left = threading.Event(), threading.Event()

    def first():
        with ignoring("Number of distinct clusters"):
            entered.set()
            left.wait(10)

    def second():
        entered.wait(10)
        with warnings.catch_warnings(), ignoring("Number of distinct clusters"):  # as scikit-learn does
            left.set()
            thread.join()

    thread = threading.Thread(target=first)
    thread.start()
    second()
    assert warnings.filters == before


def test_regression_warnings_of_a_fit_are_not_lost_by_another():
    """While one fit tried settings, warnings of all others were dropped."""
    with muted(GapviewWarning), ThreadPoolExecutor(1) as pool:
        warn_user("not said", GapviewWarning)
        with pytest.warns(GapviewWarning, match="heard"):
            pool.submit(warn_user, "heard", GapviewWarning).result()


def test_too_few_distinct_points_are_said_once_and_in_our_words():
    with pytest.warns(GapviewWarning, match="Only 2 distinct groups") as heard:
        cluster_rows(np.repeat(np.eye(2), 5, axis=0), 3, np.random.RandomState(0))
    assert len(heard) == 1


def test_a_fit_restores_the_threads_when_it_fails():
    before = blas_threads()
    views = make_views(30, n_clusters=2, random_state=0).views
    with pytest.raises(Exception, match="n_clusters"):
        GRMF(n_clusters=31).fit(views)
    assert blas_threads() == before
