"""Workbooks, matrices of 10x Genomics, files of R, layers of AnnData, and tables compressed with zstd."""

from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from gapview import Views
from gapview.errors import DataFileError, GapviewError
from gapview.io import read_table, read_view, read_views, write_like

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

IDS = ["P1", "P2", "P3", "P4"]
BLOOD = pd.DataFrame({"iron": [1.5, 2.0, np.nan, 4.5], "zinc": [3.0, 1.0, 2.0, 5.0]}, index=pd.Index(IDS, name="id"))


def write_book(path, sheets, hidden=()):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    book = xlsxwriter.Workbook(str(path))
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name)
        for place, cells in enumerate(rows):
            sheet.write_row(place, 0, [None if cell != cell else cell for cell in cells])
        if name in hidden:
            sheet.hide()
    book.close()
    return path


ROWS = [["id", "iron", "zinc"], *([key, *row] for key, row in zip(IDS, BLOOD.to_numpy().tolist(), strict=True))]


class TestWorkbooks:
    def test_a_view_per_sheet(self, tmp_path):
        scans = [["Scans of the study"], [], ["id", "size"], ["P1", 1], ["P2", 2]]
        readme = [["About", "this file"], ["by", "us"]]
        book = write_book(tmp_path / "b.xlsx", {"read": readme, "blood": ROWS, "scans": scans, "old": ROWS}, {"old"})
        blood, sized = read_views(book)
        assert (blood.name, sized.name) == ("blood", "scans")
        pd.testing.assert_frame_equal(blood.frame, BLOOD, check_names=False)
        assert sized.frame["size"].tolist() == [1, 2]
        assert any("2 sheets" in note and "'old' (is hidden)" in note and "'read'" in note for note in blood.notes)
        assert any("2 lines above the header" in note for note in sized.notes)

    def test_sheets_by_name(self, tmp_path):
        book = write_book(tmp_path / "b.xlsx", {"one": ROWS, "two": ROWS})
        assert read_view(book, sheet="two").name == "b"
        named = read_views({"a": book, "c": book}, sheet={"a": "one", "c": "TWO"})
        assert [view.format.sheet for view in named] == ["one", "two"]
        with pytest.raises(DataFileError, match="has no sheet 'three'; it has 'one', 'two'"):
            read_view(book, sheet="three")
        with pytest.raises(DataFileError, match="holds 2 views.*name one of its sheets"):
            read_views({"a": book})
        with pytest.raises(DataFileError, match=r"holds 2 tables.*--sheet"):
            read_table(book)
        assert read_table(book, sheet="one")["zinc"].tolist() == [3, 1, 2, 5]

    def test_numbers_and_words(self, tmp_path):
        rows = [["id", "x", "y", "n"], [7, 1.234, "NA", 1], [9, 5.678, 2.5, 2], [11, "#DIV/0!", 3.5, 3]]
        view = read_view(write_book(tmp_path / "b.xlsx", {"s": rows}))
        assert view.frame.index.tolist() == ["7", "9", "11"]
        np.testing.assert_array_equal(view.frame["x"], [1.234, 5.678, np.nan])
        np.testing.assert_array_equal(view.frame["y"], [np.nan, 2.5, 3.5])

    def test_written_again(self, tmp_path):
        view = read_view(write_book(tmp_path / "b.xlsx", {"s": ROWS}))
        frame = view.frame.rename(index={"P1": "=1+1"})
        write_like(view, frame, tmp_path / "c.xlsx")
        again = read_view(tmp_path / "c.xlsx")
        pd.testing.assert_frame_equal(again.frame, frame)
        assert again.format.sheet == "s"
        with zipfile.ZipFile(tmp_path / "c.xlsx") as archive:
            assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")

    def test_damaged(self, tmp_path):
        content = write_book(tmp_path / "b.xlsx", {"s": ROWS}).read_bytes()
        for name, damage in {
            "cut.xlsx": content[:-300],
            "zip.xlsx": b"PK\x03\x04" + bytes(40),
            "t.xls": b"a\tb",
        }.items():
            (tmp_path / name).write_bytes(damage)
            with pytest.raises(DataFileError, match=name):
                read_view(tmp_path / name)

    def test_cells_far_from_the_table_take_no_memory(self, tmp_path):
        xlsxwriter = pytest.importorskip("xlsxwriter")
        book = xlsxwriter.Workbook(str(tmp_path / "far.xlsx"))
        sheet = book.add_worksheet()
        sheet.write(0, 0, 1)
        sheet.write(1_048_575, 16_383, 2)
        book.close()
        with pytest.raises(DataFileError, match=r"far.xlsx"):
            read_view(tmp_path / "far.xlsx")


