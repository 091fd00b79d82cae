"""Figures and page of the reproduced paper: what they say is what the records hold."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from gapview_lab.paper.captions import descent
from gapview_lab.paper.figures import draw_figure2, draw_figure3, draw_figure4, draw_figure5
from gapview_lab.paper.findings import answer, deviations, duels, far_words, problems
from gapview_lab.paper.methods import COMPARED, NOT_RUN, as_setting
from gapview_lab.paper.page import reproduction_page
from gapview_lab.paper.published import METHODS, PAPER_DATA
from gapview_lab.paper.tables import make_tables
from gapview_lab.paper.tasks import PaperPlan, PaperRecord, figure_tasks
from pages import check_page

PLAN = PaperPlan(
    data=("handwritten", "buaa"),
    rates=(0.1, 0.5),
    n_folds=2,
    n_starts=1,
    consensus_weights=(0.1, 1.0, 100.0),
    sparsity_weights=(1e-3, 1.0),
    n_iter=4,
)
ONE = replace(PLAN, data=("buaa",))
RUN = {
    "version": "9.9",
    "seconds": 3725.0,
    "n_runs": 12,
    "n_jobs": 2,
    "machine": "a machine",
    "peak_memory_mb": 321.4,
    "finished": "2030-01-02",
}


def score(data, method, rate, accuracy, fold=0, **more):
    """Make a record of the fixed setting; scores in %."""
    values = {"accuracy": accuracy / 100, "nmi": more.pop("nmi", accuracy) / 100, "purity": accuracy / 100}
    values |= {f"best_view_{name}": value for name, value in values.items()}
    return PaperRecord("tables", data, method, as_setting(COMPARED[method].fixed), rate, fold, **(values | more))


def like_print(plan, shift=None):
    """Make records that repeat the paper's figures, shifted by so many points for some methods."""
    found = []
    for data in plan.data:
        for method in METHODS:
            for rate in plan.rates:
                accuracy, nmi = PAPER_DATA[data].printed[method][round((rate - 0.1) / 0.2)]
                more = (shift or {}).get(method, 0.0)
                for fold in range(plan.n_folds):
                    found.append(score(data, method, rate, accuracy + more, fold, nmi=nmi + more))
    return found


def figure_records(number, values, plan=PLAN):
    """Make records of a figure; ``values`` gives the ACC in % from the task."""
    return [PaperRecord(**vars(task), accuracy=values(task) / 100) for task in figure_tasks(plan, (number,))]


def steps(data, objective, accuracy=50.0):
    (task,) = [task for task in figure_tasks(PLAN, (5,)) if task.data == data]
    base = PaperRecord(**vars(task), accuracy=accuracy / 100)
    return [replace(base, iteration=place, objective=value) for place, value in enumerate(objective, start=1)]


class TestNoRecords:
    def test_nothing_to_draw(self):
        assert draw_figure2(make_tables([], PLAN)) is None
        assert draw_figure2([]) is None
        for draw in (draw_figure3, draw_figure4, draw_figure5):
            assert draw([], PLAN) is None

    def test_records_of_other_plans_and_failures_are_nothing(self):
        other = replace(PLAN, n_iter=9, consensus_weights=(7.0,))
        for number, draw in ((3, draw_figure3), (5, draw_figure5)):
            assert draw(figure_records(number, lambda task: 50.0, other), PLAN) is None
        for number, draw in ((3, draw_figure3), (4, draw_figure4), (5, draw_figure5)):
            failed = [replace(found, status="broken") for found in figure_records(number, lambda task: 50.0)]
            assert draw(failed, PLAN) is None


class TestFigure2:
    @pytest.mark.parametrize("n_data", [1, 2, 3, 4])
    def test_a_panel_for_each_data_set_and_a_line_for_each_method(self, n_data):
        plan = replace(PLAN, data=tuple(PAPER_DATA)[:n_data])
        figure = draw_figure2(make_tables(like_print(plan), plan))
        panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
        assert [axes.get_title(loc="left") for axes in panels] == [PAPER_DATA[key].title for key in plan.data]
        for axes in panels:
            assert [line.get_label() for line in axes.get_lines()] == list(METHODS)
            assert axes.get_xlabel() == "paired rate"
            assert axes.get_ylabel() == "purity (%)"

    def test_purity_is_that_of_the_records(self):
        figure = draw_figure2(make_tables([score("buaa", "PVC", 0.5, 40.0), score("buaa", "PVC", 0.5, 50.0, 1)], ONE))
        (line,) = [line for line in figure.axes[0].get_lines() if line.get_label() == "PVC"]
        assert line.get_xydata() == pytest.approx(np.array([[0.5, 45.0]]))

    def test_the_caption_counts_where_grmf_leads(self):
        assert (
            "GRMF has the highest purity at 4 of 4 points"
            in draw_figure2(make_tables(like_print(PLAN), PLAN)).get_label()
        )
        behind = make_tables(like_print(PLAN, {"PVC": 40.0}), PLAN)
        assert "at 0 of 4 points" in draw_figure2(behind).get_label()


