"""Where the data of a fit are: in memory or on a device, on disk, or on a Dask cluster.

An estimator spells out the steps of its fit once, as calls of a :class:`gapview.backends.base.Backend`.
"""
