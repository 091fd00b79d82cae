"""``gapview-lab omics``: made cells, and the pages of batches and cells."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from data_files import _folder
from gapview_lab.cli import main
from gapview_lab.omics.cells import N_TYPES, make_cells


def test_made_cells_are_sparse_with_whole_donors_missing():
    views, mask, types = make_cells(1000)
    assert mask.mean(axis=0).tolist() == [0.6, 0.6]
    assert mask.any(axis=1).all()
    assert [views[name].shape for name in ("genes", "proteins")] == [(600, 2000), (600, 200)]
    assert views["genes"].nnz < 0.1 * np.prod(views["genes"].shape)
    assert len(np.unique(types)) == N_TYPES


@pytest.mark.slow
def test_cells_from_the_command_to_the_page(tmp_path):
    result = CliRunner().invoke(main, ["omics", "cells", "--cells", "600", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (row,) = csv.DictReader((tmp_path / "cells.csv").read_text().splitlines())
    assert row["held"] == "csr_array csr_array"
    assert "| adjusted Rand index with the types |" in (tmp_path / "cells.md").read_text()


@pytest.mark.slow
@pytest.mark.data
def test_batches_from_the_command_to_the_page(tmp_path):
    for package in ("mudata", "harmonypy", "sknetwork"):
        pytest.importorskip(package)
    folder = _folder("GAPVIEW_DATA", "omics/pbmc_mosaic.h5mu").parent.parent
    result = CliRunner().invoke(
        main, ["omics", "batches", "--data-dir", str(folder), "--seeds", "1", "-o", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    rows = {row["method"]: row for row in csv.DictReader((tmp_path / "batches.csv").read_text().splitlines())}
    ours, rival = rows["gapview, harmony, leiden"], rows["imputed + Harmony + k-means"]
    assert float(ours["ari"]) >= 0.8
    assert float(ours["mixing"]) >= float(rival["mixing"])