class TestFigure3:
    def test_numbers_stand_in_the_cells_and_the_caption_names_the_best(self):
        def accuracy(task):
            return {"0.1": 30.0, "1.0": 80.0 + 4 * task.fold, "100.0": 60.0}[task.setting.split(": ")[1].split(",")[0]]

        figure = draw_figure3(figure_records(3, accuracy), PLAN)
        shown = [text.get_text() for text in figure.axes[1].texts]
        assert shown == ["30.0", "30.0", "82.0", "82.0", "60.0", "60.0"]
        assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["10⁻¹", "10⁰", "10²"]
        assert (
            "Handwritten digits: highest 82.0 at λ1 = 1, λ2 = 0.001; inside the frame from 60.0" in figure.get_label()
        )
        assert "dash" not in figure.get_label()

    def test_failures_leave_a_dash_that_the_caption_explains(self):
        records = figure_records(3, lambda task: 50.0, ONE)
        records = [replace(r, status="shrunk") if '"sparsity_weight": 1.0' in r.setting else r for r in records]
        figure = draw_figure3(records, ONE)
        assert [text.get_text() for text in figure.axes[0].texts] == ["50.0", "–"] * 3
        assert "A dash: no score there" in figure.get_label()


def test_figure_4_shows_mean_and_spread_at_both_rates():
    figure = draw_figure4(figure_records(4, lambda task: 100 * task.rate + 2 * task.fold), PLAN)
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert labels == ["50 % paired", "70 % paired"]
    assert figure.axes[1].get_lines()[0].get_ydata() == pytest.approx(51.0)
    assert figure.axes[0].get_xlabel() == "number of nearest neighbours"
    caption = figure.get_label().replace("\u00a0", " ")
    assert "BUAA-visnir faces: with 2 to 6 neighbours from 51.0 to 51.0 at 50 % paired and from 71.0" in caption


class TestFigure5:
    def test_a_falling_objective_is_said_to_fall(self):
        records = steps("handwritten", [9.0, 5.0, 4.0, 3.5]) + steps("buaa", [8.0, 4.0, 2.0, 1.0])
        figure = draw_figure5(records, PLAN)
        assert "on Handwritten digits the objective falls at every one of 3 steps" in figure.get_label()
        assert figure.get_label().endswith("This is what Theorem 1 promises.")
        notes = [text.get_text() for axes in figure.axes for text in axes.texts]
        assert "objective falls at each of 3 steps, by at least 0.5" in notes
        assert {axes.get_ylabel() for axes in figure.axes} == {"objective", "ACC (%)"}

    def test_a_rising_objective_is_said_to_rise(self):
        records = steps("handwritten", [9.0, 5.0, 4.0, 3.5]) + steps("buaa", [8.0, 4.0, 5.0, 1.0])
        figure = draw_figure5(records, PLAN)
        caption = figure.get_label()
        assert "on BUAA-visnir faces the objective rises at 1 of 3 steps, by up to 0.25 of its value" in caption
        assert "do not bear it out" in caption
        assert "promises" not in caption
        notes = [text.get_text() for axes in figure.axes for text in axes.texts]
        assert "objective rises at 1 of 3 steps, by up to 1" in notes

    def test_steps_in_any_order(self):
        figure = draw_figure5(steps("buaa", [8.0, 4.0, 2.0])[::-1], PLAN)
        assert figure.axes[0].get_lines()[0].get_ydata().tolist() == [8.0, 4.0, 2.0]

    @pytest.mark.parametrize(
        ("objective", "words"),
        [
            ([1.0], "one iteration only"),
            ([2.0, 1.0, 1.0], "never rises in 2 steps, though it does not fall at each"),
            ([1.0, 1.0 + 1e-15], "no more than rounding explains"),
            ([1.0, 1.1], "rises at 1 of 1 step, by up to 0.1 of its value"),
        ],
    )
    def test_other_cases(self, objective, words):
        assert words in descent(objective).words


