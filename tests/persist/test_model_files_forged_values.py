"""Model files with any stored value replaced, all checksums right: refused, or methods work or raise our error."""

from __future__ import annotations

import os

import numpy as np
import pytest

import gapview
from forged_models import forged_file, forgeries
from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views
from gapview.errors import DataFileError, GapviewError
from gapview.methods import METHODS

DATA = make_views(12, (4, 3), n_clusters=2, missing_rate=0.3, random_state=0)
N_FORGED = int(os.environ.get("GAPVIEW_FORGED", "60"))  # of each model


def trained(name):
    if name == "auto":
        return BridgedGRMF("auto", max_clusters=3, random_state=0).fit(DATA.views)
    if name in ("GRMF", "BridgedGRMF"):
        method = GRMF(2, init="data", random_state=0) if name == "GRMF" else BridgedGRMF(2, selection="fixed")
        return method.fit(DATA.views)
    whole = make_views(12, (4, 3), n_clusters=2, random_state=0).views
    return METHODS[name](2, random_state=0).fit(whole.with_matrices([abs(matrix) for matrix in whole.matrices]))


def uses(model, path):
    """List calls of all public methods that use fitted values."""
    yield lambda: model.save(path)
    yield lambda: str(gapview.describe(path))
    yield lambda: repr(model)
    yield lambda: model.place(DATA.views)
    if not hasattr(model, "recover"):
        return
    for method in ("neighbors", "centers"):
        yield lambda method=method: model.predict(DATA.views, method=method)
    for method in ("auto", *model.recovery_candidates, "basis"):
        yield lambda method=method: model.recover(method=method)
        yield lambda method=method: model.recover(DATA.views, method=method)
    yield lambda: model.transform(DATA.views)
    yield lambda: model.score(DATA.views)
    yield lambda: model.view_agreement()
    yield lambda: model.feature_effects()
    yield lambda: model.get_feature_names_out()
    yield lambda: str(model.selection_) + str(model.selection_.table) if hasattr(model, "selection_") else ""
    yield lambda: model.cluster_count_.reason() if hasattr(model, "cluster_count_") else ""


@pytest.mark.filterwarnings("ignore")  # nonsense may overflow
@pytest.mark.parametrize("name", [*METHODS, "auto"])
def test_any_value_replaced(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    model, path = trained(name), tmp_path / "forged"
    listed = [(place, forged) for place, forged in forgeries(model) if place.partition(" ")[0].split(".")[0][-1] == "_"]
    some = np.random.RandomState(0).permutation(len(listed))[:N_FORGED]
    failures, n_loaded = [], 0
    for place, forged in (listed[number] for number in some):
        content = forged_file(forged, model)
        if content is None:
            continue
        path.write_bytes(content)
        try:
            loaded = gapview.load(path)
        except DataFileError:
            continue
        n_loaded += 1
        for use in uses(loaded, path):
            try:
                use()
            except GapviewError:
                pass
            except Exception as error:
                failures.append(f"{place}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)
    assert n_loaded < len(some) / 2


@pytest.mark.parametrize("name", ["GRMF", "BridgedGRMF"])
@pytest.mark.parametrize(
    ("attribute", "change", "message"),
    [
        ("confidence_", lambda values: values * 5, "confidence_ has values below 0 or above 1"),
        ("confidence_", lambda values: values - 2, "confidence_ has values below 0 or above 1"),
        ("labels_", lambda values: values + 1, "unknown groups"),
        ("labels_", lambda values: values.astype(np.uint8), "labels_ has values of type uint8"),
        ("embedding_", lambda values: values.astype(np.int64), "embedding_ holds NaN, infinity or values of type"),
        ("embedding_", lambda values: values > 0, "embedding_ holds NaN, infinity or values of type"),
        ("embedding_", lambda values: values.astype(">f8"), "embedding_ holds NaN, infinity or values of type"),
        ("embedding_", lambda values: np.full_like(values, 1e308), "embedding_ has values that are too large"),
        ("bases_", lambda values: [values[0] * 1e300, values[1]], "not orthonormal"),
    ],
)
def test_values_out_of_range(name, attribute, change, message, tmp_path):
    model, path = trained(name), tmp_path / "forged"
    forged = METHODS[name]()
    vars(forged).update(vars(model) | {attribute: change(getattr(model, attribute))})
    path.write_bytes(forged_file(forged, model))
    with pytest.raises(DataFileError, match=message):
        gapview.load(path)


@pytest.mark.parametrize(
    ("name", "attribute"), [("GRMF", "graphs_"), ("GRMF", "codes_"), ("BridgedGRMF", "objective_"), ("auto", "graph_")]
)
def test_missing_attributes(name, attribute, tmp_path):
    model, path = trained(name), tmp_path / "forged"
    forged = type(model)()
    vars(forged).update({key: value for key, value in vars(model).items() if key != attribute})
    path.write_bytes(forged_file(forged, model))
    with pytest.raises(DataFileError, match=f"the model has no {attribute}"):
        gapview.load(path)
