"""Checkpoints: a fit that was cut off anywhere goes on to what it would have found."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from scipy import sparse

from checkpoint_problems import VIEWS, contents, cut_off, keep_everything
from disk_problems import saved, with_gaps
from gapview import GRMF, BridgedGRMF, Views
from gapview.backends.disk.budget import fit_size, plan_memory
from gapview.datasets import make_views
from gapview.errors import DataFileError, GapviewWarning
from gapview.graph.neighbors import SearchReport
from gapview.persist.checkpoints import Checkpoint
from gapview.persist.checkpoints import folder as checkpoint_folder
from gapview.persist.checkpoints import journal as journal_module
from gapview.progress import listening


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    keep_everything(monkeypatch)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "fit"


FITS = {
    "random starts": lambda: GRMF(3, n_init=3, max_iter=40, tol=1e-3, random_state=0),
    "from the data": lambda: GRMF(3, init="data", random_state=np.random.RandomState(5)),
    "bridged": lambda: BridgedGRMF(3, reach=4, scale="unit", random_state=0),
    "counted": lambda: BridgedGRMF("auto", max_clusters=3, selection="fixed", random_state=1),
    "sparse": lambda: GRMF(3, max_iter=12, tol=0, random_state=2),
}


@pytest.mark.parametrize("fit", FITS)
def test_a_fit_that_is_cut_off_goes_on_and_finds_the_same(fit, folder, monkeypatch):
    views = VIEWS if fit != "sparse" else Views([sparse.csr_array(m.round()) for m in _whole()])
    expected = contents(FITS[fit]().fit(views))
    n_written = n_resumed = 0
    while cut_off(FITS[fit](), views, folder, step := n_written + 1, monkeypatch):
        assert Checkpoint(folder).damaged_parts() == []
        again = FITS[fit]().fit(views, checkpoint=folder)
        assert contents(again) == expected
        assert not folder.exists()
        n_written = step + n_written
        n_resumed += 1
    assert not folder.exists()
    assert n_resumed >= 3


def _whole():
    return [np.abs(matrix) for matrix in make_views(80, (12, 9), n_clusters=3, random_state=3).views.matrices]


def test_what_is_finished_is_not_done_again(folder, monkeypatch):
    model = BridgedGRMF(3, random_state=0)
    assert cut_off(model, VIEWS, folder, 40, monkeypatch)
    assert not hasattr(model, "labels_")
    tried, made = [], checkpoint_folder.CheckpointFolder.load

    def load(self, key):
        found = made(self, key)
        tried.append((key, found is not journal_module.MISSING))
        return found

    monkeypatch.setattr(checkpoint_folder.CheckpointFolder, "load", load)
    model.fit(VIEWS, checkpoint=folder)
    found = [key for key, is_there in tried if is_there]
    assert "weights 1" in found
    assert sum("candidate" in key for key in found) >= 5
    assert not any(key.startswith("weights 1/") for key, _ in tried)


def test_it_may_be_cut_off_again_and_again(folder, monkeypatch):
    expected = contents(FITS["random starts"]().fit(VIEWS))
    model, n_cuts = FITS["random starts"](), 0
    while cut_off(model, VIEWS, folder, 5, monkeypatch):
        n_cuts += 1
    assert n_cuts > 5
    assert contents(model) == expected


@pytest.mark.filterwarnings("ignore:The groups are associated")  # by chance: the fit has no seed and five iterations
def test_chance_is_kept(folder, monkeypatch):
    model = GRMF(3, max_iter=5, tol=0)
    drawn = []
    monkeypatch.setattr("gapview.backends.memory.MemoryBackend.random_start", staticmethod(_noting(drawn)))
    assert cut_off(model, VIEWS, folder, 4, monkeypatch)
    model.fit(VIEWS, checkpoint=folder)
    assert np.array_equal(drawn[0][0], drawn[1][0])
    model.fit(VIEWS, checkpoint=folder)
    assert not np.array_equal(drawn[1][0], drawn[2][0])


def _noting(drawn):
    from gapview.factorization.starts import random_start

    def start(*arguments):
        drawn.append(random_start(*arguments))
        return drawn[-1]

    return start


@pytest.mark.parametrize("n_written", [7, 12])  # among the iterations, and after all that is drawn
def test_a_source_of_random_numbers_is_left_as_by_an_undisturbed_fit(folder, monkeypatch, n_written):
    undisturbed, source = np.random.RandomState(7), np.random.RandomState(7)
    expected = GRMF(3, max_iter=9, tol=0, random_state=undisturbed).fit(VIEWS)
    assert cut_off(GRMF(3, max_iter=9, tol=0, random_state=source), VIEWS, folder, n_written, monkeypatch)
    again = GRMF(3, max_iter=9, tol=0, random_state=source).fit(VIEWS, checkpoint=folder)
    assert np.array_equal(again.embedding_, expected.embedding_)
    assert source.randint(10**9) == undisturbed.randint(10**9)


def test_a_failed_fit_with_a_checkpoint_leaves_the_generator_as_it_was(folder, monkeypatch):
    source = np.random.RandomState(7)
    assert cut_off(GRMF(3, random_state=source), VIEWS, folder, 13, monkeypatch)
    assert source.randint(10**9) == np.random.RandomState(7).randint(10**9)


def test_interruptions_leave_a_checkpoint_and_an_unfitted_model(folder):
    expected = GRMF(3, random_state=0).fit(VIEWS)
    for moment in (1, 2, 7, 20, expected.n_iter_, expected.n_iter_ + 1):
        model, count = GRMF(3, random_state=0), []

        def interrupt(event, moment=moment, count=count):
            count.append(event)
            if len(count) == moment:
                raise KeyboardInterrupt

        before = dict(vars(model))
        with pytest.raises(KeyboardInterrupt), listening(interrupt):
            model.fit(VIEWS, checkpoint=folder)
        assert vars(model) == before
        assert folder.exists() == (moment > 1)
        assert contents(model.fit(VIEWS, checkpoint=folder)) == contents(expected)


def test_short_fits_leave_no_trace(folder, monkeypatch):
    monkeypatch.setattr(journal_module, "SECONDS", 30.0)
    assert not cut_off(GRMF(3, random_state=0), VIEWS, folder, 1, monkeypatch)

    def interrupt(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(interrupt):
        GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)
    assert not folder.exists()


def test_what_was_finished_is_written_when_a_longer_fit_is_interrupted(folder, monkeypatch):
    monkeypatch.setattr(journal_module, "SECONDS", 1e-3)
    monkeypatch.setattr(journal_module.Journal, "is_due", lambda journal: False)

    def interrupt(event):
        if event.phase == "Iterating":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(interrupt):
        GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)
    assert sorted(os.listdir(folder)) == ["fit.part", "neighbours-1.part", "neighbours-2.part"]


def test_writing_takes_little_of_the_time(monkeypatch):
    monkeypatch.undo()
    clock = [0.0]
    monkeypatch.setattr(journal_module, "perf_counter", lambda: clock[0])
    spent = []

    class Slow:
        def load(self, key):
            return journal_module.MISSING

        def save(self, key, value):
            clock[0] += 4.0
            spent.append(4.0)

    journal = journal_module.Journal(Slow())
    with journal_module.use_journal(journal):
        record = journal_module.StateRecord("iterations")
        for _ in range(3600):
            clock[0] += 1.0
            record.save(lambda: 1)
    assert 0 < sum(spent) < 0.05 * clock[0]


def test_the_other_ways_to_fit(folder):
    expected = GRMF(3, random_state=0).fit(VIEWS)
    assert np.array_equal(GRMF(3, random_state=0).fit_predict(VIEWS, checkpoint=folder), expected.labels_)
    assert np.array_equal(GRMF(3, random_state=0).fit_transform(VIEWS, checkpoint=str(folder)), expected.embedding_)
    assert not folder.exists()


def test_a_fit_within_a_fit_keeps_to_itself(folder, monkeypatch):
    expected = contents(GRMF(3, random_state=0).fit(VIEWS))

    def fit_another(event):
        if event.phase == "Looking for neighbours":
            with listening(lambda event: None):
                GRMF(2, random_state=1).fit(VIEWS)

    with listening(fit_another):
        assert cut_off(GRMF(3, random_state=0), VIEWS, folder, 6, monkeypatch)
    assert contents(GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)) == expected


@pytest.mark.parametrize("fails", [1, 2, 9])
def test_a_checkpoint_that_cannot_be_written_does_not_stop_the_fit(folder, monkeypatch, fails):
    expected = contents(GRMF(3, random_state=0).fit(VIEWS))
    write, count = checkpoint_folder.write_whole, []

    def full(path, content):
        count.append(path)
        if len(count) >= fails:
            raise DataFileError(f"Cannot write {str(path)!r}: No space left on device.")
        write(path, content)

    monkeypatch.setattr(checkpoint_folder, "write_whole", full)
    with pytest.warns(GapviewWarning, match="No space left on device. The fit continues") as said:
        model = GRMF(3, random_state=0).fit(VIEWS, checkpoint=folder)
    assert len(said) == 1
    assert contents(model) == expected
    assert not folder.exists()


@pytest.mark.parametrize("method", ["GRMF", "BridgedGRMF"])
@pytest.mark.filterwarnings("ignore:bridge=")
def test_views_on_disk(tmp_path, folder, monkeypatch, method):
    data = make_views(1500, (100, 60), n_clusters=3, missing_rate=0.3, random_state=0)
    maps = saved(tmp_path, with_gaps(data.views))

    def new():
        settings = {"random_state": 0, "max_iter": 8, "tol": 0}
        model = GRMF(3, **settings) if method == "GRMF" else BridgedGRMF(3, selection="fixed", **settings)
        plan = plan_memory(fit_size(model, data.views))
        assert plan.least < plan.in_memory
        return model.set_params(memory_budget=(plan.least + plan.in_memory) // 2)

    expected = new().fit(maps)
    for n_written in (1, 6):
        assert cut_off(new(), maps, folder, n_written, monkeypatch)
        again = new().fit(maps, checkpoint=folder)
        assert np.array_equal(again.labels_, expected.labels_)
        assert np.array_equal(again.embedding_, expected.embedding_)
    assert cut_off(new(), maps, folder, 4, monkeypatch)
    changed = np.load(tmp_path / "1.npy")
    changed[data.views.rows(1)[0], 0] += 1
    np.save(tmp_path / "1.npy", changed)
    with pytest.raises(DataFileError, match="view 'view_1' has changed"):
        new().fit([np.load(tmp_path / f"{k}.npy", mmap_mode="r") for k in range(2)], checkpoint=folder)


@pytest.mark.parametrize("fit", ["from the data", "bridged"])
def test_tensors(folder, monkeypatch, fit):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    expected = FITS[fit]().set_params(device="cpu").fit(VIEWS)
    n_written = n_resumed = 0
    while cut_off(FITS[fit]().set_params(device="cpu"), VIEWS, folder, step := n_written + 1, monkeypatch):
        again = FITS[fit]().set_params(device="cpu").fit(VIEWS, checkpoint=folder)
        assert np.array_equal(again.labels_, expected.labels_)
        assert np.allclose(again.embedding_, expected.embedding_, atol=1e-12)
        n_written, n_resumed = step + n_written, n_resumed + 1
    assert n_resumed >= 2


def test_what_the_searches_have_done_is_kept(folder, monkeypatch):
    expected = BridgedGRMF(3, selection="fixed", random_state=0).fit(VIEWS)
    assert cut_off(BridgedGRMF(3, selection="fixed", random_state=0), VIEWS, folder, 8, monkeypatch)
    again = BridgedGRMF(3, selection="fixed", random_state=0).fit(VIEWS, checkpoint=folder)
    assert again.neighbor_search_ == expected.neighbor_search_
    assert all(isinstance(done, SearchReport) for done in again.neighbor_search_)


def test_without_a_checkpoint_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(journal_module.Journal, "__init__", None)
    record = journal_module.StateRecord("iterations")
    record.save(lambda: pytest.fail("nobody wants to know"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GRMF(3, random_state=0).fit(VIEWS)
