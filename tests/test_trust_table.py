"""What a result must not hide, one class for each mistake that a user can make; through Python and the command line."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import gapview
from gapview import BridgedGRMF, Views
from gapview.datasets import make_views
from gapview.errors import GapviewWarning
from gapview.report import write_clustering_report

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")

from awkward_files import made, rows_of, run, write_plain  # noqa: E402

TRUTH = made()
FAST = ("--set", "selection=fixed")


def fitted(views, n_clusters, **options):
    """Fit quickly; return the model and the text of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BridgedGRMF(n_clusters, selection="fixed", random_state=0).fit(views, **options)
    return model, " ".join(str(each.message) for each in caught)


def words(text):
    """Return text without markup and line breaks."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def report_of(model, folder, **options):
    path = write_clustering_report(model, folder / "report.html", assess=False, **options)
    return words(path.read_text(encoding="utf-8"))


def noise(n_samples=80):
    rng = np.random.RandomState(1)
    return [rng.normal(size=(n_samples, 10)), rng.normal(size=(n_samples, 12))]


def put_views(matrices, folder):
    paths = []
    for name, matrix in zip(("blood", "scans"), matrices, strict=False):
        paths.append(folder / f"{name}.csv")
        frame = pd.DataFrame(matrix, columns=[f"{name}_{j}" for j in range(matrix.shape[1])])
        frame.rename_axis("id").set_axis([f"s{i}" for i in range(len(frame))], axis=0).to_csv(
            paths[-1], index_label="id"
        )
    return paths


JUNK = {
    "x 1000": lambda rows: 1000 * rows,
    "+ 5 SD": lambda rows: rows + 5 * TRUTH.blood.std(),
    "zeros": lambda rows: 0.0 * rows,
    "noise": lambda rows: rows * 0 + 40 * np.random.RandomState(0).normal(size=rows.shape),
}


@pytest.mark.parametrize("kind", JUNK)
class TestNewSamplesUnlikeTraining:
    def test_python(self, kind, model):
        loaded = gapview.load(model)
        junk = {"blood": JUNK[kind](TRUTH.blood.iloc[:20])}
        with pytest.warns(GapviewWarning, match="unlike"):
            found = loaded.place(junk)
        assert found.unusual.all()
        assert any("Do not trust the groups of unusual samples" in note for note in found.notes)
        with pytest.warns(GapviewWarning, match="Check the units" if kind == "x 1000" else "unlike"):
            loaded.predict(junk)

    def test_command_line(self, kind, model, put, tmp_path):
        result = run("predict", model, put("blood.csv", JUNK[kind](TRUTH.blood.iloc[:20])), "-o", tmp_path / "p.csv")
        assert all(row["unusual"] == "yes" for row in rows_of(tmp_path / "p.csv").values())
        assert "20 of 20 samples are unlike the training samples" in result.output
        text = " ".join(result.output.split())
        assert "Do not trust the groups of unusual samples" in text
        if kind == "x 1000":
            assert "most values are larger by a factor of about" in text
        assert ("100.0 % of them have nothing but zeros" in text) == (kind == "zeros")


class TestNoiseWithoutANumber:
    def test_python(self, tmp_path):
        with pytest.warns(GapviewWarning, match=r"One group rather than .*stability 0\.\d\d"):
            model = BridgedGRMF("auto", selection="fixed", max_clusters=5, random_state=0).fit(noise())
        assert not model.labels_.any()
        assert model.assessment_.p_value > 0.05
        assert "come back with a mean Jaccard similarity of" in report_of(model, tmp_path)

    def test_command_line(self, tmp_path):
        more = ("-k", "auto", "--no-report", "--set", "max_clusters=5", *FAST)
        result = run("cluster", *put_views(noise(), tmp_path), "-o", tmp_path / "out", "--strict", *more, code=3)
        assert "80 samples in one group, the number that the data suggest" in result.output
        assert {row["label"] for row in rows_of(tmp_path / "out" / "labels.csv").values()} == {"0"}


class TestGroupsOfTwo:
    """With as many groups as pairs of samples, confidence must not rise, and the report must not praise the groups."""

    def test_python(self, tmp_path):
        means = []
        for n_clusters in (4, 40):
            model, _ = fitted(noise(), n_clusters)
            with pytest.warns(GapviewWarning):
                model.assess(random_state=0)
            means.append(model.confidence_.mean())
        assert means[0] < 0.5  # one group holds most samples of noise, and is found again in many resamples
        assert means[1] < 0.02
        text = report_of(model, tmp_path)
        assert "There may be no groups" in text
        assert re.search(r"\d+ of 40 groups have fewer than 5 samples", text)
        assert "They are stable" not in text

    def test_command_line(self, tmp_path):
        files, means = put_views(noise(), tmp_path), []
        for n_clusters in (4, 40):
            out = tmp_path / f"out{n_clusters}"
            result = run("cluster", *files, "-k", n_clusters, "-o", out, "--no-report", *FAST)
            means.append(np.mean([float(row["confidence"]) for row in rows_of(out / "labels.csv").values()]))
        assert "groups have fewer than 5 samples" in " ".join(result.output.split())
        assert means[1] < means[0] + 0.01 < 0.5


def shifted():
    """Return views whose samples are moved by their batch, the groups, and the batches."""
    data = make_views(n_samples=90, n_clusters=3, random_state=0)
    rng = np.random.RandomState(0)
    plate = rng.randint(3, size=90)
    offsets = [4 * matrix.std() * rng.normal(size=(3, matrix.shape[1])) for matrix in data.views.matrices]
    moved = [matrix + offset[plate] for matrix, offset in zip(data.views.matrices, offsets, strict=True)]
    return moved, data.target, plate


class TestBatches:
    def test_python(self):
        views, target, plate = shifted()
        model, warned = fitted(views, 3, batch=[f"P{number}" for number in plate])
        assert adjusted_rand_score(plate, model.labels_) > 0.8 > adjusted_rand_score(target, model.labels_)
        assert "The groups are largely explained by batch" in warned

    def test_command_line(self, tmp_path):
        views, _, plate = shifted()
        table = pd.DataFrame({"plate": [f"P{number}" for number in plate]}, index=[f"s{i}" for i in range(90)])
        table.to_csv(tmp_path / "clinic.csv", index_label="id")
        files, more = put_views(views, tmp_path), ("--covariates", tmp_path / "clinic.csv", "--batch", "plate", *FAST)
        result = run("cluster", *files, "-k", "3", "-o", tmp_path / "out", "--no-assess", *more)
        assert "the groups are largely explained by batch" in " ".join(result.output.split())
        text = words((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
        assert "The groups are largely explained by batch" in text


def counts():
    """Return counts of RNA, whose totals differ between samples, and another view."""
    rng = np.random.RandomState(0)
    rates = rng.lognormal(1.5, 1.2, size=60) * np.repeat(rng.lognormal(0, 0.5, size=(2, 60)), 40, axis=0)
    return [rng.poisson(rates * rng.lognormal(0, 0.8, size=(80, 1))).astype(float), rng.normal(size=(80, 6))]


class TestRawCounts:
    def test_python(self):
        _, warned = fitted(counts(), 2)
        assert "look like raw counts" in warned
        assert "log-CPM" in warned

    def test_command_line(self, tmp_path):
        files = put_views(counts(), tmp_path)
        result = run("cluster", *files, "-k", "2", "-o", tmp_path / "out", "--no-report", "--no-assess", *FAST)
        text = " ".join(result.output.split())
        assert "look like raw counts" in text
        assert "log-CPM" in text
        assert any("raw counts" in each for each in json.loads((tmp_path / "out" / "run.json").read_text())["warnings"])


def outcome():
    """Return a table as TCGA has it, in which groups differ in survival; only deaths have days to death."""
    rng = np.random.RandomState(0)
    groups = np.array(list(TRUTH.target.values()))
    death, last = rng.exponential(300, 90) * (1 + 3 * groups), rng.uniform(100, 2000, 90)
    dead = death < last
    columns = {
        "vital_status": np.where(dead, "Dead", "Alive"),
        "days_to_death": np.where(dead, death.astype(int).astype(str), "[Not Applicable]"),
        "days_to_last_followup": np.where(dead, "[Not Available]", last.astype(int).astype(str)),
    }
    return pd.DataFrame(columns, index=pd.Index(list(TRUTH.target), name="id"))


def assert_survival_is_tested_with_its_caveats(text):
    """Check the usual names of the numbers, and that times of censored samples are not compared as values."""
    assert "days_to_death / days_to_last_followup / vital_status" in text
    assert re.search(r"Log-rank test: χ² = [\d.]+", text)
    assert "Kruskal" not in text
    assert "for sure" not in text


class TestSurvival:
    """A log-rank p-value is no certainty, and days to death are censored."""

    def test_python(self, model, tmp_path):
        text = report_of(gapview.load(model), tmp_path, covariates=outcome())
        assert_survival_is_tested_with_its_caveats(text)

    def test_command_line(self, model, put, tmp_path):
        table = put("clinic.csv", outcome())
        run("report", model, "-o", tmp_path / "r.html", "--covariates", table)
        assert_survival_is_tested_with_its_caveats(words((tmp_path / "r.html").read_text(encoding="utf-8")))


class TestDaysToDeathWithoutFollowUp:
    """Without times of the censored samples there is no test, and the report states why."""

    def test_python(self, model, tmp_path):
        text = report_of(gapview.load(model), tmp_path, covariates=outcome().drop(columns="days_to_last_followup"))
        assert "Log-rank test" not in text
        assert "Kruskal" not in text

    def test_command_line(self, model, put, tmp_path):
        table = put("clinic.csv", outcome().drop(columns="days_to_last_followup"))
        run("report", model, "-o", tmp_path / "r.html", "--covariates", table)
        text = words((tmp_path / "r.html").read_text(encoding="utf-8"))
        assert "Log-rank test" not in text
        assert "Kruskal" not in text


class TestRecoveredViews:
    """R² is named, and ridge regression on the other views is used where it is best."""

    def test_python(self, tmp_path):
        rng = np.random.RandomState(0)
        first = rng.normal(size=(120, 8))
        second = first @ rng.normal(size=(8, 10)) + 0.1 * rng.normal(size=(120, 10))
        second[:30] = np.nan
        model, _ = fitted(Views({"first": first, "second": second}), 3)
        found = {view.view: view for view in model.recovery_scores().views}["second"]
        assert found.method in ("ridge", "blend")
        assert found.best_r2 >= max(found.r2[name] for name in ("mean", "knn", "ridge")) - 1e-9
        assert found.best_r2 > 0.9
        text = report_of(model, tmp_path)
        assert "R², ridge" in text
        assert "0 is no better than the mean, 1 is perfect" in text

    def test_command_line(self, model, tmp_path):
        run("recover", model, *write_plain(tmp_path, TRUTH), "-o", tmp_path / "done")
        table = pd.read_csv(tmp_path / "done" / "recovery.csv")
        assert {"R2_mean", "R2_knn", "R2_ridge"} <= set(table.columns)
