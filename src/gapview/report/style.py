"""Style of figures: colours on light and dark pages, sizes, and export."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputTypeError, described, extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, SOFT, GRID, PAPER = "#1f2933", "#5c6873", "#dde2e7", "#ffffff"


@dataclass(frozen=True)
class Series:
    """Look of one line among several: colour, marker and dashes, which differ in black and white, too."""

    color: str
    dark: str  # the same hue on a dark page
    marker: str
    dashes: Any = "-"
    size: float = 5.0

    def options(self) -> dict[str, Any]:
        """Return options of ``Axes.plot``; the rim separates markers where lines cross."""
        rim = {"markeredgecolor": PAPER, "markeredgewidth": 0.8}
        return {"color": self.color, "marker": self.marker, "linestyle": self.dashes, "markersize": self.size, **rim}


# Hues of Okabe and Ito, darkened to a contrast of at least 3 : 1 with the page.
SERIES = (
    Series("#6b7480", "#a3aebb", "v", (0, (1, 1.4))),
    Series("#1489ad", "#5cc4e6", "P", (0, (4, 1.6)), 7.0),
    Series("#00845f", "#3fc79a", "s", (0, (6, 1.5, 1, 1.5))),
    Series("#b56c00", "#f0b04a", "^", (0, (2.5, 1.2))),
    Series("#a8468f", "#e79ad0", "D", (0, (8, 2))),
    Series("#0b5fa5", "#7ab4f5", "X", (0, (3, 1.2, 1, 1.2, 1, 1.2)), 7.0),
    Series("#c4400b", "#ff8f63", "o", "-", 5.5),
)
# Four more colours of the same contrast, for light and dark pages
MORE_COLORS = (("#8a5a3c", "#d3a283"), ("#6a51c9", "#b3a2ff"), ("#757500", "#cfcf4a"), ("#b3224f", "#ff86a6"))
_DARK = {INK: "#e4e8ec", SOFT: "#a7b1bb", GRID: "#3a424b", PAPER: "#15191e"}
_DARK |= {series.color: series.dark for series in SERIES} | dict(MORE_COLORS)
_NAMES = {color: f"--figure-{place}" for place, color in enumerate(_DARK)}  # of CSS variables
DARK_COLORS = {_NAMES[color]: dark for color, dark in _DARK.items()}

_STYLE = {  # where it differs from the default style of matplotlib
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "legend.frameon": False,
    "legend.handlelength": 3.4,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",  # letters stay letters
    "svg.hashsalt": "gapview",  # ids are the same in every run
}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def load_matplotlib(part: str) -> Any:
    """Import a module of matplotlib; raise an error that names the extra if it is not installed."""
    return extra(f"matplotlib.{part}", "report", "Drawing figures")


def own_style() -> Any:
    """Return a context with the style of pages, independent of the user's settings of matplotlib."""
    return load_matplotlib("style").context(["default", _STYLE])


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure, sizes in inches; the style of pages applies inside the ``with`` block only.

    Examples
    --------
    >>> from gapview.report.style import new_figure
    >>> with new_figure(4, 3) as figure:
    ...     lines = figure.subplots().plot([0, 1], [1, 0])
    """
    module = load_matplotlib("figure")
    with own_style():
        figure = module.Figure(figsize=(width, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
        yield figure
        _as_written(figure)
        # The layout is computed once: recomputed at every export, it would differ slightly
        with _any_character():
            figure.draw_without_rendering()
        figure.set_layout_engine("none")


@contextmanager
def axes_for(ax: Any, width: float, height: float, title: str) -> Iterator[Any]:
    """Yield the axes to draw on, with their title; new ones are in a figure of pyplot, which notebooks show.

    New axes have the style of pages; given axes keep their style.
    """
    if ax is not None:
        if not isinstance(ax, load_matplotlib("axes").Axes):
            several = " Give one of them, such as axes[0]." if isinstance(ax, np.ndarray | list | tuple) else ""
            raise InputTypeError(f"ax must be axes of matplotlib, or None; got {described(ax)}.{several}")
        ax.set_title(title, loc="center")
        yield ax
        return
    pyplot = load_matplotlib("pyplot")
    with own_style():
        figure = pyplot.figure(figsize=(width, height), layout="constrained")
        try:
            axes = figure.subplots()
            axes.set_title(title, loc="center")  # the default position, so that users can replace it
            yield axes
        except BaseException:  # incomplete figures are not shown
            pyplot.close(figure)
            raise


def _as_written(figure: Figure) -> None:
    """Switch off formulas in all texts, since names may contain dollar signs; keep them in logarithmic tick labels."""
    axes = [axis for each in figure.axes for axis in (each.xaxis, each.yaxis) if axis.get_scale() == "log"]
    formulas = {label for axis in axes for label in axis.get_ticklabels(which="both")}
    for text in figure.findobj(load_matplotlib("text").Text):
        if text not in formulas:
            text.set_parse_math(False)


@contextmanager
def _any_character() -> Iterator[None]:
    """Suppress warnings of matplotlib about characters that its font lacks; they are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        yield


