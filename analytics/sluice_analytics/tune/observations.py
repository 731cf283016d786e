# SPDX-License-Identifier: Apache-2.0
"""Observations on a run, each with the numbers that it rests on."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .. import units
from ..lake.expression import ibis
from ..lake.session import Scope, Session
from ..model.activity import are_work
from ..model.verdict import WAITING
from .failure import is_failed
from .money import Host
from .run_report import Observation, TaskRow, ToolRow
from .tools import most

if TYPE_CHECKING:
    import ibis.expr.types as ir

STRAGGLER_Z = 3.5
"""Modified z-score from which a value is an outlier: Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993"""

STRAGGLER_FACTOR = 1.5
"""A straggler also took so many times the median"""

STRAGGLER_NS = 1_000_000_000
"""A straggler also took so much longer than the median, in nanoseconds"""

STRAGGLER_TASKS = 4
"""Equal tasks that it takes to speak of a straggler"""

MUCH_DENIED = 0.3
"""Share of a task's time that was denied to it from which it is reported: that of bound STARVED in the agent"""

DENIED_NS = 1_000_000_000
"""Shortest task of which it is reported what was denied to it"""

PRESSURE = 0.2
"""Part of an interval in which something stalled (PSI some) that is worth a word"""

IDLE_NS = 10_000_000_000
"""Shortest idle task that is reported"""

QUIET_US = 60_000_000
"""A program that used nothing for so long, up to the last that is known, is worth a word (microseconds)"""

CPU_LOW = 0.65
"""jobstats: a CPU efficiency below it is shown in red"""

MEMORY_LOW = 0.7
"""jobstats: memory below this share of the request is worth a note"""

UNUSED_NS = 60_000_000_000
"""Shortest task whose request is judged"""

MANY_BYTES = 256 << 20
"""Storage I/O of a run from which the tool that made it is reported"""

_SHORT = 5


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHORT]) + (", …" if len(names) > _SHORT else "")


def label(task: TaskRow) -> str:
    """A task for people: its name, and its sample where it has one."""
    return f"{task.name} ({task.sample})" if task.sample else task.name


class Spread:
    """How values lie about their median.

    modified_z: Iglewicz and Hoaglin's modified z-score, 0.6745 (x - median) / MAD. Where more than half of the
    deviations are 0, so that MAD is, their mean replaces it: (x - median) / (1.253314 * mean), as the same
    authors have it. 0 where all values are equal.
    """

    def __init__(self, values: Sequence[float]) -> None:
        """values: at least one."""
        self.median = statistics.median(values)
        deviations = [abs(v - self.median) for v in values]
        self.mad = statistics.median(deviations)
        self._mean = statistics.fmean(deviations)

    def modified_z(self, value: float) -> float:
        """Of one value, which need not be one of them."""
        if self.mad > 0:
            return 0.6745 * (value - self.median) / self.mad
        return (value - self.median) / (1.253314 * self._mean) if self._mean > 0 else 0.0


def stragglers(tasks: Iterable[TaskRow], tools: dict[str, frozenset[str]]) -> list[Observation]:
    """Tasks that took much longer than equal ones: of the same name, and of the same tools where these are given.

    tools: by task_id; for tasks whose name is their command's, which for a shell is not informative.
    """
    groups: dict[tuple[str, frozenset[str]], list[TaskRow]] = {}
    for task in tasks:
        if task.end_time is not None and task.wall_ns is not None and not is_failed(task):
            groups.setdefault((task.name, tools.get(task.task_id, frozenset())), []).append(task)
    found = []
    for (name, _), equal in groups.items():
        if len(equal) < STRAGGLER_TASKS:
            continue
        spread = Spread([float(t.wall_ns or 0) for t in equal])
        if spread.median == 0:
            continue
        usual: dict[str, float] | None = None
        for task in equal:
            wall = float(task.wall_ns or 0)
            z, longer_ns = spread.modified_z(wall), wall - spread.median
            if z < STRAGGLER_Z or wall < STRAGGLER_FACTOR * spread.median or longer_ns < STRAGGLER_NS:
                continue
            if usual is None:
                usual = _usual_amounts(equal)
            reason, evidence = _why_longer(task, usual)
            found.append(
                Observation(
                    "STRAGGLER",
                    "WARNING",
                    task.task_id,
                    f"{label(task)} took {units.duration(wall)}, {wall / spread.median:.1f} times the median of "
                    f"{_plural(len(equal), 'task')} of {name} ({units.duration(spread.median)}){reason}",
                    {
                        "wall_ns": task.wall_ns,
                        "median_wall_ns": spread.median,
                        "median_deviation_ns": spread.mad,
                        "modified_z": round(z, 2),
                        "tasks": len(equal),
                    }
                    | evidence,
                )
            )
    return found


