"""The report in a real browser: it runs without a fault, on any screen and on paper, and names stay names."""

from __future__ import annotations

import re

import pytest

EVIL = "<script>alert(1)</script>"
BREAKING = "</script><img src=x onerror=alert(2)>"
STAGE = ".scatter-stage canvas"


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
    assert signs[0][0] in browser.colours()
    browser.ask("window.dispatchEvent(new Event('afterprint'))")
    browser.state()
    assert signs[0][1] in browser.colours()
    assert [entry for entry in browser.console() if "getImageData" not in entry] == []  # that is these tests' own


def test_it_prints(page):
    printed = page.pdf()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 3
    assert page.console() == []


def test_a_reader_who_hears_the_page(page):
    assert page.ask("document.documentElement.lang") == "en"
    assert page.find(STAGE).get_attribute("aria-label") == "Map of 150 samples in 3 groups"
    described = page.find(STAGE).get_attribute("aria-describedby")
    assert "arrows move" in page.find(f"#{described}").text
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
