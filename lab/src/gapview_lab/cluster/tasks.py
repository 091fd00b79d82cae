"""Count the tasks that the scheduler receives, and those that it remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gapview import GRMF
from gapview.graph.neighbors import Search
from gapview.progress import ITERATING, Event, listening

from .setup import cluster_of, made_blocks, output_option, timed, write

_N_SAMPLES = 60  # of a block: what they hold does not matter here
_SEEN = (9, 19, 29, 39)


@click.command(name="tasks")
@click.option("--blocks", type=int, multiple=True, default=(4, 16, 36, 64), show_default=True)
@click.option("--workers", type=int, default=2, show_default=True)
@output_option
def count_tasks(blocks: tuple[int, ...], workers: int, output: Path) -> None:
    """Count the tasks of a fit of one view with neighbours by cells, by the number of blocks."""
    for n_blocks in blocks:
        with cluster_of(workers) as client:
            counting = Counting()
            client.cluster.scheduler.add_plugin(counting, name="counting")
            remembered: dict[int, int] = {}
            done: dict[int, int] = {}

            def note(
                event: Event,
                client: Any = client,
                remembered: dict[int, int] = remembered,
                done: dict[int, int] = done,
                counting: Any = counting,
            ) -> None:
                if event.phase == ITERATING and event.done in (1, *_SEEN):
                    remembered[event.done] = len(client.cluster.scheduler.tasks)
                    done[event.done] = counting.n_done

            made = made_blocks(_N_SAMPLES * n_blocks, (8,), 3, _N_SAMPLES)
            record: dict[str, Any] = {"blocks": n_blocks, "workers": workers}
            with timed(record), listening(note):
                GRMF(3, search=Search(method="approximate"), tol=0, max_iter=40, random_state=0).fit(made)
            record["before_iterations"] = done[1]
            record["per_iteration"] = round((done[_SEEN[-1]] - done[_SEEN[0]]) / (_SEEN[-1] - _SEEN[0]), 1)
            record["remembered"] = [remembered[number] for number in _SEEN]
            write(output, "tasks", record)


class Counting:
    """A plugin of the scheduler that counts the tasks with a prefix."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix, self.n_done = prefix, 0

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Count a finished task."""
        self.n_done += start == "processing" and finish == "memory" and str(key).startswith(self.prefix)

    def __getattr__(self, name: str) -> Any:
        """Ignore the other events of a plugin."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None
