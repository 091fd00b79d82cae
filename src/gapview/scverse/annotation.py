"""Results written into AnnData and MuData, in the places that the tools of scverse use."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError, InputTypeError, ParameterError, ParameterTypeError, described, some
from ..estimators.base import MultiViewClusterer, demand_fitted
from ..graph.knn import resolve_n_neighbors
from ..persist.model_file import shown_setting
from ..utils.messages import check_flag, shown, warn_user
from ..utils.types import Array, Matrix
from ..views.containers import descends

CONTRIBUTION = "_contribution"
NEIGHBORS = "neighbors"  # the entry of uns that scanpy's tools use by default
GRAPHS = {"connectivities", "distances"}  # and those of obsp
_METHOD = "gapview"


def annotate(model: MultiViewClusterer, data: Any, *, key_added: str = "gapview", recover: bool = False) -> None:
    """Write the results of a model into an AnnData, a MuData or several AnnData, in place.

    Samples are matched by their names, so that the object may hold them in another order, lack some of them, or hold
    others: those get NaN, with a warning. Results of an earlier call with the same key are removed first. Nothing is
    written on an error.

    In a MuData everything is written at the top level, which has all samples, as muon's tools do; its
    ``push_obs([key_added])`` copies the labels to the modalities.

    Parameters
    ----------
    model : fitted clusterer
        Any method of gapview.
    data : AnnData, MuData, or dict or list of AnnData
        The objects to write to: the training data, a part of them, or any object with samples of the same names.
    key_added : str, default="gapview"
        The key, see below.
    recover : bool, default=False
        Also write all views, complete. For ``GRMF`` and ``BridgedGRMF``.

    Notes
    -----
    These are written:

    ``.obs[key_added]``
        Group of every sample, a categorical of the texts ``"0"``, ``"1"``, …
    ``.obs[key_added + "_confidence"]``
        Its confidence, for methods that have one.
    ``.obs[key_added + "_" + view + "_contribution"]``
        Share of each view in the support for the group of the sample, see ``view_contributions`` of the model. For
        models with several views.
    ``.obsm["X_" + key_added]``
        ``embedding_``, so that ``scanpy.pp.neighbors(adata, use_rep="X_gapview")`` and the like can use it.
    ``.obsp["connectivities"]``, ``.obsp["distances"]``, ``.uns["neighbors"]``
        Graph over the samples, see ``sample_graph`` of the model, with weights up to 1, and the distances of linked
        samples in ``embedding_``, so that ``scanpy.tl.umap(adata)`` and ``scanpy.tl.leiden(adata)`` use it. If the
        object has a graph of another tool, that is kept, and the names begin with ``key_added + "_"``: give
        ``neighbors_key="gapview_neighbors"`` to scanpy.
    ``.uns[key_added]``
        Facts about the fit, in types that files can hold: ``"method"``, ``"version"``, ``"params"`` (None is the text
        ``"None"``), ``"view_names"``, ``"n_samples"``; where the method has them ``"objective"`` after every iteration,
        ``"view_weights"``, the ``"setting"`` that was chosen, and the ``"selection"`` with its ``"reason"`` and a
        ``"table"`` of what was tried.
    ``.obsm[key_added + "_" + view]``, ``.obs[key_added + "_" + view + "_recovered"]``
        With ``recover``: for each view a complete matrix over the samples of the object, measured rows as they were,
        and which rows are not measured. They are not written to the modalities of a MuData, which have rows for their
        own samples only. ``.uns[key_added]["features"][view]`` names the columns, where the view came with names.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    InputTypeError
        If the data are no such objects, or the model cannot recover views.
    InputError
        If the model has none of the samples, or names repeat.

    Examples
    --------
    >>> import anndata, pandas
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=60, n_clusters=2, random_state=0).views
    >>> names = pandas.DataFrame(index=[f"cell_{i}" for i in range(60)])
    >>> rna, proteins = (anndata.AnnData(matrix, obs=names) for matrix in views.matrices)
    >>> data = {"rna": rna, "proteins": proteins[:40].copy()}
    >>> model = gapview.BridgedGRMF(n_clusters=2, random_state=0).fit(data)
    >>> gapview.annotate(model, data, recover=True)
    >>> rna.obs["gapview"].cat.categories.tolist(), rna.obsm["X_gapview"].shape
    (['0', '1'], (60, 4))
    >>> rna.obsm["gapview_proteins"].shape, int(rna.obs["gapview_proteins_recovered"].sum())
    ((60, 30), 20)
    >>> rna.uns["neighbors"]["connectivities_key"], rna.obsp["connectivities"].shape
    ('connectivities', (60, 60))
    """
    demand_fitted("annotate", model)
    check_key(key_added)
    check_flag("recover", recover)
    targets = targets_of(data)
    places = _places(model, targets)
    recovered = _recovered(model) if recover else {}
    record, graph = _record(model, recovered), model.sample_graph()
    columns = _sample_columns(model)
    for target, place in zip(targets, places, strict=True):
        _remove_earlier(target, key_added)
        _write(target, place, key_added, model, recovered, columns)
        _write_graph(target, place, key_added, graph, model)
        target.uns[key_added] = deepcopy(record)  # a copy for each object, since users change objects


def targets_of(data: Any) -> list[Any]:
    """Return the objects to write to."""
    if descends(data, "mudata", "MuData") or _is_anndata(data):
        return [data]
    objects = list(data.values()) if isinstance(data, Mapping) else list(data) if isinstance(data, list | tuple) else []
    if not objects or not all(map(_is_anndata, objects)):
        others = [described(one) for one in objects if not _is_anndata(one)]
        got = f"{type(data).__name__} of {others[0]}" if others else described(data)
        raise InputTypeError(f"annotate writes into an AnnData, a MuData, or a dict or list of AnnData; got {got}.")
    return objects


def _places(model: MultiViewClusterer, targets: list[Any]) -> list[Array]:
    """Return for every sample of each object its row in the fit; -1 if it was not in the fit."""
    known = [str(key) for key in model.sample_ids_]
    row_of = {key: row for row, key in enumerate(known)}
    if len(row_of) < len(known):
        raise InputError(
            "Sample ids of the model must differ as text, since names in AnnData are text; some do not. Rename them."
        )
    places = []
    for target in targets:
        if not target.obs_names.is_unique:
            twice = target.obs_names[target.obs_names.duplicated()].unique()
            raise InputError(
                f"Names of samples must not repeat; these do: {some(list(twice))}. Call .obs_names_make_unique() "
                "first, and fit the model on the result."
            )
        places.append(np.array([row_of.get(key, -1) for key in target.obs_names.astype(str)], dtype=np.intp))
    strangers = {name for t, place in zip(targets, places, strict=True) for name in t.obs_names[place < 0]}
    if all((place < 0).all() for place in places):
        raise InputError(
            f"The model has none of the samples: it was fitted on {some(known, 3)}, and the object holds "
            f"{some(sorted(strangers), 3)}. Fit it on the object itself, or on gapview.Views(…, sample_ids=…) with the "
            "names of the samples."
        )
    if strangers:
        warn_user(
            f"{len(strangers)} sample(s) were not in the fit, and have no group: {some(sorted(strangers))}. They get "
            "NaN; predict places new samples."
        )
    return places


def _record(model: Any, recovered: Mapping[str, Matrix]) -> dict[str, Any]:
    """Return facts about the fit, in types that .h5ad and .h5mu files can hold."""
    record: dict[str, Any] = {
        "method": type(model).__name__,
        "version": version("gapview"),
        "params": {name: _plain(shown_setting(value)) for name, value in model.get_params(deep=False).items()},
        "view_names": np.asarray(model.views_.names, dtype=object),
        "n_samples": model.views_.n_samples,
    }
    for name in ("objective", "view_weights"):
        if hasattr(model, f"{name}_"):
            record[name] = np.asarray(getattr(model, f"{name}_"), dtype=np.float64)
    if hasattr(model, "setting_"):
        record["setting"] = {name: _plain(value) for name, value in asdict(model.setting_).items()}
    if hasattr(model, "selection_"):
        import pandas as pd

        table = pd.DataFrame(model.selection_.table)
        table.index = table.index.astype(str)  # AnnData needs an index of text
        record["selection"] = {"reason": model.selection_.reason, "table": table}
    if recovered:
        named = zip(model.views_.names, model.views_.feature_names, strict=True)
        record["features"] = {view: np.asarray(names, dtype=object) for view, names in named if names is not None}
    return record


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return np.asarray(parts, dtype=object if any(isinstance(part, str) for part in parts) else None)
    return "None" if value is None else value


def _recovered(model: Any) -> dict[str, Matrix]:
    """Return all views of the training samples, completed; sparse ones stay sparse."""
    if not hasattr(model, "recover"):
        raise InputTypeError(
            f"recover=True needs a GRMF or a BridgedGRMF, which can recover views; got a {type(model).__name__}."
        )
    slashed = [name for name in model.views_.names if "/" in name]
    if slashed:
        raise InputError(
            f"Views that are to be recovered must have names without '/', as keys have; got {some(slashed)}."
        )
    copied = copy(model)
    copied.views_ = model.views_.in_arrays(keep_sparse=True)
    return dict(zip(model.views_.names, copied.recover(), strict=True))


def _remove_earlier(target: Any, key: str) -> None:
    """Remove the results of an earlier call, which may have written more."""
    before = target.uns.get(key)
    if not isinstance(before, Mapping) or "view_names" not in before:
        return
    views = [f"{key}_{view}" for view in before["view_names"]]
    columns = [f"{key}_confidence", *(f"{view}{ending}" for view in views for ending in ("_recovered", CONTRIBUTION))]
    for entry in (NEIGHBORS, f"{key}_{NEIGHBORS}"):
        if _is_own(target.uns.get(entry), key):
            for name in GRAPHS:
                del target.obsp[target.uns[entry][f"{name}_key"]]
            del target.uns[entry]
    for names, values in ((columns, target.obs), (views, target.obsm)):
        for name in names:
            if name in values:
                del values[name]


def _sample_columns(model: Any) -> dict[str, Array]:
    """Return the columns of numbers of all samples of the fit, by the endings of their names."""
    columns = {"_confidence": model.confidence_} if hasattr(model, "confidence_") else {}
    if model.views_.n_views > 1:
        shares = model.view_contributions().share.T
        columns |= {f"_{view}{CONTRIBUTION}": own for view, own in zip(model.views_.names, shares, strict=True)}
    return columns


def _is_own(neighbors: Any, key: str) -> bool:
    """Return whether an entry of uns describes the graph that is written with a key."""
    params = neighbors.get("params") if isinstance(neighbors, Mapping) else None
    return isinstance(params, Mapping) and params.get("method") == _METHOD and params.get("use_rep") == f"X_{key}"


def _write_graph(target: Any, place: Array, key: str, graph: sparse.csr_array, model: Any) -> None:
    """Write the graph of the samples of an object, and where scanpy finds it."""
    known = np.flatnonzero(place >= 0)
    links = graph[place[known]][:, place[known]].tocoo()
    ends, shape = (known[links.row], known[links.col]), (len(place), len(place))
    points = model.embedding_[place]
    lengths = np.linalg.norm(points[ends[0]] - points[ends[1]], axis=1)
    weights = links.data / (graph.data.max() if graph.nnz else 1.0)
    # scanpy's functions look for these names, unless they are given the name of another entry
    is_free = NEIGHBORS not in target.uns and not GRAPHS & set(target.obsp)
    entry, prefix = (NEIGHBORS, "") if is_free else (f"{key}_{NEIGHBORS}", f"{key}_")
    where: dict[str, Any] = {f"{name}_key": prefix + name for name in sorted(GRAPHS)}
    for name, values in (("connectivities", weights), ("distances", lengths)):
        target.obsp[prefix + name] = sparse.csr_matrix((values, ends), shape)
    count = max(resolve_n_neighbors("auto", model.views_, model.n_groups))
    params = {"method": _METHOD, "metric": "euclidean", "use_rep": f"X_{key}", "n_neighbors": count, "random_state": 0}
    target.uns[entry] = where | {"params": params}


def _write(
    target: Any, place: Array, key: str, model: Any, recovered: Mapping[str, Matrix], columns: Mapping[str, Array]
) -> None:
    """Write the results for the samples of an object; ``place`` holds their rows in the fit, -1 if they have none."""
    import pandas as pd

    known = place >= 0
    labels = model.labels_[place]
    present = np.unique(labels[known])
    codes = np.where(known, np.searchsorted(present, labels), -1)
    target.obs[key] = pd.Categorical.from_codes(codes, [str(label) for label in present])
    for ending, values in columns.items():
        target.obs[key + ending] = np.where(known, values[place], np.nan)
    target.obsm[f"X_{key}"] = _rows(model.embedding_, place)
    for k, (view, matrix) in enumerate(recovered.items()):
        target.obsm[f"{key}_{view}"] = _rows(matrix, place)
        target.obs[f"{key}_{view}_recovered"] = known & ~model.views_.mask[place, k]


def _rows(matrix: Matrix, place: Array) -> Matrix:
    """Return the rows of the samples of an object, NaN for samples that were not in the fit."""
    unknown = np.flatnonzero(place < 0)
    rows = matrix[place]
    if unknown.size:
        rows = sparse.lil_array(rows) if sparse.issparse(rows) else rows
        rows[unknown] = np.nan
    return sparse.csr_matrix(rows) if sparse.issparse(rows) else rows


def check_key(key: Any) -> None:
    """Raise an error unless a key can be part of names in files."""
    if not isinstance(key, str):
        raise ParameterTypeError(f"key_added must be text; got {shown(key)}.")
    if not key or "/" in key:
        raise ParameterError(f"key_added must be a name without '/', which separates keys in files; got {shown(key)}.")


def _is_anndata(data: Any) -> bool:
    return descends(data, "anndata", "AnnData")
