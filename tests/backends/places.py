"""One data set in the form of every backend: in memory, on disk, as Dask arrays, on a cluster, as tensors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from gapview.errors import GapviewError, GapviewWarning

__all__ = ["NAMES", "OTHERS", "Place", "make_place"]


class Place:
    """The memory: arrays are given as they are. Subclasses convert them for another backend."""

    name = "memory"

    def __init__(self, folder: Path, client: Any = None) -> None:
        self.folder, self.client, self._n_written = folder, client, 0
        self._budgets: dict[tuple[str, str, str], str] = {}

    def active(self) -> AbstractContextManager[Any]:
        """Return a context in which fits and results are computed."""
        return nullcontext()

    def give(self, data: Any) -> Any:
        """Return a list or a dict of views in the form of the backend; None stays None."""
        if isinstance(data, dict):
            return {name: self._convert_or_none(view) for name, view in data.items()}
        return [self._convert_or_none(view) for view in data]

    def _convert_or_none(self, view: Any) -> Any:
        return None if view is None else self.convert(view)

    def convert(self, view: Any) -> Any:
        """Return one view in the form of the backend."""
        return view

    def prepared(self, model: Any, data: Any, mask: Any = None) -> Any:
        """Return a copy of a model with the parameters that select the backend."""
        return clone(model)

    def fit(self, model: Any, data: Any, mask: Any = None, **options: Any) -> Any:
        """Return a copy of a model, fitted to data by the backend."""
        return self.refit(self.prepared(model, data, mask), data, mask, **options)

    def refit(self, model: Any, data: Any, mask: Any = None, **options: Any) -> Any:
        """Fit a prepared model by the backend, and return it."""
        with self.active():
            return model.fit(self.give(data), mask=mask, **options)

    def call(self, model: Any, name: str, data: Any, /, **options: Any) -> Any:
        """Return the result of a method for new samples in the form of the backend, as NumPy arrays."""
        with self.active():
            return self.host(getattr(model, name)(self.give(data), **options))

    def host(self, value: Any) -> Any:
        """Return a result, or lists, tuples and dicts of results, as NumPy arrays."""
        with self.active():
            if isinstance(value, dict):
                return {name: self.host(item) for name, item in value.items()}
            if isinstance(value, list | tuple):
                return [self.host(item) for item in value]
            if sparse.issparse(value):
                return value.toarray()
            return np.asarray(value.compute() if hasattr(value, "compute") else value)

    def whole(self, model: Any) -> Any:
        """Return an ordinary model with the training samples."""
        return model


class Disk(Place):
    """Memory maps of ``.npy`` files, within the least budget: views do not stay in memory."""

    name = "disk"

    def convert(self, view: Any) -> Any:
        """Save a view, and open it as a memory map."""
        if not isinstance(view, np.ndarray):
            return view
        self._n_written += 1
        path = self.folder / f"{self._n_written}.npy"
        np.save(path, view)
        return np.load(path, mmap_mode="r")

    def prepared(self, model: Any, data: Any, mask: Any = None) -> Any:
        """Return a copy of a model with the least budget for data of this shape."""
        model = clone(model)
        if model.memory_budget is not None:
            return model
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.set_params(memory_budget=self._least_budget(model, data, mask))

    def _least_budget(self, model: Any, data: Any, mask: Any) -> str:
        """Return the budget that the error of a fit with a budget of 1 byte asks for.

        The fit is to complete data of the same shape. If it is refused for another reason, a plain model is fitted.
        """
        plain = _like(data) if all(_is_numeric(view) for view in _views(data)) else data
        for probe, shown in ((model, mask), (type(model)(model.n_clusters), None), (type(model)(3), None)):
            kinds = [(np.shape(view), getattr(view, "dtype", None)) for view in _views(plain)]
            key = type(probe).__name__, str(probe.get_params()), str((kinds, shown is None))
            if key not in self._budgets:
                self._budgets[key] = self._asked_for(probe, plain, shown)
            if self._budgets[key]:
                return self._budgets[key]
        return "12 MB"

    def _asked_for(self, probe: Any, data: Any, mask: Any) -> str:
        try:
            clone(probe).set_params(memory_budget=1).fit(self.give(data), mask=mask)
        except GapviewError as refused:
            found = re.search(r"this needs (\d+ MB), you gave 1 bytes", str(refused))
            return found[1] if found else ""
        raise AssertionError("A fit within 1 byte was not refused.")

    def refit(self, model: Any, data: Any, mask: Any = None, **options: Any) -> Any:
        """Fit a prepared model from files, and check that its views have not been read into memory."""
        fitted = super().refit(model, data, mask, **options)
        assert not any(isinstance(matrix, np.ndarray) for matrix in fitted.views_.matrices), "the budget is too large"
        return fitted


class Blocks(Place):
    """Dask arrays, whose tasks run in this process: there is no client."""

    name = "dask"
    shares: tuple[float, ...] = (0.2, 0.6)  # of the samples, at which the first view is cut into blocks

    def convert(self, view: Any) -> Any:
        """Cut a view into blocks; the second view is cut at other rows and columns than the first."""
        import dask.array as da

        if sparse.issparse(view):
            return da.from_array(np.ones(view.shape), chunks=(50, -1)).map_blocks(
                sparse.csr_array, meta=sparse.csr_array((0, 0))
            )
        if not isinstance(view, np.ndarray):
            import dask.dataframe as dd

            return dd.from_pandas(view, npartitions=3)
        if view.ndim != 2:
            return da.from_array(view)
        self._n_written += 1
        edges = [0, *(int(share * len(view)) for share in self.shares), len(view)]
        rows = tuple(np.diff(edges).tolist()) if self._n_written % 2 else max(1, len(view) // 4)
        return da.from_array(view, chunks=(rows, -1 if self._n_written % 2 else 70))

    def give(self, data: Any) -> Any:
        """Return a list or a dict of Dask arrays."""
        self._n_written = 0
        return super().give(data)

    def whole(self, model: Any) -> Any:
        """Return the reference model: it has all training samples if there are few."""
        return model.reference_


class Cluster(Blocks):
    """Dask arrays, whose tasks run on the workers of a client."""

    name = "cluster"
    shares = (0.2,)  # every task takes some milliseconds

    def active(self) -> AbstractContextManager[Any]:
        """Return a context in which the client is the current one."""
        return self.client.as_current()  # type: ignore[no-any-return]


class Device(Place):
    """Arrays of a fit that tensors compute."""

    name = "device"

    def prepared(self, model: Any, data: Any, mask: Any = None) -> Any:
        """Return a copy of a model with a device."""
        return clone(model) if model.device is not None else clone(model).set_params(device="cpu")


class Tensors(Place):
    """Tensors as views."""

    name = "tensors"

    def convert(self, view: Any) -> Any:
        """Return a tensor."""
        import torch

        return torch.as_tensor(view) if isinstance(view, np.ndarray) and view.dtype.kind == "f" else view


KINDS: dict[str, Callable[..., Place]] = {kind.name: kind for kind in (Place, Disk, Blocks, Cluster, Device, Tensors)}
NAMES = list(KINDS)
OTHERS = [name for name in NAMES if name != "memory"]


def make_place(name: str, folder: Path, client: Any) -> Place:
    """Return a backend, or skip the test if a package that it needs is not installed."""
    for needed in {"dask": ["dask", "distributed"], "cluster": ["distributed"]}.get(name, []):
        pytest.importorskip(needed)
    if name in ("device", "tensors"):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    return KINDS[name](folder, client() if name == "cluster" else None)


@contextmanager
def local_client() -> Iterator[Any]:
    """Run a client of two workers in this process that is not the default client."""
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(silence_logs=50, **settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _views(data: Any) -> list[Any]:
    return list(data.values() if isinstance(data, dict) else data)


def _is_numeric(view: Any) -> bool:
    return isinstance(view, np.ndarray) and view.dtype.kind == "f" and view.ndim == 2


def _like(data: Any) -> Any:
    """Return complete normal values of the same shapes, all with the rows of the first view."""
    n_rows, rng = len(_views(data)[0]), np.random.RandomState(0)

    def drawn(view: Any) -> Any:
        return rng.normal(size=(n_rows, view.shape[1])).astype(view.dtype)

    if isinstance(data, dict):
        return {name: drawn(view) for name, view in data.items()}
    return [drawn(view) for view in data]


def warned(records: Any) -> list[str]:
    """Return the texts of the warnings of gapview, sorted."""
    return sorted(str(record.message) for record in records if issubclass(record.category, GapviewWarning))
