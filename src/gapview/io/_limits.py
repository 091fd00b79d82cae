"""How large a file may be: all limits in one place. No file, however made, takes more memory than they allow."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits"]


@dataclass(frozen=True)
class Limits:
    """The limits of what is read from a file.

    Examples
    --------
    >>> from gapview.io import LIMITS
    >>> LIMITS.columns
    200000
    """

    size: int = 2**31  # bytes of a file, counted after decompression
    line: int = 2**25  # bytes of one line of a text table; also the memory for one block of it
    field: int = 2**17  # characters of one field of a text table, as Python's csv module has it
    columns: int = 200_000  # of a table, which keeps a type for each; arrays, .h5ad and .h5mu may be wider
    cells: int = 500_000_000  # numbers of one view: 4 GB; of a sparse one, those that are stored
    categories: int = 20  # of a text column that is to be encoded as columns of 0 and 1
    head: int = 2**20  # characters looked at to find out separator, decimal mark and header
    memory: int = 12 * 2**30  # bytes of the process that reads a file of MATLAB or HDF5
    seconds: int = 120  # that such a process may take, and as many again for each 256 MB of the file


LIMITS = Limits()
