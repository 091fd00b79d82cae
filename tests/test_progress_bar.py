"""The progress bar: what it says, where it is shown, and that nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

import gapview
from gapview.errors import ParameterTypeError
from gapview.progress import Event, display, listening, showing, tell

terminals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
# Tests that run in the background inherit that Ctrl-C is ignored
BEGIN = """
import signal, time, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)
import gapview.progress
from gapview.progress import showing, tell
"""
FIT = """
from gapview.datasets import make_views
views = make_views(60, (6, 5), n_clusters=2, missing_rate=0.3, random_state=0).views
gapview.BridgedGRMF(2, selection="fixed", random_state=0).fit(views)
"""
CURSOR_HIDDEN, CURSOR_SHOWN = "\x1b[?25l", "\x1b[?25h"


def on_terminal(code, *, interrupt_at=None, **environment):
    """Run code on a pseudo-terminal; return all that it shows, and the exit code."""
    ours, theirs = os.openpty()
    known = {"TERM": "xterm", "COLUMNS": "100", **environment}
    surroundings = {k: v for k, v in os.environ.items() if k not in ("GAPVIEW_PROGRESS", "NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + code], stdout=theirs, stderr=theirs, env=surroundings | known
    )
    os.close(theirs)
    parts, sent = [], False
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            break
        parts.append(part)
        if interrupt_at is not None and not sent and interrupt_at in b"".join(parts).decode(errors="replace"):
            time.sleep(0.5)  # until the code is where it waits to be interrupted
            process.send_signal(signal.SIGINT)
            sent = True
    os.close(ours)
    return b"".join(parts).decode(errors="replace"), process.wait(timeout=60)


class TestText:
    def test_phases_objective_and_time_left(self, monkeypatch):
        monkeypatch.setattr(display, "perf_counter", lambda: 0.0)
        line = display.Line()
        monkeypatch.setattr(display, "perf_counter", lambda: 6.0)
        told = [
            Event("Reading files"),
            Event("Trying settings", 3, 18),
            Event("Iterating", 7, 200, 123.4567),
            Event("Looking for neighbours"),
            Event("Iterating", 2, 200, 99.5),
        ]
        seen = []
        for event in told:
            line.take(event)
            seen.append(f"{line.phase.phase}: {line.detail}")
        assert seen == [
            "Reading files: ",
            "Trying settings: 3 of 18, about 0 s left",
            "Trying settings: 3 of 18, objective 123.457, about 0 s left",
            "Looking for neighbours: ",
            "Iterating: 2 of at most 200, objective 99.5, at most 0 s left",
        ]

    def test_the_time_left_to_count_groups(self, monkeypatch):
        now = 0.0
        monkeypatch.setattr(display, "perf_counter", lambda: now)
        line = display.Line()
        line.take(Event("Counting groups"))
        now = 100.0  # spent on what all counts share, which is no measure of how long one of them takes
        line.take(Event("Iterating", 200, 200, 5.0))
        line.take(Event("Counting groups", 0, 19))
        assert line.detail == "0 of 19"
        now = 106.0
        line.take(Event("Counting groups", 3, 19))
        assert (line.phase.done, line.phase.total) == (3, 19)
        assert line.detail == "3 of 19, about 32 s left"


@terminals
class TestTerminal:
    def test_it_is_shown_and_removed(self):
        fit = FIT.strip().replace("\n", "\n    ")
        seen, code = on_terminal(f"with showing(delay=0):\n    {fit}\nprint('end')")
        assert code == 0
        assert "Finding groups" in seen
        assert seen.count(CURSOR_HIDDEN) == seen.count(CURSOR_SHOWN) == 1
        assert seen.endswith("\x1b[2Kend\r\n")  # its line is erased

    def test_it_comes_late(self):
        seen, _ = on_terminal(FIT + "print('end')")
        assert seen == "end\r\n"
        slow = "with showing(delay=0.2):\n    tell('Waiting')\n    time.sleep(1)\nprint('end')"
        assert "Waiting" in on_terminal(slow)[0]

    @pytest.mark.parametrize(
        ("code", "environment"),
        [
            ("gapview.progress.bar(False)", {}),
            ("", {"GAPVIEW_PROGRESS": "0"}),
            ("", {"GAPVIEW_PROGRESS": "Off"}),
            ("", {"TERM": "dumb"}),
        ],
    )
    def test_it_can_be_switched_off(self, code, environment):
        seen, _ = on_terminal(f"{code}\nwith showing(delay=0):\n    tell('Working')\nprint('end')", **environment)
        assert seen == "end\r\n"

    def test_it_can_be_switched_on_again(self):
        switch = "gapview.progress.bar(False)\ngapview.progress.bar(True)\n"
        assert "Working" in on_terminal(switch + "with showing(delay=0):\n    tell('Working')")[0]

    @pytest.mark.parametrize("failure", ["raise RuntimeError('broken')", "time.sleep(60)"])
    def test_nothing_is_left_after_errors_and_interruption(self, failure):
        code = f"with showing(delay=0):\n    tell('Working')\n    {failure}"
        seen, exit_code = on_terminal(code, interrupt_at="Working" if "sleep" in failure else None)
        assert exit_code != 0
        assert seen.count(CURSOR_HIDDEN) == seen.count(CURSOR_SHOWN) == 1
        bar, after = seen.rsplit("\x1b[2K", 1)  # the line is erased before the traceback
        assert "Working" in bar
        assert after.startswith("Traceback")

    def test_warnings_appear_above_it(self):
        code = "with showing(delay=0):\n    tell('Working')\n    warnings.warn('look here')\nprint('end')"
        seen, _ = on_terminal(code)
        assert "look here" in seen
        assert seen.endswith("\x1b[2Kend\r\n")

    @pytest.mark.parametrize("backend", ["threading", "loky"])
    def test_workers_are_silent(self, backend):
        code = f"""
