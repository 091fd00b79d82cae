"""Parity with the authors' programs, to the last digits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gapview import GRMF, Views
from gapview.graph.knn import knn_graph
from gapview.metrics import clustering_scores
from gapview.scaling import unit_rows

RUNS = ["authors_cornell.npz", "authors_handwritten_2v.npz"]


def recorded_views(record):
    """Rebuild all samples from the recorded rows: paired first, then those of one view only."""
    n_first, n_second, n_paired = len(record["view_0"]), len(record["view_1"]), int(record["n_paired"])
    n_samples = n_first + n_second - n_paired
    rows = [np.arange(n_first), np.r_[np.arange(n_paired), np.arange(n_first, n_samples)]]
    matrices, mask = [], np.zeros((n_samples, 2), dtype=bool)
    for k in (0, 1):
        matrix = np.zeros((n_samples, record[f"view_{k}"].shape[1]), dtype=record[f"view_{k}"].dtype)
        matrix[rows[k]] = record[f"view_{k}"]
        matrices.append(matrix)
        mask[rows[k], k] = True
    return Views(matrices, mask=mask)


def recorded_graphs(record):
    sizes = [len(record["view_0"]), len(record["view_1"])]
    return [
        sparse.csr_array((np.ones(record[f"graph_{k}"].shape[1]), tuple(record[f"graph_{k}"])), shape=(n, n))
        for k, n in enumerate(sizes)
    ]


@pytest.mark.golden
@pytest.mark.parametrize("file", RUNS)
def test_golden_whole_run(golden, file):
    record = golden(file)
    model = GRMF(
        n_clusters=int(record["n_components"]),
        consensus_weight=float(record["consensus_weight"]),
        sparsity_weight=float(record["sparsity_weight"]),
        graph=recorded_graphs(record),
        init=[record["initial_P_0"], record["initial_P_1"]],
        max_iter=int(record["n_iter"]),
        tol=0,
        random_state=0,
    ).fit(recorded_views(record))
    np.testing.assert_allclose(model.objective_, record["objective"], rtol=1e-9)
    for k in (0, 1):
        np.testing.assert_allclose(model.codes_[k], record[f"P_{k}"], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(model.bases_[k], record[f"U_{k}"], rtol=1e-9, atol=1e-11)
    n_paired = int(record["n_paired"])
    np.testing.assert_allclose(model.embedding_[:n_paired], record["consensus"], rtol=1e-9, atol=1e-11)


@pytest.mark.golden
@pytest.mark.parametrize("file", RUNS)
def test_golden_graph_up_to_ties(golden, file):
    """Our graph may break ties otherwise, so that distances are compared and not indices."""
    record = golden(file)
    for k, expected in enumerate(recorded_graphs(record)):
        points = unit_rows(record[f"view_{k}"].astype(float))
        squared = 2 - 2 * points @ points.T
        np.fill_diagonal(squared, np.inf)
        ours = knn_graph(points, int(record["n_neighbors"])).toarray().astype(bool)
        theirs = expected.toarray().astype(bool)
        differing = np.argwhere(ours != theirs)
        # Wherever the two differ, the pair lies at the very distance at which one of its ends stops counting.
        reach = np.sort(squared, axis=1)[:, int(record["n_neighbors"]) - 1]
        for i, j in differing:
            assert min(abs(squared[i, j] - reach[i]), abs(squared[i, j] - reach[j])) < 1e-9
        assert (ours == ours.T).all()
        assert not ours.diagonal().any()


@pytest.mark.golden
def test_golden_metrics(golden):
    record = golden("authors_metrics.npz")
    scores = clustering_scores(record["y"], record["labels"])
    for name in ("accuracy", "nmi", "purity"):
        assert scores[name] == pytest.approx(float(record[name]), abs=1e-12)
