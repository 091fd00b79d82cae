"""The command line of the lab."""

from __future__ import annotations

import click

from gapview import __version__
from gapview.commands.console import printable
from gapview.errors import GapviewError

from .cluster.commands import cluster
from .league.bridged import bridged
from .league.choices import choices
from .league.command import league
from .league.encoder import encoder
from .league.refinement import refinement
from .omics.command import omics
from .paper.command import reproduce
from .paper.handwritten import handwritten
from .reliability.commands import reliability
from .speed.commands import scale, speed, speed_page
from .speed.device_costs import device_costs
from .speed.large import large
from .speed.reading import reading
from .speed.versions import versions
from .trust.command import trust

__all__ = ["main"]


class _LabCommands(click.Group):
    """Group that turns errors of gapview into one message and exit code 1."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except GapviewError as error:
            raise click.ClickException(printable(str(error))) from None
        except MemoryError:
            raise click.ClickException("There is not enough memory for this.") from None
        except KeyboardInterrupt:
            click.echo("Stopped. Finished runs are kept; run the same command again to resume.", err=True)
            raise SystemExit(130) from None


@click.group(cls=_LabCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gapview-lab")
def main() -> None:
    """Run experiments on gapview: the paper, the league, speed, scale, reliability, clusters, trust, omics."""


for _command in (
    bridged,
    choices,
    cluster,
    device_costs,
    encoder,
    handwritten,
    large,
    league,
    omics,
    reading,
    refinement,
    reliability,
    reproduce,
    scale,
    speed,
    speed_page,
    trust,
    versions,
):
    main.add_command(_command)
