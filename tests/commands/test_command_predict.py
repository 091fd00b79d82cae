"""``gapview predict``: new samples, from whatever files there are of them."""

from __future__ import annotations

import numpy as np
import pytest

import gapview

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from awkward_files import clustered, made, rows_of, run  # noqa: E402

TRUTH = made()


def test_the_same_as_from_python(model, put, tmp_path):
    blood, scans = put("blood.csv", TRUTH.blood), put("scans.csv", TRUTH.scans)
    result = run("predict", model, blood, scans, "-o", tmp_path / "p.csv")
    assert f"Wrote     {tmp_path / 'p.csv'}" in result.output
    fitted = gapview.load(model)
    given = gapview.Views({"blood": TRUTH.blood, "scans": TRUTH.scans})
    placed = fitted.place(given)
    labels = placed.labels
    found = rows_of(tmp_path / "p.csv")
    assert list(found) == given.sample_ids.tolist()
    assert [int(row["label"]) for row in found.values()] == labels.tolist()
    for name, values in {"confidence": placed.confidence, "p_value": placed.p_value}.items():
        np.testing.assert_allclose([float(row[name]) for row in found.values()], values, rtol=5e-3)
    np.testing.assert_allclose(
        [float(row["p_blood"] or "nan") for row in found.values()], placed.p_values[:, 0], rtol=5e-3
    )
    assert [row["unusual"] == "yes" for row in found.values()] == placed.unusual.tolist()
    has = [[row["has_blood"] == "yes", row["has_scans"] == "yes"] for row in found.values()]
    assert has == given.mask.tolist()
    assert (labels == fitted.labels_).mean() > 0.95


@pytest.mark.parametrize(
    "method", ["Concat", "CoRegularizedSpectral", "RobustMultiViewKMeans", "BipartiteSpectral", "MeanFilledSpectral"]
)
def test_other_methods_place_new_samples(method, put, tmp_path):
    files = put("blood.csv", TRUTH.blood), put("scans.csv", TRUTH.scans)
    run("cluster", *files, "-k", "3", "-o", tmp_path / "out", "--method", method, "--scale", "standard", "--no-report")
    fitted = gapview.load(tmp_path / "out" / "model.gapview")
    result = run("predict", tmp_path / "out" / "model.gapview", files[0], "-o", tmp_path / "p.csv")
    assert "Groups" in result.output
    expected = fitted.predict({"blood": TRUTH.blood}).tolist()
    assert [int(row["label"]) for row in rows_of(tmp_path / "p.csv").values()] == expected


def test_kernel_completion_names_what_it_lacks(put, tmp_path):
    files = put("blood.csv", TRUTH.blood), put("scans.csv", TRUTH.scans)
    result = run("cluster", *files, "-k", "3", "-o", tmp_path / "out", "--method", "KernelCompletion", code=1)
    assert "KernelCompletion needs a view that all" in result.stderr
    assert "BridgedGRMF" in result.stderr
    assert not (tmp_path / "out").exists()


def test_any_views_by_name_features_or_what_is_typed(model, put, tmp_path):
    new = TRUTH.blood.iloc[:9] + 0.01
    reordered = new[new.columns[::-1]].assign(more=1.0)
    ways = {
        "stem": [put("blood.csv", reordered)],
        "features": [put("march.csv", reordered)],
        "typed": [f"blood={put('april.csv', new)}"],
        "semicolons": [put("may.csv", new, sep=";", decimal=",")],
    }
    expected = gapview.load(model).predict({"blood": new})
    for way, files in ways.items():
        result = run("predict", model, *files, "-o", tmp_path / f"{way}.out.csv")
        rows = rows_of(tmp_path / f"{way}.out.csv")
        assert list(rows) == new.index.tolist()
        assert [int(row["label"]) for row in rows.values()] == expected.tolist()
        assert {(row["has_blood"], row["has_scans"]) for row in rows.values()} == {("yes", "no")}
        assert " is 'blood': 9 samples, 6 features" in result.output


def test_samples_need_not_be_in_more_than_one_file(model, put, tmp_path):
    files = put("blood.csv", TRUTH.blood.iloc[:4]), put("scans.csv", TRUTH.scans.iloc[:3].set_axis(list("xyz")))
    run("predict", model, files[0], files[1], "-o", tmp_path / "p.csv")
    assert list(rows_of(tmp_path / "p.csv")) == [*TRUTH.blood.index[:4], "x", "y", "z"]


def test_samples_far_from_training_are_pointed_out(model, put, tmp_path):
    far = TRUTH.blood.iloc[:3].copy()
    far.iloc[0] = [50.0, -40, 30, -20, 10, 5]
    result = run("predict", model, put("blood.csv", far), "-o", tmp_path / "p.csv")
    assert "Unusual   1 of 3 samples is unlike the training samples (p ≤ 0.05): 1 in blood" in result.output
    assert rows_of(tmp_path / "p.csv")[far.index[0]]["unusual"] == "yes"


def test_gaps_are_filled_from_training_or_refused(model, put, tmp_path):
    gaps = TRUTH.blood.iloc[:5].copy()
    gaps.iloc[1, [2, 3]] = np.nan
    path = put("blood.csv", gaps)
    refused = run("predict", model, path, "-o", tmp_path / "p.csv", code=1)
    assert "--partial-rows fill" in refused.stderr
    assert not (tmp_path / "p.csv").exists()
    run("predict", model, path, "-o", tmp_path / "fill.csv", "--partial-rows", "fill")
    assert len(rows_of(tmp_path / "fill.csv")) == 5
    dropped = run("predict", model, path, "-o", tmp_path / "drop.csv", "--partial-rows", "drop")
    assert len(rows_of(tmp_path / "drop.csv")) == 4
    assert "Warning   1 sample without a row that has all its values left out" in dropped.output


