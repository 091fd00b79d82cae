"""Functions in the style of scanpy: what they write, the errors, and figures of annotated objects."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import gapview
from gapview.datasets import make_views
from gapview.errors import DataFileError, GapviewError, InputError, InputTypeError, ParameterError

pd = pytest.importorskip("pandas")
ad = pytest.importorskip("anndata")
mu = pytest.importorskip("mudata")

pytestmark = pytest.mark.filterwarnings("ignore:From 0.4:FutureWarning", "ignore:Cannot join columns:UserWarning")
N = 60
NAMES = [f"cell_{i}" for i in range(N)]
MADE = make_views(N, (6, 5), n_clusters=3, random_state=0)


def parts():
    rows = {"rna": np.arange(45), "protein": np.arange(20, N)}
    made = {}
    for (name, own), matrix in zip(rows.items(), MADE.views.matrices, strict=True):
        obs = pd.DataFrame({"donor": np.where(own % 2, "d1", "d2")}, index=[NAMES[i] for i in own])
        var = pd.DataFrame(index=[f"{name}{j}" for j in range(matrix.shape[1])])
        made[name] = ad.AnnData(matrix[own], obs=obs, var=var)
    made["rna"].layers["shifted"] = made["rna"].X + 1
    return made


@pytest.fixture(scope="module")
def annotated():
    data = mu.MuData(parts())
    model = gapview.tl.cluster(data, n_clusters=3, selection="fixed")
    gapview.tl.markers(data, model)
    return data, model


def test_cluster_writes_and_returns_the_model(annotated):
    data, model = annotated
    assert model.get_params()["selection"] == "fixed"
    assert data.obs["gapview"].tolist() == [
        str(dict(zip(model.sample_ids_, model.labels_, strict=True))[name]) for name in data.obs_names
    ]
    frame = data.uns["gapview_markers"]
    assert len(frame) == 3 * 11
    assert set(frame["feature"]) == {*data.mod["rna"].var_names, *data.mod["protein"].var_names}


def test_markers_survive_a_file(annotated, tmp_path):
    data, _ = annotated
    data.write(tmp_path / "a.h5mu")
    pd.testing.assert_frame_equal(mu.read_h5mu(tmp_path / "a.h5mu").uns["gapview_markers"], data.uns["gapview_markers"])


def test_layers_batches_and_other_methods():
    data = parts()
    model = gapview.tl.cluster(
        data, 3, method="Concat", layer={"rna": "shifted"}, batch_key="donor", key_added="mine", random_state=1
    )
    np.testing.assert_allclose(model.views_.matrices[0], data["rna"].layers["shifted"])
    assert [test.factor for test in model.associations_][-1] == "batch"
    assert "mine" in data["rna"].obs
    assert "mine" in data["protein"].obs


def test_assess_writes_the_result():
    data = mu.MuData(parts())
    model = gapview.tl.cluster(data, 3, selection="fixed")
    found = gapview.tl.assess(data, model, n_null=4, alpha=0.2)
    assert data.uns["gapview"]["assessment"]["p_value"] == found.p_value
    assert data.uns["gapview"]["assessment"]["text"].startswith("The groups can")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda d, m: gapview.tl.cluster(d, 3, batch_key="plate"), InputError, "got 'plate'. The columns are .*donor"),
        (lambda d, m: gapview.tl.cluster(d, 3, layer="none"), GapviewError, "layers/none"),
        (lambda d, m: gapview.tl.cluster(d, 3, method="KMeans"), ParameterError, "method"),
        (lambda d, m: gapview.tl.cluster([np.eye(3)], 3), InputTypeError, "an AnnData, a MuData"),
        (lambda d, m: gapview.tl.markers(d, m, key_added="other"), InputError, "no results under 'other'"),
        (lambda d, m: gapview.tl.assess(d, object()), InputTypeError, "fitted GRMF or BridgedGRMF"),
        (lambda d, m: gapview.pl.map(d, key="other"), InputError, "gapview.tl.cluster"),
        (lambda d, m: gapview.pl.map(d, color="plate"), InputError, "a column of obs.*got 'plate'. The columns are"),
        (lambda d, m: gapview.pl.heatmap(d), InputError, "gapview.tl.markers"),
        (lambda d, m: gapview.pl.map(d.mod), InputError, "needs one AnnData or MuData"),
    ],
)
def test_refused(annotated, call, kind, message):
    _data, model = annotated
    bare = mu.MuData(parts())
    gapview.annotate(model, bare)
    with pytest.raises(kind, match=message):
        call(bare, model)


def test_figures(annotated):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    data, model = annotated
    try:
        assert gapview.pl.map(data).get_title() == "60 samples in 3 groups"
        names = [text.get_text() for text in gapview.pl.map(data, color="rna:donor").get_legend().get_texts()]
        assert names == ["d1", "d2"]
        scale = gapview.pl.map(data, color="confidence").figure.axes[1]
        assert (scale.get_ylabel(), scale.get_ylim()) == ("confidence", (0.0, 1.0))
        assert next(text.get_text() for text in gapview.pl.sizes(data).get_yticklabels()) == "group 0"
        assert gapview.pl.missing(data).get_title() == "25 of 60 samples have all views"
        figure = gapview.pl.heatmap(data, n_top=1)
        up = data.uns["gapview_markers"].query("direction == 'up'")
        first = {f"{one['feature']} ({one['view']})" for _, one in up.groupby(["group", "view"]).head(1).iterrows()}
        assert {text.get_text() for text in figure.get_yticklabels()} == first
        bars = gapview.pl.contributions(data)
        widths = np.array([bar.get_width() for bar in bars.patches]).reshape(2, 3).T
        np.testing.assert_allclose(widths, model.view_contributions().of_groups(model.labels_))
        one = ad.AnnData(MADE.views.matrices[0], obs=pd.DataFrame(index=NAMES))
        gapview.tl.cluster(one, 3, selection="fixed")
        assert gapview.pl.map(one, color=one.var_names[2]).figure.axes[1].get_ylabel() == one.var_names[2]
        with pytest.raises(InputError, match="a single view"):
            gapview.pl.contributions(one)
    finally:
        pyplot.close("all")


def test_the_graph_is_that_of_the_model_and_of_another_key(annotated):
    data, model = annotated
    own = data.copy()
    rows = [list(model.sample_ids_).index(name) for name in own.obs_names]
    graph = model.sample_graph()
    expected = graph[rows][:, rows] / graph.data.max()
    assert abs(own.obsp["connectivities"] - sparse.csr_array(expected)).max() < 1e-12
    gapview.annotate(model, own, key_added="second")  # the first graph is kept
    assert own.uns["neighbors"]["params"]["use_rep"] == "X_gapview"
    assert own.uns["second_neighbors"]["connectivities_key"] == "second_connectivities"
    gapview.annotate(model, own)
    assert sorted(own.obsp) == ["connectivities", "distances", "second_connectivities", "second_distances"]


def test_a_copy_of_a_file_is_annotated_again(tmp_path):
    from gapview.scverse import write_annotated

    data = parts()["rna"]
    model = gapview.BridgedGRMF(3, selection="fixed", random_state=0).fit(data)
    data.write_h5ad(tmp_path / "a.h5ad")
    write_annotated(model, tmp_path / "a.h5ad", tmp_path / "b.h5ad", recover=True)
    first = ad.read_h5ad(tmp_path / "b.h5ad")
    assert "gapview_view_0_recovered" in first.obs
    other = gapview.baselines.Concat(3, random_state=0).fit(data)
    write_annotated(other, tmp_path / "b.h5ad", tmp_path / "c.h5ad")
    second = ad.read_h5ad(tmp_path / "c.h5ad")
    assert second.uns["gapview"]["method"] == "Concat"
    assert "gapview_confidence" not in second.obs
    assert sorted(second.obsm) == ["X_gapview"]
    (tmp_path / "no.h5ad").write_bytes(b"text")
    with pytest.raises(DataFileError, match="No annotated copy of 'no.h5ad'"):
        write_annotated(model, tmp_path / "no.h5ad", tmp_path / "d.h5ad")
    assert not (tmp_path / "d.h5ad").exists()


def test_import_stays_light():
    code = "import gapview, sys; print([name for name in ('anndata', 'pandas', 'matplotlib') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
