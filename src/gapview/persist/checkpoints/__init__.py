"""Checkpoints: what a fit has finished is kept on disk, so that a fit that was cut off goes on where it stood.

``fit(views, checkpoint=folder)`` of :class:`gapview.GRMF` and :class:`gapview.BridgedGRMF` leads here. A fit is made of
steps whose results follow from the data, the settings and the seed alone: :func:`remember` gives the result of such a
step from the checkpoint, or makes it and keeps it. What goes on in many small steps notes now and then where it stands,
see :func:`ongoing`. Without a checkpoint, both do nothing but the work.

Every result is a file of its own in the folder, written whole or not at all and checked when it is read. Since a result
is the same whenever it is made, any of the files that are there go together; one that is lost is made again.
"""

from ._journal import Journal, Track, ongoing, remember, remember_search, writing_every
from ._recording import Checkpoint, random_numbers, recording

__all__ = [
    "Checkpoint",
    "Journal",
    "Track",
    "ongoing",
    "random_numbers",
    "recording",
    "remember",
    "remember_search",
    "writing_every",
]
