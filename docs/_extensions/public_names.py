"""``public-names``: what a module makes public, listed first and then described with every parameter."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

_TYPE = re.compile(r"^\w[\w, *]* : ")
_FIELD = re.compile(r"^    (\w+): ([^=#\n]+?)(?: = ([^#\n]+?))?  # (.+)$", flags=re.M)


class PublicNames(SphinxDirective):
    """Describe all of ``__all__`` of a module but modules, which have pages of their own; or only the names given."""

    required_arguments = 1
    optional_arguments = 99

    def run(self) -> list[nodes.Node]:
        """Write the directives of autosummary and autodoc, and let them do the work."""
        path, *names = self.arguments
        module = importlib.import_module(path)
        self.env.note_dependency(inspect.getsourcefile(module) or "")
        values = {name: getattr(module, name) for name in names or module.__all__}
        values = {name: value for name, value in values.items() if not inspect.ismodule(value)}
        lines = ["```{eval-rst}", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   ~{path}.{name}" for name, value in values.items() if _has_text(value)]
        for name, value in values.items():
            lines += ["", *_directive(f"{path}.{name}", value)]
        return self.parse_text_to_nodes("\n".join([*lines, "```"]))


def _has_text(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def _directive(path: str, value: Any) -> list[str]:
    if inspect.isclass(value):
        options = ["show-inheritance:"] if issubclass(value, Exception) else ["members:", "inherited-members: object"]
        return [f".. autoclass:: {path}", *(f"   :{option}" for option in options)]
    if inspect.isfunction(value):
        return [f".. autofunction:: {path}"]
    return [f".. py:data:: {path}", f"   :value: {value!r}"]


def tell_fields(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Describe the fields of a plain record by the comments that stand behind them in its source."""
    if what != "class" or not dataclasses.is_dataclass(value):
        return
    if any(line.strip() in ("Parameters", "Attributes") for line in lines):
        return
    known = {field.name for field in dataclasses.fields(value)}
    section = ["Attributes", "----------"]
    for field, kind, default, comment in _FIELD.findall(inspect.getsource(value)):
        if field in known:
            section.append(f"{field} : {kind}" + (f", default={default}" if default else ""))
            section.append(f"    {comment[:1].upper()}{comment[1:]}.")
    at = next((i for i, line in enumerate(lines) if line.strip() == "Examples"), len(lines))
    lines[at:at] = ["", *section, ""]


def take_text_as_it_is(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Keep names such as ``n_iter_`` in types, and bars around numbers, from being read as markup."""
    for i, line in enumerate(lines):
        text = line
        if _TYPE.match(text):
            name, kind = text.split(" : ", 1)
            text = f"{name} : " + re.sub(r"(?<=\w)_(?!\w)", r"\_", kind)
        lines[i] = text if "`" in text[: text.find("|") + 1] else text.replace("|", r"\|", 1)


def is_of_others(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out members that scikit-learn has made and describes."""
    return True if str(getattr(value, "__module__", "")).startswith("sklearn") else None


def setup(app: Any) -> dict[str, bool]:
    """Register the directive, and the fields before docstrings are read as sections."""
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-process-docstring", tell_fields, priority=300)
    app.connect("autodoc-process-docstring", take_text_as_it_is, priority=400)
    app.connect("autodoc-skip-member", is_of_others)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
