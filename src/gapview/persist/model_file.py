"""Saving and loading models: what a person calls."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import Any

from ..errors import InputError, InputTypeError
from ..utils.storage import write_whole
from ..utils.types import Array
from ._consistency import check_model
from .container import FORMAT, model_path, opened, pieces, read_blocks, read_header
from .registry import METHODS, method_name
from .summary import ModelSummary, from_header, summarise, to_header
from .values import Decoder, Encoder

_OUTPUT = "_sklearn_output_config"  # what set_output has set


def save(model: Any, path: Any) -> None:
    """Write a fitted model to a file: what is behind the method ``save`` of every model."""
    file = model_path(path)
    method_name(model)
    model._demand_fitted()
    try:
        check_model(model)
    except ValueError as error:
        raise InputError(f"The model is not as fit has left it, and cannot be saved: {error}") from None
    for name in vars(model):
        if not _is_known(type(model), name):
            raise InputTypeError(
                f"model.{name} is neither a setting nor an attribute of a fitted {type(model).__name__}: it would be "
                f"lost. Take it off with del model.{name}, or keep the model with joblib.dump."
            )
    encoder = Encoder()
    attributes = {name: encoder.encode(value, f"model.{name}") for name, value in vars(model).items()}
    header = {"model": to_header(summarise(model, version("gapview"), FORMAT))}
    write_whole(file, pieces(header, encoder.to_blocks({"attributes": attributes})))


def load(path: Any) -> Any:
    """Load a model that ``model.save`` has written.

    Predictions, codes and recovered views are the same as before saving, to the last bit, with the same versions of the
    libraries. Nothing in the file is executed: it holds numbers and text, and names of classes only as far as gapview
    knows them. That makes it safe to load a file from elsewhere; whether the model in it is any good, no checksum can
    tell.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model
        Fitted, of the class that was saved.

    Raises
    ------
    DataFileError
        If there is no such file, if it is no model file, damaged, cut off or forged, or of a newer format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import gapview
    >>> from gapview.datasets import make_views
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> model = gapview.GRMF(n_clusters=2, random_state=0).fit(views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.gapview"
    ...     model.save(path)
    ...     again = gapview.load(path)
    >>> bool((again.predict(views) == model.predict(views)).all())
    True
    """
    with opened(path) as stream:
        header = read_header(stream)
        summary = from_header(header, FORMAT)
        return _rebuilt(summary, read_blocks(stream, header))


def describe(path: Any) -> ModelSummary:
    """Tell what is in a model file from its header, without reading the model.

    Only the header is checked for damage: the rest of the file is not looked at.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    ModelSummary
        ``print`` shows it.

    Raises
    ------
    DataFileError
        As :func:`gapview.load`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gapview.baselines import Concat
    >>> from gapview.datasets import make_views
    >>> from gapview import describe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.gapview"
    ...     Concat(2, random_state=0).fit(make_views(n_samples=60, n_clusters=2, random_state=0).views).save(path)
    ...     print(str(describe(path)).splitlines()[0])
    Concat of 60 samples, 60 of them complete, in 2 groups of 30, 30
    """
    with opened(path) as stream:
        return from_header(read_header(stream), FORMAT)


def _is_known(method: type[Any], name: str) -> bool:
    """Tell whether a model of this class can have the attribute: a setting, something fitted, or an output."""
    return (name.endswith("_") and not name.startswith("_")) or name == _OUTPUT or name in method._get_param_names()


def _rebuilt(summary: ModelSummary, blocks: list[Array]) -> Any:
    """Make the model from the blocks of its file."""
    decoder, state = Decoder.from_blocks(blocks)
    attributes = {name: decoder.decode(value) for name, value in state["attributes"].items()}
    method = METHODS[summary.method]
    settings = {name: attributes.pop(name) for name in method._get_param_names() if name in attributes}
    model = method(**settings)
    for name, value in attributes.items():
        if not _is_known(method, name):
            raise ValueError(f"it has {name!r}, which no fitted {summary.method} of this gapview has")
        setattr(model, name, value)
    check_model(model)
    model._demand_fitted()
    found = summarise(model, summary.gapview_version, summary.format_version)
    if replace(found, settings=summary.settings) != summary:
        raise ValueError("its header describes another model")
    return model
