"""What samples are coloured by: groups, confidence, views present, a feature, or a column of the user."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError, InputTypeError, ParameterError, described, some
from ..report.coloring import Coloring, of_groups
from ..trust.association import count_patterns
from ..utils.messages import shorten, shown
from ..utils.types import Array
from ..views import Views
from ..views.containers import is_missing
from ..views.sample_columns import match_column

CONFIDENCE = ((0.8, "at least 0.8", "#0b5fa5"), (0.5, "0.5 to 0.8", "#5cb3d6"), (-np.inf, "below 0.5", "#e2a03f"))
_MOST_LEVELS = 12
_FEW_INTEGERS = 10  # different integers up to which numbers are categories
_LONGEST = 30
OTHERS = "others"


def coloring_of(model: Any, color: Any) -> Coloring:
    """Return what the samples of a fitted model are coloured by; see :func:`gapview.plots.plot_samples`."""
    if isinstance(color, tuple):
        return of_feature(model.views_, color)
    if not isinstance(color, str):
        return of_column(color, model.sample_ids_)
    if color == "group":
        return of_groups(model.labels_)
    if color == "views":
        return _of_patterns(model.views_)
    if color == "confidence":
        if not hasattr(model, "confidence_"):
            raise InputTypeError(
                f"color='confidence' needs a method with a confidence; {type(model).__name__} has none."
            )
        return Coloring("confidence", np.asarray(model.confidence_, dtype=np.float64), limits=(0.0, 1.0))
    raise ParameterError(
        "color must be 'group', 'confidence', 'views', a pair (view, feature), or one value for each sample, such as "
        f"a pandas Series; got {shown(color)}."
    )


def _of_patterns(views: Views) -> Coloring:
    patterns, codes = count_patterns(views.mask)
    shown = patterns[: _MOST_LEVELS - (len(patterns) > _MOST_LEVELS)]
    names = [shorten(one.name(views.names), _LONGEST) for one in shown]
    rest = [OTHERS] if len(shown) < len(patterns) else []
    return Coloring("views present", np.minimum(codes, len(shown)), (*names, *rest))


def of_feature(views: Views, pair: tuple[Any, ...]) -> Coloring:
    """Return the values of a feature, given by the name of its view and its own name or position."""
    if len(pair) != 2 or pair[0] not in views.names:
        raise ParameterError(
            f"color must be a pair (view, feature), with one of the views {some(views.names)}; got {pair!r}."
        )
    view = views.names.index(pair[0])
    names, n_features = views.feature_names[view], views.n_features[view]
    known = list(range(n_features)) if names is None else [str(name) for name in names]
    if pair[1] not in known:
        raise ParameterError(
            f"color must name a feature of view {pair[0]!r}, such as {some(known, 5)}; got {pair[1]!r}."
        )
    matrix = views.matrices[view][:, [known.index(pair[1])]]
    values = np.full(views.n_samples, np.nan)
    values[views.rows(view)] = (matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)).ravel()
    name = shorten(pair[1], _LONGEST) if isinstance(pair[1], str) else f"feature {pair[1]}"
    return Coloring(f"{name} ({shorten(pair[0], _LONGEST)})", values)


def of_column(column: Any, ids: Array, name: str | None = None) -> Coloring:
    """Return the values of a column in the order of the samples: numbers, or levels."""
    cells = [None if is_missing(cell) else cell for cell in match_column(column, ids, "color")]
    known = [cell for cell in cells if cell is not None]
    name = shorten(str(name or getattr(column, "name", None) or "value"), _LONGEST)
    if not known:
        raise InputError(f"color has no value for any sample ({name}). Give a column with values.")
    odd = next((cell for cell in known if isinstance(cell, list | tuple | dict | set | np.ndarray)), None)
    if odd is not None:
        raise InputTypeError(f"color must have one value for each sample, a number or text; one is {described(odd)}.")
    is_numeric = all(isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in known)
    if is_numeric and (len(set(known)) > _FEW_INTEGERS or any(float(cell) % 1 for cell in known)):
        return Coloring(name, np.array([np.nan if cell is None else float(cell) for cell in cells]))
    levels = _levels(column, known)
    place = {level: number for number, level in enumerate(levels)}
    other = place.get(OTHERS, -1)
    codes = [-1 if cell is None else place.get(_word(cell), other) for cell in cells]
    return Coloring(name, np.array(codes), tuple(shorten(level, _LONGEST) for level in levels))


def _levels(column: Any, known: list[Any]) -> list[str]:
    """Return the levels in order: of a categorical, of numbers, or of texts; of many the most frequent."""
    counts = Counter(map(_word, known))
    categories = getattr(getattr(column, "cat", None), "categories", None)
    numeric = all(isinstance(cell, int | float | np.number) for cell in known)
    ordered = list(
        map(_word, categories if categories is not None else sorted(set(known), key=None if numeric else str))
    )
    levels = [level for level in dict.fromkeys(ordered) if level in counts]
    if len(levels) <= _MOST_LEVELS:
        return levels
    frequent = {level for level, _ in counts.most_common(_MOST_LEVELS - 1)}
    return [*(level for level in levels if level in frequent), OTHERS]


def _word(cell: Any) -> str:
    return f"{cell:g}" if isinstance(cell, float | np.floating) else str(cell)


def of_confidence(confidence: Array) -> Coloring:
    """Return the confidence in three steps, as in the figure of the sizes."""
    steps = [np.asarray(confidence) >= least for least, _, _ in CONFIDENCE]
    names, palette = zip(*((name, color) for _, name, color in CONFIDENCE), strict=True)
    return Coloring("confidence", np.argmax(steps, axis=0), names, palette=palette)
