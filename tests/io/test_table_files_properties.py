"""Any frame of numbers and ids, written in any dialect, is read back equal; and written back as it was."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gapview.errors import GapviewError, GapviewWarning
from gapview.io import join_views, read_view, read_views, write_like

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

WORDS = {"", "na", "n/a", "nan", "null", "?", "-", "#n/a"}
# Behind certain letters, these make a text that is UTF-8 and Windows-1252: such pairs are refused or give a warning
SYMBOLS = bytes(range(0x80, 0xC0)).decode("cp1252", "ignore")
letters = st.characters(codec="cp1252", categories=("L", "N", "P", "S", "Zs"), exclude_characters=SYMBOLS)
ids = st.text(letters, min_size=1, max_size=6).filter(lambda key: key.strip() == key and key.lower() not in WORDS)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6).map(float)
cells = st.one_of(numbers, numbers, st.just(np.nan))
dialects = st.fixed_dictionaries(
    {
        "separator": st.sampled_from([",", ";", "\t", "|", " "]),
        "decimal": st.sampled_from([".", ","]),
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
        "newline": st.sampled_from(["\n", "\r\n"]),
        "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        "packed": st.booleans(),
        "missing": st.sampled_from(["", "NA", "null", "?"]),
    }
)


@st.composite
def frames(draw):
    columns = draw(st.lists(st.text(letters, max_size=5).map(str.strip), min_size=1, max_size=5, unique=True))
    keys = draw(st.lists(ids, min_size=1, max_size=8, unique=True))
    values = np.array(draw(st.lists(cells, min_size=len(keys) * len(columns), max_size=len(keys) * len(columns))))
    values = values.reshape(len(keys), len(columns))
    values[np.isnan(values).all(axis=1), 0] = 0.5
    assume(not np.isnan(values).all(axis=0).any())
    return pd.DataFrame(values, index=keys, columns=[f"f_{column}" for column in columns])


def text_of(frame, dialect):
    separator, decimal = dialect["separator"], dialect["decimal"]
    missing = dialect["missing"] or ("NA" if separator == " " else "")
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=separator, lineterminator=dialect["newline"], quoting=dialect["quoting"])
    writer.writerow(["Sample ID", *frame.columns])
    for key, row in zip(frame.index, frame.to_numpy().tolist(), strict=True):
        writer.writerow([key, *[missing if value != value else repr(value).replace(".", decimal) for value in row]])
    return stream.getvalue()


def read(content, name="a.csv", **settings):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        return read_view(Path(folder) / name, **settings)


@settings(max_examples=300)
@given(frames(), dialects)
def test_read_back_equal(frame, dialect):
    assume(dialect["decimal"] != dialect["separator"])
    text = text_of(frame, dialect)
    content = text.encode(dialect["encoding"])
    packed = dialect["packed"]
    view = read(
        gzip.compress(content) if packed else content, "a.txt.gz" if packed else "a.txt", decimal=dialect["decimal"]
    )
    np.testing.assert_array_equal(view.frame.to_numpy(), frame.to_numpy())
    assert view.frame.columns.tolist() == frame.columns.tolist()
    assert view.frame.index.tolist() == frame.index.tolist()


@settings(max_examples=100)
@given(frames(), dialects)
def test_written_back_to_the_same_digits(frame, dialect):
    assume(dialect["decimal"] != dialect["separator"])
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "a.csv", Path(folder) / "b.csv"
        first.write_bytes(text_of(frame, dialect).encode(dialect["encoding"]))
        view = read_view(first, decimal=dialect["decimal"])
        write_like(view, view.frame, second)
        again = read_view(second)
        np.testing.assert_array_equal(again.frame.to_numpy(), frame.to_numpy())
        assert again.frame.index.tolist() == frame.index.tolist()
        write_like(again, again.frame, first)
        assert first.read_bytes() == second.read_bytes()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12, unique=True), st.lists(st.integers(0, 30), unique=True))
def test_whole_ids_join_however_they_are_written(left, right):
    right = [*right, left[0]] if left[0] not in right else right
    with tempfile.TemporaryDirectory() as folder:
        a, b = Path(folder) / "a.csv", Path(folder) / "b.parquet"
        a.write_text("id,x\n" + "".join(f"{key},{key / 4}\n" for key in left))
        pd.DataFrame({"patient": np.array(right, dtype=float), "y": np.array(right) / 8.0}).to_parquet(b)
        joined = join_views(read_views([a, b]))
    everyone = list(dict.fromkeys([*left, *right]))
    assert joined.sample_ids.tolist() == [str(key) for key in everyone]
    assert joined.mask.tolist() == [[key in left, key in right] for key in everyone]
    assert joined.matrices[0].ravel().tolist() == [key / 4 for key in left]
    assert sorted(joined.matrices[1].ravel().tolist()) == sorted(key / 8 for key in right)


@settings(max_examples=200)
@given(st.binary(max_size=200) | st.text(st.sampled_from('a1.,;|\t \n\r"-#é'), max_size=80).map(str.encode))
def test_any_bytes_give_our_errors_or_numbers(content):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GapviewWarning)  # of columns that are left out
            view = read(content)
    except GapviewError:
        return
    assert view.frame.size
    assert view.frame.to_numpy().dtype == np.float64


@pytest.mark.data
def test_real_data_by_way_of_text(dataset, tmp_path):
    views = dataset("tcga_brca_mixomics").views
    for k, (name, matrix) in enumerate(zip(views.names, views.matrices, strict=True)):
        keys = [f"TCGA-{row:03d}" for row in views.rows(k)]
        frame = pd.DataFrame(matrix, index=pd.Index(keys, name="patient"))[::-1]
        frame.to_csv(tmp_path / f"{name}.csv", sep=";", decimal=",")
    files = read_views([tmp_path / f"{name}.csv" for name in views.names])
    joined = join_views(files)
    assert (joined.names, joined.n_features) == (views.names, views.n_features)
    order = np.argsort([int(key[5:]) for key in joined.sample_ids])
    for matrix, expected in zip(joined[order].matrices, views.matrices, strict=True):
        np.testing.assert_array_equal(matrix.astype(expected.dtype), expected)
