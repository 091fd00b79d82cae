"""Model files that are made up, with all checksums right: one clear error, no memory beyond the file."""

from __future__ import annotations

import copy
import hashlib
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gapview
from gapview import GRMF, BridgedGRMF
from gapview.baselines import Concat
from gapview.datasets import make_views
from gapview.errors import DataFileError, GapviewError
from gapview.persist.model_file import opened, pieces, read_blocks, read_header
from gapview.utils.packing import from_json, to_json

DATA = make_views(12, (4, 3), n_clusters=2, missing_rate=0.3, random_state=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    GRMF(2, init="data", random_state=0).fit(DATA.views).save(folder / "GRMF")
    BridgedGRMF(2, selection="fixed", random_state=0).fit(DATA.views).save(folder / "BridgedGRMF")
    return folder


def refused(path, content, match=None):
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=match) as caught:
        gapview.load(path)
    assert path.name in str(caught.value)
    return str(caught.value)


def taken_apart(path):
    with opened(path) as stream:
        header = read_header(stream)
        state, *blocks = read_blocks(stream, header)
    return {"model": header["model"]}, from_json(state), blocks


def put_together(header, state, blocks, raw_state=None):
    """A forgery with all checksums right."""
    text = to_json(state) if raw_state is None else raw_state
    return b"".join(pieces(header, [np.frombuffer(text, dtype=np.uint8), *blocks]))


def prefixed(content, *, version=None, header_length=None, length=None):
    """Change numbers of the prefix and make its checksum fit."""
    magic, old_version, old_header, old_length, _ = struct.unpack("<12sIQQ32s", content[:64])
    numbers = (version, old_version), (header_length, old_header), (length, old_length)
    start = struct.pack("<12sIQQ", magic, *(old if new is None else new for new, old in numbers))
    return start + hashlib.sha256(start + content[64 : 64 + old_header]).digest() + content[64:]


def test_huge_sizes_take_no_memory(folder, tmp_path):
    header, state, blocks = taken_apart(folder / "GRMF")
    path, huge = tmp_path / "huge", 2**40
    content = put_together(header, state, blocks)
    text = content[64:].split(b'"blocks":[')[1].split(b",")[0]
    long_block = content.replace(b'"blocks":[' + text, b'"blocks":[' + b"9" * len(text))
    forged = []
    for shape in ([huge], [huge, huge, huge], [0, 2**70], [-1, -3]):
        other = copy.deepcopy(state)
        other["arrays"][0]["shape"] = shape
        forged.append(put_together(header, other, blocks))
    for dtype in ("<U999999999", "<f16", "O", "|O", "i4,f4", "<V8", "|S0", "f8", ["<f8"], None, "<M8[xs]"):
        other = copy.deepcopy(state)
        other["arrays"][0]["dtype"] = dtype
        forged.append(put_together(header, other, blocks))
    other = copy.deepcopy(state)
    other["objects"] = [{"shape": [huge], "items": []}]
    forged.append(put_together(header, other, blocks))
    tracemalloc.start()
    try:
        for bad in [prefixed(long_block), *forged]:
            refused(path, bad)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


JSON_FORGERIES = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep but allowed by JSON": b'{"attributes":{"tol":' + b"[" * 60 + b"]" * 60 + b'},"objects":[],"arrays":[]}',
    "NaN": b'{"attributes":{"tol":NaN},"objects":[],"arrays":[]}',
    "a long number": b'{"attributes":{"tol":' + b"9" * 10_000 + b'},"objects":[],"arrays":[]}',
    "not JSON": b"{",
    "not ASCII": '{"attributes":"é"}'.encode(),
    "not a dict": b"[]",
    "nothing": b"",
}


@pytest.mark.parametrize("name", JSON_FORGERIES)
def test_bad_json(name, folder, tmp_path):
    header, state, blocks = taken_apart(folder / "GRMF")
    refused(tmp_path / "json", put_together(header, None, [], JSON_FORGERIES[name]))
    twice = to_json(state).replace(b'{"attributes":', b'{"objects":[],"attributes":', 1)
    refused(tmp_path / "twice", put_together(header, None, blocks, twice), "a key twice")


def forge_attribute(name, value):
    return lambda header, state: state["attributes"].__setitem__(name, value)


def forge_header(name, value):
    return lambda header, state: header["model"].__setitem__(name, value)


def shorten(name):
    """Give an attribute the array of another one."""

    def forge(header, state):
        state["attributes"][name] = state["attributes"]["objective_"]

    return forge