from joblib import Parallel, delayed
def work():
    with showing(delay=0):
        tell("Working")
Parallel(2, backend={backend!r})(delayed(work)() for _ in range(2))
print("end")
"""
        assert on_terminal(code)[0] == "end\r\n"


def test_pipes_are_silent():
    code = BEGIN + "with showing(delay=0):\n    tell('Working')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


class Shell:
    """Stands for the parts of a notebook that a bar uses."""

    kernel = "a kernel"

    def __init__(self):
        self.shown = []

    def display(self, data, *, raw, display_id):
        assert raw
        assert display_id is True
        self.shown.append(data)
        return SimpleNamespace(update=lambda data, raw: self.shown.append(data))


@pytest.fixture
def notebook(monkeypatch):
    shell = Shell()
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shell.display))
    monkeypatch.delenv("GAPVIEW_PROGRESS", raising=False)
    return shell.shown


class TestNotebook:
    def test_what_it_shows(self, notebook):
        with showing(delay=0):
            tell("Trying <b>settings</b>", 3, 18)
        pages = [data["text/html"] for data in notebook]
        assert pages[-2] == '<progress value="3" max="18"></progress> Trying &lt;b&gt;settings&lt;/b&gt; 3 of 18, ' + (
            "about 0 s left"
        )
        assert notebook[0] == notebook[-1] == {"text/plain": "", "text/html": ""}

    def test_of_nested_fits_the_outermost_shows_it(self, notebook):
        with showing(delay=0), showing(delay=0):
            tell("Working")
        assert sum("Starting" in data["text/html"] for data in notebook) == 1

    def test_it_is_removed_after_errors(self, notebook):
        with pytest.raises(ZeroDivisionError), showing(delay=0):
            raise ZeroDivisionError
        assert notebook[-1]["text/html"] == ""

    def test_listeners_take_its_place(self, notebook):
        events = []
        with listening(events.append), showing(delay=0):
            tell("Working")
        assert [event.phase for event in events] == ["Working"]
        assert notebook == []

    def test_it_changes_little_more_often_than_can_be_read(self, notebook):
        with showing(delay=0):
            for done in range(1000):
                tell("Working", done, 1000)
        assert len(notebook) < 50

    def test_short_work_shows_nothing(self, notebook):
        with showing(delay=30):
            tell("Working")
        with showing(delay=0.01):
            tell("Waiting")
            time.sleep(0.5)
        assert "Working" not in str(notebook)
        assert "Waiting" in str(notebook)


def test_bad_values():
    with pytest.raises(ParameterTypeError, match="shown must be True or False; got 'no'"):
        gapview.progress.bar("no")
    with pytest.raises(ParameterTypeError, match="delay must be a finite number"), showing("soon"):
        pass
