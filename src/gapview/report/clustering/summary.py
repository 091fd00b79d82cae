"""The contents of a report on a clustering: numbers and names, and their wording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import ParameterTypeError
from ...estimators import GRMF, BridgedGRMF
from ...estimators.base import demand_fitted
from ...estimators.recovery import ViewRecovery
from ...persist import model_file
from ...trust import Agreement, Assessment, BatchMixing, FeatureEffect, GroupAssociation
from ...trust.assessment import small_groups
from ...trust.association import BATCH
from ...utils import messages
from ...utils.messages import NO_BREAK, shorten, warn_user
from ...utils.types import Array
from ...views import Description
from . import fit, samples
from .comparisons import compare_covariates
from .covariates import Covariates, match_covariates, read_names, read_pairs
from .features import TopFeatures, feature_label, top_values

_MOST_GROUPS = 200  # in one table
MOST_DETAILED = 50  # groups and columns with details


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
    is_calibrated : bool
        Whether the confidence is a probability, see :meth:`gapview.BridgedGRMF.calibrate`.
    sample_ids : tuple of str or None
        Sample ids; None if they are left out.
    sample_map : SampleMap
        Samples on a plane.
    features : TopFeatures
        Values of the features with the largest effects in the samples of the map.
    gaps : Gaps
        Which samples lack which views, and whether that is associated with the groups.
    batches : GroupAssociation or None
        Association of the groups with the batches; None if the fit was given none.
    mixing : BatchMixing or None
        Mixing of the batches before and after correction; None without correction.
    agreement : Agreement
        Agreement of the groups with the neighbours in every view and pair of views.
    contributions : array of shape (n_groups, n_views)
        Mean contribution of every view to the groups of its samples.
    choices : fit.Choices
        The settings and their origin.
    convergence : fit.Convergence
        The objective.
    recovered : tuple of ViewRecovery
        How well each view is recovered from the others, by every method.
    doubtful : tuple of DoubtfulSample
        The samples of the lowest confidence.
    covariates : Covariates or None
        Comparisons of the groups in covariates.
    repeat : fit.Repeat
        How to repeat the fit.
    assessment : Assessment or None
        Whether the groups can be distinguished from data without groups.
    doubt : str or None
        Why the groups themselves are in doubt.

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
    is_calibrated: bool
    sample_ids: tuple[str, ...] | None = field(repr=False)
    sample_map: samples.SampleMap
    features: TopFeatures
    gaps: samples.Gaps
    batches: GroupAssociation | None
    mixing: BatchMixing | None
    agreement: Agreement
    contributions: Array = field(repr=False)
    choices: fit.Choices
    convergence: fit.Convergence
    recovered: tuple[ViewRecovery, ...]
    doubtful: tuple[samples.DoubtfulSample, ...]
    covariates: Covariates | None
    repeat: fit.Repeat
    assessment: Assessment | None
    doubt: str | None

    def pattern_name(self, number: int) -> str:
        """Return the names of the views of a pattern."""
        return self.gaps.patterns[number].name([view.name for view in self.views])

    def with_map(self, model: Any, most_shown: int) -> Summary:
        """Return a copy whose map has at most so many samples of the model."""
        sample_map = samples.summarise_map(model, self.gaps.codes, most_shown)
        return replace(
            self, sample_map=sample_map, features=top_values(model, sample_map.samples, model.feature_effects())
        )

    def shown_groups(self) -> list[samples.GroupFacts]:
        """Return all groups, or the largest if there are too many for a table."""
        largest = sorted(self.groups, key=lambda group: -group.n_samples)[:_MOST_GROUPS]
        return sorted(largest, key=lambda group: group.number)


def summarise(
    model: Any,
    *,
    covariates: Any = None,
    survival: Any = None,
    adjust: Any = (),
    no_ids: bool = False,
    run: Mapping[str, Any] | None = None,
    most_shown: int = samples.MOST_MAPPED,
) -> Summary:
    """Return the contents of the report on a fitted model.

    Parameters
    ----------
    model, covariates, survival, adjust, no_ids, run
        As in :func:`gapview.report.write_clustering_report`.
    most_shown : int, default=50000
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
    >>> summary.gaps.tested is None, summary.convergence.settled
    (True, True)
    """
    named = "GRMF or BridgedGRMF, which have a latent space and recover views"
    demand_fitted("A report", model, GRMF | BridgedGRMF, named)
    if run is not None and not isinstance(run, Mapping):
        raise ParameterTypeError(f"run must be a dict of facts about the run, or None; got {type(run).__name__}.")
    pairs, adjusting = read_pairs(survival), read_names("adjust", adjust)
    if covariates is None and (pairs or adjusting):
        warn_user(f"{'survival' if pairs else 'adjust'} has no effect without covariates, whose columns it names.")
    table = None if covariates is None else match_covariates(covariates, model.sample_ids_, no_ids=no_ids)
    facts, n_groups = model_file.summarise(model), len(model.cluster_centers_)
    kinds = [rule.kind for rule in getattr(model, "kinds_", ())] or [None] * model.views_.n_views
    gaps = samples.summarise_gaps(model.views_, model.labels_, n_groups)
    effects, shown = model.feature_effects(), samples.summarise_map(model, gaps.codes, most_shown)
    return Summary(
        **vars(facts),
        description=model.views_.describe().with_kinds(kinds),
        groups=samples.summarise_groups(model, n_groups, effects),
        labels=model.labels_,
        confidence=model.confidence_,
        is_calibrated=hasattr(model, "uncalibrated_confidence_"),
        sample_ids=None if no_ids else tuple(str(key) for key in model.sample_ids_),
        sample_map=shown,
        features=top_values(model, shown.samples, effects),
        gaps=gaps,
        mixing=getattr(model, "batch_mixing_", None),
        batches=next((one for one in getattr(model, "associations_", ()) if one.factor == BATCH), None),
        agreement=model.view_agreement(),
        contributions=model.view_contributions().of_groups(model.labels_),
        choices=fit.summarise_choices(model, facts.settings),
        convergence=fit.summarise_convergence(model),
        recovered=model.recovery_scores().views if model.views_.n_views > 1 else (),
        doubtful=samples.doubtful_samples(model, gaps.codes, no_ids=no_ids),
        covariates=None if table is None else compare_covariates(table, model.labels_, n_groups, pairs, adjusting),
        repeat=fit.summarise_repeat(model, run),
        assessment=getattr(model, "assessment_", None),
        doubt=doubts_about_groups(model),
    )


def doubts_about_groups(model: Any) -> str | None:
    """Return why the groups of a model are in doubt; None if nothing is known against them."""
    found = getattr(model, "assessment_", None)
    if found is not None and found.p_value > found.alpha and not found.has_structure:
        return "the groups cannot be distinguished from data without groups."
    return small_groups(model.labels_) if len(set(model.labels_.tolist())) > 1 else None


# -- words -------------------------------------------------------------------------------------------------------------


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
    """Return a p-value with its name, as an upper bound if it is very small."""
    return messages.p_value(value).replace(" ", NO_BREAK)


def bare_p(value: float) -> str:
    """Return a p-value for a column of a table."""
    return messages.bare_p(value).replace(" ", NO_BREAK)


def group_name(number: int) -> str:
    """Return the name of a group."""
    return f"group{NO_BREAK}{number}"


def signed(value: float) -> str:
    """Return an effect with its sign and one digit."""
    return ("+" if value > 0 else "−") + ("∞" if math.isinf(value) else f"{abs(value):.1f}")


def feature_name(effect: FeatureEffect, longest: int) -> str:
    """Return the name of a feature, or its position if it has none."""
    return shorten(feature_label(effect.feature), longest)
