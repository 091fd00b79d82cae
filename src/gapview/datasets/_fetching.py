"""Real omics data sets: files of a folder of yours, or downloads, both with their checksums verified."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, DownloadError, ParameterTypeError, extra
from ..io import join_views, read_table, read_views
from ..utils.messages import shown
from ..views import Views
from ._loading import Dataset, load_views
from ._sources import SOURCES, File, Origin

VARIABLE = "GAPVIEW_DATA"


def fetch_coread(*, data_home: Any = None) -> Dataset:
    """Fetch 121 colorectal tumours: expression of 500 genes, mutations of 200 genes, 100 copy-number bands.

    The files have features in rows and patients in columns, as published. A mutation is 0 or, if present, a constant of
    the gene. ``covariates`` has the consensus molecular subtype (CMS1 or CMS3, also in ``target``), stage,
    microsatellite status and survival in months (``osMo``, ``osStat``).

    Files in the folder ``GAPVIEW_DATA`` are used if it is set and has them, at ``omics/coread``. Otherwise they are
    downloaded and cached by pooch. Checksums are verified in both cases.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the cache; by default that of the operating system, see :func:`pooch.os_cache`.

    Returns
    -------
    Dataset
        With ``views`` (``gex``, ``muts``, ``cnv``), ``target``, ``target_names``, ``covariates``, ``files`` and
        ``licence``.

    Raises
    ------
    DownloadError
        If there is no network, or the bytes are not those that were published.
    MissingExtraError
        Without ``gapview[fetch]``, which downloads, or ``gapview[tables]``, which reads the tables.

    Examples
    --------
    >>> from gapview.datasets import fetch_coread
    >>> fetch_coread().views  # doctest: +SKIP
    Views of 121 samples, 121 of them complete: 'gex' 121 × 500, 'muts' 121 × 200, 'cnv' 121 × 100
    """
    files = _fetch_all("coread", data_home)
    return _of_tables("coread", files, orient="features", target="cms_label")


def fetch_kirc(*, data_home: Any = None) -> Dataset:
    """Fetch 124 clear cell carcinomas of the kidney: 123 principal components of mRNA, methylation and miRNA each.

    ``covariates`` has the survival in days (``Survival``, ``Death``). There are no known groups. No public address has
    these files as they are: put them into ``omics/kirc`` of the folder ``GAPVIEW_DATA``. The error names each file, its
    checksum and its origin.

    Parameters
    ----------
    data_home : str or path, optional
        Another folder that holds the files, in the same places.

    Returns
    -------
    Dataset
        With ``views`` (``mrna``, ``methylation``, ``mirna``), ``covariates``, ``files`` and ``licence``.

    Raises
    ------
    DownloadError
        If a file is neither in ``GAPVIEW_DATA`` nor in ``data_home``.

    Examples
    --------
    >>> from gapview.datasets import fetch_kirc
    >>> fetch_kirc().views  # doctest: +SKIP
    Views of 124 samples, 124 of them complete: 'mrna' 124 × 123, 'methylation' 124 × 123, 'mirna' 124 × 123
    """
    return _of_tables("kirc", _fetch_all("kirc", data_home))


def fetch_pbmc_mosaic(*, data_home: Any = None) -> Dataset:
    """Fetch 1600 blood cells of four donors: one with RNA only, one with proteins only, two with both.

    The views are raw counts of 500 genes and 224 proteins, sparse. ``covariates`` has ``batch`` (the donor) and
    ``celltype``, also in ``target``; ``files["cells"]`` is the path of the ``.h5mu`` file. No public address has this
    selection of cells: put the file into ``omics`` of the folder ``GAPVIEW_DATA``.

    Parameters
    ----------
    data_home : str or path, optional
        Another folder that holds the file, in the same place.

    Returns
    -------
    Dataset
        With ``views`` (``rna``, ``adt``), ``target``, ``target_names``, ``covariates``, ``files`` and ``licence``.

    Raises
    ------
    DownloadError
        If the file is neither in ``GAPVIEW_DATA`` nor in ``data_home``.

    Examples
    --------
    >>> from gapview.datasets import fetch_pbmc_mosaic
    >>> fetch_pbmc_mosaic().views  # doctest: +SKIP
    Views of 1600 samples, 800 of them complete: 'rna' 1200 × 500, 'adt' 1200 × 224
    """
    files = _fetch_all("pbmc_mosaic", data_home)
    anndata, h5py = (extra(name, "omics", "Reading .h5mu files") for name in ("anndata", "h5py"))
    views = join_views(read_views(files["cells"]))
    with h5py.File(files["cells"], "r") as file:
        cells = anndata.io.read_elem(file["obs"])
    return _described("pbmc_mosaic", files, views, cells.loc[views.sample_ids, ["batch", "celltype"]], "celltype")


def fetch_breast_cancer(*, data_home: Any = None) -> Dataset:
    """Fetch 220 breast tumours: 200 mRNA, 184 miRNA and 142 protein features; 70 tumours have no proteins.

    ``target`` has the subtype: Basal, Her2 or LumA. No public address has this file: put it into the folder
    ``GAPVIEW_DATA``.

    Parameters
    ----------
    data_home : str or path, optional
        Another folder that holds the file, in the same place.

    Returns
    -------
    Dataset
        With ``views`` (``mrna``, ``mirna``, ``protein``), ``target``, ``target_names``, ``files`` and ``licence``.

    Raises
    ------
    DownloadError
        If the file is neither in ``GAPVIEW_DATA`` nor in ``data_home``.

    Examples
    --------
    >>> from gapview.datasets import fetch_breast_cancer
    >>> fetch_breast_cancer().views  # doctest: +SKIP
    Views of 220 samples, 150 of them complete: 'mrna' 220 × 200, 'mirna' 220 × 184, 'protein' 150 × 142
    """
    files = _fetch_all("breast_cancer", data_home)
    held = load_views(files["views"])
    rows = [np.full((held.views.n_samples, width), np.nan) for width in held.views.n_features]
    for k, (row, matrix) in enumerate(zip(rows, held.views.matrices, strict=True)):
        row[held.views.rows(k)] = matrix
    views = Views(dict(zip(("mrna", "mirna", "protein"), rows, strict=True)))
    dataset = _described("breast_cancer", files, views)
    return replace(dataset, target=held.target, target_names=np.array(["Basal", "Her2", "LumA"]))


def _of_tables(name: str, files: Mapping[str, Path], orient: str | None = None, target: str | None = None) -> Dataset:
    """Return a data set of one table for each view and one of covariates."""
    tables = {view: path for view, path in files.items() if view != "covariates"}
    views = join_views(read_views(tables, orient=orient))
    return _described(name, files, views, read_table(files["covariates"]).loc[views.sample_ids], target)


def _described(
    name: str, files: Mapping[str, Path], views: Views, covariates: Any = None, target: str | None = None
) -> Dataset:
    source = SOURCES[name]
    dataset = Dataset(name, views, None, f"{source.title}. Source: {source.origin}.")
    dataset = replace(dataset, covariates=covariates, files=dict(files), licence=source.licence)
    if target is None:
        return dataset
    names, codes = np.unique(covariates[target].astype(str), return_inverse=True)
    return replace(dataset, target=codes, target_names=names)


def _fetch_all(name: str, data_home: Any) -> dict[str, Path]:
    if data_home is not None and not isinstance(data_home, str | os.PathLike):
        raise ParameterTypeError(f"data_home must be None or the path of a folder; got {shown(data_home)}.")
    source = SOURCES[name]
    return {key: _placed(file, source) or _cached(file, source, data_home) for key, file in source.files.items()}


def _placed(file: File, source: Origin) -> Path | None:
    """Return the path of a file in the folder of the environment variable, None if it is not there."""
    folder = os.environ.get(VARIABLE)
    return _verified(Path(folder) / file.path, file, source) if folder else None


def _verified(path: Path, file: File, source: Origin) -> Path | None:
    if not path.is_file():
        return None
    with path.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != file.sha256:
        raise DataFileError(
            f"{str(path)!r} does not hold the published bytes: expected sha256 {file.sha256}, got {found}. Replace the "
            f"file. Source: {source.origin}."
        )
    return path


def _cached(file: File, source: Origin, data_home: Any) -> Path:
    """Return the path of a file in the cache; download it if it has an address."""
    if file.url is None:
        path = None if data_home is None else _verified(Path(data_home) / file.path, file, source)
        if path is None:
            raise DownloadError(
                f"{file.path!r} has no public address and is not in the folder {VARIABLE}. Put it there and set "
                f"{VARIABLE} to the folder: expected path {os.environ.get(VARIABLE, VARIABLE)}/{file.path}, sha256 "
                f"{file.sha256}. Source: {source.origin}. Licence: {source.licence}."
            )
        return path
    pooch = extra("pooch", "fetch", "Downloading data sets")
    cache = pooch.create(
        path=pooch.os_cache("gapview") if data_home is None else Path(data_home),
        base_url="",
        registry={file.path: f"sha256:{file.sha256}"},
        urls={file.path: file.url},
        retry_if_failed=2,
    )
    try:
        return Path(cache.fetch(file.path))
    except Exception as error:  # of the network, of the server, or a wrong checksum
        raise DownloadError(
            f"{file.path!r} could not be downloaded from {file.url}: {type(error).__name__}: {error}. Check the "
            f"network and try again, or put the file into the folder {VARIABLE}: sha256 {file.sha256}. Source: "
            f"{source.origin}. Licence: {source.licence}."
        ) from error
