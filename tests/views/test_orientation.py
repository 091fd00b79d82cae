"""Samples in rows or in columns: the parameter orient, and tables that are refused as transposed."""

from __future__ import annotations

import csv
import os
import random
import string
from pathlib import Path

import pytest

from gapview.errors import InputError, ParameterError, ParameterTypeError
from gapview.views.orientation import check_orientation, read_orientation, read_transpose, stated_orientation

OMICS = Path(os.environ.get("GAPVIEW_DATA", "missing")) / "omics"
GENES = [
    "TP53",
    "KRAS",
    "EGFR",
    "GAPDH",
    "ACTB",
    "MYC",
    "S100A13",
    "RNF113A",
    "TTN",
    "APC",
    "PIK3CA",
    "FAT4",
    "RYR2",
    "MUC16",
    "CD8A",
    "BRCA1",
    "BRCA2",
    "IL6",
    "TNF",
    "STAT3",
]
MIRNAS = [f"hsa-mir-{k}" for k in range(20, 40)]
PATIENTS = [f"TCGA-A6-{k}" for k in range(2600, 2640)]


def checked(stated=(), **tables):
    """Check tables that are given as (ids, columns)."""
    check_orientation(
        {name: ids for name, (ids, _) in tables.items()},
        {name: columns for name, (_, columns) in tables.items()},
        stated,
    )


def transposed(table):
    return table[::-1]


class TestParameter:
    def test_for_all_views(self):
        assert read_orientation(None, ["a", "b"]) == [False, False]
        assert read_orientation("samples", ["a", "b"]) == [False, False]
        assert read_orientation("features", ["a", "b"]) == [True, True]

    def test_per_view(self):
        assert read_orientation({"b": "features"}, ["a", "b"]) == [False, True]
        assert read_orientation({"b": "features", "a": None}, ["a", "b"]) == [False, True]

    def test_stated(self):
        assert stated_orientation(None, ["a", "b"]) == set()
        assert stated_orientation("samples", ["a", "b"]) == {"a", "b"}
        assert stated_orientation({"b": "samples", "a": None}, ["a", "b"]) == {"b"}

    def test_wrong_values(self):
        with pytest.raises(ParameterError, match="orient must be one of 'samples', 'features'; got 'rows'"):
            read_orientation("rows", ["a"])
        with pytest.raises(ParameterError, match=r"orient\['a'\] must be one of"):
            read_orientation({"a": 1}, ["a"])
        with pytest.raises(ParameterError, match="views that do not exist: 'c'. The views are 'a', 'b'"):
            read_orientation({"c": "features"}, ["a", "b"])
        with pytest.raises(ParameterTypeError, match="got a bool"):
            read_orientation(True, ["a"])

    def test_options_of_the_command_line(self):
        assert read_transpose([], ["a", "b"]) is None
        assert read_transpose(["all"], ["a", "b"]) == "features"
        assert read_transpose(["all"], ["all", "b"]) == {"all": "features"}
        assert read_transpose(["a", "b"], ["a", "b"]) == {"a": "features", "b": "features"}


