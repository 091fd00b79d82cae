"""Write the tables of results/dask.md from the measured figures, between the marks in the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from gapview.errors import DataFileError
from gapview.utils.storage import write_whole

from .cost import planned

__all__ = ["document", "with_tables"]

Records = list[dict[str, Any]]


@click.command()
@click.argument("page", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--figures", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True, help="Their folder."
)
def document(page: Path, figures: Path) -> None:
    """Rewrite the tables of a page from the figures in a folder."""
    write_whole(page, with_tables(page.read_text(encoding="utf-8"), figures).encode())


def with_tables(text: str, figures: Path) -> str:
    """Return a page with the tables between its marks rewritten.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gapview_lab.cluster.document import with_tables
    >>> with_tables("A page without marks.", Path("figures"))
    'A page without marks.'
    """

    def table(mark: re.Match[str]) -> str:
        name = mark.group(1)
        if name not in _TABLES:
            raise DataFileError(f"There is no table {name!r} for this page, but {', '.join(sorted(_TABLES))}.")
        keys, columns = _TABLES[name]
        lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        for record in _latest(figures / f"{name}.jsonl", keys):
            lines.append("| " + " | ".join(str(show(record)) for show in columns.values()) + " |")
        return f"<!-- {name} -->\n\n" + "\n".join(lines) + "\n\n<!-- end -->"

    return re.sub(r"<!-- (\w+) -->.*?<!-- end -->", table, text, flags=re.DOTALL)


def _latest(file: Path, keys: Sequence[str]) -> Records:
    """Read figures; of several with the same keys the last is returned, at the position of the first."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataFileError(
            f"The figures {str(file)!r} cannot be read: {error.strerror}. Measure them first."
        ) from None
    found: dict[Any, dict[str, Any]] = {}
    for line in lines:
        record = json.loads(line)
        found[tuple(json.dumps(record.get(key)) for key in keys)] = record
    return list(found.values())


def _of(name: str) -> Callable[[dict[str, Any]], str]:
    def show(record: dict[str, Any]) -> str:
        value = record[name]
        if isinstance(value, float) and value and abs(value) < 1e-3:
            return f"{value:.0e}"
        return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)

    return show


def _method(record: dict[str, Any]) -> str:
    return f"`{record['method']}`" + (f", bridge `{record['bridge']}`" if "bridge" in record else "")


def _moment(record: dict[str, Any]) -> str:
    return str(record["phase"]).lower() + (f", after {record['iteration']}" if record["iteration"] else "")


def _beside_plan(name: str, unit: float = 1.0) -> Callable[[dict[str, Any]], str]:
    def show(record: dict[str, Any]) -> str:
        expected = getattr(planned(record), {"bytes": "bytes_moved", "memory": "worker_memory"}.get(name, name))
        return f"{record[name] / unit:,.0f}, {expected / unit:,.0f} ({expected / record[name]:.2f})"

    return show


def _bound(record: dict[str, Any]) -> str:
    return f"{3 * record['share_mb'] + record['constant_mb']:,}"


_TABLES: dict[str, tuple[tuple[str, ...], dict[str, Callable[[dict[str, Any]], str]]]] = {
    "same": (
        ("data", "method", "bridge", "workers"),
        {
            "data": _of("data"),
            "method": _method,
            "workers": _of("workers"),
            "adjusted Rand index": _of("adjusted_rand"),
            "objective off by": _of("objective_off_by"),
        },
    ),
    "recall": (
        ("data", "view", "points", "features"),
        {
            "data": lambda record: (
                record["data"] + (f", view {record['view'] + 1}" if record["data"] != "made" else "")
            ),
            "samples": _of("points"),
            "features": _of("features"),
            "recall": _of("recall"),
            "cells visited": lambda record: f"{record['probes']} of {record['cells']}",
            "seconds": _of("seconds"),
        },
    ),
    "traffic": (
        ("samples", "workers", "stealing"),
        {
            "samples": _of("samples"),
            "workers": _of("workers"),
            "bytes between workers in an iteration": _of("bytes"),
            "formula": _of("formula"),
            "share": _of("share"),
        },
    ),
    "tasks": (
        ("blocks", "workers"),
        {
            "blocks": _of("blocks"),
            "before the iterations": _of("before_iterations"),
            "in an iteration": _of("per_iteration"),
            "remembered after 9, 19, 29, 39 iterations": lambda record: ", ".join(
                f"{n:,}" for n in record["remembered"]
            ),
            "seconds": _of("seconds"),
        },
    ),
    "memory": (
        ("method", "bridge", "samples", "widths", "workers", "limit"),
        {
            "method": _method,
            "samples": _of("samples"),
            "features": lambda record: " + ".join(map(str, record["widths"])),
            "workers": _of("workers"),
            "limit of a worker": _of("limit"),
            "share of the data, MB": _of("share_mb"),
            "idle, MB": _of("idle_mb"),
            "peak, MB": _of("peak_mb"),
            "beyond idle, in shares": _of("peak_less_idle_by_share"),
            "3 × share + 400 MB": _bound,
        },
    ),
    "cost": (
        ("method", "samples", "workers", "blocks"),
        {
            "method": lambda record: f"`{record['method']}`",
            "samples": _of("samples"),
            "features": lambda record: " + ".join(map(str, record["widths"])),
            "workers": _of("workers"),
            "blocks": _of("blocks"),
            "tasks": _beside_plan("tasks"),
            "MB between workers": _beside_plan("bytes", 1e6),
            "peak memory of a worker, MB": _beside_plan("memory", 1e6),
        },
    ),
    "faults": (
        ("data", "phase", "iteration", "checkpoint"),
        {
            "killed while": _moment,
            "checkpoint": lambda record: "yes" if record["checkpoint"] else "no",
            "adjusted Rand index": _of("adjusted_rand"),
            "objective off by": _of("objective_off_by"),
            "seconds": _of("seconds"),
        },
    ),
    "client": (
        ("data",),
        {
            "data": _of("data"),
            "killed before the end": lambda record: "yes" if record["killed_before_the_end"] else "no",
            "first iteration afterwards": _of("first_iteration_after"),
            "adjusted Rand index": _of("adjusted_rand"),
        },
    ),
}
