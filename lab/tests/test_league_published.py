"""Printed figures beside those here: protocols, the file of figures, the table."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import normalized_mutual_info_score

from gapview import __version__
from gapview.errors import DataFileError, ParameterError
from gapview_lab.cli import main
from gapview_lab.league import LeagueRequest, run_league
from gapview_lab.league.data import LeagueCell, hidden, hide_otherwise, load, read_source
from gapview_lab.league.entrants import ENTRANTS
from gapview_lab.league.published_figures import COLUMNS, plan_published, read_figures
from gapview_lab.league.runs import LeagueStore, LeagueWork, all_tasks
from league_problems import gaps, masks, save


def few_views(folder, name="a", n_samples=40, n_views=3, count=2):
    """Write masks that leave every sample two neighbouring views."""
    mask = np.zeros((count, n_samples, n_views), dtype=np.uint8)
    for k in range(count):
        first = (np.arange(n_samples) + k) % (n_views - 1)
        mask[k, np.arange(n_samples), first] = mask[k, np.arange(n_samples), first + 1] = 1
    (folder / "masks").mkdir(exist_ok=True)
    np.savez(folder / "masks" / f"{name}_few_views.npz", chain=mask)
    return mask


def write(path, *rows, columns=COLUMNS):
    """Write a file of figures; a row is a dict of what is not empty."""
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def figure(protocol="missing share", rate="0.2", views="3", **more):
    return {"data": "a", "views": views, "protocol": protocol, "rate": rate, "method": "M", "acc": "50"} | more


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


class TestProtocols:
    @pytest.mark.parametrize("hiding", ["completer", "random proper subset", "share of samples loses views"])
    @pytest.mark.parametrize("n_views", [2, 3])
    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
    def test_drawn_masks(self, tmp_path, hiding, n_views, rate):
        path = save(tmp_path / "a.npz", n_views=n_views, n_samples=400)
        source = hide_otherwise(read_source("a", path), hiding, (rate,))
        loaded = load("a", path)
        views, target = hidden(loaded, source.cells[0], 3)
        assert views.mask.any(axis=1).all()
        np.testing.assert_array_equal(target, loaded.target[views.sample_ids.astype(int)])
        assert not np.array_equal(views.mask, hidden(loaded, source.cells[0], 4)[0].mask)
        incomplete = int((~views.mask.all(axis=1)).sum())
        if hiding == "completer":
            assert (~views.mask).sum() == round(rate * 400)  # a share rate / n_views of all cells
        if n_views == 2 or hiding != "completer":
            assert incomplete == round(rate * 400)
        assert (abs(views.mask.mean(axis=0) - views.mask.mean()) < 0.1).all()

    @pytest.mark.parametrize(
        ("hiding", "share"), [("random proper subset", 0.5), ("share of samples loses views", 0.5)]
    )
    def test_incomplete_samples_keep_one_or_two_of_three_views(self, tmp_path, hiding, share):
        path = save(tmp_path / "a.npz", n_views=3, n_samples=2000)
        kept = hidden(load("a", path), LeagueCell("a", hiding, 1.0), 0)[0].mask.sum(axis=1)
        assert set(kept.tolist()) == {1, 2}
        assert abs((kept == 1).mean() - share) < 0.05

    def test_of_four_views_the_two_protocols_differ_in_how_many_are_kept(self, tmp_path):
        state = np.random.RandomState(0)
        arrays = {f"view_{k}": state.normal(size=(3000, 2)) for k in range(4)}
        np.savez(tmp_path / "a.npz", y=np.arange(3000) % 3, **arrays)
        loaded = load("a", tmp_path / "a.npz")
        found = {}
        for hiding in ("random proper subset", "share of samples loses views"):
            kept = hidden(loaded, LeagueCell("a", hiding, 1.0), 0)[0].mask.sum(axis=1)
            found[hiding] = np.bincount(kept, minlength=5)[1:4] / 3000
        np.testing.assert_allclose(found["random proper subset"], np.array([4, 6, 4]) / 14, atol=0.04)
        np.testing.assert_allclose(found["share of samples loses views"], np.ones(3) / 3, atol=0.04)

    def test_masks_in_the_file_and_beside_it(self, tmp_path):
        path = save(tmp_path / "a.npz", n_views=3, complete10=masks(1, n_views=3))
        before = read_source("a", path)
        mask = few_views(tmp_path)
        load.cache_clear()
        source = read_source("a", path)
        assert (source.hiding, source.fingerprint) == ("random", before.fingerprint)  # these masks are not its default
        chain = hide_otherwise(source, "few_views/chain", (0.0,))
        assert (chain.n_seeds, chain.fingerprint != source.fingerprint) == (2, True)
        views, _ = hidden(load("a", path), chain.cells[0], 1)
        np.testing.assert_array_equal(views.mask, mask[1][views.sample_ids.astype(int)].astype(bool))
        complete = hide_otherwise(source, "published masks of complete samples", (0.1,))
        views, _ = hidden(load("a", path), complete.cells[0], 0)
        np.testing.assert_array_equal(views.mask, masks(1, n_views=3)[0][views.sample_ids.astype(int)].astype(bool))
        with pytest.raises(DataFileError, match=r"no masks 'few_views/ring'.* there are: few_views/chain"):
            hide_otherwise(source, "few_views/ring", (0.0,))

    def test_damaged_masks(self, tmp_path):
        path = save(tmp_path / "a.npz", n_views=3)
        (tmp_path / "masks").mkdir()
        (tmp_path / "masks" / "a_few_views.npz").write_bytes(b"damaged")
        with pytest.raises(DataFileError, match="a_few_views.npz' cannot be read"):
            load("a", path)

    def test_natural_gaps_and_protocols_that_need_complete_views(self, tmp_path):
        whole = read_source("a", save(tmp_path / "a.npz", n_views=3))
        with_gaps = read_source("b", save(tmp_path / "b.npz", n_views=3, mask=gaps()))
        assert hide_otherwise(with_gaps, "by nature", (0.0,)).cells == [LeagueCell("b", "by nature", 0.0)]
        with pytest.raises(DataFileError, match="none is missing by nature"):
            hide_otherwise(whole, "by nature", (0.0,))
        with pytest.raises(DataFileError, match="'completer' needs complete views"):
            hide_otherwise(with_gaps, "completer", (0.5,))

    def test_views_are_chosen_by_their_numbers_of_features(self, tmp_path):
        path = save(tmp_path / "a.npz", n_views=3)
        source = read_source("a (8+6)", path, (8, 6))
        loaded = load(source.name, source.path, source.widths)
        assert loaded.data.views.n_features == (8, 6)
        np.testing.assert_array_equal(loaded.data.views.matrices[1], load("a", path).data.views.matrices[0])
        task = all_tasks([source], [ENTRANTS["Concat"]], 1, False)[0]
        (run,) = LeagueWork({source.name: path}, "1", {source.name: source.widths}).run(task)
        assert run.status == "done"
        with pytest.raises(DataFileError, match="no view of 9 features; the views have 6, 7, 8"):
            read_source("a (9+6)", path, (9, 6))


class TestFile:
    def test_what_the_columns_say(self, tmp_path):
        path = write(
            tmp_path / "f.csv",
            figure("completer", "0.5", "2 (6+8)", how_chosen="epoch by true accuracy", ari=""),
            figure("random proper subset", "0.3", "2 (8,6)", how_chosen="settings per data set"),
            figure("share of samples loses views", "0.7", how_chosen="10x10 grid by labels"),
            figure("mean over 0.1 to 0.9 missing", "", method="M with missing views really masked"),
            figure("complete10", "0.1 complete", note="as released it reads missing views: 86.0"),
            figure("few_views/chain", "", note="mask 1"),
            figure("by nature", ""),
        )
        figures = read_figures(path, pytest.fail)
        assert [one.widths for one in figures[:3]] == [(6, 8), (8, 6), ()]
        assert [one.source for one in figures[:3]] == ["a (6+8)", "a (8+6)", "a"]
        assert [(one.hiding, one.rates) for one in figures] == [
            ("completer", (0.5,)),
            ("random proper subset", (0.3,)),
            ("share of samples loses views", (0.7,)),
            ("random proper subset", (0.1, 0.3, 0.5, 0.7, 0.9)),
            ("published masks of complete samples", (0.1,)),
            ("few_views/chain", (0.0,)),
            ("by nature", (0.0,)),
        ]
        labels = [one.chosen_by_labels for one in figures]
        assert labels == ["yes", "per data set", "yes", *["not stated"] * 4]
        assert [one.reads_missing for one in figures[3:6]] == ["no", "yes", "not stated"]
        assert [one.mask for one in figures] == [None] * 5 + [1, None]
        assert figures[0].printed == {"acc": 50.0}

    def test_explicit_columns_come_first(self, tmp_path):
        columns = (*COLUMNS, "chosen_by_labels", "reads_missing")
        row = figure(how_chosen="grid by labels", chosen_by_labels="no", reads_missing="yes")
        (found,) = read_figures(write(tmp_path / "f.csv", row, columns=columns), pytest.fail)
        assert (found.chosen_by_labels, found.reads_missing) == ("no", "yes")

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            (figure("leave one out"), "protocol 'leave one out' is unknown. Choose among: completer"),
            (figure(rate=""), "rate must be a number from 0 to 1; got ''"),
            (figure(rate="50"), "rate must be a number from 0 to 1; got '50'"),
            (figure(acc="high"), "acc must be a number from 0 to 100; got 'high'"),
            (figure(views="two"), "views must be a number of views"),
            (figure(views="2 (6+7+8)"), "views must be a number of views"),
            (figure(views="2"), "a, 1 figure: It has 3 views, the figure 2."),
            (figure(views="2 (6+9)"), "There is no view of 9 features"),
            (figure(rate="0.9"), "would leave at least"),
            (figure("few_views/star", ""), "no masks 'few_views/star'"),
            (figure(data="b"), "b, 1 figure: There is no b.npz in the data folder"),
        ],
    )
    def test_rows_that_cannot_be_run_are_left_out_with_a_line(self, tmp_path, row, message):
        save(tmp_path / "a.npz", n_views=3)
        path, said = write(tmp_path / "f.csv", row, figure()), []
        assert len(plan_published(path, (), tmp_path, said.append).figures) == 1
        assert len(said) == 1
        assert message in said[0]
        with pytest.raises(ParameterError, match="No figure of 'f.csv' can be compared"):
            plan_published(write(path, row), (), tmp_path, said.append)

    def test_equal_cells_are_run_once(self, tmp_path):
        save(tmp_path / "a.npz", n_views=3)
        path = write(tmp_path / "f.csv", figure(), figure(method="N"), figure(rate="0.1"), figure("completer"))
        plan = plan_published(path, (), tmp_path, pytest.fail)
        assert [(source.hiding, source.rates) for source in plan.sources] == [
            ("random", (0.1, 0.2)),
            ("completer", (0.2,)),
        ]

    def test_the_shared_file_is_understood(self):
        folder = Path(os.environ.get("GAPVIEW_DATA", "missing"))
        path = folder.parent / "published.csv"
        if not path.is_file():
            pytest.skip("GAPVIEW_DATA has no published.csv beside it")
        said = []
        plan = plan_published(path, (), folder, said.append)
        assert len(plan.figures) == len(rows(path)) - sum(row["data"] == "pbmc_mosaic" for row in rows(path))
        assert [line.split(",")[0] for line in said] == ["pbmc_mosaic"]


def run(*arguments):
    return CliRunner().invoke(main, ["league", *map(str, arguments)], env={"GAPVIEW_DATA": None})


def test_the_table(tmp_path):
    save(tmp_path / "a.npz", n_views=3)
    few_views(tmp_path)
    path = write(
        tmp_path / "f.csv",
        figure("few_views/chain", "", year="2025", nmi_arithmetic="40.5", note="mask 1", how_chosen="grid by labels"),
        figure("mean over 0.1 to 0.9 missing", "", "2 (6+8)"),
        figure(data="b"),
    )
    options = ("--published", path, "--data-dir", tmp_path, "--methods", "Concat,GRMF", "--seeds", 3, "--jobs", 1)
    out = tmp_path / "out"
    result = run(*options, "-o", out)
    assert result.exit_code == 0, result.output
    assert {file.name for file in out.iterdir()} == {"runs.csv", "published.csv", "published.md", "run.json"}
    assert "Left out  b, 1 figure: There is no b.npz" in result.output
    assert "a: all but 2 of 3 seeds" in result.output
    assert "ACC       a, few_views/chain: M (2025) 50.0; here GRMF " in result.output
    assert "of 2 printed figures" in result.output

    runs, table = rows(out / "runs.csv"), rows(out / "published.csv")
    assert len(runs) == 2 * (2 + 5 * 3)
    here = [(row["method_here"], row["n_seeds_here"]) for row in table]
    assert here == [("GRMF", "2"), ("Concat", "2"), ("GRMF", "3"), ("Concat", "3")]
    first, mean = table[1], table[3]
    own = [run for run in runs if run["method"] == "Concat"]
    chain = {run["seed"]: 100 * float(run["accuracy"]) for run in own if run["hiding"] == "few_views/chain"}
    assert float(first["acc_here"]) == pytest.approx(np.mean(list(chain.values())), abs=1e-3)
    assert float(first["acc_difference"]) == pytest.approx(np.mean(list(chain.values())) - 50, abs=1e-3)
    assert float(first["acc_on_mask"]) == pytest.approx(chain["1"], abs=1e-3)
    assert float(first["acc_standard_error"]) == pytest.approx(abs(chain["0"] - chain["1"]) / 2, abs=1e-3)
    over_rates = [
        np.mean([100 * float(run["accuracy"]) for run in own if run["data"] == "a (6+8)" and run["seed"] == seed])
        for seed in "012"
    ]
    assert float(mean["acc_here"]) == pytest.approx(np.mean(over_rates), abs=1e-3)
    assert float(mean["acc_standard_error"]) == pytest.approx(np.std(over_rates, ddof=1) / 3**0.5, abs=1e-3)

    text = (out / "published.md").read_text()
    assert "| a | 3 | few_views/chain | M (2025) | 50.0 | 40.5 |  | yes | not stated | " in text
    assert f"grid by labels; mask 1; GRMF on mask 1 alone: ACC {float(table[0]['acc_on_mask']):.1f} (" in text
    assert "| a | 2 (6+8) | mean over 0.1 to 0.9 missing | M |" in text
    assert "NMI divides by the arithmetic mean" in text
    assert "mean over the rates 0.1, 0.3, 0.5, 0.7, 0.9, read as shares of the samples" in text
    assert "* b, 1 figure" in text
    assert "--published f.csv --methods Concat,GRMF --seeds 3" in text
    assert str(tmp_path) not in text + (out / "run.json").read_text()

    kept = {file.name: file.read_bytes() for file in out.iterdir()}
    assert "0 done now" in run(*options, "-o", out).output
    assert {file.name: file.read_bytes() for file in out.iterdir()} == kept
    write(path, figure("few_views/chain", "", acc="60"))
    assert "0 done now" in run(*options, "-o", out).output
    assert [row["acc"] for row in rows(out / "published.csv")] == ["60", "60"]


def test_by_default_ours_on_the_data_named(tmp_path):
    save(tmp_path / "a.npz", n_views=3)
    data = save(tmp_path / "b.npz", n_views=3)
    path = write(tmp_path / "f.csv", figure(), figure(data="b"))
    request = LeagueRequest(tmp_path / "out", None, (str(data),), n_seeds=1, n_jobs=1, published=path)
    outcome = run_league(request, lambda *numbers: None, pytest.fail)
    (one,) = outcome.comparisons
    assert (one.figure.source, [here.method for here in one.here], one.here[0].n_seeds) == ("b", ["BridgedGRMF"], 1)
    assert np.isnan(one.here[0].error["acc"])


def test_a_method_that_fails_is_absent(tmp_path):
    save(tmp_path / "a.npz", n_views=3)
    path = write(tmp_path / "f.csv", figure())
    request = LeagueRequest(tmp_path / "out", tmp_path, methods=("KernelCompletion",), n_seeds=2, published=path)
    outcome = run_league(request, lambda *numbers: None, pytest.fail)
    assert "2 runs failed: it needs a complete view" in outcome.comparisons[0].here[0].problem
    assert "absent 2 runs failed" in (tmp_path / "out" / "published.md").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--published", "{folder}/none.csv"], "does not exist"),
        (["--published", "{folder}/short.csv"], "'short.csv' lacks the column 'protocol'. Expected: data, views"),
        (["--published", "{folder}/empty.csv"], "lacks the column 'data'. Expected: data, views"),
        (["--published", "{folder}/bytes.csv"], "cannot be read as CSV"),
        (["--published", "{folder}/f.csv", "--complete-view"], "Leave --complete-view out"),
        (["--published", "{folder}/f.csv", "--rates", "0.5"], "Leave --rates out"),
        (["--published", "{folder}/f.csv", "--tuned"], "Leave --tuned out"),
        (["--published", "{folder}/f.csv", "--quick"], "Leave --quick out"),
        (["--published", "{folder}/f.csv", "--data", "c"], "has no figures for the data 'c'. Choose among: a."),
        (["--published", "{folder}/published.csv", "-o", "{folder}"], "would replace 'published.csv'"),
    ],
)
def test_bad_input(tmp_path, options, message):
    save(tmp_path / "a.npz", n_views=3)
    for name in ("f.csv", "published.csv"):
        write(tmp_path / name, figure())
    write(tmp_path / "short.csv", figure(), columns=("data", "views"))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00data")
    places = [option.format(folder=tmp_path) for option in options]
    result = run("--data-dir", tmp_path, "-o", tmp_path / "out", *places)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "runs.csv").exists()


def test_without_a_folder_nothing_is_run(tmp_path):
    result = run("--published", write(tmp_path / "f.csv", figure()), "-o", tmp_path / "out")
    assert "Name their folder with --data-dir or GAPVIEW_DATA" in result.output


def test_runs_of_files_without_the_arithmetic_nmi_are_kept(tmp_path):
    source = read_source("a", save(tmp_path / "a.npz"))
    task = all_tasks([source], [ENTRANTS["Concat"]], 1, False)[0]
    (record,) = LeagueWork({"a": source.path}, __version__).run(task)
    views, target = hidden(load("a", source.path), task.cell, 0)
    labels = ENTRANTS["Concat"].make(3, random_state=0).fit(views).labels_
    assert record.nmi_arithmetic == pytest.approx(normalized_mutual_info_score(target, labels))

    path = tmp_path / "runs.csv"
    LeagueStore(path, __version__, 60).add([record])
    place = rows(path)[0]
    place.pop("nmi_arithmetic")
    write(path, place, columns=tuple(place))
    store = LeagueStore(path, __version__, 60)
    assert store.done() == {task}
    assert np.isnan(store.records[0].nmi_arithmetic)
    store.add([replace(record, seed=1)])
    assert [row["nmi_arithmetic"] for row in rows(path)] == ["nan", str(record.nmi_arithmetic)]
    place.pop("ari")
    write(path, place, columns=tuple(place))
    with pytest.raises(DataFileError, match="its columns differ"):
        LeagueStore(path, __version__, 60)