@pytest.mark.skipif(not OMICS.is_dir(), reason="needs the omics files")
class TestRealTables:
    @staticmethod
    def table(path):
        with path.open(encoding="utf-8") as file:
            rows = list(csv.reader(file))
        return [row[0] for row in rows[1:]], rows[0][1:]

    @pytest.mark.parametrize("name", ["cnv", "gex", "muts"])
    def test_features_in_rows_of_one_file(self, name):
        table = self.table(OMICS / "coread" / f"{name}.csv")
        with pytest.raises(InputError, match=f"TCGA-A6-2672.*orient='features'.*--transpose {name}.*orient='samples'"):
            checked(**{name: table})
        checked(**{name: transposed(table)})
        checked(stated=[name], **{name: table})

    def test_features_in_rows_of_all_files(self):
        tables = {name: self.table(OMICS / "coread" / f"{name}.csv") for name in ("cnv", "gex", "muts")}
        with pytest.raises(InputError, match="'cnv', 'gex' and 'muts' seem.*orient='features'.*--transpose all"):
            checked(**tables)
        tables["subtypes"] = self.table(OMICS / "coread" / "subtypes.csv")
        with pytest.raises(InputError, match="orient={'cnv': 'features', 'gex': 'features', 'muts': 'features'}"):
            checked(**tables)
        for name in ("cnv", "gex", "muts"):
            tables[name] = transposed(tables[name])
        checked(**tables)

    @pytest.mark.parametrize("name", ["GE", "ME", "MI", "survival"])
    def test_samples_in_rows(self, name):
        table = self.table(OMICS / "kirc" / f"{name}.csv")
        checked(**{name: table})
        with pytest.raises(InputError, match=f"--transpose {name}"):
            checked(**{name: transposed(table)})

    def test_samples_in_rows_of_all_files(self):
        tables = {path.stem: self.table(path) for path in sorted((OMICS / "kirc").glob("*.csv"))}
        checked(**tables)
        tables["ME"] = transposed(tables["ME"])
        with pytest.raises(InputError, match="but 'ME' seems"):
            checked(**tables)

    @pytest.mark.filterwarnings("ignore::FutureWarning")
    def test_cells(self):
        mudata = pytest.importorskip("mudata")
        cells = mudata.read_h5mu(OMICS / "pbmc_mosaic.h5mu")
        tables = {name: (list(a.obs_names), list(a.var_names)) for name, a in cells.mod.items()}
        checked(**tables)
        tables["rna"] = transposed(tables["rna"])
        with pytest.raises(InputError, match="but 'rna' seems"):
            checked(**tables)


class TestColumnsThatAreIdsOfAnotherView:
    """Without names that look like samples or features: the overlap decides."""

    ids = tuple(f"{a}{b}" for a in "qwertz" for b in "yxcvb")
    words = ("apple", "pear", "plum", "fig", "lime")
    tools = ("hammer", "saw", "file", "drill")

    def test_one_view_is_transposed(self):
        with pytest.raises(InputError, match=r"30 columns of 'b' are ids of 'a' \('qy', 'qx', 'qc', …\)"):
            checked(a=(self.ids, self.words), b=(self.tools, self.ids))
        with pytest.raises(InputError, match=r"orient=\{'b': 'features'\}.*--transpose b\).*orient=\{'b': 'samples'\}"):
            checked(a=(self.ids, self.words), b=(self.tools, self.ids), c=(self.ids, ["x", "y"]))

    def test_part_of_the_columns(self):
        with pytest.raises(InputError, match="8 columns of 'b'"):
            checked(a=(self.ids, self.words), b=(self.tools, self.ids[:8] + tuple(string.ascii_lowercase[:20])))
        checked(a=(self.ids, self.words), b=(self.tools, self.ids[:2] + tuple(string.ascii_lowercase[:20])))

    def test_given_orientation_is_kept(self):
        checked(stated=["b"], a=(self.ids, self.words), b=(self.tools, self.ids))

    def test_links_between_samples(self):
        checked(a=(self.ids, self.words), links=(self.ids, self.ids))
        checked(a=(self.ids, self.words), links=(self.ids, self.ids[:10] + self.tools))

    def test_the_same_features_with_one_view_transposed(self):
        samples = [f"S{k}" for k in range(30)]
        with pytest.raises(InputError, match="but 'b' seems"):
            checked(a=(samples, GENES), b=(GENES, samples))
        with pytest.raises(InputError, match="but 'a' seems"):
            checked(a=(GENES, samples), b=(samples, GENES))

    def test_numbers_of_columns_are_not_ids(self):
        numbers = [str(k) for k in range(100)]
        checked(a=(numbers, self.words), b=(numbers, numbers[:64]))
        checked(a=(numbers, self.words), b=([f"{k}x" for k in range(50)], numbers))
        checked(a=(numbers[1:], self.words), b=(numbers[1:], numbers[1:65]))

    def test_numbers_of_patients(self):
        patients = [str(k) for k in random.Random(0).sample(range(1000, 9999), 60)]
        with pytest.raises(InputError, match="but 'rna' seems"):
            checked(clinical=(patients, ["age", "sex"]), rna=(GENES, patients))
        numbered = [str(k) for k in range(1, 61)]
        with pytest.raises(InputError, match="but 'rna' seems"):
            checked(clinical=(numbered, ["age", "sex"]), rna=(GENES, numbered))


