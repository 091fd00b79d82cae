"""Cost and fault tolerance of fits on a Dask cluster, measured on clusters of processes on this machine.

``gapview-lab cluster --help`` lists the measurements; results/dask.md has the figures.
"""
