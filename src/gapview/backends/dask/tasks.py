"""Tasks on the user's cluster: one function over many blocks, sums in a tree, and exchange of rows between blocks.

With one task per pair of B blocks the scheduler would have B² tasks. Parts are therefore bundled: one task on each of W
workers collects what all its blocks send, and one task on each worker what all its blocks receive. Between them, up to
16 workers send each other a bundle directly. More of them send bundles in stages, each to one of at most 16 groups of
workers, so that there are of the order of W log W tasks, and every part is sent once in each stage.
"""

from __future__ import annotations

import math
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain, pairwise
from operator import getitem, itemgetter
from typing import Any, TypeVar

import numpy as np
from dask.sizeof import sizeof
from scipy import sparse

from ...errors import MissingExtraError
from ...utils.types import Array

Kind = TypeVar("Kind", bound=type)

_N_TOGETHER = 8  # partial sums that one task adds up
_RADIX = 16  # workers that send each other bundles in one stage
MOST_WAVES = 32
_N_ROWS = 4096  # of arrays in which many small parts are used
_WAVE = 2**24  # bytes received by a worker that are not worth another wave
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
        """Call a function once for each item of the lists; the dashboard shows the name.

        Items of what :func:`send` returns are used on the worker where they have arrived.
        """
        arrived = [own for own in lists if len(own) and isinstance(own[0], Received)]
        if arrived:
            lists = tuple([item.argument if isinstance(item, Received) else item for item in own] for own in lists)
            if self.client is not None:
                return self.map_at(name, function, _by_worker(item.worker for item in arrived[0]), *lists, **common)
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
        return _by_worker(min(holders.get(handle.key) or ("",)) for handle in handles)

    def located(self, handles: Sequence[Any]) -> dict[Any, list[int]]:
        """Wait for results; return for every worker the numbers of those that it holds."""
        self.wait(handles)
        return self.workers_of(handles)

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


@dataclass(frozen=True)
class Received:
    """What a block received: a handle of what arrived on its worker, and the place of the block there."""

    handle: Any
    place: int
    worker: Any

    @property
    def argument(self) -> list[Any]:
        """The argument of a task, for :func:`flatten`."""
        return [self.handle, self.place]


def _by_worker(workers: Iterable[Any]) -> dict[Any, list[int]]:
    """Return for every worker where it comes."""
    places: dict[Any, list[int]] = {}
    for place, worker in enumerate(workers):
        places.setdefault(worker, []).append(place)
    return places


def send(
    tasks: Tasks,
    name: str,
    split: Callable[..., list[Any]],
    senders: dict[Any, list[int]],
    receivers: dict[Any, list[int]],
    *lists: Sequence[Any],
    **common: Any,
) -> list[Received]:
    """Send parts from blocks to blocks.

    ``split`` takes the items of one sender from the lists, and returns a part for each receiver. ``senders`` and
    ``receivers`` are the numbers of those on each worker. Returns an item for every receiver, which tasks can take as
    they take handles; in a task, :func:`flatten` gives the parts in the order of the senders.
    """
    units = list(receivers.values())
    items = [[[own[i] for own in lists] for i in members] for members in senders.values()]
    settings = {"split": split, "units": units, "settings": common}
    bundles = tasks.map_at(name, _bundle, _numbered(senders), list(senders.values()), items, **settings)
    routed = _route(tasks, name, bundles, len(units), radix_of(max(len(bundles), len(units))))
    arrived = tasks.map_at(f"{name}-arrive", _arrive, _numbered(receivers), routed)
    received: list[Any] = [None] * sum(map(len, units))
    for handle, worker in zip(arrived, receivers, strict=True):
        for place, receiver in enumerate(receivers[worker]):
            received[receiver] = Received(handle, place, worker)
    return received


def _numbered(workers: dict[Any, list[int]]) -> dict[Any, list[int]]:
    return {worker: [number] for number, worker in enumerate(workers)}