def inline_svg(figure: Figure, label: str, prefix: str | None = None) -> str:
    """Return a figure as an ``<svg>`` element for an HTML page.

    It scales with the page, follows its light or dark colours, and has no references to other files.

    Parameters
    ----------
    figure : matplotlib figure
        The figure.
    label : str
        Description for screen readers.
    prefix : str, optional
        Prefix of all ids, which must differ between the figures of a page; by default derived from the contents.

    Returns
    -------
    str
        The element.

    Examples
    --------
    >>> from gapview.report.style import inline_svg, new_figure
    >>> with new_figure(4, 3) as figure:
    ...     lines = figure.subplots().plot([0, 1], [1, 0])
    >>> inline_svg(figure, "A falling line").split(" viewBox")[0]
    '<svg role="img" aria-label="A falling line"'
    """
    text = figure_bytes(figure, "svg", transparent=True).decode()
    head, body = re.fullmatch(r".*?<svg([^>]*)>(.*)</svg>\s*", text, flags=re.S).groups()  # type: ignore[union-attr]
    width, height = (float(size) for size in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head).groups())  # type: ignore[union-attr]
    # The style sheet of the figure would apply to the whole page: its two rules are set on the element instead
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", body, count=1, flags=re.S)
    prefix = prefix or "f" + hashlib.sha256((label + body).encode()).hexdigest()[:8]
    body = re.sub(r"<[^>]+>", lambda tag: _page_tag(tag[0], prefix), body)  # tags only, no text
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width * 4 / 3:.0f}" height="{height * 4 / 3:.0f}" '
        f'style="stroke-linejoin: round; stroke-linecap: butt">{body}</svg>'
    )


def _page_tag(tag: str, prefix: str) -> str:
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    tag = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', tag).replace("url(#", f"url(#{prefix}-")
    tag = re.sub(r"font-family: [^;\"]*", "font-family: inherit", tag)
    return re.sub("|".join(_NAMES), lambda found: f"var({_NAMES[found[0]]}, {found[0]})", tag)


def letters_on(color: Sequence[float]) -> str:
    """Return the colour of letters with the higher contrast on a colour, by its relative luminance.

    The colour does not change on a dark page, since the filled shape does not change either.

    Examples
    --------
    >>> from gapview.report.style import letters_on
    >>> letters_on((1.0, 1.0, 1.0)), letters_on((0.0, 0.0, 0.3))
    ('#0d1014', '#fbfcfd')
    """
    luminance = sum(part * value**2.2 for part, value in zip((0.2126, 0.7152, 0.0722), color[:3], strict=True))
    return "#0d1014" if luminance > 0.18 else "#fbfcfd"


def figure_bytes(figure: Figure, kind: str, **options: Any) -> bytes:
    """Return the contents of a file with the figure, in the style of pages and without dates."""
    options.setdefault("metadata", _NO_METADATA if kind == "svg" else {"Software": None})
    content = io.BytesIO()
    with own_style(), _any_character():
        figure.savefig(content, format=kind, **options)
    return content.getvalue()
