"""Count what a fit asks of a device, on a computer without one: kernels, waits, copies and memory, by phase.

Tensors on the processor stand in for those on a device. Every operation of PyTorch is counted as one kernel. A wait is
a point at which the host needs a value from the device: a number, a copy, or a result whose size depends on the data.
On a device, each kernel costs some microseconds to launch, and each wait leaves the device idle.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gapview import clusters, correction, refinement
from gapview.backends import memory, tensor_shares
from gapview.choice import candidates, selection
from gapview.compute import arrays, engine, kmeans, tensor_graph
from gapview.compute.arrays import is_tensor
from gapview.graph import bridges, donors, imputation
from gapview.graph.neighbors import cells as neighbor_cells
from gapview.graph.neighbors import torch_search
from gapview.progress import timing
from gapview.views import cells, containers, measures

from .phases import CLOSED, OTHER

__all__ = ["DeviceMeter", "metered"]

_SHAPED_BY_VALUES = frozenset(
    ("nonzero", "_unique2", "unique_dim", "unique_consecutive", "masked_select", "bincount", "_coalesce", "equal")
)
_CHECKED = frozenset(("_linalg_eigh", "_linalg_svd", "linalg_qr", "_linalg_solve_ex", "linalg_cholesky_ex"))
_VIEWS = (
    frozenset(  # no kernels
        ("view", "values", "unsqueeze", "unfold", "unbind", "transpose", "t", "squeeze", "split_with_sizes", "split")
    )
    | frozenset(
        ("slice", "select", "permute", "numpy_T", "lift_fresh", "expand", "diagonal", "detach", "crow_indices", "alias")
    )
    | frozenset(
        ("col_indices", "as_strided", "_values", "_unsafe_view", "_reshape_alias", "_local_scalar_dense", "_indices")
    )
)
_TO_HOST = ("cpu", "numpy", "tolist", "__array__")
# Sizes that do not depend on the number of samples, on a GPU
_SIZES = (
    (arrays, "_ROWS_AT_A_TIME"),
    (arrays, "_BYTES_ON_DEVICE"),
    (arrays, "FEW_ROWS"),
    (correction, "FEW_ROWS"),
    (memory, "FEW_ROWS"),
    (bridges, "FEW_ROWS"),
    (donors, "FEW_ROWS"),
    (engine, "_DEVICE_BYTES"),
    (kmeans, "_N_DISTANCES"),
    (kmeans, "_N_SEEDED"),
    (tensor_graph, "_VALUES_AT_A_TIME"),
    (tensor_shares, "_VALUES_AT_A_TIME"),
    (bridges, "_BYTES_AT_A_TIME"),
    (donors, "_N_PAIRS_TENSOR"),
    (imputation, "_MOST_VALUES"),
    (neighbor_cells, "_N_VALUES_GPU"),
    (torch_search, "_N_FOUND_GPU"),
    (cells, "LARGE"),
    (measures, "_DEVICE_CELLS"),
)


class DeviceMeter(TorchDispatchMode):  # type: ignore[misc]
    """Counts by phase, and the most bytes that tensors have held at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.uploads: Counter[str] = Counter()  # copies from the host
        self.by_name: Counter[tuple[str, str]] = Counter()  # kernels and waits by phase and name
        self.peaks: dict[str, int] = {}
        self.held = 0
        self._sizes: dict[int, int] = {}
        self._stack = [OTHER]

    @property
    def phase(self) -> str:
        """The innermost phase that is running."""
        return self._stack[-1]

    @property
    def peak(self) -> int:
        """Most bytes held in any phase."""
        return max(self.peaks.values(), default=0)

    def listen(self, phase: str, begins: bool) -> None:
        """Switch to another phase; see :func:`gapview.progress.timing`."""
        if begins:
            self._stack.append(CLOSED if self.phase == CLOSED else phase)
            self._note()
        else:
            self._stack.pop()

    def wait(self, name: str) -> None:
        """Count a wait of the host for the device."""
        self.waits[self.phase] += 1
        self.by_name[self.phase, f"wait: {name}"] += 1

    def upload(self) -> None:
        """Count a copy from the host to the device."""
        self.uploads[self.phase] += 1

    def placed(self, arrays: list[Any]) -> list[Any]:
        """Return arrays as tensors that count as lying on the device."""
        tensors = [torch.from_numpy(array) for array in arrays]
        for tensor in tensors:
            self.hold(tensor)
        return tensors

    def hold(self, value: Any) -> None:
        """Count the bytes of a tensor until it is freed."""
        for part in _dense_parts(value):
            storage = part.untyped_storage()
            key = id(storage)
            if key not in self._sizes:
                self._sizes[key] = storage.nbytes()
                self.held += self._sizes[key]
                weakref.finalize(storage, self._free, key)
        self._note()

    def _free(self, key: int) -> None:
        self.held -= self._sizes.pop(key)

    def _note(self) -> None:
        self.peaks[self.phase] = max(self.peaks.get(self.phase, 0), self.held)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count an operation, do it, and count its results."""
        name = func.overloadpacket.__name__
        if name not in _VIEWS:
            self.kernels[self.phase] += 1
            self.by_name[self.phase, name] += 1
        if name == "_local_scalar_dense" or name in _SHAPED_BY_VALUES or name in _CHECKED or _is_masked(name, args):
            self.wait(name)
        if name == "repeat_interleave" and (kwargs or {}).get("output_size") is None:
            self.wait(name)
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves((args, kwargs, result)):
            if isinstance(value, torch.Tensor):
                self.hold(value)
        return result


def _is_masked(name: str, args: Any) -> bool:
    """Return whether rows are taken by a mask, whose number the host has to wait for."""
    if name not in ("index", "index_put", "index_put_", "_index_put_impl_"):
        return False
    return any(part is not None and part.dtype in (torch.bool, torch.uint8) for part in args[1])


def _dense_parts(tensor: Any) -> list[Any]:
    if tensor.layout == torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    return [tensor]


def _in_turn(work: Callable[[Any], Any], items: Sequence[Any]) -> Generator[Any, None, None]:
    yield from map(work, items)


@contextmanager
def metered(shrink: int = 1) -> Iterator[DeviceMeter]:
    """Meter the fits within, which treat tensors on the processor as if they were on a device.

    With ``shrink``, blocks of a fixed size are smaller by this factor: the share of memory that a fit needs is then
    that of so many times as many samples.
    """
    meter = DeviceMeter()
    with ExitStack() as stack:
        for module, name in _SIZES:
            stack.enter_context(patch.object(module, name, max(getattr(module, name) // shrink, 1)))
        stack.enter_context(patch.object(neighbor_cells, "_N_VALUES_TENSOR", neighbor_cells._N_VALUES_GPU))
        stack.enter_context(patch.object(torch_search, "_N_FOUND", torch_search._N_FOUND_GPU))
        for module in (candidates, selection, refinement):  # operations of other threads are not counted
            stack.enter_context(patch.object(module, "on_free_threads", _in_turn))
        for name in _TO_HOST:
            stack.enter_context(patch.object(torch.Tensor, name, _counted(meter, getattr(torch.Tensor, name), name)))
        stack.enter_context(patch.object(torch, "as_tensor", _counted_upload(meter, torch.as_tensor)))
        for module in (arrays, containers, clusters, measures, memory):
            stack.enter_context(patch.object(module, "is_on_device", is_tensor))
        stack.enter_context(timing(meter.listen))
        stack.enter_context(meter)
        yield meter


def _counted(meter: DeviceMeter, method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a method of tensors whose calls count as waits, but not those within."""
    inside: list[bool] = []

    def call(tensor: Any, *arguments: Any, **options: Any) -> Any:
        if not inside and name != "numpy":  # numpy() follows cpu(), which has waited
            meter.wait(name)
        inside.append(True)
        try:
            return method(tensor, *arguments, **options)
        finally:
            inside.pop()

    return call


def _counted_upload(meter: DeviceMeter, as_tensor: Callable[..., Any]) -> Callable[..., Any]:
    def call(data: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(data, np.ndarray | np.generic | list | int | float):
            meter.upload()
            return as_tensor(data, *arguments, **options).clone()  # NumPy and PyTorch would share memory
        return as_tensor(data, *arguments, **options)

    return call
