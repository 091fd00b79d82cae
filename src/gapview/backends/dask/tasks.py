"""Tasks on the user's cluster: one function over many blocks, sums in a tree, and what comes back to the client."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import MissingExtraError

__all__ = ["Tasks", "current_tasks"]

_N_TOGETHER = 8  # partial sums that one task adds up


class Tasks:
    """Where tasks run: on the cluster of a ``Client``, or here, one after the other, where there is none.

    What they return stays where it was made; a handle stands for it, and may be an argument of other tasks, alone or in
    a list. Everything is made from the user's collections by tasks that can be repeated, so that what is lost with a
    worker is made again.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client

    def map(self, name: str, function: Callable[..., Any], *lists: Sequence[Any], **common: Any) -> list[Any]:
        """Call a function once for each item of the lists; its name can be read on the dashboard."""
        if self.client is None:
            return [function(*items, **common) for items in zip(*lists, strict=True)]
        if not lists[0]:
            return []
        run = uuid.uuid4().hex
        keys = [f"gapview-{name}-{run}-{i}" for i in range(len(lists[0]))]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # what is sent is small beside the data
            return list(self.client.map(function, *map(list, lists), key=keys, **common))

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function once."""
        return self.map(name, function, *[[argument] for argument in arguments])[0]

    def share(self, name: str, value: Any) -> Any:
        """Make a value known to all tasks that ask for it: it goes to the cluster once, however many they are."""
        return value if self.client is None else self.submit(name, _same, [value])

    def gather(self, handles: Any) -> Any:
        """Bring results to the client."""
        return handles if self.client is None else self.client.gather(handles)

    def wait(self, handles: Sequence[Any]) -> None:
        """Wait until the results are there; errors are raised."""
        if self.client is not None:
            from distributed import wait

            wait(handles)
            for handle in handles:
                if handle.status == "error":
                    handle.result()

    def map_at(
        self, name: str, function: Callable[..., Any], homes: dict[Any, list[int]], *lists: Sequence[Any], **common: Any
    ) -> list[Any]:
        """Do as :meth:`map` does, each item on the worker where it is at home, or elsewhere if that is gone.

        Left to itself, Dask runs a task wherever one of its arguments is, if only that worker has less to do.
        """
        if self.client is None:
            return self.map(name, function, *lists, **common)
        results: list[Any] = [None] * len(lists[0])
        for home, items in homes.items():
            own = [[values[i] for i in items] for values in lists]
            for i, handle in zip(items, self.map(name, function, *own, **common, **_at(home)), strict=True):
                results[i] = handle
        return results

    def groups(self, handles: Sequence[Any]) -> list[list[int]]:
        """Say which results lie together on a worker, so that sums of them need not travel."""
        return list(self.homes(handles).values())

    def homes(self, handles: Sequence[Any]) -> dict[Any, list[int]]:
        """Say which results lie on which worker."""
        if self.client is None:
            return {"": list(range(len(handles)))}
        where = self.client.who_has(handles)
        together: dict[Any, list[int]] = {}
        for i, handle in enumerate(handles):
            together.setdefault(min(where.get(handle.key) or ("",)), []).append(i)
        return together

    def summed(self, name: str, add: Callable[[Any], Any], parts: Sequence[Any], groups: Any = None) -> Any:
        """Add up in a tree: first what lies together, then a few sums at a time."""
        groups = groups or _chunks(list(range(len(parts))))
        sums = self.map(name, add, [[parts[i] for i in group] for group in groups])
        while len(sums) > 1:
            sums = self.map(name, add, _chunks(sums))
        return sums[0]

    def read(self, collections: Sequence[Any]) -> list[list[Any]]:
        """Start reading Dask collections; gives a handle for each block of each."""
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
    """Find the user's ``Client``."""
    try:
        from distributed import default_client
    except ImportError:
        raise MissingExtraError("distributed", "dask", "Fitting on a Dask cluster") from None
    try:
        return Tasks(default_client())
    except ValueError:  # there is none
        return Tasks()


def _at(home: str) -> dict[str, Any]:
    return {"workers": [home], "allow_other_workers": True} if home else {}


def _same(value: Any) -> Any:
    # In a list, so that the cluster takes it as it is
    return value[0]


def _chunks(items: list[Any]) -> list[list[Any]]:
    return [items[begin : begin + _N_TOGETHER] for begin in range(0, len(items), _N_TOGETHER)]