def test_encoded_words_are_encoded_again(tmp_path, put):
    sexes = TRUTH.blood.assign(sex=["f" if i % 2 else "m" for i in range(len(TRUTH.blood))])
    blood, scans = put("blood.csv", sexes), put("scans.csv", TRUTH.scans)
    run("cluster", blood, scans, "-k", "3", "-o", tmp_path / "out", "--encode", "--no-report")
    women = sexes[sexes.sex == "f"].iloc[:4]
    run("predict", tmp_path / "out" / "model.gapview", put("new.csv", women), "-o", tmp_path / "p.csv")
    trained = rows_of(tmp_path / "out" / "labels.csv")
    assert {k: r["label"] for k, r in rows_of(tmp_path / "p.csv").items()} == {
        key: trained[key]["label"] for key in women.index
    }


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("ages.csv", "has not the features of any view. The model knows the views 'blood', 'scans'"),
        ("blood=ages.csv", "lacks 6 features of view 'blood'"),
        ("bones=blood.csv", "The model knows the views 'blood', 'scans'; got 'bones'"),
        ("nothing.csv", "There is no file"),
        ("=blood.csv", "given as its path, or as name=path"),
    ],
)
def test_files_that_do_not_fit(model, put, tmp_path, monkeypatch, argument, words):
    monkeypatch.chdir(tmp_path)
    put("blood.csv", TRUTH.blood)
    put("ages.csv", pd.DataFrame({"age": [1.0, 2.0]}, index=pd.Index(["a", "b"], name="id")))
    assert words in run("predict", model, argument, "-o", "p.csv", code=1).stderr
    assert not (tmp_path / "p.csv").exists()


def test_two_files_of_one_view(model, put, tmp_path):
    files = put("blood.csv", TRUTH.blood.iloc[:3]), put("more.csv", TRUTH.blood.iloc[3:6])
    said = run("predict", model, *files, "-o", tmp_path / "p.csv", code=1).stderr
    assert "'blood.csv' and 'more.csv' are both the view 'blood'" in said


def test_arrays_are_matched_by_their_width(tmp_path):
    everyone = list(TRUTH.target)
    arrays = {name: frame.reindex(everyone).to_numpy() for name, frame in (("a", TRUTH.blood), ("b", TRUTH.scans))}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    path = clustered(tmp_path / "out", tmp_path / "a.npy", tmp_path / "b.npy")
    np.save(tmp_path / "new.npy", arrays["b"][~np.isnan(arrays["b"]).any(axis=1)][:5])
    assert "is 'b'" in run("predict", path, tmp_path / "new.npy", "-o", tmp_path / "p.csv").output
    assert list(rows_of(tmp_path / "p.csv")) == list("01234")
    np.save(tmp_path / "wide.npy", arrays["a"][:, [0, 1, 2, 3, 4, 5, 0, 1]])
    two = clustered(tmp_path / "two", tmp_path / "wide.npy", tmp_path / "b.npy")
    said = run("predict", two, tmp_path / "new.npy", "-o", tmp_path / "q.csv", code=1).stderr
    assert "'new.npy' has the features of the views 'wide', 'b'. Say which it is, as in wide=new.npy" in said
    said = run("predict", path, f"a={tmp_path / 'new.npy'}", "-o", tmp_path / "q.csv", code=1).stderr
    assert "has 8 features, and the view 'a' of the model has 6" in said


def test_nothing_is_written_over(model, put, tmp_path):
    blood = put("blood.csv", TRUTH.blood)
    before = blood.read_bytes()
    for force in ((), ("--force",)):
        assert "one of the files to read" in run("predict", model, blood, "-o", blood, *force, code=1).stderr
    (tmp_path / "p.csv").write_text("old")
    assert "--force" in run("predict", model, blood, "-o", tmp_path / "p.csv", code=1).stderr
    assert (tmp_path / "p.csv").read_text() == "old"
    run("predict", model, blood, "-o", tmp_path / "p.csv", "--force")
    assert len(rows_of(tmp_path / "p.csv")) == len(TRUTH.blood)
    assert blood.read_bytes() == before


@pytest.mark.parametrize("kind", ["x 1000", "+ 5 SD", "zeros", "permuted"])
def test_junk_is_flagged(kind, model, put, tmp_path):
    rows = TRUTH.blood.iloc[:20]
    source = np.random.RandomState(0)
    junk = {
        "x 1000": 1000 * rows,
        "+ 5 SD": rows + 5 * TRUTH.blood.std(),
        "zeros": 0.0 * rows,
        "permuted": rows.apply(lambda row: source.permutation(row), axis=1, result_type="broadcast"),
    }
    result = run("predict", model, put("blood.csv", junk[kind]), "-o", tmp_path / "p.csv")
    shares = [row["unusual"] == "yes" for row in rows_of(tmp_path / "p.csv").values()]
    if kind == "permuted":  # six features on one scale
        assert np.mean(shares) > 0.2
        return
    assert all(shares)
    assert "Unusual   20 of 20 samples are unlike the training samples" in result.output
    assert "is unlike that of the training samples" in result.output


def test_a_few_missing_columns_are_filled(model, put, tmp_path):
    lacking = TRUTH.blood.iloc[:9].drop(columns=TRUTH.blood.columns[2])
    result = run("predict", model, put("blood.csv", lacking), "-o", tmp_path / "p.csv")
    assert f"lacks 1 feature of 6 ('{TRUTH.blood.columns[2]}')" in " ".join(result.output.split())
    assert len(rows_of(tmp_path / "p.csv")) == 9
