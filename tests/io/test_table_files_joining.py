"""Files side by side: ids that match, ids that do not, rows matched by position, names of views."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest

from gapview import Views
from gapview.errors import DataFileError, GapviewWarning, InputError
from gapview.io import join_views, read_view, read_views, samples_of, summary_lines

pd = pytest.importorskip("pandas")


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
    with pytest.raises(InputError, match="'001', '010'.*'1', '10'.*match but for leading zeros.*id_pattern='zeros'"):
        join_views(read_views([zeros, plain]))
    assert join_views(read_views([zeros, plain], id_pattern="zeros")).sample_ids.tolist() == ["1", "10"]
    assert read_view(put("c.csv", "label,x\n001,10\n100,20\n")).frame.index.tolist() == ["001", "100"]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("id,x\na1,1\na2,2\n", "id,y\nA1,1\nA2,2\n", "match but for case.*id_pattern='lower'"),
        ("id,x\na-1,1\na-2,2\n", "id,y\na_1,1\na_2,2\n", "'a-1', 'a-2', .*'a_1', 'a_2', .*match but for .*id_pattern="),
        ("id,x\na,1\nb,2\n", "id,y\nc,1\nd,2\n", "'a', 'b', …; 'second' has 'c', 'd', ….*id_column \\(--id\\)"),
    ],
)
def test_files_without_a_common_sample(put, first, second, words):
    views = read_views([put("first.csv", first), put("second.csv", second)])
    with pytest.raises(InputError, match=f"'first' and 'second' have no sample in common: 'first' has .*{words}"):
        join_views(views)


@pytest.mark.parametrize("order", [1, -1])
def test_a_file_with_features_in_rows(put, order):
    paths = [put("a.csv", "id,x\na,1\nb,2\nc,4\n"), put("t.csv", "gene,a,b,c\ng1,1,2,0\ng2,2,3,9\n")][::order]
    with pytest.raises(
        InputError, match="'t' seems to have features in rows.*3 columns of 't' are ids of 'a'"
    ) as error:
        join_views(read_views(paths))
    assert "orient={'t': 'features'} (on the command line: --transpose t) to transpose" in str(error.value)
    joined = join_views(read_views(paths, orient={"t": "features"}))
    assert joined.sample_ids.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(joined.matrices[joined.names.index("t")], [[1, 2], [2, 3], [0, 9]])


def test_hardly_any_common_sample(put):
    first = put("a.csv", "id,x\n" + "".join(f"a{k},{k}\n" for k in range(50)))
    for n_shared in (1, 2, 3):
        shared = "".join(f"a{k},1\n" for k in range(n_shared))
        second = put("b.csv", "id,x\n" + shared + "".join(f"b{7 * k}x,{k}\n" for k in range(50)))
        words = f"only {n_shared} samples? in common"
        if n_shared < 3:
            with pytest.raises(InputError, match=f"{words}; at least 3 are needed to link them"):
                join_views(read_views([first, second]))
        else:
            with pytest.warns(GapviewWarning, match=words):
                assert join_views(read_views([first, second])).n_samples == 100


def test_matching_by_position(put):
    three = put("a.csv", "x\n1\n3\n5\n")
    also_three = put("b.csv", ",z\n0,0.5\n1,1.5\n2,2.5\n")  # pandas' row numbers are no ids
    two, keyed = put("c.csv", "z\n1\n2\n"), put("d.csv", "id,z\ns1,1\ns2,2\n")
    joined = join_views(read_views([three, also_three]))
    assert (joined.n_samples, joined.n_features) == (3, (1, 1))
    assert any("Rows are matched by their position" in note for note in joined.notes)
    with pytest.raises(InputError, match="one row for each sample.*'a' has 3, 'c' has 2 rows"):
        join_views(read_views([three, two]))
    with pytest.raises(InputError, match="'a' have no sample ids, while 'd' has ids such as 's1', 's2'.*id_column"):
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
    with pytest.raises(DataFileError, match="The view name 'x' is given more than once"):
        read_views([("x", paths[0]), ("x", paths[1])])


def test_notes_of_a_transposed_file_and_frame(put):
    paths = [put("a.csv", ",s1,s2,s3\ng1,1,2,0\ng2,2,3,9\n"), put("b.csv", ",s1,s2,s3\nh1,1,2,5\nh2,7,3,9\n")]
    of_files = join_views(read_views(paths, orient="features")).notes
    of_frames = Views({path.stem: pd.read_csv(path) for path in paths}, orient="features").notes
    for notes in (of_files, of_frames):
        own = [note for note in notes if note.startswith("View 'a'") and "Text table" not in note]
        assert own == ["View 'a': Transposed, as requested: the columns are the samples, and their names are the ids."]


def test_an_id_pattern_is_reported(put):
    paths = [put("a.csv", "id,x\ns1,1.5\ns2,2\n"), put("b.csv", "id,x\ns1-01A,1.5\ns2-01A,2\n")]
    frames = {path.stem: pd.read_csv(path) for path in paths}
    note = "View 'b': 2 sample ids rewritten, as requested: 's1-01A' to 's1', for instance."
    assert note in join_views(read_views(paths, id_pattern="-01A$=>")).notes
    assert note in Views(frames, id_pattern="-01A$=>").notes
    with pytest.warns(GapviewWarning, match="changes no sample id of 'a', 'b'"):
        read_views(paths, id_pattern="-02A$=>")
    with pytest.warns(GapviewWarning) as caught:
        Views(frames, id_pattern="-02A$=>")
    assert "changes no sample id of 'a', 'b'" in str(caught[0].message)


def test_without_ids_their_column_is_no_feature(put):
    paths = [put(f"{name}.csv", "id,x\n501,1.5\n700,2.5\n603,4\n") for name in "ab"]
    for views in (
        join_views(read_views(paths, id_column=False)),
        Views({path.stem: pd.read_csv(path) for path in paths}, id_column=False),
    ):
        assert views.n_features == (1, 1)
        assert "View 'a': Left out, since every row has another value: 'id'." in views.notes


def test_a_thousands_separator_is_no_decimal_mark(put):
    view = read_view(put("a.csv", "id;x;y\ns1;1,234;5,100\ns2;3,000;2,500\n"), thousands=",")
    assert view.notes[0] == "Text table with semicolons between fields and a decimal point, in UTF-8."


def test_groups_that_gapview_wrote_are_no_view(put):
    path = put("labels.csv", "id,label,confidence,has_a\ns1,0,0.9,yes\ns2,1,0.8,yes\ns3,1,0.7,no\n")
    with pytest.raises(InputError, match="groups that gapview has written"):
        read_view(path)
    with pytest.raises(InputError, match="groups that gapview has written"):
        Views({"labels": pd.read_csv(path)})


def test_a_transposed_file_of_new_samples(put):
    view = read_view(put("a.csv", "gene,s1,s2\ng1,1,2\ng2,3,5\n"))
    with pytest.raises(DataFileError, match="features of view 'a' in rows .*--transpose a"):
        view.aligned(["g1", "g2"])


def test_ids_of_new_samples_that_nearly_match(put):
    first = put("first.csv", "id,x\n" + "".join(f"s{k},{k / 2}\n" for k in range(6)))
    second = put("second.csv", "id,y\n" + "".join(f"s{k}-01A,{k / 2}\n" for k in range(6)))
    with pytest.warns(GapviewWarning, match="may name the same samples.*'-01A'"):
        samples_of(read_views([first, second]))


def test_views_with_thousands_of_common_features_are_read_fast(put):
    names = [f"GENE{k}" for k in range(3000)]
    values = np.random.RandomState(0).permutation(30000).reshape(10, 3000)
    paths = []
    for name in ("tumour", "normal"):
        lines = [f"s{r}," + ",".join(map(str, row)) for r, row in enumerate(values.tolist())]
        paths.append(put(f"{name}.csv", "\n".join([",".join(["barcode", *names]), *lines]) + "\n"))
        values = values + 1
    start = time.perf_counter()
    views = join_views(read_views(paths))
    assert views.n_features == (3000, 3000)
    assert time.perf_counter() - start < 10  # one second; parsing the file again for each column took a minute
