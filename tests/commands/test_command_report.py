"""``gapview report`` and ``info``, model files that are none, reports from real data, and what is shown on the way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import gapview
from gapview.commands import results as report_module
from gapview.commands.console import command_words, printable, show_warnings
from gapview.commands.options import value_of
from gapview.errors import GapviewWarning
from gapview.progress import listening

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from awkward_files import clustered, made, rows_of, run, write_plain  # noqa: E402
from data_files import _folder  # noqa: E402

TRUTH = made()


def words_of(path):
    """Read a page as a person does, without its marks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", path.read_text()))


def test_from_files_to_a_report(tmp_path):
    files = write_plain(tmp_path, TRUTH)
    result = run("cluster", *files, "-k", "3", "-o", tmp_path / "out", "--set", "selection=fixed")
    report = tmp_path / "out" / "report.html"
    assert f"Report    {report}\n\nGroups " in result.output
    assert report.stat().st_size < 3e6
    assert "report.html" in json.loads((tmp_path / "out" / "run.json").read_text())["results"]
    text = words_of(report)
    assert "gapview cluster" in text
    assert "90 samples" in text


def test_a_report_with_covariates(model, tmp_path):
    ages = pd.DataFrame(
        {"age": np.arange(90) % 61, "stage": ["I", "II", None] * 30, "target": list(TRUTH.target.values())},
        index=pd.Index([int(key) for key in TRUTH.target], name="patient"),
    )
    ages.loc[5000] = [1, "I", 0]
    ages.to_csv(tmp_path / "patients.csv", sep=";", decimal=",")
    result = run(
        "report", model, "-o", tmp_path / "r.html", "--covariates", tmp_path / "patients.csv", "--title", "Ours"
    )
    assert "3 columns for 90 of the 90 samples of the model; 1 row of other samples left out" in result.output
    text = words_of(tmp_path / "r.html")
    for name in ("age", "stage", "target", "Ours"):
        assert name in text


def batch_table(tmp_path, shift):
    """Write two views, shifted in three batches, and a table with the batches and survival as in TCGA."""
    rng = np.random.RandomState(0)
    batches = rng.randint(3, size=90)
    for name, frame in (("blood", TRUTH.blood), ("scans", TRUTH.scans)):
        offset = shift * frame.to_numpy().std() * rng.normal(size=(3, frame.shape[1]))
        (frame + offset[batches[[int(key) - 1 for key in frame.index]]]).to_csv(tmp_path / f"{name}.csv")
    dead = rng.uniform(size=90) < 0.5
    days = rng.randint(10, 999, 90).astype(str)
    table = pd.DataFrame(
        {
            "plate": np.array(["P1", "P2", "P3"])[batches],
            "vital_status": np.where(dead, "Dead", "Alive"),
            "days_to_death": np.where(dead, days, "[Not Applicable]"),
            "days_to_last_followup": np.where(dead, "[Not Available]", days),
        },
        index=pd.Index(list(TRUTH.target), name="id"),
    )
    table.to_csv(tmp_path / "clinic.csv")
    return [tmp_path / "blood.csv", tmp_path / "scans.csv"]


@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_batches_from_files_to_the_headline(tmp_path, shift):
    files, out = batch_table(tmp_path, shift), tmp_path / "out"
    more = ("--covariates", tmp_path / "clinic.csv", "--batch", "plate", "--set", "selection=fixed")
    result = run("cluster", *files, "-k", "3", "-o", out, *more)
    words = "are largely explained by batch" if shift else "are not significantly associated with batch"
    assert f"Batches   The groups {words} (Cramér’s V = " in result.output
    assert ("Compare the groups within one batch" in result.output + result.stderr) == (shift > 0)
    text = words_of(out / "report.html")
    lead = text.index(f"The groups {words} (Cramér’s V = ")
    assert lead < text.index("What the data look like")
    assert "days_to_death / days_to_last_followup / vital_status" in text
    assert "Log-rank test: χ² = " in text
    rows = rows_of(out / "labels.csv")
    table = pd.read_csv(tmp_path / "clinic.csv", index_col="id", dtype=str)
    assert {key: row["batch"] for key, row in rows.items()} == {key: table.loc[int(key), "plate"] for key in rows}
    record = json.loads((out / "run.json").read_text())
    assert [one["factor"] for one in record["associations"]] == ["missing views", "batch"]
    again = run("report", out / "model.gapview", "-o", tmp_path / "again.html")
    assert again.exit_code == 0
    assert f"The groups {words}" in words_of(tmp_path / "again.html")


