"""Run the examples of a page of the documentation as a reader would, and compare what they print with the page."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from gapview.commands.cli import main

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.M | re.S)
PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)]+)\)$", flags=re.M)
TOKEN = re.compile(r"\.\.\.|\s+|-?\d+(?:\.\d+)?|[^\s\d.-]+|.", flags=re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    text: str
    line: int


def blocks_of(path: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = path.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in FENCE.finditer(text)]


def pictures_of(path: Path) -> list[Path]:
    """Return the files of the pictures that a page shows."""
    return [path.parent / target for target in PICTURE.findall(path.read_text(encoding="utf-8"))]


def own_figures(path: Path) -> list[Path]:
    """Return the files of the pictures that the code of a page draws."""
    code = "".join(block.text for block in blocks_of(path) if block.kind == "python")
    return [picture for picture in pictures_of(path) if f'savefig("{picture.name}"' in code]


class Reader:
    """Does what a reader of a page would do, one block after the other, in the working folder."""

    def __init__(self, path: Path, **names: Any) -> None:
        self.path, self.names, self.shown = path, {"__name__": "__main__", **names}, ""

    def do(self, block: Block) -> None:
        """Run a block, or compare it with what the block before it printed."""
        getattr(self, block.kind)(block)

    def python(self, block: Block) -> None:
        """Run Python, or write it to the file that its first line names."""
        file = re.match(r"# file: (\S+)\n", block.text)
        if file:
            Path(file[1]).write_text(block.text, encoding="utf-8")
            return
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            exec(compile("\n" * (block.line - 1) + block.text, str(self.path), "exec"), self.names)
        self.shown = written.getvalue()

    def text(self, block: Block) -> None:
        """Compare the output of the block before."""
        self.compare(block.text, self.shown, block)

    def console(self, block: Block) -> None:
        """Run commands of gapview and compare what they print."""
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            command, _, wanted = part.partition("\n")
            program, *arguments = shlex.split(command)
            assert program == "gapview", command
            result = CliRunner().invoke(main, arguments)
            assert result.exit_code == 0, result.output
            self.compare(wanted, result.output, block)

    def compare(self, wanted: str, shown: str, block: Block) -> None:
        """Raise AssertionError if the output differs."""
        same = agrees(wanted, shown)
        assert same, f"{self.path.name}, line {block.line}: the page shows\n{wanted}\nand it is\n{shown}"


def agrees(wanted: str, shown: str) -> bool:
    """Return whether a text is what a page shows.

    On the page, ... stands for anything and white space for any white space. Numbers may differ by two units of their
    last digit, since processors round differently and a sample between two groups may change its group.
    """
    patterns, numbers = [], []
    for token in TOKEN.findall(wanted.strip()):
        if token == "...":
            patterns.append(".*?")
        elif token.isspace():
            patterns.append(r"\s+")
        elif NUMBER.fullmatch(token):
            patterns.append(rf"({NUMBER.pattern})")
            numbers.append(token)
        else:
            patterns.append(re.escape(token))
    found = re.fullmatch("".join(patterns), shown.strip(), flags=re.S)
    return found is not None and all(is_close(*pair) for pair in zip(numbers, found.groups(), strict=True))


def is_close(wanted: str, shown: str) -> bool:
    """Return whether two numbers differ by at most two units of the last digit of the first."""
    unit = 10.0 ** -len(wanted.partition(".")[2])
    return abs(float(wanted) - float(shown)) < 2.5 * unit


def run_blocks(reader: Reader, blocks: Iterable[Block]) -> None:
    """Run the blocks that a reader would run; others, such as sh and r, are skipped."""
    for block in blocks:
        if block.kind in ("python", "console", "text"):
            reader.do(block)
