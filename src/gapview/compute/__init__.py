"""Where the arithmetic runs: NumPy in row blocks that stay in cache, or PyTorch on a device.

The formulas are written once, in terms of the array namespace of the data and of the engine that
:func:`gapview.compute.engine.engine_for` returns.
"""
