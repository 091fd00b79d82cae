"""Whether groups can be distinguished from null data: views of one unimodal group, see :mod:`.null_views`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..errors import GapviewError, GapviewWarning, ParameterError
from ..persist.checkpoints import checkpointed
from ..persist.checkpoints.journal import use_journal
from ..progress import tell
from ..utils.messages import check_integer, check_real, muted
from ..utils.types import Array
from ..views import Views
from ..views.cells import draw_from
from .agreement import view_agreement_test
from .assessment import ROUNDING, Assessment, Resamples
from .confidence import read_labels
from .null_views import NULLS, NullViews, as_dense
from .stability import best_jaccard, count_common, structure_score

MOST_SAMPLES = 2000
N_RESAMPLES = 5  # of the data; of null data there is one, whose statistic varies more: the test is conservative

_MOST_VALUES = 2**25  # of all views, of the samples that are drawn
_SHARE = 0.8  # of the samples in a resample
_ENOUGH = 3  # null data sets with a statistic as large, from which no more are drawn

FitViews = Callable[[Views, int], Any]  # clusters views with a random seed; returns labels
Clarity = Callable[[Views, Array], float]  # of labels of the samples of views; larger if neighbours share their label


def assess_structure(
    fit: FitViews,
    clarity: Clarity,
    views: Views,
    *,
    n_null: int = 19,
    alpha: float = 0.05,
    random_state: np.random.RandomState,
) -> tuple[Assessment, Resamples]:
    """Test whether a clustering finds more structure in views than in null data without groups.

    H0: the views are one unimodal group. The statistic is modularity³ · stability, the score that also compares numbers
    of groups. Stability: views are clustered as a whole and in resamples of 80 % of the samples; groups are compared
    with the most similar group by the Jaccard similarity. Modularity: how far neighbours within each view are in the
    same group. It has the larger weight since the stability of few groups varies several times as much between null
    data sets, relative to its mean. The same is done for null data, see
    :class:`gapview.trust.null_views.NullViews`. At most 2,000 samples are used. Null data are not resampled where their
    modularity³ is below the statistic of the data, since the stability is at most 1, once the stability of ``n_null``
    groups of null data is known.

    Parameters
    ----------
    fit : callable
        ``fit(views, seed)`` clusters views and returns the labels.
    clarity : callable
        ``clarity(views, labels)`` returns the modularity of labels, averaged over the views.
    views : Views
        The data.
    n_null : int, default=19
        Maximum number of null data sets of each of the two kinds.
    alpha : float, default=0.05
        Level of significance. Drawing stops when it cannot be reached any more.
    random_state : RandomState
        Random numbers.

    Returns
    -------
    Assessment
        Without the stability of single groups, which :func:`add_groups` computes.
    Resamples
        The groups found in resamples of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from gapview import Views
    >>> from gapview.graph import knn_graph, modularity
    >>> from gapview.trust.structure import assess_structure
    >>> state = np.random.RandomState(0)
    >>> views = Views([np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0) + state.normal(size=(60, 2))])
    >>> def fit(views, seed):
    ...     return KMeans(2, n_init=3, random_state=seed).fit(views.matrices[0]).labels_
    >>> def clarity(views, labels):
    ...     return modularity(knn_graph(views.matrices[0], 5), labels)
    >>> assess_structure(fit, clarity, views, random_state=state)[0].p_value
    0.05
    """
    check_integer("n_null", n_null, low=1, high=1000)
    check_real("alpha", alpha, low=0, high=1, open_low=True)
    if 1 / (1 + n_null) > alpha + ROUNDING:
        raise ParameterError(
            f"n_null={n_null} null data sets give a p-value of at least {1 / (1 + n_null):.3g}, which is above "
            f"alpha={alpha:g}. Raise n_null to {int(np.ceil(1 / alpha - ROUNDING)) - 1} or more."
        )
    n_most = min(MOST_SAMPLES, max(_MOST_VALUES // max(sum(views.n_features), 1), 50))
    rows = draw_from(views.mask, n_most, int(random_state.randint(2**31 - 1)))
    part = views.on_host()[rows]
    part = part.with_matrices([as_dense(matrix) for matrix in part.one_by_one()])
    null = NullViews(part)
    with muted(GapviewWarning, ConvergenceWarning):  # of fits to parts and to null data
        tell("Assessing groups")
        work = partial(_examine, fit, clarity, part, N_RESAMPLES, random_state)
        own = _recorded("groups of the data", work, random_state)
        compared = _Comparison(own.statistic, n_null, alpha, own.groups.shape[-1])
        for place, kind in enumerate(NULLS):
            for draw in range(n_null):
                if compared.is_decided(place):
                    break
                tell("Assessing groups", place * n_null + draw, 2 * n_null)
                work = partial(_examine_null, fit, clarity, null, kind, compared.least(place), random_state)
                compared.add(place, draw, _recorded("null data", work, random_state))
        agreement, agreement_p = view_agreement_test(part, random_state)
    p_values = compared.p_values()
    found = Assessment(
        float(np.nanmax(p_values)),
        p_values,
        own.statistic,
        float(np.nanmean(own.groups)),
        own.modularity,
        compared.statistics,
        np.ma.masked_invalid(compared.groups).mean(axis=2).filled(np.nan),
        compared.groups,
        agreement,
        agreement_p,
        np.array([]),
        np.array([]),
        float(alpha),
        part.n_samples,
        1 + N_RESAMPLES + compared.n_fits,
    )
    return found, Resamples(rows, own.found)


# -- data and null data ------------------------------------------------------------------------------------------------


class _Examined(NamedTuple):
    """Structure that a clustering finds in views."""

    statistic: float
    modularity: float
    groups: Array  # resamples × groups: Jaccard similarity
    found: Array  # resamples × samples: group, −1 if the sample is not drawn


def _examine(
    fit: FitViews,
    clarity: Clarity,
    views: Views,
    n_resamples: int,
    state: np.random.RandomState,
    least: float = -np.inf,
) -> _Examined:
    """Cluster views as a whole and, if their statistic may reach the least one, in resamples."""
    with use_journal(None):  # parts of a fit are not recorded
        labels = read_labels(fit(views, _seed(state)))
        modularity = clarity(views, labels)
        n_groups, n_samples = int(labels.max()) + 1, views.n_samples
        found = np.full((n_resamples, n_samples), -1)
        groups = np.full((n_resamples, n_groups), np.nan)
        most = float(structure_score(modularity, 1.0))  # the stability is at most 1
        if most < least:
            return _Examined(most, modularity, groups, found)
        for turn in range(n_resamples):
            rows = draw_from(views.mask, max(2, int(_SHARE * n_samples)), _seed(state))
            found[turn, rows] = fit(views[rows], _seed(state))
            groups[turn] = best_jaccard(count_common(labels[rows], found[turn, rows], n_groups))
    return _Examined(float(structure_score(modularity, np.nanmean(groups))), modularity, groups, found)


def _examine_null(
    fit: FitViews, clarity: Clarity, null: NullViews, kind: str, least: float, state: np.random.RandomState
) -> _Examined:
    """Cluster null data; a fit that fails counts as structure, so that it cannot make a p-value smaller."""
    try:
        return _examine(fit, clarity, null.draw(kind, state), 1, state, least)._replace(found=np.empty((0, 0)))
    except GapviewError:
        return _Examined(float("inf"), float("nan"), np.full((1, 1), np.nan), np.empty((0, 0)))


def _recorded(name: str, compute: Callable[[], _Examined], state: np.random.RandomState) -> _Examined:
    """Compute a result, or read it from the checkpoint of the fit."""
    values: tuple[Any, ...] = checkpointed(name, lambda: tuple(compute()), state)
    return _Examined(*values)


def _seed(state: np.random.RandomState) -> int:
    return int(state.randint(2**31 - 1))


class _Comparison:
    """The statistic of the data among those of null data, drawn until the result is known."""

    def __init__(self, statistic: float, n_null: int, alpha: float, n_groups: int) -> None:
        self._statistic, self._alpha = statistic, alpha
        self.statistics = np.full((len(NULLS), n_null), np.nan)
        self.groups = np.full((len(NULLS), n_null, n_groups), np.nan)
        self.n_fits = 0
        self._enough = max(_ENOUGH, int(alpha * (n_null + 1) + ROUNDING))
        # Null data sets of each kind whose groups are compared with single groups of the data
        self._n_resampled = ceil(n_null / (len(NULLS) * n_groups))

    def least(self, place: int) -> float:
        """Return the statistic below which the next null data set of a kind need not be resampled."""
        n_resampled = int(np.isfinite(self.groups[place]).any(axis=1).sum())
        return self._statistic if n_resampled >= self._n_resampled else -np.inf

    def add(self, place: int, draw: int, examined: _Examined) -> None:
        """Add a null data set of a kind."""
        self.statistics[place, draw] = examined.statistic
        n_groups = min(self.groups.shape[2], examined.groups.shape[1])
        self.groups[place, draw, :n_groups] = examined.groups[0, :n_groups]
        self.n_fits += 1 + bool(np.isfinite(examined.groups).any())

    def is_decided(self, place: int) -> bool:
        """Return whether more null data of a kind cannot change whether the result is significant."""
        before = any(self._p_value(other) > self._alpha + ROUNDING for other in range(place))
        return before or self._n_as_large(place) >= self._enough

    def p_values(self) -> Array:
        """Return the p-value of every kind of null data."""
        return np.array([self._p_value(place) for place in range(len(NULLS))])

    def _n_as_large(self, place: int) -> int:
        return int((self.statistics[place] >= self._statistic).sum())

    def _p_value(self, place: int) -> float:
        n_drawn, n_as_large = int((~np.isnan(self.statistics[place])).sum()), self._n_as_large(place)
        if not n_drawn:
            return float("nan")
        if n_drawn < self.statistics.shape[1]:
            return n_as_large / n_drawn
        return (1 + n_as_large) / (1 + n_drawn)
