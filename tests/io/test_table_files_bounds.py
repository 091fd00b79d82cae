"""Files that are damaged, forged, too large or not what their names say: one of our errors, and nothing else."""

from __future__ import annotations

import gzip
import io
import sys
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat
from test_table_files_formats import FRAME, SAVED, VALUES

from gapview.errors import DataFileError, GapviewError, GapviewWarning, MissingExtraError
from gapview.io import LIMITS, read_view, read_views, reading_with

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.mark.parametrize("name", ["a.csv", "a.txt.gz", "a.parquet", "a.feather", "a.npy", "a.npz", "a.h5ad", "a.h5mu"])
@pytest.mark.parametrize("source", ["index.parquet", "index.feather", "arrays.npz", "omics.h5ad", "matlab.mat"])
def test_names_that_do_not_fit_the_contents(tmp_path, name, source):
    SAVED[source](FRAME, tmp_path / source)
    if name.split(".")[-1] == source.split(".")[-1] or (name, source) == ("a.h5mu", "omics.h5ad"):
        return
    (tmp_path / source).rename(tmp_path / name)
    with pytest.raises(DataFileError, match=f"'{name}' ends in .*, but its contents are"):
        read_view(tmp_path / name)


def test_files_that_are_no_views(tmp_path):
    with zipfile.ZipFile(tmp_path / "book.csv", "w") as book:
        book.writestr("xl/workbook.xml", "<x/>")
    with pytest.raises(DataFileError, match="Rename it to end in .npz or .xlsx"):
        read_view(tmp_path / "book.csv")
    for name in ("a.pkl", "a", "a.parquet.gz"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(DataFileError, match="does not end as a file that can be read. Expected .csv"):
            read_view(tmp_path / name)
    with pytest.raises(DataFileError, match="is a folder"):
        read_view(tmp_path)
    with pytest.raises(DataFileError, match="There is no file"):
        read_view(tmp_path / "none.csv")
    for content in (b"\x81\x8d,1\n" * 9, "id,x\ns1,1\ns2,2\n".encode("utf-16-le")):  # without its mark
        (tmp_path / "binary.csv").write_bytes(content)
        with pytest.raises(DataFileError, match="'binary.csv' is not a text"):
            read_view(tmp_path / "binary.csv")


def test_limits(tmp_path):
    def limited(name, content, words, **limits):
        (tmp_path / name).write_bytes(content)
        with reading_with(replace(LIMITS, **limits)), pytest.raises(DataFileError, match=words):
            read_view(tmp_path / name)

    table = b"id,a,b\n" + b"".join(b"s%d,1.5,2\n" % k for k in range(1000))
    limited("a.csv", table, "too large: 10,897 bytes; at most 1,000", size=1000)
    limited("a.csv.gz", gzip.compress(table * 100), "bytes or more when unpacked", size=100_000)
    limited("a.csv", table, "too large: 3 columns", columns=2)
    limited("a.csv", table, "too large: 3,000 cells", cells=2000)
    limited("a.csv", b"x," * 5000 + b"x\n" + table, "has a line of more than 4,000 bytes", line=4000, head=1000)
    limited("a.csv", table + b'"' + b"x" * 9000, "has a line of more than 4,000|Check its quotes", line=4000, head=1000)
    sink = io.BytesIO()
    np.savez_compressed(sink, view_0=np.zeros((1000, 1000)))
    limited("a.npz", sink.getvalue(), "8,000,.* bytes when unpacked", size=100_000)
    savemat(sink := io.BytesIO(), {"view_0": np.zeros((1000, 1000))}, do_compression=True)
    limited("a.mat", sink.getvalue(), "bytes when unpacked", size=100_000)
    pd.DataFrame(np.zeros((1000, 9)), columns=list("abcdefghi")).to_parquet(sink := io.BytesIO())
    limited("a.parquet", sink.getvalue(), "too large: 9,000 cells", cells=8000)


def test_a_huge_array_that_is_only_declared(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5ad", "w") as archive:
        archive.create_dataset("X", shape=(10**6, 10**6), dtype="f4", chunks=(1000, 1000))
    with pytest.raises(DataFileError, match="too large"):
        read_view(tmp_path / "a.h5ad")
    (tmp_path / "secret").write_bytes(b"1" * 800)
    with h5py.File(tmp_path / "b.h5ad", "w") as archive:
        archive.create_dataset("X", shape=(10, 10), dtype="f8", external=[(str(tmp_path / "secret"), 0, 800)])
    with h5py.File(tmp_path / "c.h5ad", "w") as archive:
        archive["X"] = h5py.ExternalLink("a.h5ad", "/X")
    for name in ("b.h5ad", "c.h5ad"):
        with pytest.raises(DataFileError, match="refers to another file for 'X'"):
            read_view(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "package"), [("comma.csv", "pyarrow"), ("omics.h5ad", "anndata"), ("a.npy", "pandas")]
)
def test_extras_that_are_not_installed(tmp_path, monkeypatch, name, package):
    if name == "a.npy":
        np.save(tmp_path / name, VALUES)
    else:
        SAVED[name](FRAME, tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=f"needs the package '{package}'.*pip install 'gapview"):
        read_view(tmp_path / name)


@pytest.mark.parametrize("name", ["matlab.mat", "omics.h5ad", "omics.h5mu"])
def test_files_that_are_cut_off(tmp_path, name):
    SAVED[name](FRAME, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    for cut in np.linspace(0, 0.9 * len(content), 6).astype(int):  # each is read in a process of its own
        (tmp_path / name).write_bytes(content[:cut])
        with pytest.raises(GapviewError):
            read_views(tmp_path / name)


# .mat and HDF5 are read in a process of their own, which takes longer: see test_files_damaged.py
@pytest.mark.parametrize("name", sorted({*SAVED} - {"matlab.mat", "omics.h5ad", "omics.h5mu"}))
def test_damaged_files_give_our_errors_or_numbers(tmp_path, name):
    SAVED[name](FRAME, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    rng = np.random.RandomState(0)
    for turn in range(40):
        damaged = bytearray(content)
        if turn % 4 == 0:
            damaged = damaged[: rng.randint(len(damaged))]
        for _ in range(rng.randint(1, 4)):
            if damaged:
                damaged[rng.randint(len(damaged))] = rng.randint(256)
        (tmp_path / name).write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GapviewWarning)  # of columns that are left out
                views = read_views(tmp_path / name)
        except GapviewError:
            continue
        assert all(view.frame.to_numpy().dtype.kind == "f" for view in views)


def test_very_many_columns_of_few_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id," + ",".join(f"f{k}" for k in range(100_000)) + "\ns1" + ",1.5" * 100_000 + "\n")
    with pytest.raises(DataFileError, match=r"100,001 columns; at most .*GAPVIEW_LIMITS=columns=1e11"):
        read_view(path)  # its columns would take more memory than 20 times its size and 200 MB
