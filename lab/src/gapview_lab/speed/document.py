"""One document of speed and size, from the folders that the two commands have written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapview import __version__
from gapview.errors import DataFileError
from gapview.report.page import Code, Page, Section, Text
from gapview.utils.storage import write_whole

from ..common.markdown import render_markdown
from ..common.run_file import RunFile
from .large import LargeStore, large_sections
from .results import FigureStore
from .scale import growths_of
from .scale_page import ends_lead, scale_lead, scale_sections
from .scale_runs import DONE, ScaleStore, ScaleTask
from .speed_page import speed_lead, speed_sections

__all__ = ["write_document"]

_SPEED, _SCALE = "gapview-lab speed --data-dir DATA -o SPEED", "gapview-lab scale -o SCALE"
_LARGE = "gapview-lab large BEFORE -o LARGE"
_DOCUMENT = "gapview-lab speed-page results/speed.md --speed SPEED --scale SCALE --large LARGE"
_READING = (
    "Times depend on the computer and its load. Each is compared with a reference measured in the same run, and the "
    "ratio carries over to other computers. Where a time is the best of several runs, the page states it: other load "
    "only makes runs slower."
)


def write_document(path: Path, speed: Path | None, scales: Sequence[Path], compared: Path | None = None) -> None:
    """Write the document; for parts that were not measured it shows the command.

    Parameters
    ----------
    path : Path
        The Markdown file.
    speed : Path or None
        Folder of ``gapview-lab speed``.
    scales : sequence of Path
        Folders of ``gapview-lab scale``, such as one for the processor and one for a GPU.
    compared : Path, optional
        Folder of ``gapview-lab large``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from gapview_lab.speed import write_document
    >>> with TemporaryDirectory() as folder:
    ...     write_document(Path(folder) / "speed.md", None, [])
    ...     (Path(folder) / "speed.md").read_text().splitlines()[0]
    '# Speed and size'
    """
    how = Section("How this was made", (Code("\n".join([_SPEED, _SCALE, _LARGE, _DOCUMENT])),))
    fast = _speed_section(speed) if speed is not None else _missing("Speed", _SPEED)
    large = [_scale_section(folder) for folder in scales] or [_missing("Size", _SCALE)]
    before = [_compared_section(compared)] if compared is not None else []
    page = Page("Speed and size", (_READING,), (how, fast, *before, *large))
    write_whole(path, render_markdown(page).encode())


def _missing(title: str, command: str) -> Any:

    return Section(title, (Text("Not measured yet:"), Code(command)))


def _speed_section(folder: Path) -> Any:

    run = _described(folder, "speed")
    store = FigureStore(folder / "measured.csv", __version__)
    tasks = [task for task in dict.fromkeys(one.task for one in store.records) if _is_of(task, run)]
    figures = store.of(tasks)
    texts = [Text(line) for line in speed_lead(figures, run)]
    return Section("Speed", (*texts, *speed_sections(figures, run, {})))


def _is_of(task: Any, run: dict[str, Any]) -> bool:
    return bool(task.computer == run["computer"] and task.size == run["size"])


def _scale_section(folder: Path) -> Any:

    run = _described(folder, "scale")
    found = ScaleStore(folder / "runs.csv", __version__, float("inf")).last()
    tasks = [ScaleTask(**task) for task in run["tasks"]]
    runs = [found[task] for task in tasks if task in found]
    growths = growths_of(runs)
    texts = [Text(line) for line in scale_lead(runs, growths)]
    sections = scale_sections(runs, growths, run, {})
    if any(one.status != DONE for one in runs):
        both_ends = sections[0], sections[-1]  # every size, and how to repeat it
        return Section("Who still runs at which size", (*map(Text, ends_lead(runs)), *both_ends))
    device = next((f" on {task.device}" for task in tasks if task.device), "")
    return Section(f"Size{device}", (*texts, *sections))


def _compared_section(folder: Path) -> Any:
    run = _described(folder, "large")
    return Section(
        f"Large data: this version and commit {run['before']}", large_sections(LargeStore(folder).records, run)
    )


def _described(folder: Path, kind: str) -> dict[str, Any]:
    run = RunFile(folder).old
    if not str(run.get("command", "")).startswith(f"gapview-lab {kind} "):
        raise DataFileError(
            f"{folder.name!r} holds no results of gapview-lab {kind}. Run it with -o, and give that folder."
        )
    return run
