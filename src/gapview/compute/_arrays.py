"""The few things that arrays of NumPy and tensors of PyTorch do differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import MissingExtraError, ParameterError

__all__ = ["FEW_ROWS", "host", "is_tensor", "like", "row_blocks", "to_device"]

_ROWS_AT_A_TIME = 2**16
FEW_ROWS = 2**14  # at a time, where several copies of them are made on the way


def is_tensor(array: Any) -> bool:
    """Tell whether something is a tensor of PyTorch."""
    return any(c.__module__.partition(".")[0] == "torch" and c.__name__ == "Tensor" for c in type(array).__mro__)


def host(array: Any) -> Any:
    """Bring an array to where NumPy can see it."""
    return array.cpu().numpy() if is_tensor(array) else array


def like(array: Any, other: Any) -> Any:
    """Bring a NumPy array to the kind and the place of another."""
    if not is_tensor(other):
        return array
    import torch

    return torch.as_tensor(_shareable(array), device=other.device)


def _shareable(array: Any) -> Any:
    """Copy an array that PyTorch cannot share: one that is turned round, or that must not be written to."""
    if isinstance(array, np.ndarray) and (not array.flags.writeable or min(array.strides, default=0) < 0):
        return np.array(array)
    return array


def to_device(array: Any, device: Any) -> Any:
    """Bring an array to a device, as a tensor.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    ParameterError
        If there is no such device.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "gpu", "Computing on a device") from None
    try:
        return torch.as_tensor(_shareable(array), device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ParameterError(
            f"device must be None or the name of a device that PyTorch can use, such as 'cuda' or 'cpu'; got "
            f"{device!r}: {reason}."
        ) from None


def row_blocks(matrix: Any, most: int = _ROWS_AT_A_TIME) -> list[slice]:
    """Cut a dense matrix into blocks of rows, so that what is made of them on the way stays small."""
    n_rows = matrix.shape[0]
    if sparse.issparse(matrix) or n_rows <= most:
        return [slice(0, n_rows)]
    return [slice(begin, min(begin + most, n_rows)) for begin in range(0, n_rows, most)]


def drained(items: list[Any]) -> Iterator[Any]:
    """Yield the items of a list one by one and remove them from it, so that their memory can be freed.

    Examples
    --------
    >>> from gapview.compute import drained
    >>> items = [1, 2]
    >>> next(drained(items)), items
    (1, [2])
    """
    while items:
        yield items.pop(0)
