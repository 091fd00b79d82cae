"""Draw the layers of the package and their imports, from the import graph.

    python tools/draw_layers.py docs/images/layers.svg

Rows and columns are the packages in the order of the layers in pyproject.toml. The same imports give the same file.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import grimp
import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "gapview"
GROUPS = {  # colour and members, with what each does
    "Use": (
        "#7b5ea7",
        {
            "commands": "the command line",
            "report": "the HTML report",
            "plots": "figures for notebooks",
            "scverse": "results in AnnData, MuData",
        },
    ),
    "Methods": (
        "#2f6db5",
        {
            "methods": "all methods by name",
            "baselines": "methods to compare with",
            "estimators": "GRMF, BridgedGRMF",
        },
    ),
    "Fit": (
        "#1b8a8f",
        {
            "choice": "settings without labels",
            "backends": "data on disk, on a cluster",
            "trust": "how far to trust a result",
            "persist": "model files, checkpoints",
        },
    ),
    "Model": (
        "#3f8f3f",
        {
            "refinement": "groups by discriminants",
            "mixture": "groups of any size",
            "clusters": "codes to labels",
            "factorization": "Algorithm 1",
            "graph": "k-NN graphs, imputation",
            "correction": "batch effects",
            "kinds": "counts, proteins, and others",
            "scaling": "scale views, and back",
        },
    ),
    "Data": (
        "#c0762c",
        {
            "datasets": "examples, hiding of views",
            "io": "files to views, and back",
            "views": "Views, checks of input",
        },
    ),
    "Base": (
        "#6d6d6d",
        {
            "compute": "NumPy, PyTorch, threads",
            "metrics": "scores against labels",
            "progress": "events and timing",
            "utils": "checks, text, storage",
            "errors": "errors and warnings",
        },
    ),
}
KEY = (
    "● the package of the row imports the package of the column. All dots lie on one side of the diagonal: each layer "
    "imports only lower ones."
)
TEXT, LINE = "#222222", "#d5d5d5"
ABOUT, LEFT = 3.5, 9.3  # where descriptions and the matrix begin, in rows
STYLE = {"svg.fonttype": "none", "svg.hashsalt": PACKAGE, "font.family": "sans-serif", "font.size": 9}


def layers(pairs: set[tuple[str, str]]) -> list[str]:
    """Return the packages from the highest layer to the lowest, as the contract in pyproject.toml lists them.

    Within a layer, packages that import others of the layer come first.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    names = []
    for line in contract["layers"]:
        layer = re.split(r"\s*[:|]\s*", line)
        names += sorted(layer, key=lambda name: -sum((name, other) in pairs for other in layer))
    return names


def imports() -> set[tuple[str, str]]:
    """Return the pairs of packages of which the first imports the second."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    pairs = {
        (module.split(".")[1], imported.split(".")[1])
        for module in graph.modules - {PACKAGE, f"{PACKAGE}.__main__"}
        for imported in graph.find_modules_directly_imported_by(module) - {PACKAGE}
    }
    return {(one, other) for one, other in pairs if one != other}


def drawn_imports(picture: Path) -> set[tuple[str, str]]:
    """Read the pairs that a picture shows."""
    return set(re.findall(r'id="import-(\w+)-(\w+)"', picture.read_text(encoding="utf-8")))


def draw(names: list[str], pairs: set[tuple[str, str]]) -> Figure:
    """Draw one row per package: its name, what it does, and a dot for each package that it imports."""
    described = {name: (group, colour, what) for group, (colour, members) in GROUPS.items()
                 for name, what in members.items()}  # fmt: skip
    if set(described) != set(names):
        raise SystemExit(
            f"GROUPS and the layers differ: {', '.join(sorted(set(described) ^ set(names)))}. Edit GROUPS."
        )
    n = len(names)
    figure = Figure(figsize=(10.8, 8.35), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.4, LEFT + n + 0.4), ylim=(n + 0.9, -3.3), aspect="equal")
    axes.axis("off")
    for i, name in enumerate(names):
        _, colour, what = described[name]
        axes.add_patch(Rectangle((0, i + 0.08), ABOUT - 0.15, 0.84, color=colour))
        axes.text(0.15, i + 0.52, name, color="white", va="center", weight="bold")
        axes.text(ABOUT, i + 0.52, what, color=TEXT, va="center", size=8)
        axes.text(LEFT + i + 0.5, -0.2, name, color=colour, rotation=60, ha="left", va="bottom", rotation_mode="anchor")
        axes.add_patch(Rectangle((LEFT + i, i), 1, 1, color=colour, alpha=0.85))
    for i in range(n + 1):
        axes.plot((LEFT, LEFT + n), (i, i), color=LINE, linewidth=0.6, zorder=0.5)
        axes.plot((LEFT + i, LEFT + i), (0, n), color=LINE, linewidth=0.6, zorder=0.5)
    for one, other in sorted(pairs):
        row, column = names.index(one), names.index(other)
        (dot,) = axes.plot(LEFT + column + 0.5, row + 0.5, "o", color=described[one][1], markersize=7)
        dot.set_gid(f"import-{one}-{other}")
    _draw_groups(axes, [described[name][:2] for name in names])
    axes.text(-1.2, n + 0.55, KEY, color=TEXT, va="center", size=8.5)
    return figure


def _draw_groups(axes: Any, groups: list[tuple[str, str]]) -> None:
    """Draw a labelled bar left of each run of packages of one group."""
    for group, colour in dict.fromkeys(groups):
        rows = [i for i, one in enumerate(groups) if one[0] == group]
        axes.add_patch(Rectangle((-0.35, rows[0] + 0.08), 0.16, len(rows) - 0.16, color=colour))
        middle = (rows[0] + rows[-1] + 1) / 2
        axes.text(-0.8, middle, group, color=colour, rotation=90, ha="center", va="center", weight="bold")


def main() -> None:
    """Read the command line and write the picture."""
    with mpl.rc_context(STYLE):
        pairs = imports()
        figure = draw(layers(pairs), pairs)
        figure.savefig(
            sys.argv[1], metadata={"Date": None, "Creator": None} if sys.argv[1].endswith(".svg") else None, dpi=110
        )


if __name__ == "__main__":
    main()
