"""Names of columns: which of them name the samples, and names of their own for all others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..utils.names import free_name

__all__ = ["distinct", "is_unnamed", "looks_like_id"]

# Without spaces, underscores and the like; the second list only counts for columns without repeats
_ID_NAMES = {
    *("id", "ids", "uid", "uuid", "guid", "sid", "pid", "eid", "mrn", "sample", "samples", "sampleid", "sampleids"),
    *("samplename", "samplecode", "patient", "patientid", "patientno", "subject", "subjectid", "participant"),
    *("participantid", "individual", "individualid", "person", "personid", "caseid", "donor", "donorid", "specimenid"),
    *("recordid", "barcode", "cellid", "rowid", "rowname", "rownames", "obsnames", "sampleno", "samplenumber"),
}
_WEAK_ID_NAMES = {"index", "case", "name", "key", "cell", "specimen", "row", "code", "no", "nr", "number", "accession"}


def looks_like_id(name: str, *, weak: bool = False) -> bool:
    """Tell whether a column is called as columns of sample ids are."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain in (_WEAK_ID_NAMES if weak else _ID_NAMES)


def is_unnamed(name: str) -> bool:
    """Tell whether a column has no name, or the one that pandas gives to such a column or index."""
    return not name or re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", name) is not None


def distinct(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Give every column a name of its own; return all names, and those that came more than once."""
    taken = set(names)
    seen: set[str] = set()
    found, repeated = [], []
    for number, name in enumerate(names, 1):
        new = name or f"column_{number}"
        if name and name in seen:
            repeated.append(name)
        if new in seen or (not name and new in taken):
            new = free_name(new, taken | seen)
        seen.add(new)
        found.append(new)
    return found, repeated
