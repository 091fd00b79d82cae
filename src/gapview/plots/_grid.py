"""The figure of scores over the two weights of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError
from ..report.drawing import draw_frame, draw_weight_cells
from ..report.style import load_matplotlib
from ..utils.types import Array
from ._axes import axes_for, set_title

__all__ = ["plot_weight_grid"]

_WEIGHTS = ("consensus_weight", "sparsity_weight")


def plot_weight_grid(
    scores: Any, consensus_weights: Any = None, sparsity_weights: Any = None, *, label: str = "score", ax: Any = None
) -> Any:
    """Draw scores over a grid of λ1 (``consensus_weight``) and λ2 (``sparsity_weight``), as in the paper's Figure 3.

    The best cell is framed. Colours are shared out by the square of the scores, since what matters happens among the
    good ones.

    Parameters
    ----------
    scores : fitted GridSearchCV, or array of shape (n_consensus_weights, n_sparsity_weights)
        A search over both weights, whose mean test scores are drawn (of several settings with the same weights, the
        best); or the scores themselves, NaN where there is none.
    consensus_weights, sparsity_weights : sequences of float, optional
        Values of λ1, one for each row, and of λ2, one for each column. Needed with an array only.
    label : str, default="score"
        What the scores are.
    ax : matplotlib axes, optional
        Where to draw; by default on new ones.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.plots import plot_weight_grid
    >>> views = make_views(n_samples=60, n_clusters=2, random_state=0).views
    >>> grid = {"consensus_weight": [1.0, 100.0], "sparsity_weight": [1e-4, 1e-3, 1e-2]}
    >>> search = GridSearchCV(GRMF(n_clusters=2, init="data"), grid, cv=2).fit(views)
    >>> axes = plot_weight_grid(search, label="modularity")
    >>> [text.get_text() for text in axes.get_xticklabels()]
    ['10⁻⁴', '10⁻³', '10⁻²']
    """
    if hasattr(scores, "cv_results_"):
        if consensus_weights is not None or sparsity_weights is not None:
            raise InputError("A search knows its weights: consensus_weights and sparsity_weights are for arrays alone.")
        grid, rows, columns = _from_search(scores.cv_results_)
    else:
        rows, columns = (
            _weights(name, w) for name, w in zip(_WEIGHTS, (consensus_weights, sparsity_weights), strict=True)
        )
        grid = _scores(scores, len(rows), len(columns))
    low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
    spread = high - low
    digits = 1 if spread >= 3 else 2 if spread >= 0.1 else 3
    with axes_for(ax, min(10.0, 2.4 + 0.62 * len(columns)), min(8.0, 1.6 + 0.36 * len(rows))) as axes:
        norm = load_matplotlib("colors").PowerNorm(2, vmin=low, vmax=high if spread > 0 else low + 1)
        draw_weight_cells(axes, grid, rows, columns, norm, digits)
        row, column = map(int, np.unravel_index(np.nanargmax(grid), grid.shape))
        draw_frame(axes, column, column + 1, row, row + 1)
        set_title(axes, f"{label[:1].upper()}{label[1:]} by weights")
    return axes


def _weights(name: str, given: Any) -> list[float]:
    if given is None:
        raise InputError(f"{name}s must say the weights of the scores, in order; got None.")
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values >= 0)).all():
        raise InputError(f"{name}s must be a sequence of numbers of at least 0; got {given!r}.")
    return [float(value) for value in values]


def _scores(given: Any, n_rows: int, n_columns: int) -> Array:
    try:
        grid = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"scores must be a fitted search, or an array of numbers; got a {type(given).__name__}."
        ) from None
    if grid.shape != (n_rows, n_columns):
        raise InputError(
            f"scores must have a row for each of the {n_rows} consensus_weights and a column for each of the "
            f"{n_columns} sparsity_weights; got shape {grid.shape}."
        )
    if np.isinf(grid).any() or np.isnan(grid).all():
        raise InputError("scores must hold at least one number, and nothing infinite.")
    return grid


def _from_search(results: Any) -> tuple[Array, list[float], list[float]]:
    """Take the scores and the weights out of the results of a search; parameters may be those of a step."""
    found = {name: [key for key in results if key.split("__")[-1].removeprefix("param_") == name] for name in _WEIGHTS}
    lacking = [name for name, keys in found.items() if len(keys) != 1]
    if lacking:
        raise InputError(f"The search must go over both weights, once each; it does not over {' and '.join(lacking)}.")
    first, second = (np.asarray(results[keys[0]], dtype=np.float64) for keys in found.values())
    if "mean_test_score" not in results:
        raise InputError("The search has no mean_test_score; give it one way of scoring, or pass an array of scores.")
    rows, columns = np.unique(first), np.unique(second)
    grid = np.full((len(rows), len(columns)), np.nan)
    places = np.searchsorted(rows, first), np.searchsorted(columns, second)
    np.fmax.at(grid, places, np.asarray(results["mean_test_score"], dtype=np.float64))
    return _scores(grid, len(rows), len(columns)), rows.tolist(), columns.tolist()