class TestTheSameColumnsAndOtherIds:
    columns = tuple(f"kx{k}" for k in range(50))

    def test_all_are_transposed(self):
        with pytest.raises(InputError, match="'rna' and 'mirna' have 50 columns in common.*--transpose all"):
            checked(rna=(GENES, self.columns), mirna=(MIRNAS, self.columns))

    def test_tumour_and_normal(self):
        tumour, normal = ([f"{patient}-{kind}" for patient in PATIENTS] for kind in ("01A", "11A"))
        checked(tumour=(tumour, GENES), normal=(normal, GENES))
        checked(a=([f"q{k}a" for k in range(30)], self.columns), b=([f"q{k}b" for k in range(30)], self.columns))

    def test_parts_of_one_view(self):
        checked(a=([f"S{k}" for k in range(30)], GENES), b=([f"T{k}" for k in range(30)], GENES))
        numbers = [f"PC{k}" for k in range(30)]
        checked(a=(list(string.ascii_lowercase), numbers), b=(list(string.ascii_uppercase), numbers))


SAMPLES = {
    "barcodes": PATIENTS,
    "aliquots": [f"TCGA.A6.{k}.01A.11R" for k in range(2600, 2640)],
    "geo": [f"GSM{k}" for k in range(100200, 100230)],
    "runs": [f"SRR{k}" for k in range(1002000, 1002030)],
    "patients": [f"patient_{k}" for k in range(30)],
    "numbered": [f"P{k:03d}" for k in range(30)],
    "letters": [f"S{k}" for k in range(30)],
    "words": [f"sample {k}" for k in range(30)],
    "cells": ["".join(random.Random(k).choices("ACGT", k=16)) + "-1" for k in range(30)],
    "uuids": [f"0a1b2c3d-00{k}-4a5b-8c7d-0123456789ab" for k in range(10, 40)],
}
FEATURES = {
    "symbols": GENES,
    "ensembl": [f"ENSG{k:011d}.4" for k in range(30)],
    "methylation": [f"cg{k:08d}" for k in range(30)],
    "mirnas": MIRNAS,
    "snps": [f"rs{k}" for k in range(1000, 1030)],
    "bands": [f"8p{k}.{j}" for k in range(11, 15) for j in range(1, 5)],
    "numbered": [f"feature_{k}" for k in range(30)],
    "components": [f"PC{k}" for k in range(1, 30)],
    "r": [f"V{k}" for k in range(1, 30)],
    "proteins": ["cd39", "cd107a", "cd62p", "tcrab", "cd30", "cd31"],
    "mouse": [
        "Actb",
        "Gapdh",
        "Trp53",
        "Kras",
        "Egfr",
        "Myc",
        "S100a13",
        "Rnf113a",
        "Ttn",
        "Cd8a",
        "Il6",
        "Tnf",
        "Stat3",
        "Brca1",
    ],
}


