"""Checks of views by estimators: enough to learn from, the same views as in training, one matrix per view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ..compute.arrays import host, row_blocks
from ..errors import GapviewWarning, InputError, InputTypeError, some
from ..utils.messages import check_choice, counted, is_muted, warn_user
from ..utils.types import Matrix
from .cells import MOST_LACKING, PARTIAL_ROWS, complete_rows, count_missing_cells, dense
from .codes import names_of
from .containers import Container, sound_sparse
from .core import Views, completed, read, read_training
from .kinds import kind_per_view
from .measures import sample_rows


class SampleCounts(Protocol):
    """What a fit knows of its training data, wherever they are; :class:`gapview.Views` has more."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""

    @property
    def n_views(self) -> int:
        """Number of views."""

    @property
    def n_samples(self) -> int:
        """Number of samples, complete or not."""

    @property
    def n_present(self) -> tuple[int, ...]:
        """Number of samples that have every view."""

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of features of every view."""


def training_views(data: Any, mask: Any, partial_rows: str, n_clusters: int, kind: Any = None) -> Views:
    """Return ``Views`` from which ``n_clusters`` clusters can be learned, or raise an error."""
    views = read_training(data, mask, partial_rows)
    demand_enough(views, (is_constant(matrix) for matrix in views.one_by_one()), n_clusters)
    warn_of_values(views, kind)
    return views


def warn_of_values(views: Views, kind: Any = None) -> None:
    """Warn of values that make a result doubtful, such as codes for missing values or samples in other units.

    ``kind`` is the parameter of an estimator. Raw counts are no warning where a kind is given; logarithms are one where
    it is that of counts.
    """
    kinds = kind_per_view(kind, views.names)
    if is_muted(GapviewWarning):
        return
    description = views.describe().with_kinds(kinds)
    for view, own in zip(description.views, kinds, strict=True):
        for finding in view.findings:
            if finding.is_warning:
                warn_user(str(finding))
        if view.kind == "log" and own in ("counts", "proteins"):
            warn_user(
                f"View '{view.name}': the values look like logarithms already, and kind='{own}' takes logarithms. Use "
                "kind='continuous', or give the counts."
            )


def demand_enough(views: SampleCounts, constant: Iterable[bool], n_clusters: int) -> None:
    """Raise an error if no clusters can be learned from views, in memory or elsewhere.

    Parameters
    ----------
    views : Views or BlockedViews
        The views; only their names and numbers of samples are read.
    constant : iterable of bool
        For every view, whether all its rows are equal; evaluated only if there are enough samples.
    n_clusters : int
        The number of clusters.
    """
    demand_samples(views.n_samples)
    if n_clusters > views.n_samples:
        raise InputError(
            f"n_clusters={n_clusters} is more than the number of samples: n_samples={views.n_samples}. "
            "Ask for fewer clusters."
        )
    for name, count in zip(views.names, views.n_present, strict=True):
        demand_present(name, count)
    for name, count, is_same in zip(views.names, views.n_present, constant, strict=True):
        if is_same:
            raise InputError(
                f"View '{name}' is constant: all its {count} rows are the same, so it does not distinguish samples. "
                "Leave this view out."
            )


def demand_samples(n_samples: int) -> None:
    """Raise an error if there are too few samples for clusters."""
    if n_samples < 2:
        raise InputError(f"Clustering needs at least 2 samples; got n_samples={n_samples}.")


def demand_present(name: str, n_present: int) -> None:
    """Raise an error if too few samples have a view."""
    if n_present < 2:
        raise InputError(
            f"View '{name}' is present for {n_present} sample(s); at least 2 are needed to compare them. Leave this "
            "view out."
        )


def is_constant(matrix: Any, cut: Callable[[Any], Iterable[slice]] = row_blocks) -> bool:
    """Return whether all rows of a matrix are equal; ``cut`` returns the blocks in which they are compared."""
    if sparse.issparse(matrix):
        return np.array_equal(matrix.max(axis=0).toarray(), matrix.min(axis=0).toarray())
    return all(bool((matrix[block] == matrix[:1]).all()) for block in cut(matrix))


def new_views(data: Any, trained: Views, partial_rows: str = "raise") -> Views:
    """Return views of new samples in the order of training; any subset of the trained views may be given."""
    check_choice("partial_rows", partial_rows, PARTIAL_ROWS)
    given = data if isinstance(data, Views) else read(data, links="report")
    places = _match(given, trained)
    frames = any(container.kind in ("pandas", "polars") for container in given._containers)
    matrices, containers = [], []
    mask = np.zeros((given.n_samples, trained.n_views), dtype=bool)
    for k, place in enumerate(places):
        if place is None or (given.n_features[place] == 0 and not given.mask[:, place].any()):
            matrices.append(trained.matrices[k][:0])
            containers.append(trained._containers[k] if frames else Container())
            continue
        order = _order_of_features(given, place, trained, k)
        matrix, container = given.matrices[place], given._containers[place]
        if order is not None:
            matrix, container = _with_features(matrix, order), container.reordered(order, trained.feature_names[k])
        matrices.append(matrix)
        containers.append(container)
        mask[:, k] = given.mask[:, place]
    outer = "dict" if given._outer == "single" and trained.n_views > 1 else given._outer
    aligned = trained.with_matrices(matrices, mask, given.sample_ids)
    aligned._outer, aligned._containers, aligned._named = outer, tuple(containers), given._named
    aligned.batches = given.batches
    # After the features are in the order of training, so that gaps are filled from the training rows
    return completed(_fill_few(aligned, trained, partial_rows), partial_rows, trained)


def _with_features(matrix: Matrix, order: Sequence[int]) -> Matrix:
    """Return the columns in an order, in which positions beyond the last column are columns of NaN."""
    n_lacking = max(0, max(order) + 1 - matrix.shape[1])
    if n_lacking:
        lacking = np.full((matrix.shape[0], n_lacking), np.nan)
        matrix = host(matrix)
        is_sparse = sparse.issparse(matrix)
        matrix = sparse.csr_array(sparse.hstack([matrix, lacking])) if is_sparse else np.hstack([matrix, lacking])
    return matrix[:, order]


def _fill_few(views: Views, trained: Views, partial_rows: str) -> Views:
    """Fill gaps of new samples that lack a few features, and warn of it; ``notes`` of the result hold the warnings.

    These are rows that lack at most a fifth of the features. With other settings than ``partial_rows="raise"``, only
    views of several samples without any value of a feature are filled here.
    """
    matrices: list[Any] = []
    notes = []
    for k, matrix in enumerate(views.in_parts()):
        matrices.append(matrix)
        n_gaps = count_missing_cells(matrix[:]) if matrix.shape[0] else np.zeros(0, dtype=np.intp)
        few = np.flatnonzero((n_gaps > 0) & (n_gaps <= MOST_LACKING * trained.n_features[k]))
        if not len(few):
            continue
        gaps = np.isnan(dense(host(matrix[:])))
        lacking = np.flatnonzero(gaps.all(axis=0))
        if partial_rows != "raise" and (not len(lacking) or len(n_gaps) == 1):
            continue
        name, ids = trained.names[k], views.sample_ids[views.rows(k)]
        rows, donors = host(matrix[:]), sample_rows(list(trained.in_parts())[k])
        filled, _ = complete_rows(name, rows[few], "fill", ids[few], donors)
        others = np.delete(np.arange(len(n_gaps)), few)
        parts = [filled, rows[others]]
        whole = sparse.csr_array(sparse.vstack(parts)) if sparse.issparse(rows) else np.concatenate(parts)
        matrices[-1] = whole[np.argsort(np.concatenate([few, others]))]
        notes.append(_fill_note(name, gaps[few], lacking, ids[few], trained.feature_names[k]))
    if not notes:
        views.notes = ()
        return views
    for note in notes:
        warn_user(note)
    whole_views = views.with_matrices(matrices)
    whole_views.notes = tuple(notes)
    return whole_views


def _fill_note(name: str, gaps: Any, lacking: Any, ids: Any, features: Any) -> str:
    n_cells = int(gaps.sum()) - len(lacking) * len(gaps)
    parts = []
    if len(lacking):
        parts.append(f"{counted(len(lacking), 'feature')} of {gaps.shape[1]:,} ({names_of(lacking, features)})")
    if n_cells:
        some_rows = np.delete(gaps, lacking, axis=1).any(axis=1)
        samples = f"{counted(int(some_rows.sum()), 'sample')} ({some(ids[some_rows])})"
        parts.append(f"{counted(n_cells, 'value')} in {samples}")
    return (
        f"View '{name}' of the new samples lacks {' and '.join(parts)}. They are filled from the nearest training "
        "samples; with partial_rows='drop', samples that lack single values are left out instead."
    )


def _match(views: Views, trained: Views) -> list[int | None]:
    """Return the position of the given view for every trained one: by name if the user gave names, else by order."""
    if set(views.names) <= set(trained.names) and (views._named or views.n_views == trained.n_views):
        return [views.names.index(name) if name in views.names else None for name in trained.names]
    if not views._named and views.n_views == trained.n_views:
        return list(range(trained.n_views))
    unknown = [name for name in views.names if name not in trained.names]
    what = f"the unknown view(s) {some(unknown)}" if views._named else f"{views.n_views} view(s) without names"
    raise InputError(
        f"The model was trained on the views {some(trained.names, 10)}; got {what}. "
        f"Give a dict with some of these names, or a list of {trained.n_views} with None for a view that is missing."
    )


def _order_of_features(views: Views, place: int, trained: Views, k: int) -> list[int] | None:
    """Return the positions of the trained features in a given view; None if they are in the same order.

    Features that the view lacks have positions beyond its last one, if they are at most a fifth of all.
    """
    n_features, known, given = views.n_features[place], trained.feature_names[k], views.feature_names[place]
    if known is not None and given is not None and set(given) < set(known):
        position = {name: column for column, name in enumerate(given)}
        lacking = [name for name in known if name not in position]
        if len(lacking) <= MOST_LACKING * len(known):
            position |= {name: n_features + column for column, name in enumerate(lacking)}
            return [position[name] for name in known]
    if n_features != trained.n_features[k]:
        raise InputError(
            f"View '{trained.names[k]}' had {trained.n_features[k]} features in training and has {n_features} now. "
            "Give the same features in the same order."
        )
    if known is None or given is None or np.array_equal(known, given):
        return None
    if set(known) != set(given):
        raise InputError(
            f"View '{trained.names[k]}' has other features than in training: "
            f"{some([name for name in given if name not in set(known)])} are new. Give the same columns."
        )
    position = {name: column for column, name in enumerate(given)}
    return [position[name] for name in known]


def one_per_view(given: Any, views: SampleCounts, expected: str) -> list[Any]:
    """Return one item per view in the order of the views; ``expected`` is the start of the error message."""
    if isinstance(given, Mapping):
        missing = [name for name in views.names if given.get(name) is None]
        if missing:
            raise InputTypeError(f"{expected}; the dict has none for the view(s) {some(missing)}.")
        return [given[name] for name in views.names]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputTypeError(f"{expected}; got {repr(given) if isinstance(given, str) else type(given).__name__}.")
    if len(given) != views.n_views or any(item is None for item in given):
        raise InputTypeError(f"{expected}; got {sum(item is not None for item in given)} in a list.")
    return list(given)


def real_matrix(given: Any, what: str, dtype: Any) -> Matrix:
    """Return a dense or sparse matrix of real numbers; numbers too large for the type become infinite."""
    if sparse.issparse(given):
        given = sound_sparse(what, given)
    elif isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise InputError(f"{what} must hold a number in every place; got a masked array. Fill the masked places.")
    try:
        matrix = given if sparse.issparse(given) else np.asarray(given)
        is_complex = np.iscomplexobj(matrix)
        with np.errstate(over="ignore"):  # the caller refuses infinity with its own message
            matrix = matrix if is_complex else matrix.astype(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputTypeError(f"{what} cannot be read as a matrix of numbers: {str(error).rstrip('.')}.") from None
    if is_complex:
        raise InputTypeError(f"{what} must hold real numbers; got complex ones. Take their real part or their size.")
    if matrix.ndim != 2:
        raise InputError(f"{what} must be a matrix of 2 dimensions; got shape {matrix.shape}.")
    return matrix
