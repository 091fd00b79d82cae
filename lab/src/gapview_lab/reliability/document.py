"""``document``: write results/reliability.md from the results of the other commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gapview.errors import DataFileError, GapviewError
from gapview.utils.storage import write_whole

__all__ = ["document", "write_document"]

_PROMISE = """\
# Reliability

What is tested, and what was found:

* **Numbers.** Every combination of views, gaps and settings gives a valid result or a `GapviewError`. A valid result
  has orthonormal bases, finite values, an objective that never rises and one label per sample; `recover` leaves
  present values unchanged. An error states what was expected, what came and what to do.
* **Faults.** A fit with `checkpoint=` that is killed resumes from the checkpoint and gives the same model, bit by bit.
  A file is written completely or not at all.
* **Files.** A damaged or forged file gives a `GapviewError`, within limits on time and memory, and nothing in it is
  executed.
* **Load.** Fits leave no memory, threads, open files or temporary files behind. Fits that run at the same time give the
  same results as fits that run alone, and share the cores.
* **Package.** Wheel and sdist contain the right files, and work where they are installed.

`make test` runs a small part of these tests. This page is written from the results of the commands below.
"""


def write_document(results: Path, path: Path) -> str:
    """Write the page from the results in a folder; parts that were not run are marked.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gapview_lab.reliability.document import write_document
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = write_document(Path(folder), Path(folder) / "reliability.md")
    >>> "Not run yet" in text
    True
    """
    if not results.is_dir():
        raise DataFileError(f"'{results}' is no folder. Give the one that the other commands have written to.")
    parts = [_PROMISE]
    for name, (title, command, tell) in _SECTIONS.items():
        parts.append(f"## {title}\n\n```sh\n{command}\n```\n")
        file = results / f"{name}.json"
        parts.append(tell(_read(file)) if file.exists() else "Not run yet.\n")
    defects = results / "defects.markdown"
    if defects.exists():
        parts.append(defects.read_text(encoding="utf-8"))
    text = "\n".join(parts)
    write_whole(path, text.encode())
    return text


def _read(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    try:
        if file.stem == "kill":  # a line for every kill
            return [json.loads(line) for line in text.splitlines()]
        return json.loads(text)
    except ValueError:
        raise DataFileError(f"'{file}' is damaged. Run the command that writes it again.") from None


def _table(head: str, rows: list[list[str]]) -> str:
    names = head.split(", ")
    lines = [names, ["---"] + ["---:"] * (len(names) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _tell_numbers(found: Any) -> str:
    rows = [
        [name, f"{one['cases']:,}", f"{one['results']:,}", f"{sum(one['refused'].values()):,}",
         f"{sum(one['defects'].values()):,}"]
        for name, one in found["estimators"].items()
    ]  # fmt: skip
    return (
        f"{found['cases']:,} generated problems: 1 to hundreds of samples, 1 to 8 views, any pattern of gaps, scales "
        f"up to 1e±150, all types of numbers and settings. {found['results']:,} gave a valid result, "
        f"{found['refused']:,} were refused with a `GapviewError`, and {_none_or(found['defects'])} gave anything "
        f"else. {_by_what(found)}\n\n" + _table("method, problems, results, refused, defects", rows)
    )


def _tell_fuzz(found: Any) -> str:
    rows = [
        [name, f"{one['inputs']:,}", f"{one['accepted']:,}", f"{sum(one['refused'].values()):,}",
         f"{sum(one['contained'].values()):,}", f"{sum(one['defects'].values()):,}", f"{one['slowest']:.2f}"]
        for name, one in found["targets"].items()
    ]  # fmt: skip
    return (
        f"{found['inputs']:,} inputs, made by damaging valid files; checksums are recomputed where a file has any. "
        f"{found['accepted']:,} could still be read, {found['refused']:,} were refused with a "
        f"`GapviewError`, "
        f"and {found['contained']:,} ended only the separate process in which such files are read (contained). "
        f"{_none_or(found['defects']).capitalize()} did anything else: crash, hang, run code, or write where it should "
        f"not. {_by_what(found)}\n\n" + _table("reader, inputs, read, refused, contained, defects, slowest in s", rows)
    )


def _tell_kill(found: Any) -> str:
    rows = []
    for name in dict.fromkeys(one["estimator"] for one in found):
        own = [one for one in found if one["estimator"] == name and not one["had_ended"]]
        resumed, damaged = sum(one["n_parts"] > 0 for one in own), sum(one["n_damaged"] for one in own)
        same = sum(one["same"] for one in own)
        rows.append([name, str(len(own)), str(resumed), str(damaged), str(same)])
    killed = sum(not one["had_ended"] for one in found)
    lost = sum(not one["same"] or one["n_damaged"] > 0 for one in found)
    return (
        f"{killed} fits were killed (SIGKILL) at random moments, and restarted with the same checkpoint. "
        f"{_none_or(lost).capitalize()} lost anything: the models are compared bit by bit with that of an undisturbed "
        "fit.\n\n" + _table("method, killed, with a checkpoint, damaged files, same model", rows)
    )


def _tell_mistakes(found: Any) -> str:
    rows = [
        [group, f"{sum(one.values()):,}", *(f"{count:,}" for count in one.values())]
        for group, one in found["groups"].items()
    ]
    rate = found["false_alarms"] / max(1, found["unchanged"])
    return (
        f"{found['cases']:,} real tables with one of {found['mutations']} mistakes were given to gapview as files, "
        f"pandas and polars frames, AnnData and Dask dataframes, and the result was compared with the true samples and "
        f"values. {_none_or(found['outcomes']['silent']).capitalize()} gave a wrong join, orientation or value without "
        f"an error or a warning, and {_none_or(found['outcomes']['foreign'])} an error that is no `GapviewError`. Of "
        f"{found['unchanged']:,} tables without a mistake, {_none_or(found['false_alarms'])} ({rate:.1%}) gave an "
        f"error or a warning. {_by_what(found)}\n\n"
        + _table("mistakes in, tables, read correctly, warned, refused, silently wrong, other errors", rows)
    )


def _tell_load(found: Any) -> str:
    row = found["in_a_row"]
    text = (
        f"{row['fits']} fits in one process, after {row['warm_up']} that do not count, each with `predict`, `recover`, "
        f"`save` and `load`: memory grew by {row['kilobytes_per_fit']:.1f} kB per fit (at most "
        f"{row['most_kilobytes_per_fit']:.0f} are allowed), threads went from {row['threads'][0]} to "
        f"{row['threads'][1]}, open files from {row['open_files'][0]} to {row['open_files'][1]}, and "
        f"{row['temporary_files']} "
        f"temporary files were left. {row['same']} times the results were the same.\n\n"
    )
    rows = [
        [one["kind"], str(one["fits"]), str(one["same"]), f"{one['most_busy']} of {one['allowed_busy']}",
         "yes" if one["limits_lifted"] and one["filters_kept"] else "no", f"{one['seconds']:.0f}",
         f"{one['seconds_alone']:.0f}"]
        for one in found["at_once"]
    ]  # fmt: skip
    head = "at once in, fits, same as alone, threads busy, limits lifted, s, s one after the other"
    return (
        text
        + _table(head, rows)
        + f"\nThreads busy: the largest number of threads that could run at the same time, and the allowed number. "
        f"Fits in threads may use as many as there are fits or cores ({found['at_once'][0]['cores']}), whichever is "
        "larger, and the main thread. Of fits in processes, each process is counted by itself; in a pool it uses one "
        f"thread unless `OMP_NUM_THREADS` is set. {_by_what(found)}\n"
    )


def _tell_package(found: Any) -> str:
    rows = [
        [f"{one['python']}, {one['archive']}", "lowest allowed" if one["lowest"] else "newest",
         one["versions"]["numpy"], one["versions"]["scikit-learn"], str(one.get("passed", 0)),
         str(one.get("skipped", 0))]
        for one in found["runs"]
    ]  # fmt: skip
    which = "all tests" if found["all_tests"] else "the quick part of the tests"
    return (
        f"The wheel holds {found['files_in_wheel']} files: the package, its licence and its description, and nothing "
        f"else; the sdist also holds tests and documents. Each was installed into fresh environments, where the demo "
        f"and "
        f"{which} ran against what was installed, with the extras `tables` and `report`; the lowest versions of "
        "other extras were not tested. With the lowest versions one test is skipped, because NumPy before 2.3 rounds "
        "its last digit differently.\n\n"
        + _table("Python and archive, versions, numpy, scikit-learn, passed, skipped", rows)
    )


def _none_or(count: int) -> str:
    return f"{count:,}" if count else "none"


def _by_what(found: Any) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items() if name != "gapview")
    return f"gapview {found['versions']['gapview']} with {versions}."


_RUN = "gapview-lab reliability"
_SECTIONS: dict[str, tuple[str, str, Callable[[Any], str]]] = {
    "numbers": ("Numbers", f"{_RUN} numbers --cases 10000 -o results/reliability", _tell_numbers),
    "fuzz": ("Untrusted files", f"{_RUN} fuzz --inputs 100000 -o results/reliability", _tell_fuzz),
    "mistakes": ("Mistakes in tables", f"{_RUN} mistakes -o results/reliability/mistakes.csv", _tell_mistakes),
    "kill": ("Killed fits", f"{_RUN} kill --moments 50 -o results/reliability", _tell_kill),
    "load": ("Load", f"{_RUN} load --fits 200 -o results/reliability", _tell_load),
    "package": ("The package", "make check-package OUT=results/reliability", _tell_package),
}


@click.command(epilog="Example: gapview-lab reliability document results/reliability results/reliability.md")
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("page", type=click.Path(dir_okay=False, path_type=Path))
def document(results: Path, page: Path) -> None:
    """Write PAGE from the results of the other commands in the folder RESULTS."""
    try:
        write_document(results, page)
    except GapviewError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Written: {page}")
