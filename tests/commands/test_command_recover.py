"""``gapview recover``: completed views, as they were written and in their own units."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import gapview

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from awkward_files import clustered, made, run, write_in  # noqa: E402

TRUTH = made()


def test_in_the_format_and_units_of_the_files(model, put, tmp_path):
    blood = put("blood.csv", TRUTH.blood, sep=";", decimal=",")
    scans = tmp_path / "march.csv.gz"
    scans.write_bytes(gzip.compress(TRUTH.scans.to_csv(sep="\t").encode()))
    run("recover", model, blood, scans, "-o", tmp_path / "full")
    full = pd.read_csv(
        tmp_path / "full" / "blood.csv",
        sep=";",
        decimal=",",
        index_col="id",
        dtype={"id": str},
        float_precision="round_trip",
    )
    assert set(full.index) == set(TRUTH.target)
    assert (full.loc[TRUTH.blood.index, TRUTH.blood.columns] == TRUTH.blood).all(axis=None)
    assert (full.gapview_recovered == [int(key not in TRUTH.blood.index) for key in full.index]).all()
    packed = gzip.decompress((tmp_path / "full" / "march.csv.gz").read_bytes()).decode()
    assert packed.startswith("id\tsize_0\t")
    given = {"blood": TRUTH.blood, "scans": TRUTH.scans}
    expected = gapview.load(model).recover(given)["blood"].loc[full.index]
    np.testing.assert_array_equal(full[TRUTH.blood.columns].to_numpy(), expected.to_numpy())


def test_views_that_no_file_holds_are_written_as_csv(model, put, tmp_path):
    result = run("recover", model, put("blood.csv", TRUTH.blood.iloc[:4]), "-o", tmp_path / "full")
    scans = pd.read_csv(
        tmp_path / "full" / "scans.csv", index_col="id", dtype={"id": str}, float_precision="round_trip"
    )
    assert scans.index.tolist() == TRUTH.blood.index[:4].tolist()
    assert scans.columns.tolist() == [*TRUTH.scans.columns, "gapview_recovered"]
    assert (scans.gapview_recovered == 1).all()
    assert "'scans': 4 rows of 4 recovered, marked in column 'gapview_recovered'." in result.output


def test_training_samples_without_files(model, tmp_path):
    result = run("recover", model, "-o", tmp_path / "full")
    fitted = gapview.load(model)
    for name, expected in fitted.recover().items():
        full = pd.read_csv(
            tmp_path / "full" / f"{name}.csv", index_col="id", dtype={"id": str}, float_precision="round_trip"
        )
        np.testing.assert_array_equal(full[expected.columns].to_numpy(), expected.to_numpy())
        assert full.index.tolist() == fitted.sample_ids_.tolist()
    record = json.loads((tmp_path / "full" / "run.json").read_text())
    assert set(record["results"]) == {"blood.csv", "scans.csv", "recovery.csv"}
    table = pd.read_csv(tmp_path / "full" / "recovery.csv")
    scores = fitted.recovery_scores()
    assert [row["method"] for row in record["recovery"]] == [one.method for one in scores.views]
    for one, expected in zip(scores.views, fitted.recover().values(), strict=True):
        own = table[table.view == one.view]
        assert own.feature.tolist() == expected.columns.tolist()
        np.testing.assert_allclose(own["R2_ridge"], one.feature_r2["ridge"], atol=1e-4)
        assert f"'{one.view}': R² {one.best_r2:.2f} on {one.n_tested} held-out" in " ".join(result.output.split())
    assert record["model"]["path"] == str(model)
    run("recover", model, "-o", tmp_path / "full", code=1)
    run("recover", model, "-o", tmp_path / "full", "--force")


def test_filled_cells_are_counted(model, put, tmp_path):
    gaps = TRUTH.blood.iloc[:5].copy()
    gaps.iloc[1, 2] = gaps.iloc[1, 3] = gaps.iloc[4, 0] = np.nan
    result = run("recover", model, put("b.csv", gaps), "-o", tmp_path / "full", "--partial-rows", "fill")
    full = pd.read_csv(tmp_path / "full" / "b.csv", index_col="id", dtype={"id": str}, float_precision="round_trip")
    assert full.gapview_filled_cells.tolist() == [0, 2, 0, 0, 1]
    assert not full.isna().any(axis=None)
    assert (full[gaps.columns].to_numpy()[gaps.notna()] == gaps.to_numpy()[gaps.notna()]).all()
    assert "3 empty cells filled in other rows" in result.output


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".h5ad", ".h5mu"])
def test_other_formats(tmp_path, suffix):
    frames = {"blood": TRUTH.blood, "scans": TRUTH.scans}
    write_in(tmp_path, suffix, frames)
    files = sorted(tmp_path.glob(f"*{suffix}"))
    path = clustered(tmp_path / "out", *files)
    run("recover", path, *files, "-o", tmp_path / "full")
    expected = {f"blood{suffix}", f"scans{suffix}", "recovery.csv", "run.json"}
    assert {file.name for file in (tmp_path / "full").iterdir()} == expected
    again = gapview.io.read_views(sorted((tmp_path / "full").glob(f"*{suffix}")))
    assert {view.name.rpartition(".")[2] for view in again} == set(frames)
    for view in again:
        frame = frames[view.name.rpartition(".")[2]]
        assert set(view.frame.index) == set(TRUTH.target)
        assert view.frame.columns.tolist() == frame.columns.tolist() or suffix == ".npz"  # without the marks
        kept = view.frame.loc[frame.index]
        np.testing.assert_array_equal(kept.to_numpy(), frame.to_numpy())
