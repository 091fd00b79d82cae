"""Real data sets for ``mistakes``, reduced in size, and sample ids of several kinds made for them."""

from __future__ import annotations

import csv
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from gapview.datasets import make_views
from gapview.utils.types import Array

__all__ = ["BASES", "ID_KINDS", "KNOWN_NAMES", "MADE", "UNKNOWN_NAMES", "Base", "load_base", "make_ids"]

_MOST_SAMPLES, _MOST_FEATURES = 150, 60
_FEWEST = 30  # samples left after repeated rows are removed

KNOWN_NAMES = ("id", "sample_id", "patient", "PatientID", "Sample", "barcode", "subject_id", "ID")
UNKNOWN_NAMES = (
    "Patienten-ID",
    "tumour",
    "mouse",
    "RID",
    "USUBJID",
    "Fallnummer",
    "animal",
    "Probe",
    "参加者",
    "Spende",
)


@dataclass(frozen=True)
class Base:
    """Views of a real data set; within a view no two samples have the same values.

    Examples
    --------
    >>> from gapview_lab.reliability.mistakes_bases import load_base
    >>> sorted(load_base("made", None).views)
    ['view_0', 'view_1']
    """

    name: str
    views: dict[str, Array]  # samples × features; a row of NaN where the sample lacks the view
    features: dict[str, list[str]]
    ids: list[str]  # the ids of the data set, or ones made in the same style
    features_in_rows: bool = False  # as published


