"""Thousands separators and decimal marks: recognised where a file shows them, refused where nothing does."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from gapview.commands.cli import main
from gapview.errors import DataFileError, InputError, ParameterError
from gapview.io import read_table, read_view, read_views, write_like

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def read(tmp_path):
    def put(rows, separator=";", **settings):
        """Write the rows, each a text with fields between bars, and read them."""
        text = "".join(row.replace("|", separator) + "\n" for row in rows)
        (tmp_path / "a.csv").write_text(text, encoding="utf-8")
        return read_view(tmp_path / "a.csv", **settings)

    return put


OPEN = ["id|x|y", "s1|1,234|7", "s2|12,345|8", "s3|999|9"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("n_rows", [3, 500])
def test_open_numbers_are_refused_with_a_way_out(read, separator, n_rows):
    rows = OPEN + [f"t{k}|{k % 900 + 1},{k % 900 + 100}|1" for k in range(n_rows)]
    with pytest.raises(DataFileError, match=r"Column 'x' of 'a.csv' has numbers such as '1,234'.*thousands=','"):
        read(rows, separator)
    assert read(rows, separator, decimal=",").frame["x"].tolist()[:3] == [1.234, 12.345, 999]
    assert read(rows, separator, thousands=",").frame["x"].tolist()[:3] == [1234, 12345, 999]
    assert read(rows, separator, decimal=".").frame["x"].tolist()[:3] == [1234, 12345, 999]


def test_quoted_and_pointed_numbers(read):
    quoted = ["id,x", 's1,"1,234"', 's2,"12,345"']
    with pytest.raises(DataFileError, match="'1,234'"):
        read(quoted, ",")
    assert read([f"{row},{end}" for row, end in zip(quoted, ("y", "0.5", "2.5"), strict=True)], ",").frame[
        "x"
    ].tolist() == [1234, 12345]
    points = ["id|x", "s1|1.234", "s2|12.345"]
    with pytest.raises(DataFileError, match=r"'1\.234'.*thousands='\.' to read 1234"):
        read(points)
    for separator in (",", "\t", "|"):  # where a point is hardly ever anything but decimal
        assert read(points, separator).frame["x"].tolist() == [1.234, 12.345]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1,234", "0,123"], [1.234, 0.123]),  # no thousands begin with 0
        (["1,234", "1,5"], [1.234, 1.5]),
        (["1,234", "1234,567"], [1.234, 1234.567]),
        (["1,234", "-1,2345e-3"], [1.234, -1.2345e-3]),
        (["1,234", "1,234,567"], [1234, 1234567]),
        (["1,234.5", "1,234", "12"], [1234.5, 1234, 12]),
        (["1.234,5", "1.234", "-12,25"], [1234.5, 1234, -12.25]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        (["1'234", "1'234'567.5", "5"], [1234, 1234567.5, 5]),
        (["1\u2019234", "2\u2019345"], [1234, 2345]),
        (["1 234", "1 234,5"], [1234, 1234.5]),
        (["1\u00a0234", "12\u202f345"], [1234, 12345]),
        (["1 234,567", "1,234"], [1234.567, 1.234]),
    ],
)
def test_unambiguous_numbers(read, values, expected):
    rows = ["id|x|y"] + [f"s{k}|{value}|{k}" for k, value in enumerate(values)]
    assert read(rows).frame["x"].tolist() == expected


@pytest.mark.parametrize("decider", ["0,5", "12,75", "1.234,5"])
@pytest.mark.parametrize("row", [0, 300])
def test_another_column_decides(read, decider, row):
    """Also if it does so far below the first rows, from which the dialect is detected."""
    cells = ["7"] * 400
    cells[row] = decider
    commas = read(["id|x|y"] + [f"s{k}|{k % 9 + 1},{k + 100}|{cell}" for k, cell in enumerate(cells)])
    assert commas.frame["x"].tolist()[:2] == [1.1, 2.101]
    points = read(["id|x|y"] + [f"s{k}|{k % 9 + 1}.{k + 100}|{cell}" for k, cell in enumerate(cells)], "\t")
    assert points.frame["x"].tolist()[:2] == [1100, 2101]
    assert "Numbers with thousands separators in 'x' (1.100)" in " ".join(points.notes)


def test_contradictions_are_refused(read):
    for rows in (
        ["id|x|y|z", "a|1,234|1,5|1.5", "b|2,345|2,5|2.5"],  # both marks are decimal
        ["id|x|y|z", "a|1,234|1,5|1,234,567", "b|2,345|2,5|1"],  # the comma is decimal, and separates thousands
    ):
        with pytest.raises(DataFileError, match="Nothing in the file decides"):
            read(rows)


def test_three_decimals_everywhere(read):
    values = np.round(np.random.default_rng(0).gamma(2.0, 3.0, (50, 4)), 3)
    for separator, decimal in ((",", "."), ("\t", "."), (";", ","), (";", "."), ("\t", ",")):
        rows = ["id|a|b|c|d"]
        rows += [f"s{k}|" + "|".join(f"{v:.3f}".replace(".", decimal) for v in row) for k, row in enumerate(values)]
        np.testing.assert_array_equal(read(rows, separator).frame, values)


def test_a_file_that_was_written_is_never_open(read, tmp_path):
    view = read(OPEN, decimal=",")
    write_like(view, view.frame, tmp_path / "b.csv")
    np.testing.assert_array_equal(read_view(tmp_path / "b.csv").frame, view.frame)


def test_wrong_marks_and_other_interfaces(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(row.replace("|", ";") for row in OPEN))
    for wrong in ({"decimal": ";"}, {"thousands": "'"}, {"decimal": ",", "thousands": ","}):
        with pytest.raises(ParameterError, match="decimal|thousands"):
            read_view(path, **wrong)
    assert read_views([path], thousands=",")[0].frame["x"].tolist() == [1234, 12345, 999]
    assert read_views({"a": path}, decimal=",")[0].frame["x"].tolist() == [1.234, 12.345, 999]
    assert read_table(path)["x"].tolist() == ["1,234", "12,345", "999"]  # covariates stay text if nothing decides
    result = CliRunner().invoke(main, ["cluster", str(path), "-k", "2", "-o", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert "--decimal" in result.output


def test_ids_with_commas_and_exponents(read):
    assert read(["id|x", "1,000|1", "2,000|2"]).frame.index.tolist() == ["1,000", "2,000"]
    assert read(["id|x", "1.0|1", "2.0|2"]).frame.index.tolist() == ["1", "2"]
    assert read(["id|x", "1.000|1", "2.000|2"]).frame.index.tolist() == ["1.000", "2.000"]
    assert read(["id|x", "99999|1", "1e+05|2", "1E+06|3"]).frame.index.tolist() == ["99999", "100000", "1000000"]
    assert read(["id|x", "1e5|1", "2e5|2"]).frame.index.tolist() == ["1e5", "2e5"]
    with pytest.warns(UserWarning, match=r"Sample ids of 'a.csv' are in scientific notation.*'1.23457e\+09'"):
        assert read(["id|x", "1.23457e+09|1", "7|2"]).frame.index.tolist() == ["1234570000", "7"]


def test_float_ids_that_have_lost_digits(read, tmp_path):
    import pandas as pd

    big = 2**53
    assert read(["id|x", f"{big + 1}|1", f"{big + 3}|2"]).frame.index.tolist() == [str(big + 1), str(big + 3)]
    with pytest.raises(InputError, match=r"stored as floats of 2\*\*53 or more.*Store the ids as text"):
        read(["id|x", f"{big}.0|1", "7.0|2"])
    for kind, bits in ((np.float64, 53), (np.float32, 24)):
        frame = pd.DataFrame({"id": np.array([2.0**bits, 7], dtype=kind), "x": [1.0, 2.0]})
        frame.to_parquet(tmp_path / "a.parquet")
        with pytest.raises(InputError, match=rf"stored as floats of 2\*\*{bits} or more"):
            read_view(tmp_path / "a.parquet")
        frame.assign(id=np.array([2.0**bits - 1, 7], dtype=kind)).to_parquet(tmp_path / "a.parquet")
        assert read_view(tmp_path / "a.parquet").frame.index.tolist() == [str(2**bits - 1), "7"]
