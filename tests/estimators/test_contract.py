"""One contract for every clusterer: GRMF and all rivals, each test run over all of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from gapview import GRMF, BridgedGRMF, Views
from gapview.baselines import (
    DCNMF,
    GPMVC,
    IMG,
    MIC,
    PVC,
    BestSingleView,
    BipartiteSpectral,
    Concat,
    CoRegularizedSpectral,
    ImputedKMeans,
    ImputedSpectral,
    KernelCompletion,
    MeanFilledSpectral,
    RobustMultiViewKMeans,
)
from gapview.errors import GapviewError, GapviewWarning, NotFittedError
from gapview.metrics import clustering_accuracy
from problems import by_size_and_id, random_mask

pd = pytest.importorskip("pandas")

# Groups far apart have no link between them, which ImputedSpectral says
pytestmark = pytest.mark.filterwarnings("ignore:The neighbour graph of the filled:gapview.errors.GapviewWarning")

SIZE, FEATURES, CLUSTERS = 60, (9, 7), 3


def factors(rng, shared):
    """A start for methods that factorise: codes for all samples, or for all samples in every view, and bases."""
    codes = rng.uniform(size=(SIZE, CLUSTERS)) if shared else [rng.uniform(size=(SIZE, CLUSTERS)) for _ in FEATURES]
    return codes, [rng.uniform(size=(CLUSTERS, m)) for m in FEATURES]


def shuffled_factors(start, samples, views):
    codes, bases = start
    moved = codes[samples] if isinstance(codes, np.ndarray) else [codes[k][samples] for k in views]
    return moved, [bases[k] for k in views]


# Each method with settings that keep it short, and how its start is drawn and permuted; None: it takes no start.
CODES = (lambda rng: factors(rng, shared=False)[0], lambda start, samples, views: [start[k][samples] for k in views])
SHARED = (lambda rng: factors(rng, shared=True), shuffled_factors)
OWN = (lambda rng: factors(rng, shared=False), shuffled_factors)
GRAPH = (
    lambda rng: (rng.uniform(size=(SIZE, CLUSTERS)), rng.uniform(size=(SIZE, SIZE))),
    lambda start, samples, views: (start[0][samples], start[1][np.ix_(samples, samples)]),
)
METHODS = {
    "GRMF": (GRMF(CLUSTERS, max_iter=50, tol=0), CODES),
    "BridgedGRMF": (BridgedGRMF(CLUSTERS), None),
    "BridgedGRMF-fixed": (BridgedGRMF(CLUSTERS, selection="fixed"), None),
    "BestSingleView": (BestSingleView(CLUSTERS), None),
    "Concat": (Concat(CLUSTERS), None),
    "PVC": (PVC(CLUSTERS, sparsity_weight=1e-3), SHARED),
    "IMG": (IMG(CLUSTERS, output="codes", tol=1e-6), GRAPH),
    "DCNMF-hard": (DCNMF(CLUSTERS, max_iter=100), SHARED),
    "DCNMF-soft": (DCNMF(CLUSTERS, consensus="soft", max_iter=100), OWN),
    "GPMVC": (GPMVC(CLUSTERS, max_iter=5, n_steps=20), OWN),
    "MIC": (MIC(CLUSTERS, max_iter=5, n_steps=20), OWN),
    "ImputedSpectral": (ImputedSpectral(CLUSTERS), None),
    "ImputedKMeans": (ImputedKMeans(CLUSTERS), None),
    "CoRegularizedSpectral": (CoRegularizedSpectral(CLUSTERS), None),
    "CoRegularizedSpectral-rbf": (
        CoRegularizedSpectral(CLUSTERS, form="centroid", affinity="rbf", consensus_weight=0.01),
        None,
    ),
    "RobustMultiViewKMeans": (RobustMultiViewKMeans(CLUSTERS), None),
    "BipartiteSpectral": (BipartiteSpectral(CLUSTERS), None),
    "KernelCompletion": (KernelCompletion(CLUSTERS), None),
    "MeanFilledSpectral": (MeanFilledSpectral(CLUSTERS), None),
}
IN_DOUBLE_PRECISION = {  # they solve systems and eigenproblems
    *("IMG", "ImputedSpectral", "CoRegularizedSpectral", "BipartiteSpectral", "KernelCompletion", "MeanFilledSpectral")
}

each_method = pytest.mark.parametrize("name", METHODS)


def make(name, start=None, **settings):
    model = clone(METHODS[name][0]).set_params(random_state=0, **settings)
    return model if start is None else model.set_params(init=start)


@pytest.fixture(scope="module")
def problem():
    """Three groups far apart, values of at least 0, every pattern of gaps."""
    rng = np.random.RandomState(5)
    target = np.arange(SIZE) % CLUSTERS
    matrices = []
    for m in FEATURES:
        centers = np.abs(rng.normal(size=(CLUSTERS, m))) * 3
        for k in range(CLUSTERS):
            centers[k, k] += 20
        matrices.append(centers[target] + rng.uniform(size=(SIZE, m)))
    return matrices, random_mask(rng, SIZE, len(FEATURES), 0.5, 10), target


@pytest.fixture
def made(name, problem):
    """The problem; for KernelCompletion without gaps in the first view."""
    matrices, mask, target = problem
    return matrices, mask | (name == "KernelCompletion") * np.eye(1, len(FEATURES), dtype=bool), target


@each_method
def test_finds_groups_that_are_plain_to_see(name, made):
    matrices, mask, target = made
    if name in ("GRMF", "GPMVC", "BestSingleView", "Concat"):
        # With gaps the first two may end in a local minimum, and the others see the gaps, which they fill with means
        mask = np.ones_like(mask)
    settings = {"consensus_weight": 1.0, "max_iter": 30, "n_steps": 100} if name == "GPMVC" else {}
    model = make(name, **settings).fit(matrices, mask=mask)
    assert clustering_accuracy(target, model.labels_) > 0.9


@each_method
def test_what_every_fit_leaves_behind(name, made):
    matrices, mask, _ = made
    model = make(name)
    assert model.fit(matrices, mask=mask) is model
    assert model.labels_.shape == (SIZE,)
    assert np.issubdtype(model.labels_.dtype, np.integer)
    assert set(model.labels_) <= set(range(CLUSTERS))
    assert model.embedding_.shape[0] == SIZE
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.sample_ids_, np.arange(SIZE))
    if hasattr(model, "objective_"):
        assert len(model.objective_) == model.n_iter_
        assert np.isfinite(model.objective_).all()
    np.testing.assert_array_equal(make(name).fit_predict(matrices, mask=mask), model.labels_)


@each_method
def test_same_seed_same_labels(name, made):
    matrices, mask, _ = made
    first, second = (make(name).fit(matrices, mask=mask) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.embedding_, second.embedding_)


def permuted(name, seed):
    """Return an order of the samples, and a start in the given and in this order; None if the method takes none."""
    rng = np.random.RandomState(seed)
    samples, kind = rng.permutation(SIZE), METHODS[name][1]
    if kind is None:
        return samples, None, None
    start = kind[0](rng)
    return samples, start, kind[1](start, samples, range(len(FEATURES)))


@each_method
def test_permuting_samples_permutes_the_result(name, made):
    matrices, mask, _ = made
    samples, start, moved = permuted(name, 1)
    model = make(name, start).fit(matrices, mask=mask)
    other = make(name, moved).fit([matrix[samples] for matrix in matrices], mask=mask[samples])
    if start is not None:
        np.testing.assert_allclose(other.embedding_, model.embedding_[samples], rtol=1e-5, atol=1e-7)
    assert adjusted_rand_score(model.labels_[samples], other.labels_) == pytest.approx(1.0)


@each_method
@pytest.mark.parametrize("n_kept", [SIZE, SIZE - 8])
def test_groups_are_numbered_by_size_then_by_smallest_id(name, made, n_kept):
    matrices, _, target = made
    kept = np.argsort(target == 0, kind="stable")[:n_kept][::-1]  # groups of equal size, or one of 12 samples
    for ids in (np.arange(n_kept), -np.arange(n_kept), [f"s{i * 7 % n_kept}" for i in range(n_kept)]):
        model = make(name).fit(Views([matrix[kept] for matrix in matrices], sample_ids=ids))
        assert (np.diff(np.bincount(model.labels_)) <= 0).all()
        np.testing.assert_array_equal(model.labels_, by_size_and_id(model.labels_, list(ids)))
        if hasattr(model, "cluster_centers_"):
            points = model.latent_points(model.embedding_) if hasattr(model, "latent_points") else model.embedding_
            centers = [points[model.labels_ == group].mean(axis=0) for group in range(CLUSTERS)]
            np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-8)
        if clustering_accuracy(target[kept], model.labels_) > 0.9:  # else neighbours may have other labels
            np.testing.assert_array_equal(model.predict(model.views_), model.labels_)
        if hasattr(model, "latent_points"):
            np.testing.assert_array_equal(model.predict(model.views_, method="centers"), model.labels_)


@each_method
@pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits
def test_the_label_of_an_id_does_not_depend_on_the_order_of_the_rows(name, made):
    matrices, mask, _ = made
    samples, start, moved = permuted(name, 4)
    for shown in (mask, np.ones_like(mask)):
        views = Views(matrices, mask=shown, sample_ids=[f"sample {i}" for i in range(SIZE)])
        model, other = make(name, start).fit(views), make(name, moved).fit(views[samples])
        np.testing.assert_array_equal(other.labels_, model.labels_[samples])


@each_method
def test_permuting_views_does_not_change_the_groups(name, made):
    matrices, mask, _ = made
    rng = np.random.RandomState(2)
    start, kind = None, METHODS[name][1]
    moved = None
    if kind is not None:
        start = kind[0](rng)
        moved = kind[1](start, np.arange(SIZE), [1, 0])
    model = make(name, start).fit(matrices, mask=mask)
    other = make(name, moved).fit(matrices[::-1], mask=mask[:, ::-1])
    assert adjusted_rand_score(model.labels_, other.labels_) == pytest.approx(1.0)
    if kind is not None:
        np.testing.assert_allclose(other.embedding_, model.embedding_, rtol=1e-5, atol=1e-7)


@each_method
def test_values_under_the_mask_never_matter(name, made):
    matrices, mask, _ = made
    wild = [
        np.where(mask[:, [k]], matrix, value)
        for k, (matrix, value) in enumerate(zip(matrices, (-1e9, np.nan), strict=True))
    ]
    a, b = make(name).fit(matrices, mask=mask), make(name).fit(wild, mask=mask)
    np.testing.assert_array_equal(a.embedding_, b.embedding_)
    np.testing.assert_array_equal(a.labels_, b.labels_)


@each_method
def test_rows_of_nan_and_a_mask_say_the_same(name, made):
    matrices, mask, _ = made
    gappy = [np.where(mask[:, [k]], matrix, np.nan) for k, matrix in enumerate(matrices)]
    a, b = make(name).fit(matrices, mask=mask), make(name).fit(gappy)
    np.testing.assert_array_equal(a.embedding_, b.embedding_)


@each_method
def test_dense_and_sparse_agree(name, made):
    matrices, mask, _ = made
    thin = [np.where(matrix > 1.5, matrix, 0) for matrix in matrices]
    a = make(name).fit(thin, mask=mask)
    b = make(name).fit([sparse.csr_array(matrix) for matrix in thin], mask=mask)
    np.testing.assert_allclose(b.embedding_, a.embedding_, rtol=1e-5, atol=1e-7)
    assert adjusted_rand_score(a.labels_, b.labels_) == pytest.approx(1.0)


@each_method
def test_frames_and_arrays_agree(name, made):
    matrices, mask, _ = made
    ids = [f"sample {i}" for i in range(SIZE)]
    frames = {
        key: pd.DataFrame(matrix, index=ids).loc[mask[:, k]]
        for k, (key, matrix) in enumerate(zip("ab", matrices, strict=True))
    }
    model = make(name).fit(frames)
    order = [ids.index(key) for key in model.sample_ids_]  # ids in the order in which they first appear
    other = make(name).fit(Views(matrices, mask=mask, sample_ids=ids)[order])
    np.testing.assert_array_equal(model.embedding_, other.embedding_)
    np.testing.assert_array_equal(model.labels_, other.labels_)


@each_method
def test_single_precision_stays_single_and_close(name, made):
    matrices, mask, _ = made
    single = make(name).fit([matrix.astype(np.float32) for matrix in matrices], mask=mask)
    double = make(name).fit(matrices, mask=mask)
    if name.partition("-")[0] not in IN_DOUBLE_PRECISION:
        assert single.embedding_.dtype == np.float32
    assert adjusted_rand_score(single.labels_, double.labels_) > 0.9


@each_method
def test_three_views_and_any_pattern(name, made):
    matrices, _, _ = made
    three = [*matrices, matrices[0][:, :4] + matrices[1][:, :4]]
    mask = random_mask(np.random.RandomState(3), SIZE, 3, 0.4, 8)
    mask[:4] = True  # IMG learns from complete samples
    mask[:, 0] |= name == "KernelCompletion"
    model = make(name).fit(three, mask=mask)
    assert model.labels_.shape == (SIZE,)
    assert np.isfinite(model.embedding_).all()


@each_method
def test_one_view_and_complete_views(name, made):
    matrices, _, target = made
    for data in ([matrices[0]], matrices):
        assert clustering_accuracy(target, make(name).fit(data).labels_) > 0.6


@pytest.mark.parametrize(  # IMG links all
    "name", [n for n, (_, start) in METHODS.items() if (start and n != "IMG") or n.startswith("Bridged")]
)
def test_samples_that_say_nothing_are_named(name, made):
    """A sample whose only row is zero has no neighbours and no code: it gets a label, and a warning."""
    matrices, mask, _ = made
    matrices = [matrix.copy() for matrix in matrices]
    mask = mask.copy()
    mask[0] = [True, False]
    matrices[0][0] = 0
    unit = {"scale": "unit"} if name.startswith("Bridged") else {}  # centring would give the row a direction
    with pytest.warns(GapviewWarning, match="1 sample.s. have a representation of nothing but zeros"):
        model = make(name, **unit).fit(matrices, mask=mask)
    assert np.isfinite(model.embedding_).all()


@each_method
def test_new_samples_from_any_of_their_views(name, made):
    matrices, mask, target = made
    trained, new = np.arange(SIZE) < 45, np.arange(SIZE) >= 45
    model = make(name).fit([matrix[trained] for matrix in matrices], mask=mask[trained])
    group = {kind: np.bincount(model.labels_[target[trained] == kind]).argmax() for kind in range(CLUSTERS)}
    is_sound = clustering_accuracy(target[trained], model.labels_) > 0.9
    for shown in ([0, 1], [0], [1]):
        given = [matrix[new] if k in shown else None for k, matrix in enumerate(matrices)]
        labels, shares = model.predict(given), model.predict_proba(given)
        assert labels.dtype == model.labels_.dtype
        assert labels.shape == (15,)
        assert shares.shape == (15, CLUSTERS)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        np.testing.assert_array_equal(shares.argmax(axis=1), labels)
        np.testing.assert_allclose(shares[:1], model.predict_proba([x if x is None else x[:1] for x in given]))
        np.testing.assert_array_equal(labels, model.predict(given))
        np.testing.assert_array_equal(labels[::-1], model.predict([x if x is None else x[::-1] for x in given]))
        if is_sound:
            assert (labels == [group[kind] for kind in target[new]]).mean() > 0.9


@each_method
def test_new_samples_in_blocks_of_dask(name, made):
    da = pytest.importorskip("dask.array")
    matrices, mask, _ = made
    model = make(name).fit(matrices, mask=mask)
    blocks = [da.from_array(matrix, chunks=(25, -1)) for matrix in matrices]
    np.testing.assert_array_equal(model.predict(blocks).compute(), model.predict(matrices))
    np.testing.assert_array_equal(model.predict([blocks[0], None]).compute(), model.predict([matrices[0], None]))
    np.testing.assert_allclose(model.predict_proba(blocks).compute(), model.predict_proba(matrices))
    with pytest.raises(GapviewError, match="place takes views in memory"):
        model.place(blocks)


@each_method
def test_new_samples_with_gaps_and_bad_ones(name, made):
    matrices, mask, _ = made
    model = make(name)
    with pytest.raises(NotFittedError):
        model.predict(matrices)
    model.fit(matrices, mask=mask)
    gappy = [np.where(mask[:, [k]], matrix, np.nan) for k, matrix in enumerate(matrices)]
    np.testing.assert_array_equal(model.predict(gappy), model.predict(Views(matrices, mask=mask)))
    far = [matrix + 1e4 * (1 + k) * np.arange(matrix.shape[1]) for k, matrix in enumerate(matrices)]
    with pytest.warns(GapviewWarning):
        found = model.place(far)
    assert found.unusual.all()
    assert len(found.notes) == 2
    for data in ([matrices[0][:, :3], None], [None, None], {"other": matrices[0]}, "text"):
        with pytest.raises(GapviewError):
            model.predict(data)


@each_method
@pytest.mark.parametrize("kind", ["counts", "proteins"])
def test_kinds_give_the_groups_of_views_prepared_by_hand(name, kind, made):
    matrices, mask, _ = made
    depth = np.random.RandomState(0).lognormal(0, 0.5, size=(SIZE, 1))
    counts = [np.round(100 * depth * matrix) for matrix in matrices]
    by_hand = []
    for view, own in zip(counts, mask.T, strict=True):
        if kind == "counts":
            sizes = view.sum(axis=1)
            by_hand.append(np.log1p(view / sizes[:, None] * np.median(sizes[own])))
        else:
            by_hand.append(np.log1p(view) - np.log1p(view).mean(axis=1, keepdims=True))
    refuses_signs = kind == "proteins" and "nonnegative" in METHODS[name][0].get_params()
    more = {"nonnegative": "shift"} if refuses_signs else {}
    model = make(name, kind=kind, **more).fit(counts, mask=mask)
    expected = make(name, **more).fit(by_hand, mask=mask)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict([counts[0][:9], None]), expected.predict([by_hand[0][:9], None]))
    assert [rule.kind for rule in model.kinds_] == [kind] * 2


@each_method
def test_a_single_group(name, made):
    assert set(make(name, n_clusters=1).fit_predict(made[0])) == {0}


@each_method
def test_bad_input_is_refused_alike(name, made):
    matrices, _, _ = made
    for data in ([], [matrices[0], matrices[1][:-1]], [matrices[0], np.ones((SIZE, 2))], "text"):
        with pytest.raises(GapviewError):
            make(name).fit(data)
    with pytest.raises(GapviewError, match="n_clusters"):
        make(name, n_clusters=SIZE + 1).fit(matrices)
    for setting in ({"n_clusters": 0}, {"scale": "other"}, {"partial_rows": "other"}):
        with pytest.raises(GapviewError, match=next(iter(setting))):
            make(name, **setting).fit(matrices)


@each_method
def test_clone_pickle_and_unfitted(name, made):
    matrices, mask, _ = made
    model = make(name)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.check_fitted()
    again = pickle.loads(pickle.dumps(model.fit(matrices, mask=mask)))
    np.testing.assert_array_equal(again.labels_, model.labels_)


@each_method
def test_the_input_is_left_alone(name, made):
    matrices, mask, _ = made
    copies = [matrix.copy() for matrix in matrices]
    make(name).fit(copies, mask=mask)
    for matrix, kept in zip(copies, matrices, strict=True):
        np.testing.assert_array_equal(matrix, kept)


@each_method
@pytest.mark.filterwarnings("ignore:The groups are:gapview.errors.GapviewWarning")  # true of these fits
def test_markers_and_contributions(name, made):
    matrices, mask, target = made
    model = make(name, *([METHODS[name][1][0](np.random.RandomState(0))] if METHODS[name][1] else []))
    model.fit(matrices, mask=mask)
    markers = model.markers()
    assert len(markers) == CLUSTERS * sum(FEATURES)
    assert np.isfinite(markers.columns["p_value"]).mean() > 0.6  # a fit to half of the features may lack a group
    np.testing.assert_array_equal(markers.columns["p_value"], model.markers().columns["p_value"])
    found = model.view_contributions()
    np.testing.assert_array_equal(np.isnan(found.support), ~mask)
    assert (found.support <= 1).sum() == mask.sum()
    has_group = ~np.isnan(found.share).all(axis=1)
    np.testing.assert_allclose(np.nansum(found.share[has_group], axis=1), 1)
    graph = model.sample_graph()
    assert graph.shape == (SIZE, SIZE)
    assert (graph.data > 0).all()
    assert not graph.diagonal().any()
    assert abs(graph - graph.T).max() < 1e-12
    if clustering_accuracy(target, model.labels_) > 0.9:
        linked = graph.tocoo()
        assert (model.labels_[linked.row] == model.labels_[linked.col]).mean() > 0.8