def _bundle(numbers: Sequence[int], items: Any, *, split: Any, units: Any, settings: dict[str, Any]) -> list[Any]:
    """Return for every worker, and every receiver on it, the parts of some senders with their numbers."""
    sent = [(number, split(*own, **settings)) for number, own in zip(numbers, items, strict=True)]
    return [[[(number, parts[i]) for number, parts in sent] for i in members] for members in units]


def n_stages(n_units: int) -> int:
    """Return in how many stages so many workers send each other bundles."""
    stages = 1
    while _RADIX**stages < n_units:
        stages += 1
    return stages


def radix_of(n_units: int) -> int:
    """Return to how many groups of workers a bundle is sent in every stage: at most 16."""
    stages, radix = n_stages(n_units), 2
    while radix**stages < n_units:
        radix += 1
    return radix


def _route(tasks: Tasks, name: str, bundles: list[Any], n_units: int, radix: int) -> list[list[Any]]:
    """Return for every worker handles of the bundles that are for it alone."""
    edges = np.linspace(0, n_units, min(radix, n_units) + 1).astype(int).tolist()
    routed = []
    for begin, end in pairwise(edges):
        own = bundles
        if len(edges) > 2:
            own = tasks.map(f"{name}-part", getitem, bundles, [slice(begin, end)] * len(bundles))
        if len(own) > radix:
            own = tasks.map(f"{name}-meet", _meet, _split(own, radix))
        routed += [own] if end - begin == 1 and len(own) <= radix else _route(tasks, name, own, end - begin, radix)
    return routed


def _meet(bundles: Sequence[Any]) -> list[Any]:
    """Return bundles of several senders as one."""
    return [[flat(parts) for parts in zip(*unit, strict=True)] for unit in zip(*bundles, strict=True)]


def _arrive(bundles: Sequence[Any]) -> list[list[Any]]:
    """Return for every receiver on a worker the parts in the order of their senders."""
    (unit,) = _meet(bundles)
    return [[part for _, part in sorted(parts, key=itemgetter(0))] for parts in unit]


