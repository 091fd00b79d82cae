"""Fits larger than memory: views are read from their files in blocks, H from scratch files, within a memory budget.

:class:`gapview.GRMF` and :class:`gapview.BridgedGRMF` use this package if ``memory_budget`` is set and the views are
memory maps of ``.npy`` files. :mod:`gapview.backends.disk.budget` computes the memory of a fit before it starts.
"""
