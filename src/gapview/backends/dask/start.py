"""Starting codes, block by block: random, given by the user, or computed from the data."""

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
from ...factorization.sweep import Layout, summed
from ...utils.types import Array
from ...views.checks import one_per_view
from .reading import as_dask_array
from .tasks import Tasks
from .views import BlockedViews

__all__ = ["data_starts", "given_starts", "random_starts"]


def random_starts(tasks: Tasks, problems: list[Any], views: BlockedViews, n_components: int, seed: int) -> list[Any]:
    """Draw codes uniformly from [0, 1); those of a sample do not depend on how the samples are cut into blocks."""
    begins = views.starts[:-1].tolist()
    return tasks.map("start", _draw, problems, begins, n_components=n_components, n_samples=views.n_samples, seed=seed)


def _draw(problem: Problem, begin: int, *, n_components: int, n_samples: int, seed: int) -> list[Array]:
    codes = []
    for k, term in enumerate(problem.terms):
        # This generator can be advanced, four numbers at a time
        source, skipped = np.random.Philox(key=seed), (k * n_samples + begin) * n_components
        source.advance(skipped // 4)
        drawn = np.random.Generator(source).random(problem.n_samples * n_components + skipped % 4)[skipped % 4 :]
        codes.append(drawn.reshape(-1, n_components)[problem.rows[term.part]].astype(problem.degrees.dtype))
    return codes


def given_starts(tasks: Tasks, init: Any, problems: list[Any], scaled: BlockedViews, n_components: int) -> list[Any]:
    """Read the user's codes: for every view an array, or Dask array, with a row for each sample."""
    expected = (
        f"init must be 'random', 'data', or one array of starting codes for each of the {scaled.n_views} views, in a "
        "list or in a dict with the names of the views"
    )
    given = one_per_view(init, scaled, expected)  # type: ignore[arg-type]
    arrays = [as_dask_array(codes) for codes in given]
    for name, array in zip(scaled.names, arrays, strict=True):
        if array.shape != (scaled.n_samples, n_components):
            raise InputError(
                f"The starting codes of view '{name}' must be {scaled.n_samples} × {n_components}, a row for each "
                f"sample; got shape {array.shape}."
            )
    cut = [array.rechunk((tuple(scaled.sizes), (n_components,))) for array in arrays]
    blocks = [list(own) for own in zip(*tasks.read(cut), strict=True)]
    return tasks.map("start", _read_codes, problems, blocks, names=scaled.names)


def _read_codes(problem: Problem, codes: Sequence[Any], *, names: Sequence[str]) -> list[Array]:
    chosen = [
        np.asarray(own)[problem.rows[term.part]].astype(problem.degrees.dtype)
        for own, term in zip(codes, problem.terms, strict=True)
    ]
    for name, own in zip(names, chosen, strict=True):
        if not np.isfinite(own).all():
            raise InputError(f"The starting codes of view '{name}' must be finite; they hold NaN or infinity.")
    return chosen


def data_starts(tasks: Tasks, problems: list[Any], n_components: int, weights: Weights, groups: Any) -> list[Any]:
    """Compute starting codes from the data, as :mod:`gapview.factorization.starts` does in memory."""
    columns = tasks.gather(tasks.submit("start", feature_columns, problems[0]))
    shared = tasks.total("start", sum, tasks.map("start", shared_samples, problems), groups)
    n_features = columns[-1].stop
    n_directions = min(n_components, n_features)
    if n_features <= MOST_FEATURES:
        parts = tasks.map("start-moments", _moments, problems, consensus_weight=weights.consensus)
        covariance, quadratic = tasks.total("start-moments", summed, parts, groups)
        bases = bases_from_moments(covariance, quadratic, shared, columns, n_directions)
    else:
        counts = [shared] * len(problems)

        def times(vector: Array) -> Array:
            vectors = [tasks.broadcast("start-vector", np.ravel(vector))] * len(problems)
            parts = tasks.map("start-product", covariance_times, problems, counts, vectors)
            return np.asarray(tasks.total("start-product", sum, parts, groups))

        bases = bases_from_products(times, columns, n_directions)
    sent = [tasks.broadcast("start-bases", bases)] * len(problems)
    return tasks.map("start", best_codes, problems, sent, weights=weights, n_components=n_components)


def _moments(problem: Problem, *, consensus_weight: float) -> list[Array]:
    layout = Layout(problem, 1)
    return list(moments_of_stripe(layout, consensus_weight, range(len(layout.blocks))))
