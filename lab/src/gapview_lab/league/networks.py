"""Neural networks in place of parts of BridgedGRMF: encoders trained on its graph, and classifiers that refine groups.

An encoder has one network for each view; the outputs are averaged over the views of a sample. PyTorch is imported when
it is needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.neural_network import MLPClassifier

from gapview import BridgedGRMF
from gapview.backends.memory import MemoryBackend
from gapview.choice.representation import ViewGraphs, prepare
from gapview.clusters import cluster_parts
from gapview.correction import on_axes, principal_axes
from gapview.errors import GapviewWarning, MissingExtraError
from gapview.refinement import refine, transition_of, walk
from gapview.utils.messages import muted
from gapview.utils.types import Array
from gapview.views import Views

__all__ = [
    "Fit",
    "encode",
    "load_torch",
    "new_mlp_classifier",
    "new_network",
    "random_neighbors",
    "smoothed_rows",
    "train_in_rounds",
]

N_AXES = 100  # of a view, which networks read
N_HIDDEN, WIDTH, DROPPED = 256, 64, 0.2  # units of an encoder; share of the hidden ones that is dropped
N_STEPS, BATCH, RATE, DECAY = 400, 256, 1e-3, 1e-4  # of AdamW
TEMPERATURE = 0.5  # of the contrast
REACH = 4  # steps over which rows are smoothed before they are reconstructed
SHOWN = 0.5  # probability that a view of a sample is shown in a step
N_ROUNDS, N_AVERAGED, N_FOLDS = 10, 5, 5  # of self-training
LEAST = -8.0  # logarithm of a share


@dataclass(frozen=True)
class Fit:
    """A fit of the default, and what networks are trained on."""

    model: BridgedGRMF
    backend: MemoryBackend  # holds the views, scaled as in the fit
    prepared: ViewGraphs
    seed: int  # of the refinement in the fit

    @classmethod
    def of(cls, views: Views, n_clusters: int, seed: int) -> Fit:
        """Fit the default to views, and build its graphs once more."""
        with muted(GapviewWarning):
            model = BridgedGRMF(n_clusters, random_state=seed).fit(views)
        backend, setting = MemoryBackend(views), model.setting_
        prepared = prepare(backend, setting.scales, setting.n_neighbors, model.view_weights_.tolist())
        return cls(model, backend, prepared, int(np.random.RandomState(seed).randint(2**31 - 1)))

    @cached_property
    def transition(self) -> Any:
        """The "both" graph with the weights of every sample divided by their sum."""
        return transition_of(self.prepared.graphs["both"])

    @cached_property
    def rows(self) -> list[Array]:
        """The present rows of every view on their leading axes, with a mean square of 1."""
        found = []
        for rows in self.backend.scaled:
            points = on_axes(rows, 1.0, *principal_axes(rows, N_AXES)).astype(np.float32)
            found.append(points / max(float(np.sqrt(np.square(points).mean())), 1e-9))
        return found

    @property
    def present(self) -> list[Array]:
        """The samples of these rows."""
        return [self.backend.views.rows(k) for k in range(self.backend.views.n_views)]

    def groups(self, points: Array) -> Array:
        """Return the groups that k-means finds among points."""
        n_clusters, state = int(self.model.n_clusters), np.random.RandomState(self.seed)
        return cluster_parts(np.asarray(points, dtype=np.float64), self.backend.parts, n_clusters, state).labels

    def refined(self, starts: Sequence[Array]) -> Array | None:
        """Return the groups that discriminants refine from several starts; None if they are refused."""
        graph, views, scaled = self.prepared.graphs["both"], self.backend.views, self.backend.scaled
        found = refine(scaled, views, graph, starts, self.backend.parts, self.prepared.explained, self.seed)
        if found.discriminants is None:
            return None
        shares = found.discriminants.shares(scaled, self.present, views.n_samples)
        return np.asarray(walk(shares, self.transition).argmax(axis=1))


# -- encoders --------------------------------------------------------------------------------------------------


def encode(fit: Fit, objective: str, n_walked: int) -> Array:
    """Train an encoder on the bridge graph, and return the output for every sample."""
    torch = load_torch()
    torch.manual_seed(fit.seed)
    source, mask = np.random.RandomState(fit.seed), np.asarray(fit.backend.views.mask, dtype=np.float32)
    rows = [np.zeros((len(mask), own.shape[1]), dtype=np.float32) for own in fit.rows]
    for own, values, samples in zip(rows, fit.rows, fit.present, strict=True):
        own[samples] = values
    inputs, present = [torch.from_numpy(own) for own in rows], torch.from_numpy(mask)
    encoders = [_network(own.shape[1], WIDTH) for own in rows]
    decoders = [_network(WIDTH, own.shape[1]) for own in rows] if objective == "reconstruct" else []
    smoothed = [smoothed_rows(own, has, fit.transition) for own, has in zip(rows, mask.T, strict=True)]
    smoothed = [torch.from_numpy(own) for own in smoothed]
    weights = chain(*(network.parameters() for network in (*encoders, *decoders)))
    optimizer = torch.optim.AdamW(weights, lr=RATE, weight_decay=DECAY)

    def outputs(samples: Any, shown: Any) -> Any:
        pairs = zip(encoders, inputs, shown.T, strict=True)
        return sum(network(own[samples]) * has[:, None] for network, own, has in pairs) / shown.sum(1, keepdim=True)

    for _ in range(N_STEPS):
        one = other = source.permutation(len(mask))[:BATCH]
        for _ in range(n_walked):
            other = random_neighbors(fit.transition, other, source)
        found = outputs(one, _some_views(present[one]))
        if decoders:
            pairs = zip(decoders, smoothed, strict=True)
            loss = sum((network(found) - own[one]).square().mean() for network, own in pairs) / len(decoders)
        else:
            loss = _pair_loss(found, outputs(other, _some_views(present[other])), objective)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for network in encoders:
        network.eval()
    with torch.no_grad():
        found = outputs(slice(None), present)
        found = _standard(found) if objective == "decorrelate" else found
        return np.asarray(found if decoders else torch.nn.functional.normalize(found))


def load_torch() -> Any:
    """Return the module of PyTorch; raise an error if it is not installed."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "gpu", "Training an encoder") from None
    return torch


