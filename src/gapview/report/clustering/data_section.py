"""The section on the values of the views."""

from __future__ import annotations

from ...utils.messages import counted, percent, shorten
from ...views import Finding, ViewDescription
from ..page import Items, Section, Table, Text, simple_table
from .summary import Summary, rounded

_MOST_FINDINGS = 40
_MOST_VIEWS = 100


def data_section(summary: Summary) -> Section:
    """Return the section on what the values of the views look like, with findings and proposals."""
    found = summary.description.findings
    doubtful = [_item(finding) for finding in found if finding.is_warning]
    others = [_item(finding) for finding in found if not finding.is_warning]
    n_more = max(0, len(others) - _MOST_FINDINGS)
    return Section.of(
        "What the data look like",
        Text("Check these first: they can make the groups meaningless.") if doubtful else None,
        Items(tuple(doubtful)) if doubtful else None,
        _table(summary.description.views),
        Text("No values were changed. Remarks:") if others else None,
        Items(tuple(others[:_MOST_FINDINGS])) if others else None,
        Text(f"{counted(n_more, 'more remark')} not listed.", quiet=True) if n_more else None,
    )


def _item(finding: Finding) -> tuple[str, str]:
    return shorten(finding.view, 40), finding.sentences


def _table(views: tuple[ViewDescription, ...]) -> Table:
    columns = ("view", "samples", "features", "values", "smallest", "median", "largest", "zeros")
    rows = [
        (
            shorten(view.name, 30),
            f"{view.n_samples:,}",
            f"{view.n_features:,}",
            view.kind,
            *map(rounded, (view.low, view.median, view.high)),
            percent(view.share_zeros),
        )
        for view in views[:_MOST_VIEWS]
    ]
    n_more = len(views) - len(rows)
    notes = (f"{counted(n_more, 'more view')} not listed.",) if n_more else ()
    return simple_table("Values of the views", columns, rows, notes)
