"""Where the iterations start, block by block: random codes, the user's own, or codes taken from the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...factorization.problem import Problem
from ...factorization.runs import Weights
from ...factorization.starts import (
    MOST_FEATURES,
    bases_from_moments,
    bases_from_products,
    best_codes,
    covariance_times,
    feature_columns,
    moments_of_stripe,
    shared_samples,
)
from ...factorization.sweep import Layout
from ...utils.types import Array
from ...views.checks import one_per_view
from ...views.containers import descends
from .blocks import BlockedViews, known_sizes
from .tasks import Tasks

__all__ = ["data_starts", "given_starts", "random_starts"]


def random_starts(tasks: Tasks, problems: list[Any], views: BlockedViews, n_components: int, seed: int) -> list[Any]:
    """Draw codes uniformly from [0, 1), for every sample the same ones however the samples are cut into blocks."""
    begins = views.starts[:-1].tolist()
    return tasks.map("start", _drawn, problems, begins, n_components=n_components, n_samples=views.n_samples, seed=seed)


def _drawn(problem: Problem, begin: int, *, n_components: int, n_samples: int, seed: int) -> list[Array]:
    codes = []
    for k, term in enumerate(problem.terms):
        # A generator that can be moved on, four numbers at a time
        source, skipped = np.random.Philox(key=seed), (k * n_samples + begin) * n_components
        source.advance(skipped // 4)
        drawn = np.random.Generator(source).random(problem.n_samples * n_components + skipped % 4)[skipped % 4 :]
        codes.append(drawn.reshape(-1, n_components)[problem.rows[term.part]].astype(problem.degrees.dtype))
    return codes


def given_starts(tasks: Tasks, init: Any, problems: list[Any], scaled: BlockedViews, n_components: int) -> list[Any]:
    """Read the user's own codes: for every view an array, or Dask array, with a row for each sample."""
    import dask.array as da

    expected = (
        f"init must be 'random', 'data', or one array of starting codes for each of the {scaled.n_views} views, in a "
        "list or in a dict with the names of the views"
    )
    given = one_per_view(init, scaled, expected)  # type: ignore[arg-type]
    arrays = []
    for name, codes in zip(scaled.names, given, strict=True):
        array = known_sizes(codes) if descends(codes, "dask", "Array") else da.from_array(np.asarray(codes), chunks=-1)
        if array.shape != (scaled.n_samples, n_components):
            raise InputError(
                f"The starting codes of view '{name}' must be {scaled.n_samples} × {n_components}, a row for each "
                f"sample; got shape {array.shape}."
            )
        arrays.append(array.rechunk((tuple(scaled.sizes), (n_components,))))
    blocks = [list(own) for own in zip(*tasks.read(arrays), strict=True)]
    return tasks.map("start", _given, problems, blocks, names=scaled.names)


def _given(problem: Problem, codes: Sequence[Any], *, names: Sequence[str]) -> list[Array]:
    chosen = [
        np.asarray(own)[problem.rows[term.part]].astype(problem.degrees.dtype)
        for own, term in zip(codes, problem.terms, strict=True)
    ]
    for name, own in zip(names, chosen, strict=True):
        if not np.isfinite(own).all():
            raise InputError(f"The starting codes of view '{name}' must be finite; they hold NaN or infinity.")
    return chosen


# -- from the data ---------------------------------------------------------------------------------------------


def data_starts(tasks: Tasks, problems: list[Any], n_components: int, weights: Weights, groups: Any) -> list[Any]:
    """Compute starting codes from the data, as :func:`gapview.factorization.starts.data_start` does in memory."""
    shared, columns = tasks.gather(tasks.summed("start", _counted, tasks.map("start", _shared, problems), groups))
    n_features = columns[-1].stop
    n_directions = min(n_components, n_features)
    if n_features <= MOST_FEATURES:
        parts = tasks.map("start-moments", _moments, problems, consensus_weight=weights.consensus)
        covariance, quadratic = tasks.gather(tasks.summed("start-moments", _added, parts, groups))
        bases = bases_from_moments(covariance, quadratic, shared, columns, n_directions)
    else:

        def times(vector: Array) -> Array:
            known = tasks.share("start-vector", np.ravel(vector))
            parts = tasks.map("start-product", _times, problems, [known] * len(problems), shared=shared)
            return np.asarray(tasks.gather(tasks.summed("start-product", sum, parts, groups)))

        bases = bases_from_products(times, columns, n_directions)
    known = tasks.share("start-bases", bases)
    return tasks.map("start", _codes, problems, [known] * len(problems), weights=weights, n_components=n_components)


def _shared(problem: Problem) -> tuple[Array, list[slice]]:
    return shared_samples(problem), feature_columns(problem)


def _counted(parts: Sequence[tuple[Array, list[slice]]]) -> tuple[Array, list[slice]]:
    return sum(counts for counts, _ in parts), parts[0][1]  # type: ignore[return-value]


def _moments(problem: Problem, *, consensus_weight: float) -> list[Array]:
    layout = Layout(problem, 1)
    return list(moments_of_stripe(layout, consensus_weight, range(len(layout.blocks))))


def _added(parts: Sequence[list[Array]]) -> list[Array]:
    return [sum(arrays[1:], start=arrays[0]) for arrays in zip(*parts, strict=True)]


def _times(problem: Problem, vector: Array, *, shared: Array) -> Array:
    return covariance_times(problem, shared, vector)


def _codes(problem: Problem, bases: list[Array], *, weights: Weights, n_components: int) -> list[Array]:
    return best_codes(problem, bases, weights, n_components)
