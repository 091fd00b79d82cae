"""The command line: the group of all commands, and how errors and interruptions end."""

from __future__ import annotations

import click

from .. import __version__
from ..errors import GapviewError
from .cluster import cluster, demo
from .completion import completion
from .console import command_words, printable, signals_interrupt
from .models import info, markers, predict, recover, report

_MOVED = {"reproduce": "reproduce", "bench": "--help", "quality": "league", "speed": "speed", "scale": "scale"}


class _GapviewGroup(click.Group):
    """Prints errors of the library as one plain message, with exit code 1."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        context.obj = tuple(arguments)  # as they were typed, for the record of a run
        return super().parse_args(context, arguments)

    def invoke(self, context: click.Context) -> object:
        try:
            with signals_interrupt():
                return super().invoke(context)
        except GapviewError as error:
            raise click.ClickException(printable(command_words(_with_notes(str(error), error)))) from None
        except MemoryError as error:
            text = "There is not enough memory for this. Leave out features or samples, or use a larger machine."
            raise click.ClickException(printable(_with_notes(text, error))) from None
        except KeyboardInterrupt as error:
            none = "Nothing was written, and nothing is left behind; run the same command again to start again."
            noted = _with_notes("", error).strip()
            click.echo(printable(f"Stopped. {noted or none}"), err=True)
            raise SystemExit(getattr(error, "exit_code", 130)) from None


def _with_notes(text: str, error: BaseException) -> str:
    """Return a text with the notes of an error."""
    return " ".join([text, *getattr(error, "__notes__", [])])


@click.group(
    "gapview",
    cls=_GapviewGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="To start: gapview cluster, without arguments, shows how; gapview demo clusters an embedded example.",
)
@click.version_option(__version__, prog_name="gapview")
def main() -> None:
    """Group samples described by several feature sets when many samples lack some of them."""


for _command in (cluster, predict, recover, markers, report, info, demo, completion):
    main.add_command(_command)


@click.pass_context
def _name_lab_command(context: click.Context, words: tuple[str, ...]) -> None:
    """Print the command of gapview-lab to use instead, and exit with code 2."""
    old = [str(context.info_name), *[word for word in words if word in _MOVED][:1]]
    command = f"`gapview-lab {_MOVED[old[-1]]}` (in the lab/ folder of the repository)"
    click.echo(f"`gapview {' '.join(old)}` is now {command}.", err=True)
    raise SystemExit(2)


for _name in ("reproduce", "bench"):
    _words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
    _settings = {"ignore_unknown_options": True, "help_option_names": []}
    main.add_command(click.Command(_name, _settings, _name_lab_command, [_words], hidden=True))
