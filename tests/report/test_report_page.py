"""The page engine: everything escaped, well formed, self-contained, the same every time."""

from __future__ import annotations

import builtins
import re

import pytest

from gapview.errors import MissingExtraError
from gapview.report.page import (
    Cell,
    Code,
    Details,
    Drawing,
    Facts,
    Group,
    Items,
    Legend,
    Page,
    Row,
    Section,
    Table,
    Text,
    render,
)
from gapview.report.style import SERIES, figure_bytes, inline_svg, new_figure
from pages import Outline, check_page

EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture
def figure():
    with new_figure(4, 3) as drawn:
        axes = drawn.subplots()
        for place, series in enumerate(SERIES):
            axes.plot([0, 1, 2], [place, place + 1, place], label=f"series {place}", **series.options())
        axes.set_title(EVIL)
        axes.legend()
    return drawn


def everything(figure, word=EVIL):
    cell = Cell(word, word, word, "up", best=True, tip=word)
    rows = (Row((word, "first"), (cell, word)), Row((word, "second"), (Cell("2"), "3")))
    blocks = (
        Text(word),
        Text(word, quiet=True),
        Items((word, (word, word))),
        Facts(((word, word),)),
        Code(word),
        Legend((("up", word),)),
        Table(word, (word, "", "b", "c"), (Group(rows, word, word),), word, (word,), numbers=True),
        Drawing(figure, word, word, word),
        Details(word, (Text(word), Section(word, (Text(word),)))),
    )
    inner = Section(word, blocks)
    return Page(word, (word, word), (Section(word, (inner, inner)), Section(word, ())), word)


def test_everything_is_escaped_in_every_kind_of_block(figure):
    text = render(everything(figure))
    outline = check_page(text)
    assert "<script" not in text
    assert "".join(outline.text).count("<script>alert(1)</script>") > 40


def test_the_same_page_gives_the_same_text(figure):
    assert render(everything(figure)) == render(everything(figure))


def test_a_section_or_figure_may_stand_twice(figure):
    section = Section("Twice", (Drawing(figure, "a", "b"), Text("x")))
    outline = check_page(render(Page("t", (), (section, section))))
    assert {"twice", "twice-2"} <= set(outline.ids)
    assert outline.tags.count("svg") == 2


def test_titles_without_letters_get_ids_too():
    outline = check_page(render(Page("t", (), (Section("λ", ()), Section("!", ()), Section("content", ())))))
    assert {"section", "section-2", "content-2"} <= set(outline.ids)


def test_equal_leading_headers_become_one():
    rows = (Row(("ACC", "a"), ("1",)), Row(("ACC", "b"), ("2",)), Row(("NMI", "a"), ("3",)))
    text = render(Page("t", (), (Section("s", (Table("c", ("x", "y", "z"), (Group(rows),)),)),)))
    assert text.count(">ACC</th>") == 1
    assert '<th scope="rowgroup" rowspan="2">ACC</th><th scope="row">a</th>' in text
    assert '<th scope="rowgroup">NMI</th>' in text
    assert text.count('scope="col"') == 3


def test_equal_last_headers_stay_apart():
    rows = (Row(("same",), ("1",)), Row(("same",), ("2",)))
    text = render(Page("t", (), (Section("s", (Table("c", ("x", "y"), (Group(rows),)),)),)))
    assert text.count(">same</th>") == 2


def test_a_page_can_be_walked_with_the_keyboard_and_read_aloud(figure):
    text = render(everything(figure, "word"))
    outline = check_page(text)
    assert outline.links[0] == "#content"
    assert outline.tags.count("main") == outline.tags.count("h1") == 1
    assert outline.tags.count("caption") == outline.tags.count("table")
    assert text.count('role="img" aria-label="word"') == outline.tags.count("svg")
    assert '<div class="scroll fits" role="region"' in text
    assert '<span class="hidden">best: </span>' in text


def test_light_dark_and_paper():
    text = render(Page("t", (), ()))
    assert text.count("@media screen and (prefers-color-scheme: dark)") == 2  # paper is always light
    assert "@media print" in text


class TestFigures:
    def test_files_are_the_same_every_time(self, figure):
        for kind in ("png", "svg"):
            assert figure_bytes(figure, kind) == figure_bytes(figure, kind)
        assert figure_bytes(figure, "png").startswith(b"\x89PNG")
        assert b"purl.org" not in figure_bytes(figure, "svg")

    def test_letters_stay_letters(self, figure):
        svg = inline_svg(figure, "label")
        assert ">series 0</text>" in svg
        assert "<script" not in svg
        assert "<style" not in svg  # it would apply to the whole page

    def test_ids_have_a_prefix_and_every_reference_leads_to_one(self, figure):
        outline = Outline(inline_svg(figure, "label", "p"))
        assert outline.ids
        assert all(name.startswith("p-") for name in outline.ids)
        svg = inline_svg(figure, "label", "p")
        targets = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
        assert targets
        assert targets <= set(outline.ids)
        assert inline_svg(figure, "one")[:200] != inline_svg(figure, "two")[:200]

    def test_colours_turn_with_the_page(self, figure):
        svg = inline_svg(figure, "label")
        for series in SERIES:
            assert f", {series.color})" in svg
            assert re.search(rf"(?<!, ){series.color}", svg) is None

    def test_the_seven_series_differ_without_colour(self):
        assert len({series.marker for series in SERIES}) == len({str(series.dashes) for series in SERIES}) == 7

    @pytest.mark.parametrize(("page", "colours"), [("#ffffff", "color"), ("#15191e", "dark")])
    def test_lines_stand_out_from_the_page(self, page, colours):
        for series in SERIES:
            assert contrast(getattr(series, colours), page) >= 3

    def test_settings_of_the_user_are_neither_used_nor_changed(self):
        import matplotlib

        with matplotlib.rc_context({"axes.grid": False, "font.size": 20, "lines.linewidth": 9}):
            with new_figure(2, 2) as drawn:
                line = drawn.subplots().plot([0, 1])[0]
            assert line.get_linewidth() == 1.5
            assert matplotlib.rcParams["font.size"] == 20


def contrast(one, other):
    def luminance(color):
        parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", ["light", "dark"])
def test_text_on_every_tone_is_readable(page):
    style = re.search(r"<style>(.*?)</style>", render(Page("t", (), ())), flags=re.S)[1]
    blocks = re.findall(r":root \{(.*?)\}", style, flags=re.S)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[0 if page == "light" else 1]))
    for tone in ("paper", "shade", "up", "up-strong", "down", "down-strong", "problem"):
        assert contrast(colours["ink"], colours[tone]) >= 4.5
    for tone in ("soft", "link"):
        assert contrast(colours[tone], colours["paper"]) >= 4.5


class TestMissingExtra:
    @pytest.fixture
    def without(self, monkeypatch):
        def block(package):
            real = builtins.__import__

            def refuse(name, *args, **more):
                if name.split(".")[0] == package:
                    raise ModuleNotFoundError(name)
                return real(name, *args, **more)

            def refuse_module(name, *args):
                raise ModuleNotFoundError(name)

            monkeypatch.setattr(builtins, "__import__", refuse)
            monkeypatch.setattr("gapview.errors.import_module", refuse_module)

        return block

    def test_matplotlib(self, without):
        without("matplotlib")
        with pytest.raises(MissingExtraError, match=r"Drawing figures needs.*gapview\[report\]"), new_figure(1, 1):
            pass

    def test_jinja2(self, without):
        without("jinja2")
        with pytest.raises(MissingExtraError, match=r"Writing pages needs the package 'jinja2'"):
            render(Page("t", (), ()))
