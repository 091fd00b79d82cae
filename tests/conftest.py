"""Fixtures shared by all tests: recorded figures, real data sets, small made problems."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from gapview.datasets import Dataset, load_digits_views, load_views

# One profile for every property: no deadline, since the machines are noisy; derandomised, so that a red run can be
# repeated.
settings.register_profile(
    "gapview",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("gapview")


def _folder(variable: str, file: str) -> Path:
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} is not set: {file} is needed")
    path = Path(folder) / file
    if not path.is_file():
        pytest.skip(f"{variable} has no {file}")
    return path


@pytest.fixture
def golden() -> Callable[[str], dict[str, np.ndarray]]:
    """Load a file of figures recorded from the authors' programs."""

    def load(file: str) -> dict[str, np.ndarray]:
        with np.load(_folder("GAPVIEW_GOLDEN", file), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}

    return load


@pytest.fixture(scope="session")
def dataset() -> Callable[[str], Dataset]:
    """Load a real data set by its name."""

    def load(name: str) -> Dataset:
        return load_views(_folder("GAPVIEW_DATA", f"{name}.npz"))

    return load


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
    monkeypatch.setattr("gapview.commands.demo.load_digits_views", lambda: few)
    return few
