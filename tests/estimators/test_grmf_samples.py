"""GRMF and samples after the fit: new ones, recovered views, rows with gaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF
from gapview.datasets import hide_views, load_digits_views, make_views, paired_split
from gapview.estimators.predict import majority
from gapview.metrics import clustering_scores

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def made():
    return make_views(150, (12, 9, 7), n_clusters=3, missing_rate=0.3, random_state=1)


@pytest.fixture(scope="module")
def fitted(made):
    return GRMF(3, init="data", random_state=0).fit(made.views)


class TestNewSamples:
    def test_transform_is_the_projection(self, made, fitted):
        part = made.views[:5]
        embedded = fitted.transform(part)
        for i in range(5):
            codes = []
            for k in range(3):
                if part.mask[i, k]:
                    row = part.matrices[k][np.searchsorted(part.rows(k), i)]
                    codes.append(row / np.linalg.norm(row) @ fitted.bases_[k].T)
            np.testing.assert_allclose(embedded[i], np.mean(codes, axis=0), atol=1e-12)

    def test_any_subset_of_the_views(self, made, fitted):
        new = make_views(150, (12, 9, 7), n_clusters=3, random_state=1)
        truth = new.target
        for chosen in (
            {"view_1": new.views.matrices[1]},
            [None, None, new.views.matrices[2]],
            list(new.views.matrices),
        ):
            for method in ("neighbors", "centers"):
                labels = fitted.predict(chosen, method=method)
                assert clustering_scores(truth, labels)["accuracy"] > 0.9

    def test_one_sample(self, made, fitted):
        assert fitted.predict(made.views[3]).shape == (1,)

    def test_no_sample(self, made, fitted):
        for method in ("neighbors", "centers"):
            labels = fitted.predict(made.views[:0], method=method)
            assert labels.shape == (0,)
            assert labels.dtype == fitted.labels_.dtype
        nobody = fitted.place(made.views[:0])
        assert nobody.proba.shape == nobody.p_values.shape == (0, 3)
        assert [view.shape for view in fitted.recover(made.views[:0])] == [(0, 12), (0, 9), (0, 7)]

    def test_many_groups_vote_without_a_warning(self):
        data = make_views(20, (6, 5), n_clusters=2, random_state=0)
        model = GRMF(15, random_state=0).fit(data.views)
        for method in ("neighbors", "centers"):
            assert model.predict(data.views, method=method).dtype == model.labels_.dtype

    def test_votes(self):
        votes = np.array([[2, 0, 0, 1], [2, 0, 1, 1], [1, 0, 2, 3], [0, 2, 2, 0]], dtype=np.int32)
        np.testing.assert_array_equal(majority(votes), [0, 1, 1, 0])
        assert majority(votes).dtype == np.int32

    def test_scores(self, made, fitted):
        good, bad = (
            fitted.score(made.views),
            GRMF(3, random_state=0, max_iter=1, tol=0).fit(made.views).score(made.views),
        )
        assert -0.5 <= bad < good <= 1
        assert fitted.score(made.views, made.target) > 0.95


class TestRecover:
    def test_present_values_are_untouched_and_the_rest_is_there(self, made, fitted):
        for method in ("neighbors", "basis"):
            for k, view in enumerate(fitted.recover(made.views, method=method)):
                np.testing.assert_array_equal(view[made.views.mask[:, k]], made.views.matrices[k])
                assert np.isfinite(view).all()

    def test_basis_is_remark_5(self, made, fitted):
        lost = ~made.views.mask[:, 1]
        expected = fitted.embedding_[lost] @ fitted.bases_[1] * np.linalg.norm(made.views.matrices[1], axis=1).mean()
        np.testing.assert_allclose(fitted.recover(method="basis")[1][lost], expected, rtol=1e-9)

    def test_neighbors_are_a_mean_of_training_rows(self, made, fitted):
        lost = np.flatnonzero(~made.views.mask[:, 1])[:1]
        unit = fitted.embedding_ / np.linalg.norm(fitted.embedding_, axis=1, keepdims=True)
        rows = made.views.rows(1)
        order = np.argsort(np.linalg.norm(unit[rows] - unit[lost], axis=1))[:4]
        expected = made.views.matrices[1][order].mean(axis=0)
        np.testing.assert_allclose(fitted.recover(method="neighbors", n_neighbors=4)[1][lost[0]], expected, rtol=1e-9)

    def test_frames_come_back_as_frames(self):
        data = make_views(60, (5, 4), n_clusters=2, random_state=0)
        ids = [f"p{i}" for i in range(60)]
        blood = pd.DataFrame(data.views.matrices[0], index=ids, columns=list("abcde")).iloc[:40]
        scans = pd.DataFrame(data.views.matrices[1], index=ids).iloc[10:]
        model = GRMF(2, random_state=0).fit({"blood": blood, "scans": scans})
        whole = model.recover()
        assert list(whole["blood"].columns) == list("abcde")
        assert list(whole["blood"].index) == ids
        pd.testing.assert_frame_equal(whole["blood"].loc[blood.index], blood)
        new = model.recover({"scans": scans.iloc[:3]})
        assert list(new) == ["blood", "scans"]
        assert new["blood"].shape == (3, 5)

    def test_sparse_views_stay_sparse(self, made):
        dense = [np.where(np.abs(m) > 1.5, m, 0) for m in make_views(80, (9, 8), random_state=0).views.matrices]
        mask = hide_views(dense, 0.3, random_state=0).mask
        whole = GRMF(3, random_state=0, max_iter=1000).fit([sparse.csr_array(m) for m in dense], mask=mask).recover()
        assert all(sparse.issparse(view) and view.shape[0] == 80 for view in whole)


def test_partial_rows_from_fit_to_predict():
    data = make_views(80, (6, 5), n_clusters=2, random_state=0)
    gappy = [matrix.copy() for matrix in data.views.matrices]
    gappy[0][::7, 2] = np.nan
    model = GRMF(2, partial_rows="fill", random_state=0).fit(gappy)
    assert model.views_.mask.all()
    assert model.predict([gappy[0][:1], None]).shape == (1,)
    assert GRMF(2, partial_rows="drop", random_state=0).fit(gappy).views_.mask[:, 0].sum() == 80 - len(range(0, 80, 7))


def test_recovered_digits_beat_the_mean():
    data = load_digits_views()
    for rate in (0.1, 0.5, 0.9):
        views = paired_split(data.views, rate, random_state=0)
        recovered = GRMF(10, random_state=0).fit(views).recover()
        for k, name in enumerate(views.names):
            lost = ~views.mask[:, k]
            truth, mean = data.views.matrices[k][lost], views.matrices[k].mean(axis=0)
            assert np.linalg.norm(recovered[name][lost] - truth) < 0.95 * np.linalg.norm(mean - truth)


@pytest.mark.data
class TestHandwritten:
    @pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.7, 0.9])
    def test_recovered_views_beat_the_mean(self, dataset, rate):
        data = dataset("handwritten_2v")
        views = paired_split(data.views, rate, order=data.folds[0])
        recovered = GRMF(10, random_state=0).fit(views).recover()
        for k, name in enumerate(views.names):
            lost = ~views.mask[:, k]
            truth, mean = data.views.matrices[k][lost], views.matrices[k].mean(axis=0)
            assert np.linalg.norm(recovered[name][lost] - truth) < 0.97 * np.linalg.norm(mean - truth)

    def test_predict_agrees_with_clustering_along(self, dataset):
        """A fifth of the samples held out, with one view at random or both."""
        data = dataset("handwritten_2v")
        agreement = []
        for fold in range(5):
            rng = np.random.RandomState(fold)
            mask = paired_split(data.views, 0.5, order=data.folds[fold]).mask.copy()
            held_out, train = np.split(rng.permutation(2000), [400])
            mask[held_out] = np.array([[True, False], [False, True], [True, True]])[rng.randint(3, size=400)]
            views = data.views.hide(mask)
            along = GRMF(10, random_state=0).fit(views).labels_[held_out]
            alone = GRMF(10, random_state=0).fit(views[train]).predict(views[held_out])
            agreement.append(adjusted_rand_score(along, alone))
        assert np.mean(agreement) >= 0.75
