"""The contents of a report on a clustering, as plain numbers and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputTypeError, ParameterTypeError
from ...estimators import GRMF, BridgedGRMF
from ...persist.model_file import ViewSummary
from ...persist.model_file import summarise as summarise_model
from ...trust import Agreement
from ...utils.types import Array
from .covariate_table import match_covariates, read_pairs
from .covariates import Covariates, compare_covariates
from .fit import (
    Choices,
    Convergence,
    Recovered,
    Repeat,
    summarise_choices,
    summarise_convergence,
    summarise_recovery,
    summarise_repeat,
)
from .groups import DoubtfulSample, Gaps, GroupFacts, doubtful_samples, summarise_gaps, summarise_groups
from .sample_map import MOST_SHOWN, SampleMap, summarise_map


@dataclass(frozen=True)
class Summary:
    """The contents of a report; built by :func:`summarise`.

    Attributes
    ----------
    method : str
        Name of the method.
    n_samples, n_complete : int
        Samples, and how many of them have every view.
    views : tuple of ViewSummary
        The views.
    groups : tuple of GroupFacts
        Size, confidence and features of every group.
    labels, confidence : arrays of shape (n_samples,)
        Group and confidence of every sample.
    sample_ids : tuple of str or None
        Sample ids; None if they are left out.
    sample_map : SampleMap
        Samples on a plane.
    gaps : Gaps
        Which samples lack which views, and whether that is associated with the groups.
    agreement : Agreement
        Agreement of the groups with the neighbours in every view and pair of views.
    choices : Choices
        The settings and their origin.
    convergence : Convergence
        The objective.
    recovered : tuple of Recovered
        Errors of recovered views.
    doubtful : tuple of DoubtfulSample
        The samples of the lowest confidence.
    covariates : Covariates or None
        Comparisons of the groups in covariates.
    repeat : Repeat
        How to repeat the fit.

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
    views: tuple[ViewSummary, ...]
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
    """Return the contents of the report on a fitted model.

    Parameters
    ----------
    model, covariates, survival, no_ids, run
        As in :func:`gapview.report.write_clustering_report`.
    most_shown : int, default=20000
        Maximum number of samples on the map.

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
    _check_model(model)
    if run is not None and not isinstance(run, Mapping):
        raise ParameterTypeError(f"run must be a dict of facts about the run, or None; got {type(run).__name__}.")
    pairs = read_pairs(survival)
    table = None if covariates is None else match_covariates(covariates, model.sample_ids_, no_ids=no_ids)
    facts, n_groups = summarise_model(model), len(model.cluster_centers_)
    gaps = summarise_gaps(model.views_, model.labels_, n_groups)
    return Summary(
        facts.method,
        facts.n_samples,
        facts.n_complete,
        facts.views,
        summarise_groups(model, n_groups),
        model.labels_,
        model.confidence_,
        None if no_ids else tuple(str(key) for key in model.sample_ids_),
        summarise_map(model, gaps.codes, most_shown),
        gaps,
        model.view_agreement(),
        summarise_choices(model, facts.settings),
        summarise_convergence(model),
        summarise_recovery(model),
        doubtful_samples(model, gaps.codes, no_ids=no_ids),
        None if table is None else compare_covariates(table, model.labels_, n_groups, pairs),
        summarise_repeat(model, run),
    )


def _check_model(model: Any) -> None:
    if not isinstance(model, GRMF | BridgedGRMF):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        needed = "A report needs a fitted GRMF or BridgedGRMF, which have a latent space and recover views"
        raise InputTypeError(f"{needed}; got {name}.")
    model.check_fitted()
