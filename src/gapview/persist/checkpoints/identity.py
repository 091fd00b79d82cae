"""What a checkpoint belongs to: the data, the settings and the version of gapview."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from ...compute import host
from ...utils.types import Matrix
from ...views import Views

__all__ = ["described", "differences", "digest_of", "digest_of_matrix", "identity_of"]

_BLOCK_BYTES = 2**22
_MOST_SHOWN = 60  # signs of a setting in a message


def identity_of(model: Any, views: Views) -> dict[str, Any]:
    """Say what a fit depends on, such that it can be compared, and shown where it differs.

    Examples
    --------
    >>> from gapview import GRMF, Views
    >>> from gapview.persist.checkpoints.identity import identity_of
    >>> identity_of(GRMF(2), Views([[[0.0], [1.0]]]))["method"]
    'GRMF'
    """
    settings = {name: described(value) for name, value in model.get_params(deep=False).items()}
    return {
        "gapview": version("gapview"),
        "method": type(model).__name__,
        "settings": settings,
        "views": {
            name: [list(map(int, matrix.shape)), digest_of_matrix(matrix)]
            for name, matrix in zip(views.names, views.matrices, strict=True)
        },
        "samples": [views.n_samples, digest_of(views.mask), digest_of(views.sample_ids)],
    }


def differences(kept: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Say in words where two identities differ.

    Examples
    --------
    >>> from gapview import GRMF, Views
    >>> from gapview.persist.checkpoints.identity import differences, identity_of
    >>> views = Views([[[0.0], [1.0]]])
    >>> differences(identity_of(GRMF(2), views), identity_of(GRMF(2, tol=0.1), views))
    ['tol was 1e-05 and is 0.1 now']
    """
    found = []
    for name, what in (("gapview", "the version of gapview"), ("method", "the method")):
        if kept[name] != new[name]:
            found.append(f"{what} was {kept[name]} and is {new[name]} now")
    for name in dict.fromkeys([*kept["settings"], *new["settings"]]):
        (before, sum_before), (now, sum_now) = (each["settings"].get(name, ["missing", ""]) for each in (kept, new))
        if sum_before != sum_now:
            found.append(f"{name} was {before} and is {now} now" if before != now else f"{name} holds other values")
    if list(kept["views"]) != list(new["views"]):
        found.append(f"the views were {_listed(kept['views'])} and are {_listed(new['views'])} now")
    for name in kept["views"]:
        (shape, content), (shape_now, content_now) = kept["views"][name], new["views"].get(name, kept["views"][name])
        if shape != shape_now:
            found.append(f"view '{name}' had {_size(shape)} and has {_size(shape_now)} now")
        elif content != content_now:
            found.append(f"view '{name}' holds other values")
    before, now = kept["samples"], new["samples"]
    if before[0] != now[0]:
        found.append(f"there were {before[0]} samples and are {now[0]} now")
    elif before[1] != now[1]:
        found.append("other samples lack a view")
    elif before[2] != now[2]:
        found.append("the samples have other ids, or another order")
    return found


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _size(shape: list[int]) -> str:
    return f"{shape[0]} rows of {shape[1]}"


def described(value: Any) -> list[str]:
    """Return a setting as it can be shown, and a checksum of it."""
    if isinstance(value, np.random.RandomState):  # where it stood at the start is kept with the results
        return ["a RandomState", "a RandomState"]
    shown = " ".join(repr(value).split()) if _is_plain(value) else f"a {type(value).__name__}"
    return [shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 1] + "…", digest_of(value)]


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(each) for each in value)
    if isinstance(value, Mapping):
        return all(_is_plain(each) for each in value.values())
    return not hasattr(value, "shape")


def digest_of(value: Any) -> str:
    """Return the SHA-256 checksum of a value."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a checksum: arrays by their bytes, containers by their parts, anything else as it is shown."""
    value = host(value)
    if sparse.issparse(value):
        compressed = sparse.csr_array(value)
        for part in (compressed.indptr, compressed.indices, compressed.data):
            _feed(digest, part)
    elif hasattr(value, "__array__") and not isinstance(value, np.generic):
        array = np.asarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        content = repr(array.tolist()).encode(errors="backslashreplace") if array.dtype == object else array.tobytes()
        digest.update(content)
    elif isinstance(value, Mapping | list | tuple):
        items = list(value.items()) if isinstance(value, Mapping) else list(value)
        digest.update(f"{type(value).__name__}{len(items)}".encode())
        for item in items:
            _feed(digest, item)
    else:
        plain = value.item() if isinstance(value, np.generic) else value
        digest.update(f"{plain!r};".encode(errors="backslashreplace"))


def digest_of_matrix(matrix: Matrix) -> str:
    """Add up a view block by block: it may be on disk, or on a device."""
    if sparse.issparse(matrix):
        return digest_of(matrix)
    digest = hashlib.sha256(str(matrix.dtype).removeprefix("torch.").encode())
    n_rows, n_features = (int(size) for size in matrix.shape)
    step = max(1, _BLOCK_BYTES // max(1, n_features * matrix.dtype.itemsize))
    for begin in range(0, n_rows, step):
        digest.update(np.ascontiguousarray(host(matrix[begin : begin + step])).data)
    return digest.hexdigest()
