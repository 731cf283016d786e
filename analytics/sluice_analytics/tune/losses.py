# SPDX-License-Identifier: Apache-2.0
"""What the lake does not know of a run: events that were lost while it ran, and programs that it lacks."""

from __future__ import annotations

from collections import Counter

from ..lake.session import Scope, Session
from ..model.losses import lost_events
from .find import Run
from .run_report import Loss

_AROUND_US = 60_000_000
"""Agents report losses in their next record, and the count before in the last one"""


def losses_of(session: Session, run: Run, known_programs: dict[str, int]) -> list[Loss]:
    """Losses on the run's hosts while it ran, and programs that an agent counted and the lake has no record of.

    known_programs: host_id -> programs of the run that the lake has. A run's own count finds its missing
    records exactly, where holes in seq count all records of the host.
    """
    start, end = run.start_time, run.last_time
    names = {str(p["host_id"]): str(p["host_name"]) for p in run.parts}
    hosts = tuple(sorted(names))
    found: Counter[tuple[str, str, str]] = Counter()
    scope = Scope(since_us=start - _AROUND_US, until_us=end + _AROUND_US, hosts=hosts)
    for row in session.rows(lost_events(session, scope)):
        if row["end_us"] > start and row["start_us"] < end:
            found[row["host_id"], row["place"], row["reason"]] += row["count"]
    t = session.table("agent", Scope(since_us=start, until_us=end + _AROUND_US, hosts=hosts))
    gaps = t.filter(t.event == "GAP").select("host_id", begin=t.time - t.interval_ns // 1000)
    for row in session.rows(gaps):
        if row["begin"] < end:
            found[row["host_id"], "agent", "no agent watched the host for some time"] += 1
    for part in run.parts:
        missing = part["programs"] - known_programs.get(part["host_id"], 0)
        if part["phase"] == "END" and missing > 0:
            found[part["host_id"], "sluice.program", "not in the lake"] += missing
    return [Loss(names.get(host, host), place, reason, n) for (host, place, reason), n in sorted(found.items())]
