"""What commands print to somebody who starts, and the three lines with which ``gapview cluster`` ends."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

from gapview.commands.cli import main
from gapview.datasets import make_views

pd = pytest.importorskip("pandas")

from awkward_files import made, rows_of, run, write_plain  # noqa: E402

TRUTH = made()
QUICK = ("--no-report", "--set", "selection=fixed")


def last_lines(result, n_lines=3):
    """Return the heads and texts of the last lines."""
    return [(line[:10].strip(), line[10:]) for line in result.output.splitlines()[-n_lines:]]


@pytest.fixture
def plain(tmp_path):
    return write_plain(tmp_path, TRUTH)


@pytest.fixture
def noise(tmp_path):
    rng = np.random.RandomState(0)
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path in paths:
        pd.DataFrame(rng.normal(size=(80, 10)), index=[f"s{i}" for i in range(80)]).to_csv(path, index_label="id")
    return paths


def test_cluster_without_arguments_shows_commands_that_work(tmp_path, monkeypatch):
    result = CliRunner().invoke(main, ["cluster"])
    assert result.exit_code == 2
    assert "Error" not in result.output
    assert "gapview cluster --help" in result.output
    shown = [line.partition("   ")[0] for line in result.stderr.replace("  gapview", "\ngapview").splitlines()]
    commands = [shlex.split(line) for line in shown if line.startswith("gapview ")]
    assert len(commands) == 5
    monkeypatch.chdir(tmp_path)
    TRUTH.blood.to_csv("rna.csv")
    TRUTH.scans.to_csv("protein.csv")
    assert commands[1] == shlex.split("gapview cluster rna.csv protein.csv -k 3 -o out")
    run(*commands[1][1:], *QUICK, "--no-assess")
    for _, name, *arguments in commands:
        known = {option for parameter in main.commands[name].params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("-")} <= known


@pytest.mark.parametrize("name", ["predict", "recover", "markers", "report", "info", "completion"])
def test_other_commands_without_arguments_show_an_example(name):
    result = CliRunner().invoke(main, [name])
    assert result.exit_code == 2
    assert result.output.count(f"  gapview {name} ") == 1
    assert "Error" not in result.output


def test_files_without_a_number_of_groups(plain):
    result = CliRunner().invoke(main, ["cluster", *map(str, plain)])
    assert result.exit_code == 2
    assert "Give -k 3, or -k auto" in result.stderr


def test_three_lines_at_the_end(tmp_path, plain):
    result = run("cluster", *plain, "-k", 3, "-o", tmp_path / "out", "--set", "selection=fixed")
    (groups, trust, look) = last_lines(result)
    assert groups == ("Groups", "90 samples in 3 groups: 30, 30 and 30.")
    assert trust[0] == "Trust"
    assert trust[1].startswith(
        "The groups can be distinguished from data without groups (p = 0.05); the median confidence"
    )
    assert look[0] == "Look at"
    assert str(tmp_path / "out" / "report.html") in look[1]
    assert "14 features that set a group apart (markers.csv)" in look[1]
    for head in ("Settings", "Number", "Test", "Markers", "Time"):
        assert f"\n{head} " not in result.output


def test_details_with_verbose(tmp_path, plain):
    result = run("cluster", *plain, "-k", "auto", "-o", tmp_path / "out", *QUICK, "-v")
    for head in ("Settings", "Number", "Test", "Markers", "Time"):
        assert f"\n{head} " in result.output
    assert "In resamples of 80 % of the samples" in result.output
    assert [head for head, _ in last_lines(result)] == ["Groups", "Trust", "Look at"]
    found = run("info", tmp_path / "out" / "model.gapview").output
    assert "reason for the settings" in found
    assert "reason for the number of groups" in found


def test_groups_of_noise_are_not_recommended(tmp_path, noise):
    (_, trust, look) = last_lines(run("cluster", *noise, "-k", 3, "-o", tmp_path / "out", *QUICK))
    assert trust[1].startswith("The groups cannot be distinguished from data without groups")
    assert "do not interpret them" in trust[1]
    assert "no features that set a group apart" in look[1]
    assert "confidence" not in look[1]


def test_what_was_not_tested_is_stated(tmp_path, plain):
    (_, trust, _) = last_lines(run("cluster", *plain, "-k", 3, "-o", tmp_path / "a", *QUICK, "--no-assess"))
    assert trust[1].startswith("Not tested, as requested; the median confidence is")
    (_, trust, _) = last_lines(run("cluster", *plain, "-k", 3, "-o", tmp_path / "b", *QUICK[:1], "--method", "Concat"))
    assert trust[1] == "Not tested: the tests are those of BridgedGRMF and GRMF."
    (groups, trust, look) = last_lines(run("cluster", *plain, "-k", 1, "-o", tmp_path / "c", *QUICK))
    assert groups[1] == "90 samples in one group."
    assert trust[1] == "One group was requested, and nothing is tested."
    assert look[1] == f"{tmp_path / 'c' / 'labels.csv'}."


def test_unstable_groups_and_uncertain_samples_are_named(tmp_path):
    views = make_views(120, (6, 8), n_clusters=3, noise=1, missing_rate=0.25, random_state=2).views
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for k, path in enumerate(paths):
        pd.DataFrame(views.matrices[k], index=[f"s{i:03d}" for i in views.rows(k)]).to_csv(path, index_label="id")
    result = run("cluster", *paths, "-k", 4, "-o", tmp_path / "out", *QUICK)  # one of three groups is divided
    (_, _, look) = last_lines(result)
    assert "; groups 2 and 3, not stable in resamples; " in look[1]
    confidence = {key: float(row["confidence"]) for key, row in rows_of(tmp_path / "out" / "labels.csv").items()}
    unsure = [key for key, value in confidence.items() if value < 0.5]
    assert f"{len(unsure)} samples with a confidence below 0.5 (labels.csv): " in look[1]
    named = re.findall(r"'(s\d+)'", look[1])
    assert set(named) <= set(unsure)
    assert len(named) == min(3, len(unsure))


def test_a_missing_model_is_explained_in_words_of_the_command_line(tmp_path):
    result = run("info", tmp_path / "nothing.gapview", code=1)
    assert "There is no file" in result.stderr
    assert "Give a model that gapview cluster has written." in result.stderr
