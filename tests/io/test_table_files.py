"""A folder of awkward text tables: each gives the right numbers, or the right words."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from gapview.errors import DataFileError, GapviewWarning, InputError, InputTypeError, ParameterError, ParameterTypeError
from gapview.io import join_views, read_table, read_view, read_views

pytest.importorskip("pandas")

PLAIN = {"s1": [1.5, 2.0], "s2": [-3.25, 40.0], "s3": [0.125, 6.0]}


@pytest.fixture
def put(tmp_path):
    """Write a file into the folder; text in UTF-8 unless it comes as bytes."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(view):
    return dict(zip(view.frame.index, view.frame.to_numpy().tolist(), strict=True))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("comma.csv", "id,iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n"),
        ("semicolon.csv", "id;iron;zinc\ns1;1,5;2\ns2;-3,25;40\ns3;,125;6\n"),
        ("semicolon_point.csv", "id;iron;zinc\ns1;1.5;2\ns2;-3.25;40\ns3;.125;6\n"),
        ("tabs.tsv", "id\tiron\tzinc\ns1\t1.5\t2\ns2\t-3.25\t40\ns3\t0.125\t6\n"),
        ("tabs_comma.txt", "id\tiron\tzinc\ns1\t1,5\t2\ns2\t-3,25\t40\ns3\t0,125\t6\n"),
        ("bars.txt", "id|iron|zinc\ns1|1.5|2\ns2|-3.25|40\ns3|0.125|6\n"),
        ("spaces.txt", "  id    iron  zinc \n  s1    1.5     2\n  s2  -3.25    40  \n  s3  0.125     6\n"),
        ("mixed_spaces.txt", "id \t iron zinc\ns1\t 1.5 2\ns2   -3.25 40\ns3 0.125 6"),
        ("r.txt", "iron zinc\ns1 1.5 2\ns2 -3.25 40\ns3 0.125 6\n"),
        ("r_quotes.csv", '"iron","zinc"\n"s1",1.5,2\n"s2",-3.25,40\n"s3",0.125,6\n'),
        ("bom.csv", b"\xef\xbb\xbfid,iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n"),
        ("utf16.csv", "\ufeffid,iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n".encode("utf-16-le")),
        ("utf16be.csv", "\ufeffid,iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n".encode("utf-16-be")),
        ("packed.csv.gz", gzip.compress(b"id,iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n", mtime=0)),
        ("PACKED.TSV.GZ", gzip.compress(b"ID\tiron\tzinc\ns1\t1.5\t2\ns2\t-3.25\t40\ns3\t0.125\t6\n", mtime=0)),
        ("windows.csv", "id,iron,zinc\r\ns1,1.5,2\r\ns2,-3.25,40\r\ns3,0.125,6\r\n"),
        ("old_mac.csv", "id,iron,zinc\rs1,1.5,2\rs2,-3.25,40\rs3,0.125,6\r"),
        ("quotes.csv", '"id","iron","zinc"\n"s1","1.5","2"\n"s2","-3.25","40"\n"s3","0.125","6"\n'),
        ("quoted_commas.csv", 'id,iron,zinc\ns1,"1,5",2\ns2,"-3,25",40\ns3,"0,125",6\n'),
        ("blanks.csv", "id, iron, zinc\ns1, 1.5, +2\n\ns2, -3.25, 4e1\n\n\ns3, 0.125, 6.0\n\n"),
        ("id_last.csv", "iron,zinc,Patient_ID\n1.5,2,s1\n-3.25,40,s2\n0.125,6,s3\n"),
        ("first_column.csv", "tumour,iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n"),
        ("trailing.csv", "id,iron,zinc,\ns1,1.5,2,\ns2,-3.25,40,\ns3,0.125,6,\n"),
        ("trailing_rows.csv", "id;iron;zinc\ns1;1,5;2;\ns2;-3,25;40;\ns3;0,125;6;\n"),
        ("trailing_header.csv", "id,iron,zinc,\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n"),
        ("excel.csv", "sep=;\r\nid;iron;zinc\r\ns1;1,5;2\r\ns2;-3,25;40\r\ns3;0,125;6\r\n"),
        ("excel_rest.csv", "id;iron;zinc\ns1;1,5;2\ns2;-3,25;40\ns3;0,125;6\n;;\n;;\n"),
        ("remarks.csv", "# made by a machine\n# 2020\nid,iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n"),
        ("title.csv", "Blood of 2020;;\nid;iron;zinc\ns1;1,5;2\ns2;-3,25;40\ns3;0,125;6\n"),
        ("gct.txt", "#1.2\n2\t2\nNAME\tDescription\tiron\tzinc\ns1\tx\t1.5\t2\ns2\ty\t-3.25\t40\ns3\tz\t0.125\t6\n"),
        ("units.csv", "id,iron,zinc\n,mg/l,g/l\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n"),
        ("pandas.csv", "Unnamed: 0,iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n"),
        ("pandas_index.csv", ",iron,zinc\ns1,1.5,2\ns2,-3.25,40\ns3,0.125,6\n"),
        ("row_numbers.csv", ",id,iron,zinc\n0,s1,1.5,2\n1,s2,-3.25,40\n2,s3,0.125,6\n"),
    ],
)
def test_the_same_table_in_many_forms(put, name, content):
    view = read_view(put(name, content), drop="Description" if name == "gct.txt" else None)
    assert rows(view) == PLAIN
    assert view.keyed
    assert view.frame.columns.tolist() == ["iron", "zinc"]
    assert view.name == name.split(".")[0]


