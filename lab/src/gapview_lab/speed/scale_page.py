"""The page of ``gapview-lab scale``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gapview.report.page import Block, Code, Drawing, Facts, Group, Items, Page, Row, Section, Table, Text
from gapview.utils.messages import joined

from ..common.run_file import run_facts
from .goals import Goal
from .growth import Growth, fit_power
from .phases import PHASES
from .scale_runs import DONE, RIVALS, ScaleRun
from .speed_page import goal_table, percent, seconds_text

__all__ = ["ends_lead", "scale_lead", "scale_page", "scale_sections"]

_UNPAIRED = (
    "No sample has both views here: half of each is missing and none lacks both. Nothing in such data says which "
    "groups of one view are which of the other, so that no method can find the true groups; cost is what these runs "
    "show. With --missing-rate 0.25, half of the samples have both."
)
_SMALL = 0.01  # share of the time below which a phase is not spoken of


def scale_page(
    runs: Sequence[ScaleRun], growths: Sequence[Growth], run: Mapping[str, Any], drawings: Mapping[str, Any]
) -> Page:
    """Build the page; without drawings for Markdown."""
    footer = f"Made by gapview {run['version']} on {run['finished']}."
    lead = scale_lead(runs, growths) or ("No run has come to an end.",)
    return Page("How gapview grows", lead, scale_sections(runs, growths, run, drawings), footer)


def scale_lead(runs: Sequence[ScaleRun], growths: Sequence[Growth]) -> tuple[str, ...]:
    """Return the summary, one sentence for each method."""
    lines = []
    for growth in growths:
        last = _largest(runs, growth)
        power = growth.power()
        grows = (
            f"time grows with n to the power of {power.exponent:.2f}" if power else "one size says nothing of growth"
        )
        where = "arrays on the device" if last.device else "arrays"
        found = f"neighbours found: {100 * last.recall:.1f} %; " if last.recall == last.recall else ""
        lines.append(
            f"{growth.method}: {last.n_samples:,} samples × ({last.features.replace('+', ' + ')}) float32, "
            f"{percent(last.missing_rate)} of every view missing, from {where} to labels in "
            f"{seconds_text(last.seconds)}; {grows}. Memory at most {last.peak_mb / last.input_mb:.1f} times the "
            f"input; {found}adjusted Rand index with the truth: {last.ari:.3f}."
        )
    if any(run.paired == 0 for run in runs):
        lines.append(_UNPAIRED)
    return tuple(lines)


def ends_lead(runs: Sequence[ScaleRun]) -> tuple[str, ...]:
    """Return where every method ends, and how its processor time grows."""
    lines = ["Every method at growing sizes, up to a limit for each run. The picture is who-runs.png of the results."]
    for method in dict.fromkeys(run.method for run in runs):
        own = [run for run in runs if run.method == method]
        done = [run for run in own if run.status == DONE]
        if not done:
            continue
        last = max(done, key=lambda run: run.n_samples)
        power = fit_power([run.n_samples for run in done], [run.processor_seconds for run in done])
        grows = f", growing with n to the power of {power.exponent:.2f}" if power else ""
        failed = next((f"; {run.n_samples:,}: {run.status}" for run in own if run.status != DONE), "")
        lines.append(
            f"{method}: {last.n_samples:,} samples in {seconds_text(last.processor_seconds)} of processor time{grows}"
            f"{failed}."
        )
    return tuple(lines)


def _largest(runs: Sequence[ScaleRun], growth: Growth) -> ScaleRun:
    own = [run for run in runs if run.method == growth.method and run.status == DONE]
    return max(own, key=lambda run: run.n_samples)


def scale_sections(
    runs: Sequence[ScaleRun], growths: Sequence[Growth], run: Mapping[str, Any], drawings: Mapping[str, Any]
) -> tuple[Section, ...]:
    """Return the sections."""
    sections = [Section("Every size", (_sizes_table(runs), *_who_runs(drawings)))] if growths else []
    ours = [growth for growth in growths if growth.method not in RIVALS]
    goals = [goal for growth in ours for goal in _goals(_largest(runs, growth), growth)]
    if goals and any(one.n_samples >= 1_000_000 for one in runs):
        sections.insert(0, Section("Goals", (goal_table(goals),)))
    sections += [
        Section(f"Where the time of {growth.method} goes", _growth(runs, growth, drawings))
        for growth in growths
        if len(growth.phases) > 1  # other packages have no phases
    ]
    meanings = Items(tuple((name, text) for name, text in PHASES.items()))
    left_out: tuple[Block, ...] = (Text("Left out:"), Items(tuple(run["left_out"]))) if run["left_out"] else ()
    facts = Facts((("processor", str(run["computer"])), ("programs", str(run["programs"]))))
    how = Text(
        "Every run has a process of its own. The data are made in another one and read from files, as arrays with rows "
        "of NaN where a sample lacks a view: that is the input. Peak memory is that of the whole process, Python and "
        "its packages included. The clock runs from the arrays to the labels. Phases are timed by clocks around the "
        "functions of the library; exponents are fitted by least squares to the logarithms."
    )
    repeat = Section("How to repeat it", (Code(str(run["command"])), how, meanings, *left_out, facts, run_facts(run)))
    return (*sections, repeat)


def _who_runs(drawings: Mapping[str, Any]) -> tuple[Block, ...]:
    if "who-runs" not in drawings:
        return ()
    caption = "Processor time of every method against the number of samples; a cross marks the size that was too large."
    return (Drawing(drawings["who-runs"], caption, caption),)


def _goals(last: ScaleRun, growth: Growth) -> list[Goal]:
    name = f"{growth.method}, {last.n_samples:,} samples"
    ratio, power = last.peak_mb / last.input_mb, growth.power()
    goals = [
        Goal(f"{name}: peak memory over the input", "≤ 3", f"{ratio:.2f}", ratio <= 3),
        Goal(f"{name}: share of the neighbours found", "≥ 0.95", f"{last.recall:.3f}", last.recall >= 0.95),
    ]
    if power:
        text = f"{growth.method}: exponent of time, {growth.sizes[0]:,} to {growth.sizes[-1]:,} samples"
        goals.append(Goal(text, "≤ 1.3", f"{power.exponent:.2f}", power.exponent <= 1.3))
    return goals


def _sizes_table(runs: Sequence[ScaleRun]) -> Table:
    rows = []
    for run in runs:
        head = (run.method + (f" on {run.device}" if run.device else ""), f"{run.n_samples:,}")
        if run.status != DONE:
            rows.append(Row(head, (run.status, *[""] * 7)))
            continue
        memory = (f"{run.input_mb:.0f}", f"{run.peak_mb:.0f}", f"{run.peak_mb / run.input_mb:.2f}")
        recall = f"{run.recall:.3f}" if run.recall == run.recall else "–"
        found = (recall, f"{run.ari:.3f}", str(run.n_iter))
        processor = seconds_text(run.processor_seconds) if run.processor_seconds == run.processor_seconds else "–"
        rows.append(Row(head, (seconds_text(run.seconds), processor, *memory, *found)))
    ordered = sorted(rows, key=lambda row: row.headers[0])
    heads = ("", "samples", "time", "processor", "input, MB", "peak, MB", "peak / input", "recall", "ARI", "iterations")
    note = (
        "Processor: time of all threads, which other load changes less. "
        "Recall: the least of all searches, as estimated by the search itself; a dash: the method does not report it. "
        "ARI: adjusted Rand index with the truth."
    )
    known = [run for run in runs if run.device_mb == run.device_mb]
    on_device = [f"{run.device_mb:.0f} MB ({run.method}, {run.n_samples:,})" for run in known]
    notes: tuple[str, ...] = (note,)
    if known:
        notes += (
            f"Most memory held on the device: {', '.join(on_device)}.",
            "Every process has fitted 6,000 samples before, most of it to load the programs of the device: "
            f"at most {seconds_text(max(run.warm_up for run in known))}.",
        )
    return Table("From arrays to labels", heads, (Group(tuple(ordered)),), notes=notes, numbers=True)


def _growth(runs: Sequence[ScaleRun], growth: Growth, drawings: Mapping[str, Any]) -> tuple[Block, ...]:
    """Show the phases of one method at all sizes, and explain its exponent."""
    total = growth.totals[-1]
    rows = [_growth_row(growth, "total", growth.totals)]
    rows += [_growth_row(growth, name, growth.phases[name]) for name in PHASES if name in growth.phases]
    heads = ("", *(f"{size:,}" for size in growth.sizes), "share", "exponent")
    note = f"Share: of the {seconds_text(total)} at {growth.sizes[-1]:,} samples."
    blocks: list[Block] = [
        Table(f"{growth.method}: seconds by phase", heads, (Group(tuple(rows)),), notes=(note,), numbers=True)
    ]
    if len(growth.sizes) > 1:
        blocks.append(Text(cause(growth)))
    memory = _largest(runs, growth).memory
    if memory:
        largest = max(memory, key=lambda name: memory[name])
        by_phase = joined([f"{name} {value:.0f}" for name, value in memory.items()])
        blocks.append(Text(f"Largest memory by phase, in MB: {by_phase}. The peak is in: {largest}."))
    drawn = drawings.get(f"cost-{growth.method.lower()}")
    if drawn is not None:
        caption = "Time against the number of samples, both in powers of ten, with fitted powers of n."
        blocks.append(Drawing(drawn, f"{caption} The same times as in the table.", caption))
    return tuple(blocks)


def _growth_row(growth: Growth, name: str, seconds: Sequence[float]) -> Row:
    power = growth.power(name)
    exponent = f"{power.exponent:.2f}" if power else "–"
    return Row((name,), (*map(seconds_text, seconds), percent(seconds[-1] / growth.totals[-1]), exponent))


def cause(growth: Growth) -> str:
    """Return a sentence on the phases that make growth differ from linear."""
    times = growth.sizes[-1] / growth.sizes[0]
    in_step = times * growth.totals[0]
    spoken = {name: value for name, value in growth.excess().items() if abs(value) > _SMALL * growth.totals[-1]}
    parts = joined([f"{name} {_signed_seconds(value)}" for name, value in spoken.items()])
    return (
        f"In step with n, {times:g} times the samples would take {seconds_text(in_step)}; they took "
        f"{seconds_text(growth.totals[-1])}, {_signed_seconds(growth.totals[-1] - in_step)}"
        + (f": {parts}." if parts else ".")
    )


def _signed_seconds(seconds: float) -> str:
    return ("+" if seconds > 0 else "−") + seconds_text(abs(seconds))
