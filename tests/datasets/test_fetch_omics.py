"""The omics data sets: files of a folder, downloads from a stand-in server on this machine, checksums."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from gapview import datasets
from gapview.datasets import fetch_breast_cancer, fetch_coread, fetch_kirc, fetch_pbmc_mosaic
from gapview.datasets._sources import SOURCES
from gapview.errors import DataFileError, DownloadError, MissingExtraError, ParameterTypeError

pytest.importorskip("pandas")

TABLE = "id,TCGA-A6-2672,TCGA-A6-3809,TCGA-A6-5661,TCGA-A6-5665\n{0}1,0.5,1.5,0.25,2\n{0}2,1.5,0.5,2.25,1\n"
CLINIC = "id,cms_label,osMo,osStat\nTCGA-A6-5665,CMS3,4,1\n" + "".join(
    f"TCGA-A6-{i},CMS1,3.5,0\n" for i in (2672, 3809, 5661)
)


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def served(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Write small tables in place of those of the colorectal tumours, and expect their checksums."""
    monkeypatch.delenv("GAPVIEW_DATA", raising=False)
    folder = tmp_path / "published"
    source, files = SOURCES["coread"], {}
    for name, file in source.files.items():
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CLINIC if name == "covariates" else TABLE.format(name))
        files[name] = replace(file, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setitem(SOURCES, "coread", replace(source, files=files))
    return folder


@pytest.fixture
def at(monkeypatch):
    def use(base):
        source = SOURCES["coread"]
        files = {name: replace(file, url=f"{base}/{file.path}") for name, file in source.files.items()}
        monkeypatch.setitem(SOURCES, "coread", replace(source, files=files))

    return use


def demand_tumours(data):
    assert data.views.names == ("gex", "muts", "cnv")
    assert data.views.n_samples == 4
    assert data.views.n_features == (2, 2, 2)
    assert data.covariates.index.tolist() == data.views.sample_ids.tolist()
    assert data.target_names[data.target].tolist() == data.covariates["cms_label"].tolist() == ["CMS1"] * 3 + ["CMS3"]
    assert "GPL-3" in data.licence
    assert "compGenomRData" in data.description
    assert all(path.is_file() for path in data.files.values())


def test_files_are_downloaded_once_and_read(published, at, tmp_path):
    pytest.importorskip("pooch")
    with served(published) as base:
        at(base)
        demand_tumours(fetch_coread(data_home=tmp_path / "cache"))
    demand_tumours(fetch_coread(data_home=tmp_path / "cache"))  # the server is gone


def test_wrong_bytes_of_a_server_are_refused_and_not_kept(published, at, tmp_path):
    pytest.importorskip("pooch")
    place = published / SOURCES["coread"].files["muts"].path
    right = place.read_text()
    place.write_text(right + "\n")
    with served(published) as base:
        at(base)
        with pytest.raises(DownloadError, match=r"muts\.csv' could not be downloaded.*hash.*GAPVIEW_DATA.*sha256"):
            fetch_coread(data_home=tmp_path / "cache")
        place.write_text(right)
        demand_tumours(fetch_coread(data_home=tmp_path / "cache"))


def test_without_a_network_the_error_names_the_file_its_checksum_and_its_licence(published, at, tmp_path):
    pytest.importorskip("pooch")
    with served(published) as base:
        pass
    at(base)
    with pytest.raises(DownloadError, match=r"(?s)gex\.csv' could not be downloaded.*sha256.*Licence: GPL-3"):
        fetch_coread(data_home=tmp_path / "cache")


def test_the_folder_of_the_environment_is_used_without_pooch(published, monkeypatch):
    monkeypatch.setenv("GAPVIEW_DATA", str(published))
    monkeypatch.setitem(sys.modules, "pooch", None)
    data = fetch_coread()
    demand_tumours(data)
    assert data.files["gex"] == published / "omics" / "coread" / "gex.csv"


def test_without_pooch_the_extra_is_named(published, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"gapview\[fetch\]"):
        fetch_coread()


def test_a_changed_file_in_the_folder_is_refused(published, monkeypatch):
    monkeypatch.setenv("GAPVIEW_DATA", str(published))
    (published / "omics" / "coread" / "cnv.csv").write_text("id,a\n1,2\n")
    with pytest.raises(DataFileError, match=r"cnv\.csv' does not hold the published bytes: expected sha256 .* got"):
        fetch_coread()


@pytest.mark.parametrize(
    ("fetch", "file", "licence"),
    [
        (fetch_kirc, "omics/kirc/GE.csv", "LGPL"),
        (fetch_pbmc_mosaic, "omics/pbmc_mosaic.h5mu", "not stated"),
        (fetch_breast_cancer, "tcga_brca_mixomics.npz", "GPL-2"),
    ],
)
def test_files_without_an_address_must_be_placed(fetch, file, licence, tmp_path, monkeypatch):
    monkeypatch.setenv("GAPVIEW_DATA", str(tmp_path))
    wanted = rf"'{file}' has no public address.*expected path {tmp_path}/{file}, sha256 [0-9a-f]{{64}}.*{licence}"
    with pytest.raises(DownloadError, match=wanted):
        fetch()
    with pytest.raises(DownloadError, match="has no public address"):
        fetch(data_home=tmp_path)


def test_the_home_of_data_must_be_a_path():
    with pytest.raises(ParameterTypeError, match="data_home must be None or the path of a folder; got 3"):
        fetch_coread(data_home=3)


def test_addresses_name_a_commit():
    for source in SOURCES.values():
        for file in source.files.values():
            assert file.url is None or any(len(part) == 40 for part in file.url.split("/")), file.url


def real(name):
    folder = os.environ.get("GAPVIEW_DATA")
    files = [file.path for file in SOURCES[name].files.values()]
    if not folder or not all((Path(folder) / file).is_file() for file in files):
        pytest.skip(f"GAPVIEW_DATA has no {files[0]}")
    return getattr(datasets, f"fetch_{name}")()


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_samples", "n_complete", "n_features", "groups"),
    [
        ("coread", 121, 121, (500, 200, 100), ["CMS1", "CMS3"]),
        ("kirc", 124, 124, (123, 123, 123), None),
        ("pbmc_mosaic", 1600, 800, (500, 224), 8),
        ("breast_cancer", 220, 150, (200, 184, 142), ["Basal", "Her2", "LumA"]),
    ],
)
def test_the_real_data(name, n_samples, n_complete, n_features, groups):
    if name == "pbmc_mosaic":
        pytest.importorskip("mudata")
    data = real(name)
    assert data.views.n_samples == n_samples
    assert data.views.n_features == n_features
    assert int(data.views.mask.all(axis=1).sum()) == n_complete
    if groups is None:
        assert data.target is None
    else:
        assert len(data.target_names) == groups if isinstance(groups, int) else data.target_names.tolist() == groups
        assert np.bincount(data.target).min() > 10
    if data.covariates is not None:
        assert data.covariates.index.tolist() == data.views.sample_ids.tolist()
