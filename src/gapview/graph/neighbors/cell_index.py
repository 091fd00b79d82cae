"""Points in few dimensions, cell by cell, and the candidates of many queries at once by matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compute.arrays import leading_directions
from ...utils.types import Array
from .distances import smallest

_N_FITTED = 20_000  # rows on which the directions are computed
_N_ROWS = 2**14  # rows projected at a time
_N_PER_CELL = 24  # points per cell on which the centres are learnt
_N_ITERATIONS = 5
_N_MOVED = 16  # columns moved at a time: as many numbers as fill a line of the cache
_N_VALUES = 2**20  # distances held at a time; more would not stay in the cache


@dataclass(frozen=True)
class Projection:
    """The leading principal directions of rows, or the rows as they are."""

    center: Array
    directions: Array | None

    @classmethod
    def fit(cls, rows: Array, n_directions: int | None, seed: int) -> Projection:
        """Return so many directions, from a sample of the rows; all features if None."""
        drawn = _some(rows, _N_FITTED, seed)
        center = drawn.mean(axis=0, dtype=np.float64).astype(np.float32)
        if n_directions is None:
            return cls(center, None)
        directions = leading_directions(drawn - center, n_directions)
        return cls(center, np.ascontiguousarray(directions, dtype=np.float32))

    def __call__(self, rows: Array) -> tuple[Array, Array]:
        """Return coordinates, and the squared length of what they leave out."""
        gaps = rows - self.center
        if self.directions is None:
            return gaps, np.zeros(len(rows), dtype=np.float32)
        coordinates = gaps @ self.directions
        left_out = np.einsum("ij,ij->i", gaps, gaps) - np.einsum("ij,ij->i", coordinates, coordinates)
        return coordinates, np.maximum(left_out, 0)


@dataclass(frozen=True)
class CellIndex:
    """Points in cells around centres.

    The queries of a cell are compared with the points of the same cells, those nearest to its centre, by one matrix
    product. That costs a fraction of comparing every query with the cells nearest to itself, which are not the same.
    """

    projection: Projection
    centers: Array
    cell: Array  # of every point
    order: Array  # the points, cell by cell
    edges: Array  # where every cell begins among them
    coordinates: Array  # of the points, cell by cell
    left_out: Array  # squared length of what the coordinates leave out, cell by cell

    @classmethod
    def build(cls, rows: Array, n_directions: int | None, n_cells: int, seed: int) -> CellIndex:
        """Divide rows of float32 into cells by k-means on a sample, in the leading directions."""
        import faiss

        projection = Projection.fit(rows, n_directions, seed)
        drawn = projection(_some(rows, _N_PER_CELL * n_cells, seed))[0]
        kmeans = faiss.Kmeans(
            drawn.shape[1], n_cells, niter=_N_ITERATIONS, seed=seed % 2**31, min_points_per_centroid=1
        )
        kmeans.train(drawn)
        n_points = len(rows)
        coordinates = np.empty((n_points, drawn.shape[1]), dtype=np.float32)
        left_out, cell = np.empty(n_points, dtype=np.float32), np.empty(n_points, dtype=np.int32)
        for begin in range(0, n_points, _N_ROWS):
            part = slice(begin, begin + _N_ROWS)
            coordinates[part], left_out[part] = projection(rows[part])
            cell[part] = nearest_cells(coordinates[part], kmeans.centroids, 1)[:, 0]
        order = np.argsort(cell, kind="stable")
        edges = np.searchsorted(cell[order], np.arange(n_cells + 1))
        for begin in range(0, coordinates.shape[1], _N_MOVED):  # a second copy of all columns would be large
            columns = slice(begin, begin + _N_MOVED)
            coordinates[:, columns] = coordinates[order, columns]
        return cls(projection, kmeans.centroids, cell, order, edges, coordinates, left_out[order])

    def near_cells(self, n_probes: int) -> Array:
        """Return for every cell those with the nearest centres, nearest first."""
        return nearest_cells(self.centers, self.centers, n_probes)

    def cells_of(self, coordinates: Array) -> Array:
        """Return the cell of every query."""
        return nearest_cells(coordinates, self.centers, 1)[:, 0]

    def candidates(self, queries: Array, cell: int, visited: Array, count: int) -> tuple[Array, Array]:
        """Return squared distances and numbers of the points of some cells nearest to queries of one cell.

        They come in any order. Queries are given by their coordinates. Distances are those in the leading directions
        plus what these leave out of the points, as if the rest of two rows was orthogonal; what they leave out of the
        query is the same for all points. Where the cells hold too few points, −1 and infinite stand for none.
        """
        begins, sizes = self.edges[visited], self.edges[visited + 1] - self.edges[visited]
        ends = sizes.cumsum()
        places = np.arange(ends[-1]) + np.repeat(begins - ends + sizes, sizes)
        # Around the centre of the cell, products round little
        points = self.coordinates.take(places, axis=0)
        points -= self.centers[cell]
        squares = np.einsum("ij,ij->i", points, points)
        squares += self.left_out.take(places)
        around = (queries - self.centers[cell]) * np.float32(-2)
        n_found = min(count, len(places))
        found = np.full((len(queries), count), -1)
        distances = np.full(found.shape, np.inf, dtype=np.float32)
        step = max(1, _N_VALUES // len(places))
        for begin in range(0, len(queries), step):
            part = slice(begin, begin + step)
            table = around[part] @ points.T
            table += squares
            distances[part, :n_found], columns = smallest(table, n_found)
            found[part, :n_found] = self.order.take(places.take(columns))
        return distances, found


def nearest_cells(rows: Array, centers: Array, count: int) -> Array:
    """Return the nearest centres to every row, nearest first."""
    import faiss

    return np.asarray(faiss.knn(np.ascontiguousarray(rows), centers, count)[1])


def _some(rows: Array, most: int, seed: int) -> Any:
    if len(rows) <= most:
        return rows
    # Not with the seed alone, which draws the queries on which the recall is estimated: these rows are nearer to the
    # centres than others
    return rows[np.sort(np.random.RandomState([seed % 2**32, 1]).choice(len(rows), most, replace=False))]