COUNTS = sparse.csc_array(np.array([[1, 0, 3, 0], [0, 2, 0, 0], [4, 0, 0, 5]]))  # features × barcodes
KINDS = ["Gene Expression", "Gene Expression", "Antibody Capture"]


class TestTenX:
    def write(self, path, version=3):
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            group = file.create_group("matrix" if version == 3 else "GRCh38")
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(COUNTS, name)
            group["shape"], group["barcodes"] = COUNTS.shape, np.array(IDS, dtype="S")
            names = np.array(["TBCE", "TBCE", "CD3"], dtype="S")
            ids = np.array(["E1", "E2", "E3"], dtype="S")
            if version == 3:
                features = group.create_group("features")
                features["id"], features["name"], features["feature_type"] = ids, names, np.array(KINDS, dtype="S")
            else:
                group["genes"], group["gene_names"] = ids, names
        return path

    def test_hdf5(self, tmp_path):
        rna, protein = read_views(self.write(tmp_path / "f.h5"))
        assert (rna.name, protein.name) == ("rna", "prot")
        assert rna.is_sparse
        assert rna.frame.index.tolist() == IDS
        assert rna.frame.columns.tolist() == ["TBCE (E1)", "TBCE (E2)"]
        np.testing.assert_array_equal(protein.frame["CD3"].to_numpy(), [4, 0, 0, 5])

    def test_version_2(self, tmp_path):
        view = read_view(self.write(tmp_path / "f.h5", version=2))
        assert view.name == "f"
        np.testing.assert_array_equal(view.frame.to_numpy(), COUNTS.toarray().T)

    def test_folder(self, tmp_path):
        mmwrite(tmp_path / "matrix.mtx", sparse.coo_array(COUNTS))
        (tmp_path / "barcodes.tsv").write_text("\n".join(IDS))
        lines = [f"E{k}\tG{k}\t{kind}\n" for k, kind in enumerate(KINDS)]
        (tmp_path / "features.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
        for path in (tmp_path, tmp_path / "matrix.mtx"):
            rna, protein = read_views(path)
            np.testing.assert_array_equal(rna.frame.to_numpy(), COUNTS.toarray()[:2].T)
            assert protein.frame.columns.tolist() == ["G2"]
        (tmp_path / "barcodes.tsv").write_text("\n".join(IDS[:2]))
        with pytest.raises(DataFileError, match="4 columns, but there are 3 features and 2 barcodes"):
            read_views(tmp_path)
        (tmp_path / "barcodes.tsv").unlink()
        with pytest.raises(DataFileError, match="needs a file of names beside it: one of barcodes.tsv"):
            read_views(tmp_path)

    def test_other_hdf5(self, tmp_path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "f.h5", "w") as file:
            file["x"] = [1]
        with pytest.raises(DataFileError, match="is no count matrix of 10x Genomics"):
            read_view(tmp_path / "f.h5")


class TestR:
    def test_data_frames(self, tmp_path):
        rdata = pytest.importorskip("rdata")
        rdata.write_rds(tmp_path / "a.rds", BLOOD.rename_axis(None))
        view = read_view(tmp_path / "a.rds")
        pd.testing.assert_frame_equal(view.frame, BLOOD, check_names=False)
        written = write_like(view, view.frame.fillna(0), tmp_path / "b.rds").path
        pd.testing.assert_frame_equal(read_view(written).frame, view.frame.fillna(0))

    def test_several_objects(self, tmp_path):
        rdata = pytest.importorskip("rdata")
        objects = {"blood": BLOOD.reset_index(), "m": np.arange(8.0).reshape(4, 2), "v": np.arange(3.0)}
        rdata.write_rda(tmp_path / "a.rda", objects)
        blood, matrix = read_views(tmp_path / "a.rda", id_column=False)
        assert "'v' (vector)" in " ".join(blood.notes)
        np.testing.assert_array_equal(matrix.frame.to_numpy(), objects["m"])

    def test_damaged(self, tmp_path):
        rdata = pytest.importorskip("rdata")
        rdata.write_rds(tmp_path / "a.rds", BLOOD.rename_axis(None))
        content = (tmp_path / "a.rds").read_bytes()
        for name, damage in {"cut.rds": content[:-30], "b.rds": b"X\n\0\0", "c.rda": b"id,x\n"}.items():
            (tmp_path / name).write_bytes(damage)
            with pytest.raises(DataFileError, match=name):
                read_view(tmp_path / name)


def annotated():
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(np.eye(4), obs=pd.DataFrame(index=IDS), var=pd.DataFrame(index=list("abcd")))
    adata.layers["counts"] = sparse.csr_array(2 * np.eye(4))
    adata.obsm["X_pca"] = np.arange(8.0).reshape(4, 2)
    adata.raw = adata.copy()
    return adata


PLACES = [({"layer": "counts"}, 2 * np.eye(4), "a"), ({"obsm": "X_pca"}, np.arange(8.0).reshape(4, 2), "X_pca_1"),
          ({"raw": True}, np.eye(4), "a")]  # fmt: skip


@pytest.mark.parametrize(("given", "values", "first"), PLACES)
def test_matrices_of_anndata(tmp_path, given, values, first):
    adata = annotated()
    views = Views({"rna": adata}, **given)
    matrix = views.matrices[0]
    np.testing.assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, values)
    assert views.feature_names[0][0] == first
    adata.write_h5ad(tmp_path / "a.h5ad")
    view = read_view(tmp_path / "a.h5ad", **given)
    np.testing.assert_array_equal(view.frame.to_numpy(), values)
    assert view.frame.columns[0] == first


