"""Survival in covariates: columns of times and events, detected by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...utils.types import Array

_TIME_WORDS = {"time", "times", "days", "months", "years", "duration", "followup", "mo", "mos"}
_EVENT_WORDS = {"event", "events", "status", "stat", "dead", "death", "died", "vital", "ind", "indicator"}
_SHARED_WORDS = {"to", "of", "last", "survival", "follow", "up", "in", "until"}
_SHARED_WORDS |= {"demographic", "diagnoses", "patient", "clinical", "case"}  # parts of a table, as the GDC names them
# Names of endpoints that stand for a time, beside a column of events: os and os_event
_ENDPOINTS = {"os", "pfs", "pfi", "dfs", "dfi", "dss", "rfs", "efs", "mfs", "dmfs", "css", "ttp"}
_LEAST_CENSORED = 0.5  # share of the samples without the event whose time is known

NO_FOLLOW_UP = (
    "its times are missing for most samples without the event, which are censored at the time of their last follow-up; "
    "without that time (such as days_to_last_followup) and their status (such as vital_status) no test is valid"
)


@dataclass(frozen=True)
class Outcome:
    """Columns with times and events; ``follow_up`` has the times of samples without the event, if ``time`` has not."""

    time: str
    event: str
    follow_up: str | None = None

    @property
    def name(self) -> str:
        """The names of the columns, times first."""
        return " / ".join(filter(None, (self.time, self.follow_up, self.event)))

    @property
    def note(self) -> str:
        """The rule by which two columns of times are combined; empty if there is one."""
        if self.follow_up is None:
            return ""
        return f"Time: {self.time} where {self.event} is dead, otherwise {self.follow_up}, which is censored."


def find_outcomes(numbers: Sequence[str], flags: Sequence[str]) -> list[Outcome]:
    """Return the columns that hold survival, detected by name.

    Three columns such as ``days_to_death``, ``days_to_last_followup`` and ``vital_status`` (TCGA) are one outcome; see
    :func:`find_pairs` for two. ``numbers`` may hold times, ``flags`` have two values.
    """
    deaths = [name for name in numbers if is_time_of_death(name)]
    follow_ups = [name for name in numbers if _is_follow_up(_words(name))]
    states = [name for name in flags if _is_event_of(_words(name), set())]
    states = [name for name in states if "vital" in _words(name)] or states
    combined = []
    if len(deaths) == len(follow_ups) == len(states) == 1:
        combined = [Outcome(deaths[0], states[0], follow_ups[0])]
    used = {name for one in combined for name in (one.time, one.event, one.follow_up)}
    free = [[name for name in names if name not in used] for names in (numbers, flags)]
    return combined + [Outcome(*pair) for pair in find_pairs(*free)]


def find_pairs(numbers: Sequence[str], flags: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of columns of times and events, matched by name, such as OS.time and OS, or days and event.

    Without the words for times and events, both names must be the same. No column is used twice.
    """
    pairs = []
    free = list(flags)
    for name in numbers:
        words = _words(name)
        is_endpoint = bool(words) and words <= _ENDPOINTS
        if not words & _TIME_WORDS and not is_endpoint and not ("survival" in words and not words & _EVENT_WORDS):
            continue
        fitting = [flag for flag in free if flag != name and _is_event_of(_words(flag), words)]
        if len(fitting) == 1:  # several are ambiguous
            pairs.append((name, fitting[0]))
            free.remove(fitting[0])
    return pairs


def is_time_of_death(name: str) -> bool:
    """Return whether a column holds times to death by its name, such as days_to_death."""
    words = _words(name)
    return bool("death" in words and words & _TIME_WORDS)


def lacks_censored(times: Array, events: Array) -> bool:
    """Return whether most samples without the event have no time, so that censoring cannot be taken into account."""
    censored = events == 0
    return bool(censored.any() and np.isfinite(times[censored]).mean() < _LEAST_CENSORED)


def _is_follow_up(words: set[str]) -> bool:
    return bool(words & _TIME_WORDS and ("last" in words or "followup" in words or {"follow", "up"} <= words))


def _words(name: str) -> set[str]:
    found = re.findall(r"[a-z]+|[0-9]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return {"progress" if word == "progression" else word for word in found}


def _is_event_of(flag: set[str], time: set[str]) -> bool:
    topic, other = (words - _TIME_WORDS - _EVENT_WORDS - _SHARED_WORDS for words in (time, flag))
    # Without a word for events, the name is the topic alone, such as OS for OS.time
    return topic == other and bool(flag & _EVENT_WORDS or other) and not flag & _TIME_WORDS
