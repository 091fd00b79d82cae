"""Model files: a fitted model, and a summary of it that is read without its arrays.

A file is a prefix of fixed size, a header in JSON, and blocks of plain bytes. Checkpoints have the same layout.

    64 bytes   magic (12), format (4), length of the header (8), length of the file (8), SHA-256 (32)
    header     JSON, filled up with blanks; lists the lengths of the blocks and holds their SHA-256
    blocks     one after the other, each filled up with zeros

The first checksum covers the rest of the prefix and the header, the second the blocks: the header can be verified
without the blocks, and every byte of the file is covered. Lengths are compared with the length of the file before
anything is read into memory. Nothing is compressed, so that a file needs no more memory than its length.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import DataFileError, GapviewError, InputError, InputTypeError, MissingExtraError
from ..utils.messages import shown
from ..utils.packing import demand, demand_memory, from_json, to_json
from ..utils.storage import write_whole
from ..utils.types import Array
from .consistency import check_model, fits, hints_of
from .registry import METHODS, Decoder, Encoder, method_name

FORMAT = 1

_MAGIC = b"\x89GAPVIEW\r\n\x1a\n"  # contains line ends, so that a transfer as text is detected
_PREFIX = struct.Struct("<12sIQQ32s")
_UNSIGNED = 32  # bytes of the prefix before its checksum
_STEP = 64
_MOST_HEADER = 2**24  # bytes; real headers have a few thousand
_BLOCK_MEMORY, _FREE_MEMORY = 400, 200_000_000  # bytes for the objects of one block; for any file
_CUT_OFF = "it was cut off while it was being read"
_AGAIN = "Copy or download the file again, or save the model again."

_REASONS = {"selection": "reason for the settings", "cluster_count": "reason for the number of groups"}
_OUTPUT = "_sklearn_output_config"  # set by set_output
_LONGEST = 200  # characters of a setting in a summary


@dataclass(frozen=True)
class ViewSummary:
    """One view of the training data."""

    name: str  # name of the view
    n_samples: int  # number of samples that have the view
    n_features: int  # number of features


@dataclass(frozen=True)
class ModelSummary:
    """The content of a model file; returned by :func:`gapview.describe`.

    Attributes
    ----------
    method : str
        Name of the class.
    settings : dict
        The parameters. Numbers, text and None as they are; anything else as a short text.
    n_samples, n_complete : int
        Number of training samples, and how many of them have all views.
    views : tuple of ViewSummary
        ``name``, ``n_samples`` and ``n_features`` of every view.
    group_sizes : tuple of int
        Number of samples in group 0, 1, …
    chosen : dict
        What the fit has chosen from the data: of :class:`gapview.BridgedGRMF` the setting (for each view the scale, the
        number of neighbours and the weight; bridge, reach, K, λ1, λ2), and the reasons for it (``selection``) and, with
        ``n_clusters="auto"``, for the number of groups (``cluster_count``). Empty for methods that choose nothing.
    gapview_version : str
        Version of gapview that wrote the file.
    format_version : int
        The format of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gapview import GRMF
    >>> from gapview.datasets import make_views
    >>> from gapview import describe
    >>> views = make_views(n_samples=60, n_clusters=2, missing_rate=0.3, random_state=0).views
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.gapview"
    ...     GRMF(n_clusters=2, random_state=0).fit(views).save(path)
    ...     found = describe(path)
    >>> found.method, found.settings["n_clusters"], found.n_samples, len(found.group_sizes)
    ('GRMF', 2, 60, 2)
    """

    method: str
    settings: dict[str, Any]
    n_samples: int
    n_complete: int
    views: tuple[ViewSummary, ...]
    group_sizes: tuple[int, ...]
    chosen: dict[str, Any]
    gapview_version: str
    format_version: int

    def __str__(self) -> str:
        sizes = ", ".join(str(size) for size in self.group_sizes)
        lines = [
            f"{self.method} of {self.n_samples} samples, {self.n_complete} of them complete, "
            f"in {len(self.group_sizes)} groups of {sizes}",
            *(f"  view {view.name!r}: {view.n_samples} × {view.n_features}" for view in self.views),
            *(f"  {name} = {value!r}" for name, value in self.settings.items()),
            *(f"  {_REASONS.get(name, f'chosen {name}')}: {_in_words(value)}" for name, value in self.chosen.items()),
            f"  written by gapview {self.gapview_version}, format {self.format_version}",
        ]
        return "\n".join(lines)


def summarise(model: Any) -> ModelSummary:
    """Return the summary of a fitted model."""
    views = model.views_
    facts = zip(views.names, views.mask.sum(axis=0).tolist(), views.n_features, strict=True)
    return ModelSummary(
        method_name(model),
        {name: shown_setting(value) for name, value in model.get_params(deep=False).items()},
        views.n_samples,
        int(views.mask.all(axis=1).sum()),
        tuple(ViewSummary(*view) for view in facts),
        tuple(np.bincount(model.labels_).tolist()),
        _chosen(model),
        version("gapview"),
        FORMAT,
    )


def _chosen(model: Any) -> dict[str, Any]:
    """Return what the fit has chosen from the data, in values that JSON can hold."""
    names, found = model.views_.names, {}
    if hasattr(model, "setting_"):
        found = {
            name: dict(zip(names, value, strict=True)) if isinstance(value, tuple) else shown_setting(value)
            for name, value in asdict(model.setting_).items()
        }
    if any(rule.kind for rule in getattr(model, "kinds_", ())):
        found["kinds"] = {rule.name: rule.kind or "as given" for rule in model.kinds_}
    if hasattr(model, "view_weights_"):
        found["view_weights"] = dict(zip(names, model.view_weights_.round(3).tolist(), strict=True))
    if hasattr(model, "selection_"):
        found["selection"] = str(model.selection_)
    if hasattr(model, "cluster_count_"):
        found["cluster_count"] = model.cluster_count_.reason()
    return found


def _in_words(value: Any) -> str:
    """Return a chosen value as text: a dict as one value for each view."""
    if isinstance(value, dict):
        return ", ".join(f"{each} ({name})" for name, each in value.items())
    return " ".join(str(value).split())


def shown_setting(value: Any) -> Any:
    """Return a setting as a value that JSON can hold: arrays and other objects as a short text."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if isinstance(value, list | tuple | dict):
        text = repr(value)
        return text if len(text) <= _LONGEST and "array" not in text else f"{type(value).__name__} of {len(value)}"
    return repr(value) if isinstance(value, float) else type(value).__name__


