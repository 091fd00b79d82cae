"""Views from files of every format, and writing them back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from gapview.errors import DataFileError, GapviewWarning, InputError
from gapview.io import join_views, read_view, read_views, write_like

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

VALUES = np.array([[0.1, -2.0, 1e-300], [1 / 3, np.nan, 5.0], [7.0, 8.5, -1e22]])
IDS = ["s1", "s2", "ü3"]
FRAME = pd.DataFrame(VALUES, index=pd.Index(IDS, name="sample"), columns=["a", "b", "c"])
COMPLETE = FRAME.fillna(0.25)


def anndata_of(frame, matrix=None):
    anndata = pytest.importorskip("anndata")
    matrix = frame.to_numpy() if matrix is None else matrix
    obs = pd.DataFrame({"code": [f"k{i}" for i in range(len(frame))]}, index=frame.index.astype(str))
    return anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=list(frame.columns)))


def mudata_of(frame):
    mudata = pytest.importorskip("mudata")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mudata.MuData({"proteins": anndata_of(frame)})


def save_mat(frame, path):
    ids = np.asarray(frame.index.tolist(), dtype=object)
    savemat(path, {"view_0": frame.to_numpy(), "sample_ids": ids, "view_names": ["x"]})


def save_mudata(frame, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mudata_of(frame).write(path)


SAVED = {
    "comma.csv": lambda frame, path: frame.to_csv(path),
    "semicolon.csv.gz": lambda frame, path: frame.to_csv(path, sep=";", decimal=","),
    "windows.txt": lambda frame, path: frame.to_csv(path, sep="\t", decimal=",", encoding="cp1252"),
    "spaces.txt": lambda frame, path: frame.to_csv(path, sep=" ", na_rep="NA"),
    "bom.tsv": lambda frame, path: frame.to_csv(path, sep="\t", encoding="utf-8-sig", lineterminator="\r\n"),
    "utf16.csv": lambda frame, path: frame.to_csv(path, encoding="utf-16"),
    "short.txt": lambda frame, path: path.write_text(frame.to_csv(sep="|", index_label=False)),
    "bare.csv": lambda frame, path: frame.to_csv(path, header=False),
    "index.parquet": lambda frame, path: frame.to_parquet(path),
    "column.parquet": lambda frame, path: frame.reset_index().to_parquet(path, compression="zstd"),
    "index.feather": lambda frame, path: frame.to_feather(path),
    "column.arrow": lambda frame, path: frame.reset_index().to_feather(path),
    "arrays.npz": lambda frame, path: np.savez(path, view_0=frame.to_numpy(), sample_ids=frame.index.tolist()),
    "matlab.mat": save_mat,
    "omics.h5ad": lambda frame, path: anndata_of(frame).write_h5ad(path),
    "omics.h5mu": save_mudata,
}


@pytest.mark.parametrize("name", SAVED)
def test_read_and_written_in_every_format(tmp_path, name):
    SAVED[name](FRAME, tmp_path / name)
    view = read_view(tmp_path / name)
    assert view.keyed
    np.testing.assert_array_equal(view.frame.to_numpy(), VALUES)
    assert view.frame.index.tolist() == IDS
    more = pd.concat([view.frame.fillna(0.25), view.frame.fillna(0.25).tail(1).set_axis(["s4"], axis=0)])
    recovered = np.array([False, True, False, True])
    target = tmp_path / f"full{view.format.suffix}"
    written = write_like(view, more, target, {"flag": recovered})
    assert written.extra_columns == ({"flag": "flag"} if name != "bare.csv" else {})
    again = read_view(target, id_column=view.format.id_name if view.format.header != "none" else None)
    assert again.frame.index.tolist() == [*IDS, "s4"]
    np.testing.assert_array_equal(again.frame.to_numpy()[:, :3], more.to_numpy())
    if again.frame.shape[1] == 4:  # others keep it beside the matrix
        np.testing.assert_array_equal(again.frame.to_numpy()[:, 3], recovered)
    assert again.format.separator == view.format.separator
    assert again.format.decimal == view.format.decimal
    assert again.format.encoding == view.format.encoding
    assert again.format.compression == view.format.compression
    assert again.format.newline == view.format.newline
    assert (again.format.id_place, again.format.header) == (view.format.id_place, view.format.header)


@pytest.mark.parametrize("name", sorted({*SAVED} - {"matlab.mat", "omics.h5ad", "omics.h5mu"}))
def test_columns_that_recover_writes_are_no_features(tmp_path, name):
    SAVED[name](FRAME, tmp_path / name)
    view = read_view(tmp_path / name)
    target = tmp_path / f"full{view.format.suffix}"
    write_like(view, view.frame, target, {"gapview_recovered": [0, 1, 0], "gapview_filled_cells": [0, 1, 2]})
    again = read_view(target)
    np.testing.assert_array_equal(again.frame.to_numpy(), VALUES)
    assert again.frame.columns.tolist() == view.frame.columns.tolist()


def test_a_column_recovered_of_older_files(tmp_path):
    (tmp_path / "a.csv").write_text("id,x,recovered\ns1,1.5,1\ns2,2.5,0\n")
    with pytest.warns(GapviewWarning, match="last column of 'a.csv' is 'recovered', with 0 and 1.*Rename it"):
        assert read_view(tmp_path / "a.csv").frame.columns.tolist() == ["x"]
    (tmp_path / "b.csv").write_text("id,x,recovered\ns1,1.5,1\ns2,2.5,0.5\n")
    assert read_view(tmp_path / "b.csv").frame.columns.tolist() == ["x", "recovered"]


def test_extra_columns_of_omics_and_arrays(tmp_path):
    anndata = pytest.importorskip("anndata")
    for name in ("omics.h5ad", "arrays.npz", "matlab.mat"):
        SAVED[name](FRAME, tmp_path / name)
        write_like(
            read_view(tmp_path / name), read_view(tmp_path / name).frame, tmp_path / f"x_{name}", {"r": [0, 1, 0]}
        )
    assert anndata.read_h5ad(tmp_path / "x_omics.h5ad").obs["r"].tolist() == [0, 1, 0]
    assert np.load(tmp_path / "x_arrays.npz")["r"].tolist() == [0, 1, 0]


def test_an_array(tmp_path):
    np.save(tmp_path / "a.npy", VALUES.astype(np.float32))
    view = read_view(tmp_path / "a.npy")
    assert (view.keyed, view.frame.to_numpy().dtype) == (False, np.float32)
    written = write_like(view, view.frame, tmp_path / "b.npy", {"recovered": [True, False, True]})
    assert written.notes == ("'b.npy' has no names of columns: 'recovered' left out.",)
    assert not written.extra_columns
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), VALUES.astype(np.float32))
    np.save(tmp_path / "objects.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(DataFileError, match="cannot be read as an array of numpy.*allow_pickle"):
        read_view(tmp_path / "objects.npy")
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    with pytest.raises(DataFileError, match="must be a matrix of numbers.*got shape"):
        read_view(tmp_path / "cube.npy")


def test_several_views_in_a_file(tmp_path):
    mask = np.array([[1, 1], [0, 1], [1, 0]])
    gaps = np.array([[1.0, np.nan], [2, 3], [4, 5]])
    np.savez(tmp_path / "a.npz", view_0=np.eye(3), view_1=gaps, view_names=["x", "z"], mask=mask, y=[0, 1, 1])
    views = read_views(tmp_path / "a.npz")
    assert [view.name for view in views] == ["x", "z"]
    assert join_views(views, partial_rows="fill").mask.tolist() == mask.astype(bool).tolist()
    with pytest.raises(DataFileError, match="holds 2 views, 'x', 'z'; one was expected.*read_views"):
        read_view(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", view_0=np.eye(3), view_1=gaps, mask=mask, sample_ids=[7, 8, 9])
    assert [view.frame.index.tolist() for view in read_views([tmp_path / "b.npz"])] == [["7", "9"], ["7", "8"]]


def test_ids_of_frames(tmp_path):
    numbers = FRAME.set_axis(pd.Index([5, 3, 11], name=None), axis=0)
    numbers.to_parquet(tmp_path / "a.parquet")
    view = read_view(tmp_path / "a.parquet")
    assert (view.frame.index.tolist(), view.format.id_type) == (["5", "3", "11"], "integer")
    write_like(view, view.frame, tmp_path / "b.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "b.parquet"), numbers)
    FRAME.reset_index(drop=True).to_parquet(tmp_path / "c.parquet")
    assert not read_view(tmp_path / "c.parquet").keyed
    FRAME.assign(id=[1.0, 2.0, 3.0]).reset_index(drop=True).to_feather(tmp_path / "d.feather")
    assert read_view(tmp_path / "d.feather").frame.index.tolist() == ["1", "2", "3"]
    FRAME.set_axis([1.0, 2.5, 1e15], axis=0).to_parquet(tmp_path / "f.parquet")
    assert read_view(tmp_path / "f.parquet").frame.index.tolist() == ["1", "2.5", "1000000000000000"]
    FRAME.set_axis(["s", "s", "t"], axis=0).to_parquet(tmp_path / "e.parquet")
    with pytest.raises(DataFileError, match=r"1 sample id more than once in its index: 's', first in row\(s\) 1, 2"):
        read_view(tmp_path / "e.parquet")


def test_types_of_columns_in_frames(tmp_path):
    frame = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "yes": pd.array([True, None, False], dtype="boolean"),
            "kind": pd.Categorical(["x", "y", "x"]),
            "when": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]),
            "lists": [[1], [2, 3], []],
            "text": ["1,5", "2", "3"],
            "nothing": [None, None, None],
        }
    )
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.warns(GapviewWarning) as caught:
        view = read_view(tmp_path / "a.parquet", encode=True)
    warned = " ".join(str(warning.message) for warning in caught)
    assert "1 column of dates or times of 'a.parquet' left out: 'when'." in warned
    assert "left out: 'lists'." in warned
    assert view.frame.columns.tolist() == ["whole", "yes", "kind=x", "kind=y", "text"]
    np.testing.assert_array_equal(view.frame, [[1, 1, 1, 0, 1.5], [np.nan, np.nan, 0, 1, 2], [3, 0, 1, 0, 3]])


def test_sparse_views_stay_sparse(tmp_path):
    matrix = sparse.random_array((40, 30), density=0.1, rng=0, format="csr")
    frame = pd.DataFrame(index=[f"s{k}" for k in range(40)], columns=[f"g{k}" for k in range(30)])
    anndata_of(frame, matrix).write_h5ad(tmp_path / "genes.h5ad")
    view = read_view(tmp_path / "genes.h5ad")
    joined = join_views([view])
    assert view.is_sparse
    assert sparse.issparse(joined.matrices[0])
    np.testing.assert_array_equal(joined.matrices[0].toarray(), matrix.toarray())
    assert read_view(tmp_path / "genes.h5ad", id_column="code").frame.index.tolist()[:2] == ["k0", "k1"]
    write_like(view, view.frame, tmp_path / "out.h5ad")
    assert (read_view(tmp_path / "out.h5ad").frame.sparse.to_coo() != matrix).nnz == 0
    frame.index = ["s0", *frame.index[:-1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # AnnData would have names without repeats
        anndata_of(frame, matrix).write_h5ad(tmp_path / "twice.h5ad")
    merged = read_view(tmp_path / "twice.h5ad", duplicates="mean").frame
    np.testing.assert_allclose(merged.loc["s0"], matrix.toarray()[:2].mean(axis=0))


def test_the_features_of_a_model(tmp_path):
    (tmp_path / "a.csv").write_text("id,c,sex,a,more,gone,b\ns1,1,f,2,9,,?\ns2,3,f,4,9,,x1\ns3,5,,6,9,,3\n")
    view = read_view(tmp_path / "a.csv", encode=True).aligned(["a", "gone", "c", "sex=f", "sex=m"])
    expected = [[2, np.nan, 1, 1, 0], [4, np.nan, 3, 1, 0], [6, np.nan, 5, np.nan, np.nan]]
    np.testing.assert_array_equal(view.frame, expected)
    assert view.frame.index.tolist() == ["s1", "s2", "s3"]
    assert view.notes[-1] == "3 columns that the model does not know left out: 'more', 'b=3', 'b=x1'."
    with pytest.raises(DataFileError, match="lacks 2 features of view 'a' that the model was trained on: 'b', 'd'"):
        view.aligned(["a", "b", "d"])  # a column of words is not one without values


def test_writing_refuses_and_adapts(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,flag\nä,1\n".encode("cp1252"))
    view = read_view(tmp_path / "a.csv")
    frame = view.frame.set_axis(["Ω"], axis=0)
    written = write_like(view, frame, tmp_path / "b.csv", {"flag": [True]})
    assert written.extra_columns == {"flag": "flag_2"}
    assert "UTF-8" in written.notes[0]
    assert (tmp_path / "b.csv").read_text("utf-8-sig") == "id,flag,flag_2\nΩ,1,1\n"
    before = (tmp_path / "b.csv").read_bytes()
    for wrong, error in [
        (lambda: write_like(view, frame, tmp_path / "b.parquet"), DataFileError),
        (lambda: write_like(view, frame.rename(columns=str.upper), tmp_path / "b.csv"), InputError),
        (lambda: write_like(view, frame, tmp_path / "b.csv", {"x": [1, 2]}), InputError),
        (lambda: write_like(view, frame.to_numpy(), tmp_path / "b.csv"), TypeError),
        (lambda: write_like(view, frame, tmp_path / "none" / "b.csv"), DataFileError),
    ]:
        with pytest.raises(error):
            wrong()
    assert (tmp_path / "b.csv").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]


@pytest.mark.parametrize("name", ["arrays.npz", "matlab.mat", "omics.h5ad", "omics.h5mu"])
def test_a_column_of_ids_that_is_absent(tmp_path, name):
    SAVED[name](FRAME, tmp_path / name)
    with pytest.raises(DataFileError, match=r"has no (column|array) 'nix'.*it has.*Name one of these"):
        read_view(tmp_path / name, id_column="nix")
    own = "sample" if name.startswith("omics") else "sample_ids"
    assert read_view(tmp_path / name, id_column=["nix", own]).frame.index.tolist() == IDS


def test_an_array_has_no_column_of_ids(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    with pytest.raises(DataFileError, match="'a.npy' has no column 'nix'.*sample_ids"):
        read_view(tmp_path / "a.npy", id_column="nix")
    np.savez(tmp_path / "b.npz", view_0=VALUES, patients=["x", "y", "z"])
    assert read_view(tmp_path / "b.npz", id_column="patients").frame.index.tolist() == ["x", "y", "z"]
    np.savez(tmp_path / "b.npz", view_0=VALUES, sample_ids=[2.0**53, 1.0, 2.0])
    with pytest.raises(InputError, match="floats of 2"):
        read_view(tmp_path / "b.npz")


def test_an_index_with_repeats_beside_a_column_of_ids(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2, 3]}, index=pd.Index([7, 7, 8], name="site"))
    frame.to_parquet(tmp_path / "a.parquet")
    view = read_view(tmp_path / "a.parquet")
    assert (view.frame.index.tolist(), view.frame.columns.tolist()) == (["a", "b", "c"], ["x"])
    assert "The index of the table, 'site', has repeated values and is left out." in view.notes
    frame.drop(columns="id").to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataFileError, match="1 sample id more than once in its index 'site': '7'"):
        read_view(tmp_path / "a.parquet")


def test_names_with_an_equals_sign_are_no_codes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,T=300,T=310,sex\ns1,1.5,2,f\ns2,3,4,m\n")
    view = read_view(path, encode=True)
    assert view.encoded == ("sex",)
    with pytest.raises(DataFileError, match="lacks 1 feature.*'T=330'"):
        view.aligned(["T=300", "T=330"])
    assert view.aligned(["T=300", "sex=d", "sex=f"]).frame.to_numpy().tolist() == [[1.5, 0, 1], [3, 0, 0]]
