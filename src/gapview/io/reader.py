"""A program that reads one file of a binary format and writes its values to standard output.

The libraries behind these formats trust the contents of a file: wrong bytes can crash or hang the process or exhaust
its memory. ``isolated`` therefore runs this file as a script in a process of its own. The script and the files beside
it that it loads import only ``utils.packing`` and ``utils.refusals`` of gapview, so that it starts quickly.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from gapview.utils.packing import Encoder, as_objects, demand, read_dtype
from gapview.utils.refusals import BYTES_PER_CELL, Refused, check_size

_MOST_DEPTH = 20  # of nested values
_MOST_CELL_DEPTH = 10  # of nested cell arrays in HDF5, which may refer to each other in circles
_PLAIN_KINDS = "biufcUS"


def main() -> None:
    """Read the file of the request in the first argument, within its limits of memory and time."""
    # What a library prints must not get between the values
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.loads(sys.argv[1])
    _limit(request["memory"], request["seconds"])
    write_answer(request, out)


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the parent process still limits the time
        return
    for what, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        _, most = resource.getrlimit(what)
        allowed = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(what, (allowed, allowed))


def write_answer(request: dict[str, Any], stream: BinaryIO) -> None:
    """Read a file and write the answer: the length of its JSON in 8 bytes, the JSON, and the bytes of all arrays."""
    try:
        text, blocks = encode({"value": _read(request)})
    except Refused as refusal:
        text, blocks = encode({"refused": str(refusal)})
    except Exception as error:  # any layer can fail: compression, headers, sizes, text
        text, blocks = encode({"failed": f"{type(error).__name__}: {error}"[:2000]})
    stream.write(struct.pack("<Q", len(text)) + text)
    for block in blocks:
        stream.write(block.data)
    stream.flush()


def limit_memory(most: int) -> None:
    """Limit the memory that this process may take beyond what it has now, where the system can do that."""
    try:
        import resource

        with open("/proc/self/statm") as stream:
            now = int(stream.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = now + most if soft == resource.RLIM_INFINITY else min(now + most, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _load(name: str) -> Any:
    """Import a file beside this one by its path: the package would take a second to import."""
    spec = spec_from_file_location(f"gapview_{name}", os.path.join(os.path.dirname(__file__), f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _read(request: dict[str, Any]) -> Any:
    kind, file, cells = request["kind"], request["file"], request["cells"]
    name = os.path.basename(file)
    if kind in _LOADED:
        module, function = _LOADED[kind]
        for package in _IMPORTED.get(kind, ()):  # their own memory does not count
            import_module(package)
        if request.get("is_own_process") and "most_memory" in request:
            limit_memory(request["most_memory"])
        with warnings.catch_warnings(action="ignore"):
            return getattr(_load(module), function)(request)
    with warnings.catch_warnings(action="ignore"):  # of old formats and of repeated variables
        if kind == "mat":
            from scipy.io import loadmat

            return {key: value for key, value in loadmat(file).items() if not key.startswith("__")}
        if kind == "feather":
            return _read_feather(file)
        import h5py

        with h5py.File(file, "r") as archive:
            places = request.get("places", {})
            if "obs" in request:
                _check_contents(archive, name, cells, r"(mod/[^/]+/)?obs(/|$)")
                return _read_obs(archive, name, kind == "h5mu", request["wanted"], request["obs"])
            _check_contents(archive, name, cells, _pattern(places) if kind in ("h5ad", "h5mu") else "")
            if kind == "10x":
                return _load("reader_10x").read_hdf5(archive, name, cells)
            if kind == "mat73":
                return {key: _read_mat73(archive, archive[key]) for key in archive if not key.startswith("#")}
            return _read_omics(archive, name, cells, kind == "h5mu", request["wanted"], places)


_LOADED = {
    "workbook": ("reader_workbook", "read_workbook"),
    "10x_folder": ("reader_10x", "read_folder"),
    "r": ("reader_r", "read_r"),
}
_IMPORTED = {"workbook": ("python_calamine",), "10x_folder": ("scipy.io",), "r": ("rdata",)}


def _read_feather(file: str) -> Any:
    """Read a Feather file of version 1 and return its contents in the format of version 2."""
    pyarrow, feather = import_module("pyarrow"), import_module("pyarrow.feather")
    table = feather.read_table(file, memory_map=False)
    table.validate(full=True)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


# -- HDF5: MATLAB v7.3, AnnData, MuData ----------------------------------------------------------------------------


def _check_contents(archive: Any, file: str, cells: int, pattern: str) -> None:
    """Refuse contents in other files and, among the items that match the pattern, sizes beyond the limits."""
    import h5py

    total = 0

    def external(name: str, link: Any) -> str | None:
        return name if isinstance(link, h5py.ExternalLink) else None

    def count(name: str, item: Any) -> str | None:
        nonlocal total
        if not isinstance(item, h5py.Dataset) or not re.match(pattern, name):
            return None
        if item.external or item.is_virtual:
            return name
        total += math.prod(item.shape or ()) * item.dtype.itemsize
        check_size(file, total, "bytes or more when unpacked", BYTES_PER_CELL * cells)
        return None

    name = archive.visititems_links(external) or archive.visititems(count)
    if name is not None:
        raise Refused(f"{file!r} refers to another file for {name!r}. Save it with all its contents in one file.")


def _read_mat73(archive: Any, node: Any, depth: int = 0) -> Any:
    """Read a variable of a MATLAB v7.3 file."""
    demand(depth <= _MOST_CELL_DEPTH, "cells are nested too deeply")
    if hasattr(node, "keys"):
        if "MATLAB_sparse" not in node.attrs:
            return None
        shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
        if "data" not in node:
            return sparse.csc_array(shape)
        return sparse.csc_array((node["data"][()], node["ir"][()], node["jc"][()]), shape=shape)
    if node.dtype.kind == "O":  # a cell array: references to its contents
        return as_objects(_read_mat73(archive, archive[reference], depth + 1) for reference in node[()].ravel())
    return node[()].T  # MATLAB stores columns first


def _pattern(places: dict[str, str]) -> str:
    """Return a regular expression for the items that are read; other layers may have any size."""
    read = {"X", "obs", "var", *places.values(), *("raw/var" for place in places.values() if place == "raw/X")}
    return rf"(mod/[^/]+/)?({'|'.join(map(re.escape, sorted(read)))})(/|$)"


def _read_omics(
    archive: Any, name: str, cells: int, several: bool, wanted: Sequence[str], places: dict[str, str]
) -> list[Any]:
    """Read a matrix, the sample names and the feature names; of a MuData file, of every modality.

    ``places`` holds where the matrix of a modality stands, and under the empty name where all others do.
    """
    usual = places.get("", "X")
    if not several:
        return [_read_group(name, None, archive, cells, wanted, usual)]
    if "mod" not in archive:
        raise Refused(f"{name!r} is no MuData file: it has no modalities. Is it an .h5ad file?")
    stored = list(archive["mod"])
    order = list(map(str, archive["mod"].attrs.get("mod-order", stored)))
    if not stored:
        raise Refused(f"{name!r} has no modalities. Give a file with at least one.")
    names = order if sorted(order) == sorted(stored) else stored
    return [_read_group(name, one, archive["mod"][one], cells, wanted, places.get(one, usual)) for one in names]


def _read_group(file: str, modality: str | None, group: Any, cells: int, wanted: Sequence[str], place: str) -> Any:
    from anndata.io import read_elem

    where = f"{file!r}" if modality is None else f"The view '{modality}' in {file!r}"
    if place != "X" and place not in group:
        raise Refused(f"{where} has no {place}; it has {_listed(group)}. Name one of these.")
    if not hasattr(group, "keys") or not {place.split("/")[0], "obs", "var"} <= set(group):
        raise Refused(
            f"{where} has no matrix X with names of samples and features. Put the "
            "values into .X of the AnnData, or name a layer."
        )
    stored = group[place]
    values = stored["data"] if hasattr(stored, "keys") and "data" in stored else stored  # of a sparse matrix
    check_size(file, getattr(values, "size", 0), "cells", cells)
    column = _find_column(file, modality, group["obs"], wanted)
    ids, id_name = _read_names(group["obs"], column, read_elem)
    matrix = read_elem(stored)
    if place.startswith("obsm/"):
        own = getattr(matrix, "columns", None)  # a frame
        matrix = matrix if own is None else matrix.to_numpy()
        key = place.removeprefix("obsm/")
        features = [f"{key}_{k + 1}" for k in range(matrix.shape[1])] if own is None else _plain(own)
    else:
        features, _ = _read_names(group["raw/var" if place == "raw/X" else "var"], None, read_elem)
    matrix = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    return {"name": modality, "ids": ids, "id_name": id_name, "column": column, "X": matrix, "features": features}


def _read_obs(archive: Any, name: str, several: bool, wanted: Sequence[str], column: str) -> list[Any]:
    """Read a column of obs, of every modality and of the whole file where it exists, with the sample names.

    A group without the column has its other columns in place of the values.
    """
    from anndata.io import read_elem

    modalities = archive.get("mod", {}) if several else {}
    groups = [*((one, modalities[one]) for one in modalities), (None, archive)]
    found = []
    for modality, group in groups:
        obs = group["obs"] if hasattr(group, "keys") and "obs" in group else None
        if obs is None or not hasattr(obs, "keys"):
            continue
        columns = [str(key) for key in obs if key != obs.attrs.get("_index") and not str(key).startswith("__")]
        answer: dict[str, Any] = {"columns": columns, "ids": [], "values": []}
        if column in columns:
            usable = [own for own in wanted if own in columns]  # the columns of a modality may be others
            key = _find_column(name, modality, obs, usable)
            answer["ids"] = _read_names(obs, key, read_elem)[0]
            answer["values"] = _plain(read_elem(obs[column]))
        found.append(answer)
    return found


def _listed(group: Any) -> str:
    """Return the matrices of an AnnData that can be named."""
    found = [place for place in ("X", "raw/X") if place in group]
    found += [f"{part}/{key}" for part in ("layers", "obsm") if part in group for key in group[part]]
    return ", ".join(found[:20]) or "none"


def _find_column(file: str, modality: str | None, obs: Any, wanted: Sequence[str]) -> str | None:
    """Return the first wanted column of obs; None for the index, if it has that name or nothing is wanted."""
    grouped = hasattr(obs, "keys")  # else as AnnData wrote it before version 0.7
    index = str(obs.attrs["_index"]) if grouped else "index"
    names = [str(name) for name in (obs if grouped else obs.dtype.names or ())]
    for name in wanted:
        if name in (index, index.removeprefix("_"), "obs_names"):
            return None
        if name in names and not name.startswith("__"):
            return name
    if not wanted:
        return None
    place = f"{file!r}" if modality is None else f"The view '{modality}' in {file!r}"
    others = [name for name in names if name != index and not name.startswith("__")]
    there = f"the columns {', '.join(map(repr, others[:8]))} and the names" if others else "only the names"
    raise Refused(
        f"{place} has no column {', '.join(map(repr, wanted))} in obs to take the sample ids from; it has {there} of "
        f"the observations ({index.removeprefix('_')!r}). Name one of these."
    )


def _read_names(group: Any, column: str | None, read: Any) -> tuple[list[Any], str]:
    """Read one column of obs or var, by default the index, as plain numbers and text."""
    if not hasattr(group, "keys"):  # as AnnData wrote it before version 0.7
        frame = read(group)
        return _plain(frame.index if column is None else frame[column]), str(frame.index.name or "index")
    index = str(group.attrs["_index"])
    return _plain(read(group[index if column is None else column])), index.removeprefix("_")


def _plain(cells: Any) -> list[Any]:
    found = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    return [cell if isinstance(cell, bool | int | float | str | bytes | None) else str(cell) for cell in found]


# -- values as JSON and bytes --------------------------------------------------------------------------------------


def encode(answer: dict[str, Any]) -> tuple[bytes, list[Any]]:
    """Return values as JSON, and the bytes of the arrays."""
    encoder = Encoder()
    values = {name: encoder.encode(_storable(value), name) for name, value in answer.items()}
    text, *blocks = encoder.to_blocks({"answer": values, "lengths": [len(block) for block in encoder.blocks]})
    return text.tobytes(), blocks


def _storable(value: Any, depth: int = 0) -> Any:
    """Return nested lists and dicts of text, numbers, arrays and CSR or CSC arrays; None in place of other values."""
    demand(depth <= _MOST_DEPTH, "cells are nested too deeply")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # lone surrogates cannot be written anywhere
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {str(key): _storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item, depth + 1) for item in value]
    if sparse.issparse(value):
        return _compressed(value)
    if not isinstance(value, np.ndarray):
        return None
    if value.dtype == object:
        return as_objects(_storable(item, depth + 1) for item in value.ravel()).reshape(value.shape)
    if value.dtype.kind not in _PLAIN_KINDS or not value.dtype.itemsize:  # records, or text of no length
        return None
    if value.dtype.kind == "U":
        np.char.encode(value, "utf-8")  # raises on characters that do not exist
    read_dtype(value.dtype.str)  # raises for numbers whose size depends on the machine
    return np.asarray(value)


def _compressed(matrix: Any) -> Any:
    """Return a valid CSR or CSC array whose positions are all of one integer type."""
    matrix = sparse.csc_array(matrix) if matrix.format == "csc" else sparse.csr_array(matrix)
    matrix.check_format(full_check=True)
    read_dtype(matrix.dtype.str)
    whole = np.result_type(matrix.indices, matrix.indptr)
    matrix.indices, matrix.indptr = matrix.indices.astype(whole, copy=False), matrix.indptr.astype(whole, copy=False)
    return matrix


if __name__ == "__main__":
    main()
