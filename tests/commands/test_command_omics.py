"""Files of omics and offices through the command line: read, annotated copies, markers, contributions."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite
from sklearn.metrics import adjusted_rand_score

import gapview
from gapview.datasets import make_views

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

from awkward_files import clustered, rows_of, run  # noqa: E402

N = 60
IDS = [f"P{row:02d}" for row in range(N)]
MADE = make_views(N, (6, 5), n_clusters=3, random_state=0)
FRAMES = {
    "rna": pd.DataFrame(MADE.views.matrices[0][:50], index=IDS[:50], columns=[f"g{j}" for j in range(6)]),
    "prot": pd.DataFrame(MADE.views.matrices[1][10:], index=IDS[10:], columns=[f"p{j}" for j in range(5)]),
}
TARGET = dict(zip(IDS, MADE.target, strict=True))


def write_book(folder):
    pytest.importorskip("python_calamine")
    pytest.importorskip("xlsxwriter")
    with pd.ExcelWriter(folder / "study.xlsx", engine="xlsxwriter") as book:
        for name, frame in FRAMES.items():
            frame.rename_axis("id").to_excel(book, sheet_name=name)
    return [folder / "study.xlsx"]


def write_r(folder):
    rdata = pytest.importorskip("rdata")
    rdata.write_rds(folder / "rna.rds", FRAMES["rna"])
    rdata.write_rda(folder / "other.rda", {"prot": FRAMES["prot"]})
    return [folder / "rna.rds", f"prot={folder / 'other.rda'}"]


def write_zst(folder):
    for name, frame in FRAMES.items():
        content = frame.rename_axis("id").to_csv(sep=";", decimal=",").encode()
        (folder / f"{name}.csv.zst").write_bytes(pa.Codec("zstd").compress(content, asbytes=True))
    return [folder / f"{name}.csv.zst" for name in FRAMES]


def write_10x(folder):
    for name, frame in FRAMES.items():
        (folder / name).mkdir()
        mmwrite(folder / name / "matrix.mtx", sparse.coo_array(frame.to_numpy().T), precision=17)
        (folder / name / "barcodes.tsv").write_text("\n".join(frame.index))
        lines = [f"{feature}\t{feature}\tGene Expression\n" for feature in frame.columns]
        (folder / name / "features.tsv").write_text("".join(lines))
    return [folder / name for name in FRAMES]


def mudata_of(frames=FRAMES):
    ad, mu = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    parts = {
        name: ad.AnnData(
            frame.to_numpy(), obs=pd.DataFrame(index=list(frame.index)), var=pd.DataFrame(index=list(frame.columns))
        )
        for name, frame in frames.items()
    }
    parts["rna"].layers["twice"] = sparse.csr_array(2 * parts["rna"].X)
    parts["rna"].obsm["X_pca"] = parts["rna"].X[:, :2].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions to come
        return parts, mu.MuData(parts)


def write_mudata(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mudata_of()[1].write(folder / "study.h5mu")
    return [folder / "study.h5mu"]


WRITERS = {"xlsx": write_book, "R": write_r, "zst": write_zst, "10x": write_10x, "h5mu": write_mudata}


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_gives_the_groups(tmp_path, kind):
    model = gapview.load(clustered(tmp_path / "out", *WRITERS[kind](tmp_path)))
    assert model.views_.names == ("rna", "prot")
    assert model.views_.n_present == (50, 50)
    for k, frame in enumerate(FRAMES.values()):
        read = model.views_.matrices[k]
        np.testing.assert_allclose(read.toarray() if sparse.issparse(read) else read, frame.to_numpy(), rtol=1e-12)
        assert model.views_.feature_names[k].tolist() == frame.columns.tolist()
    found = rows_of(tmp_path / "out" / "labels.csv")
    assert adjusted_rand_score([TARGET[key] for key in found], [row["label"] for row in found.values()]) > 0.9
    new = run("predict", tmp_path / "out" / "model.gapview", *WRITERS[kind](_new(tmp_path)), "-o", tmp_path / "new.csv")
    assert "Groups" in new.output
    assert set(rows_of(tmp_path / "new.csv")) == set(IDS)


def _new(folder):
    (folder / "new").mkdir()
    return folder / "new"


def test_a_sheet_by_name(tmp_path):
    book = write_book(tmp_path)[0]
    clustered(tmp_path / "out", book, "--sheet", "rna")
    assert len(rows_of(tmp_path / "out" / "labels.csv")) == 50
    wrong = run("cluster", book, "-k", "3", "-o", tmp_path / "none", "--sheet", "rnas", code=1)
    assert "has no sheet 'rnas'; it has 'rna', 'prot'" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layer", "rna=counts"], "has no layers/counts; it has X, layers/twice, obsm/X_pca"),
        (["--obsm", "X_umap"], "has no obsm/X_umap"),
        (["--raw", "rna"], "has no raw/X"),
        (["--layer", "genes=twice"], "is given for 'genes'; such files and views are"),
        (["--layer", "rna=twice", "--obsm", "rna=X_pca"], "given as layers/twice and as obsm/X_pca"),
    ],
)
def test_matrices_that_are_not_there(tmp_path, options, message):
    result = run("cluster", *write_mudata(tmp_path), "-k", "3", "-o", tmp_path / "out", *options, code=1)
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_other_matrices(tmp_path):
    file = write_mudata(tmp_path)[0]
    layer = gapview.load(clustered(tmp_path / "layer", file, "--layer", "rna=twice"))
    np.testing.assert_allclose(layer.views_.matrices[0].toarray(), 2 * FRAMES["rna"].to_numpy())
    obsm = gapview.load(clustered(tmp_path / "obsm", file, "--obsm", "rna=X_pca"))
    assert obsm.views_.n_features == (2, 5)


# -- annotated copies -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_an_annotated_copy_of_a_mudata(tmp_path):
    mu = pytest.importorskip("mudata")
    file = write_mudata(tmp_path)[0]
    file.chmod(0o400)
    before = file.read_bytes()
    model = gapview.load(clustered(tmp_path / "out", file))
    assert file.read_bytes() == before
    copy = mu.read_h5mu(tmp_path / "out" / "study_annotated.h5mu")
    row = {key: i for i, key in enumerate(model.sample_ids_)}
    rows = [row[name] for name in copy.obs_names]
    assert copy.obs["gapview"].tolist() == [str(label) for label in model.labels_[rows]]
    np.testing.assert_allclose(copy.obs["gapview_confidence"], model.confidence_[rows])
    np.testing.assert_array_equal(copy.obsm["X_gapview"], model.embedding_[rows])
    assert copy.uns["neighbors"]["connectivities_key"] == "connectivities"
    expected = model.sample_graph()[rows][:, rows]
    np.testing.assert_allclose(copy.obsp["connectivities"].toarray(), (expected / expected.data.max()).toarray())
    shares = copy.obs[["gapview_rna_contribution", "gapview_prot_contribution"]].to_numpy()
    np.testing.assert_allclose(shares, model.view_contributions().share[rows])
    np.testing.assert_array_equal(copy.mod["rna"].X, FRAMES["rna"].to_numpy())  # what was there stays
    assert list(copy.mod["rna"].layers) == ["twice"]


def test_copies_of_anndata(tmp_path):
    ad = pytest.importorskip("anndata")
    parts, _ = mudata_of()
    parts["rna"].uns["neighbors"] = {"params": {"method": "umap"}, "connectivities_key": "connectivities"}
    parts["rna"].obsp["connectivities"] = sparse.csr_matrix(np.eye(50))
    for name, part in parts.items():
        part.write_h5ad(tmp_path / f"{name}.h5ad")
    files = [tmp_path / f"{name}.h5ad" for name in parts]
    clustered(tmp_path / "out", *files)
    copy = ad.read_h5ad(tmp_path / "out" / "rna_annotated.h5ad")
    assert copy.uns["neighbors"]["params"]["method"] == "umap"  # the graph of another tool is kept
    np.testing.assert_array_equal(copy.obsp["connectivities"].toarray(), np.eye(50))
    assert copy.obsp["gapview_connectivities"].shape == (50, 50)
    assert copy.uns["gapview_neighbors"]["distances_key"] == "gapview_distances"
    assert ad.read_h5ad(tmp_path / "out" / "prot_annotated.h5ad").obs["gapview"].notna().all()
    again = clustered(tmp_path / "again", tmp_path / "out" / "rna_annotated.h5ad", "--no-annotate")
    assert {file.name for file in again.parent.iterdir()} == {
        *("labels.csv", "embedding.csv", "markers.csv", "model.gapview", "run.json")
    }
    renamed = clustered(tmp_path / "renamed", *files, "--id-pattern", r"\d+")
    assert not list(renamed.parent.glob("*.h5ad"))


def test_scanpy_runs_on_the_copy(tmp_path):
    sc = pytest.importorskip("scanpy")
    pytest.importorskip("igraph")
    ad = pytest.importorskip("anndata")
    mudata_of()[0]["rna"].write_h5ad(tmp_path / "rna.h5ad")
    clustered(tmp_path / "out", tmp_path / "rna.h5ad")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own
        copy = ad.read_h5ad(tmp_path / "out" / "rna_annotated.h5ad")
        sc.tl.leiden(copy, flavor="igraph", n_iterations=2, resolution=0.2)
        sc.tl.umap(copy, maxiter=10)
    assert adjusted_rand_score(copy.obs["leiden"], copy.obs["gapview"]) > 0.5
    assert copy.obsm["X_umap"].shape == (50, 2)


# -- markers and contributions ----------------------------------------------------------------------------------------


def plain(folder):
    for name, frame in FRAMES.items():
        frame.rename_axis("id").to_csv(folder / f"{name}.csv")
    return [folder / f"{name}.csv" for name in FRAMES]


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_markers_and_contributions_are_written(tmp_path):
    pytest.importorskip("xlsxwriter")
    result = run("cluster", *plain(tmp_path), "-k", "3", "-o", tmp_path / "out", "--no-report", "--excel", "-v")
    model = gapview.load(tmp_path / "out" / "model.gapview")
    rows = table(tmp_path / "out" / "markers.csv")
    expected = model.markers()
    assert len(rows) == 3 * 11 == len(expected)
    assert list(rows[0]) == list(expected.columns)
    assert [row["feature"] for row in rows] == expected.columns["feature"].tolist()
    np.testing.assert_allclose([float(row["fdr"]) for row in rows], expected.columns["fdr"], rtol=1e-5)
    assert "Each feature is tested against groups that are found without it" in " ".join(result.output.split())
    shares = rows_of(tmp_path / "out" / "contributions.csv")
    assert shares["P00"]["contribution_rna"] == "1.000"
    assert shares["P00"]["contribution_prot"] == ""
    both = [float(row["contribution_rna"]) + float(row["contribution_prot"]) for row in list(shares.values())[10:50]]
    np.testing.assert_allclose(both, 1, atol=0.002)
    calamine = pytest.importorskip("python_calamine")
    book = calamine.CalamineWorkbook.from_path(str(tmp_path / "out" / "results.xlsx"))
    assert book.sheet_names == ["labels", "contributions", "embedding", "markers"]
    assert book.get_sheet_by_name("markers").to_python()[1][:2] == [rows[0]["view"], rows[0]["feature"]]
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert {"markers.csv", "contributions.csv"} <= set(record["results"])
    refused = run("cluster", tmp_path / "out" / "contributions.csv", "-k", "2", "-o", tmp_path / "none", code=1)
    assert "the groups that gapview has written" in refused.stderr


def test_markers_of_a_model(tmp_path):
    quick = ("-k", "3", "--method", "Concat", "--markers", "none", "--no-report")
    run("cluster", *plain(tmp_path), *quick, "-o", tmp_path / "out")
    model = tmp_path / "out" / "model.gapview"
    assert not (tmp_path / "out" / "markers.csv").exists()
    run("markers", model, "-o", tmp_path / "all.csv")
    same = run("markers", model, "-o", tmp_path / "same.csv", "--same", "--top", "2")
    assert "p-values are too small" in " ".join(same.output.split())
    assert len(table(tmp_path / "all.csv")) == 33
    assert len(table(tmp_path / "same.csv")) == 3 * 2 * 2
    run("markers", model, "-o", tmp_path / "all.csv", code=1)
    if pytest.importorskip("xlsxwriter"):
        run("markers", model, "-o", tmp_path / "all.xlsx")
        assert (tmp_path / "all.xlsx").read_bytes()[:2] == b"PK"


def test_one_group_has_no_markers(tmp_path):
    run("cluster", *plain(tmp_path), "-k", "1", "-o", tmp_path / "out", "--no-report", "--no-assess")
    assert not (tmp_path / "out" / "markers.csv").exists()
    result = run("markers", tmp_path / "out" / "model.gapview", "-o", tmp_path / "m.csv", code=1)
    assert "one group" in result.stderr