class TestAnswer:
    def test_figures_as_printed(self):
        first, second, third = answer(make_tables(like_print(PLAN), PLAN))
        counts = "of the printed ACC in 4 of 4 cells, higher in 0 and lower in 0; of the printed NMI in 4, higher in 0"
        assert first.startswith("With settings chosen by labels, GRMF is within 2 points")
        assert counts in first
        assert counts in second
        assert "GRMF has the highest ACC in 4 of 4 cells (4 by more than the spread over folds) by labels" in third
        assert "in print in 4 of 4" in third
        assert "no score" not in third

    def test_grmf_not_best(self):
        tables = make_tables(like_print(PLAN, {"GRMF": -3.0, "GPMVC": 20.0}), PLAN)
        first, _, third = answer(tables)
        assert "in 0 of 4 cells, higher in 0 and lower in 4" in first
        assert "GRMF has the highest ACC in 0 of 4 cells by labels and in 0 of 4 cells with fixed settings" in third
        assert "Handwritten digits 0 of 2 and 0 of 2; BUAA-visnir faces 0 of 2 and 0 of 2" in third
        assert {duel.rival for duel in duels(tables, "fixed")} == {"GPMVC"}

    def test_methods_without_print_are_compared_apart(self):
        more = [score("buaa", "CoRegularizedSpectral", rate, 99.0, fold) for rate in ONE.rates for fold in (0, 1)]
        tables = make_tables(like_print(ONE) + more, ONE)
        text = answer(tables)[-1]
        assert "Of the paper’s seven methods, GRMF has the highest ACC in 2 of 2 cells" in text
        assert "Of all 11 methods of the tables, it has the highest ACC in 0 of 2 cells by labels" in text
        assert "Of all" not in answer(make_tables(like_print(ONE), ONE))[-1]
        assert deviations(tables, "fixed") == ()
        assert {duel.rival for duel in duels(tables, "fixed", COMPARED)} == {"CoRegularizedSpectral"}
        assert "at 2 of 2 points" in draw_figure2(tables).get_label()

    def test_a_tie_is_not_a_lead_and_a_small_lead_not_a_clear_one(self):
        plan = replace(ONE, rates=(0.5,))
        tied = [score("buaa", name, 0.5, 60.0, fold) for name in METHODS for fold in (0, 1)]
        assert "in 0 of 1 cell by labels" in answer(make_tables(tied, plan))[-1]
        lead = [*tied, score("buaa", "GRMF", 0.5, 62.0), score("buaa", "GRMF", 0.5, 61.0)]
        noisy = [replace(r, accuracy=r.accuracy + 0.1 * (2 * r.fold - 1)) for r in lead]
        assert "in 1 of 1 cell (0 by more than the spread over folds)" in answer(make_tables(noisy, plan))[-1]

    def test_gaps_are_said(self):
        records = [r for r in like_print(ONE) if not (r.method == "PVC" and r.rate == 0.1)]
        assert (
            "In 1 cell by labels and 1 cell with fixed settings some method has no score"
            in answer(make_tables(records, ONE))[-1]
        )
        alone = [r for r in records if r.method == "GRMF"]
        assert "compared with none" in answer(make_tables(alone, ONE))[-1]
        assert "no scores of GRMF" in answer(make_tables([], ONE))[0]

    def test_what_is_far_from_print(self):
        tables = make_tables(like_print(ONE, {"DCNMF": -6.0, "PVC": 5.5, "GRMF": 4.9}), ONE)
        (_, pvc), (name, dcnmf) = deviations(tables, "by labels")
        assert name == "DCNMF:"
        assert dcnmf.replace("\u00a0", " ").startswith("BUAA-visnir faces, ACC lower at 0.1 (−6.0) and 0.5 (−6.0); NMI")
        assert "higher" in pvc
        assert "8 of 28 scores (ACC and NMI) are more than 5 points from print: 4 above and 4 below" in far_words(
            tables, "fixed"
        )
        assert deviations(make_tables(like_print(ONE), ONE), "fixed") == ()
        assert far_words(make_tables(like_print(ONE), ONE), "fixed").endswith(
            "0 of 28 scores (ACC and NMI) are more than 5 points from print."
        )


