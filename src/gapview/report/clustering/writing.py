"""The page of the report on a clustering, and its file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import ParameterTypeError
from ...estimators.latent import LatentSpaceMixin
from ...persist.model_file import check_path
from ...trust.assessment import small_groups
from ...utils.messages import check_flag, counted, percent, spelled
from ...utils.storage import write_whole
from ..page import Page, render
from . import fit_sections, group_sections
from .data_section import data_section
from .samples import DOUBTFUL, MOST_SHOWN, summarise_map
from .summary import Summary, summarise

_MOST_BYTES = 3_000_000  # can be sent by e-mail
_MOST_SHOWN = (MOST_SHOWN, 8000, 2000)  # samples on the map; fewer if long names make the file too large


def clustering_page(summary: Summary, title: str | None = None) -> Page:
    """Return the page of a summary.

    Examples
    --------
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.report.clustering import clustering_page, summarise
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> page = clustering_page(summarise(GRMF(n_clusters=2, random_state=0).fit(views)))
    >>> page.title, page.lead[0]
    ('2 groups among 60 samples', 'The 60 samples fall into 2 groups of 30 each.')
    """
    n_groups = sum(group.n_samples > 0 for group in summary.groups)
    sections = (
        data_section(summary),
        group_sections.group_section(summary),
        group_sections.map_section(summary),
        None if summary.batches is None else fit_sections.batch_section(summary.batches, summary.mixing),
        fit_sections.gap_section(summary),
        fit_sections.agreement_section(summary),
        fit_sections.settings_section(summary),
        fit_sections.convergence_section(summary),
        fit_sections.recovery_section(summary),
        fit_sections.doubt_section(summary),
        fit_sections.repeat_section(summary),
    )
    footer = f"Made by gapview {summary.gapview_version} with {summary.method}."
    if summary.sample_ids is None:
        footer += " Sample ids are left out."
    heading = title or f"{counted(n_groups, 'group')} among {counted(summary.n_samples, 'sample')}"
    return Page(heading, _answer(summary), tuple(filter(None, sections)), footer)


def _answer(summary: Summary) -> tuple[str, ...]:
    """Return sentences about the groups, their structure, confidence, missing views, and batches."""
    sizes = sorted(group.n_samples for group in summary.groups if group.n_samples)
    samples = counted(summary.n_samples, "sample")
    if len(sizes) == 1:
        first = f"All {samples} are in one group."
    else:
        range_of = f"{sizes[0]:,} each" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
        first = f"The {samples} fall into {len(sizes)} groups of {range_of}."
    n_doubtful = sum(group.n_doubtful for group in summary.groups)
    some = f"{n_doubtful:,} of them ({percent(n_doubtful / summary.n_samples)}) have"
    doubt = f"{some if n_doubtful else 'None of them has'} a confidence below {DOUBTFUL:g}"
    if summary.doubt is not None and not summary.is_calibrated:
        doubt = "The confidence of the samples does not support the groups, since it takes them as given"
    gaps, views = summary.gaps, spelled(len(summary.views))
    if len(summary.views) == 1:
        missing = "there is one view"
    elif len(gaps.patterns) == 1 and summary.n_complete:
        missing = f"no sample lacks any of the {views} views"
    else:
        lacking = summary.n_samples - summary.n_complete
        some_of = "at least one of the" if len(summary.views) > 2 else "one of the"
        missing = f"{lacking:,} ({percent(lacking / summary.n_samples)}) lack {some_of} {views} views"
    tested = [test for test in (summary.batches, gaps.tested) if test is not None]
    last = f"{doubt}; {missing}." if len(sizes) > 1 else f"{missing[:1].upper()}{missing[1:]}."
    return first, *_structure(summary, len(sizes)), last, *(test.sentence for test in tested)


def _structure(summary: Summary, n_groups: int) -> list[str]:
    """Return sentences on whether the groups can be distinguished from data without groups."""
    found = summary.assessment
    small = [] if (text := small_groups(summary.labels)) is None or n_groups == 1 else [text]
    if found is None or math.isnan(found.p_value):
        return small
    if n_groups == 1:
        best = "the best division into several cannot be distinguished from divisions of data without groups"
        return [f"One group was chosen because {best} (p = {found.p_value:.2g}, parametric bootstrap)."]
    advice = [] if found.has_structure else ["Do not interpret the groups without other evidence."]
    return [" ".join([*found.sentences()[:3], *advice]), *small]


def write_clustering_report(
    model: Any,
    path: Any,
    *,
    covariates: Any = None,
    no_ids: bool = False,
    title: str | None = None,
    run: Mapping[str, Any] | None = None,
    survival: Any = None,
    adjust: Any = (),
    assess: bool = True,
) -> Path:
    """Write the report on a clustering to one HTML file.

    The file has no references to other files or to the network. It stays below 3 MB; of more than 20,000 samples, the
    map shows a subset, and states this. The same model gives the same file. Contents: the result in a sentence; what
    the values of the views look like; the groups and their features; a map of the samples; which samples lack which
    views, and whether missing views are associated with the groups; agreement of the views; choice of the settings;
    convergence; recovery of hidden views; samples of low confidence; how to repeat the fit.

    Parameters
    ----------
    model : fitted GRMF or BridgedGRMF
        The model.
    path : str or path
        The file. One that is there is replaced, once the new one is complete.
    covariates : pandas or polars frame, optional
        Covariates of the samples, one row for each: sample ids in the index, or in a column. Numbers and
        ordered categories (stages, grades, ordered categoricals of pandas) are compared between groups by
        Kruskal-Wallis, other categories by chi-square, times with events by log-rank; p-values are corrected for the
        number of columns (Holm).
    no_ids : bool, default=False
        Leave out every sample id, for reports that are passed on. Names of views, features and covariates are kept, and
        so are the values of categories, except for columns that hold ids.
    title : str, optional
        Heading of the page.
    run : dict, optional
        Facts about the run, for the section on how to repeat it: ``"command"`` is shown as a command line, all others
        as names and values.
    survival : pair of str, or list of pairs, optional
        Columns of ``covariates`` that hold times and whether the event was observed (1) or not (0). By default pairs
        are detected by name, such as ``OS.time`` and ``OS``, or ``days`` and ``event``; an empty list disables this.
    adjust : str or list of str, optional
        Columns of ``covariates`` for which hazard ratios of the groups are adjusted, such as ``["age", "stage"]``
        (Cox regression; needs ``gapview[survival]``).
    assess : bool, default=True
        Test whether the groups can be distinguished from data without groups (:meth:`gapview.BridgedGRMF.assess`, with
        the seed 0), unless the model has an ``assessment_``. It costs up to 40 fits with ``selection="fixed"``, and
        calibrates the confidence of the samples.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputTypeError
        If the model is of another kind, or the covariates are no frame.
    NotFittedError
        If the model is not fitted.
    InputError
        If the covariates have a row for none of the samples, or several for one.
    DataFileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.report import write_clustering_report
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> model = BridgedGRMF(n_clusters=2, random_state=0).fit(views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_clustering_report(model, pathlib.Path(folder) / "report.html", title="Two groups")
    ...     "<h1>Two groups</h1>" in file.read_text(encoding="utf-8")
    True
    """
    check_flag("no_ids", no_ids)
    if title is not None and not isinstance(title, str):
        raise ParameterTypeError(f"title must be text or None; got {title!r}.")
    file = check_path(path, "path must be the path of a file")
    check_flag("assess", assess)
    is_fitted = isinstance(model, LatentSpaceMixin) and hasattr(model, "labels_")
    if assess and is_fitted and not hasattr(model, "assessment_"):
        model.assess(random_state=0)
    summary = summarise(model, covariates=covariates, survival=survival, adjust=adjust, no_ids=no_ids, run=run)
    for most_shown in _MOST_SHOWN:
        if most_shown < min(MOST_SHOWN, summary.n_samples):
            summary = replace(summary, sample_map=summarise_map(model, summary.gaps.codes, most_shown))
        # Ids from files of an unknown encoding may hold lone surrogates
        content = render(clustering_page(summary, title)).encode("utf-8", "replace")
        if len(content) < _MOST_BYTES:
            break
    write_whole(file, content)
    return file
