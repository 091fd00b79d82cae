"""No file takes more than 20 times its uncompressed size and 200 MB of memory before it is read or refused."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import sys
import zipfile
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.io import savemat

from gapview.datasets import load_views
from gapview.errors import DataFileError, ParameterError
from gapview.io import read_view, reading_with
from gapview.io._sources import limits_from

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")

KINDS = ["csv", "txt", "csv.gz", "csv.zst", "parquet", "feather", "npy", "npz", "mat", "h5ad", "h5", "xlsx", "rds"]

# Reads every file of a folder; prints the outcome and the peak of memory, the process that reads HDF5 included
_PROGRAM = """
import glob, json, os, re, sys, threading, time
import pandas, pyarrow.csv, pyarrow.feather, pyarrow.parquet
from gapview.errors import GapviewError
from gapview.io import read_views

def memory(what, process="self"):
    with open(f"/proc/{process}/status") as lines:
        return int(re.search(what + r":\\s+(\\d+)", lines.read())[1]) / 1024

def command(process):
    with open(f"/proc/{process}/cmdline") as line:
        return line.read()

def watch():
    # A child that has not started its program yet still has the memory and the command of this process
    while True:
        for path in glob.glob("/proc/self/task/*/children"):
            try:
                with open(path) as line:
                    started = [child for child in line.read().split() if command(child) != command("self")]
                    peak[0] = max([peak[0], *(memory("VmHWM", child) for child in started)])
            except (OSError, TypeError):
                pass
        time.sleep(0.01)

peak = [0.0]
threading.Thread(target=watch, daemon=True).start()
found = {}
for name in sorted(os.listdir(sys.argv[1])):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before, peak[0] = memory("VmRSS"), 0.0
    try:
        outcome = "read" if read_views(os.path.join(sys.argv[1], name)) else ""
    except GapviewError as error:
        outcome = str(error)
    found[name] = outcome, memory("VmHWM") - before, peak[0]
