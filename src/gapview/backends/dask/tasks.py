"""Tasks on the user's cluster: one function over many blocks, sums in a tree, and exchange of rows between blocks.

With one task per pair of B blocks the scheduler would have B² tasks. Parts are therefore sent in two stages: those of
about √B senders for a group of receivers are collected in one task, which then has a part for each receiver. That takes
of the order of B √B tasks, and every part is sent twice.
"""

from __future__ import annotations

import math
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from operator import getitem
from typing import Any, TypeVar

import numpy as np
from dask.sizeof import sizeof
from scipy import sparse

from ...errors import MissingExtraError
from ...utils.types import Array

Kind = TypeVar("Kind", bound=type)

_N_TOGETHER = 8  # partial sums that one task adds up
_FEW = 16  # senders whose parts are sent to the receivers in one stage
_MOST_WAVES = 32
_LEAST_SIZE = 100  # bytes of any object


class Tasks:
    """Runs tasks on the cluster of a ``Client``, or in this process, one after the other, if there is no client.

    Results stay on the workers. The client has handles of them, which can be arguments of other tasks, alone or in a
    list. All results are computed from the user's collections by tasks that can be repeated, so that results lost with
    a worker are computed again.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client

    def map(self, name: str, function: Callable[..., Any], *lists: Sequence[Any], **common: Any) -> list[Any]:
        """Call a function once for each item of the lists; the dashboard shows the name."""
        if self.client is None:
            return [function(*items, **common) for items in zip(*lists, strict=True)]
        if not lists[0]:
            return []
        run = uuid.uuid4().hex
        keys = [f"gapview-{name}-{run}-{i}" for i in range(len(lists[0]))]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # arguments are small compared with the data
            return list(self.client.map(function, *map(list, lists), key=keys, **common))

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function once."""
        return self.map(name, function, *[[argument] for argument in arguments])[0]

    def broadcast(self, name: str, value: Any) -> Any:
        """Return a handle of a value, which is sent to the cluster once for all tasks that use it."""
        return value if self.client is None else self.submit(name, getitem, [value], 0)

    def gather(self, handles: Any) -> Any:
        """Return results to the client."""
        return handles if self.client is None else self.client.gather(handles)

    def collect(self, name: str, function: Callable[..., Any], *lists: Sequence[Any], **common: Any) -> list[Any]:
        """Call a function once for each item of the lists, and return the results to the client."""
        return self.gather(self.map(name, function, *lists, **common))  # type: ignore[no-any-return]

    def wait(self, handles: Sequence[Any]) -> None:
        """Wait for results; raise the error of a task that failed."""
        if self.client is not None:
            from distributed import wait

            wait(handles)
            for handle in handles:
                if handle.status == "error":
                    handle.result()

    def map_at(
        self,
        name: str,
        function: Callable[..., Any],
        workers: dict[Any, list[int]],
        *lists: Sequence[Any],
        **common: Any,
    ) -> list[Any]:
        """Do as :meth:`map` does, each item on its worker, or on any other if that worker is lost.

        Otherwise Dask runs a task on the least busy worker that holds one of its arguments.
        """
        if self.client is None:
            return self.map(name, function, *lists, **common)
        results: list[Any] = [None] * len(lists[0])
        for worker, items in workers.items():
            own = [[values[i] for i in items] for values in lists]
            where = {"workers": [worker], "allow_other_workers": True} if worker else {}
            for i, handle in zip(items, self.map(name, function, *own, **common, **where), strict=True):
                results[i] = handle
        return results

    def workers_of(self, handles: Sequence[Any]) -> dict[Any, list[int]]:
        """Return for every worker the numbers of the results that it holds."""
        if self.client is None:
            return {"": list(range(len(handles)))}
        holders = self.client.who_has(handles)
        of_workers: dict[Any, list[int]] = {}
        for i, handle in enumerate(handles):
            of_workers.setdefault(min(holders.get(handle.key) or ("",)), []).append(i)
        return of_workers

    def groups(self, handles: Sequence[Any]) -> list[list[int]]:
        """Return the numbers of results on the same worker, which can be added up without sending them."""
        return list(self.workers_of(handles).values())

    def reduce(self, name: str, combine: Callable[[Any], Any], parts: Sequence[Any], groups: Any = None) -> Any:
        """Combine parts in a tree, first within groups, then a few at a time; return a handle of the result."""
        groups = groups or _split(list(range(len(parts))), _N_TOGETHER)
        combined = self.map(name, combine, [[parts[i] for i in group] for group in groups])
        while len(combined) > 1:
            combined = self.map(name, combine, _split(combined, _N_TOGETHER))
        return combined[0]

    def total(self, name: str, combine: Callable[[Any], Any], parts: Sequence[Any], groups: Any = None) -> Any:
        """Combine parts as :meth:`reduce` does, and return the result to the client."""
        return self.gather(self.reduce(name, combine, parts, groups))

    def read(self, collections: Sequence[Any]) -> list[list[Any]]:
        """Start reading Dask collections; return a handle for each block of each collection."""
        delayed = [collection.to_delayed() for collection in collections]
        flat = [block for blocks in delayed for block in getattr(blocks, "ravel", lambda blocks=blocks: blocks)()]
        if self.client is None:
            import dask

            handles = list(dask.compute(*flat, scheduler="synchronous"))
        else:
            handles = self.client.compute(flat)
        blocks = iter(handles)
        return [[next(blocks) for _ in range(len(own))] for own in delayed]