FORGERIES = {
    "unknown class": (forge_header("method", "os.system"), "unknown class 'os.system'"),
    "another class": (forge_header("method", "Concat"), "it has"),
    "method that is none": (forge_header("method", 3), "header"),
    "other sizes": (forge_header("group_sizes", [12]), "describes another model"),
    "other views": (forge_header("views", []), "describes another model"),
    "no settings": (lambda header, state: header["model"].pop("settings"), "settings"),
    "no summary": (lambda header, state: header.pop("model"), "model"),
    "unknown kind of value": (forge_attribute("tol", {"eval": "1"}), "unknown kind 'eval'"),
    "two kinds of value": (forge_attribute("tol", {"int": "1", "float": "0"}), "unpack"),
    "unknown attribute": (forge_attribute("remark", 1), "'remark'"),
    "a method replaced": (forge_attribute("predict", 1), "'predict'"),
    "a property replaced": (forge_attribute("_n_features_out", 1), "_n_features_out"),
    "a special attribute": (forge_attribute("__class__", "GRMF"), "__class__"),
    "bad setting": (forge_attribute("n_clusters", -1), "n_clusters"),
    "labels too short": (shorten("labels_"), "labels_"),
    "bases missing": (lambda header, state: state["attributes"].pop("bases_"), "no bases_"),
    "bases of one view": (lambda header, state: state["attributes"]["bases_"].pop(), "bases_"),
    "bases turned": (lambda header, state: state["attributes"]["bases_"].reverse(), "bases_"),
    "scaling of one view": (lambda header, state: state["attributes"]["scalings_"].pop(), "scaling"),
    "wide graph": (lambda header, state: state["attributes"]["graphs_"][0]["sparse"][1].__setitem__(1, 99), "graphs_"),
    "array of no number": (forge_attribute("embedding_", {"array": -1}), "array number -1"),
    "array beyond the last": (forge_attribute("embedding_", {"array": 99}), "IndexError"),
    "features": (forge_attribute("n_features_in_", 8), "n_features_in_"),
    "iterations": (forge_attribute("n_iter_", 1), "iterations"),
    "time zone elsewhere": (forge_attribute("tol", {"datetime": ["2020-01-01", 0, "../passwd"]}), "passwd"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_with_right_checksums(name, folder, tmp_path):
    header, state, blocks = taken_apart(folder / "GRMF")
    forge, said = FORGERIES[name]
    forge(header, state)
    refused(tmp_path / "forged", put_together(header, state, blocks), said)


def forge_setting(name, value):
    return lambda header, state: state["attributes"]["setting_"]["Setting"].__setitem__(name, value)


BRIDGED_FORGERIES = {
    "bridge": (forge_setting("bridge", "none"), "'none' is not known"),
    "scales": (forge_setting("scales", {"tuple": ["unit", "other"]}), "not known"),
    "other views": (forge_setting("n_neighbors", {"tuple": [3]}), "other views"),
    "no neighbours": (forge_setting("n_neighbors", {"tuple": [3, 0]}), "no neighbours"),
    "kind": (forge_setting("reach", "far"), "Setting.reach"),
    "not tried": (lambda _, state: state["attributes"]["selection_"]["Selection"].update(chosen=1), "not tried"),
    "samples": (lambda _, state: state["attributes"]["selection_"]["Selection"].update(n_samples=3), "other samples"),
    "part missing": (lambda _, state: state["attributes"]["setting_"]["Setting"].pop("reach"), "a Setting in it"),
    "part too much": (forge_setting("other", 1), "a Setting in it"),
}


@pytest.mark.parametrize("name", BRIDGED_FORGERIES)
def test_forged_settings(name, folder, tmp_path):
    header, state, blocks = taken_apart(folder / "BridgedGRMF")
    forge, said = BRIDGED_FORGERIES[name]
    forge(header, state)
    refused(tmp_path / "forged", put_together(header, state, blocks), said)


def place_of(state, name):
    found = state["attributes"][name]
    while isinstance(found, list):
        found = found[0]
    return found["array"] if "array" in found else found["sparse"][2]


@pytest.mark.parametrize("name", ["embedding_", "cluster_centers_", "bases_", "objective_", "confidence_"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_must_be_finite(name, value, folder, tmp_path):
    header, state, blocks = taken_apart(folder / "GRMF")
    blocks[place_of(state, name)].view(np.float64)[0] = value
    refused(tmp_path / "nan", put_together(header, state, blocks), name)


def test_values_that_their_type_does_not_have(folder, tmp_path):
    header, state, blocks = taken_apart(folder / "GRMF")
    mask = state["attributes"]["views_"]["Views"]["mask"]["array"]
    blocks[mask][0] = 2
    refused(tmp_path / "mask", put_together(header, state, blocks), "truth values")
    header, state, blocks = taken_apart(folder / "GRMF")
    blocks[place_of(state, "labels_")].view(np.int32)[0] = 2
    refused(tmp_path / "labels", put_together(header, state, blocks), "unknown groups")
    header, state, blocks = taken_apart(folder / "GRMF")
    state["objects"] = [{"shape": [12], "items": [[number] for number in range(12)]}]
    state["attributes"]["sample_ids_"] = state["attributes"]["views_"]["Views"]["sample_ids"] = {"objects": 0}
    refused(tmp_path / "ids", put_together(header, state, blocks), "cannot be compared")
    header, state, blocks = taken_apart(folder / "GRMF")
    state["attributes"]["tol"] = {"scalar": [{"array": len(blocks)}]}
    state["arrays"].append({"dtype": "<U1", "shape": []})
    blocks.append(np.full(4, 255, dtype=np.uint8))
    refused(tmp_path / "text", put_together(header, state, blocks), "characters that do not exist")


@pytest.mark.parametrize("state", [[625, 0], [-1, 0], [3, 2]])
def test_a_source_of_random_numbers_out_of_its_range(state, tmp_path):
    """The code that draws numbers trusts the position."""
    path = tmp_path / "random"
    Concat(2, random_state=np.random.RandomState(0)).fit(DATA.views).save(path)
    header, good, blocks = taken_apart(path)
    good["attributes"]["random_state"]["RandomState"][1:3] = state
    refused(path, put_together(header, good, blocks), "RandomState in an impossible state")


@pytest.mark.parametrize(
    ("part", "place", "value"), [(1, 0, 1000), (1, 0, -1), (2, 0, 1), (2, -1, 10**6), (2, 1, 10**9), (2, 2, 0)]
)
def test_positions_outside_of_a_sparse_matrix(part, place, value, folder, tmp_path):
    """The library that multiplies it would read and write beyond its memory."""
    header, state, blocks = taken_apart(folder / "GRMF")
    array = place_of(state, "graphs_")[part]["array"]
    blocks[array].view(state["arrays"][array]["dtype"])[place] = value
    refused(tmp_path / "sparse", put_together(header, state, blocks), "positions are outside")


JUNK = st.sampled_from(
    [
        *(None, True, 0, -1, 3, 2**62, 0.5, -1e300, "", "unit", "x" * 50, [], [[]], {}, {"tuple": []}, {"array": 0}),
        *({"array": 3}, {"scalar": [{"array": 0}]}, {"float": "7ff8000000000000"}, {"dict": []}, {"objects": 0}),
    ]
)


def places(value, path=()):
    """List the way to every part of nested JSON."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


@pytest.mark.parametrize("name", ["GRMF", "BridgedGRMF"])
@pytest.mark.filterwarnings("ignore")  # nonsense may overflow
@settings(max_examples=150)
@given(data=st.data())
def test_any_part_replaced_gives_our_error_or_a_model_that_answers(name, data, folder):
    header, state, blocks = taken_apart(folder / name)
    *way, last = data.draw(st.sampled_from([path for path in places(state) if path]))
    inner = state
    for key in way:
        inner = inner[key]
    inner[last] = data.draw(JUNK)
    path = folder / "any"
    path.write_bytes(put_together(header, state, blocks))
    try:
        model = gapview.load(path)
    except DataFileError:
        return
    try:
        model.place(DATA.views)
        model.recover()
        model.view_agreement()
        model.save(path)
    except GapviewError:
        pass


@pytest.mark.parametrize("value", [b"[[]],", b"{},", b'{"a":0},', b'{"dict":[]},', b"[[[[]]]],"])
def test_short_json_that_takes_much_memory(value, folder, tmp_path):
    header, _, _ = taken_apart(folder / "GRMF")
    text = b'{"attributes":{},"objects":[],"arrays":[' + value * (10_000_000 // len(value)) + b"0]}"
    content = put_together(header, None, [], text)
    tracemalloc.start()
    try:
        refused(tmp_path / "forged", content, "bytes of memory")
        assert tracemalloc.get_traced_memory()[1] < 4 * len(content)
    finally:
        tracemalloc.stop()


def test_a_header_that_takes_much_memory(folder, tmp_path):
    header, _, _ = taken_apart(folder / "GRMF")
    header["model"]["settings"] = [[[]]] * 600_000
    path = tmp_path / "forged"
    path.write_bytes(put_together(header, {}, []))
    for read in (gapview.load, gapview.describe):
        with pytest.raises(DataFileError, match="bytes of memory"):
            read(path)
    content = b"".join(pieces({}, [np.empty(0, dtype=np.uint8)] * 510_000))
    refused(path, content, "too many blocks|bytes of memory")
