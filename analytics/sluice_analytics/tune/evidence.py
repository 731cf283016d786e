# SPDX-License-Identifier: Apache-2.0
"""What each execution of a task used, over the runs of a pipeline: what recommendations and comparisons rest on.

Programs that run side by side need more memory than the largest of them, and a control group's limit is on all of
them. peak_memory_bytes of the Task record is the most that they held at once, as the agent saw it once a second: pages
that a forked child shares with its parent count once, those of files not at all. What a program held that was too brief
to be seen is in none of its sums but that at its own end, so that brief_together_bytes comes on top: the largest sum of
the peaks of such programs that were alive at the same moment.

Records of older agents lack it. For them, and never exceeded, there is peak_together_bytes, the same sum over all
programs. It is an upper bound: programs need not peak at once, and what a forked child shares counts for each. A
control group counts the files of a tmpfs, kernel memory and page cache as well: cgroup.memory_peak_bytes of the Task
record has them for a task with a control group of its own. It is not used here: page cache grows up to any limit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import units
from ..errors import NotFound
from ..lake.expression import ibis
from ..lake.session import LATE_US, Row, Scope, Session
from ..model import verdict
from ..model.activity import are_work
from ..model.records import tasks
from ..model.verdict import Verdict
from ..prices import Prices
from . import find, money

if TYPE_CHECKING:
    import ibis.expr.types as ir

KIND = (*find.HEAD, "command", "work_dir")
"""The columns that distinguish runs of one kind from others"""

BY_DESCENT = "child of the driver"
"""The source of a task that the engine did not name: its name is that of its command."""

_BRIEF_US = 2_000_000
"""A program that lived for less may have been missed by the agent's passes, of which there is one a second"""

_HELD = 1.05
"""Up to so many times its CPUs a limit held: reading all programs takes a while, and a quota is one of a period"""

_KEY = ("run_id", "task_id", "attempt", "host_id")


@dataclasses.dataclass(frozen=True)
class Kind:
    """What runs that do the same have in common: their pipeline; where it is unknown, command and folder."""

    pipeline: str | None
    command: str | None = None
    work_dir: str | None = None

    @classmethod
    def of(cls, run: find.Run) -> Kind:
        """A run's kind, by the columns of KIND."""
        pipeline = run.first("pipeline")
        return cls(pipeline) if pipeline is not None else cls(None, run.first("command"), run.first("work_dir"))