def test_batches_that_are_not_there(tmp_path):
    files = batch_table(tmp_path, 0.0)
    arguments = ("cluster", *files, "-k", "3", "-o", tmp_path / "out", "--batch", "run")
    assert "give the table with --covariates" in run(*arguments, code=2).stderr
    failed = run(*arguments, "--covariates", tmp_path / "clinic.csv", code=1)
    assert "--batch names the column 'run', and 'clinic.csv' has 'plate'" in failed.stderr
    assert not (tmp_path / "out").exists()


def test_covariates_whose_ids_nearly_match_give_a_warning(model, tmp_path):
    ages = pd.DataFrame({"age": range(90)}, index=pd.Index(list(TRUTH.target), name="id"))
    ages.rename(index=dict(zip(ages.index[:30], [f"P-{key}" for key in ages.index[:30]], strict=True))).to_csv(
        tmp_path / "some.csv"
    )
    result = run("report", model, "-o", tmp_path / "r.html", "--covariates", tmp_path / "some.csv")
    assert "30 ids match but for the beginning 'P-'" in result.output + result.stderr
    ages.rename(index=lambda key: f"P-{key}").to_csv(tmp_path / "all.csv")
    failed = run("report", model, "-o", tmp_path / "s.html", "--covariates", tmp_path / "all.csv", code=1)
    assert "90 ids match but for the beginning 'P-'" in failed.stderr


def test_survival_columns_may_be_named(model, tmp_path):
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"weeks": rng.randint(1, 99, 90), "gone": rng.randint(2, size=90)}, index=list(TRUTH.target))
    table.rename_axis("id").to_csv(tmp_path / "t.csv")
    arguments = ("report", model, "-o", tmp_path / "r.html", "--survival", "weeks", "gone")
    assert "give the table with --covariates" in run(*arguments, code=2).stderr
    run(*arguments, "--covariates", tmp_path / "t.csv")
    assert "weeks" in words_of(tmp_path / "r.html")


def test_survival_and_covariates_of_a_new_clustering(tmp_path):
    pytest.importorskip("lifelines")
    files, out = batch_table(tmp_path, 0.0), tmp_path / "out"
    table = pd.read_csv(tmp_path / "clinic.csv", index_col="id")
    rng = np.random.RandomState(0)
    table = table.assign(weeks=rng.randint(1, 99, 90), gone=rng.randint(2, size=90), age=rng.normal(60, 9, 90))
    table.to_csv(tmp_path / "clinic.csv")
    command = ("cluster", *files, "-k", "3", "-o", out, "--no-assess", "--set", "selection=fixed")
    assert "--adjust names a column of a table" in run(*command, "--adjust", "age", code=2).stderr
    command += ("--covariates", tmp_path / "clinic.csv", "--survival", "weeks", "gone")
    failed = run(*command, "--adjust", "weight", code=1)
    assert "does not have: 'weight'" in failed.stderr
    assert "Groups" not in failed.output  # before the fit
    result = run(*command, "--adjust", "age,plate", "--excel")
    assert "Survival  weeks / gone: Log-rank test of 3 groups: χ² = " in result.output
    assert "Table     At a Holm-adjusted p < 0.05 (" in result.output
    rows = pd.read_csv(out / "survival.csv")
    assert rows["outcome"].tolist() == ["weeks / gone"] * 3
    assert (rows["adjusted_hazard_ratio"] == 1).sum() == 1
    tests = pd.read_csv(out / "covariates.csv", index_col="column")
    assert tests.loc["weeks / gone", "kind"] == "survival"
    assert (tests["adjusted_p_value"] >= tests["p_value"]).all()
    assert "Adjusted for age and plate" in words_of(out / "report.html")
    with pd.ExcelFile(out / "results.xlsx", engine="calamine") as book:
        assert book.sheet_names == ["labels", "contributions", "covariates", "embedding", "survival", "markers"]


