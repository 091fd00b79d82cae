"""Files as bytes: detecting the format by name and contents, and reading within limits of size."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import DataFileError, GapviewError, InputTypeError, ParameterError, extra
from ..utils.refusals import too_large


@dataclass(frozen=True)
class Limits:
    """The limits of what is read from a file.

    Before a file is read or refused, it takes at most about 20 times its uncompressed size and 200 MB of memory. The
    columns of a text table take some kilobytes each, so that a table of few rows may have fewer of them, unless the
    limit of columns is raised. The environment variable
    ``GAPVIEW_LIMITS`` changes the defaults, as in ``GAPVIEW_LIMITS="size=1e10 cells=2e9"``; :func:`reading_with`
    changes them for a part of a program.

    Examples
    --------
    >>> from gapview.io import Limits
    >>> Limits().columns
    200000
    """

    size: int = 2**31  # bytes of a file, counted after decompression
    line: int = 2**25  # bytes of one line of a text table; also the memory for one block of it
    field: int = 2**17  # characters of one field of a text table, as in Python's csv module
    columns: int = 200_000  # of a table, which stores a type for each; arrays, .h5ad and .h5mu may be wider
    cells: int = 500_000_000  # numbers of one view: 4 GB; of a sparse one, the stored ones
    head: int = 2**20  # characters from which separator, decimal mark and header are detected
    memory: int = 12 * 2**30  # bytes of the process that reads a MATLAB or HDF5 file
    seconds: int = 120  # of such a process, and as many again for each 256 MB of the file


MEMORY_PER_BYTE, MEMORY, _MEMORY_PER_COLUMN = 20, 2 * 10**8, 4600  # in bytes, beside that of the program


def most_columns(size: int) -> int:
    """Return the largest number of columns of a text table of a size in bytes."""
    most = READING.limits.columns
    if most > Limits().columns:  # it was raised
        return most
    return min(most, (MEMORY_PER_BYTE * size + MEMORY) // _MEMORY_PER_COLUMN)


def limits_from(text: str) -> Limits:
    """Return the limits with those of a text such as ``size=1e10 columns=300000`` in place of the defaults.

    >>> limits_from("size=1e10").size
    10000000000
    """
    given: dict[str, int] = {}
    for pair in text.replace(",", " ").split():
        name, _, value = pair.partition("=")
        try:
            given[name] = int(float(value))
            replace(Limits(), **given)
        except (TypeError, ValueError, OverflowError):
            names = ", ".join(asdict(Limits()))
            raise ParameterError(
                f"The environment variable GAPVIEW_LIMITS must hold pairs such as size=1e10; got {pair!r}. The limits "
                f"are {names}."
            ) from None
    return replace(Limits(), **given)


LIMITS = limits_from(os.environ.get("GAPVIEW_LIMITS", ""))


@dataclass
class _Reading:
    """How files are read at the moment."""

    limits: Limits = LIMITS
    own_process: bool = True


READING = _Reading()


@contextmanager
def reading_with(limits: Limits, *, own_process: bool = True) -> Iterator[None]:
    """Read files within other limits, and optionally in this process.

    Parameters
    ----------
    limits : Limits
        The limits in place of ``gapview.io.LIMITS``.
    own_process : bool, default=True
        Read files that can crash a library in a process of their own, as usual; if False, in this one.

    Examples
    --------
    >>> from gapview.io import Limits, reading_with
    >>> with reading_with(Limits(columns=100)):
    ...     pass  # a table of 101 columns is refused
    """
    before = READING.limits, READING.own_process
    READING.limits, READING.own_process = limits, own_process
    try:
        yield
    finally:
        READING.limits, READING.own_process = before


_KINDS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "text"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow"), "feather"),
    **{f".{kind}": kind for kind in ("npy", "npz", "mat", "h5ad", "h5mu")},
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "excel"),
    **dict.fromkeys((".h5", ".hdf5"), "10x"),
    **dict.fromkeys((".rds", ".rda", ".rdata"), "r"),
    ".mtx": "10x_folder",
}
_HDF5, _GZIP, _ZSTD = b"\x89HDF\r\n\x1a\n", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_COMPRESSED = {".gz": (_GZIP, "gzip"), ".zst": (_ZSTD, "zstd")}
# The first bytes of a format, the kinds of files that may begin so, the format in words, and what to do with a file
# whose name says otherwise
_SIGNATURES = (
    (b"PAR1", "parquet", "a Parquet file", "Rename it to end in .parquet."),
    (b"ARROW1", "feather", "a Feather file", "Rename it to end in .feather."),
    (b"FEA1", "feather", "a Feather file", "Rename it to end in .feather."),
    (b"\x93NUMPY", "npy", "an array of numpy", "Rename it to end in .npy."),
    (
        b"PK\x03\x04", "npz excel", "a zip archive (.npz, or a workbook of a spreadsheet)",
        "Rename it to end in .npz or .xlsx, depending on its contents.",
    ),
    (b"PK\x05\x06", "npz", "an empty zip archive", "Get it again."),
    (
        _HDF5, "mat h5ad h5mu 10x", "an HDF5 file",
        "Rename it to end in .h5ad, .h5mu, .mat or (a matrix of 10x) .h5, depending on its contents.",
    ),
    (b"MATLAB 5.0", "mat", "a MATLAB file", "Rename it to end in .mat."),
    (b"MATLAB 7.3", "mat", "a MATLAB file", "Rename it to end in .mat."),
    (b"MuData", "h5mu", "a MuData file", "Rename it to end in .h5mu."),
    (_GZIP, "r", "a file compressed with gzip", "Rename a compressed table to end in .csv.gz; decompress others."),
    (
        b"\xd0\xcf\x11\xe0", "excel", "an old workbook of a spreadsheet, or one with a password",
        "Rename it to end in .xls.",
    ),
    (b"BZh", "r", "a file compressed with bzip2", "Decompress it first."),
    (b"\xfd7zXZ", "r", "a file compressed with xz", "Decompress it first."),
    (_ZSTD, "", "a file compressed with zstd", "Rename a compressed table to end in .csv.zst; decompress others."),
    *((begin, "r", "a file of R", "Rename it to end in .rds or .rda.") for begin in (b"RDX", b"RDA", b"X\n", b"A\n")),
    (b"%%MatrixMarket", "10x_folder", "a matrix in the Matrix Market format", "Rename it to end in .mtx."),
    (b"%PDF-", "", "a PDF document", "Give the table as .csv."),
)  # fmt: skip
_CONTROLS = {*range(9), *range(14, 32)}
_AGAIN = "Save it again, or get it again."


@contextmanager
def reporting_damage(file: Path, what: str, advice: str = _AGAIN) -> Iterator[None]:
    """Turn whatever a library raises on a damaged file into a DataFileError."""
    try:
        yield
    except GapviewError:
        raise
    except Exception as error:  # any layer can fail: compression, headers, sizes, text
        raise damaged(file, what, f"{type(error).__name__}: {error}", advice) from None


def damaged(file: Path, what: str, cause: str, advice: str = _AGAIN) -> DataFileError:
    """Return the error that a file cannot be read, with the cause on one line."""
    return DataFileError(f"{file.name!r} cannot be read as {what}: {' '.join(cause.split())[:300]}. {advice}")


def existing_file(path: Any) -> Path:
    """Return the path of an existing file, or raise an error."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputTypeError(f"path must be the path of a file; got {path!r}.")
    file = Path(path)
    if os.path.isdir(file):
        if matrix_files(file):
            return file
        raise DataFileError(
            f"{str(file)!r} is a folder without a matrix of 10x Genomics (matrix.mtx, barcodes.tsv and features.tsv). "
            "Give the files in it, one for each view."
        )
    if not os.path.isfile(file):  # Path.is_file raises for names that no file can have
        raise DataFileError(f"There is no file {str(file)!r}. Check its name and folder.")
    return file


