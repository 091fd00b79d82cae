"""What a fit on a Dask cluster costs and withstands, measured on clusters of processes on this machine.

``gapview-lab cluster --help`` lists the measurements; results/dask.md has the figures.
"""
