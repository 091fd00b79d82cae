"""Types of arrays for annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a dense 2-D numpy array or a scipy csr_array; scipy has no common type for the two
