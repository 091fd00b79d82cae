"""The first section: the map of the samples, and the groups as cards beside it."""

from __future__ import annotations

import math

import numpy as np

from ...trust.association import SIGNIFICANT
from ...utils.messages import counted, percent, shorten
from ...utils.types import Array
from ..drawing import MOST_PATTERNS, group_sign
from ..page import Beside, Card, Cards, Section, Text
from ..points import Classes, Numbers, Scatter
from .covariates import Column, Comparison
from .samples import DOUBTFUL, GroupFacts
from .summary import Summary, feature_name, group_name, rounded, share, signed

_MOST_LISTED = 60  # groups by which the map can be filtered one by one
_MOST_COLUMNS = 40  # covariates by which it can be coloured
_MOST_CLASSES = 200  # of one of them
_LONGEST_ID = 60
_MOST_CARDS = 40
_N_FEATURES = 3  # of every view, on a card
_N_VIEWS = 4  # of which a card lists features
_N_COVARIATES = 3


def map_section(summary: Summary) -> Section:
    """Return the section with the map of the samples and the cards of the groups."""
    shown = summary.sample_map
    remark = (
        f"The map shows {len(shown.samples):,} of the {summary.n_samples:,} samples, drawn at random in proportion "
        "from every group and every pattern of missing views. The counts beside the filters and all other sections are "
        "about all samples."
    )
    subset = len(shown.samples) < summary.n_samples
    return Section.of(
        "The groups", Text(remark) if subset else None, Beside((_scatter(summary), _cards(summary)), even=False)
    )


def _scatter(summary: Summary) -> Scatter:
    shown, gaps, n_groups = summary.sample_map, summary.gaps, len(summary.groups)
    samples = shown.samples
    sizes = tuple(group.n_samples for group in summary.groups)
    names = tuple(group_name(g) for g in range(n_groups))
    patterns = tuple(summary.pattern_name(number) for number in range(len(gaps.patterns)))
    counts = tuple(pattern.n_samples for pattern in gaps.patterns)
    n_listed = min(len(patterns), MOST_PATTERNS)
    result = (
        Classes("Group", names, summary.labels[samples], "Result", min(n_groups, _MOST_LISTED), sizes),
        Numbers("Confidence", summary.confidence[samples], "Result", 2),
        Classes("Views present", patterns, gaps.codes[samples], "Result", n_listed, counts),
    )
    ids = summary.sample_ids
    # Values of single samples identify them as well as their ids
    more = () if ids is None else (*_covariates(summary), *_features(summary))
    return Scatter(
        f"Map of {counted(len(samples), 'sample')} in {n_groups} groups; the samples are listed in the table below it",
        _caption(summary),
        "sample",
        shown.x.tolist(),
        shown.y.tolist(),
        (*result, *more),
        tuple(group_sign(g) for g in range(77)),  # later ones repeat
        tuple(str(g) for g in range(n_groups)),
        None if ids is None else tuple(shorten(ids[i], _LONGEST_ID) for i in samples),
        len(result),
    )


def _covariates(summary: Summary) -> list[Classes | Numbers]:
    """Return the covariates as properties of the map, those that differ most between the groups first."""
    if summary.covariates is None:
        return []
    columns, samples = summary.covariates.columns, summary.sample_map.samples
    tested = [one.column for one in sorted(summary.covariates.comparisons, key=lambda one: one.p_value)]
    found: list[Classes | Numbers] = []
    for name in [*(one for one in tested if one in columns), *(one for one in columns if one not in tested)]:
        column = columns[name]
        if column.is_number:
            found.append(Numbers(shorten(name, 40), column.numbers[samples], "Covariates"))
        elif (levels := levels_of(column)) and len(levels) <= _MOST_CLASSES:
            codes = codes_of(column, levels)[samples]
            found.append(Classes(shorten(name, 40), tuple(shorten(one, 40) for one in levels), codes, "Covariates"))
    return found[:_MOST_COLUMNS]


def levels_of(column: Column) -> list[str]:
    """Return the values of a column of texts that occur: in their order if they have one, else sorted."""
    given = {text for text in column.texts if text is not None}
    return [level for level in column.ranks if level in given] if column.ranks else sorted(given)


