"""Damage to bytes: at random, and inside archives and JSON with lengths and checksums made right again."""

from __future__ import annotations

import ast
import copy
import gzip
import hashlib
import io
import json
import random
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["mutated", "mutated_gzip", "mutated_json", "mutated_mat", "mutated_model", "mutated_npy", "mutated_npz"]

_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
_NUMBERS = (
    b"0",
    b"-1",
    b"1e999",
    b"-1e308",
    b"9" * 40,
    b"9223372036854775808",
    b"1e-400",
    b"nan",
    b"inf",
    b"0x10",
    b"1_0",
)
_TOKENS = (
    *(
        b'"',
        b"'",
        b",",
        b";",
        b"\t",
        b"|",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"=",
        b"sep=;\n",
        b"\xef\xbb\xbf",
        b"\xff",
    ),
    *(
        b"\xff\xfe",
        b"\xc3\x28",
        b"id",
        b"sample",
        b"NA",
        b"true",
        b"2020-01-01",
        b"../../x",
        b"/etc/x",
        b"<script>",
        b"&",
    ),
    *(b"{", b"[", b"null", b"\x1f\x8b", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", "é€\u202e😀".encode(), b"1,5", b"1.234,5"),
)
_JUNK: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        7,
        2**40,
        2**70,
        0.5,
        -1e308,
        "",
        "x",
        "../../x",
        "<script>alert(1)</script>",
        [],
        [1, "a"],
        {},
    ),
    *(
        {"tuple": []},
        {"array": 0},
        {"array": 99},
        {"objects": 0},
        {"dict": [[1]]},
        {"int": "zz"},
        {"float": "7ff8000000000000"},
    ),
    *(
        {"scalar": [{"array": 0}]},
        {"datetime": [1, 2]},
        {"decimal": ["sNaN"]},
        {"Period": [1, "x"]},
        {"Timestamp": ["", "../x"]},
    ),
    *([[[[]]]], "9" * 5000, {"eval": "1"}, {"bytes": ["00"]}, {"sparse": ["csr_array", [9, 9], []]}),
)
_NAMES = (
    "../../escaped",
    "/tmp/escaped",
    "view_0",
    "view_99",
    "mask",
    "y",
    "sample_ids",
    "view_names",
    "a" * 300,
    "",
    "é\n",
)


