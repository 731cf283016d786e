# SPDX-License-Identifier: Apache-2.0
"""Points and metrics of a pipeline's runs as a Document."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from .. import units
from ..tune.trend import Metric, Point, has_peak_memory
from .document import Column, Document, Table

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40


def sparkline(values: Sequence[float]) -> str:
    """The last 40 values as bars, from the least to the largest of them."""
    shown = list(values)[-_WIDTH:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    if high == low:
        return _BARS[len(_BARS) // 2] * len(shown)
    return "".join(_BARS[min(len(_BARS) - 1, int((v - low) / (high - low) * len(_BARS)))] for v in shown)


def document(pipeline: str, source: str, found: Sequence[Point], made: Sequence[Metric], currency: str) -> Document:
    """The answer of the command."""
    states = [f"{n} {state}" for state in ("SUCCEEDED", "FAILED", "RUNNING", "UNKNOWN")
              if (n := sum(p.state == state for p in found))]  # fmt: skip
    facts = [
        ("runs", f"{len(found)}: {', '.join(states)}"),
        ("from", units.clock(found[0].start_time)),
        ("to", units.clock(found[-1].start_time)),
    ]
    tables = [_metric_table(made), _change_table(made), _run_table(found)]
    tests = sum(m.drift_p is not None for m in made) + sum(m.change_p is not None for m in made)
    notes = []
    if tests:
        notes.append(
            f"{units.counted(tests, 'test')} at 5 %: by chance alone, one of 20 tests reports a difference. "
            "Runs that read more take longer: see bytes read."
        )
    return Document(
        f"Trend of {pipeline} in {source}", facts=facts, tables=tables, notes=notes, main="runs", currency=currency,
        data={"pipeline": pipeline, "metrics": [_metric_data(m) for m in made],
              "runs": [dataclasses.asdict(p) for p in found]},
    )  # fmt: skip


def _metric_data(m: Metric) -> dict[str, Any]:
    return dataclasses.asdict(m) | {"median": m.median}


def _text(m: Metric, value: float | None) -> str:
    """Rows of the tables have different kinds: written here."""
    if value is None:
        return units.DASH
    sign = "-" if value < 0 else ""
    if m.kind == "ns":
        return sign + units.duration(abs(value))
    if m.kind == "size":
        return units.size(value)
    return units.money(value) if m.kind == "money" else f"{value:g}"


def _p(p: float | None) -> str:
    return units.DASH if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _metric_table(made: Sequence[Metric]) -> Table:
    columns = [
        Column("title", "figure"), Column("runs", "runs", "count"), Column("sparkline", "over runs"),
        Column("median", "median"), Column("least", "least"), Column("most", "most"), Column("latest", "latest"),
        Column("slope", "slope a run"), Column("share", "of median"), Column("drift_p", "p"),
        Column("verdict", "verdict"),
    ]  # fmt: skip
    rows = []
    for m in made:
        share = m.slope_per_run / m.median if m.slope_per_run is not None and m.median else None
        rows.append({
            "title": m.title, "runs": len(m.values), "sparkline": sparkline(m.values), "median": _text(m, m.median),
            "least": _text(m, min(m.values)), "most": _text(m, max(m.values)), "latest": _text(m, m.values[-1]),
            "slope": _text(m, m.slope_per_run), "share": units.DASH if share is None else f"{share * 100:+.1f}%",
            "drift_p": _p(m.drift_p), "verdict": m.verdict,
        })  # fmt: skip
    return Table("metrics", "Drift: slope of Theil and Sen, p of Mann and Kendall", columns, rows,
                 "" if rows else "None of its runs has succeeded: there is nothing to compare.")  # fmt: skip


def _change_table(made: Sequence[Metric]) -> Table:
    columns = [
        Column("title", "figure"), Column("since", "from run"), Column("before", "runs before", "count"),
        Column("after", "runs after", "count"), Column("median_before", "median before"),
        Column("median_after", "median after"), Column("ratio", "ratio"), Column("delta", "Cliff's delta"),
        Column("p", "p"), Column("test", "test"),
    ]  # fmt: skip
    rows = [
        {
            "title": m.title, "since": m.change_run_id, "before": m.change_before, "after": m.change_after,
            "median_before": _text(m, m.median_before), "median_after": _text(m, m.median_after),
            "ratio": f"{m.median_after / m.median_before:.2f}" if m.median_before and m.median_after else units.DASH,
            "delta": f"{m.cliffs_delta:+.2f}", "p": _p(m.change_p), "test": m.change_test,
        }
        for m in made if m.change_run_id is not None
    ]  # fmt: skip
    return Table("changes", "Steps: the point before and after which runs differ most", columns, rows)


def _run_table(found: Sequence[Point]) -> Table:
    peak = Column("peak_rss_bytes", "peak of program", "size")
    if has_peak_memory(found):
        peak = Column("peak_memory_bytes", "peak mem", "size")
    columns = [
        Column("start_time", "began", "time"), Column("run_id", "run"), Column("state", "state"),
        Column("wall_ns", "wall", "ns"), Column("cpu_ns", "CPU", "ns"), peak,
        Column("rchar", "bytes read", "size"), Column("storage_bytes", "storage I/O", "size"),
        Column("cost", "cost", "money"), Column("tasks", "tasks", "count"), Column("failed_tasks", "failed", "count"),
    ]  # fmt: skip
    return Table("runs", "Runs", columns, [dataclasses.asdict(p) for p in found])