def test_a_column_of_text_is_left_out(put):
    path = put("true.csv", "id,iron,zinc,x\ns1,1.5,2,n\ns2,-3.25,40,m\ns3,0.125,6,m\n")
    with pytest.warns(GapviewWarning, match="1 column of text of 'true.csv' left out: 'x'. Encode it"):
        view = read_view(path)
    assert rows(view) == rows(read_view(path, drop="x")) == PLAIN  # the latter without a warning
    assert view.frame.columns.tolist() == ["iron", "zinc"]


def test_windows_1252(put):
    view = read_view(put("a.csv", "id;größe\nMüller;1,5\nØrsted;2,5\n".encode("cp1252")))
    assert rows(view) == {"Müller": [1.5], "Ørsted": [2.5]}
    assert view.frame.columns.tolist() == ["größe"]
    assert "decimal comma, in Windows-1252" in view.notes[0]


def test_encodings_that_are_mixed(put):
    text = "id,x\nMüller,1\nØrsted,2\nJosé,3\n".encode()
    wrong = text.replace("José".encode(), "José".encode("cp1252"))
    with pytest.raises(DataFileError, match=r"UTF-8, except for 1 byte of another encoding in line\(s\) 4"):
        read_view(put("a.csv", wrong))
    with pytest.raises(DataFileError, match=r"except for 1 byte of another encoding in line\(s\) 4"):
        read_view(put("a.csv", b"\xef\xbb\xbf" + wrong))
    with pytest.warns(GapviewWarning, match="'a.csv' has letters that were saved in one encoding.*'MÃ¼ller'"):
        read_view(put("a.csv", text.decode("cp1252").encode()))
    words = "".join(f"Bär{k},1\n" for k in range(30)) + "Spaß»,2\n"  # whose last two bytes are a letter in UTF-8, too
    assert read_view(put("a.csv", ("id,x\n" + words).encode("cp1252"))).frame.index[-1] == "Spaß»"


def test_quotes_around_separators_and_line_ends(put):
    view = read_view(put("a.csv", 'id,"a, ""b""",c\n"one,\ntwo",1,2\nthree,3,4\n'))
    assert rows(view) == {"one,\ntwo": [1, 2], "three": [3, 4]}
    assert view.frame.columns.tolist() == ['a, "b"', "c"]