def test_matrices_are_not_copied():
    adata = annotated()
    assert np.shares_memory(Views({"rna": adata}, obsm="X_pca").matrices[0], adata.obsm["X_pca"])
    assert np.shares_memory(Views({"rna": adata}, layer="counts").matrices[0].data, adata.layers["counts"].data)


def test_matrices_that_are_not_there(tmp_path):
    adata = annotated()
    with pytest.raises(GapviewError, match="AnnData without layers/none; beside X it has 'layers/counts'"):
        Views({"rna": adata}, layer="none")
    with pytest.raises(GapviewError, match="given as layers/counts and as obsm/X_pca"):
        Views({"rna": adata}, layer="counts", obsm="X_pca")
    with pytest.raises(GapviewError, match="no view is one"):
        Views({"rna": np.eye(3)}, layer="counts")
    adata.write_h5ad(tmp_path / "a.h5ad")
    with pytest.raises(DataFileError, match="has no layers/none; it has X, raw/X, layers/counts"):
        read_view(tmp_path / "a.h5ad", layer="none")


def test_zstd(tmp_path):
    content = pa.Codec("zstd").compress(b"id;iron\ns1;1,5\ns2;2\n", asbytes=True)
    (tmp_path / "a.csv.zst").write_bytes(content)
    view = read_view(tmp_path / "a.csv.zst")
    assert view.name == "a"
    assert view.frame["iron"].tolist() == [1.5, 2]
    assert "packed with zstd" in view.notes[0]
    again = read_view(write_like(view, view.frame, tmp_path / "b.csv.zst").path)
    pd.testing.assert_frame_equal(again.frame, view.frame)
    (tmp_path / "a.csv.zst").write_bytes(content[:-5])
    with pytest.raises(DataFileError, match="cut off or damaged"):
        read_view(tmp_path / "a.csv.zst")
