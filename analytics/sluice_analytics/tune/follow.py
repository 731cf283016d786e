# SPDX-License-Identifier: Apache-2.0
"""A run while it runs, step by step.

What is known comes from Run and Task records: START when a step begins, one each interval of the agent
(10 s by default), END. The agent writes them to its files within a second, so that a step's beginning and
end are seen after about a second and the time between two looks; what it uses, and that it uses nothing,
after the agent's interval. A step that waits in a scheduler's queue has no record, for nothing of it runs:
queued steps are not shown.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from ..errors import NotFound
from ..lake import open as lake_open
from ..lake.columns import KEY
from ..lake.expression import ibis
from ..lake.session import Growing, Row, Scope, Session
from . import find
from .run_report import ended_badly
from .timeline import MOVED, WORK_BYTES_PER_S, WORK_CPU_SHARE

STALLED_RECORDS = 3
"""So many records of a live step in a row, one an interval, in which it used nothing: it is stalled"""

LATE_US = 60_000_000
"""Records this much older than the newest one known are looked for again (microseconds)"""

LOOKS = 100
"""A session is opened anew after so many looks: it keeps what it read at each, which is put together then"""

STATES = ("active", "stalled", "finished", "failed")


@dataclasses.dataclass
class Step:
    """One execution of a task, by its records."""

    row: Row
    quiet: int = 0
    """Records in a row, up to the last, in which it used nothing"""

    @property
    def name(self) -> str:
        """The task's name."""
        return str(self.row["task"] or self.row["name"] or "unknown")

    @property
    def label(self) -> str:
        """With its sample."""
        return f"{self.name} ({self.row['sample']})" if self.row["sample"] else self.name

    @property
    def state(self) -> str:
        """active, stalled, finished or failed."""
        if self.row["phase"] == "END":
            return "failed" if ended_badly(self.row["exit_code"], self.row["exit_signal"]) else "finished"
        return "stalled" if self.quiet >= STALLED_RECORDS else "active"

    def take(self, row: Row) -> None:
        """The next record of it."""
        if row["phase"] == "LIVE":
            self.quiet = self.quiet + 1 if is_quiet(self.row, row) else 0
        self.row = row


def knows_more(row: Row, known: Row) -> bool:
    """Is a record the newer of two? By seq, since an END has an earlier time than a LIVE that was written before it."""
    if (row["host_id"], row["agent_id"]) == (known["host_id"], known["agent_id"]):
        return bool(row["seq"] > known["seq"])
    return bool((row["phase"] == "END", row["time"]) > (known["phase"] == "END", known["time"]))


def is_quiet(before: Row, after: Row) -> bool:
    """Whether a step or run used nothing between two of its records, by the rule of timeline.is_work."""
    us = after["time"] - before["time"]
    if us <= 0:
        return False
    cpu = sum((after[n] or 0) - (before[n] or 0) for n in ("cpu_user_ns", "cpu_system_ns"))
    moved = sum((after[n] or 0) - (before[n] or 0) for n in MOVED)
    return bool(cpu <= us * 1000 * WORK_CPU_SHARE and moved * 1_000_000 <= us * WORK_BYTES_PER_S)


@dataclasses.dataclass(frozen=True)
class News:
    """A record that was new, the step it is of (None: the run itself), and the step's state by then."""

    row: Row
    step: Step | None
    state: str


class Watch:
    """What is known of a run so far. take() gives it records, in any order and more than once."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.steps: dict[tuple[str, str, int], Step] = {}
        self.parts: dict[str, Row] = {}
        self.rates: dict[str, tuple[float, int]] = {}
        """host_id -> CPUs in use between its last two records, resident bytes in the last"""
        self.newest_us = 0
        self._seen: set[tuple[Any, ...]] = set()

    def take(self, topic: str, rows: list[Row]) -> list[News]:
        """Takes records of a topic; returns those that were new."""
        new: list[News] = []
        for row in sorted(rows, key=lambda r: (str(r["host_id"]), str(r["agent_id"]), int(r["seq"]))):
            key = (topic, *(row[name] for name in KEY))
            if key in self._seen:
                continue
            self._seen.add(key)
            self.newest_us = max(self.newest_us, row["time"])
            if topic == "run":
                self._take_part(row)
                new.append(News(row, None, ""))
            else:
                step = self._take_step(row)
                new.append(News(row, step, step.state))
        return new

    def _take_step(self, row: Row) -> Step:
        key = (row["task_id"] or "", row["host_id"], row["start_time"])
        step = self.steps.get(key)
        if step is None:
            step = self.steps[key] = Step(row)
        elif knows_more(row, step.row):
            step.take(row)
        return step

    def _take_part(self, row: Row) -> None:
        host = row["host_id"]
        before = self.parts.get(host)
        if before is not None and row["time"] > before["time"]:
            us = row["time"] - before["time"]
            cpu = sum((row[n] or 0) - (before[n] or 0) for n in ("cpu_user_ns", "cpu_system_ns"))
            self.rates[host] = (cpu / (us * 1000), row["rss_bytes"] or 0)
        if before is None or knows_more(row, before):
            self.parts[host] = row

    def count(self, state: str) -> int:
        """Steps in a state."""
        return sum(1 for s in self.steps.values() if s.state == state)

    @property
    def run(self) -> find.Run:
        """The run as it is known now."""
        return find.Run(self.run_id, sorted(self.parts.values(), key=lambda p: int(p["start_time"])))


class Looks:
    """Looks at a lake again and again, by one session as long as that stays small.

    Of files, what they grew by is read, of Kafka's topics what came since; of Iceberg's tables the files whose
    times the look's scope has. After LOOKS looks a new session begins, from the time of the look's scope on.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._session: Session | None = None
        self._left = 0

    def session(self) -> Session:
        """The lake as it is now."""
        if self._left <= 0 or self._session is None:
            self.close()
            self._session = lake_open.open_session(self._args)
            self._left = LOOKS
        elif isinstance(self._session, Growing):
            self._session.refresh()
        self._left -= 1
        return self._session

    def close(self) -> None:
        """Ends the engine."""
        if self._session is not None:
            self._session.close()
        self._session = None


def look(session: Session, watch: Watch, since_us: int) -> list[News]:
    """What is new of a run since the last look: its records, in the order of their times."""
    scope = Scope(since_us=max(since_us, watch.newest_us - LATE_US), run_ids=(watch.run_id,))
    new = []
    for topic in ("run", "task"):
        table = session.table(topic, scope)
        new += watch.take(topic, session.rows(table.order_by(ibis.asc("time"))))
    return sorted(new, key=lambda n: int(n.row["time"]))


def choose(session: Session, wanted: str | None) -> find.Run:
    """The run to follow: the one that is named, else the latest that runs. NotFound where none does."""
    if wanted is not None:
        return find.find_run(session, wanted)
    found = find.all_runs(session)
    now = find.now()
    running = [r for r in found if r.state(now) == "RUNNING"]
    if running:
        return running[0]
    if not found:
        raise NotFound(f"{session.source}: has no runs yet", "record one: sluice run -- COMMAND")
    raise NotFound(
        f"no run of {session.source} is running; the latest, {found[0].run_id}, is {found[0].state(now)}",
        f"to explain it: sluice tune {found[0].run_id}",
    )
