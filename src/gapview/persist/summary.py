"""What a model file says of itself in its header, without its arrays."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ._hints import fits, hints_of
from .registry import METHODS, method_name

_LONGEST = 200  # characters of a setting that is shown


@dataclass(frozen=True)
class ViewSummary:
    """One view of the training data."""

    name: str  # as the training data call it
    n_samples: int  # that have the view
    n_features: int  # its features


@dataclass(frozen=True)
class ModelSummary:
    """What is in a model file; made by :func:`describe`.

    Attributes
    ----------
    method : str
        Name of the class.
    settings : dict
        The parameters. Numbers, text and None as they are; anything else as a text that tells what it is.
    n_samples, n_complete : int
        Samples in training, and how many of them had all views.
    views : tuple of ViewSummary
        ``name``, ``n_samples`` and ``n_features`` of every view.
    group_sizes : tuple of int
        How many samples are in group 0, 1, …
    gapview_version : str
        The gapview that has written the file.
    format_version : int
        The format of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview import describe
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.gapview"
    ...     GRMF(n_clusters=2, random_state=0).fit(views).save(path)
    ...     found = describe(path)
    >>> found.method, found.settings["n_clusters"], found.n_samples, len(found.group_sizes)
    ('GRMF', 2, 60, 2)
    """

    method: str
    settings: dict[str, Any]
    n_samples: int
    n_complete: int
    views: tuple[ViewSummary, ...]
    group_sizes: tuple[int, ...]
    gapview_version: str
    format_version: int

    def __str__(self) -> str:
        sizes = ", ".join(str(size) for size in self.group_sizes)
        lines = [
            f"{self.method} of {self.n_samples} samples, {self.n_complete} of them complete, "
            f"in {len(self.group_sizes)} groups of {sizes}",
            *(f"  view {view.name!r}: {view.n_samples} × {view.n_features}" for view in self.views),
            *(f"  {name} = {value!r}" for name, value in self.settings.items()),
            f"  written by gapview {self.gapview_version}, format {self.format_version}",
        ]
        return "\n".join(lines)


def summarise(model: Any, gapview_version: str, format_version: int) -> ModelSummary:
    """Sum up a fitted model."""
    views = model.views_
    described = zip(views.names, views.mask.sum(axis=0).tolist(), views.n_features, strict=True)
    return ModelSummary(
        method_name(model),
        {name: shown_setting(value) for name, value in model.get_params(deep=False).items()},
        views.n_samples,
        int(views.mask.all(axis=1).sum()),
        tuple(ViewSummary(*facts) for facts in described),
        tuple(np.bincount(model.labels_).tolist()),
        gapview_version,
        format_version,
    )


def shown_setting(value: Any) -> Any:
    """Return a setting as a value that JSON and a reader can take."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if isinstance(value, list | tuple | dict):
        text = repr(value)
        return text if len(text) <= _LONGEST and "array" not in text else f"{type(value).__name__} of {len(value)}"
    return repr(value) if isinstance(value, float) else type(value).__name__


def to_header(summary: ModelSummary) -> dict[str, Any]:
    """Turn a summary into what stands in a header."""
    return asdict(summary)


def from_header(header: dict[str, Any], format_version: int) -> ModelSummary:
    """Read the summary from a header."""
    content = dict(header["model"])
    content["views"] = tuple(ViewSummary(**view) for view in content["views"])
    content["group_sizes"] = tuple(content["group_sizes"])
    summary = ModelSummary(**content)
    parts = [(summary, ModelSummary), *((view, ViewSummary) for view in summary.views)]
    for part, kind in parts:
        if not all(fits(getattr(part, name), hint) for name, hint in hints_of(kind).items()):
            raise ValueError("its header does not describe a model")
    if summary.format_version != format_version:
        raise ValueError("its header is of another format than the file")
    if summary.method not in METHODS:
        raise ValueError(f"it holds a model of the unknown class {summary.method!r}; a newer gapview may know it")
    return summary
