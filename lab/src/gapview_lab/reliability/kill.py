"""Kill fits at random moments, resume them, and compare the models."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview.errors import GapviewError, SolutionError
from gapview.persist.checkpoints import Checkpoint, writing_every

__all__ = ["ESTIMATORS", "Killed", "kill", "kill_and_go_on"]

ESTIMATORS: dict[str, Any] = {
    "GRMF": partial(GRMF, 6, n_init=5, tol=0, max_iter=400, random_state=0),
    "BridgedGRMF": partial(BridgedGRMF, "auto", max_clusters=6, random_state=0),
}
_MOST_SECONDS = 300


@dataclass(frozen=True)
class Killed:
    """One fit that was killed, and the fit after it."""

    estimator: str
    moment: float  # seconds after the fit began
    length: float  # seconds of an undisturbed fit with a checkpoint
    had_ended: bool  # before it could be killed
    n_parts: int  # files in the checkpoint it has left
    n_damaged: int  # files in it that cannot be read
    rest: float  # seconds that the next fit has taken
    same: bool  # whether the next fit has found the same, to the last bit


def _fit(estimator: str, n_samples: int, checkpoint: str, result: str, begun: Any) -> None:
    """Fit in a process of its own, and write the model; half of the time is spent writing checkpoints."""
    views = make_views(n_samples, n_clusters=5, missing_rate=0.4, separation=2.0, random_state=0).views
    model = ESTIMATORS[estimator]()
    begun.set()
    with writing_every(0.0, most_share=0.5):
        model.fit(views, checkpoint=checkpoint)
    model.save(result)


class _Fits:
    """Fits of one estimator in processes that can be killed."""

    def __init__(self, estimator: str, n_samples: int, folder: Path) -> None:
        self._what, self._folder = (estimator, n_samples), folder
        self._processes = multiprocessing.get_context("spawn")
        if "forkserver" in multiprocessing.get_all_start_methods():  # a process then starts in no time
            self._processes = multiprocessing.get_context("forkserver")  # type: ignore[assignment]
            self._processes.set_forkserver_preload([__name__])
        self.checkpoint, self._result = folder / "checkpoint", folder / "model.gapview"

    def start(self) -> Any:
        """Start a fit, and wait until it has begun."""
        begun = self._processes.Event()
        process = self._processes.Process(
            target=_fit, args=(*self._what, str(self.checkpoint), str(self._result), begun), daemon=True
        )
        process.start()
        if not begun.wait(_MOST_SECONDS):
            raise RuntimeError("A fit has not begun.")
        return process

    def finish(self) -> tuple[str | None, float]:
        """Fit to the end; return a checksum of the model, None if there is none, and how long it took."""
        self._result.unlink(missing_ok=True)
        process = self.start()
        before = time.perf_counter()
        process.join(_MOST_SECONDS)
        seconds = time.perf_counter() - before
        if process.exitcode != 0:
            process.kill()
            return None, seconds
        return hashlib.sha256(self._result.read_bytes()).hexdigest(), seconds


def kill_and_go_on(estimator: str, n_moments: int, *, n_samples: int = 1500, seed: int = 0) -> Iterator[Killed]:
    """Kill fits at random moments, each with a checkpoint of its own; fit again, and compare.

    Goes on until so many were killed before they had ended.

    Examples
    --------
    >>> from gapview_lab.reliability.kill import kill_and_go_on
    >>> list(kill_and_go_on("GRMF", 0, n_samples=60))
    []
    """
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        fits = _Fits(estimator, n_samples, Path(folder))
        undisturbed, length = fits.finish()
        if undisturbed is None:
            raise SolutionError(f"{estimator} fails without being killed, so that nothing can be told.")
        while n_moments > 0:
            moment = chance.uniform(0, length)
            process = fits.start()
            time.sleep(moment)
            process.kill()
            process.join()
            if process.exitcode not in (0, -signal.SIGKILL):
                raise SolutionError(f"{estimator} has failed by itself, with the exit code {process.exitcode}.")
            parts = list(fits.checkpoint.glob("*.part"))
            n_damaged = len(Checkpoint(fits.checkpoint).damaged_parts())
            again, rest = fits.finish()
            n_moments -= process.exitcode != 0
            clean = not fits.checkpoint.exists()
            yield Killed(
                estimator,
                round(moment, 3),
                round(length, 3),
                process.exitcode == 0,
                len(parts),
                n_damaged,
                round(rest, 3),
                again == undisturbed and clean,
            )


@click.command(epilog="Example: gapview-lab reliability kill --moments 50 -o reliability")
@click.option("--moments", type=click.IntRange(1), default=50, show_default=True, help="Kills of each estimator.")
@click.option(
    "--estimator", type=click.Choice(list(ESTIMATORS)), multiple=True, help="Only this one (may be repeated)."
)
@click.option("--samples", type=click.IntRange(50), default=1500, show_default=True, help="Samples of the made data.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the moments.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reliability"),
    show_default=True,
    help="Folder for the results: kill.json gets a line for every kill.",
)
def kill(moments: int, estimator: tuple[str, ...], samples: int, seed: int, output: Path) -> None:
    """Kill fits (SIGKILL) at random moments, resume from their checkpoints, and compare the models bit by bit."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        bad = 0
        for name in estimator or ESTIMATORS:
            found = []
            for one in kill_and_go_on(name, moments, n_samples=samples, seed=seed):
                found.append(one)
                with (output / "kill.json").open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(asdict(one)) + "\n")
            same, damaged = sum(one.same for one in found), sum(one.n_damaged for one in found)
            resumed = sum(one.n_parts > 0 for one in found)
            bad += len(found) - same + damaged
            click.echo(
                f"{name}: {moments} kills at random moments of a fit of {found[0].length:.1f} s, and "
                f"{len(found) - moments} that came too late; {resumed} left a checkpoint; {damaged} damaged files; "
                f"{same} of {len(found)} times the same model after going on."
            )
    except GapviewError as error:
        raise click.ClickException(str(error)) from None
    raise SystemExit(1 if bad else 0)