def current_tasks() -> Tasks:
    """Return tasks on the user's current ``Client``, or in this process if there is none."""
    try:
        from distributed import default_client
    except ImportError:
        raise MissingExtraError("distributed", "dask", "Fitting on a Dask cluster") from None
    try:
        return Tasks(default_client())
    except ValueError:  # there is none
        return Tasks()


def register_size(kind: Kind) -> Kind:
    """Register a class with Dask, which decides by the size of objects what to move and what to keep in memory."""
    sizeof.register(kind)(size_of)
    return kind


def size_of(value: Any) -> int:
    """Return the bytes of all arrays of an object.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> from gapview.backends.dask.tasks import size_of
    >>> size_of(Views([np.zeros((1000, 8))])) > 64_000
    True
    """
    if hasattr(value, "nbytes"):
        return int(value.nbytes) + _LEAST_SIZE
    if sparse.issparse(value):
        held: Any = (value.data, value.indices, value.indptr)
    elif isinstance(value, list | tuple):
        held = value
    elif is_dataclass(value):
        held = [getattr(value, field.name) for field in fields(value)]
    else:
        held = (value if isinstance(value, dict) else getattr(value, "__dict__", {})).values()
    return _LEAST_SIZE + sum(size_of(item) for item in held)


# -- exchange between blocks -----------------------------------------------------------------------------------


def exchange_parts(tasks: Tasks, name: str, whole: list[Any], n_receivers: int) -> list[list[Any]]:
    """Collect parts by receiver.

    ``whole`` holds for every sender a handle of a list with a part for each receiver. Returns for every receiver
    handles of lists of parts; :func:`flatten` gives the parts in the order of the senders.
    """
    n_groups = 1 if len(whole) <= _FEW else math.ceil(math.sqrt(n_receivers))
    edges = np.linspace(0, n_receivers, n_groups + 1).astype(int).tolist()
    received = []
    for begin, end in pairwise(edges):
        bundles = whole
        if n_groups > 1:
            bundles = tasks.map(f"{name}-sort", getitem, whole, [slice(begin, end)] * len(whole))
        received += exchange_group(tasks, name, bundles, end - begin)
    return received


def exchange_group(tasks: Tasks, name: str, bundles: list[Any], n_receivers: int) -> list[list[Any]]:
    """Do the same for a few receivers: bundles of several senders are collected in one task."""
    places: list[Any] = [slice(place, place + 1) for place in range(n_receivers)]
    if len(bundles) > _FEW:
        chunks = _split(bundles, math.ceil(math.sqrt(len(bundles))))
        bundles, places = tasks.map(f"{name}-meet", _by_receiver, chunks), list(range(n_receivers))
    n_bundles = len(bundles)
    parts = tasks.map(f"{name}-part", getitem, bundles * n_receivers, [p for p in places for _ in range(n_bundles)])
    return _split(parts, n_bundles)


