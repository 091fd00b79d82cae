"""The plan of a search, with a kernel whose recall is known."""

from __future__ import annotations

import numpy as np
import pytest

from gapview.errors import GapviewWarning
from gapview.graph.neighbors import Search, SearchReport
from gapview.graph.neighbors import search as limits
from gapview.graph.neighbors.search import CellKernel, run_search


class Known(CellKernel):
    """True neighbours lie at distance 1; those found, too, if enough cells are searched, else at distance 2."""

    engine, exact_engine = "known", "all"
    n_points, n_queries, n_neighbors = 4000, 900, 2

    def __init__(self, n_planned, n_needed):
        self.n_planned, self.n_needed, self.tried = n_planned, n_needed, []

    def divide(self, n_cells, seed):
        self.n_cells = n_cells

    def true_neighbors(self, rows):
        return np.ones((len(rows), 2)), "true neighbours"

    def cell_ranks(self, sample):
        assert sample.neighbors == "true neighbours"
        return np.full((len(sample.rows), 2), self.n_planned - 1)

    def search(self, setting, rows):
        assert len(rows) == 500
        self.tried.append(setting.n_probes)
        return "found", np.full((len(rows), 2), 1.0 if setting.n_probes >= self.n_needed else 2.0)

    def exact(self):
        return "all"


def test_the_fewest_probes_are_used():
    kernel, search = Known(7, 7), Search("approximate")
    assert run_search(kernel, search) == "found"
    assert kernel.tried == [7]
    assert search.done == [SearchReport("approximate", "known", 4000, 900, 2, 1.0, 95, 7, 295)]


def test_more_probes_where_the_recall_is_missed():
    kernel, search = Known(4, 8), Search("approximate")
    assert run_search(kernel, search) == "found"
    assert kernel.tried == [4, 6, 9]
    assert (search.done[0].n_probes, search.done[0].recall) == (9, 1.0)


@pytest.mark.parametrize(("n_planned", "tried"), [(20, [20, 30, 45]), (60, [])])
def test_all_distances_where_half_of_the_cells_are_too_few(n_planned, tried, monkeypatch):
    kernel, search = Known(n_planned, 95), Search()
    monkeypatch.setattr(limits, "EXACT_PAIRS", 1000)
    with pytest.warns(GapviewWarning, match="900 samples among 4000 .* No cheaper search finds 95% of the neighbours"):
        assert run_search(kernel, search) == "all"
    assert kernel.tried == tried
    assert search.done == [SearchReport("exact", "all", 4000, 900, 2)]


@pytest.mark.filterwarnings("error")
def test_no_warning_where_all_distances_are_cheap():
    kernel, search = Known(60, 95), Search("approximate")
    assert run_search(kernel, search) == "all"
    assert run_search(kernel, Search()) == "all"
