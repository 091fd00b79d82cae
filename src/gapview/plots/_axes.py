"""Where figures for notebooks are drawn: on the user's axes, or on new ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import InputTypeError
from ..estimators import MultiViewClusterer
from ..report.style import load_matplotlib, own_style


@contextmanager
def axes_for(ax: Any, width: float, height: float) -> Iterator[Any]:
    """Give the axes to draw on; new ones stand in a figure of pyplot, which notebooks show by themselves.

    New axes have the look of the report; axes that the user brings keep the look that they have.
    """
    base = load_matplotlib("axes").Axes
    if ax is not None:
        if not isinstance(ax, base):
            several = " Give one of them, such as axes[0]." if isinstance(ax, np.ndarray | list | tuple) else ""
            raise InputTypeError(f"ax must be axes of matplotlib, or None; got a {type(ax).__name__}.{several}")
        yield ax
        return
    pyplot = load_matplotlib("pyplot")
    with own_style():
        figure = pyplot.figure(figsize=(width, height), layout="constrained")
        try:
            yield figure.subplots()
        except BaseException:  # no half figure is left to be shown
            pyplot.close(figure)
            raise


def demand_fitted(model: Any, attribute: str, needed: str) -> None:
    """Refuse what is no fitted clusterer, or a method that lacks what the figure shows."""
    if not isinstance(model, MultiViewClusterer):
        name = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise InputTypeError(f"The figure needs a fitted clusterer of gapview; got {name}.")
    model._demand_fitted()
    if not hasattr(model, attribute):
        raise InputTypeError(f"The figure needs {needed}; {type(model).__name__} has none.")


def legend_beside(axes: Any, most: int = 20, size: float | None = None) -> None:
    """Name what is drawn, to the right of the axes; markers of scattered points in a size of their own."""
    _, names = axes.get_legend_handles_labels()
    n_columns = 1 + (len(names) - 1) // most
    legend = axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=n_columns, handlelength=1.4, frameon=False)
    if size is not None:
        for handle in legend.legend_handles:
            handle.set_sizes([size])


def set_title(axes: Any, text: str) -> None:
    """Write the title where ``axes.set_title`` puts it by default, so that users can write their own over it."""
    axes.set_title(text, loc="center")
