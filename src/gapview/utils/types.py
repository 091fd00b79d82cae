"""Types of arrays that many modules name."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

__all__ = ["Array", "Matrix"]

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a dense 2-D numpy array or a scipy csr_array; scipy has no common type for the two
