"""Checkpoints of a fit on a cluster: a folder or an address of an object store, which all workers can reach.

Every few iterations each block writes its codes, and the client then writes where the fit stands, last: what that names
is whole. From then on the blocks are read from the checkpoint where they are needed again, so that what the scheduler
has to remember does not grow with the iterations. Of a checkpoint that cannot be written a
warning tells, and the fit goes on.
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
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import DataFileError, GapviewWarning, InputTypeError, MissingExtraError
from ...factorization.problem import Problem
from ...factorization.runs import Run, Solution, Weights
from ...persist.checkpoints.identity import differences, digest_of, digest_of_matrix, fit_identity
from ...utils.types import Array
from ...utils.warnings import warn_user
from ...views import Views
from .blocks import BlockedViews
from .states import BlockSolution, Stand, State
from .tasks import Tasks

__all__ = ["Store", "identity_of_blocks"]

_EVERY = 10  # iterations
_NAME = "fit.npz"
_LEFT = re.compile(r"\d{6,}-[0-9a-f]{8}-\d{6,}\.npz(\.[0-9a-f]{8}\.part)?|fit\.npz\.[0-9a-f]{8}\.part")  # by a lost fit


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
        self.address, self.identity = _absolute(address), identity
        self.extra: dict[str, Any] = {}  # what else has to be the same when the fit goes on
        self._generation: str | None = None
        self._has_failed = False
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
        with _told(self.address, "read"):
            is_there, is_whole = files.exists(path), files.exists(f"{path}/{_NAME}")
            others = files.ls(path, detail=False) if is_there and not is_whole else []
        if any(not _LEFT.fullmatch(os.path.basename(name)) for name in others):
            raise DataFileError(
                f"The folder {self.address!r} holds something else than a checkpoint of a fit on a cluster. Give a "
                "new or an empty one."
            )
        if not is_whole:
            return None
        arrays = _read(f"{self.address}/{_NAME}")
        return json.loads(arrays.pop("head").tobytes()), arrays

    def is_due(self, n_iter: int) -> bool:
        """Tell whether it is time to write."""
        return n_iter % _EVERY == 0

    def load(self, tasks: Tasks, problems: list[Any]) -> Stand | None:
        """Read where the fit stands.

        If a block is damaged, a warning says so, and the iterations begin anew.
        """
        if not self._head:
            return None
        try:
            return self._loaded(tasks, problems)
        except DataFileError as error:
            warn_user(f"{error} The iterations begin anew.", GapviewWarning)
            return None

    def _loaded(self, tasks: Tasks, problems: list[Any]) -> Stand:
        runs = []
        for r, told in enumerate(self._head["runs"]):
            run = Run(Weights(*told["weights"]), told["n_components"], slice(*told["rows"]), self._bases(f"basis_{r}"))
            run.objective, run.converged = told["objective"], told["converged"]
            runs.append(run)
        correlations = [self._arrays[f"correlation_{k}"] for k in range(self._head["n_views"])]
        found = []
        if self._head["ended"]:
            objective, converged = np.asarray(self._head["ended"]["objective"]), self._head["ended"]["converged"]
            blocks = self._read_blocks(tasks, problems, _read_ended)
            found = [BlockSolution(blocks, self._bases("ended"), objective, len(objective), converged)]
            tasks.wait(blocks)
        state = self._read_blocks(tasks, problems, _read_state)
        tasks.wait(state)
        return Stand(state, runs, correlations, self._head["n_iter"], found)

    def _bases(self, name: str) -> list[Array]:
        return [self._arrays[f"{name}_{k}"] for k in range(self._head["n_views"])]

    def _read_blocks(self, tasks: Tasks, problems: list[Any], read: Any) -> list[Any]:
        # With the problem, so that a block is read where its H is
        addresses = [self._block(number) for number in range(len(problems))]
        return tasks.map("read-checkpoint", read, addresses, problems)

    def _block(self, number: int) -> str:
        return f"{self.address}/{self._generation}-{number:06d}.npz"

    def save(self, tasks: Tasks, problems: list[Any], stand: Stand) -> Stand | None:
        """Write where the fit stands; gives the same with its codes as they are in the checkpoint.

        If it cannot be written, a warning says so once, and None is returned: the fit goes on without.
        """
        before, self._generation = self._generation, f"{stand.n_iter:06d}-{uuid.uuid4().hex[:8]}"
        try:
            saved = self._saved(tasks, problems, stand)
        except DataFileError as error:
            self._remove(lambda name: name.startswith(str(self._generation)))
            self._generation = before
            if not self._has_failed:
                warn_user(
                    f"{error} The fit goes on; if it is cut off, what was computed since the last checkpoint is lost.",
                    GapviewWarning,
                )
            self._has_failed = True
            return None
        self._remove(lambda name: not name.startswith(str(self._generation)))
        return saved

    def _saved(self, tasks: Tasks, problems: list[Any], stand: Stand) -> Stand:
        _make_folder(self.address)
        addresses = [self._block(number) for number in range(len(stand.state))]
        ended = stand.found[0].blocks if stand.found else [None] * len(stand.state)
        tasks.gather(tasks.map("write-checkpoint", _write_state, stand.state, ended, addresses))
        blocks, found = (
            self._read_blocks(tasks, problems, _read_state),
            [replace(each, blocks=self._read_blocks(tasks, problems, _read_ended)) for each in stand.found],
        )
        for handles in (blocks, *(each.blocks for each in found)):
            tasks.wait(handles)  # only then may what they were made from go, and the checkpoint count
        head = {
            "identity": self.identity,
            "extra": self.extra,
            "generation": self._generation,
            "n_iter": stand.n_iter,
            "n_views": len(stand.correlations),
            "runs": [
                {
                    "weights": [run.weights.consensus, run.weights.sparsity],
                    "n_components": run.n_components,
                    "rows": [run.rows.start, run.rows.stop],
                    "objective": run.objective,
                    "converged": run.converged,
                }
                for run in stand.runs
            ],
            "ended": {"objective": found[0].objective.tolist(), "converged": found[0].converged} if found else None,
        }
        arrays = {f"correlation_{k}": correlation for k, correlation in enumerate(stand.correlations)}
        arrays |= {f"basis_{r}_{k}": basis for r, run in enumerate(stand.runs) for k, basis in enumerate(run.bases)}
        arrays |= {f"ended_{k}": basis for each in found for k, basis in enumerate(each.bases)}
        _write(f"{self.address}/{_NAME}", head=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8), **arrays)
        return replace(stand, state=blocks, found=found)

    def _remove(self, is_old: Callable[[str], bool]) -> None:
        """Delete blocks, also those of a fit that was cut off; what cannot be deleted stays."""
        files, path = _file_system(self.address)
        with suppress(Exception):
            for file in files.ls(path, detail=False):
                name = os.path.basename(file)
                if _LEFT.fullmatch(name) and is_old(name):
                    files.rm_file(file)


def identity_of_blocks(tasks: Tasks, model: Any, views: BlockedViews) -> dict[str, Any]:
    """Return what the result of a fit depends on; see :func:`gapview.persist.checkpoints.identity.identity_of`."""
    told = tasks.gather(tasks.map("fingerprint", _digests, views.blocks))
    of_views, masks, ids = zip(*told, strict=True)
    return fit_identity(
        model,
        {
            name: ((views.n_present[k], views.n_features[k]), _combined([own[k] for own in of_views]))
            for k, name in enumerate(views.names)
        },
        {
            "the pattern of missing views": _combined(masks),
            "the list of sample ids": _combined(ids),
            "the sizes of the blocks": _combined([str(size) for size in views.sizes]),
        },
    )


def _digests(views: Views) -> tuple[list[str], str, str]:
    return [digest_of_matrix(m) for m in views.matrices], digest_of(views.mask), digest_of(views.sample_ids)


def _combined(digests: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


# -- files -----------------------------------------------------------------------------------------------------


def _absolute(address: Any) -> str:
    """Return an address that is the same for all workers: a folder is not sought in the one where each was started."""
    if not isinstance(address, str | os.PathLike) or isinstance(os.fspath(address), bytes):
        raise InputTypeError(
            f"checkpoint must be None, the path of a folder, or an address that fsspec knows; got {address!r}."
        )
    text = os.fspath(address)
    if not text or "\0" in text:
        raise DataFileError(f"No folder can be called {text!r}.")
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
def _told(address: str, what: str) -> Iterator[None]:
    """Say in our words what went wrong; an object store has errors of its own."""
    try:
        yield
    except DataFileError:
        raise
    except Exception as error:
        said = str(error).rstrip(".") or type(error).__name__
        raise DataFileError(f"The checkpoint {address!r} cannot be {what}: {said}.") from None


def _make_folder(address: str) -> None:
    files, path = _file_system(address)
    with _told(address, "written"):
        files.makedirs(path, exist_ok=True)


def _write(address: str, **arrays: Array) -> None:
    """Write a file whole: an object store takes all of it or nothing, and in a folder it is renamed when it is."""
    files, path = _file_system(address)
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    staged = f"{path}.{uuid.uuid4().hex[:8]}.part" if "file" in files.protocol else path
    with _told(address, "written"):
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
    with _told(address, "read"):
        with files.open(path, "rb") as file:
            content = io.BytesIO(file.read())
        with np.load(content, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}


def _write_state(state: State, ended: Solution | None, address: str) -> bool:
    arrays = {f"codes_{k}": codes for k, codes in enumerate(state[0])}
    arrays |= {f"share_{k}": share for k, share in enumerate(state[1])}
    if ended is not None:
        arrays |= {f"ended_{k}": codes for k, codes in enumerate(ended.codes)} | {"consensus": ended.consensus}
    _write(address, **arrays)
    return True


def _read_state(address: str, problem: Problem) -> State:
    arrays = _read(address)
    n_views = len(problem.terms)
    return [arrays[f"codes_{k}"] for k in range(n_views)], [arrays[f"share_{k}"] for k in range(n_views + 1)]


def _read_ended(address: str, problem: Problem) -> Solution:
    arrays = _read(address)
    codes = [arrays[f"ended_{k}"] for k in range(len(problem.terms))]
    return Solution([], codes, arrays["consensus"], np.empty(0), 0, False)