class TestPage:
    def page(self, records, plan=PLAN, figures=None, skipped=None):
        tables = make_tables(records, plan)
        return reproduction_page(tables, figures or {}, plan, skipped or {}, RUN)

    def test_a_full_page(self):
        records = like_print(PLAN, {"IMG": 3.0, "DCNMF": -9.0})
        drawn = {
            2: draw_figure2(make_tables(records, PLAN)),
            3: draw_figure3(figure_records(3, lambda task: 50.0 + task.fold), PLAN),
            4: draw_figure4(figure_records(4, lambda task: 50.0 + task.fold), PLAN),
            5: draw_figure5(steps("buaa", [8.0, 4.0, 5.0]), PLAN),
        }
        text = self.page(records, figures=drawn)
        outline = check_page(text)
        assert outline.tags.count("svg") == 4
        titles = ["at-a-glance", "what-was-run", "the-tables", "the-figures", "how-to-repeat-it"]
        places = [outline.ids.index(title) for title in titles]
        assert places == sorted(places)
        assert "do not bear it out" in text
        assert text.count('<span class="mark">+3.0</span>') == 2 * 2 * 2 * 2  # data, rates, scores, ways of choosing
        assert 'class="tone-down-strong"' in text
        assert "1 h 2 min with 2 processes" in text
        assert "321 MB" in text
        assert text == self.page(records, figures=drawn)

    def test_the_best_of_every_column_has_a_star(self):
        text = self.page(like_print(ONE), ONE)
        tables = text.split('id="table-3-buaa-visnir-faces"')[1].split("</table>")[0]
        # GRMF leads everywhere: ACC and NMI in three rows each, purity in two, at two rates
        assert tables.count('class="star"') == 8 * 2
        assert tables.split(">GRMF ")[1].count('class="star"') == 8 * 2

    def test_methods_without_print_and_one_that_is_not_run(self):
        more = [score("buaa", "CoRegularizedSpectral", rate, 99.0, fold) for rate in ONE.rates for fold in (0, 1)]
        text = unescape(self.page(like_print(ONE) + more, ONE))
        check_page(text)
        table = text.split('id="table-3-buaa-visnir-faces"')[1].split("</table>")[0]
        own = table.split(">CoRegularizedSpectral ")[1].split(">MeanFilledSpectral ")[0]
        assert own.count("99.00") == own.count('class="star"') == 3 * 2 * 2  # scores, ways of choosing, rates
        assert "print<" not in own
        assert "nan" not in table
        assert NOT_RUN["KernelCompletion"] in table
        assert "n anchors auto, 50, 500 × n neighbors 3, 5, 10" in text

    def test_a_skipped_data_set_and_a_failed_cell(self):
        failed = "All codes <b>shrunk</b> to zero"
        records = [replace(r, status=failed) if r.method == "PVC" and r.rate == 0.1 else r for r in like_print(ONE)]
        records = [replace(r, status=failed) if (r.method, r.rate, r.fold) == ("IMG", 0.5, 1) else r for r in records]
        text = self.page(records, ONE, skipped={"caltech7": "there is no caltech7.npz. Expected: 1474 images."})
        check_page(text)
        words = unescape(text)
        assert "Not run for want of data: Caltech7 images (Table 5)." in words
        assert "there is no caltech7.npz. Expected: 1474 images." in words
        assert "failed †" in words
        assert "<b>" not in text
        notes = problems(make_tables(records, ONE)[0])
        assert notes[0] == f"† PVC, by labels at 0.1 and fixed at 0.1: failed in 2 of 2 runs: {failed}."
        assert notes[1].startswith("† IMG, by labels at 0.5 and fixed at 0.5: failed in 1 of 2 runs")
        assert all(note in words for note in notes)
        assert "76.14 †" in words

    def test_preparation_and_reconstructions_are_told(self):
        text = unescape(self.page(like_print(ONE), ONE))
        told = text.split("What was not reproduced, and why</h2>")[1]
        assert PAPER_DATA["buaa"].preprocessing in told
        assert COMPARED["DCNMF"].note in told
        assert "Few folds:" in told

    def test_figures_without_tables_and_tables_without_figures(self):
        only = self.page([], figures={5: draw_figure5(steps("buaa", [8.0, 4.0]), PLAN)})
        assert "the-tables" not in check_page(only).ids
        assert "no scores of GRMF" in only
        assert "the-figures" not in check_page(self.page(like_print(ONE), ONE)).ids

    def test_a_quick_run_of_one_fold(self):
        plan = PaperPlan(("cornell",), rates=(0.5,), n_folds=1, n_settings=3, n_starts=1)
        text = self.page(like_print(plan), plan)
        check_page(text)
        assert "at most 3 settings for each method" in text
        assert "spread over folds)" not in text
        assert "±0.0" not in text

    def test_memory_that_is_not_known(self):
        text = reproduction_page([], {}, ONE, {}, RUN | {"peak_memory_mb": float("nan"), "command": "gapview <x>"})
        assert "not known" in text
        assert "gapview &lt;x&gt;" in text
