"""A few hundred damaged files for every reader; ``gapview-lab reliability fuzz`` has the rest."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gapview_lab.paper.tasks import PaperRecord

for package in ("pyarrow", "h5py", "anndata", "mudata", "matplotlib"):
    pytest.importorskip(package)
pytest.importorskip("resource")  # not on Windows, nor is fork

from gapview_lab.reliability import fuzz_seeds  # noqa: E402
from gapview_lab.reliability.fuzz_pages import _Tags, make_page  # noqa: E402
from gapview_lab.reliability.fuzz_targets import TARGETS, case_of  # noqa: E402
from pages import check_page  # noqa: E402


def paper_csv(setting):
    """Results of the paper's experiments, with one run that has a setting of one's own."""
    record = PaperRecord("figure5", "buaa", "GRMF", setting, 0.7, 0, iteration=2, version="1")
    return fuzz_seeds._as_csv([record]).decode()


def test_no_defects_in_a_few_hundred_inputs(tmp_path):
    command = [sys.executable, "-m", "gapview_lab", "reliability", "fuzz", "--inputs", "600", "--seed", "7"]
    done = subprocess.run([*command, "-o", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((tmp_path / "fuzz.json").read_text())
    assert content["defects"] == 0
    assert content["inputs"] >= 600
    assert set(content["targets"]) == set(TARGETS)
    assert all(count["accepted"] + sum(count["refused"].values()) > 0 for count in content["targets"].values())
    assert content["inputs"] == content["accepted"] + content["refused"] + content["contained"]


def test_inputs_are_the_same_for_the_same_seed():
    for target in TARGETS:
        assert case_of(target, 3, 5) == case_of(target, 3, 5)
        assert [case_of(target, k, 5) for k in range(9)] != [case_of(target, k, 6) for k in range(9)]


BROKEN = {
    "raises": (lambda case, folder, out: {}["x"], "KeyError"),
    "warns": (lambda case, folder, out: __import__("warnings").warn("deep", RuntimeWarning, 2), "RuntimeWarning: deep"),
    "writes": (lambda case, folder, out: (out.parent / "escaped").write_text("x"), "outside the folder"),
    "changes its input": (lambda case, folder, out: (folder / "more").write_text("x"), "outside the folder"),
    "runs code": (lambda case, folder, out: Path(fuzz_seeds.CANARY).write_text("x"), "code in a file was run"),
    "takes memory": (lambda case, folder, out: len(b"x" * 2**29), "MB of memory"),
    "crashes": (lambda case, folder, out: __import__("os").abort(), "SIGABRT"),
    "hangs": (lambda case, folder, out: __import__("time").sleep(60), "no answer within"),
}
WITH_BROKEN = """
import sys
sys.path[:0] = {tests!r}
from test_fuzz import BROKEN
from gapview_lab.reliability import fuzz_runs
from gapview_lab.reliability.fuzz_targets import TARGETS, Case, Target
from gapview_lab.reliability.fuzz import FuzzRequest, run_fuzz
from pathlib import Path
fuzz_runs.TIME_LIMIT = 2.5
TARGETS.clear()
TARGETS.update({{name: Target(1, lambda rng: Case({{"a": b"1"}}), run) for name, (run, _) in BROKEN.items()}})
run_fuzz(FuzzRequest(len(BROKEN), 0, Path({out!r})))
"""


def test_every_kind_of_defect_is_seen(tmp_path):
    program = WITH_BROKEN.format(
        tests=[folder for folder in sys.path if "tests" in Path(folder).parts], out=str(tmp_path)
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    found = json.loads((tmp_path / "fuzz.json").read_text())["targets"]
    for name, (_, said) in BROKEN.items():
        assert said in next(iter(found[name]["defects"]), ""), name
        assert (tmp_path / "defects" / f"{name.replace(' ', '-')}-0" / "a").read_bytes() == b"1"


def test_the_trap_would_run_if_it_were_unpickled(tmp_path, monkeypatch):
    import io

    import numpy as np

    monkeypatch.chdir(tmp_path)
    np.load(io.BytesIO(fuzz_seeds.trap()), allow_pickle=True)[0].close()
    assert (tmp_path / fuzz_seeds.CANARY).exists()


def test_tags_of_names_would_be_seen():
    page = '<!DOCTYPE html>\n<html lang="en"><script>{}</script><script>1</script>%s</html>'
    check_page(page.replace("<script>{}</script><script>1</script>", "") % "")
    _Tags(page % "zqx &lt;b&gt;")
    for bad in ("<b>zqx", "<i onclick=x>", "<a href='x'>y</a>", "<i zqx>", "<!-- zqx<b -->", "<script>1</script>"):
        with pytest.raises((AssertionError, ValueError)):
            _Tags(page % bad)
    assert make_page(random.Random(0)) != make_page(random.Random(1))