def test_missing_words(put):
    words = ["", "NA", "N/A", "NaN", "null", "?", "-", "n/a", "NULL", " na ", "#N/A", "nan"]
    text = "id,a,b\n" + "".join(f"s{k},{word},{k}\n" for k, word in enumerate(words))
    view = read_view(put("a.csv", text + "t,5,6\n"))
    assert np.isnan(view.frame["a"]).tolist() == [True] * len(words) + [False]
    assert view.frame["b"].notna().all()
    assert f"{len(words)} cells (46.2 %) empty, in {len(words)} rows that have other values." in view.notes


def test_cells_missing_here_and_there(put):
    view = read_view(put("a.csv", "id,a,b,c\ns1,1,,\ns2,,2,\ns3,,,\ns4,3,4,\n"))
    assert view.frame.index.tolist() == ["s1", "s2", "s4"]
    assert "1 column without any value left out: 'c'." in view.notes
    assert "1 row without any number: these samples lack the view." in view.notes
    with pytest.raises(ValueError, match="partial_rows='fill'"):
        join_views([view])
    assert join_views([view], partial_rows="fill").n_samples == 3
    with pytest.warns(GapviewWarning, match="2 samples without a row that has all its values left out: 's1', 's2'"):
        assert join_views([view], partial_rows="drop").sample_ids.tolist() == ["s4"]


def test_a_header_that_is_missing(put):
    view = read_view(put("a.csv", "0.5,1\n0.25,2\n0.125,4\n"))
    np.testing.assert_array_equal(view.frame, [[0.5, 1], [0.25, 2], [0.125, 4]])
    assert view.frame.columns.tolist() == ["column_1", "column_2"]
    assert any("no header: its first line holds numbers" in note for note in view.notes)
    assert rows(read_view(put("b.csv", "s1;1,5\ns2;2,5\ns3;3\n"))) == {"s1": [1.5], "s2": [2.5], "s3": [3.0]}


@pytest.mark.parametrize("first", ["NA,NA,0.5,NA", "NA,NA,NA,NA", ",0.5,,", "7,,,", "NA,1,NA,NA"])
def test_a_first_row_that_is_mostly_missing_is_no_header(put, first):
    text = first + "\n" + "".join(f"{k}.5,{k * k}.25,{k + 1},{k}\n" for k in range(5))
    view = read_view(put("a.csv", text))
    assert any("The file has no header" in note for note in view.notes)
    assert len(view.frame) == 6
    keyed = read_view(put("b.csv", f"s0,{first}\n" + "".join(f"s{k},{k},{k + 0.5},3,{k}\n" for k in range(1, 5))))
    assert keyed.frame.index.tolist() == [f"s{k}" for k in range(0 if any(map(str.isdigit, first)) else 1, 5)]


@pytest.mark.parametrize("first", ["s0,NA,NA", "s0,,"])
def test_a_first_sample_without_values_is_no_title(put, first):
    view = read_view(put("a.csv", first + "\ns1,1,2\ns2,2,3\n"))
    assert rows(view) == {"s1": [1, 2], "s2": [2, 3]}


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3", "7157,672,1956", "id,2019,2020", "dose,2019,2020"])
def test_numbers_that_are_a_header(put, header):
    view = read_view(put("a.csv", header + "\n11.5,0.5,0.25\n12.5,0.125,1.5\n13.5,2.5,1e-3\n"))
    assert [name for name in header.split(",") if name != "id"] == view.frame.columns.tolist()
    assert len(view.frame) == 3


