"""Checkpoints of a fit on a cluster: a folder or an address of an object store, which all workers can reach.

Every few iterations each block writes its codes, and the client then writes where the fit stands, last: what that names
is whole. From then on the blocks are read from the checkpoint where they are needed again, so that what the scheduler
has to remember does not grow with the iterations.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import uuid
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checkpoints._identity import _described, _digest, _digest_of_matrix, differences
from ..errors import DataFileError, MissingExtraError
from ..runs import Run, Weights
from ..views import Array, Views
from ._blocks import BlockedViews
from ._tasks import Tasks

__all__ = ["Store", "identity_of_blocks"]

_EVERY = 10  # iterations
_NAME = "fit.npz"


class Store:
    """Where a fit is kept.

    Parameters
    ----------
    address : str or path
        A folder, or an address that fsspec knows, such as ``s3://bucket/fit``.
    identity : dict
        What the fit depends on; a checkpoint of another fit is refused.
    """

    def __init__(self, address: Any, identity: dict[str, Any]) -> None:
        self.address, self.identity = os.fspath(address).rstrip("/"), identity
        self.extra: dict[str, Any] = {}  # what else has to be the same when the fit goes on
        self._generation: str | None = None
        content = self._read_head()
        if content is not None:
            self._head, self._arrays = content
            different = differences(self._head["identity"], json.loads(json.dumps(identity)))
            if different:
                raise DataFileError(
                    f"The checkpoint {self.address!r} belongs to another fit: {'; '.join(different)}. Give another "
                    "folder, or remove this one."
                )
            self.extra, self._generation = self._head["extra"], self._head["generation"]

    def _read_head(self) -> tuple[dict[str, Any], dict[str, Array]] | None:
        self._head, self._arrays = {}, {}
        files, path = _file_system(self.address)
        if not files.exists(path):
            return None
        if not files.exists(f"{path}/{_NAME}"):
            if files.ls(path):
                raise DataFileError(
                    f"The folder {self.address!r} holds something else than a checkpoint of a fit on a cluster. Give a "
                    "new or an empty one."
                )
            return None
        arrays = _read(f"{self.address}/{_NAME}")
        return json.loads(arrays.pop("head").tobytes()), arrays

    def is_due(self, n_iter: int) -> bool:
        """Tell whether it is time to write."""
        return n_iter % _EVERY == 0

    def load(self, tasks: Tasks, problems: list[Any]) -> tuple[list[Any], list[Run], list[Array], int] | None:
        """Read where the fit stands; the blocks are read by those who need them."""
        if not self._head:
            return None
        runs = []
        for r, told in enumerate(self._head["runs"]):
            bases = [self._arrays[f"basis_{r}_{k}"] for k in range(self._head["n_views"])]
            rows = slice(*told["rows"])
            run = Run(
                Weights(*told["weights"]), told["n_components"], rows, bases, told["objective"], told["converged"]
            )
            runs.append(run)
        correlations = [self._arrays[f"correlation_{k}"] for k in range(self._head["n_views"])]
        return self._blocks(tasks, problems), runs, correlations, self._head["n_iter"]

    def _blocks(self, tasks: Tasks, problems: list[Any]) -> list[Any]:
        # With the problem, so that a block is read where its H is
        addresses = [self._block(number) for number in range(len(problems))]
        return tasks.map("read-checkpoint", _read_state, addresses, problems)

    def _block(self, number: int) -> str:
        return f"{self.address}/{self._generation}-{number:06d}.npz"

    def save(
        self,
        tasks: Tasks,
        problems: list[Any],
        state: list[Any],
        runs: Sequence[Run],
        correlations: list[Array],
        n_iter: int,
    ) -> list[Any]:
        """Write where the fit stands; gives handles of the blocks as they are in the checkpoint."""
        before, self._generation = self._generation, f"{n_iter:06d}-{uuid.uuid4().hex[:8]}"
        files, path = _file_system(self.address)
        files.makedirs(path, exist_ok=True)
        addresses = [self._block(number) for number in range(len(state))]
        tasks.gather(tasks.map("write-checkpoint", _write_state, state, addresses))
        head = {
            "identity": self.identity,
            "extra": self.extra,
            "generation": self._generation,
            "n_iter": n_iter,
            "n_views": len(correlations),
            "runs": [
                {
                    "weights": [run.weights.consensus, run.weights.sparsity],
                    "n_components": run.n_components,
                    "rows": [run.rows.start, run.rows.stop],
                    "objective": run.objective,
                    "converged": run.converged,
                }
                for run in runs
            ],
        }
        arrays = {f"correlation_{k}": correlation for k, correlation in enumerate(correlations)}
        arrays |= {f"basis_{r}_{k}": basis for r, run in enumerate(runs) for k, basis in enumerate(run.bases)}
        _write(f"{self.address}/{_NAME}", head=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8), **arrays)
        blocks = self._blocks(tasks, problems)
        tasks.wait(blocks)  # only then may what they were made from go
        if before is not None:
            for old in files.glob(f"{path}/{before}-*.npz"):
                files.rm_file(old)
        return blocks


def identity_of_blocks(tasks: Tasks, model: Any, views: BlockedViews) -> dict[str, Any]:
    """Say what a fit on these views depends on; see :func:`gapview.checkpoints._identity.identity_of`."""
    from importlib.metadata import version

    told = tasks.gather(tasks.map("fingerprint", _digests, views.blocks))
    of_views, masks, ids = zip(*told, strict=True)
    return {
        "gapview": version("gapview"),
        "method": type(model).__name__,
        "settings": {name: _described(value) for name, value in model.get_params(deep=False).items()},
        "views": {
            name: [[views.n_present[k], views.n_features[k]], _combined([own[k] for own in of_views])]
            for k, name in enumerate(views.names)
        },
        "samples": [views.n_samples, _combined(masks), _combined([*ids, *map(str, views.sizes)])],
    }


def _digests(views: Views) -> tuple[list[str], str, str]:
    return [_digest_of_matrix(m) for m in views.matrices], _digest(views.mask), _digest(views.sample_ids)


def _combined(digests: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


# -- files -----------------------------------------------------------------------------------------------------


def _file_system(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("fsspec", "dask", "A checkpoint of a fit on a cluster") from None
    try:
        files, path = url_to_fs(address)
    except (ValueError, ImportError) as error:
        raise DataFileError(f"The checkpoint {address!r} cannot be reached: {str(error).rstrip('.')}.") from None
    return files, path


def _write(address: str, **arrays: Array) -> None:
    """Write a file whole: an object store takes all of it or nothing, and in a folder it is renamed when it is."""
    files, path = _file_system(address)
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    staged = f"{path}.{uuid.uuid4().hex[:8]}.part" if "file" in files.protocol else path
    try:
        with files.open(staged, "wb") as file:
            file.write(content.getbuffer())
        if staged != path:
            os.replace(staged, path)
    except OSError as error:
        raise DataFileError(f"The checkpoint {address!r} cannot be written: {error}.") from None


def _read(address: str) -> dict[str, Array]:
    files, path = _file_system(address)
    try:
        with files.open(path, "rb") as file:
            content = io.BytesIO(file.read())
        with np.load(content, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DataFileError(
            f"The checkpoint {address!r} cannot be read: {str(error).rstrip('.')}. Remove its folder, and fit anew."
        ) from None


def _write_state(state: tuple[list[Array], list[Array]], address: str) -> bool:
    arrays = {f"codes_{k}": codes for k, codes in enumerate(state[0])}
    arrays |= {f"share_{k}": share for k, share in enumerate(state[1])}
    _write(address, **arrays)
    return True


def _read_state(address: str, problem: Any) -> tuple[list[Array], list[Array]]:
    arrays = _read(address)
    n_views = sum(name.startswith("codes_") for name in arrays)  # the last share is that of the objective
    return [arrays[f"codes_{k}"] for k in range(n_views)], [arrays[f"share_{k}"] for k in range(n_views + 1)]
