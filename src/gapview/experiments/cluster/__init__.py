"""What a fit on a Dask cluster costs and withstands, measured on clusters of processes on this machine.

``python -m gapview.experiments.cluster --help`` lists the measurements; docs/dask.md says what they have shown.
"""
