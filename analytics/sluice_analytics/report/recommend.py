# SPDX-License-Identifier: Apache-2.0
"""Advice for tasks as a Document; as configuration it is in emit/."""

from __future__ import annotations

from typing import Any

from ..tune.advice import Advice, min_confidence
from .document import Column, Document, Table


def document(advices: list[Advice], source: str, currency: str = "USD", is_short: bool = True) -> Document:
    """The answer of the command. is_short: for people; else with every column, for CSV."""
    # Runs without a pipeline are identified by their command.
    needed = {
        "pipeline": not is_short or any(a.pipeline is not None for a in advices),
        "command": not is_short or any(a.pipeline is None for a in advices),
        "work_dir": not is_short or len({a.command for a in advices}) < len({(a.command, a.work_dir) for a in advices}),
        "task": True,
    }
    titles = {"work_dir": "folder"}
    names = [Column(name, titles.get(name, name)) for name, is_needed in needed.items() if is_needed]
    columns = [
        *names, Column("successful", "executions", "count"),
        Column("runs", "runs", "count"), Column("current_cpus", "CPUs", "number"),
        Column("recommended_cpus", "right", "number"),
        Column("current_memory_bytes", "memory", "size"), Column("recommended_memory_bytes", "right", "size"),
        Column("recommended_time_ns", "time limit", "ns"), Column("confidence", "confidence"),
        Column("saving_per_run", "saving a run", "money"),
    ]  # fmt: skip
    advised = [a for a in advices if not a.lack]
    table = Table("tasks", "Recommended sizes", columns, [_row(a) for a in advised])
    why = [
        {"task": a.task, "what": r.what, "confidence": r.confidence, "sentence": r.sentence} | _kind(a)
        for a in advised for r in a.recommendations
    ]  # fmt: skip
    why += [{"task": a.task, "what": "note", "sentence": note} | _kind(a) for a in advised for note in a.notes]
    is_one = is_short and len({(a.pipeline, a.command, a.work_dir) for a in advised}) == 1
    because = Table(
        "evidence", "Why, and what sizes do not fix",
        [*(names[-1:] if is_one else names), Column("what", "what"), Column("confidence", "confidence"),
         Column("sentence", "evidence")],
        sorted(why, key=lambda w: tuple(str(w[name] or "") for name in needed)),
    )  # fmt: skip
    lack = Table(
        "too_little_evidence", "Too little evidence: nothing is recommended",
        [*names, Column("lack", "why")],
        [{"task": a.task, "lack": a.lack} | _kind(a) for a in advices if a.lack],
    )  # fmt: skip
    notes = []
    if not advices:
        notes.append("No task of these runs has ended: there is nothing to recommend from.")
    if advised and all(a.saving is None for a in advised):
        notes.append(
            "The saving is unknown: it needs prices of the hosts (--prices FILE) and the requests of the engine."
        )
    return Document(
        f"Recommendations from {source}", tables=[table, because, lack], notes=notes, data={"tasks": _data(advices)},
        main="tasks", currency=currency,
    )  # fmt: skip


def _kind(a: Advice) -> dict[str, Any]:
    return {"pipeline": a.pipeline, "command": a.command, "work_dir": a.work_dir}


def _row(a: Advice) -> dict[str, Any]:
    cpus, memory, time = a.of("cpus"), a.of("memory_bytes"), a.of("time_ns")
    sizes = [r for r in (cpus, memory, time) if r]
    return _kind(a) | {
        "task": a.task, "successful": a.successful, "runs": a.runs,
        "current_cpus": cpus.current if cpus else None, "recommended_cpus": cpus.recommended if cpus else None,
        "current_memory_bytes": memory.current if memory else None,
        "recommended_memory_bytes": memory.recommended if memory else None,
        "recommended_time_ns": time.recommended if time else None,
        "confidence": min_confidence(*sizes), "saving_per_run": a.saving,
    }  # fmt: skip


def _data(advices: list[Advice]) -> list[dict[str, Any]]:
    names = (
        "pipeline",
        "command",
        "work_dir",
        "task",
        "engine",
        "executions",
        "successful",
        "runs",
        "recommendations",
        "notes",
    )
    return [
        {name: getattr(a, name) for name in names} | {"lack": a.lack or None, "saving_per_run": a.saving}
        for a in advices
    ]  # fmt: skip
