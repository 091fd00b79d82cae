"""The data of the league, and how views are hidden; both are derived from the files, not from names."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
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

__all__ = [
    "BUILT_IN",
    "HIDINGS",
    "QUICK",
    "LeagueCell",
    "Source",
    "find_sources",
    "hidden",
    "hide_otherwise",
    "load",
    "read_source",
]

PAIRED, MASKS, RANDOM, NATURE = "paired", "published masks", "random", "by nature"
COMPLETE_VIEW = "first view complete"
# Protocols of other papers, which no file asks for by its contents: see published_figures.py
COMPLETER, SUBSET, LOSES = "completer", "random proper subset", "share of samples loses views"
COMPLETE, FEW_VIEWS = "published masks of complete samples", "few_views"
HIDINGS = {
    PAIRED: "a share of the samples, the rate, keeps both views, the others keep one, half of them each",
    MASKS: (
        "by the masks published with the data; the rate is the share of every view that is missing; seeds beyond the "
        "published masks give the same masks to the samples in another order, drawn with the seed"
    ),
    RANDOM: "from every view a share, the rate, is hidden at random, never the last view of a sample",
    NATURE: "views are missing by nature; the rate is the share of every view hidden at random on top of that",
    COMPLETE_VIEW: "from every view but the first a share, the rate, is hidden at random",
    COMPLETER: (
        "one view to keep is drawn for every sample; of the other cells (sample, view) as many as the rate times the "
        "number of samples are hidden at random, a share rate / views of all cells; of two views, a share of the "
        "samples, the rate, loses one"
    ),
    SUBSET: (
        "a share of the samples, the rate, is incomplete; each of them keeps a subset of its views, drawn with equal "
        "probability from those that are neither empty nor complete"
    ),
    LOSES: (
        "a share of the samples, the rate, is incomplete; each of them loses a number of views drawn between one and "
        "all but one, and then views drawn at random"
    ),
    COMPLETE: "by the masks published with the data; the rate is the share of the samples that are complete",
    FEW_VIEWS: "by the masks of the file masks/DATA_few_views.npz beside the data",
}
_COMPLETE_VIEW_RATES = (0.3, 0.5, 0.7)
_MOST_SEEDS = 30


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
    masks: Mapping[tuple[str, float], Array] = field(default_factory=dict)  # by hiding, rate: seeds × samples × views


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
    n_published: int | None = None  # with this many seeds folds or masks are as published; None: all are drawn
    widths: tuple[int, ...] = ()  # numbers of features of the views to take, in this order; none: all views

    @property
    def cells(self) -> list[LeagueCell]:
        """The data set at each of its rates."""
        return [LeagueCell(self.name, self.hiding, rate) for rate in self.rates]

    def with_complete_view(self) -> Source:
        """Return the data set with all gaps in views other than the first."""
        return replace(self, hiding=COMPLETE_VIEW, rates=_COMPLETE_VIEW_RATES, n_published=None)


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
def load(name: str, path: Path | None, widths: tuple[int, ...] = ()) -> Loaded:
    """Load a data set, or its views of the given numbers of features; raise an error if it cannot be scored."""
    data = BUILT_IN[name]() if path is None else load_views(path)
    if widths and path is not None:
        data = load_views(path, views=_places(widths, data.views.n_features))
    place = repr(name if path is None else path.name)
    if data.target is None:
        raise DataFileError(f"{place} holds no labels, without which nothing can be scored. Add them as y.")
    if data.views.n_views < 2:
        raise DataFileError(f"{place} holds one view; the league needs at least two, to hide some of them.")
    if len(np.unique(data.target)) < 2:
        raise DataFileError(f"The labels in {place} are all the same; at least two groups are needed.")
    if path is None or path.suffix.lower() != ".npz" or widths:  # masks are for all views
        return Loaded(data, data.target)
    return Loaded(data, data.target, _published_masks(path, data.views))


def _places(widths: Sequence[int], n_features: Sequence[int]) -> list[int]:
    """Return the positions of the views with these numbers of features; the first of several."""
    places: list[int] = []
    for width in widths:
        fitting = [k for k, found in enumerate(n_features) if found == width and k not in places]
        if not fitting:
            raise DataFileError(
                f"There is no view of {width} features; the views have {', '.join(map(str, n_features))}."
            )
        places.append(fitting[0])
    return places


def _published_masks(path: Path, views: Views) -> dict[tuple[str, float], Array]:
    """Return the masks in the file of the data, and those in the folder ``masks`` beside it."""
    beside = path.parent / "masks" / f"{path.stem}_few_views.npz"
    kinds = {"miss": MASKS, "complete": COMPLETE}
    masks = {}
    for file in (path, beside) if beside.is_file() else (path,):
        for key, value in _arrays(file).items():
            match = re.fullmatch(r"(miss|complete)(\d\d)", key)
            if file == path and match is None:
                continue
            expected = (views.n_samples, views.n_views)
            fits = value.ndim == 3 and value.shape[1:] == expected and len(value) > 0
            if not fits or not (value.astype(bool) & views.mask).any(axis=2).all():
                raise DataFileError(
                    f"{key!r} in {file.name!r} must be masks of shape (any number, {expected[0]}, {expected[1]}), 1 "
                    f"where a sample has a view, that leave every sample at least one; got shape {value.shape}."
                )
            place = (kinds[match[1]], int(match[2]) / 100) if match else (f"{FEW_VIEWS}/{key}", 0.0)
            masks[place] = value.astype(bool)
    return dict(sorted(masks.items()))


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataFileError(f"{path.name!r} cannot be read: {error}. Write it again with numpy.savez.") from None


def read_source(name: str, path: Path | None, widths: tuple[int, ...] = ()) -> Source:
    """Load a data set once, and derive from its contents how views are hidden."""
    loaded = load(name, path, widths)
    views = loaded.data.views
    hiding, rates, n_published = _how_to_hide(loaded)
    kind = " + ".join(map(str, views.n_features))
    groups = len(np.unique(loaded.target))
    gaps = int((~views.mask.all(axis=1)).sum())
    contents = f"{views.n_samples} samples, {kind} features, {groups} groups"
    contents += f"; {gaps} samples lack a view by nature" if gaps else ""
    size = views.n_samples * sum(views.n_features)
    fingerprint = _fingerprint(loaded, hiding, is_made=path is None)
    source = Source(name, path, contents, size, fingerprint, hiding, rates, _MOST_SEEDS, n_published, widths)
    for cell in source.cells:
        hidden(loaded, cell, 0)  # what cannot be hidden is said now, not in the middle of the league
    return source


def hide_otherwise(source: Source, hiding: str, rates: tuple[float, ...]) -> Source:
    """Return a data set with another way of hiding than its contents suggest; raise an error if that is impossible."""
    loaded = load(source.name, source.path, source.widths)
    is_complete = bool(loaded.data.views.mask.all())
    if hiding == NATURE and is_complete:
        raise DataFileError("Its views are complete, so that none is missing by nature.")
    if hiding in _DRAWN and not is_complete:
        raise DataFileError(f"Views are missing by nature already; {hiding!r} needs complete views.")
    masks = {rate: found for (way, rate), found in loaded.masks.items() if way == hiding}
    lacking = [rate for rate in rates if rate not in masks]
    if lacking and hiding not in (NATURE, RANDOM, *_DRAWN):
        known = sorted({way for way, _ in loaded.masks})
        raise DataFileError(
            f"There are no masks {hiding!r} of rate {lacking[0]:g} in its file or in masks/ beside it; there are: "
            f"{', '.join(known) or 'none'}."
        )
    n_published = min((len(masks[rate]) for rate in rates if masks), default=None)
    fingerprint = _fingerprint(loaded, hiding, is_made=source.path is None)
    n_seeds = n_published or _MOST_SEEDS  # printed figures are compared on published masks alone
    other = replace(
        source, fingerprint=fingerprint, hiding=hiding, rates=rates, n_seeds=n_seeds, n_published=n_published
    )
    for cell in other.cells:
        hidden(loaded, cell, 0)
    return other


def _how_to_hide(loaded: Loaded) -> tuple[str, tuple[float, ...], int | None]:
    views, folds = loaded.data.views, loaded.data.folds
    if not views.mask.all():
        return NATURE, (0.0, 0.3) if _can_hide(views, 0.3) else (0.0,), None
    if views.n_views == 2 and folds is not None:
        if folds.ndim != 2 or not np.array_equal(np.sort(folds, axis=1), _counted_rows(folds, views.n_samples)):
            raise DataFileError(f"folds of {loaded.data.name!r} must hold a permutation of all samples in every row.")
        return PAIRED, RATES, len(folds)
    masks = {rate: found for (way, rate), found in loaded.masks.items() if way == MASKS}
    if masks:
        return MASKS, tuple(masks), min(map(len, masks.values()))
    return (RANDOM, (0.1, 0.3, 0.5), None) if views.n_views > 2 else (PAIRED, (0.1, 0.5, 0.9), None)


def _counted_rows(folds: Array, n_samples: int) -> Array:
    return np.tile(np.arange(n_samples), (len(folds), 1))


def _can_hide(views: Views, rate: float) -> bool:
    """Return whether so many views can be hidden without leaving a sample without views."""
    try:
        hide_views(views, rate, random_state=0)
    except ParameterError:
        return False
    return True


def _fingerprint(loaded: Loaded, hiding: str, *, is_made: bool) -> str:
    """Return a hash of the contents; of made data in single precision, since processors differ in their last digits."""
    digest = hashlib.sha256()
    views = loaded.data.views
    masks = [found for (way, _), found in loaded.masks.items() if way in (MASKS, hiding)]
    arrays: list[Any] = [*views.matrices, views.mask, loaded.target, loaded.data.folds, *masks]
    for array in arrays:
        if array is not None:
            digest.update(repr((array.shape, str(array.dtype))).encode())
            dense = array.toarray() if hasattr(array, "toarray") else array
            dense = dense.astype(np.float32) if is_made and dense.dtype == np.float64 else dense
            digest.update(np.ascontiguousarray(dense).tobytes())
    return digest.hexdigest()[:12]


def hidden(loaded: Loaded, cell: LeagueCell, seed: int) -> tuple[Views, Array]:
    """Hide views as the cell specifies; the order of the samples depends on the seed.

    Where distances tie, neighbours are taken in the order of the samples, and a file sorted by class would favour some
    classes. For the paper's protocol the order is that of the fold, as in the authors' program.
    """
    n_samples = loaded.data.views.n_samples
    folds = loaded.data.folds
    use_folds = cell.hiding == PAIRED and folds is not None and seed < len(folds)
    order = folds[seed] if use_folds else np.random.RandomState(seed).permutation(n_samples)  # type: ignore[index]
    views, target = loaded.data.views[order], loaded.target[order]
    if cell.hiding == PAIRED:
        return paired_split(views, cell.rate, order=np.arange(n_samples)), target
    if cell.hiding in _DRAWN:
        state = np.random.RandomState(seed)
        return views.hide(_DRAWN[cell.hiding](n_samples, views.n_views, cell.rate, state)), target
    if cell.hiding in (RANDOM, NATURE):
        return (hide_views(views, cell.rate, random_state=seed) if cell.rate else views), target
    masks = loaded.masks[cell.hiding, cell.rate]
    # The samples are in a drawn order: beyond the published masks, a mask that does not follow it is another one
    return views.hide(masks[seed][order] if seed < len(masks) else masks[seed % len(masks)]), target


def _first_complete(n_samples: int, n_views: int, rate: float, state: np.random.RandomState) -> Array:
    """Return a mask that hides a share of every view but the first."""
    mask = state.uniform(size=(n_samples, n_views)) >= rate
    mask[:, 0] = True
    return mask


def _completer(n_samples: int, n_views: int, rate: float, state: np.random.RandomState) -> Array:
    """Return a mask of COMPLETER (Lin et al., CVPR 2021): a share rate / n_views of all cells is missing.

    One view to keep is drawn for every sample, and rate × n_samples of the other cells are hidden at random. Of two
    views, exactly a share ``rate`` of the samples loses one. The authors' program draws until the share is met within
    0.005; here it is exact.
    """
    mask = np.ones((n_samples, n_views), dtype=bool)
    free = mask.copy()
    free[np.arange(n_samples), state.randint(n_views, size=n_samples)] = False
    mask.flat[state.permutation(np.flatnonzero(free))[: round(rate * n_samples)]] = False
    return mask


def _proper_subset(n_samples: int, n_views: int, rate: float, state: np.random.RandomState) -> Array:
    """Return a mask in which a share of the samples keeps a random subset of the views, neither none nor all."""
    mask = np.ones((n_samples, n_views), dtype=bool)
    rows = state.permutation(n_samples)[: round(rate * n_samples)]
    subsets = state.randint(1, 2**n_views - 1, size=(len(rows), 1))  # bit k: view k is kept
    mask[rows] = subsets >> np.arange(n_views) & 1
    return mask


def _loses_views(n_samples: int, n_views: int, rate: float, state: np.random.RandomState) -> Array:
    """Return a mask in which a share of the samples loses 1 to n_views − 1 views, each number equally often."""
    mask = np.ones((n_samples, n_views), dtype=bool)
    rows = state.permutation(n_samples)[: round(rate * n_samples)]
    n_lost = state.randint(1, n_views, size=(len(rows), 1))
    ranks = state.uniform(size=(len(rows), n_views)).argsort(axis=1).argsort(axis=1)
    mask[rows] = ranks >= n_lost
    return mask


_DRAWN: Mapping[str, Callable[[int, int, float, np.random.RandomState], Array]] = {
    COMPLETE_VIEW: _first_complete,
    COMPLETER: _completer,
    SUBSET: _proper_subset,
    LOSES: _loses_views,
}


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
