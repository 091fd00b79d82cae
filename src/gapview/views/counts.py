"""What is known of samples in views wherever they are: names and numbers."""

from __future__ import annotations

from typing import Protocol

__all__ = ["SampleCounts"]


class SampleCounts(Protocol):
    """What a fit knows of its training data, wherever they are; :class:`gapview.Views` has more."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""

    @property
    def n_views(self) -> int:
        """Number of views."""

    @property
    def n_samples(self) -> int:
        """Number of samples, complete or not."""

    @property
    def n_present(self) -> tuple[int, ...]:
        """Number of samples that have every view."""

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of features of every view."""