def decodable(name: str) -> str:
    r"""Return the name of a file as text that can be written anywhere, with bytes that are no UTF-8 escaped.

    >>> decodable("blut\udcff")
    'blut\\udcff'
    """
    return name.encode("utf-8", "backslashreplace").decode()


def suffix_of(file: Path) -> str:
    """Return the end of a file's name that names its format, in lower case: ``.csv.gz``; of a folder, nothing."""
    if os.path.isdir(file):
        return ""
    ends = [end.lower() for end in file.suffixes[-2:]]
    return "".join(ends) if len(ends) == 2 and ends[1] in _COMPRESSED else "".join(ends[-1:])


def stem_of(file: Path) -> str:
    """Return the name of a file without the end that names its format."""
    return file.name[: len(file.name) - len(suffix_of(file))] or file.name


def matrix_files(folder: Path) -> list[Path]:
    """Return the matrices of 10x Genomics in a folder: matrix.mtx, also compressed or with a name in front."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [folder / name for name in names if name.lower().endswith(("matrix.mtx", "matrix.mtx.gz"))]


def kind_of(file: Path) -> str:
    """Return the format of a file by its name; raise an error if its contents have another, or are too large."""
    if os.path.isdir(file):
        return "10x_folder"
    suffix = suffix_of(file)
    packed, _ = _COMPRESSED.get(suffix[suffix.rfind(".") :], (b"", ""))
    kind = _KINDS.get(suffix[: suffix.rfind(".")] if packed else suffix)
    if kind is None or (packed and kind != "text" and suffix != ".mtx.gz"):
        raise DataFileError(
            f"{file.name!r} does not end as a file that can be read. Expected .csv, .tsv or .txt (each also .gz or "
            ".zst), .parquet, .feather, .xlsx, .xls, .ods, .npy, .npz, .mat, .h5ad, .h5mu, .h5 (10x), .mtx, .rds or "
            ".rda."
        )
    head = head_of(file)
    if not head:
        raise DataFileError(f"{file.name!r} is empty: it has 0 bytes. Give a file with a header and rows.")
    demand_size(file, file.stat().st_size)
    own = tuple(signature for signature, kinds, *_ in _SIGNATURES if kind in kinds.split())
    wanted = (packed,) if packed else own
    if head.startswith(wanted) or head[512:].startswith(wanted):
        return kind
    for signature, _, what, advice in _SIGNATURES:
        # The header of a table may begin with such letters; it has no control characters
        if head.startswith(signature) and (wanted or _CONTROLS.intersection(head)):
            raise DataFileError(f"{file.name!r} ends in {suffix}, but its contents are those of {what}. {advice}")
    if wanted and kind != "mat":  # MATLAB's oldest format has no signature
        raise DataFileError(
            f"{file.name!r} ends in {suffix}, but its contents are in another format: it begins with {head[:8]!r}. "
            "Give it the suffix of its format, or get it again."
        )
    return kind


def head_of(file: Path) -> bytes:
    """Return the first bytes of a file, as many as signatures take."""
    try:
        with file.open("rb") as stream:
            return stream.read(520 + 16)
    except OSError as error:
        raise DataFileError(f"{str(file)!r} cannot be opened: {error.strerror}.") from None


def is_hdf5(file: Path) -> bool:
    """Return whether a MATLAB file has the newer format, v7.3."""
    head = head_of(file)
    return _HDF5 in (head[:8], head[512:520])  # MATLAB puts a text of 512 bytes first


def demand_size(file: Path, size: int, what: str = "bytes", limit: int | None = None) -> None:
    """Raise an error if something in a file exceeds a limit, by default that of its size."""
    limit = READING.limits.size if limit is None else limit
    if size > limit:
        name = "size" if limit == READING.limits.size else "columns" if what == "columns" else "cells"
        raise DataFileError(too_large(file.name, size, what, limit, name))


def packing_of(file: Path) -> str:
    """Return how a file is compressed by its name: gzip, zstd or nothing."""
    suffix = suffix_of(file)
    return _COMPRESSED.get(suffix[suffix.rfind(".") :], (b"", ""))[1]


def content_of(file: Path) -> bytes:
    """Return all bytes of a file, decompressed within the limits."""
    packing = packing_of(file)
    with reporting_damage(file, f"a file compressed with {packing}" if packing else "a file"):
        if not packing:
            return file.read_bytes()
        content = bytearray()
        try:
            with _decompressed(file, packing) as stream:
                while part := stream.read(2**20):
                    content += part
                    demand_size(file, len(content), "bytes or more when unpacked")
        except GapviewError:
            raise
        except (EOFError, zlib.error, OSError):
            raise DataFileError(f"{file.name!r} is cut off or damaged: it cannot be unpacked. Get it again.") from None
        return bytes(content)


def _decompressed(file: Path, packing: str) -> Any:
    if packing == "gzip":
        return gzip.open(file)
    pyarrow = extra("pyarrow", "tables", "Reading files compressed with zstd")
    return pyarrow.CompressedInputStream(pyarrow.OSFile(str(file), "rb"), "zstd")
