# SPDX-License-Identifier: Apache-2.0
"""Which runs a lake has, and which of them a user means."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from .. import units
from ..errors import NotFound
from ..lake.columns import LEVELS, SUMS
from ..lake.expression import ibis
from ..lake.session import Row, Scope, Session
from ..model.records import failed, runs, tasks

SILENT_US = 60_000_000
"""A run without records for so long, at the least, does not count as running (microseconds)."""


@dataclasses.dataclass
class Run:
    """A run over all hosts that saw it. parts: its row on each host (model/records.runs), the first to start first."""

    run_id: str
    parts: list[Row]

    def first(self, name: str) -> Any:
        """The value of the first host that has one."""
        return next((p[name] for p in self.parts if p[name] is not None), None)

    def largest(self, name: str) -> int | None:
        """The largest that is known over hosts; None where none knows."""
        return max((p[name] for p in self.parts if p[name] is not None), default=None)

    def total(self, name: str) -> int | None:
        """The sum of what is known over hosts; None where none knows. The agent adds programs up in the same way."""
        known = [p[name] for p in self.parts if p[name] is not None]
        return sum(known) if known else None

    @property
    def usage(self) -> dict[str, int | None]:
        """Totals of columns.RESOURCES: sums over hosts, of levels the largest."""
        totals = {name: self.total(name) for name in SUMS}
        for name in LEVELS:
            totals[name] = max((p[name] for p in self.parts if p[name] is not None), default=None)
        return totals

    @property
    def start_time(self) -> int:
        """When its first program began, microseconds UTC."""
        return min(int(p["start_time"]) for p in self.parts)

    @property
    def last_time(self) -> int:
        """The time of its last record, microseconds UTC."""
        return max(int(p["end_time"] or p["time"]) for p in self.parts)

    @property
    def end_time(self) -> int | None:
        """When its last program ended; None while it has not on some host."""
        return self.last_time if all(p["phase"] == "END" for p in self.parts) else None

    @property
    def wall_ns(self) -> int:
        """From its start to its end, or to its last record, in nanoseconds."""
        if len(self.parts) == 1:
            return int(self.parts[0]["wall_ns"])
        return (self.last_time - self.start_time) * 1000

    @property
    def exit_code(self) -> int | None:
        """Exit code of its driver: the largest one that a host recorded."""
        return max((p["exit_code"] for p in self.parts if p["exit_code"] is not None), default=None)

    @property
    def exit_signal(self) -> int | None:
        """The signal that ended its driver."""
        return next((p["exit_signal"] for p in self.parts if p["exit_signal"] is not None), None)

    def state(self, now_us: int, failed_tasks: bool | None = None, interval_us: int = 10_000_000) -> str:
        """RUNNING, SUCCEEDED, FAILED or UNKNOWN.

        Its driver's exit decides. Where no agent saw that (a job whose driver runs elsewhere), its tasks do:
        failed_tasks, where None, is not known. A run without an end is RUNNING while its agents write records:
        they do each interval_us, so that UNKNOWN begins when three are missing and SILENT_US passed.
        """
        if self.end_time is None:
            return "RUNNING" if now_us - self.last_time <= max(SILENT_US, 3 * interval_us) else "UNKNOWN"
        if self.exit_signal is not None or self.exit_code not in (None, 0):
            return "FAILED"
        if self.exit_code == 0:
            return "SUCCEEDED"
        if failed_tasks is None:
            return "UNKNOWN"
        return "FAILED" if failed_tasks else "SUCCEEDED"


def now() -> int:
    """The time now, microseconds since 1970 UTC."""
    return time.time_ns() // 1000


HEAD = ("run_id", "host_id", "pipeline", "run_name", "start_time", "end_time", "time", "phase")
"""What it takes to choose among runs: a lake may have a hundred thousand."""


def all_runs(session: Session, run_ids: tuple[str, ...] | None = None, columns: tuple[str, ...] = ()) -> list[Run]:
    """Every run of a lake, or those named, the latest first. columns: these alone of model/records.runs."""
    by_id: dict[str, list[Row]] = {}
    table = runs(session, Scope(run_ids=run_ids))
    table = table.filter(table.run_id.notnull())
    for row in session.rows(table.select(*columns) if columns else table):
        by_id.setdefault(row["run_id"], []).append(row)
    found = [Run(run_id, sorted(parts, key=lambda p: int(p["start_time"]))) for run_id, parts in by_id.items()]
    return sorted(found, key=lambda r: (r.start_time, r.run_id), reverse=True)


def tasks_of_runs(session: Session) -> dict[str, tuple[int, int]]:
    """run_id -> how many executions of tasks it has, and how many of them failed."""
    t = tasks(session)
    t = t.mutate(_failed=failed(t).cast("int64"))
    counts = t.group_by("run_id").aggregate(n=t.count(), bad=t._failed.sum())
    return {row["run_id"]: (row["n"], row["bad"] or 0) for row in session.rows(counts)}


def _candidates(session: Session, wanted: str | None) -> tuple[str, ...]:
    """The runs that find_run chooses among."""
    table = session.table("run")
    table = table.filter(table.run_id.notnull())
    if wanted is not None:
        name = ibis.literal(wanted, "string")
        table = table.filter((table.run_name == name) | table.run_id.startswith(name))
    each = table.group_by("run_id").aggregate(start_time=table.start_time.min())
    each = each.order_by(each.start_time.desc(), each.run_id.desc())
    return tuple(row["run_id"] for row in session.rows(each.limit(1) if wanted is None else each))


def latest(session: Session, pipeline: str, last: int | None, since_us: int | None = None) -> tuple[str, ...]:
    """The run_ids of a pipeline, the latest first: the last so many, those that began at since_us or later."""
    table = session.table("run")
    each = table.group_by("run_id").aggregate(
        start_time=table.start_time.min(),
        is_one=(table.pipeline == ibis.literal(pipeline, "string")).cast("int64").max(),
    )
    each = each.filter(each.run_id.notnull() & (each.is_one == 1))
    if since_us is not None:
        each = each.filter(each.start_time >= ibis.literal(since_us, "int64"))
    each = each.order_by(each.start_time.desc(), each.run_id.desc())
    return tuple(row["run_id"] for row in session.rows(each if last is None else each.limit(last)))


def find_run(session: Session, wanted: str | None) -> Run:
    """The run with that run_id, unique prefix of one, or run_name (then the latest); None: the latest of all.

    NotFound names the runs there are.
    """
    found = all_runs(session, _candidates(session, wanted)) or all_runs(session)
    if not found:
        raise NotFound(f"{session.source}: has no runs yet", "record one: sluice run -- COMMAND")
    if wanted is None:
        return found[0]
    same = [r for r in found if r.run_id == wanted] or [r for r in found if r.first("run_name") == wanted]
    if same:
        return same[0]
    begins = [r for r in found if r.run_id.startswith(wanted)] if wanted else []
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise NotFound(f'"{wanted}" is the beginning of {len(begins)} runs', _listed(begins))
    raise NotFound(f'no run "{wanted}" in {session.source}', _listed(found))


def _listed(found: list[Run], most: int = 10) -> str:
    lines = []
    for r in found[:most]:
        name = " ".join(str(word) for word in (r.first("pipeline"), r.first("run_name")) if word)
        lines.append(f"  {r.run_id}  {units.clock(r.start_time)}  {name}".rstrip())
    if len(found) > most:
        lines.append(f"  and {len(found) - most} more: sluice tune --list")
    return "the runs are:\n" + "\n".join(lines)