@pytest.mark.parametrize("first", ["", "file", "400"])
def test_wavelengths_are_a_header(put, first):
    scale = [first, *(f"{400.5 + 2.25 * k}" for k in range(1, 10))]
    values = np.random.RandomState(0).uniform(size=(6, 10))
    lines = [
        f"{'' if first == '400' else f's{r},'}" + ",".join(map(str, values[r, : 9 + (first == "400")]))
        for r in range(6)
    ]
    view = read_view(put("a.csv", ",".join(scale) + "\n" + "\n".join(lines) + "\n"))
    assert view.frame.columns.tolist() == [name for name in scale if name not in ("", "file")]
    assert len(view.frame) == 6


def test_a_first_row_of_increasing_numbers_is_no_header_if_others_increase(put):
    rows_of_numbers = "".join(f"s{r}," + ",".join(str(r + 0.5 * k) for k in range(9)) + "\n" for r in range(6))
    assert len(read_view(put("a.csv", rows_of_numbers)).frame) == 6


@pytest.mark.parametrize("form", ["{} %", "${}.5", "<{}", "{}.5 mg/l", "{}.5D+03"])
def test_a_column_of_quantities_is_not_left_out_as_ids(put, form):
    text = "id,x,dose\n" + "".join(f"s{r},{r}.5,{form.format(r + 1)}\n" for r in range(8))
    with pytest.warns(GapviewWarning, match="left out: 'dose'"):
        assert read_view(put("a.csv", text)).frame.columns.tolist() == ["x"]


def test_two_header_lines_of_pandas(put):
    view = read_view(put("a.csv", ",blood,blood,urine\n,iron,zinc,iron\nid,,,\ns1,1,2,3\ns2,4,5,6\n"))
    assert rows(view) == {"s1": [1, 2, 3], "s2": [4, 5, 6]}
    assert view.frame.columns.tolist() == ["blood_iron", "blood_zinc", "urine"]
    assert any("A second header line" in note for note in view.notes)
    assert not any("without any number" in note for note in view.notes)  # the names of the levels are no row


def test_one_column_only(put):
    for text in ("x\n1.5\n2\n", "x\n1,5\n2\n"):
        view = read_view(put("a.csv", text))
        assert (view.keyed, view.frame["x"].tolist()) == (False, [1.5, 2.0])
    with pytest.raises(DataFileError, match="'b.csv' has no column of numbers"):
        read_view(put("b.csv", "name\nanna\nbert\n"))


def test_columns_of_other_kinds(put):
    text = (
        "id,x,sex,smokes,born,seen,note,dose\n"
        "s1,1,f,TRUE,2001-02-03,3.4.2020,aa,1\n"
        "s2,2,m,false,2001-12-31,13/4/20,bb,<1\n"
        "s3,3,m,NA,1999-01-01,1.12.1999,bb,3\n"
    )
    kept, warned = silently(put("a.csv", text))
    np.testing.assert_array_equal(kept.frame[["x", "smokes"]], [[1, 1], [2, 0], [3, np.nan]])
    assert kept.frame.shape == (3, 2)
    assert "2 columns of text of 'a.csv' left out: 'sex', 'note'. Encode them" in warned
    assert "2 columns of dates or times of 'a.csv' left out: 'born', 'seen'." in warned
    assert "Column 'dose' of 'a.csv' left out: 2 of its 3 cells are numbers, but not '<1' (line(s) 3)." in warned
    left_out = ["sex", "note", "born", "seen", "dose"]
    assert read_view(put("a.csv", text), drop=left_out).frame.equals(kept.frame)  # without a warning
    encoded, warned = silently(put("a.csv", text), encode=True)
    assert encoded.frame.columns.tolist() == ["x", "sex=f", "sex=m", "smokes", "note=aa", "note=bb"]
    assert encoded.frame["sex=m"].tolist() == [0, 1, 1]
    assert "of text" not in warned
    many = "id,x,word\n" + "".join(f"s{k},{k},w{k % 21}\n" for k in range(50))
    with pytest.warns(GapviewWarning, match="1 column of text with too many different words .*left out: 'word'"):
        read_view(put("b.csv", many), encode=True)


