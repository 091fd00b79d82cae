"""Embedded example, files, downloads from a stand-in server, made data, hiding."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
import tracemalloc
import warnings
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import savemat
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import _openml

from gapview import Views
from gapview.datasets import (
    fetch_handwritten,
    hide_views,
    load_digits_views,
    load_views,
    make_views,
    paired_split,
)
from gapview.errors import (
    DataFileError,
    DownloadError,
    GapviewError,
    InputError,
    InputTypeError,
    ParameterError,
    ParameterTypeError,
)


def test_digits_are_two_real_views():
    data = load_digits_views()
    assert data.views.n_features == (64, 130)
    assert len(data.target) == 1797
    views, target = data  # unpacks
    assert views is data.views
    assert target is data.target
    image = data.views.matrices[0][7].reshape(8, 8)
    magnitudes = np.abs(np.fft.fft2(image, s=(16, 16)))
    np.testing.assert_allclose(np.sort(np.unique(magnitudes.round(6))), np.unique(data.views.matrices[1][7].round(6)))


def test_fourier_view_does_not_see_shifts():
    from gapview.datasets._digits import _fourier_magnitudes

    image = np.zeros((2, 8, 8))
    image[0, 1:4, 2:5] = image[1, 3:6, 4:7] = np.arange(9).reshape(3, 3)
    first, second = _fourier_magnitudes(image)
    np.testing.assert_allclose(first, second, atol=1e-9)


class TestHiding:
    @given(st.integers(2, 60), st.integers(1, 5), st.floats(0, 1), st.integers(0, 9))
    def test_paired_split(self, n_samples, n_views, rate, seed):
        views = paired_split([np.eye(n_samples)] * n_views, rate, random_state=seed)
        n_views_each = views.mask.sum(axis=1)
        n_paired = int(np.floor(n_samples * rate + 1e-9))
        if n_views > 1:
            assert (n_views_each == n_views).sum() == n_paired
        assert set(n_views_each) <= {1, n_views}
        alone = views.mask[n_views_each == 1].sum(axis=0)
        assert np.ptp(alone) <= 1

    def test_the_papers_protocol_in_the_papers_order(self):
        order = np.array([4, 2, 0, 1, 3])
        mask = paired_split([np.eye(5)] * 2, 0.4, order=order).mask
        assert mask[order].tolist() == [[True, True], [True, True], [True, False], [True, False], [False, True]]

    def test_rates_that_floating_point_spoils(self):
        assert paired_split([np.eye(2000, 2)] * 2, 0.7, random_state=0).mask.all(axis=1).sum() == 1400

    @given(st.integers(4, 60), st.integers(2, 5), st.floats(0, 0.5), st.integers(0, 9))
    def test_hide_views(self, n_samples, n_views, rate, seed):
        n_samples -= n_samples % n_views  # so that the kept views come out even
        if n_samples == 0:
            return
        mask = hide_views([np.eye(n_samples)] * n_views, rate, random_state=seed).mask
        assert mask.any(axis=1).all()
        assert (n_samples - mask.sum(axis=0) == int(np.floor(rate * n_samples + 1e-9))).all()

    def test_hiding_what_has_gaps_already(self):
        first = make_views(90, (4, 3, 5), missing_rate=0.3, random_state=0).views
        second = hide_views(first, 0.2, random_state=1)
        assert second.mask.any(axis=1).all()
        assert not (second.mask & ~first.mask).any()
        assert (second.mask.sum(axis=0) == first.mask.sum(axis=0) - int(0.2 * 63)).all()

    @pytest.mark.parametrize("seed", range(5))
    def test_gaps_that_leave_just_one_way(self, seed):
        mask = np.ones((20, 3), dtype=bool)
        mask[:10, 0] = mask[10:, 1] = False
        views = Views([np.eye(20, 4)] * 3, mask=mask)
        hidden = hide_views(views, 0.5, random_state=seed).mask
        assert hidden.any(axis=1).all()
        assert hidden.sum(axis=0).tolist() == [5, 5, 10]

    @given(st.integers(1, 25), st.integers(1, 4), st.floats(0, 1), st.integers(0, 10_000))
    def test_a_rate_is_refused_only_if_no_choice_of_views_keeps_to_it(self, n_samples, n_views, rate, seed):
        rng = np.random.RandomState(seed)
        mask = rng.uniform(size=(n_samples, n_views)) < 0.6
        mask[np.arange(n_samples), rng.randint(n_views, size=n_samples)] = True
        n_hidden = np.floor(rate * mask.sum(axis=0) + 1e-9).astype(int)
        # The naive version: every sample that a view keeps is a seat, and all samples must be seated at once
        seats = np.repeat(np.arange(n_views), mask.sum(axis=0) - n_hidden)
        fits = mask[:, seats]
        n_seated = int(fits[linear_sum_assignment(fits, maximize=True)].sum())
        views = Views([np.ones((n_samples, 2))] * n_views, mask=mask)
        if n_seated < n_samples:
            with pytest.raises(ParameterError, match=f"at least {n_samples - n_seated} of {n_samples} samples without"):
                hide_views(views, rate, random_state=seed)
        else:
            hidden = hide_views(views, rate, random_state=seed).mask
            assert hidden.any(axis=1).all()
            assert not (hidden & ~mask).any()
            assert (hidden.sum(axis=0) == mask.sum(axis=0) - n_hidden).all()

    def test_which_view_a_sample_keeps_is_left_to_the_seed(self):
        mask = np.ones((400, 3), dtype=bool)
        mask[:100, 0] = False
        kept = hide_views(Views([np.ones((400, 2))] * 3, mask=mask), 0.6, random_state=0).mask
        alone = kept[100:][kept[100:].sum(axis=1) == 1].mean(axis=0)
        assert (alone > 0.15).all()  # no view is favoured because it comes first

    @pytest.mark.parametrize(
        ("order", "error", "message"),
        [
            (np.arange(20.0), InputTypeError, "values of type float64. Convert them with"),
            (list("abcdefghijklmnopqrst"), InputTypeError, "values of type <U1"),
            (np.arange(19), InputError, "got shape (19,)"),
            (np.arange(1, 21), InputError, "got values from 1 to 20. Subtract 1"),
            (np.r_[np.arange(19), 3], InputError, "1 of them come more than once: 3"),
            ([[0, 1], [2]], InputError, "nested sequences of unequal length"),
        ],
    )
    def test_orders_that_are_none(self, order, error, message):
        with pytest.raises(error, match=re.escape(message)):
            paired_split([np.eye(20)] * 2, 0.5, order=order)

    def test_an_order_of_unsigned_integers(self):
        mask = paired_split([np.eye(5)] * 2, 0.4, order=np.arange(5, dtype=np.uint64)).mask
        assert mask.sum(axis=1).tolist() == [2, 2, 1, 1, 1]

    def test_seeds(self):
        views = [np.eye(30)] * 3
        for hide in (paired_split, hide_views):
            first, again, other = (hide(views, 0.3, random_state=seed).mask for seed in (0, 0, 1))
            assert (first == again).all()
            assert (first != other).any()

    def test_the_original_is_untouched(self):
        views = Views([np.eye(10), np.ones((10, 2)) + np.eye(10, 2)])
        hide_views(views, 0.4, random_state=0)
        assert views.mask.all()


class TestMade:
    def test_sizes_and_types(self):
        data = make_views(70_000, (3, 2), n_clusters=30, dtype="float32", random_state=0)  # more than one block
        assert data.views.shape == (70_000, 5)
        assert data.views.matrices[0].dtype == np.float32
        assert np.bincount(data.target).max() - np.bincount(data.target).min() <= 1

    def test_repeatable(self):
        first, second = (make_views(50, random_state=3, missing_rate=0.2) for _ in range(2))
        np.testing.assert_array_equal(first.views.matrices[1], second.views.matrices[1])
        np.testing.assert_array_equal(first.target, second.target)

    def test_groups_are_there(self):
        from sklearn.cluster import KMeans

        from gapview.metrics import clustering_accuracy

        data = make_views(300, (20, 30), n_clusters=5, random_state=0)
        for matrix in data.views.matrices:
            assert clustering_accuracy(data.target, KMeans(5, n_init=5, random_state=0).fit_predict(matrix)) > 0.95

    @pytest.mark.parametrize(
        ("n_features", "error", "message"),
        [
            (5, ParameterTypeError, "n_features must be a sequence of integers.*got 5"),
            (None, ParameterTypeError, "n_features must be a sequence of integers.*got None"),
            ("20", ParameterTypeError, "n_features must be a sequence of integers.*got '20'"),
            (["a"], ParameterTypeError, r"n_features\[0\] must be an integer of at least 1; got 'a'"),
            ([3, 2.7], ParameterTypeError, r"n_features\[1\] must be an integer of at least 1; got 2.7"),
            ([3, 0], ParameterError, r"n_features\[1\] must be an integer of at least 1; got 0"),
            ([], ParameterError, "at least one view"),
        ],
    )
    def test_numbers_of_features_that_are_none(self, n_features, error, message):
        with pytest.raises(error, match=message):
            make_views(10, n_features)

    def test_numbers_of_features_from_numpy(self):
        assert make_views(10, np.array([3, 2]), n_clusters=2).views.n_features == (3, 2)


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
        with pytest.raises(DataFileError, match="view_names in 'a.npz' must give a name of its own to each of the 2"):
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
        with pytest.raises(InputError, match="every view once; 'view_.' came more than once"):
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


# -- OpenML --------------------------------------------------------------------------------------------------------


OPENML = {name: getattr(_openml, name) for name in ("_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES")}


def arff(name, matrix, target):
    lines = [f"@RELATION {name}"]
    lines += [f"@ATTRIBUTE f{j} NUMERIC" for j in range(matrix.shape[1])]
    lines += ["@ATTRIBUTE class {1,2,3}", "@DATA"]
    lines += [",".join(map(str, row)) + f",{label}" for row, label in zip(matrix, target, strict=True)]
    return "\n".join(lines).encode()


def openml_pages(base, tables):
    """What OpenML answers for each data set: description, features, qualities, file."""
    pages = {}
    for number, (name, matrix, target) in tables.items():
        file = arff(name, matrix, target)
        features = [{"index": str(j), "name": f"f{j}", "data_type": "numeric"} for j in range(matrix.shape[1])]
        features.append({"index": str(matrix.shape[1]), "name": "class", "data_type": "nominal", "is_target": "true"})
        for feature in features:
            feature |= {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
            feature.setdefault("is_target", "false")
        description = {
            "id": str(number),
            "name": name,
            "version": "1",
            "format": "ARFF",
            "status": "active",
            "file_id": str(number),
            "url": f"{base}/data/v1/download/{number}/{name}.arff",
            "md5_checksum": hashlib.md5(file).hexdigest(),
            "default_target_attribute": "class",
            "description": name,
        }
        qualities = [{"name": "NumberOfInstances", "value": str(len(matrix))}]
        pages[f"/api/v1/json/data/{number}"] = json.dumps({"data_set_description": description}).encode()
        pages[f"/api/v1/json/data/features/{number}"] = json.dumps({"data_features": {"feature": features}}).encode()
        pages[f"/api/v1/json/data/qualities/{number}"] = json.dumps({"data_qualities": {"quality": qualities}}).encode()
        pages[f"/data/v1/download/{number}/{name}.arff"] = file
    return pages


@contextmanager
def stand_in_for_openml(monkeypatch, tables, answer=None):
    """Serve the data sets on this machine and point scikit-learn's addresses there.

    ``answer`` may spoil what is sent: it gets the path and the body, and returns the headers and the body to send.
    """
    pages: dict[str, bytes] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = pages.get(self.path)
            self.send_response(200 if body is not None else 412)
            headers, body = (answer or (lambda path, body: ({}, body)))(self.path, body or b"{}")
            for header in headers.items():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    base = f"http://127.0.0.1:{server.server_port}"
    pages.update(openml_pages(base, tables))
    for constant in ("_OPENML_PREFIX", "_SEARCH_NAME", "_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES", "_DATA_FILE"):
        address = getattr(_openml, constant, None)
        if isinstance(address, str) and address.startswith("https://"):
            monkeypatch.setattr(_openml, constant, base + "/" + address.split("/", 3)[3])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()


def openml_tables(shuffle=False):
    rng = np.random.RandomState(0)
    target = np.repeat([1, 2, 3], 10)
    other = rng.permutation(target) if shuffle else target
    return {
        40979: ("mfeat-pixel", rng.randint(7, size=(30, 240)), target),
        14: ("mfeat-fourier", rng.uniform(size=(30, 76)).round(4), other),
    }


class TestFetch:
    def test_downloads_once_and_keeps(self, monkeypatch, tmp_path):
        tables = openml_tables()
        with stand_in_for_openml(monkeypatch, tables) as asked:
            data = fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
            n_asked = len(asked)
            again = fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
            assert len(asked) == n_asked > 0  # the second time nothing was asked for
        assert data.views.names == ("pixels", "fourier")
        np.testing.assert_array_equal(data.views.matrices[0], tables[40979][1])
        np.testing.assert_allclose(again.views.matrices[1], tables[14][1])
        assert data.target.tolist() == [0] * 10 + [1] * 10 + [2] * 10

    def test_orders_that_disagree(self, monkeypatch, tmp_path):
        with (
            stand_in_for_openml(monkeypatch, openml_tables(shuffle=True)),
            pytest.raises(DownloadError, match="different orders"),
        ):
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)

    @pytest.mark.parametrize(
        "spoil",
        [
            pytest.param(lambda body: ({}, body + b"%"), id="other contents"),
            pytest.param(lambda body: ({"Content-Encoding": "gzip"}, gzip.compress(body)[:-40]), id="truncated gzip"),
            pytest.param(
                lambda body: ({"Content-Encoding": "gzip"}, gzip.compress(body)[:10] + b"\xff" * 90), id="bad gzip"
            ),
            pytest.param(lambda body: ({"Content-Length": str(len(body))}, body[:-40]), id="cut connection"),
            pytest.param(lambda body: ({}, b""), id="nothing"),
        ],
    )
    @pytest.mark.parametrize("end", ["arff", "/data/40979"])
    def test_damaged_files(self, monkeypatch, tmp_path, spoil, end):
        """Whatever breaks, there is one kind of error and no warning of scikit-learn's new tries."""

        def answer(path, body):
            return spoil(body) if path.endswith(end) else ({}, body)

        with stand_in_for_openml(monkeypatch, openml_tables(), answer), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with pytest.raises(DownloadError, match="The pixels view .* could not be downloaded"):
                fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
        assert not [warning for warning in warned if not issubclass(warning.category, ResourceWarning)]

    def test_a_changed_file_is_told(self, monkeypatch, tmp_path):
        def answer(path, body):
            return {}, body + (b"%" if path.endswith("arff") else b"")

        with stand_in_for_openml(monkeypatch, openml_tables(), answer), pytest.raises(DownloadError, match="md5"):
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)

    @pytest.mark.parametrize("body", [b'{"error": {"message": "busy"}}', b"[]", b"null", b"<html>busy</html>"])
    @pytest.mark.parametrize("page", ["/data/40979", "/features/40979"])
    def test_an_error_instead_of_an_answer_is_not_kept(self, monkeypatch, tmp_path, body, page):
        def busy(path, right):
            return {}, body if path.endswith(page) else right

        with (
            stand_in_for_openml(monkeypatch, openml_tables(), busy),
            pytest.raises(DownloadError, match="The pixels view .* could not be downloaded"),
        ):
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
        for constant, address in OPENML.items():
            monkeypatch.setattr(_openml, constant, address)
        with stand_in_for_openml(monkeypatch, openml_tables()):
            assert fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01).views.n_samples == 30

    def test_data_that_are_not_there(self, monkeypatch, tmp_path):
        tables = openml_tables()
        with stand_in_for_openml(monkeypatch, {14: tables[14]}), pytest.raises(DownloadError, match="pixels view"):
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)

    def test_without_network(self, monkeypatch, tmp_path):
        for constant in ("_OPENML_PREFIX", "_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
            if str(getattr(_openml, constant, "")).startswith("https://"):
                monkeypatch.setattr(_openml, constant, "http://127.0.0.1:1/{}")  # nothing listens there
        with pytest.raises(
            DownloadError, match="could not be downloaded.*Check the network.*load_digits_views"
        ) as caught:
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
        assert isinstance(caught.value, OSError)
        assert isinstance(caught.value, GapviewError)

    def test_unknown_view(self):
        with pytest.raises(InputError, match="views must name some of"):
            fetch_handwritten(["pictures"])

    @pytest.mark.parametrize("views", ["pixels", None, 3])
    def test_views_that_are_no_list(self, views):
        with pytest.raises(InputTypeError, match=f"views must be a list of views.*; got {views!r}"):
            fetch_handwritten(views)

    def test_a_view_twice(self):
        with pytest.raises(InputError, match="'pixels' came more than once"):
            fetch_handwritten(["pixels", "fourier", "pixels"])

    def test_a_folder_that_is_none(self):
        with pytest.raises(ParameterTypeError, match="data_home must be None or the path of a folder; got 3"):
            fetch_handwritten(data_home=3)


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