class TestLooks:
    @pytest.mark.parametrize("samples", SAMPLES)
    @pytest.mark.parametrize("features", FEATURES)
    def test_one_table(self, samples, features):
        checked(x=(SAMPLES[samples], FEATURES[features]))
        with pytest.raises(InputError, match=r"'x' seems.*orient='features'.*--transpose x\)"):
            checked(x=(FEATURES[features], SAMPLES[samples]))

    def test_barcodes_beside_rows_without_ids(self):
        with pytest.raises(InputError, match="the rows have no ids"):
            checked(x=(None, PATIENTS))

    @pytest.mark.parametrize("samples", SAMPLES)
    def test_similarities(self, samples):
        checked(x=(SAMPLES[samples], SAMPLES[samples]))

    @pytest.mark.parametrize(
        "columns",
        [
            [str(k) for k in range(100)],
            ["".join(letters) for letters in zip("ACGT" * 4, "AACC" * 4, "GTGT" * 4, "TTAA" * 4, strict=True)],
            ["the", "case", "cell", "patient", "sample", "of", "and", "normal"],
            ["age", "sex", "stage", "os_months", "os_status", "pt", "pn", "pm"],
            [f"Q{k}" for k in range(20)],
            [f"S{k}" for k in range(20)],  # questions of a survey
            [f"sample_{k}" for k in range(100)],  # a signal over time
            ["sepal length (cm)", "sepal width (cm)", "petal length (cm)"],
            ["".join(random.Random(k).choices("ACGT", k=250)) for k in range(20)],  # sequence variants
            [f"{k:032x}" for k in range(20)],
            GENES,
        ],
        ids=[
            "numbers",
            "kmers",
            "words",
            "clinical",
            "questions",
            "survey",
            "signal",
            "iris",
            "sequences",
            "hashes",
            "genes",
        ],
    )
    @pytest.mark.parametrize(
        "ids",
        [
            None,
            [str(k) for k in range(50)],
            PATIENTS,
            ["Berlin", "London", "Paris", "Rome", "Madrid", "Wien", "Oslo"],
            ["DEU", "FRA", "GBR", "ITA", "ESP", "AUT", "NOR"],
            [f"document_{k}.txt" for k in range(20)],
            [f"{a}{k}" for a in "ABCDEFGH" for k in range(1, 13)],  # wells of a plate
            ["XK7Q2", "AB3D9", "PQ1R7", "ZZ9A1", "M4N5B", "L2K8J"],
        ],
        ids=["none", "numbers", "barcodes", "cities", "countries", "documents", "wells", "codes"],
    )
    def test_other_tables_are_not_refused(self, ids, columns):
        checked(x=(ids, columns))
        checked(x=(ids, columns), y=(ids, [f"y{k}" for k in range(9)]))

    def test_cell_lines(self):
        lines = ["MCF7", "HeLa", "A549", "HCT116", "K562", "U2OS", "SKBR3"]  # look like genes
        for columns in (GENES, MIRNAS, ["age", "sex", "tissue"], [str(k) for k in range(20)]):
            checked(x=(lines, columns))

    def test_nothing_to_check(self):
        check_orientation({}, {})
        checked(x=(None, None), y=([], []))
        checked(x=(["a"], ["TCGA-A6-2672"]))

    def test_large_tables(self):
        many = [f"S{k:07d}" for k in range(200_000)]
        checked(a=(many, GENES), b=(many[::-1], MIRNAS))


def test_rows_with_names_that_only_features_have():
    people = [f"Müller-{k}" for k in (313, 27, 480, 5, 91)]
    components = [f"PC{k}" for k in range(1, 8)]
    for ids, columns in (
        ({"a": components}, {"a": people}),
        ({"a": components, "b": components}, {"a": people, "b": people}),
    ):
        with pytest.raises(InputError, match="the rows look like features \\('PC1', 'PC2', 'PC3', …\\)"):
            check_orientation(ids, columns)
    for samples in (
        people,
        [f"CD{k}" for k in range(10, 17)],
        [f"F{k}" for k in range(7)],
        [f"V{k}" for k in range(7)],
    ):
        check_orientation({"a": samples}, {"a": ["weight", "height", "age"]})
