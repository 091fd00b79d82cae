"""The end of ``gapview cluster``: the groups, how far to trust them, what to look at; details with ``--verbose``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import some
from ..estimators import MultiViewClusterer
from ..estimators.latent import LatentSpaceMixin
from ..report.clustering.summary import doubts_about_groups
from ..trust import Markers
from ..trust.association import BATCH
from ..utils.messages import counted, duration, joined
from .console import Show
from .results import MARKERS

_UNSURE = 0.5  # confidence at which two groups are equally likely
_N_SIZES = 12  # sizes of groups that are listed
_LEVEL = 0.05  # false discovery rate


@dataclass
class Closing:
    """The lines that a command prints after the files that it wrote, and the reasons not to trust the groups."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def summary_of(model: Any, files: Sequence[Path], markers: Markers | None) -> list[tuple[str, str]]:
    """Return three lines on a fitted model, each a head and a text; ``files`` are the results that were written."""
    return [("Groups", _groups(model)), ("Trust", _trust(model)), ("Look at", _what_to_look_at(model, files, markers))]


def _groups(model: Any) -> str:
    sizes = np.bincount(model.labels_)
    samples = counted(len(model.labels_), "sample")
    suggested = ", the number that the data suggest" if hasattr(model, "cluster_count_") else ""
    if len(sizes) == 1:
        return f"{samples} in one group{suggested}."
    listed = joined([f"{size:,}" for size in sizes])
    if len(sizes) > _N_SIZES:
        listed = f"{sizes.min():,} to {sizes.max():,} samples in each"
    return f"{samples} in {len(sizes)} groups{suggested}: {listed}."


def _trust(model: Any) -> str:
    """Return what is known for or against the groups."""
    if not isinstance(model, LatentSpaceMixin):
        return "Not tested: the tests are those of BridgedGRMF and GRMF."
    found = getattr(model, "assessment_", None)
    if len(np.unique(model.labels_)) == 1:
        asked = not hasattr(model, "cluster_count_")
        return "One group was requested, and nothing is tested." if asked else "The data do not show separate groups."
    doubt = _explained_groups(model) or doubts_about_groups(model)
    confidence = _confidence(model) if doubt is None else doubt
    if found is None:
        return f"Not tested, as requested; {confidence}"
    test = f"be distinguished from data without groups (p = {found.p_value:.2g})"
    if not found.has_structure:
        return f"The groups cannot {test}: do not interpret them without other evidence."
    return f"The groups can {test}; {confidence}"


def _explained_groups(model: Any) -> str | None:
    """Return that batches or missing views explain groups, without the figures; None if they do not."""
    for test in model.associations_:
        if test.is_warning:
            sentence = test.sentence.partition(" (")[0]
            return f"{sentence[:1].lower()}{sentence[1:]}."
    return None


def _confidence(model: Any) -> str:
    """Return the median confidence of the samples, and what it means."""
    is_calibrated = hasattr(model, "uncalibrated_confidence_")
    scale = "the probability that a fit to other samples and features keeps a sample in its group"
    meaning = scale if is_calibrated else "on a scale from 0 to 1"
    return f"the median confidence is {np.median(model.confidence_):.2f}, {meaning}."


def _what_to_look_at(model: Any, files: Sequence[Path], markers: Markers | None) -> str:
    """Return the results to open first, and the groups and samples to be careful with."""
    found, by_name = [], {path.name: str(path) for path in files}
    if "report.html" in by_name:
        found.append(by_name["report.html"])
    if markers is not None:
        is_marker = (markers.columns["fdr"] <= _LEVEL).tolist()
        pairs = zip(markers.columns["view"].tolist(), markers.columns["feature"].tolist(), is_marker, strict=True)
        n_found = len({(view, feature) for view, feature, is_one in pairs if is_one})
        features = counted(n_found, "feature") if n_found else "no features"
        found.append(f"{features} that set a group apart ({MARKERS})")
    if (assessment := getattr(model, "assessment_", None)) is not None and assessment.has_structure:
        unstable = [str(group) for group in assessment.unstable_groups]
        if unstable:
            which = joined(unstable) if len(unstable) <= _N_SIZES else some(unstable, _N_SIZES)
            found.append(f"{'group' if len(unstable) == 1 else 'groups'} {which}, not stable in resamples")
    if unsure := _unsure_samples(model):
        found.append(
            f"{counted(len(unsure), 'sample')} with a confidence below {_UNSURE} (labels.csv): {some(unsure, 3)}"
        )
    if not found:
        found.append(by_name.get("labels.csv", "labels.csv"))
    return "; ".join(found) + "."


def _unsure_samples(model: Any) -> list[str]:
    """Return the ids of the samples of low confidence, the lowest first; none if the groups themselves are in doubt."""
    if (
        not hasattr(model, "confidence_")
        or len(np.unique(model.labels_)) == 1
        or doubts_about_groups(model) is not None
    ):
        return []
    order = np.argsort(model.confidence_, kind="stable")
    return [str(key) for key in model.sample_ids_[order[model.confidence_[order] < _UNSURE]]]


def show_batches(model: MultiViewClusterer, show: Show) -> None:
    """Print whether the groups are associated with batches, and how far a correction has mixed these."""
    for test in model.associations_:
        if test.factor == BATCH:
            show("Batches", test.sentence)
    if hasattr(model, "batch_mixing_"):
        for sentence in model.batch_mixing_.sentences():
            show("Batches", sentence)


def show_details(model: Any, markers: Markers | None, seconds: float, show: Show) -> None:
    """Print the settings that were chosen and why, every test of the groups, and the time of the fit."""
    if hasattr(model, "cluster_count_"):
        show("Number", " ".join(model.cluster_count_.reason().split()))
    if hasattr(model, "selection_"):
        show("Settings", str(model.selection_))
    for test in model.associations_:
        if test.factor != BATCH:
            show("Test", test.sentence)
    if hasattr(model, "assessment_"):
        for sentence in model.assessment_.sentences():
            show("Test", sentence)
    if markers is not None:
        show("Markers", str(markers))
    show("Time", f"{type(model).__name__} took {duration(seconds) if seconds >= 10 else f'{seconds:.1f} s'}.")
