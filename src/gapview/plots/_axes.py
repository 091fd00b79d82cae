"""Axes of figures for notebooks, checks of models, legends and titles."""

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
    """Yield the axes to draw on; new ones are in a figure of pyplot, which notebooks show automatically.

    New axes have the style of the report; given axes keep their style.
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
        except BaseException:  # incomplete figures are not shown
            pyplot.close(figure)
            raise


def check_fitted(model: Any, attribute: str, needed: str) -> None:
    """Raise an error unless the model is a fitted clusterer with an attribute."""
    if not isinstance(model, MultiViewClusterer):
        name = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise InputTypeError(f"The figure needs a fitted clusterer of gapview; got {name}.")
    model.check_fitted()
    if not hasattr(model, attribute):
        raise InputTypeError(f"The figure needs {needed}; {type(model).__name__} has none.")


def legend_beside(axes: Any, most: int = 20, size: float | None = None) -> None:
    """Draw a legend to the right of the axes; ``size`` sets the size of its markers."""
    _, names = axes.get_legend_handles_labels()
    n_columns = 1 + (len(names) - 1) // most
    legend = axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=n_columns, handlelength=1.4, frameon=False)
    if size is not None:
        for handle in legend.legend_handles:
            handle.set_sizes([size])


def set_title(axes: Any, text: str) -> None:
    """Set the title at the default position of ``axes.set_title``, so that users can replace it."""
    axes.set_title(text, loc="center")