def _network(n_inputs: int, n_outputs: int) -> Any:
    nn = load_torch().nn
    return nn.Sequential(nn.Linear(n_inputs, N_HIDDEN), nn.ReLU(), nn.Dropout(DROPPED), nn.Linear(N_HIDDEN, n_outputs))


def _pair_loss(one: Any, other: Any, objective: str) -> Any:
    """Return the loss of the outputs for both ends of walks."""
    torch = load_torch()
    functional = torch.nn.functional
    if objective == "contrast":
        alike = functional.normalize(one) @ functional.normalize(other).T / TEMPERATURE
        own = torch.arange(len(one))
        return (functional.cross_entropy(alike, own) + functional.cross_entropy(alike.T, own)) / 2
    products = _standard(one).T @ _standard(other) / len(one)
    diagonal = torch.diagonal(products)
    return (diagonal - 1).square().sum() + (products.square().sum() - diagonal.square().sum()) / len(products)


def _standard(values: Any) -> Any:
    return (values - values.mean(dim=0)) / (values.std(dim=0) + 1e-4)


def _some_views(shown: Any) -> Any:
    """Return a mask that hides views at random, never all of a sample."""
    torch = load_torch()
    kept = shown * (torch.rand_like(shown) < SHOWN)
    return torch.where(kept.sum(dim=1, keepdim=True) > 0, kept, shown)


def smoothed_rows(rows: Array, has: Array, transition: Any) -> Array:
    """Return the mean of the rows that are reached in up to REACH steps, by their weights, with a mean square of 1."""
    start = np.column_stack([rows, has])
    total = start
    for _ in range(REACH):
        total = transition @ total + start
    found = total[:, :-1] / np.maximum(total[:, -1:], 1e-9)
    return np.asarray(found / max(np.sqrt(np.square(found).mean()), 1e-9), dtype=np.float32)


