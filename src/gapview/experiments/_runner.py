"""Running many independent tasks over the cores, results stored as they come."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from threadpoolctl import threadpool_limits

from ._store import Store
from ._tasks import Record, Task, run_task

__all__ = ["Progress", "run_all"]

Progress = Callable[[int, int, float], None]  # runs done, runs in all, seconds left


def run_all(tasks: Iterable[Task], store: Store, folder: Path, version: str, n_jobs: int, progress: Progress) -> None:
    """Run what is not in the store yet, the long ones first, on ``n_jobs`` processes of one thread each.

    An interrupt leaves the store with everything that was finished.
    """
    done = store.done()
    todo = sorted({task for task in tasks if task not in done}, key=lambda task: (-task.cost, str(task)))
    if not todo:
        return
    clock = _Clock(store.records)
    # Fresh processes: forking one whose matrix library has threads can hang
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_prepare_worker) as pool:
        pending: dict[Future[list[Record]], Task] = {
            pool.submit(run_task, task, folder, version): task for task in todo
        }
        try:
            while pending:
                finished, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    records = future.result()
                    store.add(records)
                    clock.learn(pending.pop(future), records)
                progress(len(todo) - len(pending), len(todo), clock.left(pending.values()) / n_jobs)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _prepare_worker() -> None:
    """One thread each; and an interrupt is for the process that hands out the work, which ends the others in order."""
    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Clock:
    """Guesses the time left: by what runs of the same kind took, by a rough cost before there are any."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._seen: dict[tuple[str, str, str], tuple[float, int]] = {}
        for record in records:
            self.learn(record.task, [record])

    def learn(self, task: Task, records: Iterable[Record]) -> None:
        total, count = self._seen.get(self._kind(task), (0.0, 0))
        seconds = sum(record.seconds for record in records if record.seconds == record.seconds)
        self._seen[self._kind(task)] = total + seconds, count + 1

    def left(self, tasks: Iterable[Task]) -> float:
        return sum(self._guess(task) for task in tasks)

    def _guess(self, task: Task) -> float:
        total, count = self._seen.get(self._kind(task), (0.0, 0))
        return total / count if total else task.cost

    @staticmethod
    def _kind(task: Task) -> tuple[str, str, str]:
        return task.experiment, task.data, task.method
