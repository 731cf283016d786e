# SPDX-License-Identifier: Apache-2.0
"""A Comparison as a Document: runs, tasks and tools of each run beside each other."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..tune.compare import PEAK_OF_PROGRAM, PEAK_TOGETHER, Comparison
from . import verdict
from .document import Column, Document, Table

_TOOLS_SHOWN = 20
_PEAKS = {PEAK_TOGETHER: "peak mem", PEAK_OF_PROGRAM: "peak of program"}
_FIGURES = {"wall_ns": "wall", "cpu_ns": "CPU", **_PEAKS}


def document(c: Comparison, source: str, currency: str = "USD") -> Document:
    """The answer of the command."""
    both, of_tools = _columns(c.peak), _columns(PEAK_OF_PROGRAM)
    run = Column("run", "run", "count")
    most = list(dict.fromkeys(r["tool"] for r in c.tools))
    tools = [_shown(r) for r in c.tools if r["tool"] in most[:_TOOLS_SHOWN]]
    left_out = f"{len(most) - _TOOLS_SHOWN} more, with less CPU time: --format json" if len(most) > _TOOLS_SHOWN else ""
    tables = [
        Table("runs", "Runs", [run, Column("run_id", "id"), Column("start_time", "began", "time"),
                               Column("state", "state"), *both], [_shown(r) for r in c.runs]),
        Table("tasks", "Tasks", [Column("task", "task"), Column("sample", "sample"), run,
                                 Column("count", "executions", "count"), *both, Column("exit", "exit")],
              [_shown(r) for r in c.tasks]),
        Table("tests", "Do executions differ from those of run 1?",
              [Column("subject", "task or tool"), run, Column("what", "figure"), Column("first", "in run 1", "count"),
               Column("other", "in this", "count"), Column("ratio", "median ratio"), Column("p_text", "p"),
               Column("q_text", "p, adjusted"), Column("test", "test"), Column("verdict", "verdict")],
              [dataclasses.asdict(t) | {"what": _FIGURES[t.figure], "ratio": _times(t.median_ratio),
               "p_text": _p(t.p), "q_text": _p(t.p_adjusted)} for t in c.tests],
              "" if c.tests else "Every task ran once: too few executions to decide whether a difference is chance."),
        Table("tools", "Tools", [Column("tool", "tool"), run, Column("count", "programs", "count"), *of_tools,
                                 Column("exit", "exit")], tools, left_out),
        Table("versions", "Tools that differ in executable or container image",
              [Column("tool", "tool"), run, Column("exes", "executable"), Column("images", "image")],
              [dataclasses.asdict(v) for v in c.versions],
              "The same path or image name may have another version, which records lack." if c.versions else ""),
    ]  # fmt: skip
    warnings = [f"run {r['run']}: {w}" for r in c.runs for w in r["warnings"]]
    return Document(
        f"{len(c.runs)} runs in {source}", tables=tables, warnings=warnings, data=c, main="tasks", currency=currency
    )


def _columns(peak: str) -> list[Column]:
    """What runs, tasks and tools have."""
    return [
        Column("wall_ns", "wall", "ns"), Column("wall_times", "ratio"), Column("cpu_ns", "CPU", "ns"),
        Column("cpu_times", "ratio"), Column(peak, _PEAKS[peak], "size"), Column("peak_times", "ratio"),
        Column("read_bytes", "read", "size"), Column("write_bytes", "written", "size"), Column("cost", "cost", "money"),
        *verdict.COLUMNS,
    ]  # fmt: skip


def _p(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _times(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.2f}"


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    ratios = {f"{name}_times": _times(row[f"{name}_ratio"]) for name in ("wall", "cpu", "peak")}
    return row | ratios | verdict.texts(row["demand"], row["waiting_for"], row["denied"], row["denied_share"])
