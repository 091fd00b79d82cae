"""The map of the samples, as a section of the page."""

from __future__ import annotations

from ...utils.words import counted
from .._blocks import Facet, Scatter, Section, Text
from ._summary import Summary
from .figures import MOST_PATTERNS
from .signs import group_sign
from .words import group_name, pattern_name, share, shorten

__all__ = ["map_section"]

_MOST_LISTED = 60  # groups by which the map can be filtered one by one
_LONGEST_ID = 60


def map_section(summary: Summary) -> Section:
    """Show the samples on a plane."""
    shown, gaps = summary.sample_map, summary.gaps
    names = [view.name for view in summary.views]
    samples = shown.samples
    n_groups = len(summary.groups)
    groups = Facet(
        "Group",
        tuple(group_name(g) for g in range(n_groups)),
        summary.labels[samples].tolist(),
        min(n_groups, _MOST_LISTED),
        tuple(group.n_samples for group in summary.groups),
    )
    patterns = Facet(
        "Views present",
        tuple(pattern_name(pattern, names) for pattern in gaps.patterns),
        gaps.codes[samples].tolist(),
        min(len(gaps.patterns), MOST_PATTERNS),
        tuple(pattern.n_samples for pattern in gaps.patterns),
    )
    ids = None if summary.sample_ids is None else [shorten(summary.sample_ids[i], _LONGEST_ID) for i in samples]
    scatter = Scatter(
        f"Map of {counted(len(samples), 'sample')} in {n_groups} groups",
        _map_caption(summary),
        "sample",
        shown.x.tolist(),
        shown.y.tolist(),
        (groups, patterns),
        tuple(group_sign(g) for g in range(n_groups)),
        tuple(str(g) for g in range(n_groups)),
        (("Confidence", [share(float(value)) for value in summary.confidence[samples]]),),
        None if ids is None else ("Sample", ids),
    )
    return Section("Map of the samples", (*_map_remarks(summary), scatter))


def _map_caption(summary: Summary) -> str:
    shown = summary.sample_map
    if shown.method == "PCA":
        how = "The two directions in which the latent points differ most (PCA)."
    else:
        how = (
            "Latent points laid out by t-SNE: samples that are near each other here are near in the latent space. How "
            "large a cloud is and how far it is from others says little."
        )
        if shown.n_landmarks < len(shown.samples):
            how += (
                f" t-SNE has placed {shown.n_landmarks:,} samples; each of the others lies between those that are "
                "nearest to it in the latent space."
            )
    return f"{how} Numbers stand in the midst of their group. Next and previous go from the least confident sample on."


def _map_remarks(summary: Summary) -> tuple[Text, ...]:
    n_shown = len(summary.sample_map.samples)
    if n_shown == summary.n_samples:
        return ()
    return (
        Text(
            f"The map shows {n_shown:,} of the {summary.n_samples:,} samples, drawn at random from every group and "
            "every pattern of gaps by its share. Counts beside the filters are those of all samples, and all other "
            "sections speak of all samples."
        ),
    )
