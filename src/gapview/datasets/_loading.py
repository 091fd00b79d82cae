"""Loading the embedded example, files and downloads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import fetch_openml, get_data_home, load_digits

from ..errors import DataFileError, DownloadError, InputError, InputTypeError, ParameterTypeError, some
from ..io.array_files import read_contents
from ..utils.messages import check_integer, check_real, counted, shown
from ..utils.shown import Shown, Table, table_of
from ..utils.types import Array
from ..views import Views


@dataclass(frozen=True, repr=False)
class Dataset(Shown):
    """Views, and the true groups where they are known.

    Unpacks into ``views, target``.
    """

    name: str  # for tables
    views: Views  # the data
    target: Array | None  # the true group of every sample, None if unknown
    description: str  # one sentence
    folds: Array | None = None  # permutations of the samples published with the data, one per row
    target_names: Array | None = None  # names of the true groups, in the order of their numbers
    covariates: Any = None  # a frame of other variables of the samples, keyed by sample id
    files: Mapping[str, Path] = field(default_factory=dict)  # the files that the data were read from
    licence: str = ""  # terms of the source

    def __iter__(self) -> Iterator[Any]:
        return iter((self.views, self.target))

    def _shown_as(self) -> Table:
        """Return the views."""
        known = "unknown" if self.target is None else counted(len(np.unique(self.target)), "group")
        title = f"{self.name}: {self.description} True groups: {known}."
        return table_of(self.views)._replace(title=title)


def _chosen_views(views: Any, name_of: Callable[[Any], str]) -> list[str]:
    """Return the names of the requested views; ``name_of`` returns the name of one, or raises an error."""
    if isinstance(views, str | bytes) or not isinstance(views, Iterable):
        hint = f" For a single view write views=[{views!r}]." if isinstance(views, str | int) else ""
        raise InputTypeError(f"views must be a list of views, such as [0, 1] or ['pixels']; got {shown(views)}.{hint}")
    names = [name_of(view) for view in views]
    if not names:
        raise InputError("views must name some of the views; got an empty list.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"views must name every view once; {some(twice)} occur more than once. Leave the repeats out.")
    return names


def load_digits_views() -> Dataset:
    """Load 1797 handwritten digits as two views: pixels, and Fourier coefficients of the image.

    The images are scikit-learn's bundled digits (8 × 8 pixels, from the UCI optical digits). The second view holds the
    magnitudes of their two-dimensional Fourier coefficients, which do not change when a digit is shifted; the paper's
    handwritten digits come with the same two kinds of view.
    This form of the spectrum was chosen among nine with clustering accuracy in mind, so scores on this example are an
    illustration and no evidence.

    Returns
    -------
    Dataset
        With ``views`` (``pixels``, ``fourier``) and ``target``.

    Examples
    --------
    >>> from gapview.datasets import load_digits_views
    >>> load_digits_views().views
    Views of 1797 samples, 1797 of them complete: 'pixels' 1797 × 64, 'fourier' 1797 × 130
    """
    digits = load_digits()
    views = Views({"pixels": digits.data, "fourier": _fourier_magnitudes(digits.images)})
    description = "1797 handwritten digits of 8 × 8 pixels in 10 classes; pixels and Fourier magnitudes."
    return Dataset("digits", views, digits.target, description)


def _fourier_magnitudes(images: Array) -> Array:
    """Return the distinct Fourier magnitudes: the spectrum of a real image is symmetric."""
    size = 2 * images.shape[1]  # zeros around the digit, so that a shift does not wrap it around the edge
    spectrum = np.abs(np.fft.rfft2(images, s=(size, size)))
    half = size // 2
    distinct = np.ones(spectrum.shape[1:], dtype=bool)
    distinct[half + 1 :, [0, half]] = False  # in these two columns row −r repeats row r
    return np.asarray(spectrum[:, distinct])


def load_views(path: Any, *, views: Sequence[int | str] | None = None) -> Dataset:
    """Load views from a ``.npz`` or ``.mat`` file.

    A ``.npz`` holds ``view_0``, ``view_1``, … (counted from any number, taken in the order of the numbers), and may
    hold ``y`` (groups), ``mask`` (samples × views, 1 = present), ``view_names``, ``sample_ids`` and ``folds``. Nothing
    in it is unpickled. A ``.mat`` file, older (v5) or newer (v7.3, HDF5), holds the views as a cell array such as
    ``X``, or as several matrices that share a number of samples, and may hold the groups under a name such as ``Y`` or
    ``gt``. Matrices that hold samples in columns are transposed.

    The groups are a vector with one label for each sample, or a matrix of 0 and 1 with one column for each group. In
    ``target`` they are recoded to 0, 1, 2, … in the sorted order of the labels.

    Parameters
    ----------
    path : str or path
        The file.
    views : sequence of int or str, optional
        Positions or names of the views to load, in this order; by default all. The paper's Caltech7 is
        ``load_views("Caltech101-7.mat", views=[4, 5])``.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from gapview.datasets import load_views
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.npz"
    ...     np.savez(path, view_0=np.eye(4), view_1=np.ones((4, 2)), y=[0, 0, 1, 1])
    ...     load_views(path).views
    Views of 4 samples, 4 of them complete: 'view_0' 4 × 4, 'view_1' 4 × 2
    """
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path must be the path of a .npz or .mat file; got {shown(path)}.")
    file = Path(path)
    if not os.path.isfile(file):  # Path.is_file raises for names that no file can have
        raise DataFileError(f"There is no file {str(file)!r}. Give the path of a .npz or .mat file.")
    kind = file.suffix.lower()[1:]
    if kind not in ("npz", "mat"):
        raise DataFileError(
            f"{file.name!r} is neither .npz nor .mat; load_views reads these two. Read other files with pandas."
        )
    contents, found, target, mask = read_contents(file, kind)
    if views is not None:
        names = list(found)
        chosen = _chosen_views(views, lambda choice: _chosen(choice, names, file))
        mask = None if mask is None else mask[:, [names.index(name) for name in chosen]]
        found = {name: found[name] for name in chosen}
    whole = Views(found, mask=mask, sample_ids=contents.get("sample_ids"))
    if target is not None and len(target) != whole.n_samples:
        raise DataFileError(f"{file.name!r} holds {len(target)} labels for {whole.n_samples} samples.")
    description = str(contents.get("source", file.name))
    folds = contents.get("folds")
    return Dataset(file.stem, whole, target, description, None if folds is None else np.asarray(folds))


def _chosen(choice: Any, names: list[str], file: Path) -> str:
    if isinstance(choice, str) and choice in names:
        return choice
    is_position = isinstance(choice, int | np.integer) and not isinstance(choice, bool)
    if is_position and -len(names) <= choice < len(names):
        return names[int(choice)]
    raise InputError(f"{file.name!r} has no view {choice!r}; it has {len(names)}: {some(names, 10)}.")


# OpenML's numbers of the six feature sets of the UCI multiple features data
_HANDWRITTEN = {"factors": 12, "fourier": 14, "karhunen": 16, "morphological": 18, "pixels": 40979, "zernike": 22}


def fetch_handwritten(
    views: Sequence[str] = ("pixels", "fourier"),
    *,
    data_home: Any = None,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Dataset:
    """Download the handwritten digits of the paper (UCI multiple features, 2000 digits) from OpenML, with a cache.

    Parameters
    ----------
    views : sequence of str, default=("pixels", "fourier")
        Which of the six feature sets: ``pixels`` (240 averages in 2 × 3 windows), ``fourier`` (76), ``factors`` (216),
        ``karhunen`` (64), ``morphological`` (6), ``zernike`` (47). The default is the paper's choice.
    data_home : str or path, optional
        Where to keep the files; by default scikit-learn's data folder. A second call reads them from there.
    n_retries : int, default=3
        Number of further attempts when the network fails, at least 1.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    Dataset

    Raises
    ------
    DownloadError
        If there is no network, or the downloaded data are damaged.

    Examples
    --------
    >>> from gapview.datasets import fetch_handwritten
    >>> fetch_handwritten().views  # doctest: +SKIP
    Views of 2000 samples, 2000 of them complete: 'pixels' 2000 × 240, 'fourier' 2000 × 76
    """
    check_integer("n_retries", n_retries, low=1)
    check_real("delay", delay, low=0, open_low=True)
    if data_home is not None and not isinstance(data_home, str | os.PathLike):
        raise ParameterTypeError(f"data_home must be None or the path of a folder; got {shown(data_home)}.")
    names = _chosen_views(views, _known)
    matrices, targets = {}, {}
    for name in names:
        matrices[name], targets[name] = _fetch(name, data_home, n_retries, delay)
    first = targets[names[0]]
    if any(not np.array_equal(first, target) for target in targets.values()):
        raise DownloadError(
            "The downloaded feature sets list their samples in different orders, so that they cannot be joined. "
            "Load the original UCI files with gapview.datasets.load_views instead."
        )
    description = "2000 handwritten digits in 10 classes (UCI multiple features, through OpenML)."
    return Dataset("handwritten", Views(matrices), first, description)


def _known(name: Any) -> str:
    if not isinstance(name, str) or name not in _HANDWRITTEN:
        raise InputError(f"views must name some of {some(_HANDWRITTEN, 6)}; got {shown(name)}.")
    return name


def _fetch(name: str, data_home: Any, n_retries: int, delay: float) -> tuple[Any, Any]:
    number = _HANDWRITTEN[name]
    try:
        with warnings.catch_warnings(action="ignore"):  # of every new attempt; the last failure is reported below
            settings = {"data_home": data_home, "n_retries": n_retries, "delay": float(delay)}
            bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff", **settings)
        _, target = np.unique(np.asarray(bunch.target).astype(str), return_inverse=True)
        return np.asarray(bunch.data, dtype=np.float64), target
    except Exception as error:  # any layer can fail on a wrong answer of the server
        if not isinstance(error, OSError):  # scikit-learn has cached an answer that is not the data
            for file in (Path(get_data_home(data_home)) / "openml").rglob(f"{number}.gz"):
                file.unlink(missing_ok=True)
        raise DownloadError(
            f"The {name} view of the handwritten digits could not be downloaded from OpenML "
            f"(data set {number}): {type(error).__name__}: {error}. Check the network and try again; a file of the "
            "data can be read with gapview.datasets.load_views, and load_digits_views() needs no network."
        ) from error
