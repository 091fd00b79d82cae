"""Results in omics objects: where scverse's tools look for them, for the right samples, and the same after a file."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import gapview
from gapview import GRMF, BridgedGRMF
from gapview.baselines import Concat
from gapview.datasets import make_views
from gapview.errors import GapviewWarning, InputError, InputTypeError, NotFittedError, ParameterError

pd = pytest.importorskip("pandas")
ad = pytest.importorskip("anndata")
mu = pytest.importorskip("mudata")

# mudata speaks of what its next version will do at every update
pytestmark = pytest.mark.filterwarnings(
    "ignore:From 0.4:FutureWarning", "ignore:Cannot join columns:UserWarning", "ignore:Observation names are not unique"
)
N = 60
NAMES = [f"cell_{i}" for i in range(N)]
MADE = make_views(N, (6, 5), n_clusters=3, random_state=0)


def one(matrix, names, prefix):
    var = pd.DataFrame(index=[f"{prefix}{j}" for j in range(matrix.shape[1])])
    return ad.AnnData(matrix, obs=pd.DataFrame(index=names), var=var)


def parts(as_sparse=False):
    """RNA of the first 45 samples; proteins of the last 40, in reverse order."""
    rna, proteins = MADE.views.matrices
    last = np.arange(20, N)[::-1]
    matrix = sparse.csr_matrix(rna[:45]) if as_sparse else rna[:45]
    return {"rna": one(matrix, NAMES[:45], "g"), "protein": one(proteins[last], [NAMES[i] for i in last], "p")}


@pytest.fixture(scope="module")
def model():
    return BridgedGRMF(3, random_state=0).fit(parts())


def expected(model, names):
    return [str(dict(zip(model.sample_ids_, model.labels_, strict=True))[name]) for name in names]


def check(target, model, key="gapview"):
    """Every sample has what the model says of the sample of that name."""
    row = {name: i for i, name in enumerate(model.sample_ids_)}
    rows = [row[name] for name in target.obs_names]
    assert target.obs[key].tolist() == [str(label) for label in model.labels_[rows]]
    assert isinstance(target.obs[key].dtype, pd.CategoricalDtype)
    assert target.obs[key].cat.categories.tolist() == [str(i) for i in sorted(set(model.labels_[rows].tolist()))]
    np.testing.assert_array_equal(target.obsm[f"X_{key}"], model.embedding_[rows])
    if hasattr(model, "confidence_"):
        np.testing.assert_array_equal(target.obs[f"{key}_confidence"], model.confidence_[rows])


def same(one, other):
    """Compare what may stand in uns."""
    if isinstance(one, dict):
        assert sorted(one) == sorted(other)
        for name in one:
            same(one[name], other[name])
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_index_type=False)
    else:
        np.testing.assert_array_equal(one, other)


def test_a_dict_of_anndata(model):
    data = parts()
    assert gapview.annotate(model, data) is None
    for target in data.values():
        check(target, model)
    assert list(data["rna"].layers) == []


def test_a_mudata_gets_all_samples_at_the_top(model):
    data = mu.MuData(parts())
    gapview.annotate(model, data)
    assert sorted(data.obs_names) == sorted(NAMES)
    check(data, model)
    for part in data.mod.values():
        assert "gapview" not in part.obs
    data.push_obs(["gapview", "gapview_confidence"])
    for part in data.mod.values():
        assert part.obs["gapview"].tolist() == expected(model, part.obs_names)
    data.update()
    check(data, model)


def test_one_anndata_and_a_list(model):
    rna, protein = parts().values()
    gapview.annotate(model, rna)
    gapview.annotate(model, [protein], key_added="groups")
    check(rna, model)
    check(protein, model, "groups")
    assert "gapview" not in protein.obs


def test_how_it_came_about(model):
    data = parts()["rna"]
    gapview.annotate(model, data)
    found = data.uns["gapview"]
    assert found["method"] == "BridgedGRMF"
    assert found["version"] == gapview.__version__
    assert found["params"]["n_clusters"] == 3
    assert found["params"]["memory_budget"] == "None"
    assert found["view_names"].tolist() == ["rna", "protein"]
    assert found["n_samples"] == N
    np.testing.assert_array_equal(found["objective"], model.objective_)
    np.testing.assert_array_equal(found["view_weights"], model.view_weights_)
    assert found["setting"]["bridge"] == model.setting_.bridge
    assert found["setting"]["n_neighbors"].tolist() == list(model.setting_.n_neighbors)
    assert found["selection"]["reason"] == model.selection_.reason
    assert found["selection"]["table"]["chosen"].tolist().count(True) == 1
    assert len(found["selection"]["table"]) == len(model.selection_.trials)


@pytest.mark.parametrize("recover", [False, True])
def test_a_mudata_file_gives_the_same_back(model, tmp_path, recover):
    data = mu.MuData(parts())
    gapview.annotate(model, data, recover=recover)
    data.write(tmp_path / "data.h5mu")
    found = mu.read_h5mu(tmp_path / "data.h5mu")
    check(found, model)
    pd.testing.assert_frame_equal(found.obs, data.obs)
    assert sorted(found.obsm) == sorted(data.obsm)
    for name in data.obsm:
        np.testing.assert_array_equal(found.obsm[name], data.obsm[name])
    same(dict(data.uns["gapview"]), dict(found.uns["gapview"]))


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("kind", ["GRMF", "BridgedGRMF", "Concat"])
def test_an_anndata_file_gives_the_same_back(kind, as_sparse, tmp_path):
    made = {
        "GRMF": GRMF(3, scale=None, init="data"),
        "BridgedGRMF": BridgedGRMF(3, scale=["unit", None]),
        "Concat": Concat(3),
    }
    data = parts(as_sparse)
    model = made[kind].set_params(random_state=0).fit(data)
    gapview.annotate(model, data, recover=kind != "Concat")
    for name, target in data.items():
        target.write_h5ad(tmp_path / f"{name}.h5ad")
        found = ad.read_h5ad(tmp_path / f"{name}.h5ad")
        check(found, model)
        assert ("gapview_confidence" in found.obs) == (kind != "Concat")
        pd.testing.assert_frame_equal(found.obs, target.obs)
        same(dict(target.uns["gapview"]), dict(found.uns["gapview"]))
        for key in target.obsm:
            left, right = (m.toarray() if sparse.issparse(m) else m for m in (target.obsm[key], found.obsm[key]))
            np.testing.assert_array_equal(left, right)
    assert sparse.issparse(data["protein"].obsm.get("gapview_rna")) == (as_sparse and kind != "Concat")


@pytest.mark.parametrize("as_sparse", [False, True])
def test_recovered_views(as_sparse):
    data = mu.MuData(parts(as_sparse))
    model = BridgedGRMF(3, selection="fixed", random_state=0).fit(data)
    gapview.annotate(model, data, recover=True)
    complete = model.recover()
    for view, part in data.mod.items():
        found = data.obsm[f"gapview_{view}"]
        found = pd.DataFrame(found.toarray() if sparse.issparse(found) else found, index=data.obs_names)
        np.testing.assert_array_equal(found, complete[view].loc[data.obs_names])
        np.testing.assert_array_equal(
            found.loc[part.obs_names], part.X.toarray() if sparse.issparse(part.X) else part.X
        )
        lacking = data.obs_names[data.obs[f"gapview_{view}_recovered"]]
        assert set(lacking) == set(NAMES) - set(part.obs_names)
        assert data.uns["gapview"]["features"][view].tolist() == part.var_names.tolist()


def test_samples_that_the_fit_did_not_know():
    data = parts()
    model = GRMF(3, init="data", random_state=0).fit({name: part[5:].copy() for name, part in data.items()})
    whole = mu.MuData(data)
    strangers = [name for name in whole.obs_names if name not in set(model.sample_ids_)]
    assert strangers
    with pytest.warns(GapviewWarning, match=rf"{len(strangers)} sample\(s\) were not in the fit.*predict"):
        gapview.annotate(model, whole, recover=True)
    new = whole.obs_names.isin(strangers)
    assert whole.obs.loc[new, ["gapview", "gapview_confidence"]].isna().all(axis=None)
    assert np.isnan(whole.obsm["X_gapview"][new]).all()
    assert np.isnan(whole.obsm["gapview_rna"][new]).all()
    assert not whole.obs.loc[new, "gapview_rna_recovered"].any()
    assert whole.obs.loc[~new, "gapview"].tolist() == expected(model, whole.obs_names[~new])
    assert whole.obs["gapview_rna_recovered"].dtype == bool


def test_a_part_of_the_samples_is_no_surprise(model):
    part = parts()["rna"][:7].copy()
    gapview.annotate(model, part)
    check(part, model)


def test_a_view_of_an_object_becomes_one_of_its_own(model):
    whole = parts()["rna"]
    part = whole[:7]
    with pytest.warns(UserWarning, match="initializing view as actual"):  # anndata's own, as with scanpy
        gapview.annotate(model, part)
    check(part, model)
    assert "gapview" not in whole.obs


def test_nothing_is_left_of_an_earlier_call(model):
    data = mu.MuData(parts())
    data.obs["gapview_mine"] = 1
    gapview.annotate(model, data, recover=True)
    gapview.annotate(Concat(3, random_state=0).fit(parts()), data)
    contributions = ["gapview_rna_contribution", "gapview_protein_contribution"]
    assert [name for name in data.obs if name.startswith("gapview")] == ["gapview_mine", "gapview", *contributions]
    assert sorted(data.obsp) == ["connectivities", "distances"]
    assert sorted(data.obsm) == ["X_gapview", "protein", "rna"]
    assert "selection" not in data.uns["gapview"]


def test_numbers_as_ids_match_names_as_text():
    matrices = MADE.views.matrices
    data = [one(matrix, [str(i) for i in range(N)], "x") for matrix in matrices]
    model = GRMF(3, init="data", random_state=0).fit(list(matrices))  # ids are 0, 1, 2, …
    gapview.annotate(model, data)
    assert data[0].obs["gapview"].tolist() == [str(label) for label in model.labels_]


class TestRefused:
    def untouched(self, data):
        return all(not len(part.obs.columns) and not part.obsm and not part.uns for part in data.values())

    @pytest.mark.parametrize(
        ("change", "kind", "words"),
        [
            ({"model": BridgedGRMF(3)}, NotFittedError, "not fitted"),
            ({"model": "model"}, InputTypeError, "needs a fitted clusterer of gapview; got a str"),
            ({"model": GRMF}, InputTypeError, "got the class"),
            ({"data": np.eye(3)}, InputTypeError, "an AnnData, a MuData, or a dict or list of AnnData; got a ndarray"),
            ({"data": {"a": np.eye(3)}}, InputTypeError, "got dict of a ndarray"),
            ({"data": []}, InputTypeError, "got a list"),
            ({"key_added": ""}, ParameterError, "key_added"),
            ({"key_added": "a/b"}, ParameterError, "key_added"),
            ({"key_added": 1}, TypeError, "key_added must be text; got 1"),
            ({"recover": "yes"}, TypeError, "recover must be True or False"),
        ],
    )
    def test_arguments(self, model, change, kind, words):
        data = parts()
        with pytest.raises(kind, match=words):
            gapview.annotate(**({"model": model, "data": data} | change))
        assert self.untouched(data)

    def test_samples_of_another_study(self, model):
        data = {"rna": one(np.eye(3), ["x", "y", "z"], "g")}
        with pytest.raises(
            InputError, match=r"has none of the samples: it was fitted on 'cell_0'.*holds 'x', 'y', 'z'"
        ):
            gapview.annotate(model, data)
        assert self.untouched(data)

    def test_names_that_repeat(self, model):
        data = {"rna": one(np.eye(3), ["cell_1", "cell_2", "cell_1"], "g")}
        with pytest.raises(InputError, match="must not repeat; these do: 'cell_1'"):
            gapview.annotate(model, data)
        assert self.untouched(data)

    def test_methods_that_cannot_recover(self):
        data = parts()
        model = Concat(3, random_state=0).fit(data)
        with pytest.raises(InputTypeError, match="recover=True needs a GRMF or a BridgedGRMF.*got a Concat"):
            gapview.annotate(model, data, recover=True)
        assert self.untouched(data)

    def test_names_that_cannot_be_keys(self):
        data = dict(zip(("a/b", "c"), parts().values(), strict=True))
        model = GRMF(3, init="data", random_state=0).fit(data)
        with pytest.raises(InputError, match="without '/'.*'a/b'"):
            gapview.annotate(model, data, recover=True)
        assert self.untouched(data)
        gapview.annotate(model, data)

    def test_samples_that_were_drawn_twice(self):
        model = GRMF(3, init="data", random_state=0).fit(MADE.views[[0, 0, *range(1, N)]])
        with pytest.raises(InputError, match="must differ as text"):
            gapview.annotate(model, parts())


def test_nothing_is_warned_of_without_need(model):
    data = parts()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gapview.annotate(model, data, recover=True)
