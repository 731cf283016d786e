# SPDX-License-Identifier: Apache-2.0
"""What findings rest on, as Ibis expressions: long-lived programs and their children, silences of runs, containers."""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import TYPE_CHECKING, Any

from ..lake.expression import ibis
from ..lake.session import Scope, Session
from ..lake.statements import columns_of
from ..model import hosts
from ..model.activity import CALLED_BYTES_PER_S, pieces
from ..model.records import failed, programs, runs, tasks
from .period import Period
from .thresholds import Thresholds
from .use import LOOK_BACK_US, parts

if TYPE_CHECKING:
    import ibis.expr.types as ir

_MOVED = ("read_bytes", "write_bytes", "net_rx_bytes", "net_tx_bytes")
_CALLED = ("rchar", "wchar")
_CALLS = ("syscr", "syscw")
_SWITCHES = ("voluntary_switches", "involuntary_switches")


def _sum(table: ir.Table, names: tuple[str, ...]) -> ir.IntegerColumn:
    total: ir.IntegerColumn = functools.reduce(operator.add, (table[name].fill_null(0) for name in names))
    return total


def program_use(session: Session, period: Period, of: ir.Table) -> ir.Table:
    """What each program (program_id) of a table did in the period: host_id, program_id, and

    cpu_ns, moved_bytes (storage and network), called_bytes (read and write calls, from cache too), calls
    (read and write), voluntary_switches, switches (float64), reported_us (int64: time that records cover).
    """
    part = parts(session, period).semi_join(of, "program_id")
    part = part.mutate(
        _moved=_sum(part, _MOVED),
        _called=_sum(part, _CALLED),
        _calls=_sum(part, _CALLS),
        _voluntary=part.voluntary_switches.fill_null(0),
        _switches=_sum(part, _SWITCHES),
        _reported=part.to_us - part.from_us,
    )
    return part.group_by("host_id", "program_id").aggregate(
        run_id=part.run_id.max(),
        pipeline=part.pipeline.max(),
        task_id=part.task_id.max(),
        task=part.task.max(),
        comm=part.comm.max(),
        tool=part.tool.max(),
        cpu_ns=part.cpu_ns.sum(),
        moved_bytes=part._moved.sum(),
        called_bytes=part._called.sum(),
        calls=part._calls.sum(),
        voluntary_switches=part._voluntary.sum(),
        switches=part._switches.sum(),
        peak_rss_bytes=part.peak_rss_bytes.max(),
        reported_us=part._reported.sum().cast("int64"),
        reported_from_us=part.from_us.min(),
        reported_to_us=part.to_us.max(),
    )


def _children(session: Session, scope: Scope, of: ir.Table) -> ir.Table:
    """program_id, parent_program_id of the programs whose parent is a program of a table."""
    parents = of.select(parent_program_id=of.program_id).distinct()
    records = session.table("program", scope)
    maybe = session.kept(records.semi_join(parents, "parent_program_id").select("program_id").distinct())
    known = programs(session, scope, maybe)  # by its last record, as all else is
    return session.kept(known.semi_join(parents, "parent_program_id").select("program_id", "parent_program_id"))


def long_programs(session: Session, period: Period, least_us: int) -> ir.Table:
    """program_use of those that records cover for least_us or more, or that have not ended, with their families.

    Adds, from the programs' own records (null where the START is older than the period by more than a week):
    exe, argv, container_id, program_start_time, end_time, boot_id, heard_us; and of children and
    grandchildren: children, sleeps (children called sleep), family_cpu_ns, family_moved_bytes, family_called_bytes.
    """
    reach = dataclasses.replace(period.scope, since_us=period.since_us - LOOK_BACK_US)
    records = session.table("program", reach)
    part = parts(session, period)
    reported = part.group_by("program_id").aggregate(_reported_us=(part.to_us - part.from_us).sum())
    ended = records.filter(records.phase == "END").select("program_id")
    # Few of many: what is asked of them is asked of them alone.
    chosen = reported.filter(reported._reported_us >= least_us).union(reported.anti_join(ended, "program_id"))
    chosen = session.kept(chosen.select("program_id").distinct())
    used = program_use(session, period, chosen)
    known = programs(session, reach, chosen)
    itself = known.select(
        "program_id", "exe", "argv", "container_id", "program_start_time", "end_time", "boot_id", heard_us=known.time
    )
    joined = used.left_join(itself, "program_id")
    joined = joined.filter(
        (joined.reported_us >= least_us) | (joined.end_time.isnull() & joined.program_start_time.notnull())
    )
    joined = session.kept(
        joined.select(
            *(joined[name] for name in columns_of(used)),
            *(joined[name] for name in columns_of(itself) if name != "program_id"),
        )
    )
    young = _children(session, reach, joined)
    child = program_use(session, period, young).select("program_id", "comm", "cpu_ns", "moved_bytes", "called_bytes")
    child = child.inner_join(young, "program_id")
    first = child.group_by("parent_program_id").aggregate(
        children=child.count(),
        sleeps=(child.comm == "sleep").cast("int64").sum().cast("int64"),
        child_cpu_ns=child.cpu_ns.sum(),
        child_moved=child.moved_bytes.sum(),
        child_called=child.called_bytes.sum(),
    )
    younger = _children(session, reach, young)
    grand = program_use(session, period, younger).select("program_id", "cpu_ns", "moved_bytes", "called_bytes")
    above = young.select(parent_program_id=young.program_id, above_program_id=young.parent_program_id)
    grand = grand.inner_join(younger, "program_id").inner_join(above, "parent_program_id")
    second = grand.group_by("above_program_id").aggregate(
        grand_cpu_ns=grand.cpu_ns.sum(), grand_moved=grand.moved_bytes.sum(), grand_called=grand.called_bytes.sum()
    )
    joined = joined.left_join(first, joined.program_id == first.parent_program_id)
    joined = joined.left_join(second, joined.program_id == second.above_program_id)
    columns = [*columns_of(used), *(name for name in columns_of(itself) if name != "program_id")]
    return joined.select(
        *(joined[name] for name in columns),
        children=joined.children.fill_null(0),
        sleeps=joined.sleeps.fill_null(0),
        family_cpu_ns=joined.cpu_ns + joined.child_cpu_ns.fill_null(0.0) + joined.grand_cpu_ns.fill_null(0.0),
        family_moved_bytes=joined.moved_bytes + joined.child_moved.fill_null(0.0) + joined.grand_moved.fill_null(0.0),
        family_called_bytes=joined.called_bytes
        + joined.child_called.fill_null(0.0)
        + joined.grand_called.fill_null(0.0),
    )