def mutated(content: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage bytes in one to six places."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        rng.choice(_WAYS)(found, rng, others)
    return bytes(found[:200_000])


def _flip(content: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _change(content: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    if content:
        content[rng.randrange(len(content))] = rng.randrange(256)


def _cut(content: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    start = rng.randrange(len(content) + 1)
    del content[start : start + rng.choice((1, 8, 64, 10**9))]


def _repeat(content: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    start = rng.randrange(len(content) + 1)
    content[start:start] = content[start : start + rng.choice((1, 10, 100))] * rng.choice((1, 2, 50))


def _splice(content: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    other = rng.choice(others) if others else bytes(content)
    start, size = rng.randrange(len(other) + 1), rng.choice((4, 32, 256))
    place = rng.randrange(len(content) + 1)
    content[place : place + rng.choice((0, size))] = other[start : start + size]


def _huge(content: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    """Replace a number by an extreme one, in digits or in bytes."""
    digits = [match.span() for match in re.finditer(rb"\d+(?:\.\d+)?", content[:20_000])]
    if digits and rng.random() < 0.5:
        start, end = rng.choice(digits)
        content[start:end] = rng.choice(_NUMBERS)
    elif content:
        place, width = rng.randrange(len(content)), rng.choice((1, 2, 4, 8))
        number = rng.choice(_EXTREMES) % 2 ** (8 * width)
        content[place : place + width] = number.to_bytes(width, rng.choice(("little", "big")))


def _token(content: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    place = rng.randrange(len(content) + 1)
    content[place : place + rng.choice((0, 0, 1, 3))] = rng.choice(_TOKENS) * rng.choice((1, 1, 1, 3, 500))


_WAYS: tuple[Callable[[bytearray, random.Random, Sequence[bytes]], None], ...] = (
    *(_flip, _flip, _change, _cut, _repeat, _splice, _huge, _huge, _token, _token),
)


def mutated_gzip(content: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage compressed contents, and compress them again."""
    return gzip.compress(mutated(gzip.decompress(content), rng), 1, mtime=0)


def mutated_npy(content: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage the header or the numbers of an array, and make the length of the header right."""
    (length,) = struct.unpack("<H", content[8:10])
    header, body = content[10 : 10 + length], content[10 + length :]
    if rng.random() < 0.4:
        header = _new_header(header, rng)
    elif rng.random() < 0.5:
        header = mutated(header, rng)
    else:
        body = mutated(body, rng)
    return content[:8] + struct.pack("<H", min(len(header), 65535)) + header + body


def _new_header(header: bytes, rng: random.Random) -> bytes:
    try:
        facts = ast.literal_eval(header.decode("latin1").strip())
    except (ValueError, SyntaxError):
        return header
    what = rng.choice(("descr", "shape", "fortran_order", "more"))
    facts[what] = {
        "descr": rng.choice(
            ("|O", "<f2", ">f8", "<c16", "<U7", "|S9", "<M8[ns]", "|V8", "|b1", "<f16", [("a", "<f8")])
        ),
        "shape": rng.choice(
            ((), (0,), (3, 0), (2**40,), (2**31, 2**31), (-1,), (1,) * 40, (2, 2, 2), "x", (12,), (4.0, 3))
        ),
        "fortran_order": rng.choice((True, 1, "yes", None)),
        "more": 1,
    }[what]
    return repr(facts).encode()


def mutated_npz(content: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage, rename, drop or double members of an archive, and make all checksums right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(members))
        name, inner = members[place]
        way = rng.random()
        if way < 0.5:
            members[place] = (name, mutated_npy(inner, rng))
        elif way < 0.65:
            members[place] = (name, mutated(inner, rng))
        elif way < 0.85:
            members[place] = (rng.choice(_NAMES) + rng.choice((".npy", ".npy", "")), inner)
        elif way < 0.95 and others:
            members.append((f"view_{rng.randrange(9)}.npy", rng.choice(others)))
        elif len(members) > 1:
            del members[place]
    sink = io.BytesIO()
    kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(sink, "w", kind) as archive:  # of double names
        for name, inner in members:
            archive.writestr(zipfile.ZipInfo(name), inner)
    return sink.getvalue()


def mutated_mat(content: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage one variable of a MATLAB v5 file, unpacked if it is packed, and make its length right."""
    parts, place = [], 128
    while place + 8 <= len(content):
        kind, size = struct.unpack("<II", content[place : place + 8])
        parts.append((kind, content[place + 8 : place + 8 + size]))
        place += 8 + size
    chosen = rng.randrange(len(parts))
    kind, inner = parts[chosen]
    packed = kind == 15
    inner = mutated(zlib.decompress(inner) if packed else inner, rng)
    inner = zlib.compress(inner, 1) if packed else inner
    parts[chosen] = (kind, inner)
    return content[:128] + b"".join(struct.pack("<II", kind, len(inner)) + inner for kind, inner in parts)


def mutated_json(value: Any, rng: random.Random) -> Any:
    """Replace, drop, double or move parts of nested lists and dicts."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(value))
        if not places:
            break
        inner, key = rng.choice(places)
        way = rng.random()
        if way < 0.55:
            inner[key] = copy.deepcopy(rng.choice(_JUNK))
        elif way < 0.75:
            other, other_key = rng.choice(places)
            inner[key] = copy.deepcopy(other[other_key])
        elif way < 0.85:
            del inner[key]
        elif isinstance(inner, dict):
            inner[str(rng.choice(_NAMES))] = inner.pop(key)
        else:
            inner.append(copy.deepcopy(inner[key]))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield value, key
        yield from _places(part)


def mutated_model(content: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage the header, the values or the numbers of a model file, and make all checksums right."""
    (header_length,) = struct.unpack("<Q", content[16:24])
    header = json.loads(content[64 : 64 + header_length])
    blocks, place = [], 64 + header_length
    for length in header["blocks"]:
        blocks.append(content[place : place + length])
        place += length + -length % 64
    way = rng.random()
    if way < 0.2:
        header = {"model": mutated_json(header["model"], rng)}
    elif way < 0.7:
        blocks[0] = json.dumps(mutated_json(json.loads(blocks[0]), rng)).encode()
    elif way < 0.8:
        blocks[0] = mutated(blocks[0], rng)
    else:
        chosen = rng.randrange(1, len(blocks))
        new = bytearray(blocks[chosen])
        for _ in range(rng.choice((1, 3))):
            rng.choice((_flip, _change, _huge))(new, rng, ())
        blocks[chosen] = bytes(new)
    return _sealed({"model": header["model"]}, blocks, content[:16])


def _sealed(header: dict[str, Any], blocks: Sequence[bytes], beginning: bytes) -> bytes:
    """Return a model file with these parts and right lengths and checksums."""
    body = b"".join(block + bytes(-len(block) % 64) for block in blocks)
    facts = {**header, "blocks": [len(block) for block in blocks], "sha256": hashlib.sha256(body).hexdigest()}
    text = json.dumps(facts, allow_nan=False, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 64)
    start = beginning + struct.pack("<QQ", len(text), 64 + len(text) + len(body))
    return start + hashlib.sha256(start + text).digest() + text + body
