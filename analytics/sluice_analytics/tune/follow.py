# SPDX-License-Identifier: Apache-2.0
"""`sluice tune --follow`: a run while it runs, step by step.

What is known comes from Run and Task records: START when a step begins, one each interval of the agent
(10 s by default), END. The agent writes them to its files within a second, so that a step's beginning and
end are seen after about a second and the time between two looks; what it uses, and that it uses nothing,
after the agent's interval. A step that waits in a scheduler's queue has no record, for nothing of it runs:
queued steps are not shown.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Iterator
from typing import Any

import ibis
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from .. import units
from ..errors import NotFound, UserError
from ..lake import open as lake_open
from ..lake.session import Growing, Row, Scope, Session
from ..report import terminal
from ..report.document import Column, Table
from . import find, run
from .present import ended_by
from .timeline import WORK_BYTES_PER_S, WORK_CPU_SHARE

STALLED_RECORDS = 3
"""So many records of a live step in a row, one an interval, in which it used nothing: it is stalled"""

LATE_US = 60_000_000
"""Records this much older than the newest one known are looked for again (microseconds)"""

LOOKS = 100
"""A session is opened anew after so many looks: it keeps what it read at each, which is put together then"""

GRACE_S = 5.0
"""How long a run may take to appear (seconds)"""

_MOVED = ("read_bytes", "write_bytes", "net_rx_bytes", "net_tx_bytes", "rchar", "wchar")
_STEPS_SHOWN = 30
STATES = ("active", "stalled", "finished", "failed")


@dataclasses.dataclass
class Step:
    """One execution of a task, as its records tell."""

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
            return "failed" if self.row["exit_signal"] is not None or self.row["exit_code"] else "finished"
        return "stalled" if self.quiet >= STALLED_RECORDS else "active"

    def take(self, row: Row) -> None:
        """The next record of it."""
        if row["phase"] == "LIVE":
            self.quiet = self.quiet + 1 if is_quiet(self.row, row) else 0
        self.row = row


def knows_more(row: Row, known: Row) -> bool:
    """Is a record the newer of two? By seq, for an END tells of a time before the LIVE that was written before it."""
    if row["agent_id"] == known["agent_id"]:
        return bool(row["seq"] > known["seq"])
    return bool((row["phase"] == "END", row["time"]) > (known["phase"] == "END", known["time"]))


def is_quiet(before: Row, after: Row) -> bool:
    """Did what two records of a step or run tell of use nothing between them? By the rule of timeline.is_work."""
    us = after["time"] - before["time"]
    if us <= 0:
        return False
    cpu = sum((after[n] or 0) - (before[n] or 0) for n in ("cpu_user_ns", "cpu_system_ns"))
    moved = sum((after[n] or 0) - (before[n] or 0) for n in _MOVED)
    return bool(cpu <= us * 1000 * WORK_CPU_SHARE and moved * 1_000_000 <= us * WORK_BYTES_PER_S)


@dataclasses.dataclass(frozen=True)
class News:
    """A record that was new, the step it tells of (None: the run itself), and the step's state by then."""

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
        self._seen: set[tuple[str, str, int]] = set()

    def take(self, topic: str, rows: list[Row]) -> list[News]:
        """Takes records of a topic; returns those that were new."""
        new: list[News] = []
        for row in sorted(rows, key=lambda r: (str(r["agent_id"]), int(r["seq"]))):
            key = (topic, row["agent_id"], row["seq"])
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

    def status(self, now_us: int) -> str:
        """One line."""
        r = self.run
        counts = ", ".join(f"{n} {state}" for state in STATES if (n := self.count(state)))
        cpus = sum(c for c, _ in self.rates.values())
        memory = sum(m for _, m in self.rates.values())
        use = ""
        wall_ns = r.wall_ns if r.end_time is not None else (now_us - r.start_time) * 1000
        if self.rates:
            alive = sum(p["live_programs"] or 0 for p in self.parts.values())
            use = f"; {alive} of {r.total('programs')} programs alive; {cpus:.1f} CPUs, {units.size(memory)}"
        return f"{units.duration(wall_ns)}: {counts or 'no step yet'}{use}"

    def table(self, now_us: int) -> Table:
        """Steps by name, those that run first."""
        names: dict[str, list[Step]] = {}
        for step in self.steps.values():
            names.setdefault(step.name, []).append(step)
        rows = [_step_row(name, steps, now_us) for name, steps in names.items()]
        rows.sort(key=lambda r: (r["running_ns"] is None, -(r["running_ns"] or 0), str(r["task"])))
        columns = [
            Column("task", "task"), Column("active", "active", "count"), Column("stalled", "stalled", "count"),
            Column("finished", "finished", "count"), Column("failed", "failed", "count"),
            Column("mean_wall_ns", "mean", "ns"), Column("running_ns", "runs for", "ns"), Column("samples", "now"),
            Column("bound", "bound"),
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
        "bound": live[0].row["bound"] if len(live) == 1 else None,
    }