@dataclasses.dataclass(kw_only=True)
class Execution:
    """One execution of a task, on all hosts that saw it. Sizes in bytes, times in microseconds UTC."""

    pipeline: str | None
    run_id: str
    task: str
    task_id: str
    sample: str | None
    attempt: int | None
    engine: str | None
    source: str | None
    host_ids: list[str]
    start_time: int
    end_time: int
    wall_ns: int
    """From its first program's start to its last one's end"""
    cpu_ns: int | None
    run_delay_ns: int | None
    peak_program_bytes: int | None
    read_bytes: int | None
    write_bytes: int | None
    rchar: int | None
    wchar: int | None
    net_bytes: int | None
    threads_peak: int | None
    requested_cpus: float | None
    """On all of its hosts together"""
    requested_memory_bytes: int | None
    """On the host where that is most"""
    is_shared_limit: bool
    """What was requested is the whole run's, and other tasks of it share that"""
    exit_code: int | None
    exit_signal: int | None
    verdict: Verdict
    share_idle: float | None
    succeeded: bool
    """See _ended_well"""
    has_ended: bool = True
    """False: its end is unknown, as where its host died, or it runs still; all else is up to its last record"""
    programs_counted: int = 0
    """By its Task records"""
    peak_memory_bytes: int | None = None
    """As the Task record has it; that of the host with most, and None if one has none"""
    peak_together_bytes: int | None = None
    brief_together_bytes: int = 0
    threads_together: int = 0
    """As peak_together_bytes, of threads; that of the host with most"""
    programs: int = 0
    """Programs of it that ended"""
    forked: int = 0
    unknown_peaks: int = 0
    """With those that its Task records count and of which there is no record"""
    unknown_threads: int = 0
    """As unknown_peaks"""
    oom_killed: int = 0
    busiest_cpus: float | None = None
    """CPUs kept busy on a host in the busiest interval of the agent that has a Usage record; null for a short task"""

    @property
    def was_ended_by_signal(self) -> bool:
        """Did its driving program end by a signal, or as a shell does (128 + n) that passes one on?"""
        if self.exit_signal is not None:
            return True
        return self.exit_code is not None and units.is_signal(self.exit_code - 128)

    @property
    def parallelism(self) -> float | None:
        """CPU time / wall time."""
        return self.cpu_ns / self.wall_ns if self.cpu_ns is not None and self.wall_ns > 0 else None

    @property
    def wanted_cpus(self) -> float | None:
        """Threads that ran or could have run, on average: (CPU time + run-queue delay) / wall time."""
        if self.cpu_ns is None or self.run_delay_ns is None or self.wall_ns <= 0:
            return None
        return (self.cpu_ns + self.run_delay_ns) / self.wall_ns

    @property
    def delay_share(self) -> float | None:
        """Of the time in which a thread could run, the part that it waited for a CPU."""
        if self.cpu_ns is None or self.run_delay_ns is None or self.cpu_ns + self.run_delay_ns == 0:
            return None
        return self.run_delay_ns / (self.cpu_ns + self.run_delay_ns)

    @property
    def reads_or_writes(self) -> bool:
        """Did it move bytes by calls while none of its programs ran? A network file system is no block I/O."""
        return are_work((self.rchar or 0) + (self.wchar or 0), self.wall_ns / 1000)

    @property
    def most_threads(self) -> int | None:
        """No more threads than these ever ran at once on a host; None: unknown."""
        return self.threads_together if self.programs and not self.unknown_threads else None

    @property
    def held_cpus(self) -> float | None:
        """The request, unless it is seen not to have held: a scheduler's need not. None on several hosts, too."""
        if self.requested_cpus is None or self.parallelism is None or len(self.host_ids) > 1:
            return None
        most = max(self.parallelism, self.busiest_cpus or 0.0)
        return self.requested_cpus if most <= self.requested_cpus * _HELD else None

    @property
    def peak_bytes(self) -> int | None:
        """Memory that it needs: what its programs held together, as it was measured or, of older records, summed up.

        A sum of peaks is no more than a limit that held: it counts shared pages for each program, and those need not
        peak at once. What was measured may be more than the limit: a part of it was in swap.
        At least its largest program's peak: with less, pages of files that it maps would be read again and again.
        """
        summed, largest = self.peak_together_bytes, self.peak_program_bytes
        limit = self.requested_memory_bytes
        held = math.inf if limit is None else max(limit, largest or 0)
        if (seen := self.peak_memory_bytes) is not None:
            with_brief = seen + self.brief_together_bytes
            most = with_brief if summed is None or self.unknown_peaks else min(with_brief, summed)
            return max(seen, int(min(most, held)), largest or 0)
        if summed is None or largest is None:
            return largest if summed is None else int(min(summed, held))
        return int(min(max(summed, largest), held))


def scope_of(runs: list[find.Run]) -> Scope:
    """The scope of all records of some runs."""
    return Scope(
        since_us=min(r.start_time for r in runs),
        until_us=max(r.last_time for r in runs) + LATE_US,
        run_ids=tuple(r.run_id for r in runs),
    )


def choose_runs(
    session: Session, wanted: Kind | None, last: int | None = None, since_us: int | None = None
) -> dict[Kind, list[find.Run]]:
    """Runs by kind (None: of every one), the latest first: of each the last so many, or those since a time.

    NotFound: there are none.
    """
    if wanted is not None and wanted.pipeline is not None:
        ids = find.latest(session, wanted.pipeline, last, since_us)
        same = [r for r in find.all_runs(session, ids) if Kind.of(r) == wanted] if ids else []
        if same:
            return {wanted: same}
    found = find.all_runs(session, columns=KIND)
    if not found:
        raise NotFound(f"{session.source}: has no runs yet", "record one: sluice run -- COMMAND")
    by_kind: dict[Kind, list[find.Run]] = {}
    for run in found:
        by_kind.setdefault(Kind.of(run), []).append(run)
    if wanted is not None:
        if wanted not in by_kind:
            raise NotFound(f'no run of a pipeline "{wanted.pipeline}" in {session.source}', _pipelines(by_kind))
        by_kind = {wanted: by_kind[wanted]}
    chosen = {
        kind: [r for r in runs if since_us is None or r.start_time >= since_us][:last] for kind, runs in by_kind.items()
    }
    if not any(chosen.values()):
        raise NotFound(f"{session.source}: no run began in this time", "choose an earlier --since")
    ids = tuple(r.run_id for runs in chosen.values() for r in runs)
    whole = {r.run_id: r for r in find.all_runs(session, ids)}
    return {kind: [whole[r.run_id] for r in runs] for kind, runs in chosen.items() if runs}


