"""Clusters of processes on this machine, views in blocks, and where figures are written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from gapview.datasets import load_views, paired_split
from gapview.errors import MissingExtraError
from gapview.utils.types import Array
from gapview.views import Views

__all__ = [
    "as_blocks",
    "cluster_of",
    "data_argument",
    "data_set",
    "made_blocks",
    "output_option",
    "timed",
    "untied",
    "write",
]

output_option = click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder for the figures."
)
data_argument = click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@contextmanager
def cluster_of(n_workers: int, memory_limit: str = "4GB", *, stealing: bool = True) -> Iterator[Any]:
    """Start workers in processes of their own, each with one thread; yield their client."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtraError("distributed", "dask", "Measuring fits on a cluster") from None
    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": 50}
    with (
        dask.config.set({"distributed.scheduler.work-stealing": stealing}),
        LocalCluster(n_workers=n_workers, memory_limit=memory_limit, **settings) as cluster,
        Client(cluster) as client,
    ):
        yield client


def data_set(path: Path) -> tuple[Views, int]:
    """Read a data set of two views, hide one view of half of the samples; return views and number of groups."""
    data = load_views(path)
    views = paired_split(Views(list(data.views.matrices[:2])), 0.5, random_state=0)
    return views, len(np.unique(np.asarray(data.target)))


def untied(views: Views) -> Views:
    """Add noise of a millionth of the spread of each view, so that no two distances are equal."""
    source = np.random.RandomState(0)
    return Views(
        [
            _with_gaps(matrix.astype(np.float64) + 1e-6 * matrix.std() * source.normal(size=matrix.shape), views, k)
            for k, matrix in enumerate(views.matrices)
        ]
    )


def _with_gaps(matrix: Array, views: Views, k: int) -> Array:
    """Return one row per sample, NaN where it lacks the view."""
    array = np.full((views.n_samples, matrix.shape[1]), np.nan, dtype=matrix.dtype)
    array[views.rows(k)] = matrix
    return array


def as_blocks(views: Views, shares: Sequence[float]) -> list[Any]:
    """Return views as Dask arrays with rows of NaN, divided at these shares of the samples."""
    import dask.array as da

    edges = [0, *(int(share * views.n_samples) for share in shares), views.n_samples]
    blocks = []
    for k, matrix in enumerate(views.matrices):
        blocks.append(da.from_array(_with_gaps(matrix, views, k), chunks=(tuple(np.diff(edges).tolist()), -1)))
    return blocks


def made_blocks(n_samples: int, widths: Sequence[int], n_clusters: int, block: int) -> list[Any]:
    """Make views on the workers, block by block; of several views, most samples lack one."""
    import dask.array as da
    from dask import delayed

    sizes = [min(block, n_samples - begin) for begin in range(0, n_samples, block)]
    arrays: list[list[Any]] = [[] for _ in widths]
    for number, size in enumerate(sizes):
        made = delayed(_made, pure=True)(size, tuple(widths), n_clusters, number)
        for k, width in enumerate(widths):
            arrays[k].append(da.from_delayed(made[k], (size, width), dtype=np.float32))
    return [da.concatenate(own) for own in arrays]


def _made(n_samples: int, widths: Sequence[int], n_clusters: int, number: int) -> list[Array]:
    """Generate one block: groups and views are those of all blocks, the samples its own."""
    space = np.random.RandomState(0)
    centers = 6 * np.linalg.qr(space.normal(size=(20, n_clusters)))[0].T
    maps = [space.normal(size=(20, width)) / np.sqrt(20) for width in widths]
    own = np.random.RandomState(1 + number)
    hidden = centers[own.randint(n_clusters, size=n_samples)] + own.normal(size=(n_samples, 20))
    arrays = [(hidden @ linear + 0.5 * own.normal(size=(n_samples, linear.shape[1]))) for linear in maps]
    lacking = own.randint(-1, len(widths), size=n_samples)  # the view that is missing, or −1; of one view, none is
    for k, array in enumerate(arrays if len(widths) > 1 else []):
        array[lacking == k] = np.nan
    return [array.astype(np.float32) for array in arrays]


@contextmanager
def timed(record: dict[str, Any]) -> Iterator[None]:
    """Store the elapsed seconds in a record."""
    begin = time.perf_counter()
    yield
    record["seconds"] = round(time.perf_counter() - begin, 1)


def write(output: Path, name: str, record: dict[str, Any]) -> None:
    """Append one figure to a file, and print it."""
    output.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record)
    with open(output / f"{name}.jsonl", "a", encoding="utf-8") as file:
        file.write(line + "\n")
    click.echo(f"{name} {line}")
