"""Other packages as optional rivals, with the interface of gapview: ``fit(views)`` and ``labels_``.

All take rows of unit length by default, as every estimator of gapview does, so that nobody has the better input. Their
own settings stay as their authors have them, unless a docstring says otherwise. Packages are imported when a rival is
made, not before.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.impute import KNNImputer

from gapview.clusters import cluster_rows
from gapview.errors import GapviewError, MissingExtraError, ParameterError
from gapview.scaling import scale_views
from gapview.utils.types import Array
from gapview.views import Views

__all__ = ["EEIMVC", "MOFA", "NEMO", "PIMVC", "SNF", "Rival"]


class Rival:
    """A method of another package; ``settings`` are handed on to it."""

    package: ClassVar[str]  # as it is imported
    distribution: ClassVar[str]  # as it is installed
    labels_: Array

    def __init__(
        self, n_clusters: int, *, scale: str | None = "unit", random_state: int | None = None, **settings: Any
    ) -> None:
        problem = self.why_not()
        if problem is not None:
            raise problem
        self.n_clusters, self.scale, self.random_state, self.settings = n_clusters, scale, random_state, settings
        self._load()

    @classmethod
    def why_not(cls) -> GapviewError | None:
        """Return why this rival cannot take part here; None if it can."""
        if find_spec(cls.package) is None:
            return MissingExtraError(cls.distribution, "rivals", f"{cls.__name__} in the league", "gapview-lab")
        return None

    def fit(self, views: Views) -> Self:
        """Find groups among the samples."""
        with redirect_stdout(io.StringIO()):  # some packages talk
            self.labels_ = np.asarray(self._labels(views))
        return self

    def _load(self) -> None:
        """Import the package, so that this is not counted as time of the method."""
        raise NotImplementedError

    def _labels(self, views: Views) -> Any:
        raise NotImplementedError

    def _with_gaps(self, views: Views) -> list[Array]:
        """Return all samples of every scaled view, NaN where a sample lacks it."""
        scaled, _ = scale_views(views, self.scale)
        whole = []
        for k, matrix in enumerate(scaled):
            rows = np.full((views.n_samples, matrix.shape[1]), np.nan)
            rows[views.rows(k)] = matrix.toarray() if hasattr(matrix, "toarray") else matrix
            whole.append(rows)
        return whole


class _Imml(Rival):
    """A clusterer of iMML, of the same name; it takes arrays with rows of NaN."""

    package, distribution = "imml", "imml"

    def _load(self) -> None:
        make = getattr(import_module("imml.cluster"), type(self).__name__)
        self._model = make(n_clusters=int(self.n_clusters), random_state=self.random_state, **self.settings)

    def _labels(self, views: Views) -> Any:
        return self._model.fit_predict(self._with_gaps(views))


class PIMVC(_Imml):
    """Projective incomplete multi-view clustering (Deng and others, 2023), as iMML has it."""


class NEMO(_Imml):
    """Neighbourhoods averaged over the views that two samples share (Rappoport and Shamir, 2019), as iMML has it."""


class EEIMVC(_Imml):
    """Late fusion of incomplete kernels (Liu and others, 2021), as iMML has it."""


class MOFA(Rival):
    """Multi-omics factor analysis (Argelaguet and others, 2020), and k-means with 20 restarts on its factors.

    Views are brought to unit variance (``scale_views=True``), which its authors advise for views that differ in it; its
    own default leaves rows of unit length at variances so small that it stops after a few steps. This choice was made
    with scores in sight, on four data sets, and in its favour.
    """

    package, distribution = "mofapy2", "mofapy2"

    def _load(self) -> None:
        self._entry_point = import_module("mofapy2.run.entry_point").entry_point

    def _labels(self, views: Views) -> Any:
        model = self._entry_point()
        model.set_data_options(scale_views=True)
        model.set_data_matrix([[matrix] for matrix in self._with_gaps(views)])
        model.set_model_options(**self.settings)
        seed = 0 if self.random_state is None else self.random_state
        model.set_train_options(seed=seed, quiet=True)
        model.build()
        model.run()
        factors = np.asarray(model.model.nodes["Z"].getExpectation())
        return cluster_rows(factors, self.n_clusters, np.random.RandomState(seed), normalize=False).labels


class SNF(Rival):
    """Similarity network fusion (Wang and others, 2014), as snfpy has it, and spectral clustering of the network.

    It knows no gaps: missing views are first filled from the five nearest samples, as in ``ImputedSpectral``.
    """

    package, distribution = "snf", "snfpy"

    @classmethod
    def why_not(cls) -> GapviewError | None:
        """Return why this rival cannot take part here; None if it can."""
        too_new = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
        if find_spec(cls.package) is not None and not too_new:
            return None
        return ParameterError(
            "SNF in the league needs the package 'snfpy', whose last release does not run with scikit-learn 1.8 or "
            f"newer (here is {sklearn.__version__}). In an environment of its own: "
            "pip install gapview-lab snfpy 'scikit-learn<1.8'"
        )

    def _load(self) -> None:
        self._snf = import_module("snf")

    def _labels(self, views: Views) -> Any:
        scaled, _ = scale_views(views, self.scale)
        ends = np.cumsum(views.n_features)
        gapped = np.full((views.n_samples, int(ends[-1])), np.nan)
        for k, (matrix, end) in enumerate(zip(scaled, ends, strict=True)):
            dense = matrix.toarray() if sparse.issparse(matrix) else matrix
            gapped[views.rows(k), end - dense.shape[1] : end] = dense
        filled = KNNImputer(n_neighbors=5).fit_transform(gapped)
        parts: Sequence[Array] = np.split(filled, ends[:-1], axis=1)
        networks = self._snf.make_affinity(list(parts), **self.settings)
        neighbors = {"K": self.settings["K"]} if "K" in self.settings else {}
        fused = self._snf.snf(networks, **neighbors)
        spectral = SpectralClustering(self.n_clusters, affinity="precomputed", random_state=self.random_state)
        return spectral.fit(fused).labels_
