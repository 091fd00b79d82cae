"""Annotated copies of ``.h5ad`` and ``.h5mu`` files: results are added, the matrices are not loaded."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

from ..errors import DataFileError, GapviewError, extra
from ..estimators.base import MultiViewClusterer
from .annotation import GRAPHS, NEIGHBORS, annotate

_PARTS = ("obsm", "obsp", "uns")


def write_annotated(
    model: MultiViewClusterer, source: Path, target: Path, *, key_added: str = "gapview", recover: bool = False
) -> None:
    """Copy a ``.h5ad`` or ``.h5mu`` file, and add the results of a model as :func:`gapview.annotate` does.

    Parameters
    ----------
    model : fitted clusterer
        Any method of gapview, fitted to samples of the file.
    source, target : path
        The file, and the copy to write.
    key_added, recover
        As in :func:`gapview.annotate`.

    Raises
    ------
    DataFileError
        If the file cannot be copied, or has a layout that anndata does not read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import anndata, pandas
    >>> from gapview import BridgedGRMF
    >>> from gapview.datasets import make_views
    >>> from gapview.scverse import write_annotated
    >>> matrix = make_views(n_samples=60, n_clusters=2, random_state=0).views.matrices[0]
    >>> data = anndata.AnnData(matrix, obs=pandas.DataFrame(index=[f"cell_{i}" for i in range(60)]))
    >>> model = BridgedGRMF(n_clusters=2, random_state=0).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, copy = (pathlib.Path(folder) / name for name in ("cells.h5ad", "annotated.h5ad"))
    ...     data.write_h5ad(source)
    ...     write_annotated(model, source, copy)
    ...     anndata.read_h5ad(copy).obs["gapview"].value_counts().to_list()
    [30, 30]
    """
    anndata = extra("anndata", "omics", "Writing .h5ad and .h5mu files")
    h5py = extra("h5py", "omics", "Writing .h5ad and .h5mu files")
    try:
        shutil.copyfile(source, target)  # without the permissions, which may forbid writing
        with h5py.File(target, "r+") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of anndata, on its next versions
            shell = anndata.AnnData(obs=anndata.io.read_elem(file["obs"]))
            known = _load_earlier(shell, file, key_added, anndata.io.read_elem)
            annotate(model, shell, key_added=key_added, recover=recover)
            anndata.io.write_elem(file, "obs", shell.obs)
            for part in _PARTS:
                own = dict(getattr(shell, part))
                for name in known[part] - own.keys():
                    del file[part][name]
                for name, value in own.items():
                    anndata.io.write_elem(file[part], name, value)
    except GapviewError:
        target.unlink(missing_ok=True)
        raise
    except Exception as error:  # libraries raise errors of many kinds for a layout that they do not know
        target.unlink(missing_ok=True)
        raise DataFileError(f"No annotated copy of {source.name!r} can be written: {error}.") from None


def _load_earlier(shell: Any, file: Any, key: str, read: Any) -> dict[str, set[str]]:
    """Load what an earlier call may have written, and the graph of another tool; return the names."""
    known: dict[str, set[str]] = {}
    for part in _PARTS:
        group = file.require_group(part)
        own = {name for name in group if name in (key, NEIGHBORS, *GRAPHS) or name.startswith((f"{key}_", f"X_{key}"))}
        known[part] = own
        for name in own:
            getattr(shell, part)[name] = read(group[name])
    return known
