"""The commands, from files to results: thin click commands over plain functions."""

from ._cluster import cluster
from ._console import new_console, printable, say, say_files
from ._covariates import read_covariates
from ._folder import read_record, results_folder
from ._info import info
from ._moved import bench, reproduce
from ._predict import predict
from ._recover import recover
from ._report import report
from ._tables import write_labels

__all__ = [
    "bench",
    "cluster",
    "info",
    "new_console",
    "predict",
    "printable",
    "read_covariates",
    "read_record",
    "recover",
    "report",
    "reproduce",
    "results_folder",
    "say",
    "say_files",
    "write_labels",
]
