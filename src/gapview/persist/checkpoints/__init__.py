"""Checkpoints: the results of finished steps of a fit, on disk, so that an interrupted fit can be resumed.

``fit(views, checkpoint=folder)`` of :class:`gapview.GRMF` and :class:`gapview.BridgedGRMF` uses them. The result of a
step depends on the data, the settings and the seed alone: :func:`checkpointed` reads it from the checkpoint, or
computes and records it. Computations of many small steps record their state from time to time, see
:class:`StateRecord`. Without a checkpoint, neither does anything but the computation.

Every result is a file of its own, written whole or not at all, and verified when it is read. Results do not depend on
when they were computed, so all files in a folder fit together; a missing one is computed again.
"""

from .folder import Checkpoint, recording
from .journal import StateRecord, checkpointed, checkpointed_search, writing_every

__all__ = ["Checkpoint", "StateRecord", "checkpointed", "checkpointed_search", "recording", "writing_every"]
