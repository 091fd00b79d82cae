"""Links between views: the weakest one, and parts that no sample links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview.errors import GapviewWarning
from gapview.metrics import clustering_accuracy
from gapview.views.linking import parts_of, sample_parts, weakest_link

masks = st.tuples(st.integers(1, 12), st.integers(1, 6)).flatmap(lambda shape: arrays(bool, shape))


def connected(edges: np.ndarray) -> list[set[int]]:
    """Return the sets of views that a path connects."""
    found = [{k} for k in range(len(edges))]
    for i, j in zip(*np.nonzero(edges), strict=True):
        one, other = (next(own for own in found if k in own) for k in (i, j))
        if one is not other:
            found.remove(other)
            one |= other
    return found


def shared(mask: np.ndarray) -> np.ndarray:
    return np.array(
        [[(mask[:, i] & mask[:, j]).sum() * (i != j) for i in range(mask.shape[1])] for j in range(mask.shape[1])]
    )


@given(masks)
@settings(max_examples=200, deadline=None)
def test_the_weakest_link_is_the_largest_number_that_still_connects_all(mask):
    links = shared(mask)
    enough = [n for n in range(1, len(mask) + 1) if len(connected(links >= n)) == 1]
    assert weakest_link(mask) == (max(enough, default=0) if mask.shape[1] > 1 else 0)


@given(masks)
@settings(max_examples=200, deadline=None)
def test_parts_are_what_paths_connect_and_the_largest_comes_first(mask):
    part = parts_of(mask)
    expected = [own for own in connected(shared(mask) > 0) if mask[:, sorted(own)].any()]
    filled = [np.flatnonzero((part == i) & mask.any(axis=0)).tolist() for i in np.unique(part)]
    assert sorted(filled) == sorted(sorted(own) for own in expected) or not expected
    sizes = [mask[:, sorted(own)].any(axis=1).sum() for own in expected]
    if sizes:
        assert mask[:, part == 0].any(axis=1).sum() == max(sizes)


@given(masks)
@settings(max_examples=100, deadline=None)
def test_distinct_rows_with_their_numbers_have_the_same_parts(mask):
    distinct, counts = np.unique(mask, axis=0, return_counts=True)
    ours, theirs = parts_of(distinct, counts), parts_of(mask)
    sizes = np.bincount(sample_parts(mask, theirs))
    if len(set(sizes)) == len(sizes):  # equal sizes may be numbered either way
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "model", [GRMF(3, random_state=0), BridgedGRMF(3, random_state=0)], ids=["GRMF", "BridgedGRMF"]
)
def test_parts_have_groups_of_their_own(model):
    data = make_views(300, (20, 20, 20, 20), n_clusters=3, separation=9.0, noise=0.5, random_state=0)
    part = (np.arange(300) % 3 == 0).astype(int)  # 200 samples with the first two views, 100 with the others
    views = data.views.hide(np.column_stack([part == 0, part == 0, part == 1, part == 1]))
    with pytest.warns(
        GapviewWarning, match="No sample links these 2 parts of the views: 'view_0', 'view_1' .200 samples"
    ):
        model.fit(views)
    np.testing.assert_array_equal(model.part_, part)
    np.testing.assert_array_equal(model.labels_ // 3, part)
    for own in range(2):
        assert clustering_accuracy(data.target[part == own], model.labels_[part == own]) > 0.95
    for method in ("neighbors", "centers"):
        assert (model.predict(views, method=method) == model.labels_).mean() > 0.95
    assert set(model.predict([None, None, views.matrices[2][:5], None]) // 3) == {1}
    assert model.confidence_.min() > 0.3
    stable = model.cluster_stability(n_resamples=2, random_state=0)
    assert stable.jaccard.shape == (6,)


def test_linked_views_are_one_part(recwarn):
    views = make_views(90, (10, 10), n_clusters=3, missing_rate=0.3, random_state=0).views
    assert not BridgedGRMF(3, selection="fixed", random_state=0).fit(views).part_.any()
    assert not recwarn.list
