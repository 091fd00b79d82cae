"""Everything that a report on a clustering says, as plain numbers and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputTypeError, ParameterTypeError
from ...estimators import GRMF, BridgedGRMF
from ...trust import Agreement
from ...utils.types import Array
from ._covariate_table import read_covariates, read_pairs
from ._covariates import Covariates, compare_covariates
from ._recovery import Recovered, summarise_recovery
from .gaps import Gaps, summarise_gaps
from .groups import DoubtfulSample, GroupFacts, doubtful_samples, summarise_groups
from .history import Choices, Convergence, Repeat, summarise_choices, summarise_convergence, summarise_repeat
from .places import MOST_SHOWN, SampleMap, summarise_map

__all__ = ["Summary", "ViewFacts", "summarise"]


@dataclass(frozen=True)
class ViewFacts:
    """One view of the data."""

    name: str
    n_samples: int
    n_features: int


@dataclass(frozen=True)
class Summary:
    """What there is to say of a clustering; made by :func:`summarise`.

    Attributes
    ----------
    method : str
        Name of the method.
    n_samples, n_complete : int
        Samples, and how many of them have every view.
    views : tuple of ViewFacts
        The views.
    groups : tuple of GroupFacts
        Size, confidence and features of every group.
    labels, confidence : arrays of shape (n_samples,)
        Group and confidence of every sample.
    sample_ids : tuple of str or None
        What samples are called; None if that is left out.
    sample_map : SampleMap
        Samples on a plane.
    gaps : Gaps
        Which samples lack which views, and whether that goes with the groups.
    agreement : Agreement
        How well the groups hold in every view and pair of views.
    choices : Choices
        The settings and who chose them.
    convergence : Convergence
        The objective.
    recovered : tuple of Recovered
        How well hidden views are recovered.
    doubtful : tuple of DoubtfulSample
        The samples of the lowest confidence.
    covariates : Covariates or None
        How the groups go with what else is known.
    repeat : Repeat
        How to do it again.

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.report.clustering import summarise
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> summary = summarise(GRMF(n_clusters=2, random_state=0).fit(views))
    >>> summary.n_samples, [group.n_samples for group in summary.groups], len(summary.gaps.patterns)
    (60, [30, 30], 3)
    """

    method: str
    n_samples: int
    n_complete: int
    views: tuple[ViewFacts, ...]
    groups: tuple[GroupFacts, ...]
    labels: Array = field(repr=False)
    confidence: Array = field(repr=False)
    sample_ids: tuple[str, ...] | None = field(repr=False)
    sample_map: SampleMap
    gaps: Gaps
    agreement: Agreement
    choices: Choices
    convergence: Convergence
    recovered: tuple[Recovered, ...]
    doubtful: tuple[DoubtfulSample, ...]
    covariates: Covariates | None
    repeat: Repeat


def summarise(
    model: Any,
    *,
    covariates: Any = None,
    survival: Any = None,
    no_ids: bool = False,
    run: Mapping[str, Any] | None = None,
    most_shown: int = MOST_SHOWN,
) -> Summary:
    """Collect what a report on a fitted model says.

    Parameters
    ----------
    model, covariates, survival, no_ids, run
        As in :func:`gapview.report.write_clustering_report`.
    most_shown : int, default=20000
        How many samples the map may show.

    Returns
    -------
    Summary

    Examples
    --------
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.report.clustering import summarise
    >>> views = make_views(n_samples=60, n_clusters=2, random_state=0).views
    >>> summary = summarise(BridgedGRMF(n_clusters=2, random_state=0).fit(views))
    >>> summary.gaps.association is None, summary.convergence.settled
    (True, True)
    """
    _demand_model(model)
    if run is not None and not isinstance(run, Mapping):
        raise ParameterTypeError(f"run must be a dict of what is known of the run, or None; got {type(run).__name__}.")
    pairs = read_pairs(survival)
    table = None if covariates is None else read_covariates(covariates, model.sample_ids_, no_ids=no_ids)
    views, labels, n_groups = model.views_, model.labels_, len(model.cluster_centers_)
    gaps = summarise_gaps(views, labels, n_groups)
    counts = views.mask.sum(axis=0).tolist()
    return Summary(
        type(model).__name__,
        views.n_samples,
        int(views.mask.all(axis=1).sum()),
        tuple(ViewFacts(*facts) for facts in zip(views.names, counts, views.n_features, strict=True)),
        summarise_groups(model, n_groups),
        labels,
        model.confidence_,
        None if no_ids else tuple(str(key) for key in model.sample_ids_),
        summarise_map(model, gaps.codes, most_shown),
        gaps,
        model.view_agreement(),
        summarise_choices(model),
        summarise_convergence(model),
        summarise_recovery(model),
        doubtful_samples(model, gaps.codes, no_ids=no_ids),
        None if table is None else compare_covariates(table, labels, n_groups, pairs),
        summarise_repeat(model, run),
    )


def _demand_model(model: Any) -> None:
    if not isinstance(model, GRMF | BridgedGRMF):
        raise InputTypeError(
            "A report needs a fitted GRMF or BridgedGRMF, which know a latent space and can recover views; got "
            f"{model.__name__ if isinstance(model, type) else type(model).__name__}."
        )
    model._demand_fitted()
