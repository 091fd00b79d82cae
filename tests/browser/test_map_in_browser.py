"""The map of the report in a real browser: it can be used by hand, key and finger."""

from __future__ import annotations

import io
import time

import numpy as np
import pandas as pd
import pytest

from gapview.report.page import Page, Section, render
from gapview.report.points import Classes, Numbers, Scatter, Sign

MAP = "figure.scatter"
STAGE = ".scatter-stage canvas"
EVIL = "<script>alert(1)</script>"
BREAKING = "</script><img src=x onerror=alert(2)>"


def test_the_pointer_shows_sample_group_confidence_and_views(page, model):
    page.keys(*"+++++n")  # near enough for the sample to stand alone
    x, y = page.chosen_at()
    expected = page.tip()
    page.keys("ESCAPE")
    assert not page.find(".scatter-tip").is_displayed()
    page.point(x, y)
    page.wait("!document.querySelector('.scatter-tip').hidden")
    assert page.tip() == expected
    i = list(model.sample_ids_).index(expected["Sample"])
    assert i == int(np.argmin(model.confidence_))
    assert expected["Group"] == f"group {model.labels_[i]}"
    assert expected["Confidence"] == f"{model.confidence_[i]:.2f}"
    having = [name for name, has in zip(model.views_.names, model.views_.mask[i], strict=True) if has]
    assert expected["Views present"] == ("all views" if len(having) == 2 else f"only {having[0]}")
    width, height = page.ask(
        "(({ clientWidth, clientHeight }) => [clientWidth, clientHeight])(arguments[0])", page.find(STAGE)
    )
    corners = [(2, 2), (width - 2, 2), (2, height - 2), (width - 2, height - 2)]
    hidden = []
    for corner in corners:  # no sample is near all of them
        page.point(*corner)
        page.state()
        hidden.append(page.ask("document.querySelector('.scatter-tip').hidden"))
    assert any(hidden)


def test_filters_by_group_and_by_gaps(page, model):
    groups, gaps = page.groups()
    signs = page.signs()
    assert page.colours()[signs[1][0]] > 20
    groups.find_elements("css selector", "input")[1].click()
    assert page.state()[2] == int((model.labels_ != 1).sum())
    assert signs[1][0] not in page.colours()
    assert "are shown" in page.find(".scatter-state").text
    gaps.find_elements("css selector", "input")[0].click()  # all views
    assert page.state()[2] == int(((model.labels_ != 1) & ~model.views_.mask.all(axis=1)).sum())
    gaps.find_element("css selector", "[data-do=none]").click()
    assert page.state()[2] == 0
    assert page.colours().keys().isdisjoint(sign[0] for sign in signs)
    page.keys("n")
    assert "no further sample" in page.find(".scatter-state").text
    for fieldset in (groups, gaps):
        fieldset.find_element("css selector", "[data-do=all]").click()
    assert page.state()[2] == 150


def test_zoom_pan_and_reset_by_hand(page):
    start = page.state()
    page.find("[data-do=in]").click()
    zoomed = page.state()
    assert zoomed[0] == pytest.approx(1.5)
    page.point(200, 200, drag_to=(80, -40))
    moved = page.state()
    assert moved[0] == zoomed[0]
    assert moved[1][0] < zoomed[1][0]  # what was left of the middle comes in sight
    assert moved[1][1] < zoomed[1][1]
    page.find("[data-do=out]").click()
    page.find("[data-do=out]").click()
    assert page.state()[0] == 1  # no further out than all there is
    page.find("[data-do=in]").click()
    page.find("[data-do=reset]").click()
    assert page.state() == start


