"""The conda recipe, the README and the pages on installing state what pyproject.toml does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OF_DEVELOPERS = {"browser", "docs", "test"}
RECIPE = ROOT / "conda" / "recipe" / "recipe.yaml"


def for_conda(requirement):
    """Return a requirement as conda writes it: without extras, a space before the versions."""
    name, versions = re.fullmatch(r"([\w.-]+)(?:\[[^\]]*\])?(.*)", requirement).groups()
    return f"{name} {versions}".strip()


@pytest.fixture
def recipe():
    if not RECIPE.is_file():
        pytest.skip("the recipe is in the repository only")
    return pytest.importorskip("yaml").safe_load(RECIPE.read_text(encoding="utf-8"))


def test_the_recipe_builds_this_version(recipe):
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    assert recipe["build"]["noarch"] == "python"
    commands = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands
    assert (RECIPE.parent / recipe["source"]["path"]).resolve() == ROOT


def test_the_recipe_needs_what_the_package_needs(recipe):
    python = f"python {PROJECT['requires-python']}"
    assert recipe["requirements"]["run"] == [python, *map(for_conda, PROJECT["dependencies"])]
    built_with = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert recipe["requirements"]["host"] == [python, "pip", *map(for_conda, built_with)]


def test_the_recipe_limits_the_packages_of_the_extras(recipe):
    names = re.fullmatch(r"gapview\[(.*)\]", EXTRAS["all"][0])[1].split(",")
    needed = {for_conda(one) for name in names for one in EXTRAS[name]} - set(map(for_conda, PROJECT["dependencies"]))
    assert recipe["requirements"]["run_constraints"] == sorted(needed)


def test_the_recipe_states_licence_and_purpose(recipe):
    about = recipe["about"]
    assert (about["license"], about["summary"]) == (PROJECT["license"], PROJECT["description"])
    assert [about["license_file"]] == PROJECT["license-files"]


def test_the_workflow_builds_the_recipe():
    workflow = ROOT / ".github" / "workflows" / "ci.yml"
    if not workflow.is_file():
        pytest.skip("the workflow is in the repository only")
    assert f"rattler-build build --recipe {RECIPE.parent.relative_to(ROOT).as_posix()}" in workflow.read_text()


def extras_of(page):
    """Return the rows of the table of extras of a page."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", (ROOT / page).read_text(encoding="utf-8"), flags=re.M)
    return [row for row in rows if row[0] in EXTRAS]


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_every_extra_is_listed_once(page):
    names = [name for name, _ in extras_of(page)]
    assert sorted(names) == sorted(set(EXTRAS) - OF_DEVELOPERS)
    assert extras_of(page) == extras_of("README.md")


def test_all_holds_the_extras_listed_before_it():
    names = [name for name, _ in extras_of("README.md")]
    inside = re.fullmatch(r"gapview\[(.*)\]", EXTRAS["all"][0])[1].split(",")
    assert sorted(names[: names.index("all")]) == sorted(inside)


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_pages_install_from_the_repository(page):
    """There is no release: a page that installs from an index would install nothing, or what somebody else uploaded."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "pip install '.[all]'" in text
    assert not re.search(r"pip install ['\"]?gapview", text)


def test_words_that_users_search_for_are_on_the_pages():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")).lower()
    for word in ("transpose", "batch effect", "umap", "excel", "seurat", "10x", "mosaic", "survival", "mofa"):
        assert word in text, word
