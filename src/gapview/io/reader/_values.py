"""Values on their way out of the reading process: JSON, and blocks of plain bytes behind it."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

__all__ = ["Outgoing"]

_PLAIN_KINDS = "biufcUS"
_MOST_DEPTH = 20


class Outgoing:
    """An answer: nested lists and dicts of text, numbers and arrays. Anything else in a file becomes None."""

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []
        self._blocks: list[Any] = []

    def write(self, answer: dict[str, Any], stream: BinaryIO) -> None:
        """Write an answer: the length of its JSON in 8 bytes, the JSON, and the blocks."""
        tree = {name: self._encoded(value, 0) for name, value in answer.items()}
        text = json.dumps({"answer": tree, "arrays": self._entries}).encode()
        stream.write(struct.pack("<Q", len(text)))
        stream.write(text)
        for block in self._blocks:
            stream.write(block.data)
        stream.flush()

    def _encoded(self, value: Any, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise ValueError("cells are nested too deeply")
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode()  # a half of a character cannot be written anywhere
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, dict):
            return {"dict": [[str(key), self._encoded(item, depth + 1)] for key, item in value.items()]}
        if isinstance(value, list | tuple):
            return [self._encoded(item, depth + 1) for item in value]
        if sparse.issparse(value):
            return self._encoded_sparse(value)
        return self._encoded_array(value, depth) if isinstance(value, np.ndarray) else None

    def _encoded_array(self, array: Any, depth: int) -> Any:
        if array.dtype == object:
            items = [self._encoded(item, depth + 1) for item in array.ravel().tolist()]
            return {"objects": [list(array.shape), items]}
        if array.dtype.kind not in _PLAIN_KINDS or not array.dtype.itemsize:  # records, or text of no length
            return None
        if array.dtype.kind == "U":
            np.char.encode(array, "utf-8")  # refuses characters that do not exist
        entry: dict[str, Any] = {"dtype": array.dtype.str, "shape": list(array.shape)}
        if array.flags.f_contiguous and not array.flags.c_contiguous:  # as MATLAB has them
            entry["axes"] = list(range(array.ndim))[::-1]
            array = array.T
        block = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._entries.append({**entry, "length": len(block)})
        self._blocks.append(block)
        return {"array": len(self._blocks) - 1}

    def _encoded_sparse(self, matrix: Any) -> dict[str, Any]:
        matrix = sparse.csc_array(matrix) if matrix.format == "csc" else sparse.csr_array(matrix)
        matrix.check_format(full_check=True)
        whole = np.result_type(matrix.indices, matrix.indptr)
        parts = [matrix.data, matrix.indices.astype(whole, copy=False), matrix.indptr.astype(whole, copy=False)]
        return {"sparse": [type(matrix).__name__, list(matrix.shape), [self._encoded_array(part, 0) for part in parts]]}
