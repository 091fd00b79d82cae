"""Fits that are cut off, for tests of checkpoints."""

from __future__ import annotations

import os

from gapview.datasets import make_views
from gapview.persist.checkpoints import folder as checkpoint_folder
from gapview.persist.checkpoints import journal as journal_module
from gapview.persist.registry import Encoder
from gapview.utils.packing import to_json

VIEWS = make_views(n_samples=70, n_clusters=3, missing_rate=0.3, random_state=0).views


class CutOff(Exception):
    """The end of a process, as far as one process can tell."""


def keep_everything(monkeypatch):
    """Have every step kept as soon as it is done, whatever writing costs."""
    monkeypatch.setattr(journal_module, "SECONDS", 0.0)
    monkeypatch.setattr(journal_module, "MOST_SHARE", float("inf"))
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # there is no power cut here


def contents(model):
    """All that a fit has found, bit by bit."""
    encoder = Encoder()
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    return to_json({name: encoder.encode(value, name) for name, value in fitted.items()}), [
        block.tobytes() for block in encoder.blocks
    ]


def cut_off(model, views, folder, n_written, monkeypatch, error=CutOff):
    """Fit until so many results are kept; tell whether it came so far."""
    save, count = checkpoint_folder.CheckpointFolder.save, []

    def counted(self, key, value):
        save(self, key, value)
        count.append(key)
        if len(count) == n_written:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_folder.CheckpointFolder, "save", counted)
        try:
            model.fit(views, checkpoint=folder)
        except error:
            return True
        return False
