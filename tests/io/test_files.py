"""Views from files: `.npz` and both formats of `.mat`."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from gapview.datasets import load_views
from gapview.errors import DataFileError, InputError, InputTypeError


class TestFiles:
    A = np.arange(24.0).reshape(6, 4)
    B = np.arange(18.0).reshape(6, 3) ** 2
    Y = np.array([1, 1, 2, 2, 5, 5])

    def check(self, data, names=("view_0", "view_1")):
        assert data.views.names == tuple(names)
        np.testing.assert_array_equal(data.views.matrices[0], self.A)
        np.testing.assert_array_equal(data.views.matrices[1], self.B)
        assert data.target.tolist() == [0, 0, 1, 1, 2, 2]

    def test_npz(self, tmp_path):
        mask = np.array([[1, 1], [1, 0], [0, 1], [1, 1], [1, 1], [1, 1]])
        np.savez(
            tmp_path / "a.npz",
            view_0=self.A,
            view_1=self.B,
            y=self.Y,
            view_names=["blood", "scans"],
            mask=mask,
            sample_ids=list("abcdef"),
            folds=np.arange(6)[None],
        )
        data = load_views(tmp_path / "a.npz")
        assert data.views.names == ("blood", "scans")
        np.testing.assert_array_equal(data.views.mask, mask.astype(bool))
        assert data.views.sample_ids.tolist() == list("abcdef")
        assert data.folds.shape == (1, 6)

    def test_choosing_views(self, tmp_path):
        np.savez(tmp_path / "a.npz", view_0=self.A, view_1=self.B, view_2=self.B + 1)
        assert load_views(tmp_path / "a.npz", views=[2, 0]).views.n_features == (3, 4)
        assert load_views(tmp_path / "a.npz", views=["view_1"]).views.names == ("view_1",)
        with pytest.raises(InputError, match="no view 3; it has 3"):
            load_views(tmp_path / "a.npz", views=[3])

    def test_views_counted_from_one(self, tmp_path):
        np.savez(tmp_path / "a.npz", view_1=self.A, view_2=self.B)
        data = load_views(tmp_path / "a.npz")
        assert data.views.names == ("view_1", "view_2")
        assert data.views.n_features == (4, 3)

    def test_views_in_the_order_of_their_numbers(self, tmp_path):
        np.savez(tmp_path / "a.npz", **{f"view_{k}": self.A[:, : k % 4 + 1] + k for k in (10, 2, 7)})
        data = load_views(tmp_path / "a.npz")
        assert data.views.names == ("view_2", "view_7", "view_10")
        assert [matrix[0, 0] for matrix in data.views.matrices] == [2, 7, 10]

    @pytest.mark.parametrize("names", [["a", "a"], ["a"], ["a", "b", "c"]])
    def test_names_that_do_not_fit(self, tmp_path, names):
        np.savez(tmp_path / "a.npz", view_0=self.A, view_1=self.B, view_names=names)
        with pytest.raises(DataFileError, match="view_names in 'a.npz' must give a unique name to each of the 2"):
            load_views(tmp_path / "a.npz")

    def test_names_in_mat_files(self, tmp_path):
        cell = np.empty(2, dtype=object)
        cell[:] = ["blood", "scan"]
        for names in (cell, ["blood", "scan"]):  # a cell array of text, and a matrix of text
            savemat(tmp_path / "a.mat", {"view_0": self.A, "view_1": self.B, "Y": self.Y, "view_names": names})
            self.check(load_views(tmp_path / "a.mat"), ("blood", "scan"))

    @pytest.mark.parametrize("views", [[0, 0], [1, "view_1"], [0, -2]])
    def test_choosing_a_view_twice(self, tmp_path, views):
        np.savez(tmp_path / "a.npz", view_0=self.A, view_1=self.B)
        with pytest.raises(InputError, match="every view once; 'view_.' occur more than once"):
            load_views(tmp_path / "a.npz", views=views)

    def test_choices_that_are_none(self, tmp_path):
        np.savez(tmp_path / "a.npz", view_0=self.A, view_1=self.B)
        with pytest.raises(InputTypeError, match=r"views must be a list.*got 1. For a single view write views=\[1\]"):
            load_views(tmp_path / "a.npz", views=1)
        with pytest.raises(InputTypeError, match=r"got 'view_1'. For a single view write views=\['view_1'\]"):
            load_views(tmp_path / "a.npz", views="view_1")
        with pytest.raises(InputError, match="got an empty list"):
            load_views(tmp_path / "a.npz", views=[])
        with pytest.raises(InputError, match="no view True"):
            load_views(tmp_path / "a.npz", views=[True])

    @pytest.mark.parametrize("path", [None, 3, b"a.npz"])
    def test_paths_that_are_none(self, path):
        with pytest.raises(InputTypeError, match="path must be the path of a .npz or .mat file; got"):
            load_views(path)

    @pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 3), (2, 6)])
    def test_masks_that_do_not_fit(self, tmp_path, shape):
        np.savez(tmp_path / "a.npz", view_0=self.A, view_1=self.B, mask=np.ones(shape))
        for views in (None, [0]):
            with pytest.raises(
                DataFileError,
                match=re.escape(f"one column for each of the 2 views, 'view_0', 'view_1'; got shape {shape}"),
            ):
                load_views(tmp_path / "a.npz", views=views)

    def test_sparse_mask(self, tmp_path):
        mask = np.array([[1, 1], [1, 0], [0, 1], [1, 1], [1, 1], [1, 1]])
        savemat(tmp_path / "a.mat", {"view_0": self.A, "view_1": self.B, "mask": sparse.csc_array(mask * 1.0)})
        np.testing.assert_array_equal(load_views(tmp_path / "a.mat").views.mask, mask.astype(bool))

    @pytest.mark.parametrize("turned", [False, True])
    def test_labels_as_a_matrix_are_no_view(self, tmp_path, turned):
        one_hot = np.eye(4)[[0, 0, 2, 2, 3, 3]]  # of four groups, one of them empty
        one_hot = one_hot.T if turned else one_hot
        np.savez(tmp_path / "a.npz", X1=self.A, X2=self.B, Y=one_hot)
        self.check(load_views(tmp_path / "a.npz"), ("X1", "X2"))
        savemat(tmp_path / "a.mat", {"X1": self.A, "X2": self.B, "Y": sparse.csc_array(one_hot)})
        self.check(load_views(tmp_path / "a.mat"), ("X1", "X2"))

    @pytest.mark.parametrize("labels", [np.arange(12.0).reshape(6, 2), np.ones((6, 3))])
    def test_labels_that_are_none(self, tmp_path, labels):
        np.savez(tmp_path / "a.npz", X1=self.A, X2=self.B, Y=labels)
        with pytest.raises(DataFileError, match="'Y' in 'a.npz' has a name for labels.*save it under another name"):
            load_views(tmp_path / "a.npz")

    def test_sparse_views_stay_sparse(self, tmp_path):
        wide = sparse.csc_array((np.ones(1000), (np.arange(1000), np.arange(1000) % 9)), shape=(1000, 20_000))
        savemat(tmp_path / "a.mat", {"words": wide, "links": wide[:, :5000], "Y": np.arange(1000) % 3})
        tracemalloc.start()
        try:
            load_views(tmp_path / "a.mat")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 20e6  # dense, one of the views takes 160 MB

    def test_mat_with_a_cell_array(self, tmp_path):
        cell = np.empty((1, 2), dtype=object)
        cell[0, 0], cell[0, 1] = self.A.T, sparse.csc_matrix(self.B)  # one with samples in columns, one sparse
        savemat(tmp_path / "a.mat", {"X": cell, "gt": self.Y[:, None]})
        data = load_views(tmp_path / "a.mat")
        np.testing.assert_array_equal(data.views.matrices[0], self.A)
        np.testing.assert_array_equal(data.views.matrices[1].toarray(), self.B)
        assert data.target.tolist() == [0, 0, 1, 1, 2, 2]

    def test_mat_with_matrices(self, tmp_path):
        savemat(tmp_path / "a.mat", {"gist": self.A, "lbp": self.B, "Y": self.Y})
        self.check(load_views(tmp_path / "a.mat"), ("gist", "lbp"))
        savemat(tmp_path / "b.mat", {"gist": self.A.T, "lbp": self.B.T})
        assert load_views(tmp_path / "b.mat").views.n_samples == 6

    def test_mat_of_the_form_of_caltech7(self, tmp_path):
        """Six feature sets in a cell, of which the paper takes the fifth and sixth."""
        rng = np.random.RandomState(0)
        cell = np.empty((1, 6), dtype=object)
        for k, m in enumerate((48, 40, 254, 1984, 512, 928)):
            cell[0, k] = rng.uniform(size=(30, m))
        savemat(tmp_path / "Caltech101-7.mat", {"X": cell, "Y": np.repeat(np.arange(1, 7), 5)[:, None]})
        assert load_views(tmp_path / "Caltech101-7.mat", views=[4, 5]).views.n_features == (512, 928)

    def test_mat_v73(self, tmp_path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as archive:
            refs = archive.create_group("#refs#")
            refs["a"], refs["b"] = self.A.T, self.B.T  # MATLAB stores columns first
            cell = archive.create_dataset("X", (2, 1), dtype=h5py.ref_dtype)
            cell[0, 0], cell[1, 0] = refs["a"].ref, refs["b"].ref
            archive["Y"] = self.Y[None].astype(float)
            thin = archive.create_group("unused")
            thin.attrs["MATLAB_sparse"] = 6
            csc = sparse.csc_array(self.B)
            thin["data"], thin["ir"], thin["jc"] = csc.data, csc.indices, csc.indptr
        self.check(load_views(tmp_path / "a.mat"))

    def test_mat_v73_without_h5py(self, tmp_path, monkeypatch):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as archive:
            archive["X"] = self.A
        monkeypatch.setitem(__import__("sys").modules, "h5py", None)
        with pytest.raises(ImportError, match=r"pip install 'gapview\[matlab\]'"):
            load_views(tmp_path / "a.mat")

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.csv", b"1,2", "neither .npz nor .mat"),
            ("a.npz", b"not a zip", "cannot be read as a .npz"),
            ("a.mat", b"nothing of the kind" * 40, "cannot be read as a MATLAB file"),
            ("a.mat", b"", "cannot be read as a MATLAB file"),
            ("a.mat", b"\x89HDF\r\n\x1a\n" + b"0" * 600, "cannot be read as a MATLAB v7.3 file"),
        ],
    )
    def test_broken_files(self, tmp_path, name, content, message):
        if "v7.3" in message:
            pytest.importorskip("h5py")
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataFileError, match=message):
            load_views(tmp_path / name)

    def test_a_damaged_compressed_mat_file(self, tmp_path):
        savemat(tmp_path / "a.mat", {"view_0": self.A, "view_1": self.B}, do_compression=True)
        content = bytearray((tmp_path / "a.mat").read_bytes())
        content[140:150] = b"\xff" * 10
        (tmp_path / "a.mat").write_bytes(content)
        with pytest.raises(DataFileError, match="cannot be read as a MATLAB file"):
            load_views(tmp_path / "a.mat")

    def test_a_damaged_compressed_npz_file(self, tmp_path):
        np.savez_compressed(tmp_path / "a.npz", view_0=np.random.RandomState(0).normal(size=(50, 9)))
        content = bytearray((tmp_path / "a.npz").read_bytes())
        content[60:90] = b"\xff" * 30
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(DataFileError, match="cannot be read as a .npz"):
            load_views(tmp_path / "a.npz")

    def test_a_single_array_named_npz(self, tmp_path):
        with (tmp_path / "a.npz").open("wb") as stream:
            np.save(stream, self.A)
        with pytest.raises(DataFileError, match="it holds a single array.*numpy.savez"):
            load_views(tmp_path / "a.npz")

    def test_files_without_views(self, tmp_path):
        with pytest.raises(DataFileError, match="There is no file"):
            load_views(tmp_path / "missing.npz")
        np.savez(tmp_path / "a.npz", y=self.Y)
        with pytest.raises(DataFileError, match="holds no views"):
            load_views(tmp_path / "a.npz")
        np.savez(tmp_path / "b.npz", view_0=self.A, y=self.Y[:3])
        with pytest.raises(DataFileError, match="3 labels for 6 samples"):
            load_views(tmp_path / "b.npz")
        savemat(tmp_path / "c.mat", {"p": np.eye(3, 4), "q": np.eye(5, 6)})
        with pytest.raises(DataFileError, match="share no single number of samples"):
            load_views(tmp_path / "c.mat")

    def test_pickles_are_never_opened(self, tmp_path):
        np.savez(tmp_path / "a.npz", view_0=np.array([object()], dtype=object))
        with pytest.raises(DataFileError, match="never unpickled"):
            load_views(tmp_path / "a.npz")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_views", "n_samples"),
    [
        ("handwritten_2v", 2, 2000),
        ("handwritten_6v", 6, 2000),
        ("buaa90", 2, 90),
        ("cornell", 2, 195),
        ("bbcsport_2v", 2, 544),
        ("3sources_incomplete", 3, 416),
        ("tcga_brca_mixomics", 3, 220),
        ("tcga_gbm_nolabel", 3, 168),
    ],
)
def test_real_files(dataset, name, n_views, n_samples):
    data = dataset(name)
    assert (data.views.n_views, data.views.n_samples) == (n_views, n_samples)
    assert (data.target is None) == name.endswith("nolabel")
