"""Survival in groups: which columns tell of it, Kaplan-Meier curves, and the log-rank test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from ...utils.types import Array

__all__ = ["Curve", "find_pairs", "kaplan_meier", "log_rank"]

_TIME_WORDS = {"time", "times", "days", "months", "years", "duration", "followup"}
_EVENT_WORDS = {"event", "events", "status", "dead", "death", "died"}
_SHARED_WORDS = {"to", "of", "last", "survival", "follow", "up", "in", "until"}


@dataclass(frozen=True)
class Curve:
    """Survival in one group, by Kaplan and Meier: the share still without the event from each time on."""

    n_samples: int
    n_events: int
    median: float  # time at which half of the group has had the event; NaN if that was never reached
    times: Array = field(repr=False)
    share: Array = field(repr=False)


def find_pairs(numbers: Sequence[str], flags: Sequence[str]) -> list[tuple[str, str]]:
    """Pair columns of times with columns of events by their names, such as OS.time and OS, or days and event.

    ``numbers`` may hold times, ``flags`` have two values. What is left of both names without the words for times and
    events must be the same, and no column is taken twice.
    """
    pairs = []
    free = list(flags)
    for name in numbers:
        words = _words(name)
        if not words & _TIME_WORDS:
            continue
        fitting = [flag for flag in free if flag != name and _is_event_of(_words(flag), words)]
        if len(fitting) == 1:  # of several, nobody can tell which
            pairs.append((name, fitting[0]))
            free.remove(fitting[0])
    return pairs


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+|[0-9]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def _is_event_of(flag: set[str], time: set[str]) -> bool:
    topic, other = (words - _TIME_WORDS - _EVENT_WORDS - _SHARED_WORDS for words in (time, flag))
    # Without a word for events, the topic itself must be the name, as OS beside OS.time
    return topic == other and bool(flag & _EVENT_WORDS or other) and not flag & _TIME_WORDS


def kaplan_meier(times: Array, events: Array) -> Curve:
    """Estimate survival; who leaves at a time without the event was at risk until then."""
    moments, places = np.unique(times, return_inverse=True)
    died = np.bincount(places, weights=events, minlength=len(moments))
    left = np.bincount(places, minlength=len(moments))
    at_risk = len(times) - np.concatenate([[0], np.cumsum(left)[:-1]])
    share = np.cumprod(1 - died / at_risk)
    reached = np.flatnonzero(share <= 0.5 + 1e-12)
    median = float(moments[reached[0]]) if reached.size else float("nan")
    return Curve(len(times), int(events.sum()), median, moments, share)


def log_rank(times: Array, events: Array, groups: Array) -> tuple[float, int, float] | None:
    """Test whether survival is the same in all groups: chi-square, its degrees of freedom, p-value.

    Events are compared, at every time at which there are some, with what the shares of the groups among those at risk
    lead to expect (Mantel 1966). None if there is one group only, or no event that could have fallen elsewhere.
    """
    kinds, groups = np.unique(groups, return_inverse=True)
    n_groups = len(kinds)
    excess, variance = np.zeros(n_groups), np.zeros((n_groups, n_groups))
    moments, places = np.unique(times, return_inverse=True)
    left, died = np.zeros((2, len(moments), n_groups))
    np.add.at(left, (places, groups), 1)
    np.add.at(died, (places, groups), events)
    at_risk = np.cumsum(left[::-1], axis=0)[::-1]
    for deaths, risk in zip(died, at_risk, strict=True):
        total, n_dead = risk.sum(), deaths.sum()
        if n_dead == 0:
            continue
        shares = risk / total
        excess += deaths - n_dead * shares
        if total > 1:
            spread = n_dead * (total - n_dead) / (total - 1)
            variance += spread * (np.diag(shares) - np.outer(shares, shares))
    degrees = int(np.linalg.matrix_rank(variance))
    if degrees == 0:
        return None
    statistic = float(excess @ np.linalg.pinv(variance, hermitian=True) @ excess)
    return statistic, degrees, float(stats.chi2.sf(statistic, degrees))
