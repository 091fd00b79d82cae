"""A view read from a file, and the format of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, some
from ..utils.messages import counted, percent


@dataclass(frozen=True)
class SourceFormat:
    """The format of a file: everything needed to write another file in the same format.

    Examples
    --------
    >>> from gapview.io import SourceFormat
    >>> SourceFormat("text", ".csv", ("id", "iron"), id_name="id", id_place="column", separator=";").decimal
    '.'
    """

    kind: str  # "text", "parquet", "feather", "npy", "npz", "mat", "h5ad" or "h5mu"
    suffix: str  # the end of the file's name, such as ".csv.gz"
    columns: tuple[str, ...] = ()  # all columns of the file in their order, including those left out
    id_name: str | None = None  # name of the column (or index) of sample ids
    id_place: str = "none"  # "column", "index" or "none"
    id_type: str = "text"  # "text" or "integer"
    compression: str | None = None  # of the whole file, or of its columns
    separator: str = ","  # " " stands for any white space
    decimal: str = "."  # mark before the fraction
    encoding: str = "utf-8"  # of text
    newline: str = "\n"  # between lines
    header: str = "line"  # "line"; "short": without a name for the ids; "none"


@dataclass(frozen=True, eq=False)
class ViewFile:
    r"""One view, read from a file.

    Attributes
    ----------
    name : str
        Name of the view: that of the file, or the one that it has within the file.
    path : Path
        The file.
    frame : pandas.DataFrame
        Numbers only, NaN for an empty cell. The index holds the sample ids as text, or 0, 1, 2, … if the file has none.
        Columns are sparse if the file stores a sparse matrix.
    keyed : bool
        Whether the file has sample ids.
    format : SourceFormat
        The format of the file.
    notes : tuple of str
        What was detected and what was left out, in sentences.
    empty : tuple of str
        Columns of the file without any value, which are not in the frame.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_view
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "blood.csv"
    ...     _ = path.write_text("id;iron;zinc;sex\ns1;1,5;2;f\ns2;;3;m\n")
    ...     blood = read_view(path)
    >>> blood.summary
    "'blood': 2 samples, 2 features, 25.0 % of the cells empty"
    >>> blood.notes[2]
    "1 column of text left out: 'sex'. Columns of text can be encoded as columns of 0 and 1 (encode)."
    """

    name: str
    path: Path
    frame: Any
    keyed: bool
    format: SourceFormat
    notes: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def is_sparse(self) -> bool:
        """Whether the frame is stored as a sparse matrix."""
        return self.frame.shape[1] > 0 and type(self.frame.dtypes.iloc[0]).__name__ == "SparseDtype"

    @property
    def share_empty(self) -> float:
        """Share of the cells that hold no number."""
        values = self.frame.sparse.to_coo().data if self.is_sparse else self.frame.to_numpy()
        return int(np.isnan(values).sum()) / max(1, int(self.frame.size))

    @property
    def summary(self) -> str:
        """One line: number of samples and of features, share of the cells that are empty."""
        n_samples, n_features = self.frame.shape
        return (
            f"'{self.name}': {counted(n_samples, 'sample')}, {counted(n_features, 'feature')}, "
            f"{percent(self.share_empty)} of the cells empty"
        )

    def aligned(self, features: Sequence[str]) -> ViewFile:
        r"""Return the view with the features of a model, in their order.

        An empty column of the file becomes NaN for all samples. A category that does not occur in an encoded column
        becomes 0. Columns that the model does not have are left out. A feature that the file lacks is an error.

        Parameters
        ----------
        features : sequence of str
            Names of the features, in the order wanted.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from gapview.io import read_view
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "blood.csv"
        ...     _ = path.write_text("id,zinc,iron,more\ns1,1,2,9\ns2,3,4,9\n")
        ...     read_view(path).aligned(["iron", "zinc"]).frame.columns.tolist()
        ['iron', 'zinc']
        """
        frame = self.frame
        known = set(frame.columns)
        # 'sex=f' is the category 'f' of the encoded column 'sex'
        encoded = {name.split("=", 1)[0]: name for name in frame.columns if "=" in name}
        columns, lacking = {}, []
        for name in features:
            column = name.split("=", 1)[0]
            if name in known:
                columns[name] = frame[name]
            elif "=" in name and column in encoded:
                columns[name] = 0 * frame[encoded[column]]  # NaN where the word is missing
            elif name in self.empty or column in self.empty:
                columns[name] = np.full(len(frame), np.nan)
            else:
                lacking.append(name)
        if lacking:
            raise DataFileError(
                f"{self.path.name!r} lacks {counted(len(lacking), 'feature')} of view '{self.name}' that the model "
                f"was trained on: {some(lacking)}. Give a file with the same columns of numbers."
            )
        notes = self.notes
        if more := [name for name in frame.columns if name not in columns]:
            notes += (f"{counted(len(more), 'column')} that the model does not know left out: {some(more)}.",)
        return replace(self, frame=type(frame)(columns, index=frame.index), notes=notes)
