"""Correction of batch effects: what is removed, what is kept, what is refused, new samples, model files."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import gapview
from data_files import _folder
from gapview import GRMF, BridgedGRMF, Views
from gapview.correction import fit_correction
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, ParameterError
from gapview.metrics import batch_mixing

BATCHES = ("P1", "P2", "P3")


def shifted(n_samples=180, n_clusters=3, strength=3.0, seed=0, missing_rate=0.3):
    """Return views whose batches differ by random shifts of every feature, the true groups and the batches."""
    data = make_views(n_samples=n_samples, n_clusters=n_clusters, missing_rate=missing_rate, random_state=seed)
    rng = np.random.RandomState(seed)
    batch = rng.choice(BATCHES, n_samples)
    matrices = []
    for k, matrix in enumerate(data.views.matrices):
        shifts = {name: strength * matrix.std() * rng.normal(size=matrix.shape[1]) for name in BATCHES}
        matrices.append(matrix + np.stack([shifts[batch[row]] for row in data.views.rows(k)]))
    return data.views.with_matrices(matrices), data.target, batch


@pytest.fixture(scope="module")
def problem():
    return shifted()


@pytest.fixture(scope="module")
def corrected(problem):
    views, _, batch = problem
    model = BridgedGRMF(3, batch_correction="harmony", selection="fixed", random_state=0)
    with pytest.warns(GapviewWarning, match="largely grouped by batch in 'view_0'"):
        return model.fit(views, batch=batch)


def test_correction_finds_the_groups_that_batches_hide(problem, corrected):
    views, target, batch = problem
    with pytest.warns(GapviewWarning, match="largely explained by batch"):
        plain = BridgedGRMF(3, selection="fixed", random_state=0).fit(views, batch=batch)
    assert adjusted_rand_score(target, plain.labels_) < 0.3
    assert adjusted_rand_score(target, corrected.labels_) > 0.9
    assert not hasattr(plain, "batch_mixing_")


def test_mixing_is_measured_before_and_after(corrected):
    found = corrected.batch_mixing_
    for view in found.views:
        assert view.before < 0.1 < 0.4 < view.after
        assert view.kept > 0.5
        assert view.is_grouped_by_batch
    assert found.embedding == batch_mixing(corrected.latent_points(corrected.embedding_), corrected.views_.batches)
    assert "3 batches, mixing 0.0" in found.sentences()[0]


def test_without_batch_effects_little_changes():
    views, target, batch = shifted(strength=0.0)
    model = BridgedGRMF(3, batch_correction="harmony", selection="fixed", random_state=0).fit(views, batch=batch)
    assert adjusted_rand_score(target, model.labels_) > 0.9
    assert all(view.kept > 0.7 and not view.is_grouped_by_batch for view in model.batch_mixing_.views)
    assert model.batch_mixing_.warnings() == []


def test_grmf_corrects_too(problem):
    views, target, batch = problem
    model = GRMF(3, batch_correction="harmony", init="data", scale="center+unit", random_state=0)
    with pytest.warns(GapviewWarning, match="largely grouped by batch"):
        model.fit(views, batch=batch)
    assert adjusted_rand_score(target, model.labels_) > 0.9


def test_new_samples_are_corrected_only_with_their_batch(problem, corrected):
    views, _, batch = problem
    labels = corrected.labels_
    with_batch = corrected.predict(views.with_batch(batch))
    assert adjusted_rand_score(labels, with_batch) > 0.9
    as_they_are = corrected.predict(views)
    assert adjusted_rand_score(labels, as_they_are) < adjusted_rand_score(labels, with_batch)
    unknown = corrected.predict(views.with_batch(["other"] * 90 + ["another"] * 90))
    assert (unknown == as_they_are).all()


def test_model_file_holds_the_correction(problem, corrected, tmp_path):
    views, _, batch = problem
    corrected.save(tmp_path / "model.gapview")
    loaded = gapview.load(tmp_path / "model.gapview")
    assert loaded.views_.batches == corrected.views_.batches
    assert (loaded.predict(views.with_batch(batch)) == corrected.predict(views.with_batch(batch))).all()
    assert loaded.batch_mixing_ == corrected.batch_mixing_


def test_batches_nested_in_missing_views():
    views, target, _ = shifted(strength=0.0, missing_rate=0.0)
    donors = np.arange(180) % 4
    mask = np.column_stack([donors != 1, donors != 0])
    names = np.array(["rna only", "protein only", "both a", "both b"])[donors]
    rng = np.random.RandomState(1)
    moved = [m + 2 * m.std() * rng.normal(size=(4, m.shape[1]))[donors] for m in views.matrices]
    nested = views.with_matrices(moved).hide(mask)
    model = BridgedGRMF(3, batch_correction="harmony", selection="fixed", random_state=0)
    with pytest.warns(GapviewWarning, match="largely grouped by batch"):
        model.fit(nested, batch=names)
    assert adjusted_rand_score(target, model.labels_) > 0.8
    assert [view.n_batches for view in model.batch_mixing_.views] == [3, 3]


def test_view_of_one_batch_and_unknown_batches_are_reported():
    views, _, _ = shifted(strength=0.0, missing_rate=0.0)
    batch = np.array(["a", "b", None] * 60, dtype=object)
    mask = np.column_stack([np.ones(180, bool), batch == "a"])
    model = BridgedGRMF(3, batch_correction="harmony", selection="fixed", random_state=0)
    model.fit(views.hide(mask), batch=batch)
    assert model.corrections_[1] is None
    assert model.batch_mixing_.n_unknown == 60
    text = " ".join(model.batch_mixing_.sentences())
    assert "view 'view_1' has samples of one batch and is not corrected" in text
    assert "The batch of 60 sample(s) is not known" in text


def test_sparse_views_become_dense_and_give_the_same_groups(problem):
    views, _, batch = problem
    dense = views.with_matrices([np.maximum(matrix, 0) for matrix in views.matrices])
    thin = dense.with_matrices([sparse.csr_array(matrix) for matrix in dense.matrices])
    found = []
    for given in (dense, thin):
        model = BridgedGRMF(3, batch_correction="harmony", selection="fixed", refine=False, random_state=0)
        with pytest.warns(GapviewWarning):
            found.append(model.fit(given, batch=batch).labels_)
    assert (found[0] == found[1]).all()


def test_correction_needs_batches_and_refuses_a_budget(problem):
    views, _, batch = problem
    with pytest.raises(ParameterError, match=r"batch_correction='harmony' needs the batch of every sample"):
        GRMF(3, batch_correction="harmony").fit(views)
    with pytest.raises(ParameterError, match="leave memory_budget out"):
        GRMF(3, batch_correction="harmony", memory_budget="1GB").fit(views, batch=batch)
    with pytest.raises(ParameterError, match="batch_correction must be"):
        GRMF(3, batch_correction="combat").fit(views, batch=batch)


def test_dask_collections_are_refused(problem):
    dask = pytest.importorskip("dask.array")
    array = dask.from_array(np.random.RandomState(0).normal(size=(60, 4)))
    with pytest.raises(ParameterError, match=r"batch_correction='harmony' is for fits in this process"):
        GRMF(3, batch_correction="harmony").fit([array])


def test_views_without_correction_ignore_their_batches(problem):
    views, _, batch = problem
    one = GRMF(3, random_state=0).fit(views)
    other = GRMF(3, random_state=0).fit(views.with_batch(batch))
    assert (one.labels_ == other.labels_).all()
    assert other.views_.batches is None


def test_the_correction_of_one_cluster_is_ridge_regression():
    """With fewer than 20 rows there is one cluster: the shift of a batch is that of ridge regression on batches."""
    rng = np.random.RandomState(0)
    rows, names = rng.normal(size=(18, 3)), np.array(["a"] * 11 + ["b"] * 7)
    rows[:11] += 2.0
    found = fit_correction(rows, names.tolist(), unit=False).apply(rows, names.tolist())
    design = np.column_stack([np.ones(18), names == "a", names == "b"]).astype(float)
    penalty = np.diag([0.0, 1.0, 1.0])
    weights = np.linalg.solve(design.T @ design + penalty, design.T @ rows)
    # λ is in units of the divided rows, which has no effect on the shrinkage of means
    np.testing.assert_allclose(found, rows - design[:, 1:] @ weights[1:], atol=1e-8)


def test_types_of_one_batch_stay_apart():
    """A type that only one batch has is not moved onto the types of the other batch."""
    rng = np.random.RandomState(0)
    types = np.repeat([0, 1, 2], 200)
    batch = np.where(types == 2, "b", np.where(np.arange(600) % 2, "a", "b"))
    centers = 6 * rng.normal(size=(3, 10))
    rows = centers[types] + rng.normal(size=(600, 10)) + np.where(batch == "a", 1.0, 0.0)[:, None]
    found = fit_correction(rows, batch.tolist(), unit=False).apply(rows, batch.tolist())
    means = np.stack([found[types == kind].mean(axis=0) for kind in range(3)])
    assert np.linalg.norm(means[2] - means[:2], axis=1).min() > 10
    for kind in (0, 1):
        own = types == kind
        left = np.linalg.norm(found[own & (batch == "a")].mean(axis=0) - found[own & (batch == "b")].mean(axis=0))
        assert left < 0.7  # it was √10


@pytest.mark.data
def test_cells_of_four_donors():
    """Donors with RNA alone, proteins alone and both: types of cells are found, and donors mixed."""
    pytest.importorskip("sknetwork")
    mudata = pytest.importorskip("mudata")
    with mudata.set_options(pull_on_update=False):
        cells = mudata.read_h5mu(_folder("GAPVIEW_DATA", "omics/pbmc_mosaic.h5mu"))
    rna, logs = (cells.mod[name].to_df().astype(float) for name in ("rna", "adt"))
    rna, logs = np.log1p(rna.div(totals := rna.sum(axis=1), axis=0) * totals.median()), np.log1p(logs)
    views = Views({"rna": rna, "adt": logs.sub(logs.mean(axis=1), axis=0)})
    known = cells.obs.loc[views.sample_ids]
    model = BridgedGRMF(8, batch_correction="harmony", assign="leiden", selection="fixed", random_state=0)
    model.fit(views, batch=known["batch"])
    assert adjusted_rand_score(known["celltype"].astype(str), model.labels_) > 0.8
    assert model.batch_mixing_.embedding > 0.45  # Harmony on imputed data has 0.42


def test_views_keep_the_batches_of_their_samples():
    views = Views([np.eye(6)]).with_batch(["a", "b"] * 3)
    assert views[[4, 1]].batches == ("a", "b")
    assert views.with_matrices([np.ones((6, 2))]).batches == views.batches
    assert views.hide(np.ones((6, 1), bool)).batches == views.batches
