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

from ...compute.arrays import host
from ...utils.types import Matrix
from ...views import Views
from ..model_file import shown_setting

_BLOCK_BYTES = 2**22


_ABSENT = ["absent", ""]


def identity_of(model: Any, views: Views) -> dict[str, list[str]]:
    """Return everything that the result of a fit depends on: for each fact a text for messages, and a digest.

    Examples
    --------
    >>> from gapview import GRMF, Views
    >>> from gapview.persist.checkpoints.identity import identity_of
    >>> identity_of(GRMF(2), Views([[[0.0], [1.0]]]))["the method"][0]
    'GRMF'
    """
    matrices = zip(views.names, views.matrices, strict=True)
    batches = {} if views.batches is None else {"the batches": digest_of(views.batches)}
    return fit_identity(
        model,
        {name: (matrix.shape, digest_of_matrix(matrix)) for name, matrix in matrices},
        {"the pattern of missing views": digest_of(views.mask), "the list of sample ids": digest_of(views.sample_ids)}
        | batches,
    )


def fit_identity(model: Any, views: dict[str, tuple[Any, str]], samples: dict[str, str]) -> dict[str, list[str]]:
    """Return the identity of a fit from its model and digests of its data.

    Parameters
    ----------
    model : estimator
        Its settings and the state of its generator at the start of the fit are part of the identity.
    views : dict
        The shape of every view, and a digest of its values.
    samples : dict
        Digests of other facts about the samples, by name.
    """
    return {
        "the version of gapview": [version("gapview")] * 2,
        "the source code of gapview": ["", code_digest() or ""],
        "the method": [type(model).__name__] * 2,
        "the list of views": _described(list(views)),
        **{name: _described(value) for name, value in model.get_params(deep=False).items()},
        **{f"view '{name}'": ["{} rows of {}".format(*shape), digest] for name, (shape, digest) in views.items()},
        **{name: ["", digest] for name, digest in samples.items()},
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


def differences(kept: dict[str, list[str]], new: dict[str, list[str]]) -> list[str]:
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
    for name in {**kept, **new}:
        (before, old_digest), (now, new_digest) = kept.get(name, _ABSENT), new.get(name, _ABSENT)
        if old_digest != new_digest:
            found.append(f"{name} was {before} and is {now} now" if before != now else f"{name} has changed")
    return found


def _described(value: Any) -> list[str]:
    """Return a setting as text for messages, and its digest; of a generator the digest of its state."""
    if isinstance(value, np.random.RandomState):
        digest = digest_of(value.get_state(legacy=False))
        return [f"a RandomState (state {digest[:8]})", digest]
    return [repr(value) if isinstance(value, str) else str(shown_setting(value)), digest_of(value)]


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
        value = [compressed.indptr, compressed.indices, compressed.data]
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
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
