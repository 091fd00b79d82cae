"""``python -m gapview.experiments.speed docs/speed.md --speed FOLDER --scale FOLDER``: write the document."""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import GapviewError
from ._document import write_document

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(epilog="Example: python -m gapview.experiments.speed docs/speed.md --speed results --scale sizes")
@click.argument("document", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--speed", type=_FOLDER, help="Folder that gapview bench speed has written.")
@click.option("--scale", type=_FOLDER, multiple=True, help="Folder that gapview bench scale has written (repeatable).")
def main(document: Path, speed: Path | None, scale: tuple[Path, ...]) -> None:
    """Write one document of speed and size from results on disk."""
    try:
        write_document(document, speed, scale)
    except GapviewError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Wrote     {document}")


if __name__ == "__main__":
    main()