def test_a_table_of_covariates_keeps_columns_of_text(put):
    path = put("clinic.csv", 'id,age,stage,dose,big\ns1,61,II,1,"1,234"\ns2,48,,<1,"2,345"\ns3,50,II,3,"12,345"\n')
    table = read_table(path)  # without a warning of columns left out
    assert table.columns.tolist() == ["age", "stage", "dose", "big"]
    assert table["stage"].tolist() == ["II", None, "II"]


def silently(path, **settings):
    """Read a view; return it and all warnings."""
    with pytest.warns(GapviewWarning) as caught:
        view = read_view(path, **settings)
    return view, " ".join(str(warning.message) for warning in caught)


def test_marks_of_thousands_are_not_guessed(put):
    path = put("a.csv", "id;x;big;odd\ns1;1,5;1.234;1,5\ns2;2,5;12.345;1.5\ns3;3,5;999;2\n")
    with pytest.raises(DataFileError, match="Column 'big' of 'a.csv' has numbers such as '1.234'.*thousands='.'"):
        read_view(path)
    view, warned = silently(path, drop="big")
    assert view.frame.columns.tolist() == ["x"]
    assert "Column 'odd' of 'a.csv' left out: some of its numbers have a decimal point, some a comma." in warned
    points = read_view(put("b.csv", "id;x;p\ns1;1,5;0.5\ns2;2,5;12.25\n"))
    assert points.frame["p"].tolist() == [0.5, 12.25]


def test_duplicate_ids(put):
    keys = [f"s{k}" for k in range(98)] + ["s3", "s7"]  # 2 % of them
    path = put("a.csv", "id,x,y\n" + "".join(f"{key},{k},1\n" for k, key in enumerate(keys)))
    with pytest.raises(
        DataFileError, match=r"2 sample ids more than once: 's3', 's7', first in line\(s\) 5, 9, 100, 101"
    ):
        read_view(path)
    first, mean = read_view(path, duplicates="first"), read_view(path, duplicates="mean")
    assert len(first.frame) == len(mean.frame) == 98
    assert (first.frame.loc["s3", "x"], mean.frame.loc["s3", "x"]) == (3, (3 + 98) / 2)
    assert "2 sample ids occur more than once, and the mean of their rows is taken: 's3', 's7'." in mean.notes
    unnamed = put("b.csv", "tumour,x\n" + "".join(f"{key},{k}\n" for k, key in enumerate(keys)))
    with pytest.raises(DataFileError, match="name the right one"):  # nearly distinct text in front holds ids
        read_view(unnamed)


def test_rows_without_an_id(put):
    with pytest.raises(DataFileError, match=r"'a.csv' has 2 rows without a sample id, in line\(s\) 4, 7"):
        read_view(put("a.csv", 'id,x\n"s\n1",1\n,2\n\ns3,3\nNA,4\n'))


def test_rows_of_unequal_length(put):
    text = 'id,x,y\n"s\n1",1,2\n\ns2,3\ns3,4,5\ns4,6,7,8\n'
    with pytest.raises(DataFileError, match=r"3 fields \(separated by ','\) were expected, line 5 has 2; 2.* 5, 7"):
        read_view(put("a.csv", text))


def test_empty_views(put):
    for content, words in [
        ("", "is empty: it has 0 bytes"),
        ("\n \n\n", "holds no text but empty lines"),
        ("id,x,y\n", "has no rows below its header"),
        ("id,x\ns1,\ns2,\n", "has no column of numbers"),
    ]:
        with pytest.raises(DataFileError, match=f"'a.csv' {words}|'a.csv' has no column of numbers.*{words}"):
            read_view(put("a.csv", content))
    words = "'a.csv' has no column of numbers"
    with pytest.warns(GapviewWarning, match="left out: 'sex'"), pytest.raises(DataFileError, match=words):
        read_view(put("a.csv", "id,sex\ns1,f\ns2,m\ns3,m\n"))


