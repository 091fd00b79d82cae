"""The contents of a report on a clustering: numbers and names, and their wording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ParameterTypeError
from ...estimators import GRMF, BridgedGRMF
from ...estimators.base import demand_fitted
from ...persist import model_file
from ...trust import Agreement, FeatureEffect
from ...utils.messages import NO_BREAK, shorten
from ...utils.types import Array
from ...views import Description
from . import fit, samples
from .covariates import Covariates, compare_covariates, match_covariates, read_pairs

_MOST_GROUPS = 200  # in one table


@dataclass(frozen=True)
class Summary(model_file.ModelSummary):
    """The contents of a report, in addition to those of a model file; built by :func:`summarise`.

    Attributes
    ----------
    description : Description
        What the values of the views look like.
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
    choices : fit.Choices
        The settings and their origin.
    convergence : fit.Convergence
        The objective.
    recovered : tuple of Recovered
        Errors of recovered views.
    doubtful : tuple of DoubtfulSample
        The samples of the lowest confidence.
    covariates : Covariates or None
        Comparisons of the groups in covariates.
    repeat : fit.Repeat
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

    description: Description
    groups: tuple[samples.GroupFacts, ...]
    labels: Array = field(repr=False)
    confidence: Array = field(repr=False)
    sample_ids: tuple[str, ...] | None = field(repr=False)
    sample_map: samples.SampleMap
    gaps: samples.Gaps
    agreement: Agreement
    choices: fit.Choices
    convergence: fit.Convergence
    recovered: tuple[fit.Recovered, ...]
    doubtful: tuple[samples.DoubtfulSample, ...]
    covariates: Covariates | None
    repeat: fit.Repeat

    def pattern_name(self, number: int) -> str:
        """Return the names of the views of a pattern."""
        names, present = [view.name for view in self.views], self.gaps.patterns[number].present
        if all(present):
            return "all views" if len(names) > 1 else shorten(names[0])
        having = [shorten(name, 40) for name, has in zip(names, present, strict=True) if has]
        return f"only {having[0]}" if len(having) == 1 else ", ".join(having)

    def shown_groups(self) -> list[samples.GroupFacts]:
        """Return all groups, or the largest if there are too many for a table."""
        largest = sorted(self.groups, key=lambda group: -group.n_samples)[:_MOST_GROUPS]
        return sorted(largest, key=lambda group: group.number)


def summarise(
    model: Any,
    *,
    covariates: Any = None,
    survival: Any = None,
    no_ids: bool = False,
    run: Mapping[str, Any] | None = None,
    most_shown: int = samples.MOST_SHOWN,
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
    named = "GRMF or BridgedGRMF, which have a latent space and recover views"
    demand_fitted("A report", model, GRMF | BridgedGRMF, named)
    if run is not None and not isinstance(run, Mapping):
        raise ParameterTypeError(f"run must be a dict of facts about the run, or None; got {type(run).__name__}.")
    pairs = read_pairs(survival)
    table = None if covariates is None else match_covariates(covariates, model.sample_ids_, no_ids=no_ids)
    facts, n_groups = model_file.summarise(model), len(model.cluster_centers_)
    gaps = samples.summarise_gaps(model.views_, model.labels_, n_groups)
    return Summary(
        **vars(facts),
        description=model.views_.describe(),
        groups=samples.summarise_groups(model, n_groups),
        labels=model.labels_,
        confidence=model.confidence_,
        sample_ids=None if no_ids else tuple(str(key) for key in model.sample_ids_),
        sample_map=samples.summarise_map(model, gaps.codes, most_shown),
        gaps=gaps,
        agreement=model.view_agreement(),
        choices=fit.summarise_choices(model, facts.settings),
        convergence=fit.summarise_convergence(model),
        recovered=fit.summarise_recovery(model),
        doubtful=samples.doubtful_samples(model, gaps.codes, no_ids=no_ids),
        covariates=None if table is None else compare_covariates(table, model.labels_, n_groups, pairs),
        repeat=fit.summarise_repeat(model, run),
    )


# -- words -------------------------------------------------------------------------------------------------------------


_TINY = 0.001


def share(value: float) -> str:
    """Return a number from 0 to 1 with two digits, a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:.2f}".replace("-", "−")


def rounded(value: float) -> str:
    """Return a number of any size with three digits, a dash for NaN."""
    if math.isnan(value):
        return "–"
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return text.replace("-", "−")


def p_value(value: float) -> str:
    """Return a p-value, as an upper bound if it is very small."""
    return f"p < {_TINY}".replace(" ", NO_BREAK) if value < _TINY else f"p{NO_BREAK}={NO_BREAK}{bare_p(value)}"


def bare_p(value: float) -> str:
    """Return a p-value for a column of a table."""
    if math.isnan(value):
        return "–"
    return f"<{NO_BREAK}{_TINY}" if value < _TINY else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def group_name(number: int) -> str:
    """Return the name of a group."""
    return f"group{NO_BREAK}{number}"


def signed(value: float) -> str:
    """Return an effect with its sign and one digit."""
    return ("+" if value > 0 else "−") + ("∞" if math.isinf(value) else f"{abs(value):.1f}")


def feature_name(effect: FeatureEffect, longest: int) -> str:
    """Return the name of a feature, or its position if it has none."""
    return shorten(effect.feature, longest) if isinstance(effect.feature, str) else f"feature {effect.feature}"


def strength_word(value: float, steps: tuple[float, float, float] = (samples.WEAK, 0.3, 0.5)) -> str:
    """Return a word for the size of an effect, by the usual thresholds."""
    words = ("very weakly", "weakly", "moderately", "strongly")
    return words[sum(value >= step for step in steps)]