class Looks:
    """Looks at a lake again and again, by one session as long as that stays small.

    Of files, what they grew by is read, of Kafka's topics what came since; of Iceberg's tables the files whose
    times the look's scope asks for. After LOOKS looks that begins anew, from the time that a look asks for on.
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
        raise NotFound(f"{session.source}: holds no run yet", "record one: sluice run -- COMMAND")
    raise NotFound(
        f"no run of {session.source} is running; the latest, {found[0].run_id}, is {found[0].state(now)}",
        f"see it with: sluice tune {found[0].run_id}",
    )


def _wait(looks: Looks, wanted: str | None) -> find.Run:
    """choose(), which gives a run that was started just now some time to appear."""
    until = time.monotonic() + GRACE_S
    while True:
        try:
            return choose(looks.session(), wanted)
        except UserError:
            if time.monotonic() >= until:
                raise
            looks.close()
        time.sleep(0.5)


def events(new: list[News], known: dict[int, str]) -> Iterator[str]:
    """A line for each step that began, ended, stalled or went on. known: what was said last of each step."""
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
            "active": "goes on" if was == "stalled" else "began",
            "stalled": f"stalled: it used no CPU and moved no byte in {STALLED_RECORDS} intervals",
            "finished": f"finished in {wall}",
            "failed": f"failed after {wall}: {ended_by(row['exit_code'], row['exit_signal'])}",
        }[state]
        yield f"{at}  {terminal.printable(step.label)} {what}"


def main(args: argparse.Namespace) -> int:
    """Follows until the run ends: 0 where it succeeded, 1 where it failed or nothing more is heard of it."""
    if args.format != "table" or args.output:
        raise UserError(
            "--follow prints to the terminal", "leave --format and -o out; sluice tune RUN reports afterwards"
        )
    looks = Looks(args)
    try:
        chosen = _wait(looks, args.run)
        watch = Watch(chosen.run_id)
        out = terminal.console(sys.stdout)
        name = chosen.first("pipeline")
        of = f" of {name}" if name else ""
        _say(out, f"run {chosen.run_id}{of}, begun {units.clock(chosen.start_time)}")
        is_screen = sys.stdout.isatty()
        state = (_on_screen if is_screen else _as_lines)(out, looks, watch, chosen, args.interval)
        return _finish(out, looks, watch, state)
    finally:
        looks.close()


def _say(out: Console, line: str, style: str = "") -> None:
    """A line that the terminal may wrap, and nobody else."""
    out.print(Text(line, style=style), soft_wrap=True)


def _state(watch: Watch) -> str:
    """The run's state by what is known; it runs as long as records come, as often as it has told."""
    return watch.run.state(find.now(), bool(watch.count("failed")) if watch.steps else None)


def _as_lines(out: Console, looks: Looks, watch: Watch, chosen: find.Run, interval: float) -> str:
    said: dict[int, str] = {}
    while True:
        new = look(looks.session(), watch, chosen.start_time)
        for line in events(new, said):
            _say(out, line)
        state = _state(watch)
        if new:
            _say(out, "  " + watch.status(find.now()))
        if state != "RUNNING":
            return state
        out.file.flush()
        time.sleep(interval)


def _on_screen(out: Console, looks: Looks, watch: Watch, chosen: find.Run, interval: float) -> str:
    said: dict[int, str] = {}
    with Live(console=out, auto_refresh=False, transient=True) as live:
        while True:
            for line in events(look(looks.session(), watch, chosen.start_time), said):
                if " failed after " in line or " stalled: " in line:
                    _say(live.console, line, "red" if " failed after " in line else "yellow")
            state = _state(watch)
            live.update(_screen(watch), refresh=True)
            if state != "RUNNING":
                return state
            time.sleep(interval)


def _screen(watch: Watch) -> RenderableType:
    now = find.now()
    table = watch.table(now)
    parts: list[RenderableType] = [Text(watch.status(now), style="bold")]
    if table.rows:
        parts.append(terminal.table_of(table))
    if table.note:
        parts.append(Text(table.note, style="dim"))
    return Group(*parts)


def _finish(out: Console, looks: Looks, watch: Watch, state: str) -> int:
    """Says how it ended, and why where it failed."""
    r = watch.run
    if state == "UNKNOWN" and r.end_time is None:
        since = units.clock(r.last_time)
        _say(out, f"UNKNOWN: nothing was heard of it since {since}: its agent ended, or the host did")
        return 1
    how = ended_by(r.exit_code, r.exit_signal)
    counts = f"{watch.count('finished')} finished, {watch.count('failed')} failed"
    _say(out, f"{state}{f', {how}' if how else ''} after {units.duration(r.wall_ns)}: {counts}")
    if state != "FAILED":
        return 0 if state == "SUCCEEDED" else 1
    report = run.load(looks.session(), r.run_id, programs_limit=0, with_recommendations=False)
    for failure in report.failures:
        where = f"{failure.task}: " if failure.task else ""
        again = "; a later attempt succeeded" if failure.recovered else ""
        _say(out, f"  {terminal.printable(where + failure.sentence)}{again}")
    _say(out, f"more: sluice tune {r.run_id}")
    return 1
