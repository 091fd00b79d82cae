"""Run many independent tasks on several cores, and store each result at once."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable, Hashable, Iterable, Sequence
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from .records import AnyRecord, RecordStore

__all__ = ["AnyTask", "Progress", "Work", "run_all"]

Progress = Callable[[int, int, float], None]  # runs done, runs in all, seconds left


class AnyTask(Hashable, Protocol):
    """The attributes that the runner needs of a task."""

    @property
    def cost(self) -> float:
        """Rough seconds: for the order of tasks and for first estimates of the time left."""

    @property
    def kind(self) -> Hashable:
        """Key of tasks that take about the same time."""


T = TypeVar("T", bound=AnyTask)
T_contra = TypeVar("T_contra", bound=AnyTask, contravariant=True)
R = TypeVar("R", bound=AnyRecord)


class Work(Protocol[T_contra, R]):
    """How tasks are run; sent to the worker processes by pickle."""

    def run(self, task: T_contra) -> list[R]:
        """Run one task, in a process of its own."""

    def lost(self, task: T_contra, reason: str, seconds: float) -> list[R]:
        """Return the records of a task whose process ended or was stopped; or raise, to stop all tasks."""


def run_all(
    tasks: Iterable[T],
    store: RecordStore[R],
    work: Work[T, R],
    n_jobs: int,
    progress: Progress,
    *,
    time_limit: float | None = None,
    instead: Callable[[T], list[R]] = lambda task: [],
) -> None:
    """Run the tasks that are not in the store yet, long ones first, on ``n_jobs`` processes of one thread each.

    A task that takes more than ``time_limit`` seconds is ended with its process. ``instead`` is asked right before a
    task begins, and may give records to store in its place. An interrupt leaves the store with everything that was
    finished.
    """
    done = store.done()
    todo = sorted({task for task in tasks if task not in done}, key=lambda task: (-task.cost, str(task)))
    if not todo:
        return
    crew = _Crew(work, min(n_jobs, len(todo)), time_limit)
    clock: _CrewClock[T] = _CrewClock()
    for record in store.records:
        clock.learn(record.task, [record])
    waiting, n_done = list(reversed(todo)), 0
    try:
        while waiting or crew.busy:
            while waiting and crew.has_room:
                records = instead(waiting[-1])
                if records:
                    store.add(records)
                    waiting.pop()
                    n_done += 1
                else:
                    crew.begin(waiting.pop())
            for task, records in crew.finished():
                store.add(records)
                clock.learn(task, records)
                n_done += 1
            progress(n_done, len(todo), clock.left([*waiting, *crew.busy]) / n_jobs)
    finally:
        crew.dismiss()


class _Crew(Generic[T, R]):
    """Worker processes; one that dies or takes too long is replaced, without effect on the others."""

    def __init__(self, work: Work[T, R], size: int, time_limit: float | None) -> None:
        self._work, self._size, self._time_limit = work, size, time_limit
        self._members = [_Member(work) for _ in range(size)]

    @property
    def busy(self) -> list[T]:
        return [member.task for member in self._members if member.task is not None]

    @property
    def has_room(self) -> bool:
        return len(self.busy) < self._size

    def begin(self, task: T) -> None:
        member = next((one for one in self._members if one.task is None), None)
        if member is None:
            member = _Member(self._work)
            self._members.append(member)
        member.begin(task)

    def finished(self) -> list[tuple[T, list[R]]]:
        """Wait until a task is done, lost or over the time limit, and return all that are."""
        busy = [member for member in self._members if member.task is not None]
        if not busy:
            return []
        wait([member.pipe for member in busy], self._patience(busy))
        found = []
        for member in busy:
            task, seconds = member.task, member.seconds
            assert task is not None
            if member.pipe.poll():
                answer = member.answer()
                if isinstance(answer, list):
                    found.append((task, answer))
                    continue
                self._members.remove(member)
                found.append((task, self._work.lost(task, answer, seconds)))
            elif self._time_limit is not None and seconds >= self._time_limit:
                member.end()
                self._members.remove(member)
                reason = f"over the time limit of {self._time_limit:g} s"
                found.append((task, self._work.lost(task, reason, self._time_limit)))
        return found

    def _patience(self, busy: Sequence[_Member[T, R]]) -> float | None:
        if self._time_limit is None:
            return None
        return max(0.0, self._time_limit - max(member.seconds for member in busy))

    def dismiss(self) -> None:
        for member in self._members:
            member.end()


class _Member(Generic[T, R]):
    """One process and its current task."""

    def __init__(self, work: Work[T, R]) -> None:
        # Fresh processes: forking one whose matrix library has threads can hang
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.task: T | None = None
        self._begun = 0.0
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self._process.start()
        theirs.close()
        self._is_ready = False

    @property
    def seconds(self) -> float:
        return monotonic() - self._begun

    def begin(self, task: T) -> None:
        if not self._is_ready:  # a process that is still starting takes no time from its first task
            try:
                self.pipe.recv()
            except EOFError:
                self._process.join()
                raise RuntimeError(f"A process ended with code {self._process.exitcode} while it started.") from None
            self._is_ready = True
        self.pipe.send(task)
        self.task, self._begun = task, monotonic()

    def answer(self) -> list[R] | str:
        """Return the records of the task, or a text on how its process ended; raise the error that stopped it."""
        try:
            answer = self.pipe.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            return f"its process has ended with code {code}" + (" (out of memory?)" if code == -signal.SIGKILL else "")
        self.task = None
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection, work: Work[Any, Any]) -> None:
    """Run tasks until there are no more."""
    threadpool_limits(1)
    # An interrupt is for the process that hands out the work, which ends the others in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe.send("ready")
    while True:
        try:
            task = pipe.recv()
        except EOFError:  # the process that hands out the work is gone
            return
        try:
            pipe.send(work.run(task))
        except Exception as error:
            pipe.send(_sendable(error))


def _sendable(error: Exception) -> Exception:
    """Return the error, or a RuntimeError with its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"A task failed:\n{''.join(traceback.format_exception(error))}")
    return error


class _CrewClock(Generic[T]):
    """Estimate of the time left: from finished runs of the same kind, or from the rough cost if there are none."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[float, int]] = {}

    def learn(self, task: T, records: Iterable[AnyRecord]) -> None:
        total, count = self._seen.get(task.kind, (0.0, 0))
        seconds = sum(record.seconds for record in records if record.seconds == record.seconds)
        self._seen[task.kind] = total + seconds, count + 1

    def left(self, tasks: Iterable[T]) -> float:
        return sum(self._guess(task) for task in tasks)

    def _guess(self, task: T) -> float:
        total, count = self._seen.get(task.kind, (0.0, 0))
        return total / count if total else task.cost
