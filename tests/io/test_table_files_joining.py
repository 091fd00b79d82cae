"""Files side by side: ids that match, ids that do not, rows matched by position, names of views."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from gapview.errors import DataFileError, GapviewWarning
from gapview.io import join_views, read_view, read_views, summary_lines

pytest.importorskip("pandas")


@pytest.fixture
def put(tmp_path):
    """Write a file into the folder; text in UTF-8 unless it comes as bytes."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_ids_as_numbers_and_as_text_join(put):
    views = read_views(
        [
            put("a.csv", "id,x\n1,10\n2,20\n3,30\n"),
            put("b.csv", 'id,y\n"3",0.3\n"1",0.1\n'),
            put("c.csv", "id,z\n1.0,5\n2.0,6\n4.0,7\n"),
        ]
    )
    joined = join_views(views)
    assert joined.sample_ids.tolist() == ["1", "2", "3", "4"]
    assert joined.mask.tolist() == [[1, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 1]]
    np.testing.assert_array_equal(joined.matrices[1].ravel(), [0.1, 0.3])
    assert summary_lines(views)[1] == (
        "'b': 2 samples, 1 feature, 0 % of the cells empty; 50.0 % of the 4 samples lack it"
    )


def test_samples_without_ids_lack_a_view_where_their_row_is_empty(put, tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, np.nan], [4.0, 5.0]]))
    np.save(tmp_path / "b.npy", np.arange(8.0).reshape(4, 2))
    views = read_views([tmp_path / "a.npy", tmp_path / "b.npy"])
    shares = [line.split("; ")[1] for line in summary_lines(views)]
    assert shares == ["25.0 % of the 4 samples lack it", "0 % of the 4 samples lack it"]
    assert (1 - join_views(views, partial_rows="fill").mask.mean(axis=0)).tolist() == [0.25, 0]
    mixed = [*views, read_view(put("c.csv", "id,x\np,1\nq,2\n"))]
    assert summary_lines(mixed) == [view.summary for view in mixed]  # rows that cannot be matched are not counted


def test_zeros_in_front_are_part_of_an_id(put):
    zeros, plain = put("a.csv", "id,x\n001,10\n010,20\n"), put("b.csv", "id,y\n1,10\n10,20\n")
    assert read_view(zeros).frame.index.tolist() == ["001", "010"]
    with pytest.raises(DataFileError, match="'001', '010'.*such as '1', '10'.*match if zeros in front are ignored"):
        join_views(read_views([zeros, plain]))
    assert read_view(put("c.csv", "label,x\n001,10\n100,20\n")).frame.index.tolist() == ["001", "100"]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("id,x\na1,1\na2,2\n", "id,y\nA1,1\nA2,2\n", "match if capital letters are ignored"),
        ("id,x\na-1,1\na-2,2\n", "id,y\nA_1,1\nA_2,2\n", "match if spaces, dashes, dots and underscores"),
        ("id,x\na,1\nb,2\n", "gene,a,b\ng1,1,2\ng2,2,3\n", "transpose their tables"),
        ("gene,a,b\ng1,1,2\ng2,2,3\n", "id,x\na,1\nb,2\n", "columns have the names of samples of the others"),
        ("id,x\na,1\nb,2\n", "id,y\nc,1\nd,2\n", "'a', 'b', 'second.csv' such as 'c', 'd'. Name the column of ids"),
    ],
)
def test_files_without_a_common_sample(put, first, second, words):
    views = read_views([put("first.csv", first), put("second.csv", second)])
    with pytest.raises(DataFileError, match=f"'first' has no sample in common.*{words}"):
        join_views(views)


def test_hardly_any_common_sample(put):
    first = put("a.csv", "id,x\n" + "".join(f"a{k},{k}\n" for k in range(50)))
    second = put("b.csv", "id,x\na0,1\n" + "".join(f"b{k},{k}\n" for k in range(50)))
    with pytest.warns(GapviewWarning, match="only 1 sample in common"):
        join_views(read_views([first, second]))


def test_matching_by_position(put):
    three = put("a.csv", "x,y\n1,2\n3,4\n5,6\n")
    also_three = put("b.csv", ",z\n0,0.5\n1,1.5\n2,2.5\n")  # pandas' row numbers are no ids
    two, keyed = put("c.csv", "z\n1\n2\n"), put("d.csv", "id,z\ns1,1\ns2,2\n")
    joined = join_views(read_views([three, also_three]))
    assert (joined.n_samples, joined.n_features) == (3, (2, 1))
    with pytest.raises(DataFileError, match="numbers of rows differ: 'a' has 3, 'c' has 2. Add a column of ids"):
        join_views(read_views([three, two]))
    with pytest.raises(DataFileError, match="no column of 'a.csv' was detected.*'d.csv' has the ids 's1', 's2'"):
        join_views(read_views([three, keyed]))


def test_names_of_views(put, tmp_path):
    text = "id,x\ns1,1\ns2,2\n"
    (tmp_path / "more").mkdir()
    paths = [
        put("a.csv", text),
        put("a.tsv", text),
        put("b.csv.gz", gzip.compress(text.encode())),
        put("more/a.csv", text),
    ]
    folder = tmp_path.name
    assert [view.name for view in read_views(paths)] == [f"{folder}/a.csv", "a.tsv", "b", "more/a.csv"]
    assert [view.name for view in read_views({"left": paths[0], "right": paths[1]})] == ["left", "right"]
    with pytest.raises(DataFileError, match="given more than once"):
        read_views([paths[0], paths[0]])
