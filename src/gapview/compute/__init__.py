"""Where the arithmetic runs: NumPy in row blocks that stay in cache, or PyTorch on a device.

An engine says how many rows to take at a time and carries out independent pieces of work; what is computed is written
once, in terms of the array namespace that :func:`engine_for` finds, and knows nothing of where it runs.
"""

from __future__ import annotations

from typing import Any

from ._arrays import FEW_ROWS, drained, host, is_tensor, like, row_blocks, to_device
from ._engine import Each, Engine, NumpyEngine, TorchEngine, one_by_one
from ._graphs import (
    TensorGraph,
    added,
    coordinates,
    csr,
    divided,
    graph_like,
    host_graph,
    row_parts,
    spread_out,
    weights_of,
)
from ._kmeans import kmeans_of_tensor
from ._spread import spread_starts
from ._threads import THREAD_VARIABLES, one_thread_each, sharing_cores, without_helpers

__all__ = [
    "FEW_ROWS",
    "THREAD_VARIABLES",
    "Each",
    "Engine",
    "NumpyEngine",
    "TensorGraph",
    "added",
    "coordinates",
    "csr",
    "divided",
    "drained",
    "engine_for",
    "graph_like",
    "host",
    "host_graph",
    "is_tensor",
    "kmeans_of_tensor",
    "like",
    "one_by_one",
    "one_thread_each",
    "row_blocks",
    "row_parts",
    "sharing_cores",
    "spread_out",
    "spread_starts",
    "to_device",
    "weights_of",
    "without_helpers",
]


def engine_for(array: Any) -> Engine:
    """Return the engine for the kind of array that holds the data.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.compute import engine_for
    >>> engine_for(np.ones(3)).xp.__name__
    'array_api_compat.numpy'
    """
    return TorchEngine(array.device) if is_tensor(array) else NumpyEngine()
