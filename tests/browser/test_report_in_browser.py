"""The report in a real browser: it runs without a fault, on any screen and on paper, and names stay names."""

from __future__ import annotations

import csv
import re
from xml.etree import ElementTree

import pytest

EVIL = "<script>alert(1)</script>"
BREAKING = "</script><img src=x onerror=alert(2)>"
STAGE = ".scatter-stage canvas"

# Contrast of every piece of text with the colour behind it
CONTRASTS = """(() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => parts(color).slice(0, 3).map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, k) => sum + one * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (parts(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll("body *")]
    .filter((one) => !one.closest("svg, script") && [...one.childNodes].some((c) => c.nodeType === 3 && c.data.trim()))
    .filter((one) => one.offsetWidth > 1 && !one.disabled)
    .map((one) => {
      const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => x - y);
      return [(b + 0.05) / (a + 0.05), one.tagName, one.textContent.slice(0, 40)];
    });
})()"""


def test_it_opens_without_a_fault_and_asks_for_nothing(page, report):
    assert page.console() == []
    asked = [url for url in page.requests() if not url.startswith(("chrome:", "data:"))]
    assert asked == [report.as_uri()]
    assert page.ask("document.title") == f"A {EVIL} report"


def test_markup_in_names_is_text(page):
    page.find("input[type=search]").send_keys(EVIL, "\n")
    page.wait("!document.querySelector('.scatter-tip').hidden")
    assert page.tip()["Sample"] == EVIL
    assert EVIL in page.find(".scatter-state").text
    page.find("input[type=search]").clear()
    page.find("input[type=search]").send_keys(BREAKING, "\n")
    assert page.tip()["Sample"] == BREAKING
    assert page.all("img, i, b, iframe") == []
    assert len(page.all("script")) == 2
    assert page.console() == []


@pytest.mark.parametrize("opened", [False, True])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(browser, report, opened):
    browser.open_report(report, width=390, height=844, mobile=True)
    browser.ask("document.querySelectorAll('details').forEach((one) => { one.open = arguments[0]; })", opened)
    assert browser.ask("document.documentElement.scrollWidth") == 390
    assert browser.ask("document.querySelector(arguments[0]).getBoundingClientRect().right", STAGE) <= 390
    sizes = browser.ask("[...document.querySelectorAll('.scatter-tools button')].map((b) => b.offsetHeight)")
    assert min(sizes) >= 40  # a finger hits them


def test_no_column_of_a_table_is_cut_off_on_a_phone(browser, report):
    browser.open_report(report, width=390, height=844, mobile=True)
    browser.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    outside = """[...document.querySelectorAll('td, tbody th')].filter((cell) => {
      const { left, right, width } = cell.getBoundingClientRect();
      return width && (left < 0 || right > 390);
    }).map((cell) => cell.textContent)"""
    assert browser.ask(outside) == []
    assert browser.ask("document.querySelectorAll('td').length") > 100
    heads = "[...document.querySelectorAll('.stacked thead')].map((head) => head.getBoundingClientRect().height)"
    assert max(browser.ask(heads)) <= 1  # their texts are in the cells
    unnamed = "[...document.querySelectorAll('.stacked tbody td')].filter((cell) => !cell.dataset.label).length"
    assert browser.ask(unnamed) == 0


def test_a_dark_page_has_dark_colours_and_paper_is_light(browser, report):
    browser.open_report(report)
    signs = browser.signs()
    assert signs[0][0] in browser.colours()
    browser.dark(True)  # while it is open
    browser.state()
    assert signs[0][1] in browser.colours()
    assert signs[0][0] not in browser.colours()
    red, green, blue = map(int, re.findall(r"\d+", browser.ask("getComputedStyle(document.body).backgroundColor"))[:3])
    assert max(red, green, blue) < 60
    browser.ask("window.dispatchEvent(new Event('beforeprint'))")
    printed = browser.find(".scatter-stage svg").get_attribute("outerHTML")
    assert signs[0][0] in printed
    assert signs[0][1] not in printed
    assert printed.count("<path") >= 150
    browser.ask("window.dispatchEvent(new Event('afterprint'))")
    assert browser.all(".scatter-stage svg") == []
    browser.state()
    assert signs[0][1] in browser.colours()
    assert [entry for entry in browser.console() if "getImageData" not in entry] == []  # that is these tests' own


def test_every_figure_is_saved_as_png_and_svg(page):
    buttons = page.all("[data-save=png], [data-save=svg], [data-do=png], [data-do=svg]")
    assert len(buttons) >= 10
    for button in buttons:
        name, content = page.saved(button)
        kind = button.get_attribute("textContent").lower()
        assert re.fullmatch(r"[a-z0-9-]+\." + kind, name)
        if kind == "png":
            assert content.startswith(b"\x89PNG")
            assert max(int.from_bytes(content[k : k + 4], "big") for k in (16, 20)) == 2400
        else:
            root = ElementTree.fromstring(content)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert b"var(--" not in content
    assert page.console() == []


def test_every_table_is_saved_as_csv(page):
    page.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    buttons = page.all("[data-save=csv]")
    assert len(buttons) > 8
    for button in buttons:
        name, content = page.saved(button)
        assert name.endswith(".csv")
        rows = list(csv.reader(content.decode("utf-8-sig").splitlines()))
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1
        assert not [cell for row in rows for cell in row if re.match(r"[=@]|[-+]\D", cell)]  # formulas


def test_names_do_not_become_formulas_in_saved_tables(page):
    cells = ["=1+1", "+cmd|x", "-a", "@sum", "1,234", "−0.5", "a,b", 'say "x"', "< 0.001", "0.027"]
    page.ask(
        "document.querySelectorAll('.table td').forEach((cell, k) => { cell.textContent = arguments[0][k % 10]; })",
        cells,
    )
    _, content = page.saved(page.all("[data-save=csv]")[0])
    rows = list(csv.reader(content.decode("utf-8-sig").splitlines()))
    found = {cell for row in rows[1:] for cell in row[1:]}
    assert found <= {"'=1+1", "'+cmd|x", "'-a", "'@sum", "1234", "-0.5", "a,b", 'say "x"', "< 0.001", "0.027"}


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_controls_stand_out(browser, report, dark):
    browser.open_report(report, dark=dark)
    browser.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    found = browser.ask(CONTRASTS)
    assert len(found) > 100
    assert [one for one in found if one[0] < 4.5] == []


def test_it_prints(page):
    printed = page.pdf()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 3
    assert page.console() == []


def test_a_reader_who_hears_the_page(page):
    assert page.ask("document.documentElement.lang") == "en"
    assert page.find(STAGE).get_attribute("aria-label").startswith("Map of 150 samples in 3 groups")
    described = page.find(STAGE).get_attribute("aria-describedby")
    assert "arrows move" in page.find(f"#{described}").get_attribute("textContent")
    unnamed = page.ask(
        "[...document.querySelectorAll('button, input, canvas[tabindex], [role=region], svg[role=img]')]"
        ".filter((one) => !(one.textContent.trim() || one.getAttribute('aria-label') ||"
        " one.getAttribute('aria-labelledby') || (one.labels && one.labels.length))).length"
    )
    assert unnamed == 0
    assert page.ask(
        "[...document.querySelectorAll('table')].every((table) => table.caption && table.querySelector('th[scope]'))"
    )


def test_without_scripts_it_says_so_and_shows_the_rest(browser, report):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(report)
        assert "needs JavaScript" in browser.find(".scatter-without").text
        assert not browser.find(STAGE).is_displayed()
        assert len(browser.all("table")) > 5
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
