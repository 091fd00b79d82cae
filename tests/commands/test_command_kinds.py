"""``gapview cluster --kind``: kinds are proposed, applied on request and stored; wrong ones are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score

import gapview
from bulk import bulk_counts
from gapview.commands.cli import main

pd = pytest.importorskip("pandas")

COUNTS, TARGET = bulk_counts(150, 120, 3, seed=0, dispersion=0.4)
QUICK = ("-k", "3", "--no-report", "--no-assess", "--set", "selection=fixed")


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def files(tmp_path):
    ids = [f"patient {i}" for i in range(150)]
    paths = [tmp_path / "rna.csv", tmp_path / "adt.csv"]
    for path, part in zip(paths, (COUNTS[:, :70], COUNTS[:, 70:]), strict=True):
        names = [f"{path.stem}{j}" for j in range(part.shape[1])]
        pd.DataFrame(part.astype(int), index=pd.Index(ids, name="id"), columns=names).to_csv(path)
    return paths


def test_kinds_are_proposed_and_nothing_is_changed(tmp_path, files):
    result = run("cluster", *files, "-o", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "Proposed  --kind rna=counts --kind adt=proteins, from" in result.output
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["kinds"] == []
    assert [view["proposed_kind"] for view in record["description"]] == ["counts", "proteins"]
    assert all(rule.is_identity for rule in gapview.load(tmp_path / "out" / "model.gapview").kinds_)


@pytest.mark.parametrize("given", [("--kind", "rna=counts", "--kind", "adt=proteins"), ("--kind", "auto")])
def test_kinds_are_applied_on_request(tmp_path, files, given):
    result = run("cluster", *files, "-o", tmp_path / "out", *QUICK, *given, "--top-features", "rna=40")
    assert result.exit_code == 0, result.output
    assert "Proposed" not in result.output
    assert "Warning" not in result.output
    assert "Kind      'rna' as counts" in result.output
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert [text.partition(":")[0] for text in record["kinds"]] == ["'rna' as counts", "'adt' as proteins"]
    model = gapview.load(tmp_path / "out" / "model.gapview")
    assert [rule.kind for rule in model.kinds_] == ["counts", "proteins"]
    assert [rule.n_out for rule in model.kinds_] == [40, 50]
    assert adjusted_rand_score(TARGET, model.labels_) > 0.9
    assert "chosen kinds: counts (rna), proteins (adt)" in run("info", tmp_path / "out" / "model.gapview").output
    assert run("predict", tmp_path / "out" / "model.gapview", *files, "-o", tmp_path / "new.csv").exit_code == 0
    again = pd.read_csv(tmp_path / "new.csv")
    assert np.mean(again.iloc[:, 1] == model.labels_) > 0.9


def test_one_kind_for_all_views(tmp_path, files):
    result = run("cluster", *files, "-o", tmp_path / "out", "-k", "3", "--method", "Concat", "--kind", "counts")
    assert result.exit_code == 0, result.output
    assert gapview.load(tmp_path / "out" / "model.gapview").kind == "counts"


REFUSED = {
    ("--kind", "words"): "kind must be one of 'counts'",
    ("--kind", "genes=counts"): "no view is named 'genes': there are 'rna', 'adt'",
    ("--kind", "counts", "--kind", "adt=proteins"): "--kind takes one value for all views",
    ("--kind", "methylation"): "View 'rna' has kind='methylation', which needs shares from 0 to 1",
    ("--kind", "binary"): "View 'rna' has kind='binary', which needs features of two values",
    ("--top-features", "many"): "n_top_features must be an integer of at least 1",
    ("--set", "kind=counts"): "kind has an option of its own: give --kind",
}


@pytest.mark.parametrize("given", REFUSED, ids=" ".join)
def test_what_cannot_be_right_is_refused(tmp_path, files, given):
    result = run("cluster", *files, "-o", tmp_path / "out", *QUICK, *given)
    assert result.exit_code == 1
    assert REFUSED[given] in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()