def _pipelines(kinds: Iterable[Kind]) -> str:
    names = sorted(k.pipeline for k in kinds if k.pipeline is not None)
    return "pipelines: " + ", ".join(names) if names else "no run has one: sluice run --pipeline P names it"


def executions(session: Session, runs: list[find.Run]) -> list[Execution]:
    """Every execution of a named task in these runs, the first to start first."""
    scope = scope_of(runs)
    known = _known(tasks(session, scope))
    parts = session.rows(known)
    whole_runs = {r.run_id: r for r in runs}
    tasks_of_run: dict[str, set[tuple[str, int | None]]] = {}
    for part in parts:
        tasks_of_run.setdefault(part["run_id"], set()).add((part["task_id"], part["attempt"]))
    found: dict[tuple[str, str, int | None], Execution] = {}
    for part in sorted(parts, key=lambda p: (p["start_time"], p["host_id"])):
        key = (part["run_id"], part["task_id"], part["attempt"])
        one = _execution(part, whole_runs.get(part["run_id"]), len(tasks_of_run[part["run_id"]]))
        found[key] = _merged(found[key], one) if key in found else one
    for row in session.rows(_programs_of(session, scope, known)):
        _add_programs(found[(row["run_id"], row["task_id"], row["attempt"])], row)
    for one in found.values():
        without_record = max(0, one.programs_counted - one.programs)
        one.unknown_peaks += without_record
        one.unknown_threads += without_record
    attempts: dict[tuple[str, str], list[Execution]] = {}
    for one in found.values():
        attempts.setdefault((one.run_id, one.task_id), []).append(one)
    for row in session.rows(_busiest(session, scope)):
        same = attempts.get((row["run_id"], row["task_id"]), [])
        if len(same) == 1 and row["busiest"] is not None:
            same[0].busiest_cpus = max(row["busiest"], same[0].busiest_cpus or 0.0)
    return list(found.values())


def hosts(session: Session, runs: list[find.Run], prices: Prices | None = None) -> dict[str, money.Host]:
    """The hosts of these runs by host_id; prices by the user's table first.

    Each fact is that of the latest Host record that has it: those that `sluice run` writes lack what only an agent's
    configuration has.
    """
    names = {p["host_id"]: p["host_name"] for r in runs for p in r.parts}
    t = session.table("host", dataclasses.replace(scope_of(runs), run_ids=None, hosts=tuple(sorted(names))))
    facts = ("cpus", "memory_bytes", "instance_type", "cloud", "region", "lifecycle", "price_per_hour")
    latest = t.group_by("host_id").aggregate(
        **{name: t[name].argmax(t.time, where=t[name].notnull()) for name in facts}
    )
    found = {host_id: money.Host(host_id, name) for host_id, name in names.items()}
    for row in session.rows(latest):
        host = found[row["host_id"]]
        for name in facts:
            setattr(host, name, row[name])
        priced = prices and prices.of_host(*host.names())
        if priced:
            host.price_per_hour = priced.per_hour
    return found


