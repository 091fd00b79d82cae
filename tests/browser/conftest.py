"""A real browser for tests: headless Chromium, driven by selenium. Runs with ``make test-browser`` alone."""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gapview import BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.report import write_clustering_report

EVIL = "<script>alert(1)</script>"
BREAKING = "</script><img src=x onerror=alert(2)>"
MAP = "figure.scatter"
STAGE = ".scatter-stage canvas"
TIP_LINES = ".scatter-tip > div"

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1300,900",
)


class Browser:
    """A page in Chromium, and the few things that the tests do with it."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, *, width=1300, height=900, mobile=False, dark=False):
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.size(width, height, mobile=mobile)
        self.dark(dark)
        self.driver.get(Path(path).as_uri())
        return self

    def size(self, width, height, *, mobile=False):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if mobile else 1, "mobile": mobile}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": mobile})

    def dark(self, wanted):
        features = {"prefers-color-scheme": "dark" if wanted else "light", "prefers-reduced-motion": "reduce"}
        media = {"features": [{"name": name, "value": value} for name, value in features.items()]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def ask(self, script, *arguments):
        return self.driver.execute_script(f"return ({script})", *arguments)

    def wait(self, script, *arguments, seconds=5):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _: self.ask(script, *arguments), script)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, path, *, whole=False):
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": whole})
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def pdf(self):
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        return base64.b64decode(printed["data"])

    # The map of a report ------------------------------------------------------------------------------------------

    def open_report(self, path, **options):
        self.open(path, **options)
        self.wait("document.querySelector(arguments[0]).dataset.ready === 'yes'", MAP)
        self.ask("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", STAGE)
        return self

    def keys(self, *pressed):
        from selenium.webdriver.common.keys import Keys

        for key in pressed:
            self.find(STAGE).send_keys(getattr(Keys, key) if key.isupper() and len(key) > 1 else key)

    def tip(self):
        """Return what the map tells of the chosen point."""
        pairs = [[line.find_element("css selector", tag).text for tag in ("dt", "dd")] for line in self.all(TIP_LINES)]
        return {title.rstrip(": "): text for title, text in pairs}

    def chosen_at(self):
        """Return where on the canvas the chosen point is."""
        self.wait("document.querySelector(arguments[0]).dataset.at", STAGE)
        return tuple(map(float, self.find(STAGE).get_attribute("data-at").split()))

    def state(self):
        """Return how far the map is zoomed, where its middle is, and how many points are shown."""
        self.wait("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        zoom, middle = (self.find(STAGE).get_attribute(f"data-{name}") for name in ("zoom", "middle"))
        return float(zoom), tuple(map(float, middle.split())), int(self.find(MAP).get_attribute("data-shown"))

    def signs(self):
        return self.ask("JSON.parse(document.querySelector(arguments[0] + ' script').textContent).signs", MAP)

    def groups(self):
        """Return the filters of groups and of views present, which are folded away."""
        self.ask("document.querySelector('.scatter-filters').open = true")
        return self.all(f"{MAP} fieldset")

    def click(self, name):
        """Press a button of the map."""
        self.find(f"{MAP} [data-do={name}]").click()

    def rows(self):
        """Return the rows of the table of samples, with its heads."""
        self.ask("document.querySelector('.scatter-rows').open = true")
        return self.ask(
            "[...document.querySelector('.scatter-rows table').rows]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))"
        )

    def color_by(self, title):
        from selenium.webdriver.support.ui import Select

        Select(self.find("[data-do=color]")).select_by_visible_text(title)

    def saved(self, button):
        """Press a button, and return the name and the contents of the file that it saves."""
        script = """
          const done = arguments[1], create = URL.createObjectURL;
          let last = null;
          URL.createObjectURL = (blob) => { last = blob; return create(blob); };
          HTMLAnchorElement.prototype.click = function () {
            URL.createObjectURL = create;
            delete HTMLAnchorElement.prototype.click;
            const reader = new FileReader();
            reader.onload = () => done([this.download, reader.result.split(",")[1]]);
            reader.readAsDataURL(last);
          };
          arguments[0].click();"""
        name, text = self.driver.execute_async_script(script, button)
        return name, base64.b64decode(text)

    def colours(self):
        """Return the colours that the map is drawn in, by how many pixels have each."""
        return self.ask(
            """(() => {
              const canvas = document.querySelector(arguments[0]);
              const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
              const found = {};
              for (let i = 0; i < data.length; i += 4) {
                if (data[i + 3] < 255) continue;
                const color = "#" + [0, 1, 2].map((k) => data[i + k].toString(16).padStart(2, "0")).join("");
                found[color] = (found[color] || 0) + 1;
              }
              return found;
            })()""",
            STAGE,
        )

    def point(self, x, y, *, drag_to=None):
        """Move the pointer to a place on the map, and from there with the button held."""
        from selenium.webdriver.common.action_chains import ActionChains

        canvas = self.find(STAGE)
        middle = self.ask("[arguments[0].clientWidth / 2, arguments[0].clientHeight / 2]", canvas)
        offset = round(x - middle[0]), round(y - middle[1])
        chain = ActionChains(self.driver, duration=20).move_to_element_with_offset(canvas, *offset)
        if drag_to is not None:
            chain = chain.click_and_hold().move_by_offset(*drag_to).release()
        chain.perform()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if os.environ.get("GAPVIEW_BROWSER") != "1":
        pytest.skip("needs a browser: run make test-browser")
    from selenium import webdriver

    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    assert chromium, "make test-browser needs Chromium: apt-get install chromium chromium-driver"
    assert driver, "make test-browser needs the driver of Chromium: apt-get install chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    opened = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(opened)
    finally:
        opened.quit()


@pytest.fixture(scope="session")
def model(browser):
    data = make_views(150, (8, 10), n_clusters=3, missing_rate=0.3, random_state=0)
    ids = np.array([f"s{i:03d}" for i in range(148)] + [EVIL, BREAKING])
    frames = {
        name: pd.DataFrame(
            matrix, index=ids[data.views.rows(k)], columns=[f"f{j} {EVIL}" for j in range(matrix.shape[1])]
        )
        for k, (name, matrix) in enumerate(zip(("<b>blood</b>", "scans"), data.views.matrices, strict=True))
    }
    return BridgedGRMF(n_clusters=3, random_state=0).fit(Views(frames))


@pytest.fixture(scope="session")
def report(model, tmp_path_factory):
    state = np.random.RandomState(0)
    covariates = pd.DataFrame(
        {
            "age": state.normal(60, 9, 150),
            "days": state.exponential(9, 150),
            "event": state.randint(2, size=150),
            BREAKING: np.array([EVIL, "low", None], dtype=object)[state.randint(3, size=150)],
        },
        index=model.sample_ids_,
    )
    file = tmp_path_factory.mktemp("report") / "report.html"
    return write_clustering_report(model, file, covariates=covariates, title=f"A {EVIL} report", assess=False)


@pytest.fixture
def page(browser, report):
    return browser.open_report(report)