def test_lines_are_counted_past_empty_rows(put):
    with pytest.raises(DataFileError, match=r"'s3', first in line\(s\) 4, 6"):
        read_view(put("a.csv", "id,x\n,\ns1,1\ns3,2\n,\ns3,4\n"))
    assert rows(read_view(put("b.csv", "id,x\n,\ns1,1\n,\ns3,4\n"))) == {"s1": [1], "s3": [4]}


def test_the_column_of_ids(put):
    path = put("a.csv", "sample,patient,code,x\na,p1,9,1\nb,p1,8,2\nc,p2,7,3\n")
    view = read_view(path, drop="patient")
    assert (view.frame.index.tolist(), view.frame.columns.tolist()) == (["a", "b", "c"], ["code", "x"])
    repeats = put("b.csv", "patient,x,sample\n1,5,a\n1,6,b\n2,7,c\n")
    assert read_view(repeats).frame.index.tolist() == ["a", "b", "c"]
    others = ["sample", "patient"]
    assert read_view(path, id_column="CODE", drop=others).frame.index.tolist() == ["9", "8", "7"]
    assert read_view(path, id_column=["nix", "code"], drop=others).frame.index.tolist() == ["9", "8", "7"]
    with pytest.raises(InputError, match="no column 'nix' in 'a.csv'.*it has 'sample', 'patient', 'code', 'x'"):
        read_view(path, id_column="nix")
    with pytest.raises(DataFileError, match="'p1', first in line"):
        read_view(path, id_column="patient", drop="sample")


def test_repeated_names_of_columns(put):
    view = read_view(put("a.csv", "id,x,x,,x_2\ns1,1,2,3,4\ns2,5,6,7,8\n"))
    assert view.frame.columns.tolist() == ["x", "x_3", "column_4", "x_2"]
    assert "1 column had the name of another and got a number: 'x'." in view.notes


def test_settings_that_are_none(put):
    path = put("a.csv", "id,x\ns1,1\n")
    for wrong, error in [
        ({"duplicates": "last"}, ParameterError),
        ({"encode": "yes"}, ParameterTypeError),
        ({"id_column": 3}, ParameterTypeError),
        ({"id_column": []}, ParameterTypeError),
    ]:
        with pytest.raises(error):
            read_view(path, **wrong)
    for paths in ([], None, [3]):
        with pytest.raises(InputTypeError, match="path"):
            read_views(paths)


@pytest.mark.parametrize(
    ("text", "ids"), [("id,stage,age\np1,Stage 2,30\np2,Stage 3,40\n", ["p1", "p2"]), ("id,age\np1,\np2,5\n", ["p2"])]
)
def test_spaces_inside_fields_do_not_cut_a_table(tmp_path, text, ids):
    path = tmp_path / "clinic.csv"
    path.write_text(text)
    frame = read_view(path, drop="stage" if "stage" in text else None).frame
    assert list(frame.columns) == ["age"]
    assert list(frame.index) == ids


def test_a_first_row_of_numbers_with_thousands_separators_is_no_second_header(put):
    text = "id;x;y\ns0;1,234,567;2,345,678\n" + "".join(f"s{r};{r}00;{r}50\n" for r in range(1, 6))
    assert len(read_view(put("a.csv", text)).frame) == 6


def test_whole_numbers_written_as_floats_are_no_header(put):
    view = read_view(put("a.csv", "s1,700.0,745.0,463.0\ns2,696.0,805.0,323.0\ns3,731.0,744.0,350.0\n"))
    assert view.frame.shape == (3, 3)
    transposed = put("b.csv", "gene,1003.0,1001.0,1007.0\ng1,0.5,0.25,1.5\ng2,2.5,1.25,3.5\n")
    assert read_view(transposed, orient="features").frame.index.tolist() == ["1003", "1001", "1007"]
