"""``gapview-lab device-costs``: count what a fit asks of a device, without one."""

from __future__ import annotations

import warnings
from typing import Any

import click
import numpy as np

from gapview.commands.console import new_console, print_line
from gapview.datasets import make_views
from gapview.errors import MissingExtraError
from gapview.utils.types import Array

from .made import N_CLUSTERS
from .scale_runs import METHODS, RIVALS

__all__ = ["device_costs"]

_WIDTHS = (240, 76)
_MISSING = 0.25


@click.command(
    name="device-costs",
    short_help="Count what a fit asks of a device, without one.",
    epilog="Example: gapview-lab device-costs --method BridgedGRMF --samples 30000",
)
@click.option(
    "--method",
    type=click.Choice([name for name in METHODS if name not in RIVALS]),
    default="BridgedGRMF",
    show_default=True,
    help="The method.",
)
@click.option("--samples", type=click.IntRange(100), default=30_000, show_default=True, help="Number of samples.")
@click.option(
    "--shrink",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Divide blocks of a fixed size by this number: memory is then that of so many times as many samples.",
)
@click.option("--budget", help="Memory of the device, such as 100MB: what does not fit stays on the host.")
def device_costs(method: str, samples: int, shrink: int, budget: str | None) -> None:
    """Count kernels, waits of the host, copies and memory of a fit by phase, on tensors on the processor.

    The data are those of ``scale``: two views of 240 and 76 features in 10 groups, float32, a quarter of every view
    missing. Without ``--budget``, the given arrays lie on the device, rows of NaN included.
    """
    try:
        from .device_meter import metered  # imports torch
    except ImportError:
        raise MissingExtraError("torch", "gpu", "Counting what a device does") from None
    given = _arrays(samples)
    model = METHODS[method](N_CLUSTERS, random_state=0, device="cpu", memory_budget=budget)
    n_bytes = 4 * samples * sum(_WIDTHS)
    with warnings.catch_warnings(), metered(shrink) as meter:
        warnings.simplefilter("ignore")
        model.fit(given if budget else meter.placed(given))
    console = new_console()
    for phase in meter.peaks:
        counts = f"{meter.kernels[phase]:,} kernels, {meter.waits[phase]:,} waits, {meter.uploads[phase]:,} copies"
        print_line(console, "Phase", f"{phase}: {counts}, memory {meter.peaks[phase] / n_bytes:.2f} times the input")
    totals = (sum(own.values()) for own in (meter.kernels, meter.waits, meter.uploads))
    print_line(console, "Total", "{:,} kernels, {:,} waits, {:,} copies".format(*totals))
    print_line(console, "Peak", f"{meter.peak / n_bytes:.2f} times the input of {n_bytes / 1e6:,.0f} MB")


def _arrays(n_samples: int) -> list[Array]:
    """Return generated views with rows of NaN where a sample lacks one."""
    options: dict[str, Any] = {"n_clusters": N_CLUSTERS, "missing_rate": _MISSING, "dtype": "float32"}
    views = make_views(n_samples, _WIDTHS, random_state=0, **options).views
    given = []
    for k, matrix in enumerate(views.matrices):
        given.append(np.full((n_samples, matrix.shape[1]), np.nan, dtype=matrix.dtype))
        given[k][views.rows(k)] = matrix
    return given
