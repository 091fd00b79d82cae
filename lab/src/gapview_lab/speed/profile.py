"""Iterations as a share of the matrix-product speed, and where the time of a pass goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from gapview.compute import NumpyEngine, one_by_one
from gapview.factorization import loop as factorization
from gapview.factorization.problem import Problem, ViewTerm
from gapview.factorization.starts import random_start
from gapview.factorization.steps import basis_step
from gapview.factorization.sweep import Layout, Sweep
from gapview.utils.types import Array

from .iterations import PAPER_WEIGHTS
from .machine import PRODUCT, best_of, memory_speed, n_threads, product_speed
from .results import Measured

__all__ = ["PARTS", "READING", "STARTS", "PassProfile", "iteration_problem", "measure_iterations", "profile_iterations"]

STARTS = {1: "one start", 5: "five starts side by side"}
PARTS = ("product UHᵀ", "product PH", "steps between", "layout", "SVDs", "waiting for threads", "rest")
READING = "reading H once, by the memory speed"
_N_COMPONENTS = 10
_BLOCK = 16384


def iteration_problem(n_samples: int, widths: Sequence[int]) -> Problem:
    """Make a problem of this size in single precision; what the numbers are does not change the time."""
    state = np.random.default_rng(0)
    terms, rows = [], []
    for k, width in enumerate(widths):
        smoothed = np.empty((n_samples, width), dtype=np.float32)
        for begin in range(0, n_samples, _BLOCK):
            smoothed[begin : begin + _BLOCK] = state.standard_normal(smoothed[begin : begin + _BLOCK].shape)
        terms.append(ViewTerm(slice(k * n_samples, (k + 1) * n_samples), width, smoothed))
        rows.append(np.arange(n_samples))
    degrees = state.integers(10, 20, size=n_samples * len(terms)).astype(np.float32)
    constant = float(n_samples * sum(widths))  # about ‖H‖²
    return Problem(tuple(terms), np.concatenate(rows), degrees, np.full(n_samples, len(terms)), constant)


@dataclass(frozen=True)
class PassProfile:
    """Seconds of one pass by part; what several threads do at once counts once. They add up to the whole."""

    seconds: float
    parts: dict[str, float]


Spans = dict[str, list[float]]  # appended to by several threads at once, which lists bear
Starts = Sequence[Sequence[Array]]


def profile_iterations(problem: Problem, starts: Starts, n_iter: int) -> PassProfile:
    """Run the library's own loop with a clock in every part of it, and say where the time of a pass goes."""
    spans: Spans = {name: [] for name in (*PARTS, "blocks", "rounds", "threads")}
    with _clocks(spans):
        begin = perf_counter()
        _iterate(problem, starts, n_iter)
        whole = perf_counter() - begin
    total = {name: sum(values) for name, values in spans.items()}
    threads = total["threads"]
    inside = ("product PH", "steps between", "layout")
    parts = {name: total[name] / threads for name in inside}
    # What no clock of its own can see: the first product, and the adding up of blocks
    parts["product UHᵀ"] = (total["blocks"] - sum(total[name] for name in inside)) / threads
    parts["SVDs"] = total["SVDs"]
    parts["waiting for threads"] = total["rounds"] - total["blocks"] / threads
    parts["rest"] = whole - total["rounds"] - total["SVDs"]
    return PassProfile(whole / n_iter, {name: parts[name] / n_iter for name in PARTS})


def _iterate(problem: Problem, starts: Starts, n_iter: int) -> None:
    factorization.solve_together(problem, [PAPER_WEIGHTS] * len(starts), starts, n_iter, tol=0)


@contextmanager
def _clocks(spans: Spans) -> Iterator[None]:
    """Put clocks into the loop, and take them out again."""
    places: list[tuple[Any, str, Any]] = [
        (Sweep, "_step", _clocked(Sweep._step, spans["steps between"])),
        (Sweep, "_shares", _clocked(Sweep._shares, spans["product PH"])),
        (Layout, "pieces", _clocked(Layout.pieces, spans["layout"])),
        (factorization, "basis_step", _clocked(basis_step, spans["SVDs"])),
        (NumpyEngine, "working", _clocked_engine(NumpyEngine.working, spans)),
    ]
    before = [getattr(owner, name) for owner, name, _ in places]
    try:
        for owner, name, clocked in places:
            setattr(owner, name, clocked)
        yield
    finally:
        for (owner, name, _), original in zip(places, before, strict=True):
            setattr(owner, name, original)


def _clocked(work: Callable[..., Any], span: list[float]) -> Callable[..., Any]:
    def clocked(*arguments: Any) -> Any:
        begin = perf_counter()
        try:
            return work(*arguments)
        finally:
            span.append(perf_counter() - begin)

    return clocked


def _clocked_engine(working: Callable[..., Any], spans: Spans) -> Callable[..., Any]:
    most = n_threads()  # inside the loop it is 1, since the threads are our own there

    @contextmanager
    def clocked(engine: NumpyEngine, n_operations: float) -> Iterator[Any]:
        with working(engine, n_operations) as each:
            spans["threads"].append(1 if each is one_by_one else most)
            yield _clocked(lambda work, items: each(_clocked(work, spans["blocks"]), items), spans["rounds"])

    return clocked


def measure_iterations(n_samples: int, widths: Sequence[int], n_iter: int, n_runs: int, size: int) -> list[Measured]:
    """Compare iterations with the matrix-product speed, and profile them.

    The time is that of :func:`gapview.factorization.solve_together`, with the product before the first iteration,
    divided by the number of iterations.
    """
    problem = iteration_problem(n_samples, widths)
    speeds = [product_speed(size, "float32")]
    taken: dict[str, tuple[float, PassProfile]] = {}
    for count, name in STARTS.items():
        starts = [random_start(problem, _N_COMPONENTS, np.random.RandomState(seed)) for seed in range(count)]
        _iterate(problem, starts, 1)  # threads and memory are there when the clock starts
        seconds = best_of(n_runs, lambda starts=starts: _iterate(problem, starts, n_iter)) / n_iter  # type: ignore[misc]
        profiles = [profile_iterations(problem, starts, n_iter) for _ in range(n_runs)]
        taken[name] = seconds, min(profiles, key=lambda profile: profile.seconds)
        speeds.append(product_speed(size, "float32"))
    # The best of before, between and after: a moment in which others slowed it down would flatter us
    reference = Measured(f"{PRODUCT}, float32", max(speeds), "GFLOP/s", note=f"{size} × {size}")
    found = [reference]
    operations = 4 * n_samples * sum(widths) * _N_COMPONENTS
    for count, name in STARTS.items():
        found += _compared(name, *taken[name], count * operations, reference)
    n_bytes = 4 * n_samples * sum(widths)
    copied = memory_speed(max(n_bytes, 2**20))
    return [*found, Measured(READING, n_bytes / copied / 1e9, "s", note=f"{copied:.1f} GB/s")]


def _compared(
    name: str, seconds: float, profile: PassProfile, n_operations: int, reference: Measured
) -> list[Measured]:
    """Compare one number of starts with the matrix-product speed, and its parts with the whole."""

    def speed(what: str, taken: float) -> Measured:
        return Measured.share(what, n_operations / taken / 1e9, reference.unit, reference.name, reference.value)

    parts = [
        Measured.share(f"{name}: {part}", profile.parts[part], "s", f"{name}: one pass", profile.seconds)
        for part in PARTS
    ]
    products = sum(profile.parts[part] for part in PARTS[:2])
    return [speed(name, seconds), *parts, speed(f"{name}: the two products", products)]
