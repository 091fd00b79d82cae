"""What the runs of the league sum up to, against versions written from the definitions."""

from __future__ import annotations

import numpy as np
import pytest

from gapview.report.page import Page, Section
from gapview_lab.common.markdown import render_markdown
from gapview_lab.league.data import LeagueCell
from gapview_lab.league.findings import answer
from gapview_lab.league.summary import bootstrap_interval
from gapview_lab.league.tables import held_out_table
from league_problems import league_of


@pytest.fixture(scope="module")
def random_league():
    rng = np.random.RandomState(0)
    places = [("a", 0.1), ("a", 0.5), ("b", 0.1), ("c", 0.1), ("c", 0.5), ("c", 0.9)]
    methods = ("Ours", "Ours-fixed", "First", "Second")
    scores = {(*place, method, "{}"): rng.uniform(size=3) for place in places for method in methods}
    failed = {("c", 0.5, "Second", 1), ("b", 0.1, "First", 0), ("c", 0.9, "First", 2)}
    return scores, league_of(scores, failed), places, methods


class TestSummary:
    def test_means_are_over_cells_in_which_all_ran(self, random_league):
        scores, summary, places, methods = random_league
        shared = [place for place in places if place not in (("c", 0.5), ("b", 0.1), ("c", 0.9))]
        assert [(cell.data, cell.rate) for cell in summary.common.cells] == shared
        means = {m: 100 * np.mean([np.mean(scores[(*place, m, "{}")]) for place in shared]) for m in methods}
        assert {place.method: place.mean["accuracy"] for place in summary.common.places} == pytest.approx(means)
        assert [place.method for place in summary.common.places] == sorted(methods, key=lambda name: -means[name])
        nmi = 100 * np.mean([np.mean(scores[(*place, "First", "{}")] ** 2) for place in shared])
        first = next(place for place in summary.common.places if place.method == "First")
        assert first.mean["nmi"] == pytest.approx(nmi)
        by_data = [[np.mean(scores[(*p, "First", "{}")]) for p in shared if p[0] == data] for data in ("a", "c")]
        assert first.mean_by_data == pytest.approx(100 * np.mean([np.mean(values) for values in by_data]))
        ranks, best = [], 0
        for place in shared:
            order = sorted(methods, key=lambda m: -np.mean(scores[(*place, m, "{}")]))
            ranks.append(1 + order.index("First"))
            best += order[0] == "First"
        assert first.mean_rank == pytest.approx(np.mean(ranks))
        assert first.n_best == best

    def test_methods_that_ran_everywhere_over_all_cells(self, random_league):
        scores, summary, places, _ = random_league
        assert len(summary.steady.cells) == 6
        mean = 100 * np.mean([np.mean(scores[(*place, "Ours", "{}")]) for place in places])
        found = {place.method: place.mean["accuracy"] for place in summary.steady.places}
        assert set(found) == {"Ours", "Ours-fixed"}
        assert found["Ours"] == pytest.approx(mean)

    def test_a_method_that_failed_with_one_seed_is_absent(self, random_league):
        scores, summary, _, _ = random_league
        absent = summary.scores[LeagueCell("c", "paired", 0.5), "Second"]
        assert not absent.mean
        assert absent.problem == "failed in 1 of 3 runs: no luck"
        there = summary.scores[LeagueCell("a", "paired", 0.1), "Second"]
        assert there.spread["accuracy"] == pytest.approx(100 * np.std(scores["a", 0.1, "Second", "{}"]))
        assert there.seconds == pytest.approx(np.mean(scores["a", 0.1, "Second", "{}"]))

    def test_differences_are_over_the_cells_of_both(self, random_league):
        scores, summary, places, _ = random_league
        assert summary.ours == "Ours"
        assert {one.rival for one in summary.differences} == {"First", "Second"}  # ours is no rival of ours
        both = [place for place in places if place != ("c", 0.5)]
        points = [100 * np.mean(scores[(*p, "Ours", "{}")] - scores[(*p, "Second", "{}")]) for p in both]
        one = next(d for d in summary.differences if d.rival == "Second" and d.score == "accuracy")
        assert one.mean == pytest.approx(np.mean(points))
        assert (one.n_cells, one.n_data) == (5, 3)
        assert (one.n_ahead, one.n_behind) == (sum(p > 0 for p in points), sum(p < 0 for p in points))
        drawn = np.random.RandomState(0).randint(3, size=(10_000, 3))
        groups = [points[:2], points[2:3], points[3:]]
        means = [np.mean([point for k in row for point in groups[k]]) for row in drawn]
        assert (one.low, one.high) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])))

    def test_intervals_draw_data_sets_and_not_cells(self):
        points = np.array([1.0] * 50 + [-1.0] * 50)
        low, high = bootstrap_interval(points, ["a"] * 50 + ["b"] * 50, 0)
        assert (low, high) == (-1, 1)
        assert np.isnan(bootstrap_interval(points, ["a"] * 100, 0)).all()

    def test_leads_over_the_best_rival_of_a_cell(self, random_league):
        scores, summary, _, _ = random_league
        leads = summary.leads_in("accuracy")
        assert [lead.points for lead in leads] == sorted(lead.points for lead in leads)
        rivals = {("b", 0.1): ["Second"], ("c", 0.9): ["Second"], ("c", 0.5): ["First"]}
        for lead in leads:
            place = (lead.cell.data, lead.cell.rate)
            means = {m: 100 * np.mean(scores[(*place, m, "{}")]) for m in rivals.get(place, ["First", "Second"])}
            assert lead.theirs == pytest.approx(max(means.values()))
            assert lead.ours == pytest.approx(100 * np.mean(scores[(*place, "Ours", "{}")]))
        assert len(leads) == 6

    def test_the_first_half_of_the_seeds_chooses_the_rival_of_the_second(self):
        scores = {
            ("a", 0.1, "Ours", "{}"): [0.0, 0.0, 0.5, 0.6, 0.7],
            ("a", 0.1, "First", "{}"): [0.5, 0.7, 0.1, 0.2, 0.3],  # best with seeds 0 and 1: 0.6, and 0.36 overall
            ("a", 0.1, "Second", "{}"): [0.5, 0.5, 0.9, 0.9, 0.9],  # best with seeds 2 to 4 and overall
            ("b", 0.1, "Ours", "{}"): [0.5, 0.5, 0.3, 0.3, 0.3],
            ("b", 0.1, "First", "{}"): [0.4, 0.4, 0.3, 0.4, 0.5],
            ("b", 0.1, "Second", "{}"): [0.0, 0.0, 0.0, 0.0, 0.0],
        }
        summary = league_of(scores)
        assert {lead.cell.data: lead.rival for lead in summary.leads_in("accuracy")} == {"a": "Second", "b": "First"}
        found = {cell.data: one for cell, one in summary.held_out("accuracy").items()}
        assert list(found) == ["b", "a"]  # the worst first
        assert (found["a"].rival, found["a"].ours, found["a"].theirs) == ("First", pytest.approx(60), pytest.approx(20))
        assert (found["a"].points, found["a"].error) == (pytest.approx(40), pytest.approx(0, abs=1e-9))
        assert found["b"].points == pytest.approx(-10)
        assert found["b"].error == pytest.approx(10 / np.sqrt(3))
        assert not found["b"].is_behind_by(2)  # 2 points and two standard errors are 13.5
        assert summary.held_out("nmi")[LeagueCell("a", "paired", 0.1)].theirs == pytest.approx(100 * 0.14 / 3)
        assert summary.held_out("ari")[LeagueCell("a", "paired", 0.1)].ours == pytest.approx(30)

    def test_a_clear_loss_is_named_with_its_share(self):
        scores = {("a", 0.1, "Ours", "{}"): [0.5] * 4, ("a", 0.1, "First", "{}"): [0.6, 0.5, 0.55, 0.53]}
        scores |= {("b", r, m, "{}"): [0.9 if m == "Ours" else 0.8] * 4 for r in (0.1, 0.3) for m in ("Ours", "First")}
        summary = league_of(scores)
        assert [one.is_behind_by(2) for one in summary.held_out("accuracy").values()] == [False, False, False]
        scores["a", 0.1, "First", "{}"] = [0.6, 0.6, 0.54, 0.55]  # 4.5 points, standard error 0.5
        text = " ".join(answer(league_of(scores)))
        assert "Ours has a mean lead of +5.2 points in ACC, " in text
        assert "points in ARI, over 3 cells. In ACC it is behind by more than 2 points and two standard errors" in text
        assert "two standard errors in 1 of 3 cells (33 %): a, 10 % paired. In NMI it is" in text
        assert "In ARI it is behind by more than 2 points and two standard errors in 0 of 3 cells (0 %)." in text
        table = render_markdown(Page("T", (), (Section("S", (held_out_table(league_of(scores)),)),), ""))
        assert "| a, 10 % paired | 50.0 | 54.5 First | −4.5 ‡ ±0.5 |" in table
        assert "| b, 30 % paired | 90.0 | 80.0 First | +10.0 ±0.0 |" in table

    def test_with_few_seeds_every_seed_is_compared_with_the_rival_of_the_others(self):
        scores = {
            ("a", 0.1, "Ours", "{}"): [0.5, 0.6, 0.7],
            ("a", 0.1, "First", "{}"): [0.9, 0.1, 0.1],  # best with seed 0 only, so that it is never compared there
            ("a", 0.1, "Second", "{}"): [0.4, 0.5, 0.4],
        }
        one = league_of(scores).held_out("accuracy")[LeagueCell("a", "paired", 0.1)]
        points = np.array([50 - 40, 60 - 10, 70 - 10])  # Second has 0.9 and First 0.2 without seed 0; First 1.0 else
        assert one.points == pytest.approx(points.mean())
        assert one.error == pytest.approx(points.std(ddof=1) / np.sqrt(3))
        assert one.rival == "Second, First"
        assert "a mean lead of +40.0 points in ACC" in " ".join(answer(league_of(scores)))
        alone = league_of({key: values[:1] for key, values in scores.items()})
        assert not alone.held_out("accuracy")
        assert "other seeds" not in " ".join(answer(alone))

    def test_labels_choose_by_mean_accuracy_within_a_cell(self):
        good, bad = '{"k": 1}', '{"k": 2}'
        scores = {
            ("a", 0.1, "Ours", "{}"): [0.5, 0.5],
            ("a", 0.1, "Ours", good): [0.4, 0.9],
            ("a", 0.1, "Ours", bad): [0.99, 0.0],
            ("a", 0.5, "Ours", "{}"): [0.8, 0.8],
            ("a", 0.5, "Ours", good): [0.1, 0.1],
        }
        tuned = league_of(scores, tuned=True)
        first, second = (tuned.scores[LeagueCell("a", "paired", rate), "Ours"] for rate in (0.1, 0.5))
        assert (first.setting, second.setting) == (good, "{}")
        assert (first.n_settings, first.mean["accuracy"]) == (3, pytest.approx(65))
        assert league_of(scores).scores[LeagueCell("a", "paired", 0.1), "Ours"].mean["accuracy"] == pytest.approx(50)
        lucky = league_of(scores, {("a", 0.1, "Ours", 1)}, tuned=True)  # fails with one seed, whatever the setting
        assert not lucky.scores[LeagueCell("a", "paired", 0.1), "Ours"].mean

    def test_a_method_that_ran_in_few_cells_leaves_the_means_of_the_others(self):
        rates = (0.1, 0.3, 0.5, 0.7)
        scores = {("a", rate, m, "{}"): [0.5] for rate in rates for m in ("Ours", "First", "Half", "Rare", "Never")}
        failed = {("a", rate, m, 0) for m, ran in (("Half", 2), ("Rare", 1), ("Never", 0)) for rate in rates[ran:]}
        summary = league_of(scores, failed)
        assert summary.rare == {"Rare": 1, "Never": 0}
        assert {place.method for place in summary.common.places} == {"Ours", "First", "Half"}
        assert [cell.rate for cell in summary.common.cells] == [0.1, 0.3]
        assert {one.rival: one.n_cells for one in summary.differences} == {"First": 4, "Half": 2, "Rare": 1}
        text = " ".join(answer(summary))
        assert "the 2 cells of 1 data set in which all 3 methods ran" in text
        assert "in fewer than half of the cells are in none of these means: Rare (1 of 4) and Never (0 of 4)." in text
        alone = league_of(scores, failed | {("a", rate, m, 0) for m in ("Ours", "First") for rate in rates[1:]})
        assert {place.method for place in alone.common.places} == {"Half"}
        only = {key: values for key, values in scores.items() if key[2] == "Rare"}
        assert [place.method for place in league_of(only, failed).common.places] == ["Rare"]  # nothing else to rank

    def test_the_answer_is_honest_either_way(self):
        ahead = league_of(
            {
                ("a", r, m, "{}"): [v]
                for r in (0.1, 0.5)
                for m, v in (("Ours", 0.9), ("Ours-fixed", 0.89), ("First", 0.85))
            }
        )
        text = " ".join(answer(ahead))
        assert "Ours has the highest mean ACC, 90.0 (the best rival is First, 85.0)" in text
        assert "in no cell more than 2 points below" in text
        behind = league_of({("a", 0.1, "Ours", "{}"): [0.6], ("a", 0.1, "First", "{}"): [0.7]})
        text = " ".join(answer(behind))
        assert "First has the highest mean ACC, 70.0 (Ours is number 2 of 2 with 60.0)" in text
        assert "in 1 of 1 cell more than 2 points below the best rival there" in text
        assert "a, 10 % paired, 10.0 points below First (60.0 and 70.0)" in text
        failed = league_of({("a", 0.1, m, "{}"): [0.6] for m in ("Ours", "First")}, {("a", 0.1, "Ours", 0)})
        assert "No method of ours took part" in " ".join(answer(failed))
        nothing = league_of({("a", 0.1, "First", "{}"): [0.6]}, {("a", 0.1, "First", 0)})
        assert "There is no cell in which all 1 method ran" in " ".join(answer(nothing))