def test_a_table_of_survival_among_the_views_gives_a_warning(tmp_path):
    files = batch_table(tmp_path, 0.0)
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"OS.time": rng.randint(1, 99, 90), "OS": rng.randint(2, size=90)}, index=list(TRUTH.target))
    table.rename_axis("id").to_csv(tmp_path / "clinic.csv")
    more = ("--no-assess", "--no-report", "--set", "selection=fixed")
    result = run("cluster", *files, tmp_path / "clinic.csv", "-k", "3", "-o", tmp_path / "out", *more)
    text = "'clinic.csv' has columns of survival (OS.time / OS): it looks like a table of covariates."
    assert text in result.output + result.stderr


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("cohort", "files", "table", "more"),
    [
        ("coread", ("gex.csv", "muts.csv", "cnv.csv"), "subtypes.csv", ("--transpose", "all", "--adjust", "age,stage")),
        ("kirc", ("GE.csv", "ME.csv", "MI.csv"), "survival.csv", ()),
    ],
)
def test_raw_files_of_cohorts_by_one_command(tmp_path, cohort, files, table, more):
    pytest.importorskip("lifelines")
    folder = _folder("GAPVIEW_DATA", f"omics/{cohort}/{table}").parent
    command = ("cluster", *(folder / file for file in files), "-k", "2", "-o", tmp_path / "out", "--no-assess")
    if cohort == "coread":
        assert "Give --transpose all to transpose." in run(*command, code=1).stderr
    result = run(*command, "--covariates", folder / table, *more)
    assert "Log-rank test of 2 groups" in result.output
    assert "Survival: " in words_of(tmp_path / "out" / "report.html")


def test_ids_stay_in_the_house(tmp_path):
    secret = {key: f"Mustermann{key}" for key in TRUTH.target}
    for name, frame in (("blood", TRUTH.blood), ("scans", TRUTH.scans)):
        frame.rename(index=secret).to_csv(tmp_path / f"{name}.csv")
    model = clustered(tmp_path / "out", tmp_path / "blood.csv", tmp_path / "scans.csv")
    pd.DataFrame({"age": range(90)}, index=pd.Index(secret.values(), name="id")).to_csv(tmp_path / "ages.csv")
    more = ("--covariates", tmp_path / "ages.csv")
    run("report", model, "-o", tmp_path / "with.html", *more)
    run("report", model, "-o", tmp_path / "without.html", "--no-ids", *more)
    assert "Mustermann" in (tmp_path / "with.html").read_text()
    assert "Mustermann" not in (tmp_path / "without.html").read_text()


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        ("id,age\nz1,4\nz2,5\n", (), "has no sample of the model"),
        ("age,height\n1,2\n3,4\n", (), "no column of sample ids"),
        ("id,age\n1,4\n1,5\n", (), "1 sample id more than once"),
        ("id,age,sex\n1,NA,NA\n2,NA,NA\n", (), "no column with values besides the ids"),
        ("id,age\n1,4\n2,5\n", ("--id", "who"), "no column 'who' in 't.csv'"),
    ],
)
def test_tables_that_say_nothing(model, tmp_path, content, more, words):
    (tmp_path / "t.csv").write_text(content)
    result = run("report", model, "-o", tmp_path / "r.html", "--covariates", tmp_path / "t.csv", *more, code=1)
    assert words in result.stderr
    assert not (tmp_path / "r.html").exists()


def test_info(model):
    text = run("info", model).output
    assert text.startswith("BridgedGRMF of 90 samples, ")
    assert "view 'blood': 68 × 6" in text
    found = json.loads(run("info", model, "--json").output)
    assert (found["method"], found["n_samples"], found["group_sizes"]) == ("BridgedGRMF", 90, [30, 30, 30])
    assert [view["name"] for view in found["views"]] == ["blood", "scans"]