def random_neighbors(transition: Any, samples: Array, source: np.random.RandomState) -> Array:
    """Return a random neighbour of each of the samples, by their weights; the sample itself if it has none."""
    sums = np.concatenate([[0.0], np.cumsum(transition.data)])
    begin, end = transition.indptr[samples], transition.indptr[samples + 1]
    drawn = sums[begin] + source.uniform(size=len(samples)) * (sums[end] - sums[begin])
    places = np.minimum(np.searchsorted(sums, drawn, side="right"), end) - 1
    return np.where(end > begin, transition.indices[np.maximum(places, 0)], samples)


# -- self-training ---------------------------------------------------------------------------------------------

Classifier = Callable[[Array, Array, Array], Array]  # trained with rows and shares, it returns scores of other rows


def train_in_rounds(fit: Fit, start: Array, new_classifier: Callable[[int, int], Classifier]) -> Array:
    """Return groups refined as by discriminants, in rounds with held-out folds, but by another classifier."""
    n_clusters, counts = int(fit.model.n_clusters), fit.backend.views.mask.sum(axis=1)
    shares, total = np.eye(n_clusters)[start], np.zeros((len(start), n_clusters))
    folds = np.random.RandomState(fit.seed).permutation(len(start)) % N_FOLDS
    networks = [[new_classifier(rows.shape[1], n_clusters) for _ in range(N_FOLDS)] for rows in fit.rows]
    for done in range(N_ROUNDS):
        scores = np.zeros_like(total)
        for rows, samples, of_folds in zip(fit.rows, fit.present, networks, strict=True):
            for fold, classify in enumerate(of_folds):
                held = folds[samples] == fold
                if held.any():
                    scores[samples[held]] += classify(rows[~held], shares[samples[~held]], rows[held])
        found = softmax(_sharpened(scores / counts[:, None], shares.argmax(axis=1)), axis=1)
        shares = (found + fit.transition @ found) / 2
        if done >= N_ROUNDS - N_AVERAGED:
            total += shares
    return np.asarray(total.argmax(axis=1))


def _sharpened(scores: Array, labels: Array) -> Array:
    """Return the scores times the factor with which they predict the labels best."""
    rows = np.arange(len(labels))
    factors = 2.0 ** np.arange(5)
    fits = [log_softmax(factor * scores, axis=1)[rows, labels].mean() for factor in factors]
    return np.asarray(factors[int(np.argmax(fits))] * scores)


def new_network(n_axes: int, n_groups: int) -> Classifier:
    """Return a network of PyTorch that learns shares, and goes on learning in each round."""
    torch = load_torch()
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Dropout(DROPPED), _network(n_axes, n_groups))
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=1e-2)
    steps = chain([60], repeat(5))

    def scores(rows: Array, shares: Array, new: Array) -> Array:
        weights = shares / np.maximum(shares.sum(axis=0), 0.5)  # groups have no prior
        targets = torch.from_numpy((weights * len(rows) / weights.sum()).astype(np.float32))
        network.train()
        for _ in range(next(steps)):
            chosen = torch.randperm(len(rows))[:BATCH]
            found = torch.log_softmax(network(torch.from_numpy(rows)[chosen]), dim=1)
            loss = -(found * targets[chosen]).sum(dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            return np.asarray(torch.log_softmax(network(torch.from_numpy(new)), dim=1))

    return scores


def new_mlp_classifier(n_axes: int, n_groups: int) -> Classifier:
    """Return an ``MLPClassifier`` that learns the groups of the largest shares anew in each round."""

    def scores(rows: Array, shares: Array, new: Array) -> Array:
        labels = shares.argmax(axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it stops early on purpose
            network = MLPClassifier((64,), alpha=1.0, learning_rate_init=5e-3, max_iter=30, random_state=0)
            found = network.fit(rows, labels).predict_proba(new)
        priors = np.bincount(labels, minlength=n_groups)[network.classes_] / len(labels)
        of_groups = np.full((len(new), n_groups), LEAST)
        of_groups[:, network.classes_] = np.log(np.maximum(found, np.exp(LEAST)) / priors)
        return of_groups

    return scores
