"""Checkpoints of fits on Dask collections, block by block in this process."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gapview import GRMF, BridgedGRMF, Views
from gapview.errors import DataFileError, GapviewWarning, InputTypeError
from gapview.progress import listening

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

from distributed_problems import three_views, unevenly, written_out  # noqa: E402


@pytest.fixture(scope="module")
def three() -> Views:
    return three_views()


def test_a_fit_resumes_from_its_checkpoint(three: Views, tmp_path: Path) -> None:
    arrays = written_out(three)
    blocks = unevenly(arrays, 0.2, 0.6)
    settings = {"n_clusters": 4, "random_state": 0, "tol": 1e-9, "max_iter": 45}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = GRMF(**settings).fit(blocks)
        path = tmp_path / "fit"

        class Cut(Exception):
            pass

        def cut(event: Any) -> None:
            if event.phase == "Iterating" and event.done == 27:
                raise Cut

        model = GRMF(**settings)
        with pytest.raises(Cut), listening(cut):
            model.fit(blocks, checkpoint=path)
        assert not hasattr(model, "labels_")
        seen = []
        with listening(lambda event: seen.append(event.done) if event.phase == "Iterating" else None):
            model.fit(blocks, checkpoint=path)
        assert seen[0] == 21
        np.testing.assert_array_equal(model.objective_, whole.objective_)
        np.testing.assert_array_equal(model.embedding_.compute(), whole.embedding_.compute())
        np.testing.assert_array_equal(model.labels_.compute(), whole.labels_.compute())
        # Once more: there is nothing left to do
        again = GRMF(**settings)
        seen.clear()
        with listening(lambda event: seen.append(event.done) if event.phase == "Iterating" else None):
            again.fit(blocks, checkpoint=str(path))
        assert not seen
        np.testing.assert_array_equal(again.labels_.compute(), whole.labels_.compute())
    assert len(list(path.iterdir())) == 1 + 3  # old blocks are gone
    with pytest.raises(DataFileError, match="tol was 1e-09 and is 0.1 now"):
        GRMF(**settings | {"tol": 0.1}).fit(blocks, checkpoint=path)
    with pytest.raises(DataFileError, match="has changed"):
        GRMF(**settings).fit([blocks[0] + 1, *blocks[1:]], checkpoint=path)
    for file in path.glob("0*.npz"):
        file.write_bytes(file.read_bytes()[:-50])
    with pytest.warns(ConvergenceWarning), pytest.warns(GapviewWarning, match="cannot be read.*start again"):
        again = GRMF(**settings).fit(blocks, checkpoint=path)
    np.testing.assert_array_equal(again.labels_.compute(), whole.labels_.compute())
    (path / "fit.npz").write_bytes((path / "fit.npz").read_bytes()[:-50])
    with pytest.raises(DataFileError, match="cannot be read"):
        GRMF(**settings).fit(blocks, checkpoint=path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("x")
    with pytest.raises(DataFileError, match="holds something else"):
        GRMF(**settings).fit(blocks, checkpoint=other)


@pytest.mark.parametrize("bridge", ["joint", "both"])
def test_a_fit_on_a_bridge_resumes_from_its_checkpoint(three: Views, tmp_path: Path, bridge: str) -> None:
    blocks = unevenly(written_out(three), 0.2, 0.6)
    settings = {"n_clusters": 4, "bridge": bridge, "selection": "fixed", "refine": False, "random_state": 0}
    settings |= {"tol": 0, "max_iter": 25}
    whole = BridgedGRMF(**settings).fit(blocks)
    with pytest.raises(_Cut), _cut_at(17):
        BridgedGRMF(**settings).fit(blocks, checkpoint=tmp_path / "fit")
    seen: list[int] = []
    with listening(lambda event: seen.append(event.done) if event.phase == "Iterating" else None):
        again = BridgedGRMF(**settings).fit(blocks, checkpoint=tmp_path / "fit")
    assert seen[0] == 11
    np.testing.assert_array_equal(again.objective_, whole.objective_)
    np.testing.assert_array_equal(again.labels_.compute(), whole.labels_.compute())
    np.testing.assert_array_equal(again.embedding_.compute(), whole.embedding_.compute())


def test_a_checkpoint_without_a_seed_keeps_the_one_it_drew(three: Views, tmp_path: Path) -> None:
    blocks = unevenly(written_out(three), 0.5)
    first = GRMF(4, init="data").fit(blocks, checkpoint=tmp_path / "fit")
    again = GRMF(4, init="data").fit(blocks, checkpoint=tmp_path / "fit")
    np.testing.assert_array_equal(first.labels_.compute(), again.labels_.compute())


def test_a_checkpoint_of_other_code_or_of_another_generator_is_refused(
    three: Views, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gapview.persist.checkpoints import identity

    blocks, path = unevenly(written_out(three), 0.5), tmp_path / "fit"
    settings = {"n_clusters": 4, "tol": 0, "max_iter": 15}
    whole = GRMF(**settings, random_state=np.random.RandomState(3)).fit(blocks)
    source = np.random.RandomState(3)
    with pytest.raises(_Cut), _cut_at(12):
        GRMF(**settings, random_state=source).fit(blocks, checkpoint=path)
    with pytest.raises(DataFileError, match="random_state was a RandomState .state"):
        GRMF(**settings, random_state=np.random.RandomState(4)).fit(blocks, checkpoint=path)
    with monkeypatch.context() as patch:
        patch.setattr(identity, "code_digest", lambda: "0123")
        with pytest.raises(DataFileError, match="source code of gapview has changed"):
            GRMF(**settings, random_state=source).fit(blocks, checkpoint=path)
    seen: list[int] = []
    with listening(lambda event: seen.append(event.done) if event.phase == "Iterating" else None):
        again = GRMF(**settings, random_state=source).fit(blocks, checkpoint=path)
    assert seen[0] == 11
    np.testing.assert_array_equal(again.embedding_.compute(), whole.embedding_.compute())


class _Cut(Exception):
    pass


def _cut_at(iteration: int) -> Any:
    def listener(event: Any) -> None:
        if event.phase == "Iterating" and event.done == iteration:
            raise _Cut

    return listening(listener)


def test_a_checkpoint_of_several_runs_is_written_until_the_last_has_ended(three: Views, tmp_path: Path) -> None:
    blocks = unevenly(written_out(three), 0.2, 0.6)
    settings = {"n_clusters": 4, "n_init": 4, "random_state": 1, "tol": 2e-4, "max_iter": 300}
    seen: list[int] = []
    with listening(lambda event: seen.append(event.done) if event.phase == "Iterating" else None):
        whole = GRMF(**settings).fit(blocks)
    alone = [
        GRMF(**settings | {"n_init": n_init}).fit(blocks).n_iter_ for n_init in (1, 2, 3)
    ]  # the first runs are the same ones
    assert min(alone) + 10 < seen[-1]  # some have ended well before the last
    path = tmp_path / "fit"
    with pytest.raises(_Cut), _cut_at(seen[-1]):
        GRMF(**settings).fit(blocks, checkpoint=path)
    again: list[int] = []
    with listening(lambda event: again.append(event.done) if event.phase == "Iterating" else None):
        model = GRMF(**settings).fit(blocks, checkpoint=path)
    assert again[0] == (seen[-1] - 1) // 10 * 10 + 1
    np.testing.assert_array_equal(model.objective_, whole.objective_)
    np.testing.assert_array_equal(model.embedding_.compute(), whole.embedding_.compute())
    assert sorted(file.name for file in path.iterdir())[-1] == "fit.npz"
    assert len(list(path.iterdir())) == 1 + 3


def test_a_checkpoint_that_cannot_be_written_gives_one_warning(
    three: Views, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gapview.backends.dask import checkpoint as _checkpoint

    blocks = unevenly(written_out(three), 0.5)
    settings = {"n_clusters": 4, "init": "data", "random_state": 0, "tol": 0, "max_iter": 35}
    whole = GRMF(**settings).fit(blocks)
    (tmp_path / "file").write_text("x")
    with pytest.warns(GapviewWarning, match="cannot be written: .*The fit continues") as warned:
        model = GRMF(**settings).fit(blocks, checkpoint=tmp_path / "file" / "fit")
    assert len(warned) == 1
    np.testing.assert_array_equal(model.embedding_.compute(), whole.embedding_.compute())
    # The disk is full from the second time on: what was written before counts, and nothing half written stays
    really, written = _checkpoint._write, []

    def full(address: str, **arrays: Any) -> None:
        written.append(address)
        if len(written) > 4:
            raise DataFileError("The checkpoint cannot be written: no space left on device.")
        really(address, **arrays)

    monkeypatch.setattr(_checkpoint, "_write", full)
    path = tmp_path / "fit"
    with (
        pytest.warns(GapviewWarning, match="no space left.*The fit continues") as warned,
        pytest.raises(_Cut),
        _cut_at(31),
    ):
        GRMF(**settings).fit(blocks, checkpoint=path)
    assert len(warned) == 1
    assert len(list(path.iterdir())) == 1 + 2
    monkeypatch.undo()
    seen: list[int] = []
    with listening(lambda event: seen.append(event.done) if event.phase == "Iterating" else None):
        model = GRMF(**settings).fit(blocks, checkpoint=path)
    assert seen[0] == 11
    np.testing.assert_array_equal(model.embedding_.compute(), whole.embedding_.compute())


def test_files_of_an_interrupted_fit_are_removed(three: Views, tmp_path: Path) -> None:
    blocks = unevenly(written_out(three), 0.5)
    path = tmp_path / "fit"
    path.mkdir()
    for name in ("000010-0123abcd-000000.npz", "000010-0123abcd-000001.npz.89ab4567.part"):
        (path / name).write_bytes(b"half")
    GRMF(4, init="data", random_state=0).fit(blocks, checkpoint=path)
    assert not list(path.glob("*0123abcd*"))
    for wrong, error in (
        (3, InputTypeError),
        (b"fit", InputTypeError),
        ("", DataFileError),
        ("no://fit", DataFileError),
    ):
        with pytest.raises(error):
            GRMF(4).fit(blocks, checkpoint=wrong)
