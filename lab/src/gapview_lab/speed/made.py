"""Generated data in files, so that the measured process does not hold more than a user's process."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gapview.datasets import make_views
from gapview.errors import DataFileError
from gapview.utils.storage import make_folder
from gapview.utils.types import Array

__all__ = ["N_CLUSTERS", "made_files", "read_made", "write_made"]

N_CLUSTERS = 10


@contextmanager
def made_files(folder: Path, n_samples: int, widths: Sequence[int], missing_rate: float) -> Iterator[None]:
    """Generate data in a process of its own, because this needs more memory than the data; remove them at the end."""
    make_folder(folder)
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            pool.submit(write_made, folder, n_samples, tuple(widths), missing_rate).result()
        yield
    except (BrokenProcessPool, MemoryError):
        raise DataFileError(
            f"Making {n_samples:,} samples took more memory than there is. Give smaller --sizes."
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_made(folder: Path, n_samples: int, widths: Sequence[int], missing_rate: float) -> None:
    """Write generated data: an array for each view, rows of NaN where a sample lacks it."""
    data = make_views(
        n_samples, widths, n_clusters=N_CLUSTERS, missing_rate=missing_rate, dtype="float32", random_state=0
    )
    try:
        np.save(folder / "target.npy", np.asarray(data.target))
        for k, matrix in enumerate(data.views.matrices):
            shape = (n_samples, matrix.shape[1])
            file = np.lib.format.open_memmap(folder / f"view_{k}.npy", "w+", dtype=matrix.dtype, shape=shape)
            file[:] = np.nan
            file[data.views.rows(k)] = matrix
            file.flush()
    except OSError as error:
        raise DataFileError(
            f"Cannot write made data to the folder of the results: {error.strerror}. Choose another with --output."
        ) from None


def read_made(folder: Path) -> tuple[list[Array], Array]:
    """Read generated data into memory: the views, and the true groups."""
    paths = sorted(folder.glob("view_*.npy"))
    return [np.load(path) for path in paths], np.load(folder / "target.npy")
