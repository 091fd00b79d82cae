"""The documentation site: every example on it runs and shows what it says, and it builds without a warning."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest
from page_runner import Reader, agrees, blocks_of, own_figures, pictures_of, run_blocks
from test_contract import problem  # noqa: F401

import gapview
from gapview.commands.cli import main

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS.parent / "results"
needs_results = pytest.mark.skipif(not RESULTS.is_dir(), reason="measured results are in the repository only")
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.is_relative_to(DOCS / "api"))
NEEDS = {
    "start": ["pandas", "jinja2"],
    "report": ["jinja2", "lifelines"],
    "scale": ["faiss"],
    "omics": ["pandas", "anndata", "jinja2"],
    "colorectal-cancer": ["pandas", "jinja2", "lifelines"],
    "kidney-cancer": ["pandas", "matplotlib"],
    "blood-cells": ["mudata", "jinja2", "matplotlib", "sknetwork"],
    "breast-cancer": ["pandas", "matplotlib"],
    "gallery": ["matplotlib"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield tmp_path
    sys.modules.pop("similar_to", None)


WITH_EXAMPLES = [path for path in PAGES if any(block.kind in ("python", "console") for block in blocks_of(path))]


def is_on_real_data(path):
    return any(re.search(r"\bfetch_\w+\(\)", block.text) for block in blocks_of(path) if block.kind == "python")


def case(path):
    marks = [pytest.mark.data, pytest.mark.slow] if is_on_real_data(path) else []
    return pytest.param(path, id=str(path.relative_to(DOCS)), marks=marks)


@pytest.mark.parametrize("path", [case(path) for path in WITH_EXAMPLES])
def test_the_examples_of_a_page_run_and_show_what_it_says(path, folder):
    for package in NEEDS.get(path.stem, []):
        pytest.importorskip(package)
    if is_on_real_data(path) and not os.environ.get("GAPVIEW_DATA"):
        pytest.skip("GAPVIEW_DATA is not set")
    run_blocks(Reader(path), blocks_of(path))
    for picture in own_figures(path):
        assert size_of(folder / picture.name) == size_of(picture), f"{picture.name}: run make tutorials"


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("3 groups, p = 0.05; ARI 0.68\n [0.5  -1.20]", True),
        ("3 groups,  p = 0.05; ARI 0.70 [0.6 -1.22]", True),  # the last digits
        ("3 groups, p = 0.05; ARI 0.71 [0.5 -1.20]", False),
        ("3 groups, p = 0.05; ARI 0.68 [0.5 1.20]", False),
        ("6 groups, p = 0.05; ARI 0.68 [0.5 -1.20]", False),
        ("3 groups, p = 0.05; NMI 0.68 [0.5 -1.20]", False),
        ("3 groups, p = 0.05; ARI 0.68 [0.5 -1.20] and more", False),
    ],
)
def test_a_page_may_differ_in_the_last_digits_alone(shown, same):
    assert agrees("3 groups, ... ARI 0.68\n[0.5 -1.20]\n", shown) == same


def size_of(picture):
    """Return width and height of a PNG, which are in its header."""
    return picture.read_bytes()[16:24]


REAL = [path for path in WITH_EXAMPLES if is_on_real_data(path)]


GALLERY = DOCS / "gallery.md"


@pytest.mark.parametrize("path", [*REAL, GALLERY], ids=lambda path: path.stem)
def test_figures_of_a_page_are_drawn_by_it_and_small(path):
    pictures = own_figures(path)
    assert len(pictures) >= 2
    for picture in pictures:
        assert picture.stat().st_size <= 100_000, picture.name


def test_every_figure_is_shown():
    shown = {picture.resolve() for path in [*REAL, GALLERY] for picture in own_figures(path)}
    folders = [DOCS / "images" / name for name in ("tutorials", "gallery")]
    assert shown == {picture.resolve() for folder in folders for picture in folder.iterdir()}


def test_the_pages_that_should_have_examples_have_them():
    found = {path.stem for path in WITH_EXAMPLES}
    wanted = {"start", "gallery", "omics", "images-and-text", "scale", "methods", "how-it-works", "adding-a-method"}
    assert wanted <= found
    assert {path.stem for path in REAL} == {"colorectal-cancer", "kidney-cancer", "blood-cells", "breast-cancer"}


@pytest.mark.slow
def test_the_page_for_r_runs_in_r(folder, monkeypatch):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    if subprocess.run(["Rscript", "-e", "library(reticulate)"], capture_output=True, check=False).returncode:
        pytest.skip("reticulate is not installed")
    monkeypatch.setenv("GAPVIEW_PYTHON", sys.executable)
    blocks = blocks_of(DOCS / "guide" / "from-r.md")
    (folder / "page.R").write_text("\n".join(block.text for block in blocks if block.kind == "r"), encoding="utf-8")
    done = subprocess.run(["Rscript", "page.R"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    wanted = " ".join(" ".join(block.text.split()) for block in blocks if block.kind == "text")
    assert " ".join(done.stdout.split()) == wanted


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("```python\nprint(1)\n```\n```text\n4\n```\n", r"line 5: the page shows\s+4"),
        ("```console\n$ gapview --version\nother\n```\n", r"the page shows\s+other"),
        ("```python\nraise ValueError('said')\n```\n", "said"),
        ("```console\n$ gapview nonsense\n```\n", "No such command"),
    ],
)
def test_a_page_that_is_wrong_is_found(tmp_path, page, wrong):
    path = tmp_path / "page.md"
    path.write_text(page)
    with pytest.raises((AssertionError, ValueError), match=wrong):
        run_blocks(Reader(path), blocks_of(path))


@pytest.mark.data
def test_the_omics_tutorial_runs_on_the_real_tumours(dataset, folder):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("anndata")
    tumours = dataset("tcga_brca_mixomics")
    names = [f"T{i:03d}" for i in range(tumours.views.n_samples)]
    frames = {}
    for k, (name, matrix) in enumerate(zip(("rna", "mirna", "protein"), tumours.views.matrices, strict=True)):
        ids = [names[i] for i in tumours.views.rows(k)]
        frames[name] = pd.DataFrame(matrix, index=ids, columns=[f"{name}{j}" for j in range(matrix.shape[1])])
    path = DOCS / "tutorials" / "omics.md"
    reader = Reader(path, pd=pd, frames=frames, kind=tumours.target, tumours=names)
    taken = [block for block in blocks_of(path)[1:] if block.kind == "python" and "complete[" not in block.text]
    run_blocks(reader, taken)
    assert len(taken) > 8
    assert len(frames["protein"]) == 150


def contract_tests():
    contract = importlib.import_module("test_contract")
    for name, value in vars(contract).items():
        asked_of_all = name.startswith("test_") and "samples_that_say_nothing" not in name  # that one is for codes
        if asked_of_all and set(inspect.signature(value).parameters) == {"name", "made"}:
            yield pytest.param(value, id=name.removeprefix("test_"))


@pytest.mark.parametrize("test", list(contract_tests()))
@pytest.mark.filterwarnings("ignore:The neighbour graph of the filled:gapview.errors.GapviewWarning")
def test_the_worked_example_keeps_the_contract(test, problem, folder, monkeypatch):  # noqa: F811
    file = next(block for block in blocks_of(DOCS / "guide" / "adding-a-method.md") if "# file:" in block.text)
    Reader(DOCS).do(file)
    method = importlib.import_module("similar_to").SimilarTo
    monkeypatch.setitem(inspect.unwrap(test).__globals__["METHODS"], "SimilarTo", (method(3), None))
    test("SimilarTo", problem)


def commands_of(path):
    for block in blocks_of(path):
        if block.kind in ("sh", "console"):
            yield from commands_in(block)


def commands_in(block):
    for line in block.text.splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] == ["gapview"]:
            yield words[1:]


@pytest.mark.parametrize("path", [*PAGES, DOCS.parent / "README.md"], ids=lambda path: path.name)
def test_commands_that_are_too_long_to_run_are_spelled_right(path):
    for words in commands_of(path):
        command = main
        while hasattr(command, "commands") and words and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known | {"--help", "-h", "--version"}, words


@needs_results
@pytest.mark.parametrize("path", [*PAGES, *RESULTS.glob("*.md")], ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text()):
        assert target.startswith("http") or (path.parent / target).exists(), target


class Fetched(HTMLParser):
    """Collects what a browser fetches to show a page."""

    def __init__(self, text):
        super().__init__()
        self.places = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "modulepreload"):
            self.places.append(given["href"])
        if tag in ("script", "img", "iframe", "source", "object") and "src" in given:
            self.places.append(given["src"])


def test_the_site_builds_without_a_warning_and_is_whole(tmp_path):
    """All that is asked of the built site in one test, since workers would build it once for each."""
    for package in ("sphinx", "myst_parser", "furo", "numpydoc"):
        pytest.importorskip(package, reason=f"the site needs {package}: pip install 'gapview[docs]'")
    site, kept = tmp_path / "site", tmp_path / "kept"
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "-d", kept, DOCS, site]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    demand_nothing_fetched(site)
    demand_every_public_name(site)
    demand_every_parameter(site)
    demand_every_command(site)
    demand_notebooks(site)
    demand_search(site)


def demand_nothing_fetched(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))  # one for each source, and those of the index and the search
    for page in pages:
        for place in Fetched(page.read_text()).places:
            assert not re.match(r"https?:|//", place), f"{page.name} fetches {place}"
    styles = [path for path in site.rglob("*.css") if re.search(r"url\(['\"]?(https?:|//)", path.read_text())]
    assert not styles
    formulas = (site / "guide" / "how-it-works.html").read_text()
    assert formulas.count("<math") > 20
    assert "MathJax" not in formulas


def named(path):
    """Find what a dotted path names."""
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        with contextlib.suppress(ImportError):
            return functools.reduce(getattr, parts[n:], importlib.import_module(".".join(parts[:n])))
    raise AssertionError(path)


def described(site):
    """Yield every name in the API of the site, and what is said of it."""
    for page in (site / "api").glob("*.html"):
        pieces = re.split(r'<dt class="sig sig-object py" id="([\w.]+)">', page.read_text())
        yield from zip(pieces[1::2], pieces[2::2], strict=True)


def demand_every_public_name(site):
    found = {path for path, _ in described(site)}
    public = [gapview, *(value for name in gapview.__all__ if inspect.ismodule(value := getattr(gapview, name)))]
    for module in (*public, gapview.trust, importlib.import_module("gapview.plots")):
        names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
        assert {f"{module.__name__}.{name}" for name in names} <= found, module.__name__


def demand_every_parameter(site):
    n_asked = 0
    for path, text in described(site):
        value = named(path)
        if inspect.isfunction(value) or (inspect.isclass(value) and inspect.isfunction(value.__init__)):
            wanted = set(inspect.signature(value).parameters) - {"self", "args", "kwargs"}
            said = {
                name.strip(" *") for part in re.findall(r"<dt><strong>(.*?)</strong>", text) for name in part.split(",")
            }
            assert wanted <= said, f"{path}: nothing is said of {', '.join(sorted(wanted - said))}"
            n_asked += len(wanted)
    assert n_asked > 300


def demand_every_command(site):
    text = (site / "guide" / "command-line.html").read_text()
    for name, command in main.commands.items():
        if command.hidden:
            continue
        assert f'id="gapview-{name}"' in text
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.opts[-1] in text, f"{name} {parameter.opts}"


def demand_notebooks(site):
    for page in (DOCS / "tutorials").glob("*.md"):
        text = (site / "tutorials" / f"{page.stem}.ipynb").read_text()
        assert f'href="{page.stem}.ipynb"' in (site / "tutorials" / f"{page.stem}.html").read_text()
        cells = json.loads(text)["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        blocks = blocks_of(page)
        wanted = [block.text.rstrip() for block in blocks if block.kind == "python"]
        assert [one for one in code if not one.startswith("!")] == wanted
        assert "".join(code).count("!gapview ") == sum(len(list(commands_in(b))) for b in blocks if b.kind == "console")
        assert text.count('"image/png"') == len(pictures_of(page))


def demand_search(site):
    """Check that the search of the site finds pages for what users look for, in the words that they use."""
    searched = importlib.import_module("sphinx.search.en").SearchEnglish({})
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    for wanted, page in {
        "transpose": "guide/reading",
        "batch effect": "guide/batches",
        "UMAP": "guide/results",
        "Excel": "guide/reading",
        "Seurat": "guide/coming-from",
        "10x": "guide/reading",
        "million": "guide/scale",
        "completion": "guide/command-line",
    }.items():
        found = [pages_with(searched.stem(word.lower()), index) for word in wanted.split()]
        assert page in set.intersection(*found), wanted


def pages_with(stem, index):
    """Return the names of the pages that the index of the search lists for the stem of a word."""
    places = [index[part].get(stem, []) for part in ("terms", "titleterms")]
    numbers = {one for place in places for one in (place if isinstance(place, list) else [place])}
    return {index["docnames"][number] for number in numbers}
