"""Build the wheel and the sdist, check their files, and test what they install, in fresh environments.

    python tools/check_package.py [-o FOLDER] [--python PYTHON]... [--all-tests]

By default with the oldest and the newest python3.x on the path, and on the oldest also with the lowest versions that
pyproject.toml allows. FOLDER gets package.json; entries of other Pythons are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from environments import OLDEST, PROJECT, ROOT, Environment, lowest_bounds, pythons_found

EXTRAS = ("tables", "report")
NAME = f"gapview-{PROJECT['version']}"
SOURCES = ("src", "tests", "tools", "examples", "docs")
FILES = (
    *("README.md", "LICENSE", "CITATION.cff", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("Makefile", "conftest.py", "constraints.txt", "pyproject.toml"),
)
QUICK = (
    *("commands/test_cli.py", "factorization/test_factorization.py", "io/test_files.py", "estimators/test_grmf.py"),
    *("test_metrics.py", "persist/test_model_files.py", "test_parts.py", "report/test_report_page.py"),
    "views/test_views.py",
)

# Newer versions warn of old ones beside them, and NumPy before 2.3 rounds arrays with gaps between their values
# otherwise than the same values without
OLD = (
    *("-W", "ignore::DeprecationWarning"),
    *("--deselect", "tests/persist/test_model_files.py::test_the_kind_of_container_is_remembered[None-gaps]"),
)


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it, as installers do."""
    tools = Environment(sys.executable, folder / "tools")
    tools.install("build", "hatchling")
    subprocess.run([tools.python, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def source_files(*folders: str) -> set[str]:
    """Return the files of the source tree that belong into an archive: all but hidden ones and caches."""
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not any(_is_left_out(part) for part in path.relative_to(ROOT).parts)
    }


def _is_left_out(part: str) -> bool:
    """Return whether a file or a folder is hidden, a cache, or built."""
    return part.startswith(".") or part == "__pycache__" or part.endswith((".pyc", ".egg-info"))


def wrong_in_wheel(wheel: Path) -> list[str]:
    """Return what the wheel lacks and what it should not hold: it has the package, its licence and its metadata."""
    held = set(zipfile.ZipFile(wheel).namelist())
    about = {f"{NAME}.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    expected = {name.removeprefix("src/") for name in source_files("src/gapview")}
    return _differences(held, expected | about | {f"{NAME}.dist-info/licenses/LICENSE"}, wheel.name)


def wrong_in_sdist(sdist: Path) -> list[str]:
    """Return what the sdist lacks and what it should not hold: it has sources, tests and documents, and no lab."""
    with tarfile.open(sdist) as archive:
        held = {member.name.removeprefix(f"{NAME}/") for member in archive.getmembers() if member.isfile()}
    return _differences(held - {"PKG-INFO", ".gitignore"}, source_files(*SOURCES) | set(FILES), sdist.name)


def _differences(held: set[str], expected: set[str], name: str) -> list[str]:
    lacking = [f"{name} lacks {one}" for one in sorted(expected - held)]
    return lacking + [f"{name} holds {one}, which it should not" for one in sorted(held - expected)]


def run_tests(environment: Environment, sdist: Path, folder: Path, chosen: Sequence[str]) -> dict[str, int]:
    """Run the demo and the tests of the sdist against the installed package: the sources of the sdist are removed."""
    shutil.unpack_archive(sdist, folder, filter="data")
    tree = folder / NAME
    shutil.rmtree(tree / "src")
    surroundings = os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    surroundings.pop("PYTHONPATH", None)
    where = subprocess.run([environment.python, "-c", "import gapview; print(gapview.__file__)"],
                           check=True, capture_output=True, text=True, cwd=folder, env=surroundings).stdout  # fmt: skip
    if "site-packages" not in where:
        raise SystemExit(f"The installed package would not be tested, but {where.strip()}.")
    subprocess.run([environment.python, "-m", "gapview", "demo"], check=True, stdout=subprocess.DEVNULL, cwd=folder,
                   env=surroundings)  # fmt: skip
    done = subprocess.run([environment.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
                          capture_output=True, text=True, cwd=tree, env=surroundings)  # fmt: skip
    shutil.rmtree(tree)
    if done.returncode:
        raise SystemExit(f"Python {environment.version}: tests fail.\n{done.stdout[-6000:]}{done.stderr[-2000:]}")
    return {word: int(number) for number, word in re.findall(r"(\d+) (passed|skipped)", done.stdout)}


def cases(pythons: list[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield each archive on each Python, and the wheel with the lowest allowed versions on the oldest Python."""
    for python in pythons:
        yield python, "wheel", False
        yield python, "sdist", False
    if pythons[0].endswith(OLDEST):  # they are older than the newer Pythons
        yield pythons[0], "wheel", True


def store(output: Path, content: dict[str, Any]) -> None:
    """Write package.json; entries of other Pythons are kept, so that they can be tested on other machines."""
    output.mkdir(parents=True, exist_ok=True)
    file = output / "package.json"
    earlier = json.loads(file.read_text(encoding="utf-8"))["runs"] if file.exists() else []
    runs = {(one["python"], one["archive"], one["lowest"]): one for one in [*earlier, *content["runs"]]}
    content = content | {"runs": [runs[key] for key in sorted(runs)]}
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def check(pythons: list[str], *, all_tests: bool) -> dict[str, Any]:
    """Build, check and test; return the results."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = build(folder)
        wrong = wrong_in_wheel(wheel) + wrong_in_sdist(sdist)
        if wrong:
            raise SystemExit("\n".join(wrong))
        print(f"{wheel.name} and {sdist.name} hold what they should")
        found = []
        for number, (python, archive, lowest) in enumerate(cases(pythons)):
            environment = Environment(python, folder / f"venv-{number}")
            pins = lowest_bounds(EXTRAS) if lowest else []
            path = wheel if archive == "wheel" else sdist
            environment.install(f"{path}[{','.join(EXTRAS)}]", *pins, "pytest", "pytest-xdist", "hypothesis")
            chosen = ["tests"] if all_tests else [f"tests/{name}" for name in QUICK]
            counts = run_tests(environment, sdist, folder / f"tests-{number}", [*(OLD if lowest else ()), *chosen])
            versions = environment.frozen()
            packages = [re.match(r"[\w.-]+", one)[0] for one in PROJECT["dependencies"]]
            kept = {one: versions[one] for one in packages if one in versions}
            found.append({"python": environment.version, "archive": archive, "lowest": lowest} | counts
                         | {"versions": kept})  # fmt: skip
            print(f"Python {environment.version}, {archive}{', lowest versions' if lowest else ''}: demo runs, "
                  f"{counts.get('passed', 0)} tests pass, {counts.get('skipped', 0)} skipped", flush=True)  # fmt: skip
            shutil.rmtree(folder / f"venv-{number}")
        return {"files_in_wheel": len(zipfile.ZipFile(wheel).namelist()), "all_tests": all_tests, "runs": found}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="folder for package.json")
    parser.add_argument("--python", action="append", help="a Python to test with (repeatable)")
    parser.add_argument("--all-tests", action="store_true", help="run all tests, not only the quick ones")
    asked = parser.parse_args()
    pythons = asked.python or pythons_found()
    if not pythons:
        raise SystemExit("There is no python3.11 or newer on the path.")
    content = check(pythons if asked.python else sorted({pythons[0], pythons[-1]}, key=pythons.index),
                    all_tests=asked.all_tests)  # fmt: skip
    if asked.output:
        store(asked.output, content)


if __name__ == "__main__":
    main()
