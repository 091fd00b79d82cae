"""Skip the examples of modules whose optional package is not installed; close the figures of examples and tests."""

import sys
from importlib.util import find_spec

import pytest

collect_ignore_glob = [
    *([] if find_spec("torch") else [f"*/{name}.py" for name in ("torch_search", "tensor_trials", "device_meter")]),
    *([] if find_spec("sknetwork") else ["src/gapview/graph/communities.py"]),
]


@pytest.fixture(autouse=True)
def close_figures():
    """Close all figures after a test: matplotlib warns of many open ones."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
