"""The data of the league, and how views are hidden; both are derived from the files, not from names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gapview.datasets import Dataset, hide_views, load_digits_views, load_views, make_views, paired_split
from gapview.errors import DataFileError, GapviewError, ParameterError
from gapview.utils.types import Array
from gapview.views import Views

from ..paper.published import RATES

__all__ = ["BUILT_IN", "HIDINGS", "QUICK", "LeagueCell", "Source", "find_sources", "hidden", "load", "read_source"]

PAIRED, MASKS, RANDOM, NATURE = "paired", "published masks", "random", "by nature"
COMPLETE_VIEW = "first view complete"
HIDINGS = {
    PAIRED: "a share of the samples, the rate, keeps both views, the others keep one, half of them each",
    MASKS: "by the masks published with the data; the rate is the share of every view that is missing",
    RANDOM: "from every view a share, the rate, is hidden at random, never the last view of a sample",
    NATURE: "views are missing by nature; the rate is the share of every view hidden at random on top of that",
    COMPLETE_VIEW: "from every view but the first a share, the rate, is hidden at random",
}
_COMPLETE_VIEW_RATES = (0.3, 0.5, 0.7)
_MOST_SEEDS = 30  # where nothing published sets a limit


@dataclass(frozen=True, order=True)
class LeagueCell:
    """One data set with views hidden in one way at one rate: the unit of comparison."""

    data: str
    hiding: str
    rate: float

    @property
    def rate_text(self) -> str:
        """The rate as text."""
        share = f"{100 * self.rate:g} %"
        if self.hiding == NATURE:
            return f"{share} more hidden" if self.rate else "as it is"
        return f"{share} {'paired' if self.hiding == PAIRED else 'missing'}"

    @property
    def text(self) -> str:
        """Data set and rate as text."""
        return f"{self.data}, {self.rate_text}"


@dataclass(frozen=True)
class Loaded:
    """A data set in memory, with the masks that were published with it."""

    data: Dataset
    target: Array
    masks: Mapping[float, Array] = field(default_factory=dict)  # by missing rate: seeds × samples × views


@dataclass(frozen=True)
class Source:
    """A data set of the league: where it is, what it holds, and how views are hidden from it."""

    name: str
    path: Path | None  # None: embedded or made
    contents: str  # samples, features, groups, in words
    size: int  # samples × features
    fingerprint: str  # other contents under the same name are other data
    hiding: str
    rates: tuple[float, ...]
    n_seeds: int  # the most there can be

    @property
    def cells(self) -> list[LeagueCell]:
        """The data set at each of its rates."""
        return [LeagueCell(self.name, self.hiding, rate) for rate in self.rates]

    def with_complete_view(self) -> Source:
        """Return the data set with all gaps in views other than the first."""
        return replace(self, hiding=COMPLETE_VIEW, rates=_COMPLETE_VIEW_RATES, n_seeds=_MOST_SEEDS)


# Groups so close to each other that they overlap; otherwise every method finds them, and nothing is compared.
BUILT_IN: Mapping[str, Callable[[], Dataset]] = {
    "digits": load_digits_views,
    "made-two-views": lambda: make_views(600, (20, 30), n_clusters=5, separation=3.0, noise=1.0, random_state=1),
    "made-four-views": lambda: make_views(600, (8, 8, 12, 20), n_clusters=10, separation=4.0, random_state=2),
    "made-wide": lambda: make_views(200, (400, 800), n_clusters=4, separation=3.0, noise=3.0, random_state=3),
    "made-small": lambda: make_views(120, (10, 15), n_clusters=3, separation=3.0, random_state=4),
    "made-small-three": lambda: make_views(120, (6, 8, 10), n_clusters=4, separation=3.5, random_state=5),
}
QUICK = ("made-small", "made-small-three")  # for --quick, and in no other league


@lru_cache(maxsize=2)
def load(name: str, path: Path | None) -> Loaded:
    """Load a data set; raise an error if it cannot be scored."""
    data = BUILT_IN[name]() if path is None else load_views(path)
    place = repr(name if path is None else path.name)
    if data.target is None:
        raise DataFileError(f"{place} holds no labels, without which nothing can be scored. Add them as y.")
    if data.views.n_views < 2:
        raise DataFileError(f"{place} holds one view; the league needs at least two, to hide some of them.")
    if len(np.unique(data.target)) < 2:
        raise DataFileError(f"The labels in {place} are all the same; at least two groups are needed.")
    masks = _published_masks(path, data.views) if path is not None and path.suffix.lower() == ".npz" else {}
    return Loaded(data, data.target, masks)


def _published_masks(path: Path, views: Views) -> dict[float, Array]:
    masks = {}
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    for key, value in arrays.items():
        match = re.fullmatch(r"miss(\d\d)", key)
        if match is None:
            continue
        expected = (views.n_samples, views.n_views)
        if value.ndim != 3 or value.shape[1:] != expected or not value.any(axis=2).all():
            raise DataFileError(
                f"{key!r} in {path.name!r} must be masks of shape (any number, {expected[0]}, {expected[1]}), 1 where "
                f"a sample has a view, that leave every sample at least one; got shape {value.shape}."
            )
        masks[int(match[1]) / 100] = value.astype(bool)
    return dict(sorted(masks.items()))


def read_source(name: str, path: Path | None) -> Source:
    """Load a data set once, and derive from its contents how views are hidden."""
    loaded = load(name, path)
    views = loaded.data.views
    hiding, rates, n_seeds = _how_to_hide(loaded)
    kind = " + ".join(map(str, views.n_features))
    groups = len(np.unique(loaded.target))
    gaps = int((~views.mask.all(axis=1)).sum())
    contents = f"{views.n_samples} samples, {kind} features, {groups} groups"
    contents += f"; {gaps} samples lack a view by nature" if gaps else ""
    source = Source(
        name, path, contents, views.n_samples * sum(views.n_features), _fingerprint(loaded), hiding, rates, n_seeds
    )
    for cell in source.cells:
        hidden(loaded, cell, 0)  # what cannot be hidden is said now, not in the middle of the league
    return source


def _how_to_hide(loaded: Loaded) -> tuple[str, tuple[float, ...], int]:
    views, folds = loaded.data.views, loaded.data.folds
    if not views.mask.all():
        return NATURE, (0.0, 0.3) if _can_hide(views, 0.3) else (0.0,), _MOST_SEEDS
    if views.n_views == 2 and folds is not None:
        if folds.ndim != 2 or not np.array_equal(np.sort(folds, axis=1), _counted_rows(folds, views.n_samples)):
            raise DataFileError(f"folds of {loaded.data.name!r} must hold a permutation of all samples in every row.")
        return PAIRED, RATES, len(folds)
    if loaded.masks:
        return MASKS, tuple(loaded.masks), min(map(len, loaded.masks.values()))
    return (RANDOM, (0.1, 0.3, 0.5), _MOST_SEEDS) if views.n_views > 2 else (PAIRED, (0.1, 0.5, 0.9), _MOST_SEEDS)


def _counted_rows(folds: Array, n_samples: int) -> Array:
    return np.tile(np.arange(n_samples), (len(folds), 1))


def _can_hide(views: Views, rate: float) -> bool:
    """Return whether so many views can be hidden without leaving a sample without views."""
    try:
        hide_views(views, rate, random_state=0)
    except ParameterError:
        return False
    return True


def _fingerprint(loaded: Loaded) -> str:
    digest = hashlib.sha256()
    views = loaded.data.views
    arrays: list[Any] = [*views.matrices, views.mask, loaded.target, loaded.data.folds, *loaded.masks.values()]
    for array in arrays:
        if array is not None:
            digest.update(repr((array.shape, str(array.dtype))).encode())
            dense = array.toarray() if hasattr(array, "toarray") else array
            digest.update(np.ascontiguousarray(dense).tobytes())
    return digest.hexdigest()[:12]


def hidden(loaded: Loaded, cell: LeagueCell, seed: int) -> tuple[Views, Array]:
    """Hide views as the cell specifies; the order of the samples depends on the seed.

    Where distances tie, neighbours are taken in the order of the samples, and a file sorted by class would favour some
    classes. For the paper's protocol the order is that of the fold, as in the authors' program.
    """
    n_samples = loaded.data.views.n_samples
    folds = loaded.data.folds
    use_folds = cell.hiding == PAIRED and folds is not None
    order = folds[seed] if use_folds else np.random.RandomState(seed).permutation(n_samples)  # type: ignore[index]
    views, target = loaded.data.views[order], loaded.target[order]
    if cell.hiding == PAIRED:
        return paired_split(views, cell.rate, order=np.arange(n_samples)), target
    if cell.hiding == COMPLETE_VIEW:
        mask = np.random.RandomState(seed).uniform(size=views.mask.shape) >= cell.rate
        mask[:, 0] = True
        return views.hide(mask), target
    if cell.hiding == MASKS:
        return views.hide(loaded.masks[cell.rate][seed][order]), target
    return (hide_views(views, cell.rate, random_state=seed) if cell.rate else views), target


def find_sources(folder: Path | None, say: Callable[[str], None]) -> list[Source]:
    """Find all data: those in a folder that have labels, the embedded and the made ones."""
    found = []
    for path in sorted(folder.glob("*.npz")) if folder is not None else []:
        try:
            if path.stem in BUILT_IN:
                raise DataFileError(f"a data set of the league is called {path.stem!r} already; rename the file")
            found.append(read_source(path.stem, path))
        except GapviewError as error:
            say(f"{path.name}: {error}")
    return found + [read_source(name, None) for name in BUILT_IN if name not in QUICK]
