"""Write constraints.txt: the versions that a fresh installation of gapview and gapview-lab gets, per Python.

    python tools/constraints.py python3.11 python3.14

Each line is for one version of Python; other versions install what pyproject.toml allows.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from environments import ROOT, Environment

EXTRAS = "all,test,docs,browser"
HEAD = """\
# The versions gapview was tested with, written by `make constraints`. `make demo` and `make test` install these where
# there are lines for the Python at hand; `make CONSTRAINTS= test` takes the newest that pyproject.toml allows instead.
"""


def main() -> None:
    """Install all extras into a fresh environment of each Python, and write the installed versions."""
    lines = []
    for python in sys.argv[1:] or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(python, Path(folder) / "venv")
            environment.install("--editable", f"{ROOT}[{EXTRAS}]", "--editable", f"{ROOT / 'lab'}")
            short = ".".join(environment.version.split(".")[:2])
            lines += [
                f'{name}=={version}; python_version == "{short}"'
                for name, version in sorted(environment.frozen().items(), key=lambda pair: pair[0].lower())
            ]
    (ROOT / "constraints.txt").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
