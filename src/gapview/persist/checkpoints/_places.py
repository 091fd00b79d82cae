"""Tensors and sparse matrices of tensors as arrays that a file can hold, and back to where they were."""

from __future__ import annotations

from typing import Any

from ...compute import TensorGraph, graph_like, host, host_graph, is_tensor, to_device

__all__ = ["grounded", "placed"]

_TENSOR, _GRAPH = "\0tensor", "\0graph"  # no name of ours begins so


def grounded(value: Any) -> Any:
    """Replace tensors by arrays that say where they were.

    Examples
    --------
    >>> from gapview.persist.checkpoints._places import grounded
    >>> grounded([1, {"a": 2.0}])
    [1, {'a': 2.0}]
    """
    if isinstance(value, TensorGraph):
        return {_GRAPH: host_graph(value), "device": str(value.values.device)}
    if is_tensor(value):
        return {_TENSOR: host(value), "device": str(value.device)}
    if type(value) in (list, tuple):
        return type(value)(grounded(each) for each in value)
    if type(value) is dict:
        return {key: grounded(each) for key, each in value.items()}
    return value


def placed(value: Any) -> Any:
    """Bring tensors back to where they were."""
    if type(value) in (list, tuple):
        return type(value)(placed(each) for each in value)
    if type(value) is not dict:
        return value
    if _TENSOR in value:
        return to_device(value[_TENSOR], value["device"])
    if _GRAPH in value:
        graph = value[_GRAPH]
        return graph_like(graph, to_device(graph.data[:0], value["device"]))
    return {key: placed(each) for key, each in value.items()}
