"""Fixtures shared by the tests of the lab."""

from __future__ import annotations

from data_files import dataset

__all__ = ["dataset"]
