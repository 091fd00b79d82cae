"""New samples with everything known about their place: groups, confidence, p-values, notes on views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import GapviewWarning, extra
from ..trust.novelty import Novelty, is_beyond_chance
from ..trust.unit_changes import unit_change
from ..utils.messages import counted, is_muted, joined, percent
from ..utils.shown import Shown, Table
from ..utils.types import Array
from ..views import Views, compare

ALPHA = 0.05
_known: WeakKeyDictionary[Views, Novelty] = WeakKeyDictionary()  # of the training samples of fitted models


@dataclass(frozen=True, repr=False)
class Placement(Shown):
    """The result of ``model.place(views)``: new samples, their groups, and how far these can be trusted.

    Attributes
    ----------
    labels : array of shape (n_samples,)
        Group of each sample, as ``predict`` returns it.
    proba : array of shape (n_samples, n_clusters)
        Share of each group, as ``predict_proba`` returns it.
    confidence : array of shape (n_samples,)
        Share of the group of the sample.
    p_values : array of shape (n_samples, n_views)
        Conformal p-value of each view of a sample: the share of training samples that are at least as unusual. NaN
        where the sample lacks the view.
    p_value : array of shape (n_samples,)
        The same for all views of a sample together. Of samples like those in training, a share of at most ``alpha``
        has a p-value of at most ``alpha``.
    unusual : bool array of shape (n_samples,)
        Whether ``p_value`` is at most ``alpha``. The group of such a sample should not be trusted.
    notes : tuple of str
        Sentences on views in other units, on views in which more samples are unusual than chance explains, and on
        values that were filled.
    alpha : float
        The level of ``unusual``.
    sample_ids : array of shape (n_samples,)
        Ids of the samples.
    view_names : tuple of str
        Names of the views.

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
    >>> model = GRMF(n_clusters=3, random_state=0).fit(data.views[:150])
    >>> found = model.place(data.views[150:])
    >>> found.proba.shape, found.p_values.shape, found.notes
    ((50, 3), (50, 2), ())
    >>> print(found.summary())  # doctest: +NORMALIZE_WHITESPACE
    4 of 50 samples are unlike the training samples (p ≤ 0.05); by single views 3 in view_0 and 3 in view_1. About 2 are
    expected by chance.
    """

    labels: Array
    proba: Array
    confidence: Array
    p_values: Array
    p_value: Array
    unusual: Array
    notes: tuple[str, ...]
    alpha: float
    sample_ids: Array
    view_names: tuple[str, ...]

    def summary(self) -> str:
        """Return one sentence on how many samples are unlike the training samples, and in which views."""
        n_unusual, n_samples = int(self.unusual.sum()), len(self.unusual)
        are = "is" if n_unusual == 1 else "are"
        of_views = zip(self.view_names, self.p_values.T, strict=True)
        alone = [f"{(own <= self.alpha).sum():,} in {name}" for name, own in of_views if np.isfinite(own).any()]
        detail = f"{': ' if len(alone) == 1 else '; by single views '}{joined(alone)}" if n_unusual else ""
        return (
            f"{n_unusual:,} of {counted(n_samples, 'sample')} {are} unlike the training samples (p ≤ {self.alpha:g})"
            f"{detail}. About {round(self.alpha * n_samples):,} are expected by chance."
        )

    def to_frame(self) -> Any:
        """Return a pandas frame with a row for each sample.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> data = make_views(n_samples=200, n_clusters=3, random_state=0)
        >>> model = GRMF(n_clusters=3, random_state=0).fit(data.views[:150])
        >>> model.place(data.views[150:]).to_frame().columns.tolist()
        ['label', 'confidence', 'p_value', 'p_view_0', 'p_view_1', 'unusual']
        """
        pandas = extra("pandas", "tables", "A frame of new samples")
        of_views = {f"p_{name}": own for name, own in zip(self.view_names, self.p_values.T, strict=True)}
        columns = {"label": self.labels, "confidence": self.confidence, "p_value": self.p_value, **of_views}
        return pandas.DataFrame(columns | {"unusual": self.unusual}, index=pandas.Index(self.sample_ids, name="id"))

    def _shown_as(self) -> Table:
        """Return the summary, the first samples and the notes."""
        columns = ("sample", "group", "confidence", "p_value", "unusual")
        parts = (map(str, self.sample_ids), self.labels, self.confidence, self.p_value, self.unusual)
        return Table(self.summary(), columns, list(zip(*parts, strict=True)), self.notes)


def known_novelty(trained: Views) -> Novelty:
    """Return the training samples as new ones are compared with them; computed once for each training data."""
    if trained not in _known:
        _known[trained] = Novelty(trained)
    return _known[trained]


def view_notes(given: Views, trained: Views, p_values: Array | None = None, alpha: float = ALPHA) -> list[str]:
    """Return a sentence on each view of new samples that is unlike training; none if warnings are muted.

    A view is reported if its values are in other units, or if more samples are unusual than chance explains.

    Parameters
    ----------
    given, trained : Views
        New samples, and those of training.
    p_values : array of shape (n_samples, n_views), optional
        P-values of the new samples, if they are known already.
    alpha : float, default=0.05
        Level at which a sample is unusual.
    """
    if is_muted(GapviewWarning) and p_values is None:
        return []
    novelty, found = known_novelty(trained), compare(given, trained)
    p_values = novelty.p_values(given)[0] if p_values is None else p_values
    notes = []
    for k, name in enumerate(trained.names):
        own, known, what = p_values[given.mask[:, k], k], novelty.views[k], found.get(name)
        beyond = known is not None and is_beyond_chance(own, known.n_rows, alpha)
        if what is None and not beyond:
            continue
        change, zeros = None, 0.0
        if beyond:
            rows = next(novelty.blocks(given, k))
            zeros = float((rows == 0).all(axis=1).mean())
            if what is None or "factor" not in what:
                change = unit_change(known, rows, alpha)  # type: ignore[arg-type]
        if what is None:
            share = percent((own <= alpha).mean())
            what = f"{share} of the samples are unusual (p ≤ {alpha:g}; {percent(alpha)} expected)."
        more = f" Check the units: {change}." if change else ""
        if zeros > alpha:
            more += f" {percent(zeros)} of them have nothing but zeros: leave cells empty that were not measured."
        if beyond:
            more += " Do not trust the groups of unusual samples."
        notes.append(f"View '{name}' of the new samples is unlike that of the training samples: {what}{more}")
    return notes
