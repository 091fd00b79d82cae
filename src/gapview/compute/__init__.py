"""Where the arithmetic runs: NumPy in row blocks that stay in cache, or PyTorch on a device.

The formulas are written once, in terms of the array namespace of the data and of the engine that :func:`engine_for`
returns.
"""

from .arrays import (
    FEW_ROWS,
    TensorGraph,
    coordinates,
    csr,
    divide_weights,
    drained,
    expand_graph,
    graph_like,
    host,
    host_graph,
    is_tensor,
    like,
    row_blocks,
    row_parts,
    to_device,
    weights_of,
)
from .engine import Each, NumpyEngine, engine_for, one_by_one
from .kmeans import kmeans_of_tensor, kmeans_plus_plus
from .threads import THREAD_VARIABLES, on_free_cores, single_threaded, single_threaded_blas

__all__ = [
    "FEW_ROWS",
    "THREAD_VARIABLES",
    "Each",
    "NumpyEngine",
    "TensorGraph",
    "coordinates",
    "csr",
    "divide_weights",
    "drained",
    "engine_for",
    "expand_graph",
    "graph_like",
    "host",
    "host_graph",
    "is_tensor",
    "kmeans_of_tensor",
    "kmeans_plus_plus",
    "like",
    "on_free_cores",
    "one_by_one",
    "row_blocks",
    "row_parts",
    "single_threaded",
    "single_threaded_blas",
    "to_device",
    "weights_of",
]
