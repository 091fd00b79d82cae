"""Fixtures of all tests of backends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from places import Place, local_client, make_place


@pytest.fixture(scope="module")
def in_process_client() -> Iterator[Any]:
    """Run one client for the tests of a module, with its workers in this process; it is not the default client."""
    with local_client() as client:
        yield client


@pytest.fixture(scope="module")
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Place]:
    """Return a function that returns the backend of a name; it skips the test if a package is not installed."""
    made: dict[str, Place] = {}

    def place(name: str) -> Place:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name] = make_place(name, folder, lambda: request.getfixturevalue("in_process_client"))
        return made[name]

    return place


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests on workers as slow, but for one fit of each estimator: other tests run the same tasks in blocks."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if params.get("where") == "cluster" and params.get("fit") not in (
            "GRMF-two",
            "BridgedGRMF-two",
            "BridgedGRMF-both",
        ):
            item.add_marker(pytest.mark.slow)
