"""The backend protocol: the steps of a fit that depend on where the data are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..factorization.loop import Solution, Sweep
from ..factorization.starts import ProblemBlocks
from ..graph.neighbors import Search
from ..kinds import Preparation
from ..refinement import Discriminants
from ..scaling import Scaling
from ..utils.types import Array
from ..views import SampleCounts, Views

Handle = Any  # a value where the data are: an array, a sparse matrix, or references to blocks on a cluster


class SampleResults(NamedTuple):
    """The results of a fit that have a row for each sample."""

    codes: Handle  # for every view
    embedding: Handle
    labels: Handle
    confidence: Handle


class Backend(Protocol):
    """The steps of a fit that depend on where the data are.

    Results with a row for each sample are handles, which only the same backend can use; all other results are ordinary
    values. A step that a backend does not support raises an error from :mod:`gapview.backends.support`.
    """

    @property
    def views(self) -> SampleCounts:
        """The training data."""

    @property
    def view_parts(self) -> Array:
        """Part of every view; see :func:`gapview.views.linking.parts_of`."""

    @property
    def parts(self) -> Handle:
        """Part of every sample; see :func:`gapview.views.linking.sample_parts`."""

    def generator(self, random_state: Any) -> np.random.RandomState:
        """Return the generator of the fit; a resumed fit draws the numbers of an uninterrupted one."""

    def prepare(self, kinds: Sequence[str | None], n_top: Sequence[int | None]) -> list[Preparation]:
        """Transform the views by their kinds, for all following steps, and keep some features; return the rules."""

    def draw(self, n_samples: int, seed: int) -> Views:
        """Return about so many of the samples, some with each view, in memory; all if there are no more."""

    def scale(self, scale: str | Sequence[str | None] | None) -> list[Scaling]:
        """Scale the views for the following steps; return the scalings."""

    def neighbor_graphs(self, n_neighbors: Sequence[int], search: Search) -> list[Handle]:
        """Return the k-NN graph of every view."""

    def given_graphs(self, graph: Any) -> list[Handle]:
        """Check the graphs of a user, and return them."""

    def union_graph(self, n_neighbors: Sequence[int], view_weights: Sequence[float], search: Search | None) -> Handle:
        """Return the union graph over all samples, normalised; see :mod:`gapview.graph.bridges`."""

    def joint_graph(
        self, n_neighbors: int, view_weights: Sequence[float], search: Search | None
    ) -> tuple[float, Handle]:
        """Impute missing rows; return the share of variance explained, and the joint graph over all samples."""

    def both_graphs(self, union: Handle, joint: Handle) -> Handle:
        """Return the normalised sum of the union graph and the joint graph."""

    def view_problem(self, graphs: Sequence[Handle]) -> ProblemBlocks:
        """Smooth every view along its graph; return the problem. The scaled views cannot be used afterwards."""

    def bridged_problem(self, graph: Handle, n_steps: int, view_weights: Sequence[float]) -> ProblemBlocks:
        """Smooth every view by up to so many steps along a graph over all samples; return the problem."""

    def random_start(self, problem: Any, n_components: int, random_state: np.random.RandomState) -> Handle:
        """Return codes drawn uniformly from [0, 1), the same for every backend."""

    def given_start(self, problem: Any, init: Any, n_components: int) -> Handle:
        """Check the starting codes of a user, and return them."""

    def sweep(self, problem: Any, starts: list[Handle]) -> AbstractContextManager[Sweep]:
        """Open the passes over the data, for the loop; the starts are removed from their list."""

    def codes(self, problem: Any, solution: Solution, *, of_all: bool) -> tuple[Handle, Handle]:
        """Return the codes for every view, of its present samples or of all, and the consensus of all samples."""

    def balance(self, embedding: Handle, keep: bool = False) -> tuple[Array, Handle]:
        """Return the matrix of :func:`gapview.clusters.balancing`, and the balanced rows.

        With ``keep``, the representation is only checked: the matrix is that of unity, and the rows are returned.
        """

    def cluster(self, points: Handle, n_clusters: int, random_state: np.random.RandomState) -> tuple[Handle, Array]:
        """Run k-means on rows scaled to unit length; return labels and centres.

        Groups are numbered by :func:`gapview.clusters.group_order`.
        """

    def communities(self, points: Handle, n_clusters: int, seed: int, graph: Handle) -> tuple[Handle, Array]:
        """Run Leiden on the graph over all samples; return labels, and the means of the points as centres.

        Groups are numbered by :func:`gapview.clusters.group_order`.
        """

    def group_shares(self, discriminants: Discriminants) -> Handle:
        """Return the share of each group in every sample by discriminants; before a problem is built."""

    def mixture_shares(self, points: Handle, centers: Array) -> Handle:
        """Return the share of each group in every sample by a mixture that starts from the centres of k-means."""

    def warn_of_zeros(self, points: Handle) -> None:
        """Warn of samples without a code, whose group is arbitrary."""

    def reassign(self, points: Handle, shares: Handle, graph: Handle) -> tuple[Handle, Array]:
        """Assign samples to the group of the largest share, with those of their neighbours; return labels and centres.

        Groups are numbered by :func:`gapview.clusters.group_order`.
        """

    def confidence(self, points: Handle, labels: Handle, centers: Array, graph: Handle | None) -> Handle:
        """Return the confidence of every sample; see :func:`gapview.trust.sample_confidence`."""

    def finish(self, model: Any, graphs: dict[str, Handle], rows: SampleResults) -> None:
        """Set the attributes of the model that have a row for each sample, and its training data.

        ``graphs`` holds graphs, or lists of them, by the names of their attributes.
        """