def _sum_known(*parts: int | None) -> float | None:
    return None if None in parts else float(sum(p or 0 for p in parts))


def _amounts(task: TaskRow) -> dict[str, float | None]:
    """What a task may have had more of than its equals."""
    usage = task.usage
    return {
        "cpu_ns": _sum_known(usage.cpu_user_ns, usage.cpu_system_ns),
        "run_delay_ns": _sum_known(usage.run_delay_ns),
        "rchar_wchar_bytes": _sum_known(usage.rchar, usage.wchar),
    }


_AMOUNTS = {
    "cpu_ns": "CPU time",
    "run_delay_ns": "waiting for a CPU",
    "rchar_wchar_bytes": "bytes read and written",
}


def _usual_amounts(equal: list[TaskRow]) -> dict[str, float]:
    """The median of each amount over those that have it."""
    amounts = [_amounts(t) for t in equal]
    known = {name: [v for a in amounts if (v := a[name]) is not None] for name in _AMOUNTS}
    return {name: statistics.median(values) for name, values in known.items() if values}


def _why_longer(task: TaskRow, usual: dict[str, float]) -> tuple[str, dict[str, float]]:
    """What it did more of than is usual among its equals: CPU time, waiting for a CPU, bytes."""
    words, evidence = [], {}
    own = _amounts(task)
    for name, text in _AMOUNTS.items():
        amount = own[name]
        if amount is None or name not in usual:
            continue
        evidence[name], evidence["median_" + name] = amount, usual[name]
        if usual[name] > 0 and amount >= STRAGGLER_FACTOR * usual[name]:
            words.append(f"{amount / usual[name]:.1f} times the {text}")
    return (": with " + ", ".join(words) if words else ""), evidence


def _denied(tasks: Iterable[TaskRow], what: str) -> list[TaskRow]:
    """Tasks to which much was denied, most of it by what: RUN_QUEUE, THROTTLED, RECLAIM or IO."""
    return [
        t for t in tasks if t.denied == what and (t.denied_share or 0) >= MUCH_DENIED and (t.wall_ns or 0) >= DENIED_NS
    ]


def contention(tasks: list[TaskRow], hosts: dict[str, Host]) -> list[Observation]:
    """Tasks that waited for a CPU while others of the run ran beside them, one observation a host."""
    found = []
    for host in hosts.values():
        own = [t for t in tasks if t.host_name == host.host_name and t.end_time is not None]
        slow = _denied(own, "RUN_QUEUE")
        starts, ends = sorted(t.start_time for t in own), sorted(t.end_time or 0 for t in own)
        beside = {
            t.task_id: bisect.bisect_left(starts, t.end_time or 0) - bisect.bisect_right(ends, t.start_time)
            for t in slow
        }
        slow = [t for t in slow if beside[t.task_id] > 1]
        if not slow:
            continue
        worst = max(slow, key=lambda t: t.usage.run_delay_ns or 0)
        waited = sum(t.usage.run_delay_ns or 0 for t in slow)
        pressure = psi(host, "psi_cpu_some", min(t.start_time for t in slow), max(t.end_time or 0 for t in slow))
        names = sorted({t.name for t in slow})
        sentence = (
            f"{_plural(len(slow), 'task')} on {host.host_name} ({_some(names)}) waited {units.duration(waited)} "
            "for a CPU while other tasks of this run were running"
        )
        if host.cpus:
            sentence += f", on {_plural(host.cpus, 'CPU')}"
        found.append(
            Observation(
                "CONTENTION",
                "WARNING",
                worst.task_id,
                sentence,
                {
                    "tasks": [t.task_id for t in slow],
                    "run_delay_ns": waited,
                    "worst_denied_share": worst.denied_share,
                    "beside_at_most": max(beside[t.task_id] for t in slow) - 1,
                    "cpus": host.cpus,
                    "psi_cpu_some_mean": pressure,
                },
            )
        )
    return found


