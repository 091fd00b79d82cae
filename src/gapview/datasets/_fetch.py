"""Data that must be downloaded."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import fetch_openml, get_data_home

from ..errors import DownloadError, InputError, ParameterTypeError, some
from ..utils.parameters import check_integer, check_real
from ..views import Views
from ._dataset import Dataset, chosen_views

# OpenML's numbers of the six feature sets of the UCI multiple features data
_HANDWRITTEN = {
    "factors": 12,
    "fourier": 14,
    "karhunen": 16,
    "morphological": 18,
    "pixels": 40979,
    "zernike": 22,
}


def fetch_handwritten(
    views: Sequence[str] = ("pixels", "fourier"),
    *,
    data_home: Any = None,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Dataset:
    """Download the handwritten digits of the paper (UCI multiple features, 2000 digits) through OpenML, and keep them.

    Parameters
    ----------
    views : sequence of str, default=("pixels", "fourier")
        Which of the six feature sets: ``pixels`` (240 averages in 2 × 3 windows), ``fourier`` (76), ``factors`` (216),
        ``karhunen`` (64), ``morphological`` (6), ``zernike`` (47). The default is the paper's choice.
    data_home : str or path, optional
        Where to keep the files; by default scikit-learn's data folder. A second call reads them from there.
    n_retries : int, default=3
        How often to try again when the network fails, at least once.
    delay : float, default=1.0
        Seconds between tries.

    Returns
    -------
    Dataset

    Raises
    ------
    DownloadError
        Without network, or if what arrives is damaged.

    Examples
    --------
    >>> from gapview.datasets import fetch_handwritten
    >>> fetch_handwritten().views  # doctest: +SKIP
    Views of 2000 samples, 2000 of them complete: 'pixels' 2000 × 240, 'fourier' 2000 × 76
    """
    check_integer("n_retries", n_retries, low=1)
    check_real("delay", delay, low=0, open_low=True)
    if data_home is not None and not isinstance(data_home, str | os.PathLike):
        raise ParameterTypeError(f"data_home must be None or the path of a folder; got {data_home!r}.")
    names = chosen_views(views, _known)
    matrices, targets = {}, {}
    for name in names:
        matrices[name], targets[name] = _fetch(name, data_home, n_retries, delay)
    first = targets[names[0]]
    if any(not np.array_equal(first, target) for target in targets.values()):
        raise DownloadError(
            "The feature sets that arrived list their samples in different orders, so that they cannot be put side by "
            "side. Load the original UCI files with gapview.datasets.load_views instead."
        )
    description = "2000 handwritten digits in 10 classes (UCI multiple features, through OpenML)."
    return Dataset("handwritten", Views(matrices), first, description)


def _known(name: Any) -> str:
    if not isinstance(name, str) or name not in _HANDWRITTEN:
        raise InputError(f"views must name some of {some(_HANDWRITTEN, 6)}; got {name!r}.")
    return name


def _fetch(name: str, data_home: Any, n_retries: int, delay: float) -> tuple[Any, Any]:
    number = _HANDWRITTEN[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn tells of every new try; the last failure is told below
            bunch = fetch_openml(
                data_id=number,
                as_frame=False,
                parser="liac-arff",
                data_home=data_home,
                n_retries=n_retries,
                delay=float(delay),
            )
        _, target = np.unique(np.asarray(bunch.target).astype(str), return_inverse=True)
        return np.asarray(bunch.data, dtype=np.float64), target
    except Exception as error:  # a server can answer with anything, and every layer stumbles over it in its own way
        if not isinstance(error, OSError):  # something arrived, and it is not the data
            _forget_answers(number, data_home)
        raise DownloadError(
            f"The {name} view of the handwritten digits could not be downloaded from OpenML "
            f"(data set {number}): {type(error).__name__}: {error}. Check the network and try again; a file of the "
            "data can be read with gapview.datasets.load_views, and load_digits_views() needs no network."
        ) from error


def _forget_answers(number: int, data_home: Any) -> None:
    """Remove what OpenML said about a data set: scikit-learn would keep an error message as if it were the answer."""
    for file in (Path(get_data_home(data_home)) / "openml").rglob(f"{number}.gz"):
        file.unlink(missing_ok=True)
