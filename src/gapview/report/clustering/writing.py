"""The page of the report on a clustering, and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import ParameterTypeError
from ...estimators.latent import LatentSpaceMixin
from ...persist.model_file import check_path
from ...utils.messages import check_flag, counted
from ...utils.storage import write_whole
from ..page import Page, render
from . import fit_sections, group_sections, view_sections
from .covariate_section import covariate_section
from .data_section import data_section
from .findings import findings
from .map_section import map_section
from .samples import MOST_MAPPED, MOST_SHOWN
from .summary import Summary, summarise

_MOST_BYTES = 6_000_000  # can be sent by e-mail
_MOST_SHOWN = (MOST_MAPPED, MOST_SHOWN, 8000, 2000)  # samples on the map; fewer if long names make the file too large


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
    first = map_section(summary)
    sections = {
        "Groups": replace(first, blocks=(*first.blocks, group_sections.size_table(summary))),
        "Features": group_sections.feature_section(summary) if len(summary.groups) > 1 else None,
        "Covariates": None if summary.covariates is None else covariate_section(summary.covariates, summary),
        "Batches": None if summary.batches is None else view_sections.batch_section(summary.batches, summary.mixing),
        "Missing views": view_sections.gap_section(summary),
        "Agreement": view_sections.agreement_section(summary),
        "Number of groups": fit_sections.count_section(summary),
        "Recovery": view_sections.recovery_section(summary),
        "Low confidence": fit_sections.doubt_section(summary),
        "Data": data_section(summary),
        "Repeat": fit_sections.repeat_section(summary),
        "Settings": fit_sections.fit_section(summary),
    }
    shown = tuple(replace(section, short=short) for short, section in sections.items() if section is not None)
    footer = f"Made by gapview {summary.gapview_version} with {summary.method}."
    if summary.sample_ids is None:
        footer += " Sample ids are left out."
    heading = title or f"{counted(n_groups, 'group')} among {counted(summary.n_samples, 'sample')}"
    return Page(heading, (_answer(summary),), shown, footer, (findings(summary),))


def _answer(summary: Summary) -> str:
    """Return the number and the sizes of the groups in a sentence."""
    sizes = sorted(group.n_samples for group in summary.groups if group.n_samples)
    samples = counted(summary.n_samples, "sample")
    if len(sizes) == 1:
        return f"All {samples} are in one group."
    range_of = f"{sizes[0]:,} each" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    return f"The {samples} fall into {len(sizes)} groups of {range_of}."


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

    The file has no references to other files or to the network. It stays below 6 MB; of more than 50,000 samples, the
    map shows a subset, and states this. The same model gives the same file. Contents: what was found and whether to
    believe it; a map of the samples, coloured by group, confidence, missing views, covariates or features, and the
    groups as cards; a heat map of the features that set them apart; covariates and survival; which samples lack which
    views, and whether missing views are associated with the groups; agreement of the views; the number of groups;
    recovery of hidden views; samples of low confidence; what the values of the views look like; how to repeat the fit;
    settings and convergence. Figures can be saved as PNG and SVG, tables as CSV.

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
        Leave out every sample id and the values of single samples, for reports that are passed on. Names of views,
        features and covariates are kept, and so are the values of categories, except for columns that hold ids.
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
        if most_shown < len(summary.sample_map.samples):
            summary = summary.with_map(model, most_shown)
        # Ids from files of an unknown encoding may hold lone surrogates
        content = render(clustering_page(summary, title)).encode("utf-8", "replace")
        if len(content) < _MOST_BYTES:
            break
    write_whole(file, content)
    return file
