"""Views read from files, the formats of the files, and joining views on their sample ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError, extra, some
from ..utils.messages import counted, percent, warn_user
from ..views import Views
from ..views.core import read, read_training
from ..views.reading import Reading
from ._sources import stem_of


@dataclass(frozen=True)
class SourceFormat:
    """The format of a file: everything needed to write another file in the same format.

    That of a file which is not written is the nearest that is: ``.xlsx`` for any workbook, ``.h5ad`` for 10x.

    Examples
    --------
    >>> from gapview.io import SourceFormat
    >>> SourceFormat("text", ".csv", ("id", "iron"), id_name="id", id_place="column", separator=";").decimal
    '.'
    """

    kind: str  # "text", "parquet", "feather", "excel", "npy", "npz", "mat", "h5ad", "h5mu" or "r"
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
    sheet: str | None = None  # of a workbook


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
    encoded : tuple of str
        Columns of text that are encoded as columns of 0 and 1.
    orient : {"samples", "features"} or None
        What the user said the rows of the file are; in the frame they are samples.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_view
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "blood.csv"
    ...     _ = path.write_text("id;iron;zinc\ns1;1,5;2\ns2;;3\n")
    ...     blood = read_view(path)
    >>> blood.summary
    "'blood': 2 samples, 2 features, 25.0 % of the cells empty"
    >>> blood.notes[1]
    "Sample ids are in the column 'id'."
    """

    name: str
    path: Path
    frame: Any
    keyed: bool
    format: SourceFormat
    notes: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    encoded: tuple[str, ...] = ()
    orient: str | None = None

    @property
    def file_name(self) -> tuple[str, str]:
        """The name of the file, and its end in the format in which the view is written."""
        end = self.path.name[len(stem_of(self.path)) :]
        return stem_of(self.path), end if end.lower() == self.format.suffix else self.format.suffix

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
        size = f"{counted(n_samples, 'sample')}, {counted(n_features, 'feature')}"
        return f"'{self.name}': {size}, {percent(self.share_empty)} of the cells empty"

    def aligned(self, features: Sequence[str], *, most_lacking: float = 0.0) -> ViewFile:
        r"""Return the view with the features of a model, in their order.

        An empty column of the file becomes NaN for all samples. A category that does not occur in an encoded column
        becomes 0. Columns that the model does not have are left out. A feature that the file lacks is an error, unless
        few are lacking, which become NaN.

        Parameters
        ----------
        features : sequence of str
            Names of the features, in the order wanted.
        most_lacking : float, default=0.0
            Share of the features that the file may lack.

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
        # 'sex=f' is the category 'f' of the encoded column 'sex'; other names may contain '=' by themselves
        encoded = {column: name for column in self.encoded for name in known if name.startswith(f"{column}=")}
        columns, lacking = {}, []
        for name in features:
            column = next((column for column in self.encoded if name.startswith(f"{column}=")), None)
            if name in known:
                columns[name] = frame[name]
            elif column in encoded:
                columns[name] = 0 * frame[encoded[column]]  # NaN where the word is missing
            elif name in self.empty or name.split("=", 1)[0] in self.empty:
                columns[name] = np.full(len(frame), np.nan)
            else:
                lacking.append(name)
        if lacking and self.keyed and len(turned := frame.index.intersection(lacking)) > len(lacking) / 2:
            raise DataFileError(
                f"{self.path.name!r} has features of view '{self.name}' in rows ({some(turned, 3)}) and samples "
                f"in columns. Transpose it: orient={{{self.name!r}: 'features'}} (on the command line: --transpose "
                f"{quote(self.name)})."
            )
        if len(lacking) > most_lacking * len(features):
            raise DataFileError(
                f"{self.path.name!r} lacks {counted(len(lacking), 'feature')} of view '{self.name}' that the model "
                f"was trained on: {some(lacking)}. Give a file with the same columns of numbers."
            )
        columns |= {name: np.full(len(frame), np.nan) for name in lacking}
        columns = {name: columns[name] for name in features}
        notes = self.notes
        if more := [name for name in frame.columns if name not in columns]:
            notes += (f"{counted(len(more), 'column')} that the model does not know left out: {some(more)}.",)
        return replace(self, frame=type(frame)(columns, index=frame.index), notes=notes)


# -- joining ---------------------------------------------------------------------------------------------------------


def join_views(files: Sequence[ViewFile], *, partial_rows: str = "raise") -> Views:
    r"""Join the views of files on their sample ids, or by position if none of them has any.

    Views that share too few samples, or look transposed, are an error that names the parameter of
    :func:`gapview.io.read_views` that helps. Notes of all files are in ``notes`` of the result.

    Parameters
    ----------
    files : sequence of ViewFile
        As returned by :func:`gapview.io.read_views`.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        How to treat rows that have some but not all values, as in :class:`gapview.Views`.

    Returns
    -------
    Views

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import join_views, read_view
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "blood.csv"
    ...     _ = path.write_text("id,iron,zinc\na,1,2\nb,,3\nc,4,5\n")
    ...     join_views([read_view(path)], partial_rows="fill")
    Views of 3 samples, 3 of them complete: 'blood' 3 × 2
    """
    data, reading = _as_input(files, partial_rows)
    views = read_training(data, partial_rows=partial_rows, reading=reading)
    views.notes = (*(f"View '{view.name}': {note}" for view in files for note in view.notes), *views.notes)
    return views


def samples_of(files: Sequence[ViewFile], *, partial_rows: str = "raise") -> Views:
    r"""Return the views of files as input for the methods of a model.

    Unlike joined views, they may share no sample, and rows may have gaps, which the methods of the model treat.

    Parameters
    ----------
    files : sequence of ViewFile
        As returned by :func:`gapview.io.read_views`.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        With ``"drop"``, rows that have some but not all values are removed here if samples have ids.

    Returns
    -------
    Views

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_views, samples_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blood, scans = pathlib.Path(folder) / "blood.csv", pathlib.Path(folder) / "scans.csv"
    ...     _ = blood.write_text("id,iron,zinc\na,1,2\nb,,3\nc,4,5\n")
    ...     _ = scans.write_text("id,size\nb,2\nd,7\n")
    ...     samples_of(read_views([blood, scans]), partial_rows="drop")
    Views of 4 samples, 0 of them complete: 'blood' 2 × 2, 'scans' 2 × 1
    """
    data, reading = _as_input(files, partial_rows)
    return read(data, reading=reading, links="report")


def _as_input(files: Sequence[ViewFile], partial_rows: str) -> tuple[dict[str, Any], Reading]:
    """Return the data of files, and how they are read as views."""
    keyed = [view for view in files if view.keyed]
    dropped = partial_rows == "drop" and len(keyed) == len(files)
    data = {view.name: _as_view(view) for view in (_whole_rows(files) if dropped else files)}
    if keyed:  # rows of a file without ids cannot be matched, which Views reports
        data |= {view.name: view.frame.to_numpy() for view in files if not view.keyed and not view.is_sparse}
    orient = {view.name: "samples" for view in files if view.orient is not None}
    return data, Reading(id_column=bool(keyed), orient=orient or None)


def summary_lines(files: Sequence[ViewFile]) -> list[str]:
    r"""Return one line for each view: number of samples and features, and the share that is missing.

    Parameters
    ----------
    files : sequence of ViewFile
        Views that were read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_views, summary_lines
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blood, scans = pathlib.Path(folder) / "blood.csv", pathlib.Path(folder) / "scans.csv"
    ...     _ = blood.write_text("id,iron\n1,0.5\n2,0.7\n")
    ...     _ = scans.write_text("id;size\n2;1,5\n3;2,5\n")
    ...     summary_lines(read_views([blood, scans]))[0]
    "'blood': 2 samples, 1 feature, 0 % of the cells empty; 33.3 % of the 3 samples lack it"
    """
    if len({view.keyed for view in files}) > 1:  # rows cannot be matched
        return [view.summary for view in files]
    total = len({key for view in files for key in view.frame.index})
    of_all = f"of the {counted(total, 'sample')} lack it"
    return [f"{view.summary}; {percent(1 - _n_having(view) / total)} {of_all}" for view in files]


def _n_having(view: ViewFile) -> int:
    """Count the rows with any number; without ids, empty rows stay in their places."""
    return len(view.frame) if view.is_sparse else int(view.frame.notna().any(axis=1).sum())


def _whole_rows(files: Sequence[ViewFile]) -> list[ViewFile]:
    """Return the views without rows with gaps; warn of samples that have no complete row in any file."""
    whole = [view if view.is_sparse else replace(view, frame=view.frame.dropna()) for view in files]
    empty = [view.path.name for view in whole if not len(view.frame)]
    if empty:
        raise DataFileError(f"No row of {some(empty)} has all its values. Choose partial_rows='fill', or drop columns.")
    kept = {key for view in whole for key in view.frame.index}
    lost = dict.fromkeys(key for view in files for key in view.frame.index if key not in kept)
    if lost:
        warn_user(f"{counted(len(lost), 'sample')} without a row that has all its values left out: {some(lost)}.")
    return whole


def _as_view(view: ViewFile) -> Any:
    """Return a frame, or a sparse matrix with its ids."""
    if not view.is_sparse:
        return view.frame
    matrix = sparse.csr_array(view.frame.sparse.to_coo())
    if not view.keyed:
        return matrix
    pandas = extra("pandas", "tables", "Reading views from files")
    anndata = extra("anndata", "omics", "Reading sparse views with sample ids")
    obs = pandas.DataFrame(index=view.frame.index.astype(str))
    return anndata.AnnData(matrix, obs=obs, var=pandas.DataFrame(index=view.frame.columns.astype(str)))
