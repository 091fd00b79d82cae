"""Random problems for every clusterer: any shape, size, type and pattern of gaps, with settings to match."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from gapview.utils.types import Array, Matrix

from .made_settings import METHODS, settings_for

__all__ = ["Made", "make_problem"]

_FORMATS = ("csr", "csc", "coo", "lil")
_KINDS = ("float64",) * 10 + ("float32",) * 4 + ("float16", "int64", "int32", "int8", "uint8", "bool")
# Powers of 10 by which values differ in size; beyond 1e150 squares leave double precision
_POWERS = (0,) * 8 + (-3, 3, 8, -8, 30, -30, 100, -100, 150, -150)
_WIDTHS = ((1, 2), (2, 3), (3, 4), (2, 9), (4, 21), (10, 25), (20, 80))  # of a view, from and below
_SPOILS = (
    *("rows of zeros", "columns of zeros", "constant columns", "rows twice", "columns twice", "constant rows"),
    *("all zeros", "constant", "mostly zeros", "sizes of rows", "sizes of columns", "negative zeros", "one value"),
)


@dataclass(frozen=True)
class Made:
    """One problem: views as a user would pass them, and a clusterer with its settings."""

    method: str
    settings: dict[str, Any]
    views: list[Matrix]  # all samples in every view; rows of NaN where a view is missing, unless there is a mask
    mask: Array | None
    traits: tuple[str, ...] = field(default=())  # what is special about it, in words

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.views[0].shape[0])

    @property
    def size(self) -> int:
        """Number of values in all views."""
        return sum(int(view.shape[0] * view.shape[1]) for view in self.views)

    def described(self) -> dict[str, Any]:
        """Return a description for JSON."""
        kinds = [
            f"{view.shape[0]} × {view.shape[1]} {view.dtype}" + (" sparse" if sparse.issparse(view) else "")
            for view in self.views
        ]
        settings = {name: value if _is_plain(value) else "given" for name, value in self.settings.items()}
        return {"method": self.method, "views": kinds, "settings": settings, "traits": list(self.traits)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, str | int | float | bool)


def make_problem(seed: int | Sequence[int], method: str | None = None) -> Made:
    """Generate the problem of a seed, for a random method or for the given one.

    Examples
    --------
    >>> from gapview_lab.reliability.made_problems import make_problem
    >>> make_problem(5, "GRMF").method
    'GRMF'
    """
    rng = np.random.default_rng(seed)
    if method is None:
        method = str(rng.choice(list(METHODS), p=np.array(list(METHODS.values())) / sum(METHODS.values())))
    traits: list[str] = []
    n_samples = _n_samples(rng, small=method == "BridgedGRMF")
    n_views = int(rng.choice([1, 1, 2, 2, 2, 2, 3, 3, 4, int(rng.integers(5, 9))]))
    groups = rng.integers(int(rng.integers(1, 6)), size=n_samples)
    positive = method in ("PVC", "DCNMF", "GPMVC", "MIC") and rng.random() < 0.7
    views = [_values(rng, n_samples, groups, positive, traits) for _ in range(n_views)]
    if n_views > 1 and rng.random() < 0.05:
        views[-1] = views[0].copy()
        traits.append("the same view twice")
    views = _other_sizes(rng, views, traits)
    mask = _pattern(rng, n_samples, n_views, traits)
    if method == "KernelCompletion" and rng.random() < 0.8:  # else most problems would be refused
        mask[:, rng.integers(n_views)] = True
    partial = rng.random() < 0.06
    found = [_as_kind(rng, view, mask[:, k], partial, traits) for k, view in enumerate(views)]
    if rng.random() < 0.9:  # most views have something to say, else most problems would be refused
        found = [_with_variation(rng, view, mask[:, k]) for k, view in enumerate(found)]
    all_hold_gaps = all(np.issubdtype(view.dtype, np.floating) and not sparse.issparse(view) for view in found)
    if all_hold_gaps and rng.random() < 0.6:
        found = [np.where(mask[:, [k]], view, view.dtype.type(np.nan)) for k, view in enumerate(found)]
        given = None
    else:
        given = mask
    found = [view if sparse.issparse(view) else _laid_out(rng, view, traits) for view in found]
    settings = settings_for(method, rng, found, mask, has_torch=find_spec("torch") is not None)
    return Made(method, settings, found, given, tuple(dict.fromkeys(traits)))


def _n_samples(rng: np.random.Generator, small: bool) -> int:
    chance = rng.random()
    if chance < 0.04:
        return int(rng.integers(1, 4))
    if chance < 0.3:
        return int(rng.integers(3, 13))
    if chance < 0.95:
        return int(rng.integers(10, 60))
    return int(rng.integers(60, 150 if small else 400))


def _values(rng: np.random.Generator, n: int, groups: Array, positive: bool, traits: list[str]) -> Array:
    """Draw the values of one view, and damage some of them."""
    low, high = _WIDTHS[int(rng.integers(len(_WIDTHS)))]
    m = int(rng.integers(low, high))
    kind = rng.choice(["groups", "noise", "counts", "low rank", "islands", "few rows", "line", "offset"])
    if kind == "groups":
        values = rng.normal(size=(6, m))[groups] * 3 + rng.normal(size=(n, m))
    elif kind == "noise":
        values = rng.normal(size=(n, m))
    elif kind == "counts":
        values = rng.poisson(rng.uniform(0.05, 2), size=(n, m)).astype(np.float64)
    elif kind == "low rank":
        rank = int(rng.integers(1, 4))
        values = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m))
    elif kind == "islands":
        values = rng.normal(size=(6, m))[groups] * 1e4 + rng.normal(size=(n, m))
    elif kind == "few rows":
        values = rng.normal(size=(int(rng.integers(1, 5)), m))
        values = values[rng.integers(len(values), size=n)]
    elif kind == "line":
        values = rng.normal(size=(n, 1)) * rng.normal(size=(1, m))
    else:
        values = 10.0 ** rng.integers(3, 14) + rng.normal(size=(n, m))
    if kind not in ("groups", "noise"):
        traits.append(str(kind))
    if positive:
        values = np.abs(values)
    if rng.random() < 0.5:
        _spoil(rng, values, traits)
    return values


def _spoil(rng: np.random.Generator, values: Array, traits: list[str]) -> None:
    """Make rows or columns special, in place."""
    n, m = values.shape
    rows, columns = rng.random(n) < rng.choice([0.05, 0.3, 0.9]), rng.random(m) < rng.choice([0.1, 0.5])
    what = rng.choice(_SPOILS)
    if what == "rows of zeros":
        values[rows] = 0
    elif what == "columns of zeros":
        values[:, columns] = 0
    elif what == "constant columns":
        values[:, columns] = rng.normal(size=int(columns.sum()))
    elif what == "rows twice":
        values[rows] = values[rng.integers(n)]
    elif what == "columns twice":
        values[:, columns] = values[:, [rng.integers(m)]]
    elif what == "constant rows":
        values[rows] = values[rows, :1]
    elif what == "all zeros":
        values[:] = 0
    elif what == "constant":
        values[:] = values[0]
    elif what == "mostly zeros":
        values[rng.random((n, m)) < 0.93] = 0
    elif what == "sizes of rows":
        values *= 10.0 ** rng.uniform(-1, 1, size=(n, 1)) ** 3 * rng.choice([1, 10, 100])
    elif what == "sizes of columns":
        values *= 10.0 ** (rng.uniform(-1, 1, size=(1, m)) * rng.choice([3, 10, 100, 150]))
    elif what == "negative zeros":
        values[rng.random((n, m)) < 0.3] = -0.0
    else:
        values[:] = 0
        values[rng.integers(n), rng.integers(m)] = 1
    traits.append(str(what))


def _other_sizes(rng: np.random.Generator, views: list[Array], traits: list[str]) -> list[Array]:
    """Rescale all views, by one factor or by one for each."""
    together = rng.random() < 0.5
    power = int(rng.choice(_POWERS))
    powers = [power if together else int(rng.choice(_POWERS)) for _ in views]
    for power in powers:
        if power:
            traits.append(f"values around 1e{power}")
    with np.errstate(over="ignore", under="ignore"):
        return [np.clip(view * 10.0**power, -1e300, 1e300) for view, power in zip(views, powers, strict=True)]


def _pattern(rng: np.random.Generator, n: int, n_views: int, traits: list[str]) -> Array:
    """Draw which sample has which view."""
    kind = rng.choice(["complete", "random", "random", "random", "one each", "blocks", "hardly any"])
    if kind == "complete":
        mask = np.ones((n, n_views), dtype=bool)
    elif kind == "random":
        mask = rng.random((n, n_views)) < rng.uniform(0.2, 1)
    elif kind == "one each":
        mask = np.zeros((n, n_views), dtype=bool)
    elif kind == "blocks":
        mask = (np.arange(n)[:, None] * n_views // max(n, 1)) != np.arange(n_views)
    else:
        mask = rng.random((n, n_views)) < 0.1
    if rng.random() < 0.97:
        mask[np.arange(n), rng.integers(n_views, size=n)] = True
    else:
        traits.append("samples may have no view")
    if rng.random() < 0.9:
        for view in range(n_views):
            mask[rng.permutation(n)[:3], view] = True
    few = rng.random()
    if few < 0.04:
        view = int(rng.integers(n_views))
        mask[:, view] = False
        mask[rng.integers(n), view] = few < 0.02
        mask[~mask.any(axis=1), view - 1] = True
        traits.append("a view that one sample has" if few < 0.02 else "a view that nobody has")
    traits.append(f"pattern: {kind}")
    return mask


def _as_kind(rng: np.random.Generator, values: Array, having: Array, partial: bool, traits: list[str]) -> Matrix:
    """Turn the values into another type, dense or sparse, with cells missing if they may be."""
    kind = str(rng.choice(_KINDS))
    matrix: Any
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if kind.startswith("float"):
            limits = np.finfo(kind)
            largest = float(np.abs(values).max()) or 1.0
            if rng.random() < 0.8 and not 10 * limits.tiny < largest < limits.max / 10:
                values = values / largest * 10.0 ** rng.integers(-4 if kind == "float16" else -30, 4)
            if rng.random() < 0.97:  # else what is too large becomes infinite
                values = np.clip(values, float(limits.min), float(limits.max))
            matrix = values.astype(kind)
        elif kind == "bool":
            matrix = values > np.median(values)
        else:
            bounds = np.iinfo(kind)
            largest = float(np.abs(values).max()) or 1.0
            reach = min(float(bounds.max), float(rng.choice([10, 100, 1e18])))
            matrix = np.clip(np.rint(values / largest * reach), bounds.min, float(bounds.max) * (1 - 1e-15))
            matrix = matrix.astype(kind)
    if kind != "float64":
        traits.append(kind)
    if partial and kind.startswith("float"):
        holes = (rng.random(matrix.shape) < 0.1) & having[:, None]
        matrix[holes] = np.nan
        traits.append("cells missing")
    if rng.random() < 0.08:
        traits.append("sparse")
        if kind == "float16":
            matrix = matrix.astype(np.float32)
        return sparse.csr_array(matrix).asformat(str(rng.choice(_FORMATS)))
    return matrix


def _laid_out(rng: np.random.Generator, matrix: Array, traits: list[str]) -> Array:
    """Return the same values with another memory layout: slices and transposed arrays."""
    layout = str(rng.choice(["plain"] * 16 + ["columns", "turned", "read only", "other bytes"]))
    if layout == "plain":
        return matrix
    traits.append(layout)
    if layout == "columns":
        return np.asfortranarray(matrix)
    if layout == "turned":
        return matrix[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "read only":
        matrix = matrix.copy()
        matrix.setflags(write=False)
        return matrix
    return matrix.astype(matrix.dtype.newbyteorder(">"))


def _with_variation(rng: np.random.Generator, matrix: Matrix, having: Array) -> Matrix:
    """Change one value, or with few rows all, of a constant view."""
    if sparse.issparse(matrix) or not having.any():
        return matrix
    present = matrix[having]
    if (present == present[:1]).all():
        changed = np.where(rng.random(matrix.shape) < 0.5, matrix, ~matrix if matrix.dtype == bool else matrix + 1)
        return changed.astype(matrix.dtype)
    return matrix
