"""Files that crash, hang or blow up the libraries that read them: one of our errors, and this process lives on."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from gapview import GRMF, BridgedGRMF, load
from gapview.datasets import load_views, make_views
from gapview.errors import DataFileError, GapviewError
from gapview.io import LIMITS, isolated, join_views, read_view, read_views, reading_with
from gapview.io.reader import encode

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from awkward_files import run  # noqa: E402


def changed(content, place, new):
    return content[:place] + new + content[place + len(new) :]


def crashing_mat():
    """A cell of two texts; one byte of the first one's header is wrong."""
    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = "a", "b"
    savemat(sink := io.BytesIO(), {"x": cell})
    return changed(sink.getvalue(), 224, b"\xff")


def crashing_feather(path):
    """Feather as it was before 2020, with an offset that leads out of the file."""
    feather = pytest.importorskip("pyarrow.feather")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        feather.write_feather(pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0]}), str(path), version=1)
    content = path.read_bytes()
    return content, changed(content, 45, b"\xff\xff\xff\xff")


def test_a_mat_file_that_crashes_scipy(tmp_path):
    (tmp_path / "a.mat").write_bytes(crashing_mat())
    for read in (read_view, load_views):
        with pytest.raises(DataFileError, match="'a.mat' cannot be read as a MATLAB file: .*Save it again"):
            read(tmp_path / "a.mat")


def test_an_old_feather_file_that_crashes_arrow(tmp_path):
    whole, damaged = crashing_feather(tmp_path / "a.feather")
    (tmp_path / "a.feather").write_bytes(whole)
    assert read_view(tmp_path / "a.feather").frame["x"].tolist() == [1.0, 2.0]
    (tmp_path / "a.feather").write_bytes(damaged)
    with pytest.raises(DataFileError, match="'a.feather' cannot be read as a Feather file"):
        read_view(tmp_path / "a.feather")


# What a library can do to its process, whatever its version
ENDS = {
    "os.kill(os.getpid(), 11)": r"crashed \(signal 11\), so the file is damaged",
    "os._exit(3)": "ended with code 3",
    "time.sleep(60)": "takes more than 2 seconds",
    "os.write(1, b'\\x09' + bytes(7) + b'{}')": "ended with code 0",
    "os.write(1, b'\\xff' * 8)": "too large",
    "os.write(1, b'\\x02' + bytes(7) + b'{}')": "KeyError",
}


@pytest.mark.parametrize("program", ENDS)
def test_every_end_of_the_reading_process(program, tmp_path, monkeypatch):
    savemat(tmp_path / "a.mat", {"view_0": np.eye(3)})
    (tmp_path / "program.py").write_text(f"import os, time; {program}")
    monkeypatch.setattr(isolated, "PROGRAM", tmp_path / "program.py")
    with (
        reading_with(replace(LIMITS, seconds=1 if "sleep" in program else 120)),
        pytest.raises(DataFileError, match=f"'a.mat' .*{ENDS[program]}"),
    ):
        read_view(tmp_path / "a.mat")


def test_memory_of_the_reading_process(tmp_path):
    savemat(tmp_path / "a.mat", {"a": np.eye(3), "b": np.eye(3)}, format="4")
    content = changed((tmp_path / "a.mat").read_bytes(), 4, (2**27).to_bytes(4, "little"))  # rows of the first
    (tmp_path / "a.mat").write_bytes(content)
    reading = reading_with(replace(LIMITS, memory=2**30))
    with reading, pytest.raises(DataFileError, match="'a.mat' cannot be read as a MATLAB file"):
        read_view(tmp_path / "a.mat")


NUMBER = {"dtype": "<f8", "shape": [1]}
FORGED = {  # besides the parts that are valid
    "place": {"answer": {"value": {"array": 5}}},
    "kind": {"answer": {"value": {"eval": "1"}}},
    "type": {"answer": {"value": {"array": 0}}, "arrays": [NUMBER | {"dtype": "|O"}], "lengths": [8]},
    "shape": {"answer": {"value": {"array": 0}}, "arrays": [NUMBER | {"shape": [2**40]}], "lengths": [8]},
    "length": {"arrays": [NUMBER], "lengths": [2**60]},
    "negative": {"arrays": [NUMBER], "lengths": [-8]},
    "objects": {"answer": {"value": {"objects": 0}}, "objects": [{"shape": [3], "items": [1]}]},
}


@pytest.mark.parametrize("name", FORGED)
def test_answers_of_the_reading_process_are_not_trusted(name, tmp_path):
    def stream_of(parts):
        text = json.dumps({"answer": {"value": 1}, "arrays": [], "lengths": [], "objects": []} | parts).encode()
        return io.BytesIO(len(text).to_bytes(8, "little") + text + bytes(8))

    assert isolated.receive(stream_of({"arrays": [NUMBER], "lengths": [8]}), tmp_path / "a.mat") == {"value": 1}
    with pytest.raises(DataFileError), isolated.reporting_damage(tmp_path / "a.mat", "a MATLAB file"):
        isolated.receive(stream_of(FORGED[name]), tmp_path / "a.mat")


