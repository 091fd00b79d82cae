"""Views read from files, the formats of the files, and joining views on their sample ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataFileError, extra, some
from ..utils.messages import counted, percent, warn_user
from ..views import Views

_FEW = 0.05  # of the samples of the smaller file: fewer in common give a warning


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
        size = f"{counted(n_samples, 'sample')}, {counted(n_features, 'feature')}"
        return f"'{self.name}': {size}, {percent(self.share_empty)} of the cells empty"

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


# -- joining ---------------------------------------------------------------------------------------------------------


def join_views(files: Sequence[ViewFile], *, partial_rows: str = "raise") -> Views:
    r"""Join the views of files on their sample ids, or by position if none of them has any.

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
    _demand_one_way_of_matching(files)
    if len(files) > 1 and files[0].keyed:  # and so are the others
        _demand_common_samples(files)
    return Views(samples_of(files, partial_rows=partial_rows), partial_rows=partial_rows)


def samples_of(files: Sequence[ViewFile], *, partial_rows: str = "raise") -> dict[str, Any]:
    r"""Return the views of files as input for the methods of a model; unlike joined views, they may share no sample.

    Parameters
    ----------
    files : sequence of ViewFile
        As returned by :func:`gapview.io.read_views`.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        With ``"drop"``, rows that have some but not all values are removed here if samples have ids; otherwise the
        methods of the model treat them.

    Returns
    -------
    dict of frames, or of sparse matrices with their ids
        By the names of the views.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gapview.io import read_views, samples_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blood, scans = pathlib.Path(folder) / "blood.csv", pathlib.Path(folder) / "scans.csv"
    ...     _ = blood.write_text("id,iron,zinc\na,1,2\nb,,3\nc,4,5\n")
    ...     _ = scans.write_text("id,size\nb,2\nd,7\n")
    ...     samples = samples_of(read_views([blood, scans]), partial_rows="drop")
    >>> {name: frame.index.tolist() for name, frame in samples.items()}
    {'blood': ['a', 'c'], 'scans': ['b', 'd']}
    """
    _demand_one_way_of_matching(files)
    dropped = partial_rows == "drop" and all(view.keyed for view in files)
    return {view.name: _as_view(view) for view in (_whole_rows(files) if dropped else files)}


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


def _demand_one_way_of_matching(files: Sequence[ViewFile]) -> None:
    without = [view for view in files if not view.keyed]
    if not without:
        return
    if len(without) < len(files):
        keyed = next(view for view in files if view.keyed)
        raise DataFileError(
            f"Rows cannot be matched: no column of {some([view.path.name for view in without])} was detected as sample "
            f"ids, while {keyed.path.name!r} has the ids {some(keyed.frame.index, 3)}. Name the column of "
            "ids (id_column, --id), or add one to every file."
        )
    lengths = {view.name: len(view.frame) for view in files}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
        raise DataFileError(
            f"Rows cannot be matched: no file has a column of sample ids, and their numbers of rows differ: {listed}. "
            "Add a column of ids to every file, or name the one that is there (id_column, --id)."
        )


def _demand_common_samples(files: Sequence[ViewFile]) -> None:
    """Raise an error if a file shares no sample with any other; warn if it shares very few."""
    for view in files:
        own, others = set(view.frame.index), [other for other in files if other is not view]
        most = max(len(own.intersection(other.frame.index)) for other in others)
        examples = (
            f"{view.path.name!r} has ids such as {some(view.frame.index, 3)}, "
            f"{others[0].path.name!r} such as {some(others[0].frame.index, 3)}"
        )
        if not most:
            raise DataFileError(
                f"The view '{view.name}' has no sample in common with any other: {examples}. {_hint(view, others)}"
            )
        if most < _FEW * min(len(own), max(len(other.frame) for other in others)):
            warn_user(
                f"The view '{view.name}' has only {counted(most, 'sample')} in common with another: {examples}. "
                "Check that the ids are written in the same way."
            )


def _hint(view: ViewFile, others: Sequence[ViewFile]) -> str:
    """Return the likely reason why ids do not match, as advice."""
    own = set(view.frame.index)
    foreign = {key for other in others for key in other.frame.index}
    if foreign & set(map(str, view.frame.columns)):
        return f"Its columns have the names of samples of the others: transpose the table {view.path.name!r}."
    if own & {str(column) for other in others for column in other.frame.columns}:
        return "The others have columns with the names of its samples: transpose their tables."
    for what, plain in (
        ("capital letters", str.lower),
        ("zeros in front", lambda key: key.lstrip("0")),
        ("spaces, dashes, dots and underscores", lambda key: key.translate(dict.fromkeys(map(ord, " -._"))).lower()),
    ):
        if {plain(key) for key in own} & {plain(key) for key in foreign}:
            return f"They match if {what} are ignored: write the ids in the same way in all files."
    return "Name the column of ids (id_column, --id) if another one was detected, or write the ids in the same way."
