"""The commands that go from files to results: thin click commands over plain functions, one module for each."""

from ._cluster import cluster
from ._info import info
from ._predict import predict
from ._recover import recover
from ._report import report

__all__ = ["cluster", "info", "predict", "recover", "report"]
