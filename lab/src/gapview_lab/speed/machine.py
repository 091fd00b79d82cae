"""Speed of the computer itself: matrix products and copies."""

from __future__ import annotations

import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from .results import Measured

__all__ = [
    "PRODUCT",
    "best_of",
    "computer",
    "measure_machine",
    "memory_speed",
    "n_threads",
    "product_speed",
    "versions",
]

_N_RUNS = 5
_PACKAGES = ("gapview", "numpy", "scipy", "scikit-learn", "faiss-cpu", "torch")
PRODUCT = "product of square matrices"


def best_of(n_runs: int, work: Callable[[], Any], least_seconds: float = 0.0) -> float:
    """Return the seconds of the fastest of several runs: other load only makes runs slower.

    Short work is repeated until the runs have taken ``least_seconds`` together.
    """
    times: list[float] = []
    while len(times) < n_runs or sum(times) < least_seconds:
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times)


def product_speed(size: int, dtype: str) -> float:
    """Measure the product of two square matrices, in 10⁹ operations per second; there are 2 · size³ of them."""
    state = np.random.default_rng(0)
    first, second = (state.random((size, size), dtype=np.float32).astype(dtype) for _ in range(2))
    result = np.empty_like(first)
    return 2 * size**3 / best_of(_N_RUNS, lambda: np.matmul(first, second, out=result)) / 1e9


def memory_speed(n_bytes: int) -> float:
    """Measure the copy of an array by all threads, in 10⁹ bytes per second, those read and those written."""
    source = np.ones(n_bytes // 8)
    target = np.empty_like(source)
    parts = list(zip(np.array_split(source, n_threads()), np.array_split(target, n_threads()), strict=True))
    with ThreadPoolExecutor(len(parts)) as pool:

        def copy() -> None:
            list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), parts))

        return 2 * source.nbytes / best_of(_N_RUNS, copy) / 1e9


def measure_machine(matrix_size: int, n_bytes: int) -> list[Measured]:
    """Measure the references of the other figures."""
    size = f"{matrix_size} × {matrix_size}"
    products = [
        Measured(f"{PRODUCT}, {dtype}", product_speed(matrix_size, dtype), "GFLOP/s", note=size)
        for dtype in ("float32", "float64")
    ]
    note = f"{n_bytes / 2**20:.0f} MiB, read and written"
    return [*products, Measured("copy of an array larger than the caches", memory_speed(n_bytes), "GB/s", note=note)]


def n_threads() -> int:
    """Return the number of threads of matrix products."""
    return max((int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


def computer() -> str:
    """Return the processor and the number of threads as text."""
    threads = n_threads()
    return f"{_processor()}, {threads} thread{'s' if threads > 1 else ''}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def versions() -> str:
    """Return the versions of Python, packages and BLAS as text."""
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    libraries = {
        f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if pool["user_api"] == "blas"
    }
    return ", ".join([*found, *sorted(libraries)])
