"""The identity of a fit: version and source code of gapview, settings, random state and digests of the data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ...compute import host
from ...utils.types import Matrix
from ...views import Views

__all__ = [
    "code_digest",
    "differences",
    "digest_of",
    "digest_of_matrix",
    "fit_identity",
    "identity_of",
    "is_development_install",
    "source_digest",
]

_BLOCK_BYTES = 2**22
_MOST_SHOWN = 60  # characters of a setting in a message


def identity_of(model: Any, views: Views) -> dict[str, Any]:
    """Return everything that the result of a fit depends on, as values that JSON can hold.

    Examples
    --------
    >>> from gapview import GRMF, Views
    >>> from gapview.persist.checkpoints.identity import identity_of
    >>> identity_of(GRMF(2), Views([[[0.0], [1.0]]]))["method"]
    'GRMF'
    """
    matrices = zip(views.names, views.matrices, strict=True)
    return fit_identity(
        model,
        {name: [list(map(int, matrix.shape)), digest_of_matrix(matrix)] for name, matrix in matrices},
        [views.n_samples, digest_of(views.mask), digest_of(views.sample_ids)],
    )


def fit_identity(model: Any, views: dict[str, Any], samples: list[Any]) -> dict[str, Any]:
    """Return the identity of a fit from its model and the digests of its data.

    Parameters
    ----------
    model : estimator
        Its settings and the state of its generator at the start of the fit become part of the identity.
    views : dict
        For every view its shape as a list, and a digest of its values.
    samples : list
        The number of samples, a digest of the mask and a digest of the sample ids.
    """
    return {
        "gapview": version("gapview"),
        "code": code_digest(),
        "method": type(model).__name__,
        "settings": {name: _described(value) for name, value in model.get_params(deep=False).items()},
        "views": views,
        "samples": samples,
    }


# -- the code --------------------------------------------------------------------------------------------------


@cache
def code_digest() -> str | None:
    """Return the digest of the package's sources in a development install; None where the version suffices."""
    package = Path(__file__).resolve().parents[2]
    direct_url = distribution("gapview").read_text("direct_url.json")
    return source_digest(package) if is_development_install(package, direct_url) else None


def is_development_install(package: Path, direct_url: str | None) -> bool:
    """Return whether the sources in the folder ``package`` can change without a change of version.

    They can in a source checkout and in an editable install, which ``direct_url``, the text of ``direct_url.json``
    in the metadata of the distribution, marks.
    """
    if not {"site-packages", "dist-packages"} & set(package.parts):
        return True
    return direct_url is not None and bool(json.loads(direct_url).get("dir_info", {}).get("editable"))


def source_digest(package: Path) -> str:
    """Return the SHA-256 digest of the names and contents of all .py files in a folder."""
    files = sorted(package.rglob("*.py"))
    return digest_of([(file.relative_to(package).as_posix(), file.read_bytes()) for file in files])


# -- comparison ------------------------------------------------------------------------------------------------


def differences(kept: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return in words where two identities differ.

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
    if kept.get("code") != new["code"]:
        found.append("the source code of gapview has changed")
    for name in dict.fromkeys([*kept["settings"], *new["settings"]]):
        (before, sum_before), (now, sum_now) = (each["settings"].get(name, ["missing", ""]) for each in (kept, new))
        if sum_before != sum_now:
            found.append(f"{name} was {before} and is {now} now" if before != now else f"{name} holds other values")
    if list(kept["views"]) != list(new["views"]):
        found.append(f"the views were {_listed(kept['views'])} and are {_listed(new['views'])} now")
    for name in kept["views"]:
        (shape, content), (shape_now, content_now) = kept["views"][name], new["views"].get(name, kept["views"][name])
        if shape != shape_now:
            found.append(
                f"view '{name}' had {shape[0]} rows of {shape[1]} and has {shape_now[0]} rows of {shape_now[1]} now"
            )
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


def _described(value: Any) -> list[str]:
    """Return a setting as text for messages, and its digest; of a generator the digest of its state."""
    if isinstance(value, np.random.RandomState):
        digest = digest_of(value.get_state(legacy=False))
        return [f"a RandomState (state {digest[:8]})", digest]
    shown = " ".join(repr(value).split()) if _is_plain(value) else f"a {type(value).__name__}"
    return [shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 1] + "…", digest_of(value)]


def _is_plain(value: Any) -> bool:
    """Return whether a value has a short text, that is, contains no array."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return all(_is_plain(each) for each in value)
    return not hasattr(value, "shape")


# -- digests ---------------------------------------------------------------------------------------------------


def digest_of(value: Any) -> str:
    """Return the SHA-256 digest of a value."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a digest: arrays by their bytes, containers by their parts, anything else by its repr."""
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
    """Return the SHA-256 digest of a view, read block by block: it may be on disk or on a device."""
    if sparse.issparse(matrix):
        return digest_of(matrix)
    digest = hashlib.sha256(str(matrix.dtype).removeprefix("torch.").encode())
    n_rows, n_features = (int(size) for size in matrix.shape)
    step = max(1, _BLOCK_BYTES // max(1, n_features * matrix.dtype.itemsize))
    for begin in range(0, n_rows, step):
        digest.update(np.ascontiguousarray(host(matrix[begin : begin + step])).data)
    return digest.hexdigest()
