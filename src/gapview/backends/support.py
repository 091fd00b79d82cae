"""What a backend does not support: every such error, with what to do instead, and the container of results."""

from __future__ import annotations

from typing import Any

from sklearn import get_config

from ..errors import InputError, NotFittedError, ParameterError

_ERRORS: dict[str, tuple[type[Exception], str]] = {
    "parameter on a cluster": (
        ParameterError,
        "{name} is for fits in this process, and the views are Dask collections: leave {name} out. The workers of the "
        "cluster have their own memory limit.",
    ),
    "batch on a cluster": (
        ParameterError,
        "batch is for fits in this process, and the views are Dask collections, whose labels stay on the workers: "
        "leave batch out, and test the labels afterwards with gapview.trust.group_association.",
    ),
    "correction on a cluster": (
        ParameterError,
        "batch_correction={way!r} is for fits in this process, and the views are Dask collections: leave "
        "batch_correction out, or give the views in memory.",
    ),
    "correction within a budget": (
        ParameterError,
        "batch_correction={way!r} corrects the views in memory: leave memory_budget out, or batch_correction.",
    ),
    "leiden on a cluster": (
        ParameterError,
        "assign='leiden' needs the whole graph in this process, and the views are Dask collections: leave assign out, "
        "or give the views in memory.",
    ),
    "frames from a cluster": (
        ParameterError,
        "Results of a fit on a cluster stay Dask arrays; set_output asks for frames. Use "
        "set_output(transform='default').",
    ),
    "filling on a cluster": (
        ParameterError,
        "partial_rows='fill' searches neighbours in the whole view, which no worker of a cluster holds. Use "
        "partial_rows='drop', or fill the gaps first.",
    ),
    "training data on a cluster": (
        NotFittedError,
        "This model was fitted on a cluster, and its training data are there. Use model.reference_, an ordinary model "
        "with the same bases and clusters and a sample of the training data; it can also be saved.",
    ),
    "method without views on a cluster": (
        InputError,
        "A model fitted on a cluster keeps a sample of its training data only: give the views, {method}(views), as "
        "Dask collections, or use model.reference_ to complete that sample.",
    ),
    "score on a cluster": (
        InputError,
        "score compares all samples with each other: give views in memory, such as a sample of the rows.",
    ),
    "place on a cluster": (
        InputError,
        "place takes views in memory: give it some of the rows, or use predict and predict_proba for Dask collections.",
    ),
    "frames to a method": (
        InputError,
        "{method} takes Dask arrays, or for predict, predict_proba and transform one Dask dataframe: several would "
        "have to be joined by their ids first. Join them, or give arrays whose rows are the same samples.",
    ),
    "filling on disk": (
        ParameterError,
        "View '{name}' has {n_rows} row(s) with some but not all values, and partial_rows='fill' needs the whole view "
        "in memory, which memory_budget does not allow. Use partial_rows='drop', or fill the gaps in the file first.",
    ),
    "too large for memory": (
        ParameterError,
        "memory_budget: with the views in memory this needs {needed}, you gave {budget}: use a larger budget; or save "
        "each view with np.save and give it as np.load(path, mmap_mode='r'), so that it stays on disk and {least} are "
        "enough.",
    ),
    "too large for a device": (
        ParameterError,
        "memory_budget: with device, it is the memory of the device, where graphs and codes take about {least}; you "
        "gave {budget}: use a larger budget, or leave device out.",
    ),
}


def unsupported(what: str, **values: Any) -> Exception:
    """Return the error for something that a backend does not support.

    Parameters
    ----------
    what : str
        A name in the table of this module.
    **values
        Values for the message.

    Examples
    --------
    >>> from gapview.backends.support import unsupported
    >>> type(unsupported("score on a cluster")).__name__
    'InputError'
    """
    kind, text = _ERRORS[what]
    return kind(text.format(**values))


def output_kind(model: Any) -> str:
    """Return the container that ``set_output`` or else scikit-learn's configuration selects."""
    return str(getattr(model, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"]))
