"""``gapview-lab speed``, ``scale`` and ``speed-page``: measure how fast fits are and how their cost grows."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from gapview.commands.console import new_console, print_files, print_line

from ..common.console import data_option, listed, listed_numbers, results_option, runs_shown, say_runs
from .document import write_document
from .scale import ScaleOutcome, ScaleRequest, run_scale
from .speed import SpeedOutcome, SpeedRequest, run_speed

__all__ = ["scale", "speed", "speed_page"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(
    short_help="Measure how fast fits are.",
    epilog="Example: gapview-lab speed --data-dir data -o speed",
)
@results_option("gapview-speed")
@data_option("handwritten_2v.npz, bbcsport_2v.npz and hdigit10000.npz")
@click.option("--quick", is_flag=True, help="Small made data and matrices: to see whether it runs.")
def speed(output: Path, data_dir: Path | None, quick: bool) -> None:
    """Measure how fast fits are, each figure against a reference in the same run.

    First what the computer itself can do: matrix products and copies. Then whole fits against the plain dense algorithm
    and against KNNImputer + SpectralClustering, the iterations against the matrix-product speed, the passes
    that a start from the data saves, and what approximate neighbours and float32 cost in accuracy. Nothing else should
    run on the computer meanwhile.
    """
    console = new_console()
    with runs_shown(console) as progress:
        outcome = run_speed(
            SpeedRequest(output, data_dir, quick), progress, lambda line: print_line(console, "Left out", line)
        )
    _print_speed(console, outcome)


def _print_speed(console: Console, outcome: SpeedOutcome) -> None:
    say_runs(console, outcome)
    for goal in outcome.goals:
        verdict = "met" if goal.met else "not met"
        print_line(console, "Goal", f"{goal.text}: {goal.measured}, goal {goal.asked}, {verdict}.")
    print_files(console, outcome.files)


@click.command(
    short_help="Measure how cost grows with the samples.",
    epilog="Example: gapview-lab scale --sizes 50000,100000,200000 --methods GRMF -o sizes",
)
@results_option("gapview-scale")
@click.option(
    "--sizes", multiple=True, callback=listed_numbers, help="Numbers of samples; by default 50,000 to 1,000,000."
)
@click.option(
    "--methods",
    multiple=True,
    callback=listed,
    default=("GRMF,BridgedGRMF,BipartiteSpectral",),
    show_default=True,
    help="Also GRMF-data (start from the data), BridgedGRMF-fixed (one setting), ImputedSpectral (KNNImputer and "
    "SpectralClustering), MeanMiniBatch (means and MiniBatchKMeans); NEMO, PIMVC and EEIMVC of the extra rivals.",
)
@click.option(
    "--missing-rate",
    type=click.FloatRange(0, 0.5),
    default=0.25,
    show_default=True,
    help="Share of every view that is missing; at 0.5 no sample has both, at 0.25 half of them.",
)
@click.option("--memory", is_flag=True, help="Also the largest memory in every phase; costs a little time.")
@click.option("--device", help="Where GRMF and BridgedGRMF compute, such as cuda; by default the processor.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=3600.0,
    show_default=True,
    help="Seconds after which a run is ended; larger sizes are then left out.",
)
@click.option("--processor-limit", type=click.FloatRange(1), help="The same in seconds of processor time.")
@click.option("--memory-limit", type=click.FloatRange(1), help="GB that a run may take.")
@click.option("--quick", is_flag=True, help="Few and small samples: to see whether it runs.")
def scale(
    output: Path,
    sizes: tuple[int, ...],
    methods: tuple[str, ...],
    missing_rate: float,
    memory: bool,
    device: str | None,
    time_limit: float,
    processor_limit: float | None,
    memory_limit: float | None,
    quick: bool,
) -> None:
    """Measure time by phase, memory, recall and quality at growing numbers of samples.

    The data are made: two views of 240 and 76 features in 10 groups, float32, rows missing at random. Every run has a
    process of its own; sizes that do not fit into memory or time are said and left out.
    """
    request = ScaleRequest(
        output, sizes, methods, missing_rate, memory, device, time_limit, quick, processor_limit, memory_limit
    )
    console = new_console()
    with runs_shown(console) as progress:
        outcome = run_scale(request, progress, lambda line: print_line(console, "Left out", line))
    _print_scale(console, outcome)


def _print_scale(console: Console, outcome: ScaleOutcome) -> None:
    say_runs(console, outcome)
    for growth in outcome.growths:
        power = growth.power()
        grows = f"; time grows with n to the power of {power.exponent:.2f}" if power else ""
        last = f"{growth.sizes[-1]:,} samples in {growth.totals[-1]:.1f} s"
        print_line(console, "Growth", f"{growth.method}: {last}{grows}.")
    print_files(console, outcome.files)


@click.command(
    name="speed-page",
    short_help="Write results/speed.md.",
    epilog="Example: gapview-lab speed-page results/speed.md --speed speed --scale sizes",
)
@click.argument("page", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--speed", type=_FOLDER, help="Folder that gapview-lab speed has written.")
@click.option("--scale", type=_FOLDER, multiple=True, help="Folder that gapview-lab scale has written (repeatable).")
@click.option("--large", type=_FOLDER, help="Folder that gapview-lab large has written.")
def speed_page(page: Path, speed: Path | None, scale: tuple[Path, ...], large: Path | None) -> None:
    """Write one page of speed and size from measured results."""
    write_document(page, speed, scale, large)
    print_files(new_console(), [page])
