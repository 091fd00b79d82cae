"""Fixtures for the tests of the package and of the lab: recorded figures, real data sets, settings of hypothesis."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from gapview.datasets import Dataset, load_views

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