def test_the_wheel_scrolls_the_page_until_the_map_is_meant(page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    origin = ScrollOrigin.from_element(page.find(STAGE))
    ActionChains(page.driver, duration=20).scroll_from_origin(origin, 0, 200).perform()
    assert page.state()[0] == 1
    page.find(STAGE).send_keys("")  # focus
    page.ask("document.querySelector(arguments[0]).focus()", STAGE)
    ActionChains(page.driver, duration=20).scroll_from_origin(
        ScrollOrigin.from_element(page.find(STAGE)), 0, -200
    ).perform()
    assert page.state()[0] > 1


def test_everything_works_by_the_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    start = page.state()
    page.find("[data-do=reset]").send_keys(Keys.TAB)
    assert page.ask("document.activeElement === document.querySelector(arguments[0])", STAGE)
    assert page.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"  # the focus is seen
    page.keys("+", "+")
    assert page.state()[0] == pytest.approx(2.25)
    page.keys("ARROW_LEFT", "ARROW_UP")
    moved = page.state()
    assert moved[1][0] < start[1][0]
    assert moved[1][1] > start[1][1]
    page.keys("0")
    assert page.state() == start
    page.keys("n", "n")
    second = page.tip()["Sample"]
    page.keys("n", "p")
    assert page.tip()["Sample"] == second
    assert second in page.find(".scatter-state").text  # read aloud
    assert page.find(".scatter-state").get_attribute("role") == "status"
    page.keys("s")
    assert page.ask("document.querySelector('figure.scatter').dataset.selected") == "1"
    assert page.rows()[1][0] == second
    page.groups()
    first = page.all(f"{MAP} fieldset input")[0]
    first.send_keys(" ")
    assert page.state()[2] < 150


def test_a_sample_can_be_found_by_its_name(page):
    box = page.find("input[type=search]")
    box.send_keys("S042", "\n")
    assert page.tip()["Sample"] == "s042"
    box.clear()
    box.send_keys("nobody", "\n")
    assert "No sample on the map is called “nobody”" in page.find(".scatter-state").text
    assert not page.find(".scatter-tip").is_displayed()


def test_a_finger_points(browser, report):
    browser.open_report(report, width=390, height=844, mobile=True)
    browser.keys(*"++++++n")
    x, y = browser.chosen_at()
    expected = browser.tip()
    browser.keys("ESCAPE")
    left, top = browser.ask(
        "(({ left, top }) => [left, top])(document.querySelector(arguments[0]).getBoundingClientRect())", STAGE
    )
    touch = [{"x": left + x, "y": top + y}]
    browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": touch})
    browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    browser.wait("!document.querySelector('.scatter-tip').hidden")
    assert browser.tip() == expected


def test_a_card_selects_its_group(page, model):
    cards = page.all("article.card button")
    assert [card.get_attribute("aria-pressed") for card in cards] == ["false"] * 3
    cards[1].click()
    signs = page.signs()
    assert page.find(MAP).get_attribute("data-selected") == str(int((model.labels_ == 1).sum()))
    assert [card.get_attribute("aria-pressed") for card in cards] == ["false", "true", "false"]
    page.state()
    assert signs[1][0] in page.colours()
    assert signs[0][0] not in page.colours()  # the others fade
    heads, *rows = page.rows()
    assert heads == ["Sample", "Group", "Confidence", "Views present"]
    assert {row[1] for row in rows} == {"group\N{NO-BREAK SPACE}1"}
    cards[1].click()
    assert page.find(MAP).get_attribute("data-selected") == "0"
    page.state()
    assert signs[0][0] in page.colours()


def test_a_frame_selects_the_samples_inside(page, model):
    page.keys(*"+++++n")
    x, y = page.chosen_at()
    sample = page.tip()["Sample"]
    page.click("select")
    page.point(x - 25, y - 25, drag_to=(50, 50))
    n_selected = int(page.find(MAP).get_attribute("data-selected"))
    rows = page.rows()[1:]
    assert sample in [row[0] for row in rows]
    assert 1 <= n_selected < 150
    assert f"{n_selected} selected" in page.find(".scatter-state").text
    assert page.find(".scatter-rows caption").text.endswith(
        f"{n_selected} selected sample{'s' if n_selected > 1 else ''}"
    )
    page.find(".scatter-rows tbody button").click()  # leads back into the map
    assert page.tip()["Sample"] == rows[0][0]
    page.click("clear")
    assert page.find(MAP).get_attribute("data-selected") == "0"
    page.click("shown")
    assert page.find(MAP).get_attribute("data-selected") == "150"


def test_the_table_has_all_samples_in_pages(page, model):
    order = [str(model.sample_ids_[i]) for i in np.argsort(model.confidence_, kind="stable")]
    seen = []
    for _ in range(15):
        seen += [row[0] for row in page.rows()[1:]]
        if page.find("[data-do=on]").is_enabled():
            page.click("on")
    assert seen == order
    assert not page.find("[data-do=on]").is_enabled()
    name, content = page.saved(page.find("[data-do=csv]"))
    table = pd.read_csv(io.BytesIO(content))
    assert name == "samples.csv"
    assert table["Sample"].tolist() == order
    labels = dict(zip(map(str, model.sample_ids_), model.labels_, strict=True))
    assert [int(group[-1]) for group in table["Group"]] == [labels[name] for name in order]
    assert table["age"].between(30, 90).all()


def test_points_have_the_colours_of_what_is_chosen(page):
    page.color_by("age")
    legend = page.find(".scatter-legend")
    assert legend.text.splitlines()[0] == "age"
    assert len(legend.find_elements("css selector", "canvas")) == 5
    page.state()
    assert {"#0b5fa5", "#c4400b"} <= page.colours().keys()  # the ends of the scale
    page.keys("n")
    assert 30 < float(page.tip()["age"]) < 90
    page.color_by(BREAKING)
    assert {EVIL, "low", "unknown"} <= set(legend.text.splitlines())
    page.color_by("Views present")
    assert "all views" in legend.text
    page.color_by("Group")
    assert not legend.is_displayed()


@pytest.mark.parametrize("n", [20_000, 50_000])
def test_many_points_follow_the_hand(browser, tmp_path, n):
    state = np.random.RandomState(0)
    groups = Classes("Group", tuple("abcdefghij"), state.randint(10, size=n), n_listed=10, counts=(n // 10,) * 10)
    features = tuple(Numbers(f"feature {j}", state.normal(size=n), "Features") for j in range(36))
    shapes = ("circle", "square", "triangle", "diamond", "plus", "cross", "wedge", "circle", "square", "plus")
    points = state.randint(10_000, size=(2, n)).tolist()
    names = tuple(f"sample-{i:06d}" for i in range(n))
    signs = tuple(Sign("#0b5fa5", "#7ab4f5", shape) for shape in shapes)
    scatter = Scatter("many", "many", "sample", *points, (groups, *features), signs, groups.names, names)
    file = tmp_path / "many.html"
    file.write_text(render(Page("Many", (), (Section("Map", (scatter,)),))), encoding="utf-8")
    assert file.stat().st_size < 6_000_000
    begin = time.perf_counter()
    browser.open(file)
    browser.wait("document.querySelector(arguments[0]).dataset.ready === 'yes'", MAP, seconds=20)
    assert time.perf_counter() - begin < 5
    seconds = browser.driver.execute_async_script(
        """const done = arguments[1], canvas = document.querySelector(arguments[0]), moves = 20;
        let count = 0, begin = performance.now();
        const step = () => {
          if (count++ === moves) return done((performance.now() - begin) / 1000 / moves);
          canvas.dispatchEvent(new KeyboardEvent("keydown", { key: ["+", "ArrowLeft", "-", "ArrowDown"][count % 4] }));
          canvas.dispatchEvent(new PointerEvent("pointermove", { pointerId: 9, clientX: 400 + count, clientY: 300 }));
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);""",
        STAGE,
    )
    assert (
        seconds < 0.1 * n / 20_000
    )  # 17 ms, as often as the screen is drawn anew; the machines of the tests are not always idle
    assert browser.console() == []
