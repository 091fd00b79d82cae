"""Checkpoints of a fit on a cluster: a folder or an address of an object store that all workers can reach.

Every few iterations each block writes its codes, and the client then writes the state of the loop, last: it names
complete files only. From then on the blocks are read from the checkpoint where they are needed again, so that the
scheduler does not have to remember all iterations. If a checkpoint cannot be written, a warning is given, and the fit
continues.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import DataFileError, GapviewWarning, InputTypeError, MissingExtraError
from ...factorization.problem import Problem
from ...factorization.runs import Run, Solution, Weights
from ...persist.checkpoints.identity import differences, digest_of, digest_of_matrix, fit_identity
from ...utils.types import Array
from ...utils.warnings import warn_user
from ...views import Views
from .tasks import Tasks
from .views import BlockedViews

__all__ = ["BlockSolution", "ClusterCheckpoint", "ClusterState", "State", "identity_of_blocks"]

State = tuple[list[Array], list[Array]]  # codes; shares of (HᵀP)ᵀ for every view, and of the objective

_EVERY = 10  # iterations
_NAME = "fit.npz"
_BLOCK = re.compile(r"\d{6,}-[0-9a-f]{8}-\d{6,}\.npz(\.[0-9a-f]{8}\.part)?|fit\.npz\.[0-9a-f]{8}\.part")


@dataclass(frozen=True)
class BlockSolution:
    """The end of a run: codes and consensus on the cluster, all else on the client."""

    blocks: list[Any]  # handles of Solutions
    bases: list[Array]
    objective: Array
    n_iter: int
    converged: bool


@dataclass
class ClusterState:
    """The state of the loop between two iterations."""

    codes: list[Any]  # for every block a handle of a State
    runs: list[Run]  # that have not ended
    correlations: list[Array]  # (HᵀP)ᵀ for every view
    n_iter: int
    best: BlockSolution | None  # of the runs that have ended


class ClusterCheckpoint:
    """The checkpoint of one fit.

    Parameters
    ----------
    address : str or path
        A folder, or an address that fsspec knows, such as ``s3://bucket/fit``.
    identity : dict
        What the fit depends on. A checkpoint of another fit is an error.
    """

    def __init__(self, address: Any, identity: dict[str, Any]) -> None:
        self.address, self.identity = _absolute(address), identity
        self.extra: dict[str, Any] = {}  # other values that a resumed fit has to use again
        self._generation: str | None = None
        self._has_failed = False
        self._head: dict[str, Any] = {}
        self._arrays = self._read_head()
        if self._head:
            different = differences(self._head["identity"], json.loads(json.dumps(identity)))
            if different:
                raise DataFileError(
                    f"The checkpoint {self.address!r} belongs to another fit: {'; '.join(different)}. Give another "
                    "folder, or remove this one."
                )
            self.extra, self._generation = self._head["extra"], self._head["generation"]

    def _read_head(self) -> dict[str, Array]:
        """Read the state of the loop, if there is one; return its arrays."""
        files, path = _file_system(self.address)
        with _as_our_error(self.address, "read"):
            exists, is_whole = files.exists(path), files.exists(f"{path}/{_NAME}")
            others = files.ls(path, detail=False) if exists and not is_whole else []
        if any(not _BLOCK.fullmatch(os.path.basename(name)) for name in others):
            raise DataFileError(
                f"The folder {self.address!r} holds something else than a checkpoint of a fit on a cluster. Give a "
                "new or an empty one."
            )
        arrays = _read(f"{self.address}/{_NAME}") if is_whole else {}
        self._head = json.loads(arrays.pop("head").tobytes()) if is_whole else {}
        return arrays

    def is_due(self, n_iter: int) -> bool:
        """Return whether to write after this iteration."""
        return n_iter % _EVERY == 0

    def load(self, tasks: Tasks, problems: list[Any]) -> ClusterState | None:
        """Return the saved state of the loop, or None if there is none.

        If a block is damaged, a warning is given, and the iterations start again.
        """
        if not self._head:
            return None
        try:
            return self._load(tasks, problems)
        except DataFileError as error:
            warn_user(f"{error} The iterations start again.", GapviewWarning)
            return None

    def _load(self, tasks: Tasks, problems: list[Any]) -> ClusterState:
        runs = []
        for r, saved in enumerate(self._head["runs"]):
            rows, bases = slice(*saved["rows"]), self._of_views(f"basis_{r}")
            run = Run(Weights(*saved["weights"]), saved["n_components"], rows, bases)
            run.objective, run.converged = saved["objective"], saved["converged"]
            runs.append(run)
        best = None
        if self._head["ended"]:
            objective, converged = np.asarray(self._head["ended"]["objective"]), self._head["ended"]["converged"]
            blocks = self._read_blocks(tasks, problems, _read_ended)
            best = BlockSolution(blocks, self._of_views("ended"), objective, len(objective), converged)
        codes = self._read_blocks(tasks, problems, _read_state)
        return ClusterState(codes, runs, self._of_views("correlation"), self._head["n_iter"], best)

    def _of_views(self, name: str) -> list[Array]:
        return [self._arrays[f"{name}_{k}"] for k in range(self._head["n_views"])]

    def _read_blocks(self, tasks: Tasks, problems: list[Any], read: Any) -> list[Any]:
        # With the problem as an argument, a block is read on the worker that holds its H
        blocks = tasks.map("read-checkpoint", read, self._block_addresses(len(problems)), problems)
        tasks.wait(blocks)
        return blocks

    def _block_addresses(self, n_blocks: int) -> list[str]:
        return [f"{self.address}/{self._generation}-{number:06d}.npz" for number in range(n_blocks)]

    def save(self, tasks: Tasks, problems: list[Any], now: ClusterState) -> bool:
        """Write the state of the loop, and replace its handles by those of codes read from the checkpoint.

        Returns False if it cannot be written; the first time, a warning is given.
        """
        before, self._generation = self._generation, f"{now.n_iter:06d}-{uuid.uuid4().hex[:8]}"
        try:
            self._save(tasks, problems, now)
        except DataFileError as error:
            self._remove(lambda name: name.startswith(str(self._generation)))
            self._generation = before
            if not self._has_failed:
                warn_user(
                    f"{error} The fit continues; if it is interrupted, the iterations since the last checkpoint are "
                    "lost.",
                    GapviewWarning,
                )
            self._has_failed = True
            return False
        self._remove(lambda name: not name.startswith(str(self._generation)))
        return True

    def _save(self, tasks: Tasks, problems: list[Any], now: ClusterState) -> None:
        files, path = _file_system(self.address)
        with _as_our_error(self.address, "written"):
            files.makedirs(path, exist_ok=True)
        best = now.best
        ended = best.blocks if best else [None] * len(problems)
        tasks.collect("write-checkpoint", _write_state, now.codes, ended, self._block_addresses(len(problems)))
        # The blocks must be readable before the checkpoint counts, and before what they depend on is released
        codes = self._read_blocks(tasks, problems, _read_state)
        best = replace(best, blocks=self._read_blocks(tasks, problems, _read_ended)) if best else None
        head = {
            "identity": self.identity,
            "extra": self.extra,
            "generation": self._generation,
            "n_iter": now.n_iter,
            "n_views": len(now.correlations),
            "runs": [
                {
                    "weights": [run.weights.consensus, run.weights.sparsity],
                    "n_components": run.n_components,
                    "rows": [run.rows.start, run.rows.stop],
                    "objective": run.objective,
                    "converged": run.converged,
                }
                for run in now.runs
            ],
            "ended": {"objective": best.objective.tolist(), "converged": best.converged} if best else None,
        }
        arrays = _numbered("correlation", now.correlations) | _numbered("ended", best.bases if best else [])
        for r, run in enumerate(now.runs):
            arrays |= _numbered(f"basis_{r}", run.bases)
        _write(f"{self.address}/{_NAME}", head=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8), **arrays)
        now.codes, now.best = codes, best

    def _remove(self, is_old: Callable[[str], bool]) -> None:
        """Delete blocks, also those of an interrupted fit; blocks that cannot be deleted stay."""
        files, path = _file_system(self.address)
        with suppress(Exception):
            for file in files.ls(path, detail=False):
                name = os.path.basename(file)
                if _BLOCK.fullmatch(name) and is_old(name):
                    files.rm_file(file)


def identity_of_blocks(tasks: Tasks, model: Any, views: BlockedViews) -> dict[str, Any]:
    """Return what a fit on these views depends on; see :func:`gapview.persist.checkpoints.identity.identity_of`."""
    of_views, masks, ids = zip(*tasks.collect("fingerprint", _hashes, views.blocks), strict=True)
    return fit_identity(
        model,
        {
            name: ((views.n_present[k], views.n_features[k]), _hash_of([own[k] for own in of_views]))
            for k, name in enumerate(views.names)
        },
        {
            "the pattern of missing views": _hash_of(masks),
            "the list of sample ids": _hash_of(ids),
            "the sizes of the blocks": _hash_of([str(size) for size in views.sizes]),
        },
    )


def _hashes(views: Views) -> tuple[list[str], str, str]:
    return [digest_of_matrix(m) for m in views.matrices], digest_of(views.mask), digest_of(views.sample_ids)


def _hash_of(hashes: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()


# -- files -----------------------------------------------------------------------------------------------------


def _absolute(address: Any) -> str:
    """Return an address that is the same for all workers, whatever their working directories."""
    if not isinstance(address, str | os.PathLike) or isinstance(os.fspath(address), bytes):
        raise InputTypeError(
            f"checkpoint must be None, the path of a folder, or an address that fsspec knows; got {address!r}."
        )
    text = os.fspath(address)
    if not text or "\0" in text:
        raise DataFileError(f"{text!r} is not the name of a folder. Give another path as checkpoint.")
    return text.rstrip("/") if "://" in text or "::" in text else os.path.abspath(text)


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


@contextmanager
def _as_our_error(address: str, action: str) -> Iterator[None]:
    """Raise a DataFileError in place of the errors of file systems and object stores."""
    try:
        yield
    except DataFileError:
        raise
    except Exception as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise DataFileError(f"The checkpoint {address!r} cannot be {action}: {reason}.") from None


def _write(address: str, **arrays: Array) -> None:
    """Write a complete file or none: to an object store at once, in a folder under another name and then renamed."""
    files, path = _file_system(address)
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    staged = f"{path}.{uuid.uuid4().hex[:8]}.part" if "file" in files.protocol else path
    with _as_our_error(address, "written"):
        try:
            with files.open(staged, "wb") as file:
                file.write(content.getbuffer())
            if staged != path:
                os.replace(staged, path)
        except BaseException:
            with suppress(OSError):
                os.remove(staged) if staged != path else None
            raise


def _read(address: str) -> dict[str, Array]:
    files, path = _file_system(address)
    with _as_our_error(address, "read"):
        with files.open(path, "rb") as file:
            content = io.BytesIO(file.read())
        with np.load(content, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}


def _numbered(name: str, arrays: Sequence[Array]) -> dict[str, Array]:
    return {f"{name}_{k}": array for k, array in enumerate(arrays)}


def _write_state(state: State, ended: Solution | None, address: str) -> None:
    arrays = _numbered("codes", state[0]) | _numbered("share", state[1])
    if ended is not None:
        arrays |= _numbered("ended", ended.codes) | {"consensus": ended.consensus}
    _write(address, **arrays)


def _read_state(address: str, problem: Problem) -> State:
    arrays = _read(address)
    n_views = len(problem.terms)
    return [arrays[f"codes_{k}"] for k in range(n_views)], [arrays[f"share_{k}"] for k in range(n_views + 1)]


def _read_ended(address: str, problem: Problem) -> Solution:
    arrays = _read(address)
    codes = [arrays[f"ended_{k}"] for k in range(len(problem.terms))]
    return Solution([], codes, arrays["consensus"], np.empty(0), 0, False)
