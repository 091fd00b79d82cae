"""Results of commands: standard output, names that are not UTF-8 or long, permissions, ids that are formulas."""

from __future__ import annotations

import csv
import json
import os
import stat
import sys

import numpy as np
import pytest

import gapview

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from click.testing import CliRunner  # noqa: E402

from awkward_files import made, rows_of, run, write_plain  # noqa: E402
from gapview.commands.cli import main  # noqa: E402
from gapview.errors import GapviewWarning  # noqa: E402
from gapview.io import join_views, read_table, read_view, read_views, write_like  # noqa: E402

TRUTH = made()
QUICK = ("-k", "3", "--set", "selection=fixed")


# -- standard output -------------------------------------------------------------------------------------------------


def test_a_single_result_can_go_to_standard_output(model, put, tmp_path):
    blood = put("blood.csv", TRUTH.blood)
    run("predict", model, blood, "-o", tmp_path / "p.csv")
    result = CliRunner().invoke(main, ["predict", str(model), str(blood), "-o", "-"])
    assert result.exit_code == 0
    assert result.stdout == (tmp_path / "p.csv").read_text()
    assert "90 samples" not in result.stdout
    assert "Groups" in result.stderr
    assert "Wrote" not in result.stderr
    page = CliRunner().invoke(main, ["report", str(model), "-o", "-"])
    assert page.exit_code == 0
    assert page.stdout.lower().startswith("<!doctype html>")
    assert page.stdout.rstrip().endswith("</html>")


@pytest.mark.parametrize("command", ["cluster", "recover", "demo"])
def test_folders_cannot_go_to_standard_output(model, put, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blood = put("blood.csv", TRUTH.blood)
    given = {"cluster": [blood, "-k", 2], "recover": [model, blood], "demo": []}[command]
    result = CliRunner().invoke(main, [command, *map(str, given), "-o", "-"])
    assert result.exit_code == 2
    assert "writes several files: name a folder" in " ".join(result.stderr.split())
    assert not (tmp_path / "-").exists()


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="names of files must be text there")
def test_names_that_are_not_utf8(tmp_path):
    folder = tmp_path / os.fsdecode(b"st\xfcdy")
    folder.mkdir()
    blood, scans = write_plain(folder, TRUTH)
    odd = blood.rename(folder / os.fsdecode(b"bl\xffod.csv"))
    out = folder / os.fsdecode(b"\xe9tude")
    run("cluster", odd, scans, *QUICK, "-o", out)
    tables = {"labels.csv", "embedding.csv", "contributions.csv", "markers.csv"}
    assert {file.name for file in out.iterdir()} == tables | {"model.gapview", "run.json", "report.html"}
    record = json.loads((out / "run.json").read_text())
    assert os.fsencode(record["files"][0]["path"]) == os.fsencode(odd)
    assert next(csv.reader((out / "labels.csv").read_text().splitlines()))[-2:] == ["has_bl\\udcffod", "has_scans"]
    assert gapview.load(out / "model.gapview").views_.names == ("bl\\udcffod", "scans")
    table, completed = folder / os.fsdecode(b"\xfe.csv"), folder / os.fsdecode(b"\xfd")
    run("predict", out / "model.gapview", odd, "-o", table)
    run("recover", out / "model.gapview", odd, "-o", completed)
    run("recover", out / "model.gapview", "-o", f"{completed}2")
    run("info", out / "model.gapview")
    assert table.exists()
    assert (completed / odd.name).exists()
    assert "There is no file" in run("info", folder / os.fsdecode(b"\xfa"), code=1).output


@pytest.mark.parametrize("length", [220, 255])
def test_the_longest_names_of_folders_can_be_used(tmp_path, length):
    files, out = write_plain(tmp_path, TRUTH), tmp_path / ("o" * length)
    run("cluster", *files, *QUICK, "--no-report", "-o", out)
    run("cluster", *files, *QUICK, "--no-report", "--force", "-o", out)
    assert {file.name for file in tmp_path.iterdir()} == {"blood.csv", "scans.csv", out.name}


# -- what was there --------------------------------------------------------------------------------------------------


def test_replaced_results_keep_their_permissions(tmp_path):
    files, out = write_plain(tmp_path, TRUTH), tmp_path / "out"
    run("cluster", *files, *QUICK, "--no-report", "-o", out)
    out.chmod(0o700)
    (out / "model.gapview").chmod(0o600)
    run("cluster", *files, *QUICK, "--no-report", "--force", "-o", out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert stat.S_IMODE((out / "model.gapview").stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_are_refused_before_anything_is_read(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = CliRunner().invoke(main, ["predict", str(model), "no file.csv", "--force", "-o", str(tmp_path / "pipe")])
    assert result.exit_code == 1
    assert "it is a named pipe" in result.output
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


# -- ids that are formulas -------------------------------------------------------------------------------------------

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "'=quoted", "'-5", "-a", "it's"]
NUMBERS = ["-5", "+7", "-1.5", "-.5", "3"]


def ids_of(n_samples):
    return [*FORMULAS, *NUMBERS, *(f"s{number}" for number in range(n_samples))][:n_samples]


def test_ids_that_are_formulas_are_written_as_text_and_read_again(tmp_path):
    n_samples = len(TRUTH.blood)
    ids = ids_of(n_samples)
    blood = TRUTH.blood.set_axis(pd.Index(ids, name="id"), axis=0)
    scans = TRUTH.scans.iloc[: n_samples - 20].copy()
    scans.index = pd.Index(ids[: len(scans)], name="id")
    views = {"blood": blood, "scans": scans}
    for name, frame in views.items():
        frame.reset_index().to_parquet(tmp_path / f"{name}.parquet")  # whose text spreadsheets do not run
    out = tmp_path / "out"
    run("cluster", tmp_path / "blood.parquet", tmp_path / "scans.parquet", *QUICK, "--no-report", "-o", out)
    assert gapview.load(out / "model.gapview").sample_ids_.tolist() == ids
    run("recover", out / "model.gapview", "-o", tmp_path / "completed")
    run("predict", out / "model.gapview", tmp_path / "blood.parquet", "-o", tmp_path / "new.csv")
    tables = [out / "labels.csv", out / "embedding.csv", tmp_path / "new.csv", *(tmp_path / "completed").glob("*.csv")]
    tables.remove(tmp_path / "completed" / "recovery.csv")  # holds R² of the features, no ids
    assert len(tables) == 5
    for table in tables:
        written = list(rows_of(table))
        assert not [key for key in written if key[0] in "=+-@\t\r" and key not in NUMBERS]
        assert [key for key in written if key in NUMBERS] == NUMBERS
        assert read_table(table, id_column="id").index.tolist() == ids
    with pytest.warns(GapviewWarning, match="differs only by quotation marks"):  # '-5 and -5
        joined = join_views(read_views([tmp_path / "completed" / f"{name}.csv" for name in ("blood", "scans")]))
    assert joined.sample_ids.tolist() == ids
    assert joined.mask.all()


def test_names_of_features_that_are_formulas(tmp_path):
    path = tmp_path / "blood.csv"
    path.write_text("id,=1+1,-log\na,1,2\nb,3,4\n")
    view = read_view(path)
    assert view.frame.columns.tolist() == ["=1+1", "-log"]
    written = write_like(view, view.frame, tmp_path / "full.csv", {"gapview_recovered": np.array([False, True])})
    assert written.path.read_text() == "id,'=1+1,'-log,gapview_recovered\na,1,2,0\nb,3,4,1\n"
    again = read_view(written.path)
    assert again.frame.columns.tolist()[:2] == ["=1+1", "-log"]
