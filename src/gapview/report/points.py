"""Interactive scatter plots: the points, their properties, and the data of the page's script."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from ..utils.types import Array

Shape: TypeAlias = Literal["circle", "square", "triangle", "diamond", "plus", "cross", "wedge"]
_FINE = 10_000  # points up to which numbers have 16 bits; 8 bits beyond, which colours cannot resolve either


@dataclass(frozen=True)
class Sign:
    """The look of one kind of point, on a light page and on a dark one."""

    color: str
    dark: str
    shape: Shape


@dataclass(frozen=True)
class Classes:
    """A property of points with names for its values, such as a group; ``codes`` are −1 where it is unknown.

    Names from ``n_listed`` on are filtered together. ``counts`` are of all samples, also those without a point.
    """

    title: str
    names: tuple[str, ...]
    codes: Array | Sequence[int] = field(repr=False)
    heading: str = ""  # of the part of the list of properties
    n_listed: int = 0
    counts: tuple[int, ...] = ()

    def content(self, n_points: int) -> dict[str, Any]:
        """Return what the script needs, as JSON."""
        codes = np.asarray(self.codes, dtype=np.int64).reshape(n_points)
        known = [*self.names, "unknown"] if (codes < 0).any() else self.names
        codes = np.where(codes < 0, len(self.names), codes)
        return {"title": self.title, "names": known, "codes": packed(codes), "listed": self.n_listed}


@dataclass(frozen=True)
class Numbers:
    """A property of points with numbers, NaN where it is unknown, such as a feature."""

    title: str
    values: Array | Sequence[float] = field(repr=False)
    heading: str = ""
    decimals: int | None = None  # of texts; by default three significant digits of the range

    def content(self, n_points: int) -> dict[str, Any]:
        """Return what the script needs: steps from the smallest number, and the range of the colours."""
        values = np.asarray(self.values, dtype=np.float64).reshape(n_points)
        known = values[np.isfinite(values)]
        most = 65_534 if n_points <= _FINE else 254
        first, last = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        step = (last - first) / most or 1.0
        codes = np.where(np.isfinite(values), np.rint((values - first) / step), most + 1).astype(np.int64)
        low, high = np.percentile(known, [2, 98]).tolist() if known.size else (0.0, 1.0)
        if low == high:
            low, high = first, last
        whole = bool((known == np.rint(known)).all())
        digits = 0 if whole else int(np.clip(2 - np.floor(np.log10(max(last - first, 1e-300))), 0, 12))
        return {
            "title": self.title,
            "codes": packed(codes, two_bytes=most > 255),
            **{"first": first, "step": step, "missing": most + 1, "low": low, "high": high},
            "decimals": digits if self.decimals is None else self.decimals,
        }


@dataclass(frozen=True)
class Scatter:
    """An interactive scatter plot: tooltips, colours, filters, selection with a table, and zoom.

    ``signs`` and ``marks`` belong to the names of the first property, the groups: the look of its points, and the label
    in their centre. The first ``n_filters`` properties have filters, the first ``n_told`` are in tooltips and tables.
    The buttons "next" and "previous" follow the order of the points. A sentence replaces the plot where scripts are
    disabled.
    """

    label: str
    caption: str
    noun: str  # what a point is, such as "sample"
    x: Sequence[int] = field(repr=False)  # whole numbers from 0 to 65,535
    y: Sequence[int] = field(repr=False)  # upwards
    properties: tuple[Classes | Numbers, ...]
    signs: tuple[Sign, ...]
    marks: tuple[str, ...]
    names: tuple[str, ...] | None = field(default=None, repr=False)  # of the points
    n_told: int = 1

    @property
    def filters(self) -> list[tuple[int, Classes]]:
        """The properties that have filters, with their positions."""
        return [(k, one) for k, one in enumerate(self.properties) if isinstance(one, Classes) and one.n_listed]

    @property
    def headings(self) -> dict[str, list[tuple[int, str]]]:
        """Positions and titles of the properties under every heading."""
        found: dict[str, list[tuple[int, str]]] = {}
        for place, one in enumerate(self.properties):
            found.setdefault(one.heading, []).append((place, one.title))
        return found

    def content(self) -> str:
        """Return the data of the script as JSON, escaped so that no text can end the script element."""
        content = {
            "noun": self.noun,
            "x": packed(self.x, two_bytes=True),
            "y": packed(self.y, two_bytes=True),
            "properties": [one.content(len(self.x)) for one in self.properties],
            "signs": [(sign.color, sign.dark, sign.shape) for sign in self.signs],
            "marks": self.marks,
            "names": self.names,
            "told": self.n_told,
        }
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
        return re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text)


def packed(codes: Any, *, two_bytes: bool = False) -> str:
    """Return whole numbers as base64 of 16 bits each, little endian, or of 8 bits if all are below 256.

    Examples
    --------
    >>> from gapview.report.points import packed
    >>> packed([0, 255]), packed([0, 256])
    ('AP8=', 'AAAAAQ==')
    """
    numbers = np.asarray(codes, dtype=np.int64)
    small = not two_bytes and (not numbers.size or numbers.max() < 256)
    return base64.b64encode(numbers.astype("u1" if small else "<u2").tobytes()).decode()