def save(model: Any, path: Any) -> None:
    """Write a fitted model to a file; called by the method ``save`` of every model."""
    file = check_path(path)
    method_name(model)
    model.check_fitted()
    try:
        check_model(model)
    except ValueError as error:
        raise InputError(f"The model is not as fit has left it, and cannot be saved: {error}") from None
    # Names like _this_ hold what is computed again when it is needed
    kept = {name: value for name, value in vars(model).items() if not (name.startswith("_") and name.endswith("_"))}
    for name in kept:
        if not _is_known(type(model), name):
            raise InputTypeError(
                f"model.{name} is neither a setting nor an attribute of a fitted {type(model).__name__}: it would be "
                f"lost. Take it off with del model.{name}, or keep the model with joblib.dump."
            )
    encoder = Encoder()
    attributes = {name: encoder.encode(value, f"model.{name}") for name, value in kept.items()}
    header = {"model": asdict(summarise(model))}
    blocks = encoder.to_blocks({"attributes": attributes})
    try:
        demand_memory(blocks[0].tobytes(), sum(len(block) for block in blocks))  # as when it is loaded
    except ValueError as error:
        raise InputError(
            f"The model cannot be saved: {error}. Give lists of numbers in its settings as NumPy arrays."
        ) from None
    write_whole(file, pieces(header, blocks))


