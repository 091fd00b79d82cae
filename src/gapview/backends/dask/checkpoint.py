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
from typing import Any

import numpy as np

from ...errors import DataFileError, InputTypeError, MissingExtraError
from ...factorization.loop import LoopState, Solution
from ...factorization.problem import Problem
from ...persist.checkpoints.identity import differences, digest_of, digest_of_matrix, fit_identity
from ...utils.messages import warn_user
from ...utils.types import Array
from ...views import Views
from .tasks import Tasks
from .views import BlockedViews

BlockCodes = tuple[list[Array], list[Array]]  # codes; shares of (HᵀP)ᵀ for every view, and of the objective

_EVERY = 10  # iterations
_NAME = "fit.npz"
_BLOCK = re.compile(r"\d{6,}-[0-9a-f]{8}-\d{6,}\.npz(\.[0-9a-f]{8}\.part)?|fit\.npz\.[0-9a-f]{8}\.part")


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

    def load(self, tasks: Tasks, problems: list[Any]) -> tuple[dict[str, Any], list[Any]] | None:
        """Return the saved state of the loop and handles of the codes of every block, or None if there is none.

        The state is that of :meth:`gapview.factorization.loop.LoopState.to_dict`, with handles of Solutions as codes
        and without consensus. There are no codes if all runs have ended. If a block is damaged, a warning is given, and
        the iterations start again.
        """
        if not self._head:
            return None
        try:
            state = dict(self._head["state"])
            codes, ended = self._read_blocks(tasks, problems, bool(state["active"]), state["ended"])
        except DataFileError as error:
            warn_user(f"{error} The iterations start again.")
            return None
        state["correlations"] = self._of_views("correlation") if codes else []
        state["ended"] = [[place, self._of_views(f"basis{place}"), blocks] for place, blocks in ended.items()]
        return state, codes

    def _of_views(self, name: str) -> list[Array]:
        return [self._arrays[f"{name}_{k}"] for k in range(self._head["n_views"])]

    def _read_blocks(
        self, tasks: Tasks, problems: list[Any], is_active: bool, ended: Sequence[int]
    ) -> tuple[list[Any], dict[int, list[Any]]]:
        """Return handles of the codes of every block, if a run is active, and of the solutions of ended runs."""

        def read(what: Callable[..., Any], **common: Any) -> list[Any]:
            # With the problem as an argument, a block is read on the worker that holds its H
            addresses = self._block_addresses(len(problems))
            blocks = tasks.map("read-checkpoint", what, addresses, problems, **common)
            tasks.wait(blocks)
            return blocks

        return read(_read_codes) if is_active else [], {place: read(_read_solution, place=place) for place in ended}

    def _block_addresses(self, n_blocks: int) -> list[str]:
        return [f"{self.address}/{self._generation}-{number:06d}.npz" for number in range(n_blocks)]

    def save(
        self, tasks: Tasks, problems: list[Any], state: LoopState, codes: list[Any]
    ) -> tuple[list[Any], dict[int, list[Any]]] | None:
        """Write the state of the loop and the codes of the active runs.

        Returns handles of the codes and of the solutions of ended runs, both read from the checkpoint; None if it
        cannot be written: the first time, a warning is given.
        """
        before, self._generation = self._generation, f"{state.n_iter:06d}-{uuid.uuid4().hex[:8]}"
        try:
            saved = self._save(tasks, problems, state, codes)
        except DataFileError as error:
            self._remove(lambda name: name.startswith(str(self._generation)))
            self._generation = before
            if not self._has_failed:
                warn_user(
                    f"{error} The fit continues; if it is interrupted, the iterations since the last checkpoint are "
                    "lost."
                )
            self._has_failed = True
            return None
        self._remove(lambda name: not name.startswith(str(self._generation)))
        return saved

    def _save(
        self, tasks: Tasks, problems: list[Any], state: LoopState, codes: list[Any]
    ) -> tuple[list[Any], dict[int, list[Any]]]:
        files, path = _file_system(self.address)
        with _as_our_error(self.address, "written"):
            files.makedirs(path, exist_ok=True)
        n_blocks, places = len(problems), list(state.ended)
        active = codes if state.active else [None] * n_blocks
        ended = [[state.ended[place].codes[block] for place in places] for block in range(n_blocks)]
        addresses = self._block_addresses(n_blocks)
        tasks.collect("write-checkpoint", _write_block, active, ended, addresses, places=places)
        # The blocks must be readable before the checkpoint counts, and before what they depend on is released
        saved = self._read_blocks(tasks, problems, bool(state.active), places)
        plain = state.to_dict() | {"ended": places, "objectives": [run.objective for run in state.runs]}
        arrays = _numbered("correlation", plain.pop("correlations"))
        for place, solution in state.ended.items():
            arrays |= _numbered(f"basis{place}", solution.bases)
        head = {
            "identity": self.identity,
            "extra": self.extra,
            "generation": self._generation,
            "n_views": len(state.correlations),
            "state": plain,
        }
        _write(f"{self.address}/{_NAME}", head=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8), **arrays)
        return saved

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


def _write_block(codes: BlockCodes | None, ended: Sequence[Solution], address: str, *, places: Sequence[int]) -> None:
    arrays = {} if codes is None else _numbered("codes", codes[0]) | _numbered("share", codes[1])
    for place, solution in zip(places, ended, strict=True):
        arrays |= _numbered(f"ended{place}", [*solution.codes, solution.consensus])
    _write(address, **arrays)


def _read_codes(address: str, problem: Problem) -> BlockCodes:
    arrays = _read(address)
    n_views = len(problem.terms)
    return [arrays[f"codes_{k}"] for k in range(n_views)], [arrays[f"share_{k}"] for k in range(n_views + 1)]


def _read_solution(address: str, problem: Problem, *, place: int) -> Solution:
    arrays = _read(address)
    *codes, consensus = [arrays[f"ended{place}_{k}"] for k in range(len(problem.terms) + 1)]
    return Solution([], codes, consensus, np.empty(0), 0, False)
