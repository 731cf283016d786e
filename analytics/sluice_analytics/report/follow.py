# SPDX-License-Identifier: Apache-2.0
"""A run that is followed, for people: a line for each step that changed, or one screen that is drawn anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from .. import units
from ..model.verdict import agreed, of_record
from ..spell import spell
from ..tune.follow import STALLED_RECORDS, STATES, News, Step, Watch
from . import terminal, verdict
from .document import Column, Table
from .run import ended_by

_STEPS_SHOWN = 30


def status(watch: Watch, now_us: int) -> str:
    """One line."""
    r = watch.run
    counts = ", ".join(f"{n} {state}" for state in STATES if (n := watch.count(state)))
    cpus = sum(c for c, _ in watch.rates.values())
    memory = sum(m for _, m in watch.rates.values())
    use = ""
    wall_ns = r.wall_ns if r.end_time is not None else (now_us - r.start_time) * 1000
    if watch.rates:
        alive = sum(p["live_programs"] or 0 for p in watch.parts.values())
        use = f"; {alive} of {r.total('programs')} programs alive; {cpus:.1f} CPUs, {units.size(memory)}"
    return f"{units.duration(wall_ns)}: {counts or 'no step yet'}{use}"


def table(watch: Watch, now_us: int) -> Table:
    """Steps by name, those that run first."""
    names: dict[str, list[Step]] = {}
    for step in watch.steps.values():
        names.setdefault(step.name, []).append(step)
    rows = [_step_row(name, steps, now_us) for name, steps in names.items()]
    rows.sort(key=lambda r: (r["running_ns"] is None, -(r["running_ns"] or 0), str(r["task"])))
    columns = [
        Column("task", "task"), Column("active", "active", "count"), Column("stalled", "stalled", "count"),
        Column("finished", "finished", "count"), Column("failed", "failed", "count"),
        Column("mean_wall_ns", "mean", "ns"), Column("running_ns", "runs for", "ns"), Column("samples", "now"),
        *verdict.COLUMNS,
    ]  # fmt: skip
    left_out = len(rows) - _STEPS_SHOWN
    note = f"{left_out} more" if left_out > 0 else ""
    return Table("steps", "", columns, rows[:_STEPS_SHOWN], note)


def _step_row(name: str, steps: list[Step], now_us: int) -> dict[str, Any]:
    """All executions of one task as a line of the table."""
    count = {state: sum(1 for s in steps if s.state == state) for state in STATES}
    done = [s.row["wall_ns"] for s in steps if s.state == "finished"]
    live = [s for s in steps if s.state in ("active", "stalled")]
    return {
        "task": name,
        **{state: n or None for state, n in count.items()},
        "mean_wall_ns": sum(done) / len(done) if done else None,
        "running_ns": max(((now_us - s.row["start_time"]) * 1000 for s in live), default=None),
        "samples": [str(s.row["sample"]) for s in live if s.row["sample"]][:5],
        **_verdict_of(live),
    }


def _verdict_of(live: list[Step]) -> dict[str, str | None]:
    """demand and denied of the one step that runs; of several, what all have in common."""
    v = agreed(of_record(s.row) for s in live)
    return verdict.texts(v.demand, v.waiting_for, v.denied, v.denied_share)


def events(new: list[News], known: dict[int, str]) -> Iterator[str]:
    """A line for each step that began, ended, stalled or continued. known: the last printed state of each step."""
    for news in new:
        row, step, state = news.row, news.step, news.state
        if step is None:
            continue
        if known.get(id(step)) == state:
            continue
        was = known.get(id(step))
        known[id(step)] = state
        at = units.clock(row["time"])
        wall = units.duration(row["wall_ns"])
        what = {
            "active": "continues" if was == "stalled" else "began",
            "stalled": f"stalled: it used no CPU and moved no bytes in {STALLED_RECORDS} intervals",
            "finished": f"finished in {wall}",
            "failed": f"failed after {wall}: {ended_by(row['exit_code'], row['exit_signal'])}",
        }[state]
        yield f"{at}  {step.label} {what}"


def screen(watch: Watch, now_us: int) -> RenderableType:
    """All of it."""
    steps = table(watch, now_us)
    parts: list[RenderableType] = [Text(spell(status(watch, now_us)), style="bold")]
    if steps.rows:
        parts.append(terminal.table_of(steps))
    if steps.note:
        parts.append(Text(steps.note, style="dim"))
    return Group(*parts)