def load(path: Any) -> Any:
    """Load a model that ``model.save`` has written.

    Predictions, codes and recovered views are the same as before saving, to the last bit, with the same versions of the
    libraries. Nothing in the file is executed: it holds numbers and text, and no class names but those of gapview. So a
    file from an untrusted source is safe to load; its checksums do not vouch for the quality of the model.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model
        The fitted model, of the class that was saved.

    Raises
    ------
    DataFileError
        If the file does not exist, is no model file, is damaged, truncated or forged, or has a newer format.

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
        return _rebuilt(_read_summary(header), read_blocks(stream, header))


def describe(path: Any) -> ModelSummary:
    """Return a summary of a model file, read from its header.

    Only the header is checked for damage: the rest of the file is not read.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    ModelSummary
        Method, settings, views and group sizes; ``print`` shows them.

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
        return _read_summary(read_header(stream))


def _read_summary(header: dict[str, Any]) -> ModelSummary:
    """Return the summary in the header of a file."""
    content = header["model"]
    views = tuple(ViewSummary(**view) for view in content["views"])
    summary = ModelSummary(**content | {"views": views, "group_sizes": tuple(content["group_sizes"])})
    for part in (summary, *summary.views):
        is_valid = all(fits(getattr(part, name), hint) for name, hint in hints_of(type(part)).items())
        demand(is_valid, "its header does not describe a model")
    demand(summary.format_version == FORMAT, "its header is of another format than the file")
    unknown = f"it holds a model of the unknown class {summary.method!r}; a newer gapview may know it"
    demand(summary.method in METHODS, unknown)
    return summary


def _is_known(method: type[Any], name: str) -> bool:
    """Return whether a model of this class can have an attribute: a setting, a fitted one, or that of set_output."""
    return (name.endswith("_") and not name.startswith("_")) or name == _OUTPUT or name in method._get_param_names()


def _rebuilt(summary: ModelSummary, blocks: list[Array]) -> Any:
    """Build the model from the blocks of its file."""
    decoder, state = Decoder.from_blocks(blocks)
    attributes = {name: decoder.decode(value) for name, value in state["attributes"].items()}
    method = METHODS[summary.method]
    settings = {name: attributes.pop(name) for name in method._get_param_names() if name in attributes}
    model = method(**settings)
    for name, value in attributes.items():
        demand(_is_known(method, name), f"it has {name!r}, which no fitted {summary.method} of this gapview has")
        setattr(model, name, value)
    check_model(model)
    model.check_fitted()
    found = summarise(model)
    # Not compared: what another version may word differently
    found = replace(found, settings=summary.settings, chosen=summary.chosen, gapview_version=summary.gapview_version)
    demand(found == summary, "its header describes another model")
    return model


# -- the layout -----------------------------------------------------------------------------------------------