@pytest.mark.parametrize("command", ["predict", "recover", "report", "info"])
def test_model_files_that_are_none(model, tmp_path, command):
    content = model.read_bytes()
    cases = {
        "nothing.gapview": (None, "There is no"),
        "table.gapview": (b"id,x\n1,2\n", "Give a model that gapview cluster has written"),
        "empty.gapview": (b"", "is empty|not a model file|cut off"),
        "cut.gapview": (content[: len(content) // 2], "cut off|damaged|truncated"),
        "flipped.gapview": (content[:-20] + bytes([content[-20] ^ 255]) + content[-19:], "damaged|checksum"),
    }
    TRUTH.blood.to_csv(tmp_path / "blood.csv")
    for name, (damaged, words) in cases.items():
        if damaged is not None:
            (tmp_path / name).write_bytes(damaged)
        if command == "info" and name == "flipped.gapview":
            continue  # the header alone is read, and it is whole
        files = {"predict": [tmp_path / "blood.csv", "-o", tmp_path / "p.csv"], "info": []}
        result = run(command, tmp_path / name, *files.get(command, ["-o", tmp_path / "result"]), code=1)
        assert re.search(words, result.stderr), (name, result.stderr)
        assert not (tmp_path / "p.csv").exists()
        assert not (tmp_path / "result").exists()


def test_models_without_a_latent_space(tmp_path):
    files = write_plain(tmp_path, TRUTH)
    path = clustered_by_concat(tmp_path / "out", files)
    for command in ("recover", "report"):
        result = run(command, path, "-o", tmp_path / "result", code=1)
        assert "Concat" in result.stderr
        assert "BridgedGRMF" in result.stderr


def clustered_by_concat(folder, files):
    run("cluster", *files, "-k", "3", "-o", folder, "--method", "Concat")
    return folder / "model.gapview"


def test_packages_for_the_report_are_asked_for_before_the_work(tmp_path, monkeypatch):
    files = write_plain(tmp_path, TRUTH)
    monkeypatch.setattr(report_module, "find_spec", lambda package: None)
    result = run("cluster", *files, "-k", "3", "-o", tmp_path / "out", code=1)
    assert "pip install 'gapview[report]'" in result.stderr
    assert "View" not in result.output
    assert not (tmp_path / "out").exists()
    assert "--no-report" in result.stderr


@pytest.mark.parametrize("command", ["cluster", "predict", "recover", "report", "info"])
def test_help_has_an_example_that_can_be_typed(command):
    text = run(command, "--help").output
    example = " ".join(text[text.index("Example: ") :].split()).removeprefix("Example: ")
    assert example.startswith(f"gapview {command} ")
    assert run("-h").output.count(f"  {command} ") == 1


@pytest.mark.data
def test_tcga_from_csv_to_a_report(dataset, tmp_path):
    data = dataset("tcga_brca_mixomics")
    ids = np.array([f"TCGA-{number:04d}" for number in range(data.views.n_samples)], dtype=object)
    files = []
    for k, (name, matrix) in enumerate(zip(data.views.names, data.views.matrices, strict=True)):
        index = pd.Index(ids[data.views.rows(k)], name="sample")
        pd.DataFrame(matrix, index=index).add_prefix(f"{name}_").to_csv(tmp_path / f"{name}.csv")
        files.append(tmp_path / f"{name}.csv")
    subtypes = pd.DataFrame({"subtype": [f"type{label}" for label in data.target]}, index=pd.Index(ids, name="sample"))
    subtypes.to_csv(tmp_path / "subtypes.csv")
    n_groups = len(set(data.target))
    run("cluster", *files, "-k", n_groups, "-o", tmp_path / "out")
    rows = rows_of(tmp_path / "out" / "labels.csv")
    found = gapview.metrics.clustering_scores(data.target, [int(rows[key]["label"]) for key in ids])
    assert found["accuracy"] > 0.8
    model = tmp_path / "out" / "model.gapview"
    run("report", model, "--covariates", tmp_path / "subtypes.csv", "-o", tmp_path / "r.html")
    for report in (tmp_path / "out" / "report.html", tmp_path / "r.html"):
        assert report.stat().st_size < 3e6
    assert "subtype" in words_of(tmp_path / "r.html")


def warn_of_both():
    warnings.warn("not ours", UserWarning, stacklevel=1)
    for _ in range(2):
        warnings.warn("ours", GapviewWarning, stacklevel=1)


class TestWhatIsShown:
    def test_a_fit_tells_what_it_does(self):
        views = gapview.Views({"blood": TRUTH.blood, "scans": TRUTH.scans})
        events = []
        with listening(events.append):
            model = gapview.BridgedGRMF("auto", max_clusters=4, random_state=0).fit(views)
        phases = list(dict.fromkeys(event.phase for event in events))
        assert phases == [
            "Counting groups",
            "Iterating",
            "Weighing views",
            "Trying settings",
            "Refining groups",
            "Assessing groups",
            "Looking for neighbours",
            "Finding groups",
            "Calibrating confidence",
            "Repeating the fit",
        ]
        tried = [(event.done, event.total) for event in events if event.phase == "Trying settings"]
        assert tried == sorted(tried)
        assert tried[0][0] == 0
        assert tried[-1][0] == tried[-1][1]
        last = [event for event in events if event.phase == "Iterating"][-model.n_iter_ :]
        assert [event.objective for event in last] == model.objective_.tolist()
        events.clear()
        model.fit(views)
        assert events == []

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
    def test_on_a_terminal_only(self, tmp_path):
        write_plain(tmp_path, TRUTH)
        ours, theirs = os.openpty()
        command = [sys.executable, "-m", "gapview", "cluster", "blood.csv", "scans.csv", "-k", "3", "--no-report"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs)
        plain, _ = process.communicate(timeout=60)
        os.close(theirs)
        shown = os.read(ours, 100_000).decode(errors="replace")
        os.close(ours)
        assert process.returncode == 0
        assert "Assessing groups" in shown
        assert "Assessing groups" not in plain.decode()
        assert "\x1b" not in plain.decode()

    def test_not_in_a_file_whatever_the_environment_says(self, tmp_path, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        result = run("cluster", *write_plain(tmp_path, TRUTH), "-k", "3", "--no-report", "-o", tmp_path / "out")
        assert "Assessing groups" not in result.output
        assert "Writing results" not in result.output

    def test_words_of_the_command_line(self):
        assert command_words("choose partial_rows='fill' (id_column)") == "choose --partial-rows fill (--id)"
        assert printable("a\x07\x1b]0;x\n") == "a\\x07\\x1b]0;x\n"

    def test_other_warnings_go_their_own_way(self):
        said: list[tuple[str, str]] = []
        with pytest.warns(UserWarning, match="not ours"), show_warnings(lambda *line: said.append(line)) as kept:
            warn_of_both()
        assert kept == ["ours"]
        assert said == [("Warning", "ours")]

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("3", 3),
            ("1e-4", 1e-4),
            ("True", True),
            ("none", None),
            ('{"a": 1}', {"a": 1}),
            ("a b", "a b"),
            ("9" * 5000, "9" * 5000),
            ("[" * 99999, "[" * 99999),
        ],
    )
    def test_values(self, text, value):
        assert value_of(text) == value


@pytest.mark.parametrize("kind", ["h5ad", "h5mu"])
def test_batches_of_obs_are_corrected(tmp_path, kind):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    rng = np.random.RandomState(0)
    plates = np.array(["P1", "P2", "P3"])[rng.randint(3, size=90)]
    modes = {}
    for name, frame in (("blood", TRUTH.blood), ("scans", TRUTH.scans)):
        own = plates[[int(key) - 1 for key in frame.index]]
        offset = 4.0 * frame.to_numpy().std() * rng.normal(size=(3, frame.shape[1]))
        frame = frame.set_axis([f"p{key}" for key in frame.index]) + offset[[int(name[1]) - 1 for name in own]]
        modes[name] = anndata.AnnData(frame, obs=pd.DataFrame({"plate": own}, index=frame.index))
    files = [tmp_path / f"{name}.h5ad" for name in modes] if kind == "h5ad" else [tmp_path / "both.h5mu"]
    if kind == "h5ad":
        for mode, file in zip(modes.values(), files, strict=True):
            mode.write_h5ad(file)
    else:
        with mudata.set_options(pull_on_update=False):
            mudata.MuData(modes).write(files[0])
    more = ("--batch-correction", "harmony", "--set", "selection=fixed", "--no-assess")
    result = run("cluster", *files, "-k", "3", "-o", tmp_path / "out", "--batch", "plate", *more)
    assert "Batches   Batch effects are corrected (mixing is the median iLISI" in result.output
    rows = rows_of(tmp_path / "out" / "labels.csv")
    assert {row["batch"] for row in rows.values()} == {"P1", "P2", "P3"}
    target = [TRUTH.target[key[1:]] for key in rows]
    assert adjusted_rand_score(target, [row["label"] for row in rows.values()]) > 0.9
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert all(view["after"] > view["before"] for view in record["batch_mixing"]["views"])
    assert "Batch effects are corrected" in words_of(tmp_path / "out" / "report.html")
    failed = run("cluster", *files, "-k", "3", "-o", tmp_path / "other", "--batch", "run", code=1)
    assert "which obs has for none of the samples; it has 'plate'" in failed.stderr


def test_correction_needs_batches_and_a_method_that_corrects(tmp_path):
    files = batch_table(tmp_path, 0.0)
    arguments = ("cluster", *files, "-k", "3", "-o", tmp_path / "out", "--batch-correction", "harmony")
    assert "give their column with --batch" in run(*arguments, code=2).stderr
    table = ("--covariates", tmp_path / "clinic.csv", "--batch", "plate")
    assert "is for GRMF and BridgedGRMF" in run(*arguments, *table, "--method", "Concat", code=1).stderr