def _by_receiver(bundles: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(parts) for parts in zip(*bundles, strict=True)]


def _split(items: list[Any], size: int) -> list[list[Any]]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def flatten(groups: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the items of several lists in one list."""
    return [part for group in groups for part in group]


def stack_rows(groups: Sequence[Sequence[Array]]) -> Array:
    """Concatenate rows received from other blocks."""
    return np.concatenate(flatten(groups))


def split_by_block(samples: Array, starts: Array) -> list[Array]:
    """Return for every block the positions in it of samples, which are in ascending order."""
    edges = np.searchsorted(samples, starts)
    return [samples[i:j] - start for i, j, start in zip(edges[:-1], edges[1:], starts[:-1], strict=True)]


def split_into_waves(groups: Sequence[Sequence[int]], most: int = _MOST_WAVES) -> list[list[int]]:
    """Return waves with a few members of every group, to limit the rows that are sent and held at a time.

    Examples
    --------
    >>> from gapview.backends.dask.tasks import split_into_waves
    >>> split_into_waves([[0, 1, 4], [2, 3]])
    [[0, 2], [1, 3], [4]]
    """
    n_waves = min(most, max(len(group) for group in groups))
    sizes = [math.ceil(len(group) / n_waves) for group in groups]
    waves = [
        [member for group, size in zip(groups, sizes, strict=True) for member in group[size * i : size * (i + 1)]]
        for i in range(n_waves)
    ]
    return [wave for wave in waves if wave]


class Exchange:
    """The rows that every block needs of every other block; determined once, then used for any values.

    Parameters
    ----------
    tasks : Tasks
        Runs the tasks.
    needed : list of handles
        For every block the samples that it needs, ascending, as positions among all samples.
    starts : array
        First sample of every block, and the number of samples.
    """

    def __init__(self, tasks: Tasks, needed: list[Any], starts: Array) -> None:
        self.tasks, self.n_blocks = tasks, len(needed)
        whole = tasks.map("who-needs-whom", _rows_by_block, needed, starts=starts)
        # For every block which of its rows each block needs
        received = exchange_parts(tasks, "who-needs-whom", whole, self.n_blocks)
        self.wanted = tasks.map("who-needs-whom", flatten, received)
        tasks.wait(self.wanted)

    def rows(self, name: str, values: list[Any]) -> list[list[Any]]:
        """Send rows of arrays with few columns to the blocks that need them, to all blocks at once.

        Returns for every block handles of lists; :func:`stack_rows` gives the rows of the samples that it needs.
        """
        sent = self.tasks.map(name, _select_parts, values, self.wanted, select=getitem)
        return exchange_parts(self.tasks, name, sent, self.n_blocks)

    def in_waves(
        self,
        name: str,
        values: list[Any],
        use: Callable[[list[int], list[list[Any]]], list[Any]],
        select: Callable[..., Array] = getitem,
        n_waves: int = _MOST_WAVES,
        **common: Any,
    ) -> list[Any]:
        """Send rows to some blocks of every worker at a time, and use them before the next are sent.

        ``select(value, rows, **common)`` returns rows of the value of one block. ``use(blocks, received)`` returns a
        handle for each of these blocks, which must not need what was received later.
        """
        results: list[Any] = [None] * self.n_blocks
        for wave in split_into_waves(self.tasks.groups(values), n_waves):
            sent = self.tasks.map(name, _select_parts, values, self.wanted, select=select, only=wave, **common)
            received = exchange_group(self.tasks, name, sent, len(wave))
            del sent  # so that parts are freed as soon as they have arrived
            used = use(wave, received)
            del received
            self.tasks.wait(used)
            for block, result in zip(wave, used, strict=True):
                results[block] = result
        return results


def _rows_by_block(needed: Array, *, starts: Array) -> list[Array]:
    return [rows.astype(np.int32) for rows in split_by_block(needed, starts)]


def _select_parts(
    value: Any,
    wanted: Sequence[Array],
    *,
    select: Callable[..., Array],
    only: Sequence[int] | None = None,
    **common: Any,
) -> list[Array]:
    return [select(value, wanted[block], **common) for block in (range(len(wanted)) if only is None else only)]
