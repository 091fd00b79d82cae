"""``commands``: every command of a click program, with its options as its own ``--help`` says them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Commands(SphinxDirective):
    """Describe ``module:name``, a click command or group, and all commands below it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make a section of every command."""
        module, _, name = self.arguments[0].partition(":")
        loaded = importlib.import_module(module)
        self.env.note_dependency(inspect.getsourcefile(loaded) or "")
        program = getattr(loaded, name)
        context = click.Context(program, info_name=module.partition(".")[0])
        return [self._section(command, within) for command, within in _walk(program, context)]

    def _section(self, command: click.Command, context: click.Context) -> nodes.section:
        path = context.command_path
        section = nodes.section(ids=[nodes.make_id(path)], names=[path])
        section += nodes.title("", path)
        section += [nodes.paragraph("", " ".join(part.split())) for part in (command.help or "").split("\n\n")]
        section += _literal(" ".join([path, *command.collect_usage_pieces(context)]))
        records = [parameter.get_help_record(context) for parameter in command.params]
        if not isinstance(command, click.Group):
            section += nodes.definition_list("", *(_option(*record) for record in records if record))
        if command.epilog:
            section += nodes.paragraph("", "Example:")
            section += _literal(command.epilog.removeprefix("Example: "))
        self.state.document.note_implicit_target(section)
        return section


def _walk(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        groups_last = sorted(command.commands.items(), key=lambda item: (isinstance(item[1], click.Group), item[0]))
        for name, below in groups_last:
            if not below.hidden:
                yield from _walk(below, click.Context(below, info_name=name, parent=context))


def _option(names: str, text: str) -> nodes.definition_list_item:
    term = nodes.term("", "", nodes.literal("", names.replace("|", " | ") if len(names) > 60 else names))
    return nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", " ".join(text.split()))))


def _literal(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="text")


def setup(app: object) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
