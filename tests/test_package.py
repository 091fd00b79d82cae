"""What the archives hold, what the package asks for, and the page on reliability."""

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OF_PYTHON = set(sys.stdlib_module_names) | {"gapview", "__future__"}
MODULES = {"scikit-learn": "sklearn", "faiss-cpu": "faiss"}
needs_sources = pytest.mark.skipif(not (ROOT / "src").is_dir(), reason="the sources are not here")


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    pytest.importorskip("hatchling", reason="builds the archives")
    folder = tmp_path_factory.mktemp("archives")
    code = """
import sys
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
for builder in (WheelBuilder, SdistBuilder):
    print(next(builder(sys.argv[1]).build(directory=sys.argv[2], versions=["standard"])))
"""
    command = [sys.executable, "-c", code, str(ROOT), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [Path(line) for line in done.stdout.split("\n")[:2]]


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import check_package

    return check_package


@needs_sources
def test_archives_hold_what_they_should_and_nothing_else(archives, tools):
    wheel, sdist = archives
    assert tools.wrong_in_wheel(wheel) == []
    assert tools.wrong_in_sdist(sdist) == []


@needs_sources
def test_what_an_archive_lacks_or_has_too_much_is_seen(archives, tools, tmp_path):
    wheel, sdist = archives
    changed = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(changed, "w") as after:
        for name in before.namelist():
            if name != "gapview/py.typed":
                after.writestr(name, before.read(name))
        after.writestr("tests/test_grmf.py", "")
    assert tools.wrong_in_wheel(changed) == [
        f"{wheel.name} lacks gapview/py.typed",
        f"{wheel.name} holds tests/test_grmf.py, which it should not",
    ]
    with tarfile.open(tmp_path / sdist.name, "w:gz") as archive:
        archive.add(ROOT / "README.md", f"{tools.NAME}/.venv/README.md")
    assert any(line.endswith("holds .venv/README.md, which it should not")
               for line in tools.wrong_in_sdist(tmp_path / sdist.name))  # fmt: skip


def test_regression_folders_of_the_sdist_are_those_at_the_root():
    """A folder ``tests`` anywhere, of another package even, was packed as well."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert all(pattern.startswith("/") for pattern in build["targets"]["sdist"]["include"])


def test_the_picture_of_the_layers_shows_the_imports_of_today(monkeypatch):
    pytest.importorskip("grimp")
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import draw_layers

    drawn, found = draw_layers.drawn_imports(ROOT / "docs" / "images" / "layers.svg"), draw_layers.imports()
    assert drawn == found, "Run make layers: the packages import each other otherwise than docs/images/layers.svg shows"


def names_of(requirements):
    return {re.match(r"[\w.-]+", one)[0] for one in requirements}


def test_every_dependency_has_a_lowest_version():
    every = [*PROJECT["dependencies"], *chain.from_iterable(PROJECT["optional-dependencies"].values())]
    assert [one for one in every if ">=" not in one and not one.startswith("gapview[")] == []


def test_all_that_is_imported_is_asked_for():
    """At the top of a module: the core. Inside functions: some extra."""
    extras = names_of(chain.from_iterable(PROJECT["optional-dependencies"].values()))
    declared = {MODULES.get(name, name.replace("-", "_")) for name in names_of(PROJECT["dependencies"]) | extras}
    import gapview

    unknown = set()
    for path in Path(gapview.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            unknown |= {name.split(".")[0] for name in names} - OF_PYTHON - declared
    assert unknown == set()


def test_constraints_name_versions_within_the_bounds_and_no_addresses():
    packaging = pytest.importorskip("packaging.requirements")
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert "@" not in text
    lines = [packaging.Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
    assert all(len(line.specifier) == 1 and str(line.specifier).startswith("==") for line in lines)
    pinned = {line.name.lower().replace("_", "-"): str(line.specifier)[2:] for line in lines}
    extras = PROJECT["optional-dependencies"]
    for one in [*PROJECT["dependencies"], *extras["tables"], *extras["report"], *extras["test"]]:
        asked = packaging.Requirement(one)
        assert asked.specifier.contains(pinned[asked.name.lower()]), one
