"""The league: which data and methods take part, and what a run leaves behind."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from gapview import GRMF, BridgedGRMF
from gapview.datasets import make_views, paired_split
from gapview.errors import GapviewError, MissingExtraError, ParameterError
from gapview.metrics import clustering_scores
from gapview_lab.league import rivals
from gapview_lab.league.data import LeagueCell, find_sources, hidden, load, read_source
from gapview_lab.league.entrants import ENTRANTS, N_SETTINGS, Entrant, choose_entrants
from gapview_lab.league.runs import SCORES, LeagueWork, all_tasks
from league_problems import folds, gaps, masks, save


class TestData:
    @pytest.mark.parametrize(
        ("contents", "hiding", "rates", "n_published"),
        [
            ({"folds": folds()}, "paired", (0.1, 0.3, 0.5, 0.7, 0.9), 3),
            ({"miss20": masks(), "miss10": masks(4)}, "published masks", (0.1, 0.2), 2),
            ({"folds": folds(), "miss10": masks()}, "paired", (0.1, 0.3, 0.5, 0.7, 0.9), 3),
            ({}, "paired", (0.1, 0.5, 0.9), None),
            ({"n_views": 3}, "random", (0.1, 0.3, 0.5), None),
            ({"n_views": 3, "folds": folds()}, "random", (0.1, 0.3, 0.5), None),
            ({"n_views": 3, "mask": gaps()}, "by nature", (0.0, 0.3), None),
        ],
    )
    def test_how_views_are_hidden_follows_from_what_a_file_holds(self, tmp_path, contents, hiding, rates, n_published):
        source = read_source("any", save(tmp_path / "any.npz", **contents))
        assert (source.hiding, source.rates, source.n_published) == (hiding, rates, n_published)
        loaded = load("any", source.path)
        for cell, seed in product(source.cells, (0, 1)):
            views, target = hidden(loaded, cell, seed)
            assert views.mask.any(axis=1).all()
            again, _ = hidden(loaded, cell, seed)
            np.testing.assert_array_equal(views.mask, again.mask)
            np.testing.assert_array_equal(target, loaded.target[views.sample_ids.astype(int)])
        assert not np.array_equal(views.sample_ids, hidden(loaded, cell, 0)[0].sample_ids)

    def test_the_papers_protocol_with_published_folds(self, tmp_path):
        path = save(tmp_path / "a.npz", folds=folds())
        loaded = load("a", path)
        views, target = hidden(loaded, LeagueCell("a", "paired", 0.3), 2)
        order = folds()[2]
        expected = paired_split(loaded.data.views, 0.3, order=order)
        np.testing.assert_array_equal(views.mask, expected.mask[order])
        np.testing.assert_array_equal(target, loaded.target[order])
        assert views.mask.all(axis=1).sum() == 12

    def test_the_first_view_may_be_kept_complete(self, tmp_path):
        source = read_source("any", save(tmp_path / "any.npz", n_views=3)).with_complete_view()
        loaded = load("any", source.path)
        for cell in source.cells:
            views, target = hidden(loaded, cell, 1)
            assert views.mask[:, 0].all()
            assert not views.mask[:, 1:].all(axis=0).any()
            np.testing.assert_array_equal(target, loaded.target[views.sample_ids.astype(int)])
        assert abs(views.mask[:, 1:].mean() - 0.3) < 0.15

    def test_published_masks_are_used_as_they_are(self, tmp_path):
        loaded = load("a", save(tmp_path / "a.npz", miss20=masks()))
        views, _ = hidden(loaded, LeagueCell("a", "published masks", 0.2), 1)
        np.testing.assert_array_equal(views.mask, masks()[1][views.sample_ids.astype(int)].astype(bool))

    def test_seeds_beyond_the_published_masks_give_them_to_other_samples(self, tmp_path):
        loaded = load("a", save(tmp_path / "a.npz", miss20=masks(3)))
        cell, published = LeagueCell("a", "published masks", 0.2), {mask.astype(bool).tobytes() for mask in masks(3)}
        found = []
        for seed in range(8):
            views, target = hidden(loaded, cell, seed)
            rows = views.sample_ids.astype(int)
            mask = np.empty_like(views.mask)
            mask[rows] = views.mask
            found.append(mask)
            np.testing.assert_array_equal(target, loaded.target[rows])
        assert [mask.tobytes() in published for mask in found] == [True] * 3 + [False] * 5
        assert len({mask.tobytes() for mask in found}) == 8
        patterns = [np.sort(mask @ [1, 2]).tolist() for mask in found]
        assert patterns == [patterns[seed % 3] for seed in range(8)]  # as many samples with the same views

    def test_seeds_beyond_the_published_folds_draw_their_own(self, tmp_path):
        loaded = load("a", save(tmp_path / "a.npz", folds=folds()))
        orders = [hidden(loaded, LeagueCell("a", "paired", 0.3), seed)[0].sample_ids.astype(int) for seed in range(5)]
        np.testing.assert_array_equal(orders[:3], folds())
        assert len({order.tobytes() for order in orders}) == 5
        assert all((np.sort(order) == np.arange(40)).all() for order in orders)

    def test_missing_by_nature_as_it_is_and_with_more_hidden(self, tmp_path):
        loaded = load("a", save(tmp_path / "a.npz", n_views=3, mask=gaps()))
        as_it_is, _ = hidden(loaded, LeagueCell("a", "by nature", 0.0), 0)
        more, _ = hidden(loaded, LeagueCell("a", "by nature", 0.3), 0)
        assert as_it_is.mask.sum(axis=0).tolist() == [30, 40, 40]
        assert more.mask.sum(axis=0).tolist() == [21, 28, 28]
        single = np.eye(2, dtype=np.uint8)[np.arange(40) % 2]  # nothing can be hidden from samples that have one view
        assert read_source("b", save(tmp_path / "b.npz", mask=single)).rates == (0.0,)

    def test_a_folder_is_searched_and_what_cannot_be_used_is_said(self, tmp_path):
        save(tmp_path / "good.npz")
        save(tmp_path / "digits.npz")
        save(tmp_path / "nolabel.npz", labels=False)
        save(tmp_path / "single.npz", n_views=1)
        save(tmp_path / "badfolds.npz", folds=np.zeros((2, 40), dtype=int))
        save(tmp_path / "badmask.npz", miss10=np.zeros((1, 40, 2)))
        (tmp_path / "damaged.npz").write_bytes(b"damaged")
        said = []
        names = [source.name for source in find_sources(tmp_path, said.append)]
        assert names == ["good", "digits", "made-two-views", "made-four-views", "made-wide"]
        assert len(said) == 6
        for part in ("holds no labels", "one view", "permutation", "masks of shape", "cannot be read", "rename"):
            assert part in "".join(said)

    def test_other_contents_are_other_data(self, tmp_path):
        first = read_source("a", save(tmp_path / "a.npz"))
        (tmp_path / "b").mkdir()
        assert read_source("a", save(tmp_path / "b" / "a.npz")).fingerprint == first.fingerprint
        assert read_source("a", save(tmp_path / "b" / "c.npz", n_samples=41)).fingerprint != first.fingerprint
        assert read_source("a", save(tmp_path / "b" / "d.npz", folds=folds())).fingerprint != first.fingerprint


class TestEntrants:
    def test_equal_grids(self):
        fewer = {"BestSingleView": 8, "Concat": 4, "BridgedGRMF": 1}  # those that have no more that matters
        for name, entrant in ENTRANTS.items():
            assert entrant.settings[0] == "{}"
            assert len(set(entrant.settings)) == len(entrant.settings) == fewer.get(name, N_SETTINGS), name
        assert [name for name, entrant in ENTRANTS.items() if entrant.is_ours] == ["BridgedGRMF", "BridgedGRMF-fixed"]

    def test_the_fixed_setting_of_ours_is_the_first_of_those_tried(self):
        views = make_views(60, n_clusters=2, missing_rate=0.2, random_state=0).views
        default = BridgedGRMF(2, selection="fixed", random_state=0).fit(views)
        spelled = BridgedGRMF(2, selection="fixed", bridge="both", reach=4, scale="auto", random_state=0).fit(views)
        assert default.setting_ == spelled.setting_

    def test_every_setting_is_one_that_the_method_has(self):
        for entrant in ENTRANTS.values():
            for setting in entrant.tried:
                own = {key: value for key, value in setting.items() if key != "view"}
                if not issubclass(entrant.make, rivals.Rival):
                    entrant.make(3, random_state=0, **entrant.options, **own).check_parameters()

    def test_without_labels_every_method_runs_at_its_defaults(self):
        changed = {name: dict(entrant.options) for name, entrant in ENTRANTS.items() if entrant.options}
        shift = {"nonnegative": "shift"}
        allowed = {"DCNMF": shift, "GPMVC": shift, "MIC": shift, "BridgedGRMF-fixed": {"selection": "fixed"}}
        assert changed.items() <= allowed.items()

    def test_unknown_methods(self):
        with pytest.raises(ParameterError, match=r"no method 'KMeans'.*BridgedGRMF, .*GRMF, BestSingleView"):
            choose_entrants(["GRMF", "KMeans"], print)

    def test_a_rival_that_is_not_installed(self, monkeypatch):
        monkeypatch.setattr(rivals, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"'imml'.*gapview-lab\[rivals\]"):
            choose_entrants(["NEMO"], print)
        with pytest.raises(GapviewError, match=r"'snfpy'.*scikit-learn<1.8"):
            choose_entrants(["SNF"], print)
        said = []
        names = [entrant.name for entrant in choose_entrants([], said.append)]
        assert "GRMF" in names
        assert {"PIMVC", "NEMO", "EEIMVC", "MOFA", "SNF"}.isdisjoint(names)
        assert len(said) == 5

    @pytest.mark.filterwarnings("ignore")  # other people's programs
    @pytest.mark.parametrize("name", ["PIMVC", "NEMO", "EEIMVC", "MOFA", "SNF"])
    def test_rivals_find_groups_that_are_plain_to_see(self, name):
        entrant = ENTRANTS[name]
        if entrant.make.why_not() is not None:
            pytest.skip(str(entrant.make.why_not()))
        data = make_views(150, (20, 30), n_clusters=3, missing_rate=0.3, random_state=0)
        model = entrant.make(3, random_state=0).fit(data.views)
        assert GRMF(3, random_state=0).fit(data.views).labels_.shape == model.labels_.shape
        scores = [np.unique(model.labels_[data.target == group], return_counts=True)[1].max() for group in range(3)]
        assert sum(scores) > 140
        np.testing.assert_array_equal(entrant.make(3, random_state=0).fit(data.views).labels_, model.labels_)


def task_of(tmp_path, method="GRMF", setting="{}", seed=0):
    source = read_source("a", save(tmp_path / "a.npz"))
    task = next(task for task in all_tasks([source], [ENTRANTS[method]], 5, False) if task.seed == seed)
    return replace(task, setting=setting), LeagueWork({"a": source.path}, "1")


class TestRuns:
    def test_a_run_is_scored(self, tmp_path):
        task, work = task_of(tmp_path, seed=3)
        (run,) = work.run(task)
        views, target = hidden(load("a", tmp_path / "a.npz"), task.cell, 3)
        labels = GRMF(3, random_state=3).fit(views).labels_
        assert {name: getattr(run, name) for name in SCORES} == clustering_scores(target, labels)
        assert run.status == "done"
        assert run.seconds > 0
        assert run.task == task

    def test_the_seed_and_the_number_of_groups_reach_the_method(self, tmp_path, monkeypatch):
        seen = []

        class Spy(GRMF):
            def fit(self, views):
                seen.append((self.n_clusters, self.random_state, self.sparsity_weight, self.tol))
                return super().fit(views)

        monkeypatch.setitem(ENTRANTS, "GRMF", Entrant("GRMF", Spy, options={"tol": 0.5}))
        task, work = task_of(tmp_path, setting='{"sparsity_weight": 0.25}', seed=3)
        work.run(task)
        assert seen == [(3, 3, 0.25, 0.5)]

    def test_failures_are_recorded(self, tmp_path, monkeypatch):
        task, work = task_of(tmp_path, "PVC", '{"sparsity_weight": 1000000.0}')
        (run,) = work.run(task)
        assert "shrunk to zero" in run.status
        assert np.isnan(run.accuracy)

        class Broken(GRMF):
            def fit(self, views):
                raise ZeroDivisionError("by\nnothing")

        monkeypatch.setitem(ENTRANTS, "GRMF", Entrant("GRMF", Broken))
        task, work = task_of(tmp_path)
        assert work.run(task)[0].status == "ZeroDivisionError: by nothing"

    def test_the_best_view_by_labels_is_a_setting_like_others(self, tmp_path):
        task, work = task_of(tmp_path, "BestSingleView")
        peeked = work.run(replace(task, setting='{"view": "by labels"}'))[0]
        assert peeked.accuracy >= work.run(task)[0].accuracy

    def test_a_method_that_needs_a_complete_view(self, tmp_path):
        task, work = task_of(tmp_path, "KernelCompletion")
        (run,) = work.run(task)
        assert run.status == "it needs a complete view, and every view has gaps"
        source = read_source("b", save(tmp_path / "b.npz", n_views=3, mask=gaps()))  # two views are complete
        task = all_tasks([source], [ENTRANTS["KernelCompletion"]], 1, False)[0]
        (run,) = LeagueWork({"b": source.path}, "1").run(task)
        assert (run.rate, run.status) == (0.0, "done")

    def test_tuning_multiplies_the_runs(self, tmp_path):
        source = read_source("a", save(tmp_path / "a.npz", folds=folds()))
        entrants = [ENTRANTS["GRMF"], ENTRANTS["Concat"]]
        assert len(all_tasks([source], entrants, 2, False)) == 5 * 2 * 2
        assert len(all_tasks([source], entrants, 5, True)) == 5 * 5 * (12 + 4)  # three folds are published, two drawn
