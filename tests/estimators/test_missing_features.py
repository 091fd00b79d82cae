"""New samples that lack a few features: filled, and reported; more are an error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gapview import GRMF
from gapview.datasets import make_views
from gapview.errors import GapviewError, GapviewWarning

pd = pytest.importorskip("pandas")

FRAMES = {
    name: pd.DataFrame(matrix, index=[f"s{i}" for i in range(120)]).add_prefix(f"{name}_")
    for name, matrix in zip(
        ("blood", "scans"), make_views(120, (10, 8), n_clusters=3, random_state=0).views.matrices, strict=True
    )
}


@pytest.fixture(scope="module")
def model():
    return GRMF(3, random_state=0).fit({name: frame.iloc[:100] for name, frame in FRAMES.items()})


def new():
    return {name: frame.iloc[100:].copy() for name, frame in FRAMES.items()}


def test_missing_columns_are_filled_and_named(model):
    given = new()
    given["blood"] = given["blood"].drop(columns=["blood_3", "blood_7"])
    with pytest.warns(
        GapviewWarning, match=r"'blood' .*lacks 2 features of 10 \('blood_3', 'blood_7'\)\. They are filled"
    ):
        found = model.place(given)
    assert (found.labels == model.predict(new())).mean() >= 0.9
    assert "lacks 2 features" in found.notes[0]
    with pytest.warns(GapviewWarning, match="lacks 2 features"):
        assert list(model.recover(given)["blood"].columns) == list(FRAMES["blood"].columns)
    given["blood"] = given["blood"].drop(columns=["blood_1"])
    with pytest.raises(GapviewError, match="had 10 features in training and has 7 now"):
        model.predict(given)


def test_missing_cells_are_filled_and_counted(model):
    given = new()
    given["blood"].iloc[2, 4] = given["blood"].iloc[5, [1, 2]] = np.nan
    with pytest.warns(GapviewWarning, match="lacks 3 values in 2 samples .'s102', 's105'"):
        labels = model.predict(given)
    assert (labels == model.predict(new())).mean() >= 0.9
    given["blood"].iloc[7, :3] = np.nan
    with pytest.warns(GapviewWarning), pytest.raises(GapviewError, match="1 row.* with some but not all"):
        model.predict(given)


def test_sparse_views_lack_cells(model):
    dense = FRAMES["blood"].to_numpy()[100:].copy()
    dense[0, 0] = np.nan
    known = GRMF(3, random_state=0).fit([sparse.csr_array(FRAMES["blood"].to_numpy()[:100])])
    with pytest.warns(GapviewWarning, match="lacks 1 value in 1 sample"):
        labels = known.predict([sparse.csr_array(dense)])
    assert labels.shape == (20,)


def test_training_is_as_strict_as_before():
    gaps = {name: frame.copy() for name, frame in FRAMES.items()}
    gaps["blood"].iloc[0, 0] = np.nan
    with pytest.raises(GapviewError, match="some but not all values missing"):
        GRMF(3).fit(gaps)