def starved(tasks: Iterable[TaskRow], reported: list[Observation]) -> list[Observation]:
    """As contention, of tasks beside which none of the run ran: their own programs had too few CPUs, or other runs."""
    known = {task_id for o in reported for task_id in o.evidence["tasks"]}
    return [
        Observation(
            "STARVED",
            "WARNING",
            t.task_id,
            f"{label(t)} waited {units.percent(t.denied_share)} of its time for a CPU while no other task "
            "of this run was running: its own programs have too few CPUs, or other programs of the host use them",
            {
                "denied_share": t.denied_share,
                "run_delay_ns": t.usage.run_delay_ns,
                "parallelism": t.parallelism,
                "programs": t.programs,
                "requested_cpus": t.efficiency.requested_cpus,
            },
        )
        for t in _denied(tasks, "RUN_QUEUE")
        if t.task_id not in known
    ]


def throttled(tasks: Iterable[TaskRow]) -> list[Observation]:
    """Tasks to which the quota of their control group denied CPU time."""
    return [
        Observation(
            "THROTTLED",
            "WARNING",
            t.task_id,
            f"{label(t)} was kept from a CPU for {units.percent(t.denied_share)} of its time, most of it because its "
            "control group had used up its quota of CPU time: with more CPUs it would have been faster",
            {
                "denied_share": t.denied_share,
                "throttled_ns": t.bill.get("throttled_ns"),
                "parallelism": t.parallelism,
                "requested_cpus": t.efficiency.requested_cpus,
            },
        )
        for t in _denied(tasks, "THROTTLED")
    ]


def reclaimed(tasks: Iterable[TaskRow]) -> list[Observation]:
    """Tasks that had to wait for memory: to be made free, or to come back from swap or from files."""
    return [
        Observation(
            "RECLAIM",
            "WARNING",
            t.task_id,
            f"{label(t)} lost {units.percent(t.denied_share)} of its time, most of it waiting for memory: until some "
            "was made free, or its own pages were read again",
            {
                "denied_share": t.denied_share,
                "reclaim_ns": t.bill.get("reclaim_ns"),
                "swap_ns": t.bill.get("swap_ns"),
                "major_faults": t.usage.major_faults,
                "peak_memory_bytes": t.peak_memory_bytes,
                "requested_memory_bytes": t.efficiency.requested_memory_bytes,
            },
        )
        for t in _denied(tasks, "RECLAIM")
    ]


def contended(tasks: Iterable[TaskRow]) -> list[Observation]:
    """Tasks that waited for a disk which others used as well."""
    return [
        Observation(
            "IO_CONTENTION",
            "WARNING",
            t.task_id,
            f"{label(t)} lost {units.percent(t.denied_share)} of its time, most of it because the disk on which it "
            "works was busy with what others read and wrote",
            {
                "denied_share": t.denied_share,
                "block_io_ns": t.bill.get("block_io_ns"),
                "read_bytes": t.usage.read_bytes,
                "write_bytes": t.usage.write_bytes,
            },
        )
        for t in _denied(tasks, "IO")
    ]


def pressure_of_hosts(hosts: dict[str, Host], start_us: int, end_us: int) -> list[Observation]:
    """Hosts on which something stalled for memory or I/O in a good part of the run (PSI, from Host records)."""
    found = []
    for host in hosts.values():
        for name, what in (("psi_memory_some", "memory"), ("psi_io_some", "I/O")):
            mean = psi(host, name, start_us, end_us)
            if mean is not None and mean >= PRESSURE:
                found.append(
                    Observation(
                        "PRESSURE",
                        "WARNING",
                        None,
                        f"on {host.host_name} something waited for {what} in {units.percent(mean)} of the run's time",
                        {"host_name": host.host_name, name + "_mean": mean},
                    )
                )
    return found


