"""The page on the refinement of groups."""

from __future__ import annotations

import numpy as np

from gapview.datasets import make_views
from gapview_lab.league import refinement as page


def test_every_change_is_scored_and_the_page_compares_them(capsys):
    rows = []
    for seed, name in enumerate(("one", "two")):
        data = make_views(120, (8, 10), n_clusters=3, separation=4.0, missing_rate=0.3, random_state=seed)
        found = list(page.try_changes(data.views, data.target, 0))
        assert [row["change"] for row in found] == [page.KEPT, *page.CHANGES]
        assert all(0 < row["accuracy"] <= 1 for row in found)
        rows += [{"data": name, "rate": "0.3", "seed": "0", **row} for row in found]
    page._write(rows)
    text = capsys.readouterr().out
    assert "Leave one data set out, ACC" in text
    assert all(change in text for change in page.CHANGES)
    kept = [100 * row["accuracy"] for row in rows if row["change"] == page.KEPT]
    assert f"{np.mean(kept):.1f}" in text