def check_path(path: Any, expected: str = "path must be the path of a model file") -> Path:
    """Return a path, or raise unless it can be the name of a file or folder; ``expected`` begins the message."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputTypeError(f"{expected}, as text or a pathlib.Path; got {shown(path)}.")
    try:
        is_possible = os.fspath(path) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate
        is_possible = False
    if not is_possible:
        raise DataFileError(f"No file or folder can be called {os.fspath(path)!r}.")
    return Path(path)


def pieces(header: dict[str, Any], blocks: Sequence[Array]) -> list[Any]:
    """Return the content of a file in pieces, without a copy of the blocks."""
    digest = hashlib.sha256()
    body: list[Any] = [piece for block in blocks for piece in (block, bytes(-len(block) % _STEP))]
    for piece in body:
        digest.update(piece)
    text = to_json({**header, "blocks": [len(block) for block in blocks], "sha256": digest.hexdigest()})
    text += b" " * (-len(text) % _STEP)
    if len(text) > _MOST_HEADER:
        raise DataFileError(f"The settings of the model are too long to be saved: {len(text)} bytes as JSON.")
    length = _PREFIX.size + len(text) + sum(len(piece) for piece in body)
    start = _PREFIX.pack(_MAGIC, FORMAT, len(text), length, b"")[:_UNSIGNED]
    return [start, hashlib.sha256(start + text).digest(), text, *body]


@contextmanager
def opened(path: Any) -> Iterator[BinaryIO]:
    """Open a model file; raise any error while it is read as a DataFileError that names the file."""
    file = check_path(path)
    if not os.path.isfile(file):
        raise DataFileError(f"There is no file {str(file)!r}. Give the path of a file that model.save has written.")
    try:
        with file.open("rb") as stream:
            yield stream
    except (DataFileError, MissingExtraError):
        raise
    except OSError as error:
        raise DataFileError(f"Cannot read {str(file)!r}: {error.strerror or error}") from None
    except Exception as error:  # a forged file can cause any error
        reason = str(error)
        if not isinstance(error, ValueError | GapviewError):
            reason = f"its parts are not those of a model ({type(error).__name__}: {error})"
        raise DataFileError(f"{file.name!r} cannot be read as a model file: {reason.rstrip('.')}. {_AGAIN}") from None


def read_header(stream: BinaryIO) -> dict[str, Any]:
    """Read and check the prefix and the header."""
    name, size = repr(os.path.basename(stream.name)), os.fstat(stream.fileno()).st_size
    start = stream.read(_PREFIX.size)
    if not start or start[: len(_MAGIC)] != _MAGIC[: len(start)]:
        raise DataFileError(f"{name} is not a model file of gapview. Give a file that model.save has written.")
    if len(start) < _PREFIX.size:
        raise _cut_off(name, size)
    _, version, header_length, length, checksum = _PREFIX.unpack(start)
    if version > FORMAT:
        raise DataFileError(
            f"{name} has format {version} of a newer gapview; this one reads formats up to {FORMAT}. Update gapview: "
            "pip install --upgrade gapview"
        )
    if length > size:
        raise _cut_off(name, size, length)
    is_whole = length == size and header_length <= min(_MOST_HEADER, length - _PREFIX.size)
    demand(is_whole, "its length is not the one in its header")
    text = _exactly(stream, header_length)
    digest = hashlib.sha256(start[:_UNSIGNED] + text).digest()
    demand(digest == checksum, "it is damaged: the checksum of its header is wrong")
    demand(version >= 1, "there is no format 0")
    header: dict[str, Any] = from_json(text, size)
    lengths = header.get("blocks") if isinstance(header, dict) else None
    are_listed = isinstance(lengths, list) and all(type(each) is int and each >= 0 for each in lengths)
    demand(are_listed, "its header does not list its blocks")
    demand(len(header["blocks"]) * _BLOCK_MEMORY <= _FREE_MEMORY + size, "its header lists too many blocks")
    total = sum(each + -each % _STEP for each in header["blocks"])
    demand(total == length - _PREFIX.size - header_length, "its blocks do not have the lengths in its header")
    return header


def read_blocks(stream: BinaryIO, header: dict[str, Any]) -> list[Array]:
    """Read all blocks, and verify their checksum."""
    digest = hashlib.sha256()
    blocks = []
    for length in header["blocks"]:
        block = np.empty(length, dtype=np.uint8)
        n_read = stream.readinto(block)  # type: ignore[attr-defined]
        demand(n_read == length, _CUT_OFF)
        digest.update(block.data)
        digest.update(_exactly(stream, -length % _STEP))
        blocks.append(block)
    demand(digest.hexdigest() == header.get("sha256"), "it is damaged: the checksum of its contents is wrong")
    return blocks


def _exactly(stream: BinaryIO, length: int) -> bytes:
    found = stream.read(length)
    demand(len(found) == length, _CUT_OFF)
    return found


def _cut_off(name: str, size: int, length: int | None = None) -> DataFileError:
    of = "" if length is None else f" of {length}"
    return DataFileError(f"{name} is cut off: it has {size}{of} bytes. {_AGAIN}")