def _split(items: list[Any], size: int) -> list[list[Any]]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def flat(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the items of several lists in one list."""
    return list(chain.from_iterable(lists))


def flatten(received: tuple[list[list[Any]], int]) -> list[Any]:
    """Return the parts that a block received, in the order of the senders."""
    arrived, place = received
    return list(arrived[place])


def stack_rows(received: tuple[list[list[Array]], int]) -> Array:
    """Concatenate rows received from other blocks."""
    return np.concatenate(flatten(received))


def few_rows(received: tuple[list[list[Array]], int]) -> Iterator[Array]:
    """Return the rows received from other blocks in arrays of few thousand rows, rather than in one."""
    parts = flatten(received)
    chunk = np.cumsum([len(part) for part in parts]) // _N_ROWS
    edges = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(parts)]
    return (np.concatenate(parts[begin:end]) for begin, end in pairwise(edges))


def split_by_block(samples: Array, starts: Array) -> list[Array]:
    """Return for every block the positions in it of samples, which are in ascending order."""
    edges = np.searchsorted(samples, starts)
    return [samples[i:j] - start for i, j, start in zip(edges[:-1], edges[1:], starts[:-1], strict=True)]


def split_into_waves(groups: Sequence[Sequence[int]], n_bytes: float = math.inf) -> list[list[int]]:
    """Return waves with a few members of every group, to limit the rows that are sent and held at a time.

    ``n_bytes`` are received by the largest group; the fewer, the fewer waves.

    Examples
    --------
    >>> from gapview.backends.dask.tasks import split_into_waves
    >>> split_into_waves([[0, 1, 4], [2, 3]])
    [[0, 2], [1, 3], [4]]
    """
    most = min(MOST_WAVES, max(len(group) for group in groups))
    n_waves = max(1, math.ceil(min(most, n_bytes / _WAVE)))
    sizes = [math.ceil(len(group) / n_waves) for group in groups]
    waves = [
        [member for group, size in zip(groups, sizes, strict=True) for member in group[size * i : size * (i + 1)]]
        for i in range(n_waves)
    ]
    return [wave for wave in waves if wave]


def on_workers(workers: dict[Any, list[int]], chosen: Sequence[int]) -> dict[Any, list[int]]:
    """Return for every worker the places of its members in a list of some of them.

    Examples
    --------
    >>> from gapview.backends.dask.tasks import on_workers
    >>> on_workers({"a": [0, 3], "b": [1], "c": [2]}, [1, 3])
    {'a': [1], 'b': [0]}
    """
    place = {member: number for number, member in enumerate(chosen)}
    found = {worker: [place[member] for member in own if member in place] for worker, own in workers.items()}
    return {worker: places for worker, places in found.items() if places}


def spread(workers: Iterable[Any], n_items: int) -> dict[Any, list[int]]:
    """Distribute items over workers.

    Examples
    --------
    >>> from gapview.backends.dask.tasks import spread
    >>> spread(["a", "b"], 3)
    {'a': [0, 2], 'b': [1]}
    """
    names = list(workers)[:n_items]
    return {name: list(range(number, n_items, len(names))) for number, name in enumerate(names)}


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
        homes = tasks.located(needed)
        lengths = tasks.collect("who-needs-whom", _n_items, [[needed[i] for i in own] for own in homes.values()])
        self._most_rows = max(lengths)  # received on one worker
        # For every block which of its rows each block needs
        received = send(tasks, "who-needs-whom", _rows_by_block, homes, homes, needed, starts=starts)
        tasks.wait([own.handle for own in received])
        self.wanted = [own.argument for own in received]

    def rows(self, name: str, values: list[Any]) -> list[Any]:
        """Send rows of arrays with few columns to the blocks that need them, to all blocks at once.

        Returns an item for every block; in a task, :func:`stack_rows` gives the rows of the samples that it needs.
        """
        return self._send(name, values, self.tasks.located(values), range(self.n_blocks), select=getitem)

    def in_waves(
        self,
        name: str,
        values: list[Any],
        use: Callable[[list[int], list[Any]], list[Any]],
        select: Callable[..., Array] = getitem,
        row_bytes: float = math.inf,
        **common: Any,
    ) -> list[Any]:
        """Send rows to some blocks of every worker at a time, and use them before the next are sent.

        ``select(value, rows, **common)`` returns rows of the value of one block, of so many bytes. ``use(blocks,
        received)`` returns a handle for each of these blocks, which must not need what was received later.
        """
        results: list[Any] = [None] * self.n_blocks
        homes = self.tasks.located(values)
        for wave in split_into_waves(list(homes.values()), self._most_rows * row_bytes):
            received = self._send(name, values, homes, wave, select=select, **common)
            used = use(wave, received)
            del received  # so that parts are freed as soon as they have been used
            self.tasks.wait(used)
            for block, result in zip(wave, used, strict=True):
                results[block] = result
        return results

    def _send(self, name: str, values: list[Any], homes: Any, wave: Sequence[int], **common: Any) -> list[Any]:
        receivers = on_workers(homes, wave)
        return send(self.tasks, name, _select_parts, homes, receivers, values, self.wanted, only=wave, **common)


def _n_items(lists: Sequence[Any]) -> int:
    return sum(map(len, lists))


def _rows_by_block(needed: Array, *, starts: Array) -> list[Array]:
    return [rows.astype(np.int32) for rows in split_by_block(needed, starts)]


def _select_parts(
    value: Any, wanted: Any, *, select: Callable[..., Array], only: Sequence[int], **common: Any
) -> list[Array]:
    rows = flatten(wanted)
    sent = [rows[block] for block in only]
    return np.split(select(value, np.concatenate(sent), **common), np.cumsum([len(own) for own in sent])[:-1])
