"""The parts of a fit on disk against the same parts in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from disk_problems import saved, with_gaps
from gapview import GRMF, Views, scaling
from gapview.backends.disk.backend import build_problem, scale_alike
from gapview.backends.disk.budget import FitSize, fit_size, plan_memory, read_budget
from gapview.backends.disk.files import Scratch
from gapview.backends.disk.neighbors import nearest_rows
from gapview.backends.disk.views import is_mapped, mapped_file, read_mapped
from gapview.datasets import make_views
from gapview.errors import GapviewError, GapviewWarning, InputError, ParameterError
from gapview.factorization import problem
from gapview.graph import bridges
from gapview.graph import knn as graph
from gapview.graph.neighbors import Search, nearest
from gapview.graph.neighbors import search as _search
from gapview.views import training_views
from problems import random_mask


def stored(scratch, matrix, width=None):
    tiles = scratch.matrix(matrix.shape, matrix.dtype, width)
    tiles.write_rows(0, matrix)
    return tiles


# -- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["f4", "f8", ">f8", "f2", "i2", "u1", "?"])
def test_mapped_files_are_read_as_arrays_are(tmp_path, order, kind):
    values = np.random.RandomState(0).uniform(0, 200, size=(57, 7)).astype(kind)
    (mapped,) = saved(tmp_path, [values], order)
    file = mapped_file("a", mapped)
    expected = Views([values]).matrices[0]
    assert file.read(0, 57).dtype == expected.dtype
    assert np.array_equal(file.read(0, 57), expected)
    assert np.array_equal(file.read(11, 30), expected[11:30])
    assert file.read(5, 5).shape == (0, 7)


@pytest.mark.parametrize("part", [np.s_[3:40], np.s_[:, 2:5], np.s_[::3], np.s_[4::2, 1:]])
@pytest.mark.parametrize("order", ["C", "F"])
def test_parts_of_maps_are_read_or_refused(tmp_path, order, part):
    values = np.random.RandomState(0).normal(size=(57, 7))
    mapped = saved(tmp_path, [values], order)[0][part]
    assert is_mapped(mapped)
    if order == "F" and part in (np.s_[::3], np.s_[4::2, 1:]):
        with pytest.raises(InputError, match="rows are not consecutive in the file"):
            mapped_file("a", mapped)
    else:
        assert np.array_equal(mapped_file("a", mapped).read(1, 9), values[part][1:9])


def test_private_changes_of_a_map_are_refused(tmp_path):
    saved(tmp_path, [np.eye(4)])
    with pytest.raises(InputError, match="mode 'c'"):
        mapped_file("a", np.load(tmp_path / "0.npy", mmap_mode="c"))


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 10), st.data())
def test_scratch_matrices_hold_what_was_written(n_rows, n_columns, width, data):
    matrix = np.random.RandomState(n_rows).normal(size=(n_rows, n_columns))
    with Scratch() as scratch:
        tiles = scratch.matrix(matrix.shape, matrix.dtype, width)
        cut = data.draw(st.integers(0, n_rows))
        tiles.write_rows(cut, matrix[cut:])
        tiles.write_rows(0, matrix[:cut])
        for tile in tiles.tiles:
            assert np.array_equal(tiles.read_tile(tile), matrix[:, tile])
        rows = data.draw(st.lists(st.integers(-n_rows, n_rows - 1), max_size=12))
        assert np.array_equal(tiles[np.array(rows, dtype=int)], matrix[rows])
        assert np.array_equal(tiles[cut:], matrix[cut:])
        flat = scratch.row_by_row(tiles)
        assert np.array_equal(flat, matrix)
        other = np.random.RandomState(0).normal(size=(n_columns, 2))
        np.testing.assert_allclose(flat @ other, matrix @ other, atol=1e-12)
        np.testing.assert_allclose(flat.T @ matrix[:, 0], matrix.T @ matrix[:, 0], atol=1e-12)
        assert flat.mean() == matrix.mean()  # what only the whole can do
        assert np.array_equal(flat > 0, matrix > 0)


# -- reading and checks ----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.sampled_from(["raise", "drop"]), st.booleans(), st.booleans(), st.booleans())
def test_files_are_checked_as_arrays_are(tmp_path_factory, seed, policy, masked, gappy, constant):
    rng = np.random.RandomState(seed)
    n_samples = rng.randint(1, 30)
    matrices = [rng.normal(size=(n_samples, rng.randint(1, 6))) for _ in range(rng.randint(1, 4))]
    shown = random_mask(rng, n_samples, len(matrices), 0.7, 1)
    for k, matrix in enumerate(matrices):
        if rng.uniform() < 0.8:
            matrix[~shown[:, k]] = np.nan
        if gappy:
            matrix[rng.uniform(size=matrix.shape) < 0.03] = rng.choice([np.nan, np.inf, -np.inf])
        if constant and k == 0:
            matrix[:] = np.where(np.isnan(matrix), np.nan, 2.0)
    mask = rng.uniform(size=shown.shape) < 0.9 if masked else None
    maps = saved(tmp_path_factory.mktemp("views"), matrices)
    outcomes = []
    for read, views in ((training_views, matrices), (read_mapped, maps)):
        try:
            outcomes.append(read(views, mask, policy, 2))
        except GapviewError as error:
            outcomes.append((type(error), str(error)))
    if isinstance(outcomes[0], tuple):
        # Rows that are the same but for hidden ones between them are left to scaling to find
        assert outcomes[1] == outcomes[0] or "is constant" in outcomes[0][1]
        return
    there, here = outcomes
    assert np.array_equal(here.mask, there.mask)
    assert here.names == there.names
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(here.matrices, there.matrices, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(here[::2].matrices, there[::2].matrices, strict=True))


def test_dicts_and_single_views_keep_their_names(tmp_path):
    first, second = saved(tmp_path, [np.random.RandomState(0).normal(size=(9, 2)), np.eye(9)])
    assert read_mapped({"a": first, "b": second}, None, "raise", 2).names == ("a", "b")
    assert read_mapped(first, None, "raise", 2).names == ("view_0",)


def test_gaps_cannot_be_filled_on_disk(tmp_path):
    values = np.random.RandomState(0).normal(size=(9, 3))
    values[4, 1] = np.nan
    maps = saved(tmp_path, [values, np.eye(9)])
    with pytest.raises(ParameterError, match=r"1 row\(s\) with some but not all values, and partial_rows='fill'"):
        read_mapped(maps, None, "fill", 2)
    hidden = np.ones((9, 2), dtype=bool)
    hidden[4, 0] = False
    assert read_mapped(maps, hidden, "fill", 2).mask.sum() == 17


# -- what the fit does -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", scaling.SCALES)
@pytest.mark.parametrize("kinds", [("f4", "f4"), ("f4", "f8")])
def test_views_are_scaled_as_in_memory(tmp_path, scale, kinds):
    views = make_views(200, (7, 12), missing_rate=0.3, random_state=0).views
    matrices = [matrix.astype(kind) * 100 + 5 for matrix, kind in zip(with_gaps(views), kinds, strict=True)]
    mapped = read_mapped(saved(tmp_path, matrices), None, "raise", 2)
    expected, known = scaling.scale_alike(Views(matrices), scale)
    with Scratch() as scratch:
        scaled, scalings = scale_alike(mapped, scale, [3, 12], 1000, scratch)
        for ours, theirs in zip(scaled, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, atol=1e-6 if kinds[1] == "f4" else 1e-7)
    for ours, theirs in zip(scalings, known, strict=True):
        assert (ours.center is None, ours.row_length is None) == (theirs.center is None, theirs.row_length is None)
        if ours.row_length is not None:
            assert ours.row_length == pytest.approx(theirs.row_length, rel=1e-6)
        if ours.center is not None:
            np.testing.assert_allclose([ours.center, ours.spread], [theirs.center, theirs.spread], rtol=1e-6)


def test_views_that_scaling_makes_useless_are_refused(tmp_path):
    rays = np.outer(np.arange(1.0, 10), [1.0, 2.0])
    huge = np.random.RandomState(0).uniform(2.9e38, 3.3e38, size=(9, 2)).astype(np.float32)
    for values, scale, text in ((rays, "unit", "is constant once scaled"), (huge, "unit", "lengths of its rows")):
        with Scratch() as scratch, pytest.raises(InputError, match=text):
            scale_alike(read_mapped(saved(tmp_path, [values]), None, "raise", 2), scale, [1], 40, scratch)


@pytest.mark.parametrize("factor", [1.0, 1e-150, 1e150])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_exact_neighbours_are_those_of_memory(factor, shift):
    points = (np.random.RandomState(1).normal(size=(150, 5)) + shift) * factor
    rows, search = np.arange(0, 150, 2), Search()
    with Scratch() as scratch:
        found = nearest_rows(stored(scratch, points, 2), rows, 6, search, 2000, scratch)
    assert np.array_equal(found, np.sort(nearest(points[rows], 6)[1], axis=1))
    assert search.done[0].method == "exact"


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_most_neighbours_are_found_in_few_cells(shift):
    points = make_views(4000, [12], n_clusters=8, random_state=0).views.matrices[0].astype(np.float32) + shift
    search = Search("approximate")
    with Scratch() as scratch:
        found = nearest_rows(stored(scratch, points.astype(np.float32), 5), np.arange(4000), 8, search, 10**6, scratch)
    true = nearest(points, 8, search=Search("exact"))[1]
    recall = np.mean([len(np.intersect1d(*pair)) / 8 for pair in zip(found, true, strict=True)])
    (report,) = search.done
    assert report.method == "approximate"
    assert 0 < report.n_probes < report.n_cells / 4
    assert recall >= 0.94
    assert report.recall == pytest.approx(recall, abs=0.03)
    assert not (found == np.arange(4000)[:, None]).any()


def test_where_cells_do_not_help_all_distances_are_computed_at_a_stated_cost(monkeypatch):
    monkeypatch.setattr(_search, "EXACT_PAIRS", 100)
    points = np.random.RandomState(0).normal(size=(300, 200))
    search = Search(recall=0.999)
    with Scratch() as scratch, pytest.warns(GapviewWarning, match=r"take about \d+ s\. No cheaper search finds"):
        found = nearest_rows(stored(scratch, points), np.arange(300), 5, search, 10**6, scratch)
    assert np.array_equal(found, np.sort(nearest(points, 5, search=Search("exact"))[1], axis=1))
    assert search.done[0].method == "exact"


def test_duplicates_are_neighbours_like_others():
    points = np.repeat(np.random.RandomState(0).normal(size=(40, 3)), 20, axis=0)
    with Scratch() as scratch:
        found = nearest_rows(stored(scratch, points), np.arange(800), 5, Search("approximate"), 10**5, scratch)
    assert (found // 20 == (np.arange(800) // 20)[:, None]).all()
    assert not (found == np.arange(800)[:, None]).any()


def test_united_graphs_are_those_of_memory():
    views = make_views(120, (6, 8, 5), missing_rate=0.4, random_state=0).views
    expected = bridges.union_graph(views.matrices, views, [3, 4, 5], [0.5, 1.0, 1.5])
    graphs = [graph.knn_graph(matrix, k) for matrix, k in zip(views.matrices, [3, 4, 5], strict=True)]
    parts = zip(graphs, [views.rows(k) for k in range(3)], [0.5, 1.0, 1.5], strict=True)
    np.testing.assert_array_equal(bridges.unite_graphs(parts, 120).toarray(), expected.toarray())


@pytest.mark.parametrize("width", [1, 4, 100])
def test_problems_are_those_of_memory(width):
    views = make_views(80, (6, 9), missing_rate=0.3, random_state=0).views
    graphs = [graph.knn_graph(matrix, 3) for matrix in views.matrices]
    lonely = graphs[0].tolil()
    lonely[3], lonely[:, 3] = 0, 0  # a sample that nothing reaches
    graphs[0] = sparse.csr_array(lonely)
    rows = [views.rows(k) for k in range(2)]
    expected = problem.build_problem(views.matrices, graphs, rows, 80)
    with Scratch() as scratch:
        tiles = [stored(scratch, matrix, width) for matrix in views.matrices]
        made = build_problem(tiles, graphs, rows, 80, scratch)
        for ours, theirs in zip(made.terms, expected.terms, strict=True):
            assert (ours.part, ours.n_features) == (theirs.part, theirs.n_features)
            np.testing.assert_allclose(ours.smoothed, theirs.smoothed)
            np.testing.assert_allclose(ours.block(slice(3, 9)), theirs.block(slice(3, 9)))
    assert made.constant == pytest.approx(expected.constant)
    for part in ("rows", "degrees", "n_codes"):
        assert np.array_equal(getattr(made, part), getattr(expected, part))


# -- the budget ------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**15))
def test_budgets_are_read_in_any_unit(n_bytes):
    assert read_budget(n_bytes) == read_budget(float(n_bytes)) == read_budget(f"{n_bytes} B") == n_bytes
    assert read_budget(f"{n_bytes}kb") == read_budget(f"{n_bytes * 1000}b")
    assert read_budget("1.5GiB") == 3 * 2**29


def test_plans_grow_with_what_they_depend_on():
    size = {"n_samples": 10**6, "n_present": (10**6, 10**6), "n_features": (240, 76), "itemsize": 4}
    size |= {"n_clusters": 10, "n_components": 10, "n_neighbors": 10}
    plan = plan_memory(FitSize(**size))
    larger = {"itemsize": 8, "n_components": 40, "n_clusters": 40, "n_neighbors": 20, "n_starts": 9, "is_bridged": True}
    for name, value in larger.items():
        other = plan_memory(FitSize(**(size | {name: value})))
        assert other.least > plan.least, name
        assert other.in_memory > plan.in_memory, name
    wide = plan_memory(FitSize(**(size | {"n_features": (2400, 760)})))
    assert wide.in_memory > 5 * plan.in_memory
    assert wide.least < 1.2 * plan.least  # what is on disk need not be in memory
    assert plan.scratch == 3 * 4 * 10**6 * 316


def test_plans_know_sparse_views_and_given_graphs():
    views = Views([sparse.random_array((400, 5000), density=0.01, rng=0).tocsr() + sparse.csr_array((400, 5000))])
    assert plan_memory(fit_size(GRMF(2), views)).in_memory < 400 * 5000 * 8
    few, many = (sparse.random_array((400, 400), density=share, rng=0).tocsr() for share in (0.01, 0.5))
    plans = [plan_memory(fit_size(GRMF(2, graph=[weights]), views)) for weights in (few, many)]
    assert plans[0].least < plans[1].least
