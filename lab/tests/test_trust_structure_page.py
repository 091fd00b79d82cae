"""The page on the structure of noise and of labelled data."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from gapview.datasets import make_views
from gapview_lab.cli import main
from gapview_lab.trust import structure as page


@pytest.mark.parametrize("kind", page.NOISE)
def test_noise_has_gaps_and_no_groups(kind):
    views = page.noise_views(kind, 1)
    assert 100 <= views.n_samples <= 400
    assert not views.mask.all()
    np.testing.assert_array_equal(views.matrices[0], page.noise_views(kind, 1).matrices[0])


def test_rows_and_page():
    data = make_views(90, (8, 10), n_clusters=3, missing_rate=0.3, random_state=0)
    rows = [page.measure("made", 0, data.views, 3, data.target)]
    assert rows[0]["has_structure"]
    assert set(rows[0]) == set(page.FIELDS)
    assert rows[0]["fixed_fits"] < 40
    text = page.page(rows)
    assert rows[0]["ari"] > 0.9
    assert f"| made | 90 | 3 | {rows[0]['ari']} | 0.05 | yes |" in text
    assert "| gaussian | auto | 0 | 0 |" in text
    assert "recovered views" in text


def test_stored_rows_are_kept(tmp_path):
    command = ["trust", "structure", "-o", str(tmp_path), "--per-kind", "1", "--resume"]
    path = tmp_path / "trust" / "structure.csv"
    path.parent.mkdir()
    lines = [",".join(page.FIELDS), "made,0,90,2,3,3,0.9,0.05,True,0.005,52,1.0,30.0"]
    lines += [f"{kind},0,100,2,{count},4,,0.5,False,0.5,12,," for kind in page.NOISE for count in page.COUNTS]
    path.write_text("\n".join(lines[:-1]) + "\n")
    assert CliRunner().invoke(main, command, env={"GAPVIEW_DATA": None}).exit_code == 0
    rows = path.read_text().splitlines()
    assert rows[: len(lines) - 1] == lines[:-1]
    assert len(rows) == len(lines)
    assert rows[-1].startswith("correlated features,0,151,2,4,4,")