def test_values_come_back_as_they_were_sent(tmp_path):
    from scipy import sparse

    cell = np.empty((1, 3), dtype=object)
    cell[0, 0], cell[0, 1], cell[0, 2] = np.asfortranarray(np.eye(3, 2)), "ü", None
    sent = {
        "cell": cell,
        "text": np.array([["ab", "c"]]),
        "graph": sparse.csc_matrix(np.eye(3)),
        "more": [1, 0.5, b"x"],
    }
    text, blocks = encode({"value": sent})
    stream = io.BytesIO(len(text).to_bytes(8, "little") + text + b"".join(block.tobytes() for block in blocks))
    found = isolated.receive(stream, tmp_path)["value"]
    assert found["cell"][0, 1:].tolist() == ["ü", None]
    np.testing.assert_array_equal(found["cell"][0, 0], np.eye(3, 2))
    assert found["cell"][0, 0].flags.f_contiguous  # so that products round as they did
    assert found["text"].tolist() == [["ab", "c"]]
    assert found["more"] == [1, 0.5, "x"]
    np.testing.assert_array_equal(found["graph"].toarray(), np.eye(3))


def test_scripts_without_a_guard_can_read(tmp_path):
    savemat(tmp_path / "a.mat", {"view_0": np.eye(3)})
    (tmp_path / "json.py").write_text("raise SystemExit('a file of the user was run')")  # beside the data
    (tmp_path / "script.py").write_text("import gapview.io as f; print(f.read_view('a.mat').frame.shape)")
    done = subprocess.run(
        [sys.executable, "-P", "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.stdout == "(3, 3)\n", done.stderr


def test_texts_of_characters_that_do_not_exist(tmp_path):
    for code in (0x110000, 0x7FFFFFFF, 0xD800):
        ids = np.array([code, 98], dtype="<u4").view("<U1")
        np.savez(tmp_path / "a.npz", view_0=np.eye(2), sample_ids=ids, view_names=ids[:1])
        for read in (read_view, load_views):
            with pytest.raises(DataFileError, match="'a.npz' cannot be read"):
                read(tmp_path / "a.npz")


def npy_with(header):
    text = repr(header).encode() if isinstance(header, dict) else header
    return b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + bytes(64)


@pytest.mark.parametrize(
    "header",
    [
        {"descr": "<f8", "fortran_order": False, "shape": (2**31, 2**31)},
        {"descr": "|O", "fortran_order": False, "shape": (2,)},
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999999999999999999999999999999, 3)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 3)}",  # of Python 2: numpy warns
    ],
)
def test_headers_of_arrays_that_make_numpy_warn(header, tmp_path):
    (tmp_path / "a.npy").write_bytes(npy_with(header))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("view_0.npy", npy_with(header))
    for name in ("a.npy", "a.npz"):
        with suppress(GapviewError):
            read_views(tmp_path / name)  # warnings are errors in tests, and would be told as damage
            continue
        with pytest.raises(GapviewError, match="^(?!.*Warning)"):
            read_views(tmp_path / name)


def refused_within(memory, path, words):
    tracemalloc.start()
    try:
        with pytest.raises(DataFileError, match=words):
            read_view(path)
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()


def test_bombs(tmp_path):
    with reading_with(replace(LIMITS, size=2**20)):
        check_bombs(tmp_path)


