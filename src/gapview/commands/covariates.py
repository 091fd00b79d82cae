"""Tables of covariates on the command line: rows of the samples, and the column of batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..correction import CORRECTIONS
from ..errors import DataFileError, MissingExtraError, ParameterError, some
from ..estimators import MultiViewClusterer
from ..io import ViewFile, read_table
from ..io.array_files import read_obs
from ..report.clustering.comparisons import compare_covariates
from ..report.clustering.covariates import Comparison, match_covariates
from ..report.clustering.survival import find_outcomes
from ..trust.hazards import has_lifelines
from ..utils.messages import counted, warn_user
from ..utils.storage import escape_formula, write_table
from ..views import Views
from ..views.ids import explain_mismatch
from .console import Show
from .options import named_paths

COVARIATES, SURVIVAL = "covariates.csv", "survival.csv"
_MOST_CLINICAL = 200  # columns of a table of covariates

covariates_option = click.option(
    "--covariates", type=click.Path(path_type=Path), metavar="TABLE",
    help="Table of covariates of the samples, such as age, stage or survival time; the groups are compared in each.",
)  # fmt: skip
batch_option = click.option(
    "--batch", metavar="COLUMN",
    help="Column of the table (--covariates), or else of obs of .h5ad and .h5mu files, with the batch of every sample, "
    "such as plate, run or site: the groups are tested against it. It changes them with --batch-correction only.",
)  # fmt: skip
batch_correction_option = click.option(
    "--batch-correction", type=click.Choice(CORRECTIONS), default="none", show_default=True,
    help="Remove differences between the batches (--batch) from the views before groups are found.",
)  # fmt: skip
survival_option = click.option(
    "--survival", nargs=2, multiple=True, metavar="TIME EVENT",
    help="Columns of the table with times and events (1 observed, 0 censored). By default they are detected by name.",
)  # fmt: skip
adjust_option = click.option(
    "--adjust", multiple=True, metavar="COLUMNS",
    help="Columns of the table for which hazard ratios of the groups are adjusted, such as age,stage (Cox regression).",
)  # fmt: skip


def check_covariates(given: dict[str, Any]) -> None:
    """Read names of columns from the options; raise an error if there is no table, or a package is missing."""
    for name in ("survival", "adjust"):
        if given.get(name) and given["covariates"] is None:
            raise click.UsageError(f"--{name} names a column of a table: give the table with --covariates.")
    given["survival"] = list(given["survival"]) or None
    given["adjust"] = [part.strip() for text in given["adjust"] for part in text.split(",") if part.strip()]
    if given["adjust"] and not has_lifelines():
        raise MissingExtraError("lifelines", "survival", "Adjusting hazard ratios (--adjust)")


def read_covariates(
    path: Path, id_columns: Sequence[str], views: Views, owner: str, show: Show, sheet: str | None = None
) -> Any:
    """Return the rows of a table that belong to samples; ``owner`` names where these are from."""
    frame = read_table(path, id_column=list(id_columns) or None, sheet=sheet)
    own = dict.fromkeys(str(key) for key in views.sample_ids.tolist())
    common = [key for key in frame.index if key in own]
    proposal = explain_mismatch(frame.index.tolist(), list(own))
    hint = ""
    if proposal is not None:
        one, other = proposal.examples[0]
        hint = f" {counted(proposal.n_pairs, 'id')} match but for {proposal.what}, as {one!r} and {other!r}."
    if not common:
        raise DataFileError(
            f"{path.name!r} has no sample of {owner}: it has ids such as {some(frame.index, 3)}, {owner} such as "
            f"{some(list(own), 3)}.{hint} Name the column of ids (--id), or write the ids in the same way."
        )
    if hint:
        warn_user(f"Some ids of {path.name!r} are no ids of {owner}.{hint} Write the ids in the same way.")
    n_others = len(frame) - len(common)
    others = f"; {counted(n_others, 'row')} of other samples left out" if n_others else ""
    columns, n_samples = counted(frame.shape[1], "column"), f"{len(common):,} of the {views.n_samples:,} samples"
    show("Table", f"{path.name}: {columns} for {n_samples} of {owner}{others}.")
    return frame.loc[common]


def check_columns(table: Any, views: Views, survival: Any, adjust: Sequence[str]) -> None:
    """Raise an error if the table does not have the columns named, before groups are computed."""
    matched = match_covariates(table, views.sample_ids, no_ids=False)
    for pair in survival or ():
        matched.check_pair(*pair)
    matched.check_columns("adjust", adjust)


def compare_groups(
    folder: Path, model: MultiViewClusterer, table: Any, survival: Any, adjust: Sequence[str], show: Show
) -> None:
    """Compare the groups in all columns of a table; write and print what differs, and survival."""
    matched = match_covariates(table, model.sample_ids_, no_ids=False)
    found = compare_covariates(matched, model.labels_, int(model.labels_.max()) + 1, survival, adjust)
    show("Table", found.sentence)
    header = ["column", "kind", "n_samples", "statistic", "degrees", "p_value", "adjusted_p_value", "effect_size"]
    rows = (
        (escape_formula(one.column), one.kind, one.n_samples, *map(_written, _figures(one)))
        for one in sorted(found.comparisons, key=lambda one: one.p_value)
    )
    write_table(folder / COVARIATES, header, rows)
    groups: list[dict[str, Any]] = []
    for one in found.comparisons:
        if one.survival is not None:
            show("Survival", f"{one.column}: {one.survival}")
            groups += [{"outcome": escape_formula(one.column)} | row for row in one.survival.table]
    if groups:
        write_table(folder / SURVIVAL, list(groups[0]), ([_written(row[name]) for name in groups[0]] for row in groups))


def _figures(one: Comparison) -> tuple[float, ...]:
    return one.statistic, one.degrees, one.p_value, one.adjusted, one.strength


def _written(value: Any) -> Any:
    """Return a number with six digits, and empty text for NaN."""
    return ("" if value != value else f"{value:.6g}") if isinstance(value, float) else value


def warn_of_outcomes(found: Sequence[ViewFile]) -> None:
    """Warn of files with columns of survival, which are covariates rather than views."""
    for view in found:
        if view.is_sparse or view.frame.shape[1] > _MOST_CLINICAL:
            continue
        levels = {str(name): view.frame.iloc[:, place].nunique() for place, name in enumerate(view.frame.columns)}
        numbers, flags = ([name for name, n in levels.items() if (n <= 2) is few] for few in (False, True))
        for outcome in find_outcomes(numbers, flags):
            warn_user(
                f"{view.path.name!r} has columns of survival ({outcome.name}): it looks like a table of covariates. "
                "Groups found from an outcome agree with it by construction. Give the file with --covariates instead."
            )


def batch_column(table: Any, name: str, path: Path) -> Any:
    """Return the column of batches, keyed by sample id; raise an error if the table has no such column."""
    if name not in table.columns:
        raise ParameterError(
            f"--batch names the column {name!r}, and {path.name!r} has {some(table.columns, 12)}. Give one of these."
        )
    return table[name]


def omics_files(files: Sequence[str]) -> list[Path]:
    """Return the paths of files that have columns for their samples: .h5ad and .h5mu."""
    paths = [path for _, path in named_paths(files)]
    return [path for path in paths if path.suffix.lower() in (".h5ad", ".h5mu")]


def batch_of_files(paths: Sequence[Path], name: str, id_columns: Sequence[str], views: Views) -> dict[str, Any]:
    """Return the batch of every sample from ``obs`` of .h5ad and .h5mu files."""
    found: dict[str, Any] = {}
    columns: list[str] = []
    for path in paths:
        values, others = read_obs(path, name, id_columns)
        found, columns = values | found, columns + others
    n_common = sum(str(key) in found for key in views.sample_ids.tolist())
    if n_common:
        return found
    raise ParameterError(
        f"--batch names the column {name!r}, which obs has for none of the samples; it has "
        f"{some(dict.fromkeys(columns), 12) or 'no columns'}. Give one of these, or a table with --covariates."
    )
