"""``gapview cluster``: awkward files file by file, what is written, and what is refused."""

from __future__ import annotations

import hashlib
import json
import re
import shlex

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score

import gapview
from gapview.commands.cli import main
from gapview.persist.registry import METHODS

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from awkward_files import N_SAMPLES, Awkward, awkward_files, made, rows_of, write_plain  # noqa: E402

TRUTH = made()
AWKWARD = awkward_files(TRUTH)
QUICK = ("-k", "3", "--no-report", "--set", "selection=fixed")
N_BOTH = len(TRUTH.blood.index.intersection(TRUTH.scans.index))
RESULTS = {"labels.csv", "embedding.csv", "contributions.csv", "markers.csv", "model.gapview", "run.json"}


def run(*arguments):
    return CliRunner().invoke(main, ["cluster", *map(str, arguments)])


@pytest.fixture
def plain(tmp_path):
    return write_plain(tmp_path, TRUTH)


@pytest.mark.parametrize("case", AWKWARD, ids=lambda case: " ".join([case.file, *case.options]))
def test_awkward_files_one_by_one(tmp_path, case: Awkward):
    path = tmp_path / case.file
    path.write_bytes(case.content)
    scans = tmp_path / "scans.csv"
    TRUTH.scans.to_csv(scans)
    result = run(f"blood={path}", scans, "-o", tmp_path / "out", *QUICK, *case.options)
    if case.error is not None:
        assert result.exit_code == 1, result.output
        assert re.search(case.error, result.stderr)
        assert result.stderr.startswith("Error: ")
        assert sorted(file.name for file in tmp_path.iterdir()) == sorted([case.file, "scans.csv"])
        return
    assert result.exit_code == 0, result.output
    for words in case.says:
        assert words in result.output
    found = rows_of(tmp_path / "out" / "labels.csv")
    assert set(found) == {*TRUTH.target, *case.ids} - case.lost
    true = [TRUTH.target[case.ids.get(key, key)] for key in found]
    assert adjusted_rand_score(true, [int(row["label"]) for row in found.values()]) == 1
    views = gapview.load(tmp_path / "out" / "model.gapview").views_
    assert views.names == ("blood", "scans")
    if case.exact:
        read = pd.DataFrame(views.matrices[0], views.sample_ids[views.rows(0)], views.feature_names[0])
        known = TRUTH.blood.loc[[case.ids.get(key, key) for key in read.index], list(read.columns)]
        assert set(TRUTH.blood.index) <= set(read.index)
        assert (read.to_numpy() == known.to_numpy()).all()


def test_what_is_written_and_said(tmp_path, plain):
    result = run(*plain, "-o", tmp_path / "out", *QUICK, "--seed", "5", "--set", "max_iter=150")
    assert result.exit_code == 0, result.output
    out = tmp_path / "out"
    assert {file.name for file in out.iterdir()} == RESULTS
    assert "'blood': 68 samples, 6 features, 0 % of the cells empty; 24.4 % of the 90 samples lack it." in result.output
    assert f"Samples   90, joined by their ids; {N_BOTH} of them have both views." in result.output
    assert "Groups    90 samples in 3 groups: 30, 30 and 30.\n" in result.output
    for name in RESULTS:
        assert f"Wrote     {out / name}\n" in result.output
    model = gapview.load(out / "model.gapview")
    rows = rows_of(out / "labels.csv")
    assert list(rows) == model.sample_ids_.tolist()
    assert [int(row["label"]) for row in rows.values()] == model.labels_.tolist()
    assert [row["confidence"] for row in rows.values()] == [f"{value:.3f}" for value in model.confidence_]
    assert [[row["has_blood"], row["has_scans"]] for row in rows.values()] == [
        ["yes" if has else "no" for has in row] for row in model.views_.mask
    ]
    embedding = pd.read_csv(out / "embedding.csv", index_col="id", dtype={"id": str})
    assert embedding.index.tolist() == model.sample_ids_.tolist()
    np.testing.assert_allclose(embedding.to_numpy(), model.embedding_, rtol=1e-5, atol=1e-12)