def codes_of(column: Column, levels: list[str]) -> Array:
    """Return the place of the value of every sample among the levels, −1 if it has none."""
    place = {level: i for i, level in enumerate(levels)}
    return np.array([-1 if text is None else place.get(text, -1) for text in column.texts])


def _features(summary: Summary) -> list[Numbers]:
    found, views = summary.features, [shorten(view.name, 40) for view in summary.views]
    listed = zip(found.names, found.views, found.values, strict=True)
    return [Numbers(shorten(name, 40), values, f"Features of {views[view]}") for name, view, values in listed]


def _caption(summary: Summary) -> str:
    shown = summary.sample_map
    if shown.method == "PCA":
        how = "The two directions in which the latent points differ most (PCA)."
    else:
        how = (
            "Latent points projected by t-SNE: samples that are near each other here are near in the latent space. "
            "Sizes of clouds and distances between them have no meaning."
        )
        if shown.n_landmarks < len(shown.samples):
            how += (
                f" t-SNE has placed {shown.n_landmarks:,} samples; the positions of the others are interpolated from "
                "the nearest of them in the latent space."
            )
    return f"{how} Numbers are in the centre of their group. Next and previous follow increasing confidence."


# -- cards -------------------------------------------------------------------------------------------------------------


def _cards(summary: Summary) -> Cards:
    shown = [group for group in summary.shown_groups() if group.n_samples][:_MOST_CARDS]
    n_more = sum(group.n_samples > 0 for group in summary.groups) - len(shown)
    note = (
        "Features: difference from all other samples in standard deviations (Hedges’ g). They describe a group and "
        "are no evidence that it exists."
    )
    more = f" {counted(n_more, 'more group')} in the table below." if n_more > 0 else ""
    return Cards(tuple(_card(summary, group) for group in shown), (note if len(summary.groups) > 1 else "") + more)


def _card(summary: Summary, group: GroupFacts) -> Card:
    facts = [("samples", f"{group.n_samples:,} ({percent(group.n_samples / summary.n_samples)})", False)]
    found = summary.assessment
    if found is not None and len(found.group_stability) == len(summary.groups) > 1:
        is_unstable = group.number in found.unstable_groups
        value = share(float(found.group_stability[group.number])) + (", unstable" if is_unstable else "")
        facts.append(("stability", value, is_unstable))
    facts.append(("mean confidence", share(group.confidence), bool(group.confidence < DOUBTFUL)))
    several = len(summary.views) > 1
    lists = []
    for view in summary.views:
        own = [effect for effect in group.features if effect.view == view.name][:_N_FEATURES]
        entries = tuple(
            (feature_name(one, 30), f"{'▲' if one.effect > 0 else '▼'} {signed(one.effect)}") for one in own
        )
        if entries:
            lists.append((shorten(view.name, 30) if several else "features", entries))
    covariates = () if summary.covariates is None else summary.covariates.comparisons
    firm = [one for one in sorted(covariates, key=lambda one: one.p_value) if one.adjusted < SIGNIFICANT]
    told = [one for one in covariates if one.survival][:1] + [one for one in firm if not one.survival][:_N_COVARIATES]
    known = tuple(filter(None, (_covariate_entry(one, group.number) for one in told)))
    return Card(
        group_name(group.number).capitalize(),
        group.number,
        tuple(facts),
        (*lists[:_N_VIEWS], *((("covariates", known),) if known else ())),
    )


def _covariate_entry(one: Comparison, group: int) -> tuple[str, str] | None:
    """Return a covariate and its value in a group: the median, or the value that is most over-represented."""
    name = shorten(one.column, 30)
    if one.survival is not None:
        curve = next((curve for curve in one.survival.curves if curve.group == group), None)
        if curve is None:
            return None
        median = "median not reached" if math.isnan(curve.median) else f"median {rounded(curve.median)}"
        return name, f"{median}, {curve.n_events:,} of {curve.n_samples:,} with the event"
    if one.quartiles:
        quartiles = one.quartiles[group]
        return None if quartiles is None else (name, f"median {rounded(quartiles.median)}")
    counts = one.counts
    if not counts[group].sum():
        return None
    own, usual = counts[group] / counts[group].sum(), counts.sum(axis=0) / counts.sum()
    most = int((own - usual).argmax())
    return name, f"{shorten(one.levels[most], 24)} {100 * own[most]:.0f} % (of all {100 * usual[most]:.0f} %)"
