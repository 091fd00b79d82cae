"""Where the data of a fit lives: on disk or on a Dask cluster."""