def check_bombs(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id,x\n" + b"a,1\n" * 10**7))
    refused_within(2**23, tmp_path / "a.csv.gz", "bytes or more when unpacked; at most 1,048,576 are read")
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        np.save(sink := io.BytesIO(), np.zeros((10**7,)))
        archive.writestr("view_0.npy", sink.getvalue())
    del sink
    refused_within(2**23, tmp_path / "a.npz", "bytes when unpacked")
    content = bytearray((tmp_path / "a.npz").read_bytes())
    for place in (22, content.rfind(b"PK\x01\x02") + 24):  # the archive says that it holds 100 bytes
        content[place : place + 4] = (100).to_bytes(4, "little")
    (tmp_path / "b.npz").write_bytes(content)
    with pytest.raises(DataFileError, match=r"'b.npz' cannot be read"):
        read_view(tmp_path / "b.npz")


def test_a_parquet_file_whose_texts_are_long_only_when_written_out(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet, feather = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.feather")

    word = pa.DictionaryArray.from_arrays(pa.array(np.zeros(5000, np.int32)), pa.array(["x" * 100_000]))
    table = pa.table({"x": pa.array(np.arange(5000.0)), "word": word})
    parquet.write_table(table, tmp_path / "a.parquet", store_schema=False)
    feather.write_feather(table, tmp_path / "a.feather")
    before = pa.total_allocated_bytes()
    for name in ("a.parquet", "a.feather"):
        assert (tmp_path / name).stat().st_size < 200_000
        reading = reading_with(replace(LIMITS, size=2**24))
        with reading, pytest.raises(DataFileError, match="500,000,000 bytes of text; at most 16,777,216"):
            read_view(tmp_path / name)
    assert pa.default_memory_pool().max_memory() - before < 2**28


@pytest.mark.parametrize(
    ("content", "limits", "words"),
    [
        (b"id," + b",".join(b"c%d" % k for k in range(10**6)) + b"\n" + b"a" + b",1" * 10**6 + b"\n", {}, "columns"),
        (b"id,x\na," + b"1" * 2**20 + b"\n", {"line": 2**16, "head": 2**12}, "line of more than|fields of at most"),
        (b"id,x\na,1\n\0\0,2\n", {}, "is not a text"),
        (b"\0" * 1000, {}, "is not a text"),
        (b'id,x\n"' + b"a" * 2**18, {}, "quotes|fields of at most"),
    ],
    ids=["a million columns", "a long line", "NUL", "only NUL", "a quote that stays open"],
)
def test_texts_of_awkward_shape(content, limits, words, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    with reading_with(replace(LIMITS, **limits)), pytest.raises(DataFileError, match=words):
        read_view(tmp_path / "a.csv")


@pytest.mark.parametrize("scale", [1e308, 1e200, 1.0, 1e-200])
def test_gaps_in_rows_of_huge_and_tiny_values_are_filled_from_the_nearest(scale, tmp_path):
    rows = [
        ("a", 0.1, 0.1),
        ("b", 0.11, ""),
        *((f"n{k}", 0.1, 0.1) for k in range(9)),
        *((f"f{k}", 0.9, 0.9) for k in range(9)),
    ]
    written = [f"{key},{x * scale},{'' if y == '' else y * scale}\n" for key, x, y in rows]
    (tmp_path / "a.csv").write_text("id,x,y\n" + "".join(written))
    filled = join_views(read_views(tmp_path / "a.csv"), partial_rows="fill").matrices[0]
    np.testing.assert_allclose(filled[1] / scale, [0.11, 0.1])
    assert filled[0].tolist() == [0.1 * scale, 0.1 * scale]


def test_names_of_views_lead_nowhere_else(tmp_path):
    data = make_views(20, (4, 3), n_clusters=2, missing_rate=0.3, random_state=0).views
    names = ["../../escaped", str(tmp_path / "escaped")]
    GRMF(2, init="data", max_iter=5, random_state=0).fit(dict(zip(names, _frames(data), strict=True))).save(
        tmp_path / "m"
    )
    out = tmp_path / "a" / "b" / "out"
    run("recover", tmp_path / "m", "-o", out)
    assert len([file for file in out.iterdir() if file.suffix == ".csv" and file.name != "recovery.csv"]) == 2
    assert {file for file in (tmp_path / "a").rglob("*") if file.is_file()} == set(out.iterdir())
    assert sorted(os.listdir(tmp_path)) == ["a", "m"]


def _frames(data):
    return [pd.DataFrame(matrix, index=pd.Index(data.rows(k), name="sample")) for k, matrix in enumerate(data.matrices)]


def test_names_in_a_report_are_no_formulas_and_may_hold_any_character(tmp_path):
    report = pytest.importorskip("gapview.report")
    pytest.importorskip("matplotlib")
    names = [r"$\nothing$", "\x00\x1b", "$x$$x$<b>", "\U0001f9ea"]
    data = make_views(30, (4, 4), n_clusters=2, missing_rate=0.3, random_state=0).views
    frames = {
        f"{name}{k}": frame.set_axis(names, axis=1)
        for k, (name, frame) in enumerate(zip(names[:2], _frames(data), strict=True))
    }
    model = GRMF(2, init="data", max_iter=5, random_state=0).fit(frames)
    text = report.write_clustering_report(model, tmp_path / "a.html", assess=False).read_text()
    assert "<b>" not in text


def test_a_model_with_views_of_no_weight(tmp_path):
    from test_model_files_forged import put_together, taken_apart

    data = make_views(12, (4, 3), n_clusters=2, missing_rate=0.3, random_state=0).views
    BridgedGRMF(2, selection="fixed", random_state=0).fit(data).save(tmp_path / "a")
    header, state, blocks = taken_apart(tmp_path / "a")
    place = state["attributes"]["view_weights_"]["array"]
    blocks[place] = np.zeros_like(blocks[place])
    (tmp_path / "a").write_bytes(put_together(header, state, blocks))
    with pytest.raises(DataFileError, match="a view has no weight"):
        load(tmp_path / "a")
