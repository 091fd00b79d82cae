"""Fresh environments in a temporary folder, for the tools beside this file."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLDEST = "3.11"


class Environment:
    """A virtual environment of one Python."""

    def __init__(self, python: str, folder: Path) -> None:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.python = str(folder / "bin" / "python")
        self.version = self.read("-c", "import platform; print(platform.python_version())").strip()

    def install(self, *what: str, constraints: Path | None = None) -> None:
        """Install packages; raise SystemExit with the messages of pip if this fails."""
        limits = ["-c", str(constraints)] if constraints else []
        done = self._pip("install", "--quiet", *limits, *what)
        if done.returncode:
            raise SystemExit(f"Python {self.version}: pip install {' '.join(what)} failed.\n{done.stderr[-4000:]}")

    def _pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.python, "-m", "pip", "--disable-pip-version-check", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def frozen(self) -> dict[str, str]:
        """Return the versions of all installed packages but our own."""
        lines = self._pip("freeze", "--exclude", "gapview", "--exclude", "gapview-lab").stdout.splitlines()
        return dict(line.split("==") for line in lines if "==" in line)

    def read(self, *arguments: str) -> str:
        """Run Python and return its output."""
        return subprocess.run([self.python, *arguments], check=True, capture_output=True, text=True).stdout


def pythons_found() -> list[str]:
    """Return the supported Pythons on the path, the oldest first."""
    found = []
    first = int(OLDEST.removeprefix("3."))
    for minor in range(first, first + 30):
        path = shutil.which(f"python3.{minor}")
        if path and not subprocess.run([path, "-c", "import venv"], capture_output=True).returncode:
            found.append(path)
    return found


def lowest_bounds(extras: Sequence[str]) -> list[str]:
    """Return the lowest versions that pyproject.toml allows for the core and these extras."""
    needed = list(PROJECT["dependencies"])
    for extra in extras:
        needed += PROJECT["optional-dependencies"][extra]
    bounds = {re.match(r"[\w.-]+", one)[0]: re.search(r">=([\w.]+)", one) for one in needed}
    return [f"{name}=={bound[1]}" for name, bound in bounds.items() if bound and name != "gapview"]