def _known(t: ir.Table) -> ir.Table:
    """The parts of executions that ended, and of those that lived for an interval: as far as that is known."""
    t = t.filter((t.phase != "START") & t.wall_ns.notnull() & t.task_id.notnull() & t.task.notnull())
    t = t.mutate(end_time=t.end_time.fill_null(t.start_time + t.wall_ns // 1000))
    return t.select(
        *_KEY, "phase", "pipeline", "task", "sample", "engine", "source", "start_time", "end_time", "wall_ns",
        "requested_cpus", "requested_memory_bytes", "exit_code", "exit_signal", *verdict.COLUMNS, "share_idle",
        "cpu_user_ns", "programs", "failed_programs", "peak_memory_bytes",
        "cpu_system_ns", "run_delay_ns", "peak_rss_bytes", "read_bytes", "write_bytes", "rchar", "wchar",
        "net_rx_bytes", "net_tx_bytes", "threads_peak",
    )  # fmt: skip


def _plus(a: int | None, b: int | None) -> int | None:
    """Sum of what is known; None where nothing is."""
    return b if a is None else a if b is None else a + b


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _ended_well(part: Row, run: find.Run | None, tasks_in_run: int) -> bool:
    """Did its driving program exit with 0?

    A task that has none (`sluice run --task`, the step of a job) succeeded if it is all of a run whose driver
    exited with 0, or if none of its programs failed.
    """
    if part["exit_code"] is not None or part["exit_signal"] is not None:
        return part["exit_code"] == 0 and part["exit_signal"] is None
    if run is not None and tasks_in_run == 1 and (run.exit_code is not None or run.exit_signal is not None):
        return run.exit_code == 0 and run.exit_signal is None
    return bool(part["failed_programs"] == 0)


def _execution(part: Row, run: find.Run | None, tasks_in_run: int) -> Execution:
    same = ("pipeline", "run_id", "task", "task_id", "sample", "attempt", "engine", "source", "start_time", "end_time",
            "wall_ns", "run_delay_ns", "read_bytes", "write_bytes", "rchar", "wchar", "threads_peak", "requested_cpus",
            "requested_memory_bytes", "exit_code", "exit_signal", "share_idle", "peak_memory_bytes")  # fmt: skip
    asked = ("requested_cpus", "requested_memory_bytes")
    of_run = run is not None and any(part[name] is not None and part[name] == run.first(name) for name in asked)
    user, system = part["cpu_user_ns"], part["cpu_system_ns"]
    return Execution(
        **{name: part[name] for name in same},
        verdict=verdict.of_record(part),
        host_ids=[part["host_id"]],
        cpu_ns=None if user is None or system is None else user + system,
        peak_program_bytes=part["peak_rss_bytes"],
        net_bytes=_plus(part["net_rx_bytes"], part["net_tx_bytes"]),
        succeeded=part["phase"] == "END" and _ended_well(part, run, tasks_in_run),
        has_ended=part["phase"] == "END",
        programs_counted=part["programs"] or 0,
        is_shared_limit=of_run and tasks_in_run > 1,
    )


_SUMMED = (
    "cpu_ns", "run_delay_ns", "read_bytes", "write_bytes", "rchar", "wchar", "net_bytes", "requested_cpus",
    "programs_counted",
)  # fmt: skip


def _merged(one: Execution, other: Execution) -> Execution:
    """The parts of one execution on two hosts: times, bytes and CPUs add up, memory is that of the host with most."""
    for name in _SUMMED:
        setattr(one, name, _plus(getattr(one, name), getattr(other, name)))
    one.succeeded = one.succeeded and other.succeeded
    one.has_ended = one.has_ended and other.has_ended
    one.host_ids.append(other.host_ids[0])
    one.end_time = max(one.end_time, other.end_time)
    one.wall_ns = (one.end_time - one.start_time) * 1000
    one.peak_program_bytes = _larger(one.peak_program_bytes, other.peak_program_bytes)
    is_known = one.peak_memory_bytes is not None and other.peak_memory_bytes is not None
    one.peak_memory_bytes = _larger(one.peak_memory_bytes, other.peak_memory_bytes) if is_known else None
    one.verdict = verdict.agreed((one.verdict, other.verdict))
    one.requested_memory_bytes = _larger(one.requested_memory_bytes, other.requested_memory_bytes)
    one.is_shared_limit = one.is_shared_limit or other.is_shared_limit
    one.threads_peak = _larger(one.threads_peak, other.threads_peak)
    if one.exit_code is None or other.exit_code not in (None, 0):
        one.exit_code = other.exit_code
    one.exit_signal = one.exit_signal if one.exit_signal is not None else other.exit_signal
    return one


def _programs_of(session: Session, scope: Scope, known: ir.Table) -> ir.Table:
    """One row an execution and host: its programs, and the largest sums of their peaks and threads at one moment.

    brief: the same sum over those that lived for less than _BRIEF_US.
    """
    program = session.table("program", scope)
    program = program.filter((program.phase == "END") & program.task_id.notnull() & program.end_time.notnull())
    program = program.filter(~program.overhead.fill_null(False))
    span = known.select(e_run="run_id", e_task="task_id", e_host="host_id", attempt="attempt",
                        e_start="start_time", e_end="end_time")  # fmt: skip
    of_execution = [program.run_id == span.e_run, program.task_id == span.e_task, program.host_id == span.e_host,
                    program.program_start_time <= span.e_end, program.end_time >= span.e_start]  # fmt: skip
    p = program.inner_join(span, of_execution).select(
        *_KEY,
        begin="program_start_time",
        # One that took no time was there all the same.
        finish=ibis.greatest(program.end_time, program.program_start_time + 1),
        peak="peak_rss_bytes",
        threads="threads_peak",
        is_forked=program.forked.fill_null(False).cast("int64"),
        is_oom=program.oom_killed.fill_null(False).cast("int64"),
    )
    peak, threads = p.peak.fill_null(0), p.threads.fill_null(0)
    is_brief = (p.finish - p.begin < _BRIEF_US).cast("int64")
    # Ends (0) come before starts (1) of the same moment: a program that exec replaces makes room for the next.
    events = p.select(
        *_KEY, at=p.begin, turn=ibis.literal(1, "int64"), peak=peak, brief=peak * is_brief, threads=threads
    ).union(
        p.select(
            *_KEY, at=p.finish, turn=ibis.literal(0, "int64"), peak=-peak, brief=-peak * is_brief, threads=-threads
        )
    )
    so_far = ibis.window(group_by=list(_KEY), order_by=[events.at, events.turn], rows=(None, 0))
    level = events.select(
        *_KEY,
        peak=events.peak.sum().over(so_far).cast("int64"),
        brief=events.brief.sum().over(so_far).cast("int64"),
        threads=events.threads.sum().over(so_far).cast("int64"),
    )
    together = level.group_by(*_KEY).aggregate(
        together=level.peak.max(), brief=level.brief.max(), threads=level.threads.max()
    )
    together = together.select(
        "together", "brief", "threads", t_run="run_id", t_task="task_id", t_attempt="attempt", t_host="host_id"
    )
    counts = p.group_by(*_KEY).aggregate(
        programs=p.count(),
        forked=p.is_forked.sum(),
        oom_killed=p.is_oom.sum(),
        unknown_peaks=p.count() - p.peak.count(),
        unknown_threads=p.count() - p.threads.count(),
    )
    same = [counts.run_id == together.t_run, counts.task_id == together.t_task, counts.host_id == together.t_host,
            counts.attempt.fill_null(-1) == together.t_attempt.fill_null(-1)]  # fmt: skip
    both = counts.left_join(together, same)
    return both.select(
        *_KEY, "programs", "forked", "oom_killed", "unknown_peaks", "unknown_threads", "threads", "brief",
        together=ibis.cases((both.unknown_peaks < both.programs, both.together)),
    )  # fmt: skip


def _add_programs(one: Execution, row: Row) -> None:
    one.programs += row["programs"]
    one.forked += row["forked"]
    one.oom_killed += row["oom_killed"]
    one.unknown_peaks += row["unknown_peaks"]
    one.peak_together_bytes = _larger(one.peak_together_bytes, row["together"])
    one.brief_together_bytes = max(one.brief_together_bytes, row["brief"])
    one.unknown_threads += row["unknown_threads"]
    one.threads_together = max(one.threads_together, row["threads"])


def _busiest(session: Session, scope: Scope) -> ir.Table:
    """CPUs that the programs of a task kept busy in their busiest interval, by run, task and host.

    An agent reads all programs within some milliseconds: records of one second are one interval.
    """
    usage = session.table("usage", scope)
    usage = usage.filter(usage.task_id.notnull() & (usage.interval_ns >= 500_000_000))
    second = usage.mutate(_second=usage.time // 1_000_000, _cpu=usage.cpu_user_ns + usage.cpu_system_ns)
    interval = second.group_by("run_id", "task_id", "host_id", "_second").aggregate(
        cpu=second._cpu.sum().cast("int64"), length=second.interval_ns.max()
    )
    interval = interval.mutate(_cores=interval.cpu.cast("float64") / interval.length.cast("float64"))
    return interval.group_by("run_id", "task_id", "host_id").aggregate(busiest=interval._cores.max())
