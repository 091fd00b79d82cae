"""Cohorts of patients: scores, rows and the page."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gapview.datasets import make_views
from gapview.trust import survival_by_group
from gapview_lab.cli import main
from gapview_lab.omics import cohorts as module
from gapview_lab.omics.cohorts import FIELDS, METHODS, Cohort, measure, page, read_cohort, run, scores


@pytest.fixture(scope="module")
def cohort():
    data = make_views(90, (8, 10), n_clusters=3, random_state=0)
    state = np.random.RandomState(0)
    times, events = state.exponential(1.0 + 4 * data.target), (np.arange(90) % 5 > 0).astype(float)
    return Cohort("made", data.views, (3,), data.target, times, events)


def test_scores_are_those_of_the_metrics_and_of_the_log_rank_test(cohort):
    found = scores(cohort, cohort.target)
    assert (found["ari"], found["nmi"], found["accuracy"]) == (1.0, 1.0, 1.0)
    expected = survival_by_group(cohort.target, cohort.times, cohort.events).p_value
    assert found["log_rank_p"] == pytest.approx(expected, abs=1e-5)
    assert scores(cohort, np.zeros(90, dtype=int))["log_rank_p"] == 1.0
    assert set(scores(Cohort("bare", cohort.views, (3,)), cohort.target).values()) == {""}


def test_rows_and_page(cohort):
    rows = [measure(cohort, 3, rate, "ImputedKMeans", scale, 0) for rate in (0.0, 0.3) for scale in module.SCALES]
    assert set(rows[0]) == set(FIELDS)
    assert rows[0]["n_groups"] == 3
    text = page(rows, [cohort])
    assert "| ImputedKMeans | default | 1.00 | 1.00 | 1.00 | " in text
    assert "Classes: 0 (30), 1 (30), 2 (30)." in text
    assert "Number of groups: auto" not in text


def test_finished_runs_are_not_repeated(cohort):
    rows = list(run([cohort], ["ImputedKMeans"], 1, 1))
    assert len(rows) == 4
    assert not list(run([cohort], ["ImputedKMeans"], 1, 1, [{k: str(v) for k, v in row.items()} for row in rows]))


def test_methods_without_their_package_are_left_out_with_a_message(cohort, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "read_cohort", lambda name, folder: cohort)
    monkeypatch.setattr("gapview_lab.league.rivals.find_spec", lambda name: None)
    command = ["omics", "cohorts", "--data-dir", str(tmp_path), "--data", "kirc", "--seeds", "1", "-o", str(tmp_path)]
    result = CliRunner().invoke(main, [*command, "--methods", "NEMO,SNF,ImputedKMeans"])
    assert result.exit_code == 0, result.output
    assert "NEMO is left out." in result.output
    assert "SNF is left out." in result.output
    assert "ImputedKMeans" in (tmp_path / "cohorts.md").read_text()
    assert len((tmp_path / "cohorts.csv").read_text().splitlines()) == 5
    unknown = CliRunner().invoke(main, [*command, "--methods", "COCA"])
    assert unknown.exit_code == 2
    assert f"Choose among: {', '.join(METHODS)}" in unknown.output


@pytest.mark.data
def test_published_cohorts_are_read():
    if not os.environ.get("GAPVIEW_DATA"):
        pytest.skip("GAPVIEW_DATA is not set")
    folder = Path(os.environ["GAPVIEW_DATA"])
    coread, kirc = (read_cohort(name, folder) for name in ("coread", "kirc"))
    assert (coread.views.n_samples, coread.views.n_features, coread.counts) == (121, (500, 200, 100), (2,))
    assert np.unique(coread.target).tolist() == ["CMS1", "CMS3"]
    assert (kirc.views.n_samples, kirc.counts, int(kirc.events.sum())) == (124, (3, 4, 5), 34)