def silences(session: Session, period: Period, limits: Thresholds) -> ir.Table:
    """Times, limits.least_us and longer, in which a run was alive and nothing happened: run_id, start_us, end_us.

    Something happens when a program of the run begins (but for the engine's own, `overhead`), uses
    limits.quiet_cores or moves limits.quiet_bytes_per_s, or CALLED_BYTES_PER_S by calls. A Usage record
    covers the last interval of the agent alone, however long the program had slept before: one that sleeps has none.
    """
    scope = period.scope
    run = runs(session, scope)
    run = run.mutate(_end=ibis.coalesce(run.end_time, run.time))
    run = run.group_by("run_id").aggregate(first=run.start_time.min(), last=run._end.max())
    since, until = ibis.literal(period.since_us, "int64"), ibis.literal(period.until_us, "int64")
    run = run.mutate(first=ibis.greatest(run["first"], since), last=ibis.least(run["last"], until))
    run = run.filter(run["last"] - run["first"] >= limits.least_us)
    alive = run.select("run_id")
    interval = hosts.facts(session, scope)
    interval = interval.select("host_id", usual_us=interval.interval_ns // 1000)
    piece = pieces(session, scope).semi_join(alive, "run_id").left_join(interval, "host_id")
    start = ibis.greatest(piece.start_us, piece.end_us - ibis.coalesce(piece.usual_us, piece.end_us))
    length: Any = ibis.greatest(piece.end_us - start, 1)
    seconds = length.cast("float64") / 1e6
    cpu_s = (piece.cpu_user_ns.fill_null(0) + piece.cpu_system_ns.fill_null(0)).cast("float64") / 1e9
    known = programs(session, scope)
    overhead = known.filter(known.overhead).select("program_id")
    moved = piece.filter(
        (cpu_s >= seconds * limits.quiet_cores)
        | (_sum(piece, _MOVED).cast("float64") >= seconds * float(limits.quiet_bytes_per_s))
        | (_sum(piece, _CALLED).cast("float64") >= seconds * float(CALLED_BYTES_PER_S))
    )
    moved = moved.anti_join(overhead, "program_id")
    moved = moved.select(
        "run_id",
        start_us=ibis.greatest(moved.start_us, moved.end_us - ibis.coalesce(moved.usual_us, moved.end_us)),
        end_us=moved.end_us,
    )
    began = known.filter(~known.overhead).semi_join(alive, "run_id")
    began = began.select("run_id", start_us=began.program_start_time, end_us=began.program_start_time)
    head = run.select("run_id", start_us=run["first"], end_us=run["first"])
    tail = run.select("run_id", start_us=run["last"], end_us=run["last"])
    event = ibis.union(moved, began, head, tail)
    order = [event.start_us.asc(), event.end_us.asc()]
    before = ibis.window(group_by=event.run_id, order_by=order, rows=(None, -1))
    event = event.mutate(_reported=event.end_us.max().over(before)).inner_join(run, "run_id")
    silent = event.select(
        "run_id",
        start_us=ibis.greatest(event._reported, event["first"]),
        end_us=ibis.least(event.start_us, event["last"]),
    )
    return silent.filter(silent.end_us - silent.start_us >= limits.least_us)


def containers(session: Session, period: Period) -> ir.Table:
    """Containers all of whose tasks ended: host_id, container_id, task_end_us, last_end_us, alive (programs), names.

    last_end_us: when the last program that has ended did; alive: programs without an end; comm: one of those
    that were there after the tasks' end; task: one of the tasks.
    """
    scope = period.scope
    records = session.table("program", scope)
    inside = session.kept(records.filter(records.container_id.notnull()).select("program_id").distinct())
    known = programs(session, scope, inside)
    known = known.filter(known.container_id.notnull())
    done = tasks(session, scope)
    done = done.select("host_id", "run_id", "task_id", task_end=done.end_time, task_phase=done.phase)
    own = known.filter(known.task_id.notnull()).inner_join(done, ["host_id", "run_id", "task_id"])
    by_container = own.group_by("host_id", "container_id").aggregate(
        task_end_us=own.task_end.max(),
        live_tasks=(own.task_phase != "END").cast("int64").sum().cast("int64"),
        task=own.task.max(),
        run_id=own.run_id.max(),
        pipeline=own.pipeline.max(),
    )
    by_container = by_container.filter((by_container.live_tasks == 0) & by_container.task_end_us.notnull())
    both = known.inner_join(by_container, ["host_id", "container_id"])
    later = both.filter(both.end_time.isnull() | (both.end_time > both.task_end_us))
    return later.group_by("host_id", "container_id").aggregate(
        container_name=later.container_name.max(),
        task_end_us=later.task_end_us.max(),
        task=later.task_right.max(),
        run_id=later.run_id_right.max(),
        pipeline=later.pipeline_right.max(),
        last_end_us=later.end_time.max(),
        alive=later.end_time.isnull().cast("int64").sum().cast("int64"),
        heard_us=later.time.max(),
        boot_id=later.boot_id.max(),
        programs=later.count(),
        comm=later.comm.min(),
        peak_rss_bytes=later.peak_rss_bytes.max(),
    )


def without_run(session: Session, period: Period) -> ir.Table:
    """Of each host, the time without a run, and the time after its last run of the period.

    host_id; no_run_us, no_run_busy_ns, no_run_capacity_ns, no_run_moved_bytes; last_run_us (null: no run), after_us,
    after_busy_ns, after_capacity_ns, after_moved_bytes (null: unknown). Of times that Host records cover.
    """
    part = hosts.with_presence(session, period.scope, period.window_us, period.since_us, period.until_us)
    stretch = hosts.presence(session, period.scope)
    last = stretch.group_by("host_id").aggregate(last_run_us=stretch.end_us.max())
    part = part.left_join(last, "host_id")
    length = part.to_us - part.from_us
    absent = 1.0 - part.run_us.cast("float64") / length.cast("float64").nullif(0.0)
    later = ibis.cases((part.from_us >= part.last_run_us, 1.0), else_=0.0)
    part = part.mutate(
        _absent_us=length - part.run_us,
        _absent_busy=part.cpu_busy_ns * part.share * absent,
        _absent_capacity=part.cpu_capacity_ns * part.share * absent,
        _absent_moved=part.moved_bytes * part.share * absent,
        _after_us=length * later,
        _after_busy=part.cpu_busy_ns * part.share * later,
        _after_capacity=part.cpu_capacity_ns * part.share * later,
        _after_moved=part.moved_bytes * part.share * later,
    )
    return part.group_by("host_id").aggregate(
        last_run_us=part.last_run_us.max(),
        no_run_us=part._absent_us.sum().cast("int64"),
        no_run_busy_ns=part._absent_busy.sum(),
        no_run_capacity_ns=part._absent_capacity.sum(),
        no_run_moved_bytes=part._absent_moved.sum(),
        after_us=part._after_us.sum().cast("int64"),
        after_busy_ns=part._after_busy.sum(),
        after_capacity_ns=part._after_capacity.sum(),
        after_moved_bytes=part._after_moved.sum(),
    )


def work(session: Session, period: Period, topic: str, least_us: int) -> ir.Table:
    """Tasks or runs (topic) that lived for least_us or longer, or failed: one row a host, by their records."""
    row = tasks(session, period.scope) if topic == "task" else runs(session, period.scope)
    bad = (row.phase == "END") & failed(row)
    row = row.mutate(
        last_us=ibis.coalesce(row.end_time, row.time),
        cpu_ns=row.cpu_user_ns + row.cpu_system_ns,
        moved_bytes=_sum(row, _MOVED),
        called_bytes=_sum(row, _CALLED),
        failed=bad,
    )
    row = row.filter(bad | (row.last_us - row.start_time >= least_us))
    names = (
        "host_id", "run_id", "pipeline", "task_id", "task", "sample", "phase", "start_time", "last_us", "end_time",
        "wall_ns", "attempt", "requested_cpus", "requested_memory_bytes", "exit_code", "exit_signal", "programs",
        "live_programs", "cpu_ns", "moved_bytes", "called_bytes", "peak_rss_bytes",
        "failed", "engine", "run_name", "command",
    )  # fmt: skip
    return row.select(*(row[name] for name in names))