print(json.dumps(found))
"""


def _array_header(shape):
    sink = io.BytesIO()
    np.lib.format.write_array_header_1_0(sink, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return sink.getvalue()


def _write_files(folder):
    """Write honest files, and small ones that unpack into gigabytes; return their uncompressed sizes in MB."""
    rng = np.random.default_rng(0)
    ids = [f"s{k}" for k in range(20_000)]
    head = ("id," + ",".join(f"f{k}" for k in range(100)) + "\n").encode()
    tables = {
        "digits.csv": head + b"".join(f"{key},{','.join('7' * 100)}\n".encode() for key in ids),
        "empty.csv": head
        + b"s,"
        + b",".join([b"1"] * 100)
        + b"\n"
        + b"".join(f"{k}{',' * 100}\n".encode() for k in ids),
        "thin.csv": b"id,x\n" + b"".join(b"s%d,1\n" % k for k in range(300_000)),
        "spaces.txt": b"id x y\n" + b"".join(b"s%d 1 2\n" % k for k in range(300_000)),
    }
    for name, content in tables.items():
        (folder / name).write_bytes(content)
    sizes = {name: len(content) / 1e6 for name, content in tables.items()}
    with gzip.open(folder / "bomb.csv.gz", "wb", compresslevel=1) as stream:
        for _ in range(40):
            stream.write(b"0," * 500_000)  # one line
    (folder / "bomb.csv.zst").write_bytes(pa.Codec("zstd").compress(b"0," * 20_000_000, asbytes=True))
    (folder / "digits.csv.zst").write_bytes(pa.Codec("zstd").compress(tables["digits.csv"], asbytes=True))
    sizes |= {"bomb.csv.gz": 40, "bomb.csv.zst": 40, "digits.csv.zst": sizes["digits.csv"]}
    values = rng.normal(size=(20_000, 50))
    frame = pd.DataFrame(values, index=ids, columns=[f"f{k}" for k in range(50)])
    frame.to_parquet(folder / "honest.parquet")
    frame.to_feather(folder / "honest.feather")
    codes = pa.array(np.zeros(20_000, dtype=np.int32))
    words = pa.table({"id": ids, "word": pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 10**6]))})
    pa.parquet.write_table(words, folder / "bomb.parquet")
    pa.feather.write_feather(words, folder / "bomb.feather")
    np.save(folder / "honest.npy", values)
    (folder / "bomb.npy").write_bytes(_array_header((10**6, 1000)) + b"0" * 1000)
    np.savez(folder / "honest.npz", view_0=values, sample_ids=ids)
    with (
        zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("view_0.npy", "w") as it,
    ):
        it.write(_array_header((10**6, 10)))
    raw = bytearray((folder / "bomb.npz").read_bytes())
    place = raw.rfind(b"PK\x01\x02")
    raw[place + 24 : place + 28] = struct.pack("<I", 2**32 - 2)  # the size that the archive declares
    (folder / "bomb.npz").write_bytes(raw)
    savemat(folder / "honest.mat", {"view_0": values})
    savemat(folder / "small.mat", {"view_0": values[:9, :3]})
    sizes |= dict.fromkeys(("honest.parquet", "honest.feather", "honest.npy", "honest.npz", "honest.mat"), 8)
    sizes |= _write_office_files(folder, frame.iloc[:4000])
    try:
        import anndata
        import h5py
    except ImportError:
        return sizes
    data = anndata.AnnData(values, obs=pd.DataFrame(index=ids), var=pd.DataFrame(index=frame.columns))
    data.write_h5ad(folder / "honest.h5ad")
    data[:9, :3].copy().write_h5ad(folder / "small.h5ad")
    data[:9, :3].copy().write_h5ad(folder / "bomb.h5ad")
    with h5py.File(folder / "bomb.h5ad", "a") as archive:
        del archive["X"]
        archive.create_dataset("X", shape=(10**5, 10**4), dtype="f8", chunks=(1000, 1000))
    for name, n_stored in (("honest.h5", values.size), ("small.h5", 9 * 3), ("bomb.h5", 10**9)):
        _write_10x(h5py, folder / name, n_stored)
    return sizes | {"honest.h5ad": 8, "honest.h5": 16}


def _write_10x(h5py, path, n_stored):
    """Write a count matrix of 10x that has, or claims to have, so many stored values."""
    n_rows = 3 if n_stored < 100 else 50
    n_columns = min(n_stored // n_rows, 20_000)
    with h5py.File(path, "w") as archive:
        group = archive.create_group("matrix")
        per_column = n_stored // n_columns
        group["shape"], group["indptr"] = (n_rows, n_columns), np.arange(n_columns + 1) * per_column
        packed = {"compression": "gzip", "chunks": (min(n_stored, 10**6),)}
        for name in ("data", "indices"):
            stored = group.create_dataset(name, shape=(n_stored,), dtype="i4", **packed)  # zeros, which take no space
            if n_stored < 10**8:
                stored[:] = np.tile(np.arange(n_rows), n_columns)
        group["barcodes"] = np.array([f"c{k}" for k in range(n_columns)], dtype="S")
        for name in ("id", "name"):
            group[f"features/{name}"] = np.array([f"g{k}" for k in range(n_rows)], dtype="S")
        group["features/feature_type"] = np.array(["Gene Expression"] * n_rows, dtype="S")


def _write_office_files(folder, frame):
    """Write workbooks and files of R where their packages are installed; return their uncompressed sizes in MB."""
    sizes = {}
    if find_spec("xlsxwriter") and find_spec("python_calamine"):
        import xlsxwriter

        frame.to_excel(folder / "honest.xlsx", engine="xlsxwriter")
        frame.iloc[:9, :3].to_excel(folder / "small.xlsx", engine="xlsxwriter")
        with xlsxwriter.Workbook(folder / "bomb.xlsx") as bomb:  # a table of 10¹⁰ cells, almost all of them empty
            sheet = bomb.add_worksheet()
            sheet.write(0, 0, 1)
            sheet.write(1_048_575, 16_383, 2)
        with zipfile.ZipFile(folder / "honest.xlsx") as book:
            sizes["honest.xlsx"] = sum(member.file_size for member in book.infolist()) / 1e6
    if find_spec("rdata"):
        import rdata

        rdata.write_rds(folder / "honest.rds", frame)
        rdata.write_rds(folder / "small.rds", frame.iloc[:9, :3])
        content = gzip.decompress((folder / "small.rds").read_bytes())
        # A vector of numbers that claims to have 10⁹ of them
        place = content.index(struct.pack(">i", 9), content.index(struct.pack(">i", 14)))
        forged = content[:place] + struct.pack(">i", 10**9) + content[place + 4 :]
        (folder / "bomb.rds").write_bytes(gzip.compress(forged))
        sizes["honest.rds"] = frame.size * 8 / 1e6
    return sizes


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    sizes = _write_files(folder)
    done = subprocess.run([sys.executable, "-c", _PROGRAM, str(folder)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: (*found[name], sizes.get(name, 0.0)) for name in found}


@pytest.mark.parametrize("kind", KINDS)
def test_peak_of_memory(measured, kind):
    files = {name: found for name, found in measured.items() if name.split(".", 1)[1] == kind}
    if not files:
        pytest.skip("the package for this format is not installed")
    least = min(child for _, _, child, _ in files.values())  # the modules that the reading process imports
    for name, (outcome, own, child, size) in files.items():
        assert (outcome == "read") != name.startswith("bomb"), (name, outcome)
        assert own + child - least <= 20 * size + 200, (name, own, child, size)


def test_limits_are_named_and_can_be_raised(tmp_path):
    (tmp_path / "a.csv").write_text("id,x\ns1,1\ns2,2\n")
    with reading_with(limits_from("size=10")), pytest.raises(DataFileError, match="raise the limit 'size' with"):
        read_view(tmp_path / "a.csv")
    with reading_with(limits_from("size=1e3, cells=4")):
        assert len(read_view(tmp_path / "a.csv").frame) == 2
    for wrong in ("size", "size=x", "sizes=3", "size=inf"):
        with pytest.raises(ParameterError, match="GAPVIEW_LIMITS must hold pairs such as size=1e10"):
            limits_from(wrong)


def test_limits_hold_for_data_sets(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", view_0=np.zeros((100, 100)))
    with reading_with(limits_from("size=1e4")), pytest.raises(DataFileError, match="80,.* bytes when unpacked"):
        load_views(tmp_path / "a.npz")