def test_the_record_repeats_the_run(tmp_path, plain, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed = ["blood.csv", "scans.csv", "-o", "out", *QUICK, "--seed", "5", "--set", "max_iter=150"]
    assert run(*typed).exit_code == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert shlex.split(record["command"])[1:] == record["arguments"] == ["cluster", *typed]
    assert (record["method"], record["seed"], record["settings"]["max_iter"]) == ("BridgedGRMF", 5, 150)
    assert record["setting"]["bridge"] == "both"
    for described, path in zip(record["files"], plain, strict=True):
        content = path.read_bytes()
        assert described == {
            "path": path.name,
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    assert record["counts"]["samples"] == N_SAMPLES
    assert record["counts"]["with_view"] == {"blood": len(TRUTH.blood), "scans": len(TRUTH.scans)}
    assert record["group_sizes"] == [30, 30, 30]
    assert record["versions"]["gapview"] == gapview.__version__
    assert set(record["seconds"]) == {"reading", "fitting", "writing"}
    assert {*record["results"], "run.json"} == RESULTS
    before = {name: (tmp_path / "out" / name).read_bytes() for name in record["results"]}
    again = CliRunner().invoke(main, [*record["arguments"], "--force"])
    assert again.exit_code == 0
    for name, content in before.items():
        assert (tmp_path / "out" / name).read_bytes() == content


def test_the_number_of_groups_may_be_left_to_the_data(tmp_path, plain):
    result = run(*plain, "-o", tmp_path / "out", "-k", "AUTO", "--no-report", "--set", "selection=fixed", "-v")
    assert result.exit_code == 0, result.output
    assert "Groups    90 samples in 3 groups, the number that the data suggest: 30, 30 and 30.\n" in result.output
    assert "Number    3 clusters rather than" in result.output
    assert "cluster_count" in json.loads((tmp_path / "out" / "run.json").read_text())


@pytest.mark.parametrize("method", ["GRMF", "Concat", "ImputedKMeans"])
def test_other_methods(tmp_path, plain, method):
    result = run(*plain, "-o", tmp_path / "out", "-k", "3", "--no-report", "--method", method, "--scale", "standard")
    assert result.exit_code == 0, result.output
    model = gapview.load(tmp_path / "out" / "model.gapview")
    assert (type(model), model.scale) == (METHODS[method], "standard")
    columns = next(iter(rows_of(tmp_path / "out" / "labels.csv").values()))
    assert ("confidence" in columns) == hasattr(model, "confidence_")


def test_methods_without_a_report_say_so(tmp_path, plain):
    result = run(*plain, "-o", tmp_path / "out", "-k", "3", "--method", "Concat")
    assert result.exit_code == 0, result.output
    assert "Left out  report.html: it needs GRMF or BridgedGRMF, and Concat is another method." in result.output
    assert {file.name for file in (tmp_path / "out").iterdir()} == RESULTS


def test_settings_are_read_as_what_they_are(tmp_path, plain):
    out = tmp_path / "out"
    scales = ("--scale", "blood=standard+unit", "--scale", "scans=none")
    others = ("--set", "view_weights=[1, 3]", "--set", "search=exact", "--set", "reach=1", "--set", "device=none")
    result = run(*plain, "-o", out, *QUICK, *scales, *others, "--encode", "--duplicates", "mean")
    assert result.exit_code == 0, result.output
    model = gapview.load(out / "model.gapview")
    assert model.scale == {"blood": "standard+unit", "scans": None}
    assert (model.view_weights, model.search, model.reach, model.device) == ([1, 3], "exact", 1, None)
    assert model.view_weights_.tolist() == [0.5, 1.5]


def test_words_become_columns_on_request(tmp_path, plain):
    sex = ["f" if i % 2 else "m" for i in range(len(TRUTH.blood))]
    TRUTH.blood.assign(sex=sex).to_csv(plain[0])
    assert run(*plain, "-o", tmp_path / "out", *QUICK, "--encode").exit_code == 0
    names = gapview.load(tmp_path / "out" / "model.gapview").views_.feature_names[0].tolist()
    assert names == [*TRUTH.blood.columns, "sex=f", "sex=m"]


def test_arrays_without_ids_are_numbered(tmp_path):
    everyone = list(TRUTH.target)
    for name, frame in (("a", TRUTH.blood), ("b", TRUTH.scans)):
        np.save(tmp_path / f"{name}.npy", frame.reindex(everyone).to_numpy())
    result = run(tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert f"numbered from 0; {N_BOTH} of them have both views" in result.output
    assert list(rows_of(tmp_path / "out" / "labels.csv")) == [str(row) for row in range(N_SAMPLES)]


def test_one_file_of_several_views(tmp_path):
    everyone = list(TRUTH.target)
    arrays = {"view_0": TRUTH.blood.reindex(everyone).to_numpy(), "view_1": TRUTH.scans.reindex(everyone).to_numpy()}
    np.savez(tmp_path / "both.npz", **arrays, sample_ids=np.array(everyone))
    result = run(tmp_path / "both.npz", "-o", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert len(json.loads((tmp_path / "out" / "run.json").read_text())["files"]) == 1
    assert set(rows_of(tmp_path / "out" / "labels.csv")) == set(everyone)
    named = run(f"x={tmp_path / 'both.npz'}", "-o", tmp_path / "out2", *QUICK)
    assert named.exit_code == 1
    assert "and cannot have the one name 'x'. Give the file without a name." in named.stderr


@pytest.mark.parametrize("name", ["[red]bold[/red]", "[/red]", ":smile:", "a=b", "räume ü"])
def test_names_come_out_as_they_are(tmp_path, plain, name):
    path = tmp_path / f"{name}.csv".replace("/", "_")
    path.write_bytes(plain[0].read_bytes())
    named = f"{name}2={plain[1]}" if "=" not in name else plain[1]
    result = run(path, named, "-o", tmp_path / f"out{name}".replace("/", "_"), *QUICK)
    assert result.exit_code == 0, result.output
    assert f"View      '{path.stem}': 68 samples" in result.output
    if "=" not in name:
        assert f"View      '{name}2': " in result.output


def test_names_cannot_speak_to_the_terminal(tmp_path, plain):
    plain[0].write_text(plain[0].read_text().replace("iron_0", "iron\x1b[2J"))
    text = plain[1].read_text().replace("size_0", "size\x1b[2J").replace("\n", ",x\n").replace(",x", ",note\x1b[0m", 1)
    plain[1].write_text(text)
    result = run(f"blood\x1b[2J={plain[0]}", plain[1], "-o", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "View      'blood\\x1b[2J': 68 samples" in result.output
    assert "\x1b" not in result.output
    failed = run(plain[0], "-o", tmp_path / "more", "-k", "3", "--scale", "\x1b[2J")
    assert failed.exit_code == 1
    assert "\x1b" not in failed.output


def test_warnings_are_said_once_and_kept(tmp_path, plain):
    result = run(*plain, "-o", tmp_path / "out", *QUICK, "--set", "max_iter=1")
    assert result.exit_code == 0, result.output
    assert "Warning   BridgedGRMF stopped at max_iter=1" in result.output
    assert "--set max_iter=…" in result.output
    warned = json.loads((tmp_path / "out" / "run.json").read_text())["warnings"]
    assert len(warned) == 1