def _read_csv(path: Path) -> tuple[list[str], list[str], Array]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header[1:], [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


def _kirc(folder: Path) -> Base:
    read = {name: _read_csv(folder / "omics" / "kirc" / f"{name}.csv") for name in ("GE", "ME", "MI")}
    ids = read["GE"][1]
    views = {name: values[[own.index(key) for key in ids]] for name, (_, own, values) in read.items()}
    return Base("kirc", views, {name: features for name, (features, _, _) in read.items()}, ids)


def _coread(folder: Path) -> Base:
    read = {name: _read_csv(folder / "omics" / "coread" / f"{name}.csv") for name in ("gex", "muts", "cnv")}
    ids = read["gex"][0]
    views = {name: values.T[[own.index(key) for key in ids]] for name, (own, _, values) in read.items()}
    return Base("coread", views, {name: features for name, (_, features, _) in read.items()}, ids, True)


def _arrays(name: str) -> Callable[[Path], Base]:
    """Return a reader of an ``.npz`` file of views."""

    def read(folder: Path) -> Base:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            keys = sorted(key for key in file.files if key.startswith("view_") and key != "view_names")
            names = [str(own) for own in file["view_names"]] if "view_names" in file.files else keys
            views = {own: file[key].astype(float) for own, key in zip(names, keys, strict=True)}
            if "mask" in file.files:
                for own, there in zip(names, file["mask"].T.astype(bool), strict=True):
                    views[own][~there] = np.nan
            known = "sample_ids" in file.files
            ids = [str(key) for key in file["sample_ids"]] if known else _barcodes(len(views[names[0]]))
        return Base(name, views, _numbered(views), ids)

    return read


def _pbmc(folder: Path) -> Base:
    import h5py
    from anndata.io import read_elem

    with h5py.File(folder / "omics" / "pbmc_mosaic.h5mu") as file:
        parts = {str(name): read_elem(group) for name, group in file["mod"].items()}
    ids = sorted({str(key) for part in parts.values() for key in part.obs_names})
    views = {}
    for name, part in parts.items():
        values = np.full((len(ids), part.n_vars), np.nan)
        place = {key: row for row, key in enumerate(ids)}
        values[[place[key] for key in part.obs_names]] = part.X.toarray() if sparse.issparse(part.X) else part.X
        views[name] = values
    return Base("pbmc_mosaic", views, {name: [str(f) for f in part.var_names] for name, part in parts.items()}, ids)


def _made(folder: Path) -> Base:
    """Return made data, for tests without real data."""
    data = make_views(n_samples=120, n_clusters=3, n_features=(20, 30), random_state=0).views
    views = {name: np.round(matrix + 20, 4) for name, matrix in zip(data.names, data.matrices, strict=True)}
    return Base(MADE, views, _numbered(views), _barcodes(120))


def _numbered(views: dict[str, Array]) -> dict[str, list[str]]:
    return {name: [f"{name}_f{j}" for j in range(values.shape[1])] for name, values in views.items()}


def _barcodes(n_samples: int) -> list[str]:
    return [f"TCGA-{'ABCDEFGH'[row % 8]}{row % 7}-{1000 + 37 * row}" for row in range(n_samples)]


MADE = "made"
_READERS: dict[str, Callable[[Path], Base]] = {
    "kirc": _kirc,
    "coread": _coread,
    "pbmc_mosaic": _pbmc,
    MADE: _made,
    **{
        name: _arrays(name)
        for name in ("tcga_brca_mixomics", "tcga_gbm_nolabel", "3sources_incomplete", "handwritten_2v", "msrcv1")
    },
}
BASES = tuple(name for name in _READERS if name != MADE)


@cache
def load_base(name: str, folder: Path | None) -> Base:
    """Return a data set with at most 150 samples and, per view, the 60 features of largest variance.

    Parameters
    ----------
    name : str
        One of ``BASES``, or ``MADE`` for made data.
    folder : Path or None
        The folder with the data sets; not used for made data.
    """
    base = _READERS[name](folder or Path())
    views, features = {}, {}
    for view, values in base.views.items():
        order = np.sort(np.argsort(-np.nanvar(values, axis=0), kind="stable")[:_MOST_FEATURES])
        views[view] = _rounded(values[:, order])
        features[view] = [base.features[view][j] for j in order]
    whole = np.all([_distinct_rows(values) for values in views.values()], axis=0)
    # Samples with many views first, so that views share samples
    n_views = np.sum([~np.isnan(values[:, 0]) for values in views.values()], axis=0)
    rows = np.flatnonzero(whole)
    rows = np.sort(rows[np.argsort(-n_views[rows], kind="stable")][: _MOST_SAMPLES * 4 // 3])
    rows = np.sort(np.random.RandomState(0).permutation(rows)[:_MOST_SAMPLES])
    if len(rows) < _FEWEST:
        raise ValueError(f"{name} has only {len(rows)} samples with values of their own")
    ids = [base.ids[row] for row in rows]
    return Base(name, {view: values[rows] for view, values in views.items()}, features, ids, base.features_in_rows)


def _rounded(values: Array) -> Array:
    """Return values with six significant digits, which text files hold exactly."""
    flat = [float(f"{value:.6g}") for value in values.ravel().tolist()]
    return np.array(flat).reshape(values.shape)


def _distinct_rows(values: Array) -> Array:
    """Mark the rows that differ from all others, or are missing."""
    _, place, count = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    distinct: Array = np.isnan(values[:, 0]) | (count[place.ravel()] == 1)
    return distinct


# -- ids -------------------------------------------------------------------------------------------------------------

_SURNAMES = ("Müller", "Jäger", "Schröder", "Núñez", "Lefèvre", "Ångström", "Schmidt", "Meyer", "Weiß", "Martin")


def _uuids(n: int, rng: np.random.Generator) -> list[Any]:
    return [str(uuid.UUID(bytes=rng.bytes(16), version=4)) for _ in range(n)]


def _draw(n: int, rng: np.random.Generator, low: int, high: int) -> list[int]:
    return (low + rng.choice(high - low, n, replace=False)).tolist()  # type: ignore[no-any-return]


ID_KINDS: dict[str, Callable[[int, np.random.Generator], list[Any]]] = {
    "person": lambda n, rng: [f"P{number:03d}" for number in _draw(n, rng, 1, 700)],
    "integer": lambda n, rng: _draw(n, rng, 1001, 9000),
    "zeros": lambda n, rng: [f"{number:04d}" for number in _draw(n, rng, 2, 1800)],
    "uuid": _uuids,
    "float": lambda n, rng: [float(number) for number in _draw(n, rng, 1001, 9000)],
    "date": lambda n, rng: [str(date(2019, 1, 1) + timedelta(days=number)) for number in _draw(n, rng, 0, 1500)],
    "name": lambda n, rng: [
        f"{_SURNAMES[row % len(_SURNAMES)]}-{number:03d}" for row, number in enumerate(_draw(n, rng, 1, 900))
    ],
    # Only for some mutations
    "round": lambda n, rng: [100_000 * number for number in _draw(n, rng, 1, 400)],
    "huge": lambda n, rng: [2**53 + number for number in _draw(n, rng, 1, 3 * n)],
}


def make_ids(kind: str, own: Sequence[str], rng: np.random.Generator) -> list[Any]:
    """Return one id per sample: those of the data set ("barcode"), or new ones of another kind.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview_lab.reliability.mistakes_bases import make_ids
    >>> make_ids("barcode", ["TCGA-A6-2672"], np.random.default_rng(0))
    ['TCGA-A6-2672']
    """
    return list(own) if kind == "barcode" else ID_KINDS[kind](len(own), rng)
