"""The commands, from files to results and for measuring: thin click commands over plain functions."""

from ._bench import bench
from ._cluster import cluster
from ._info import info
from ._predict import predict
from ._recover import recover
from ._report import report

__all__ = ["bench", "cluster", "info", "predict", "recover", "report"]
