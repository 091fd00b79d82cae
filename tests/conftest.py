"""Fixtures shared by all tests: recorded figures, real data sets, small made problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data_files import dataset, golden
from gapview.datasets import Dataset, load_digits_views

__all__ = ["dataset", "golden"]


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    """Cluster the plain files of blood values and scans once, for all commands that take a model."""
    from awkward_files import clustered, made, write_plain  # which need pandas

    folder = tmp_path_factory.mktemp("trained")
    return clustered(folder / "out", *write_plain(folder, made()))


@pytest.fixture
def put(tmp_path) -> Callable[..., Path]:
    """Write a frame as a file of samples."""

    def write(name: str, frame: Any, **more: Any) -> Path:
        frame.to_csv(tmp_path / name, **more)
        return tmp_path / name

    return write


@pytest.fixture
def few_digits(monkeypatch) -> Dataset:
    """Demonstrate with some of the digits: what is written does not depend on how many there are."""
    data = load_digits_views()
    few = replace(data, views=data.views[:400], target=data.target[:400])
    monkeypatch.setattr("gapview.commands.cluster.load_digits_views", lambda: few)
    return few