def psi(host: Host, name: str, start_us: int, end_us: int) -> float | None:
    """Mean of a PSI figure over a time span, weighed by how much of each interval lies in it; None: not known."""
    weight = value = 0.0
    for r in host.records:
        inside = min(r["time"], end_us) - max(r["time"] - r["interval_ns"] // 1000, start_us)
        if inside > 0 and r[name] is not None:
            weight += inside
            value += inside * r[name]
    return value / weight if weight else None


def idle(tasks: Iterable[TaskRow]) -> list[Observation]:
    """Tasks of some length that waited for no device and no network, and that hardly read or wrote."""
    return [
        Observation(
            "IDLE",
            "INFO",
            t.task_id,
            f"{label(t)} was idle for {units.percent(t.shares.get('idle'))} of its {units.duration(t.wall_ns)}"
            + (f"; it waited most for: {t.waiting_for.lower()}" if t.waiting_for else ""),
            {
                "wall_ns": t.wall_ns,
                "idle_share": t.shares.get("idle"),
                "cpu_share": t.shares.get("cpu"),
                "waiting_for": t.waiting_for,
            },
        )
        for t in tasks
        if t.demand == WAITING
        and (t.wall_ns or 0) >= IDLE_NS
        and not are_work((t.usage.rchar or 0) + (t.usage.wchar or 0), (t.wall_ns or 0) / 1000)
    ]


def retries(tasks: list[TaskRow]) -> list[Observation]:
    """Tasks that failed and were started again, with what the failed attempts took."""
    by_task: dict[tuple[str, str | None], list[TaskRow]] = {}
    for t in tasks:
        if t.retried:
            by_task.setdefault((t.name, t.sample), []).append(t)
    found = []
    for lost in by_task.values():
        wall = sum(t.wall_ns or 0 for t in lost)
        cpu = sum((t.usage.cpu_user_ns or 0) + (t.usage.cpu_system_ns or 0) for t in lost)
        found.append(
            Observation(
                "RETRIES",
                "WARNING",
                lost[-1].task_id,
                f"{label(lost[-1])} failed {_plural(len(lost), 'time')} and was retried: {units.duration(wall)} "
                f"and {units.duration(cpu)} of CPU time were lost",
                {"failed_attempts": len(lost), "wall_ns": wall, "cpu_ns": cpu},
            )
        )
    return found


def unused(tasks: Iterable[TaskRow]) -> list[Observation]:
    """Tasks that requested much more than they used, by jobstats' thresholds."""
    found = []
    for t in tasks:
        e = t.efficiency
        if e.over_host or (t.wall_ns or 0) < UNUSED_NS or t.end_time is None:
            continue
        if e.cpu is not None and e.cpu < CPU_LOW and (e.requested_cpus or 0) > 1:
            found.append(
                Observation(
                    "UNUSED_CPUS",
                    "INFO",
                    t.task_id,
                    f"{label(t)} used {t.parallelism or 0:.1f} of {e.requested_cpus:g} CPUs that it requested",
                    {"cpu_efficiency": e.cpu, "requested_cpus": e.requested_cpus, "parallelism": t.parallelism},
                )
            )
        if e.memory is not None and e.memory < MEMORY_LOW:
            found.append(
                Observation(
                    "UNUSED_MEMORY",
                    "INFO",
                    t.task_id,
                    f"{label(t)} used {units.size(most(t.peak_memory_bytes, t.usage.peak_rss_bytes))} of the "
                    f"{units.size(e.requested_memory_bytes)} of memory that it requested",
                    {
                        "memory_efficiency": e.memory,
                        "requested_memory_bytes": e.requested_memory_bytes,
                        "peak_memory_bytes": t.peak_memory_bytes,
                        "peak_rss_bytes": t.usage.peak_rss_bytes,
                    },
                )
            )
    return found


def gap_observations(gaps: list[tuple[int, int]], tasks: list[TaskRow], wall_ns: int) -> list[Observation]:
    """The gaps of a run, the longest first, and which tasks were alive in them."""
    found = []
    for start, end in sorted(gaps, key=lambda g: g[0] - g[1])[:_SHORT]:
        alive = [t for t in tasks if t.start_time < end and (t.end_time is None or t.end_time > start)]
        names = sorted({t.name for t in alive})
        who = f"while {_some(names)} waited" if names else "and no task was alive"
        begin = (units.rfc3339(start) or "")[11:19]
        found.append(
            Observation(
                "GAP",
                "WARNING" if (end - start) * 10_000 >= wall_ns else "INFO",
                alive[0].task_id if len(alive) == 1 else None,
                f"nothing worked for {units.duration((end - start) * 1000)} from {begin}Z, {who}",
                {
                    "start_time": start,
                    "end_time": end,
                    "share_of_wall": (end - start) * 1000 / wall_ns if wall_ns else None,
                    "tasks": [t.task_id for t in alive],
                },
            )
        )
    return found


def who_made_io(tools: list[ToolRow]) -> list[Observation]:
    """The tool that moved the most bytes from and to storage, where that was much."""
    moved = {t.tool: (t.usage.read_bytes or 0) + (t.usage.write_bytes or 0) for t in tools}
    if sum(moved.values()) < MANY_BYTES:
        return []
    top = max(tools, key=lambda t: moved[t.tool])
    return [
        Observation(
            "IO_BY_TOOL",
            "INFO",
            None,
            f"{top.tool} made {units.percent(top.share_of_io)} of this run's storage I/O: "
            f"{units.size(top.usage.read_bytes)} read, {units.size(top.usage.write_bytes)} written",
            {
                "tool": top.tool,
                "tasks": top.tasks,
                "read_bytes": top.usage.read_bytes,
                "write_bytes": top.usage.write_bytes,
                "share_of_io": top.share_of_io,
            },
        )
    ]


def stuck(session: Session, scope: Scope) -> list[Observation]:
    """The STUCK findings of the agent, which knows what each program waits for: a sleep and a poll are not stuck."""
    t = session.table("finding", scope)
    rows = session.rows(
        t.filter(t.kind == "STUCK").select("time", "severity", "task_id", "task", "program_id", "message")
    )
    return [
        Observation(
            "STUCK",
            row["severity"],
            row["task_id"],
            (row["message"] or f"{row['task'] or 'the run'} made no progress")
            + f" (found at {units.clock(row['time'])})",
            {"program_id": row["program_id"], "found_time": row["time"]},
        )
        for row in sorted(rows, key=lambda r: (r["time"], r["program_id"] or ""))
    ]


def quiet(
    session: Session, all_programs: ir.Table, activity: ir.Table, last_us: int, reported: list[Observation]
) -> list[Observation]:
    """Programs alive at the end of what the lake knows that used no CPU and moved no byte for QUIET_US.

    The agent writes of a live program only in intervals in which it moved, so that the last of those is when
    it moved last. That is no fault by itself: a server and a sleep do so, and no record has for what a live program
    waits. One with a live child is left out: a shell waits for what it started, and the child is named. So is one
    that is STUCK since (reported).
    """
    stuck_at = {o.evidence["program_id"]: int(o.evidence["found_time"]) for o in reported}
    t = all_programs
    live = t.filter((t.phase != "END") & ~t.overhead.fill_null(False))
    moved = activity.group_by("program_id").aggregate(moved=activity.end_us.max())
    joined = live.left_join(moved, "program_id")
    since = ibis.greatest(ibis.coalesce(joined.moved, joined.program_start_time), joined.program_start_time)
    rows = session.rows(
        joined.select(
            "program_id", "parent_program_id", "task_id", "task", "tool", "comm", "pid", "host_name", since_us=since
        )
    )
    parents = {row["parent_program_id"] for row in rows}
    found = []
    for row in rows:
        silent = last_us - row["since_us"]
        is_stuck = stuck_at.get(row["program_id"], 0) >= row["since_us"]
        if row["program_id"] in parents or silent < QUIET_US or is_stuck:
            continue
        name = row["tool"] or row["comm"] or "a program"
        of = f" of {row['task']}" if row["task"] else ""
        found.append(
            Observation(
                "QUIET",
                "INFO",
                row["task_id"],
                f"{name} (pid {row['pid']} on {row['host_name']}){of} is alive, but used no CPU and moved no bytes for "
                f"{units.duration(silent * 1000)}",
                {"program_id": row["program_id"], "silent_ns": silent * 1000, "moved_time": row["since_us"]},
            )
        )
    return sorted(found, key=lambda o: -int(o.evidence["silent_ns"]))


def passed_over(counts: dict[str, int]) -> list[Observation]:
    """Programs that ended with a code other than 0 and of which nothing came."""
    if not counts:
        return []
    named = ", ".join(
        f"{tool} ({n})" if n > 1 else tool for tool, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))
    )
    return [
        Observation(
            "PASSED_OVER",
            "INFO",
            None,
            f"{_plural(sum(counts.values()), 'program')} ended with a code other than 0, or by a signal, without "
            f"consequences: {named}",
            {"programs": dict(sorted(counts.items()))},
        )
    ]
