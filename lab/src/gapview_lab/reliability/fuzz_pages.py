"""Names that contain HTML, and a check that a report shows them as text."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from gapview import GRMF
from gapview.datasets import make_views
from gapview.report import write_clustering_report

__all__ = ["make_page", "run_page"]

MARK = "zqx"  # stands in every name that is made here, and in nothing that gapview writes
_PIECES = (
    *(
        "<script>",
        "</script>",
        "<img src=x onerror=alert(1)>",
        "</td>",
        "</svg>",
        "</title>",
        "<!--",
        "-->",
        "]]>",
        "<b>",
    ),
    *(
        '"',
        "'",
        "&",
        "&lt;",
        "&#60;script&#62;",
        "<",
        ">",
        "{{7*7}}",
        "{% raw %}",
        "$x$",
        "\\",
        "%",
        "#",
        "\n",
        "\u202e",
    ),
    *(
        "javascript:",
        "https://x.y/",
        "é",
        "😀",
        "url(x)",
        "</style>",
        "<a href='x'>",
        "=cmd()",
        "${x}",
        "`",
        "\x00",
        "\x1b",
    ),
)


def make_page(rng: random.Random) -> dict[str, Any]:
    """Make names for samples, features, views, columns of covariates, and a title."""

    def name(number: int = 0) -> str:
        return "".join(rng.choices(_PIECES, k=rng.randint(1, 4))) + f"{MARK}{number}"

    return {
        "ids": [name(number) for number in range(24)],
        "features": [[name(number) for number in range(count)] for count in (4, 3)],
        "views": [name(1), name(2)],
        "columns": [name(1), name(2)],
        "words": [name(number) for number in range(3)],
        "title": name(),
        "command": name(),
    }


@cache
def _data() -> Any:
    return make_views(24, (4, 3), n_clusters=2, missing_rate=0.3, random_state=0).views


def run_page(case: Any, folder: Path, out: Path) -> None:
    """Write the report of a model with such names, and check that none of them became a tag."""
    import pandas

    names = case.settings
    data = _data()
    ids = np.array(names["ids"], dtype=object)
    frames = {
        names["views"][k]: pandas.DataFrame(
            data.matrices[k], index=pandas.Index(ids[data.rows(k)]), columns=names["features"][k]
        )
        for k in range(2)
    }
    table = pandas.DataFrame(
        {names["columns"][0]: np.arange(24.0), names["columns"][1]: [names["words"][row % 3] for row in range(24)]},
        index=ids,
    )
    model = GRMF(2, init="data", max_iter=5, random_state=0).fit(frames)
    run = {"command": names["command"], "machine": "m", "finished": "f", "files": [names["title"]]}
    path = write_clustering_report(model, out / "report.html", covariates=table, title=names["title"], run=run)
    _Tags(path.read_text())


class _Tags(HTMLParser):
    """Parser of a page that raises an error for names inside tags and for tags that reports do not use."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self._scripts: list[str] = []
        self._in_script = False
        self.feed(text)
        self.close()
        data, script = self._scripts  # of the map, both ours
        json.loads(data)
        assert MARK not in script, "a name in a script"
        assert not re.search(r"<[^<>\"']*" + MARK, re.sub("<!--.*?-->", "", text)), "a name stands inside a tag"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Raise an error for tags and attributes that could run or load anything."""
        allowed = tag not in {"iframe", "link", "object", "img", "b"} and MARK not in tag
        assert allowed, f"the tag <{tag}>"
        if tag == "script":
            self._in_script = True
            self._scripts.append("")
        for name, value in attrs:
            allowed = not name.startswith("on") and MARK not in name
            assert allowed, f"the attribute {name}"
            if name in ("href", "src", "xlink:href"):
                assert (value or "").startswith(("#", "data:image/png;base64,")), f"a link to {value}"

    def handle_endtag(self, tag: str) -> None:
        """Record the end of a script."""
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        """Collect the scripts."""
        if self._in_script:
            self._scripts[-1] += data

    def handle_comment(self, data: str) -> None:
        """Raise an error for names that could end a comment; matplotlib writes its text into comments, too."""
        assert MARK not in data or not re.search("<|>|--", data), "a name in a comment"
