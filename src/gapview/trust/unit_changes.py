"""Views of new samples in other units: which change of the values makes them like the training samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..utils.messages import number
from ..utils.types import Array
from .novelty import ViewNovelty

_MOST_UNUSUAL = 0.2  # share of the rows that are still unusual after a change that explains them
_MOST_ROWS = 200
_ROUNDING = 1e-9
_POWER = 0.1  # difference of decimal logarithms up to which a factor counts as a power of ten

_IN_LOGS = "they look like {name} of values as in training: take the inverse"
_OF_LOGS = "training looks like {name} of such values: apply it"
_LOGS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "log(1 + x)": (np.log1p, np.expm1),
    "log2(1 + x)": (lambda x: np.log1p(x) / np.log(2), lambda x: np.expm1(x * np.log(2))),
    "log10(1 + x)": (lambda x: np.log1p(x) / np.log(10), lambda x: np.expm1(x * np.log(10))),
    "log(x)": (np.log, np.exp),
    "log2(x)": (np.log2, np.exp2),
    "log10(x)": (np.log10, lambda x: np.exp(x * np.log(10))),
}
_TEMPERATURES: dict[str, Callable[[Array], Array]] = {
    "they look like °F where training has °C: subtract 32 and divide by 1.8": lambda x: (x - 32) / 1.8,
    "they look like °C where training has °F: multiply by 1.8 and add 32": lambda x: 1.8 * x + 32,
    "they look like kelvin where training has °C: subtract 273.15": lambda x: x - 273.15,
    "they look like °C where training has kelvin: add 273.15": lambda x: x + 273.15,
}


def unit_change(known: ViewNovelty, rows: Array, alpha: float) -> str | None:
    """Return the change of units that makes rows like the training rows; None if no usual one does.

    Tried are factors, offsets, logarithms to the bases 2, e and 10, temperatures, standardised values and the sign. A
    change is accepted if most rows are unusual without it and at most 20 % with it; of several, the one with the
    largest median p-value.

    Parameters
    ----------
    known : ViewNovelty
        The training rows of the view.
    rows : array of shape (n_rows, n_features)
        New rows.
    alpha : float
        Level at which a row is unusual.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.trust.novelty import ViewNovelty
    >>> from gapview.trust.unit_changes import unit_change
    >>> values = np.random.RandomState(0).normal(37, 1, size=(120, 6))
    >>> unit_change(ViewNovelty(values[:100]), 1.8 * values[100:] + 32, 0.05)
    'they look like °F where training has °C: subtract 32 and divide by 1.8'
    """
    rows = rows[:_MOST_ROWS]
    if not len(rows) or (known.p_values(rows) <= alpha).mean() <= 0.5:
        return None
    found = []
    with np.errstate(all="ignore"):
        for text, change in _changes(known, rows):
            changed = change(rows)
            if np.isfinite(changed).all():
                nearest = np.rint(changed)  # whole numbers but for rounding
                is_whole = np.abs(changed - nearest) <= _ROUNDING * np.maximum(np.abs(changed), 1.0)
                p_values = known.p_values(np.where(is_whole, nearest, changed) if known.is_whole else changed)
                if (p_values <= alpha).mean() <= _MOST_UNUSUAL:
                    found.append((float(np.median(p_values)), text))
    return max(found, key=lambda each: each[0], default=(0.0, None))[1]


def _changes(known: ViewNovelty, rows: Array) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Yield texts and the changes from new to training units, the simplest first."""
    trained, mean = known.rows * known.unit, known.mean * known.unit
    deviation = np.sqrt(known.squares / known.n_rows) * known.unit
    sizes, known_sizes = (np.abs(part[part != 0]) for part in (rows, trained))
    if len(sizes) and len(known_sizes):
        factor = float(np.exp(np.median(np.log(sizes)) - np.median(np.log(known_sizes))))
        power = 10.0 ** np.rint(np.log10(factor))
        if abs(np.log10(factor / power)) <= _POWER:
            factor = power
        if not 0.5 < factor < 2:
            yield f"they are about {_times(factor)} the training values: convert them", lambda x: x / factor
    yield from _TEMPERATURES.items()
    for name, (forward, backward) in _LOGS.items():
        yield _IN_LOGS.format(name=name), backward
        yield _OF_LOGS.format(name=name), forward
    yield "they look standardised, and training does not: give the values before that", lambda x: x * deviation + mean
    yield "they have the opposite sign: multiply by −1", lambda x: -x
    offset = float(np.median(rows - mean))
    yield (
        f"they are about {number(abs(offset))} {_side(offset)} the training values: convert them",
        lambda x: x - offset,
    )
    varies = deviation > 0
    steps = float(np.median(((rows - mean) / np.where(varies, deviation, 1.0))[:, varies])) if varies.any() else 0.0
    yield (
        f"they are about {abs(steps):.2g} standard deviations of each feature {_side(steps)} the training values: "
        "check how they were measured",
        lambda x: x - steps * deviation,
    )


def _times(factor: float) -> str:
    return f"{number(factor)} times" if factor > 1 else f"1 / {number(1 / factor)} of"


def _side(shift: float) -> str:
    return "above" if shift > 0 else "below"
