"""Living with scikit-learn: its own estimator checks, clone, pipelines, cross-validation, grids, output containers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from gapview import GRMF, BridgedGRMF, Views
from gapview.datasets import make_views, paired_split

pd = pytest.importorskip("pandas")

# What cannot hold for views, and why. Everything else that scikit-learn checks must pass.
NOT_FOR_VIEWS = {
    "check_transformer_general": "fit_transform gives the consensus of all samples; transform places each alone",
    "check_transformer_data_not_an_array": "likewise",
    "check_clustering": "a list is a list of views, not of rows",
    "check_n_features_in_after_fitting": "our message speaks of the features of a view",
    "check_estimators_empty_data_messages": "likewise",
    "check_estimator_sparse_array": "expects the tags of a classifier from all that have predict_proba",
    "check_estimator_sparse_matrix": "likewise",
    "check_dtype_object": "our message speaks of the view that holds text",
    "check_fit2d_1feature": "our message says that one positive feature is constant once rows have unit length",
}


class Doubled:
    """The same matrix as two views, so that scikit-learn's checks, which know one matrix, run on two views."""

    @staticmethod
    def double(X):
        return X if isinstance(X, list | Views) else [X, X]

    def fit(self, X, y=None, *, mask=None):
        return super().fit(self.double(X), y, mask=mask)

    def transform(self, X):
        return super().transform(self.double(X))

    def predict(self, X, **options):
        return super().predict(self.double(X), **options)

    def predict_proba(self, X):
        return super().predict_proba(self.double(X))

    def score(self, X, y=None):
        return super().score(self.double(X), y)


class Twice(Doubled, GRMF):
    pass


class TwiceBridged(Doubled, BridgedGRMF):
    pass


def not_for(estimator):
    reasons = dict(NOT_FOR_VIEWS)
    if isinstance(estimator, BridgedGRMF):
        del reasons["check_fit2d_1feature"]  # it keeps the lengths of rows that all point the same way
    if isinstance(estimator, Doubled):
        reasons["check_n_features_in"] = "counts the features of both views"
    return reasons


CHECKED = [
    *(kind(n_clusters=2, max_iter=1000, init="data") for kind in (GRMF, Twice)),
    BridgedGRMF(n_clusters=2),
    BridgedGRMF(n_clusters=2, selection="fixed"),
    TwiceBridged(n_clusters=2, reach=4),  # one reach, since every further one costs as much again
]


@pytest.mark.filterwarnings("ignore::gapview.errors.GapviewWarning")  # some of the checks' data have no two groups
@parametrize_with_checks(CHECKED, expected_failed_checks=not_for)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_views(160, (10, 8), n_clusters=3, missing_rate=0.3, random_state=0)


def test_clone_and_params():
    model = clone(GRMF(3, consensus_weight=5.0, graph=None))
    assert model.get_params()["consensus_weight"] == 5.0
    assert "GRMF(" in repr(model)
    assert "<div" in model._repr_html_()


def test_cross_validate_slices_views(data):
    found = cross_validate(GRMF(3, init="data", random_state=0), data.views, data.target, cv=KFold(4))
    assert found["test_score"].min() > 0.85


def test_grid_search_chooses_without_labels(data):
    grid = {"n_components": [2, 3], "consensus_weight": [1.0, 100.0]}
    search = GridSearchCV(GRMF(3, init="data", random_state=0), grid, cv=3).fit(data.views)
    assert search.best_params_["n_components"] == 3
    assert search.predict(data.views).shape == (160,)


def test_pipeline_with_a_classifier(data):
    """The paper's classification of new samples: labels of the nearest labelled codes."""
    model = make_pipeline(GRMF(3, init="data", random_state=0), KNeighborsClassifier(5))
    assert model.fit(data.views[:120], data.target[:120]).score(data.views[120:], data.target[120:]) > 0.9


def test_pipeline_with_another_clusterer(data):
    labels = make_pipeline(GRMF(3, n_components=4, init="data"), KMeans(3, n_init=5, random_state=0)).fit_predict(
        data.views
    )
    assert len(set(labels)) == 3


def test_set_output_keeps_the_index():
    matrices = make_views(40, (5, 4), n_clusters=2, random_state=0).views.matrices
    ids = [f"s{i}" for i in range(40)]
    frames = {"a": pd.DataFrame(matrices[0], index=ids), "b": pd.DataFrame(matrices[1], index=ids).iloc[::2]}
    model = GRMF(2, random_state=0).set_output(transform="pandas")
    for table in (model.fit_transform(frames), model.transform(frames)):
        assert list(table.columns) == ["grmf0", "grmf1"] == list(model.get_feature_names_out())
        assert list(table.index) == ids
    pytest.importorskip("polars")
    assert model.set_output(transform="polars").transform(frames).columns == ["grmf0", "grmf1"]


@pytest.mark.data
def test_classification_of_held_out_digits(dataset):
    data = dataset("handwritten_2v")
    views = paired_split(data.views, 0.5, order=data.folds[0])
    rows = np.random.RandomState(0).permutation(2000)
    model = make_pipeline(GRMF(10, n_components=20, random_state=0), KNeighborsClassifier(5))
    score = model.fit(views[rows[400:]], data.target[rows[400:]]).score(views[rows[:400]], data.target[rows[:400]])
    assert score > 0.8
