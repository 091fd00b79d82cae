"""Commands that are part of ``gapview-lab``: they print the command to use instead."""

from __future__ import annotations

import click

__all__ = ["bench", "reproduce"]

_BENCH = {"quality": "league", "speed": "speed", "scale": "scale"}
_ANY = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(hidden=True, context_settings=_ANY)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def reproduce(words: tuple[str, ...]) -> None:
    """Print the new name of the command, and exit with code 2."""
    _refer("reproduce", "reproduce")


@click.command(hidden=True, context_settings=_ANY)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def bench(words: tuple[str, ...]) -> None:
    """Print the new name of the command, and exit with code 2."""
    known = [word for word in words if word in _BENCH][:1]
    _refer(" ".join(["bench", *known]), _BENCH[known[0]] if known else "--help")


def _refer(old: str, new: str) -> None:
    click.echo(f"`gapview {old}` is now `gapview-lab {new}` (in the lab/ folder of the repository).", err=True)
    raise SystemExit(2)
