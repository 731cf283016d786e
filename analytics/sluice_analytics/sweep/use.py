# SPDX-License-Identifier: Apache-2.0
"""What programs, tasks and runs took of each host in each hour, and what was reserved for them: Ibis expressions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..lake.expression import ibis
from ..lake.session import Session
from ..lake.statements import columns_of
from ..model.activity import IDENTITY, cut, pieces
from ..model.hosts import merged
from ..model.records import programs, runs, tasks
from .grouping import OF_PIECES, OF_PROGRAMS
from .period import Period

if TYPE_CHECKING:
    import ibis.expr.types as ir

SUMS = (
    "read_bytes", "write_bytes", "net_rx_bytes", "net_tx_bytes", "rchar", "wchar", "syscr", "syscw",
    "voluntary_switches", "involuntary_switches",
)  # fmt: skip
"""What parts() has of a program beside CPU time and memory."""


def parts(session: Session, period: Period) -> ir.Table:
    """Pieces of programs (model/activity) cut at the hours of the period, with what a sweep adds up.

    Beside IDENTITY: cpu_ns (float64); memory (float64, resident bytes times ns; a piece that ended with its
    program counts with the program's peak); from_us, to_us, window, peak_rss_bytes (int64); and SUMS, as
    by_window has them. Kept, since most of a sweep's questions rest on it.
    """
    piece = pieces(session, period.scope)
    piece = piece.select(
        *IDENTITY,
        *SUMS,
        "start_us",
        "end_us",
        "peak_rss_bytes",
        _resident=ibis.coalesce(piece.rss_bytes.nullif(0), piece.peak_rss_bytes, 0),
        _cpu=piece.cpu_user_ns.fill_null(0) + piece.cpu_system_ns.fill_null(0),
    )
    part = cut(piece, period.window_us, period.since_us, period.until_us)
    part = part.select(
        *IDENTITY,
        "window",
        "from_us",
        "to_us",
        "peak_rss_bytes",
        **{name: part[name] * part.share for name in SUMS},
        cpu_ns=part._cpu * part.share,
        memory=part._resident * (part.to_us - part.from_us).cast("float64") * 1000.0,
    )
    return session.kept(part)


def by_run(session: Session, period: Period) -> ir.Table:
    """host_id, window, run_id (null: outside all runs), cpu_ns, memory."""
    part = parts(session, period)
    return part.group_by("host_id", "window", "run_id").aggregate(cpu_ns=part.cpu_ns.sum(), memory=part.memory.sum())


def run_requests(session: Session, period: Period) -> ir.Table:
    """What runs reserved: host_id, window, run_id, pipeline, requested_cpu_ns, requested_memory (bytes times ns).

    A request that is not known is null.
    """
    run = runs(session, period.scope)
    run = run.select(
        "host_id",
        "run_id",
        "pipeline",
        "requested_cpus",
        "requested_memory_bytes",
        start_us=run.start_time,
        end_us=ibis.coalesce(run.end_time, run.time),
    )
    run = cut(run.filter(run.end_us > run.start_us), period.window_us, period.since_us, period.until_us)
    ns = (run.to_us - run.from_us).cast("float64") * 1000.0
    run = run.mutate(_cpu=run.requested_cpus * ns, _memory=run.requested_memory_bytes * ns)
    return run.group_by("host_id", "window", "run_id").aggregate(
        pipeline=run.pipeline.max(), requested_cpu_ns=run._cpu.sum(), requested_memory=run._memory.sum()
    )


def task_requests(session: Session, period: Period) -> ir.Table:
    """What tasks reserved for themselves, beside what they used of it, one row a host, hour and task.

    host_id, window, run_id, task_id, pipeline, task, sample, requested_cpu_ns, requested_memory (null: not
    its own; a task that has its run's request shares it with the run's other tasks), cpu_ns, memory (used),
    alive_us.
    """
    task = tasks(session, period.scope)
    run = runs(session, period.scope)
    run = run.select("host_id", "run_id", run_cpus=run.requested_cpus, run_memory=run.requested_memory_bytes)
    both = task.left_join(run, ["host_id", "run_id"])
    own_cpus = both.run_cpus.isnull() | (both.run_cpus != both.requested_cpus)
    own_memory = both.run_memory.isnull() | (both.run_memory != both.requested_memory_bytes)
    task = both.select(
        "host_id",
        "run_id",
        "task_id",
        "pipeline",
        "task",
        "sample",
        cpus=ibis.cases((own_cpus, both.requested_cpus)),
        memory_bytes=ibis.cases((own_memory, both.requested_memory_bytes)),
        start_us=both.start_time,
        end_us=ibis.coalesce(both.end_time, both.time),
    )
    task = cut(task.filter(task.end_us > task.start_us), period.window_us, period.since_us, period.until_us)
    ns = (task.to_us - task.from_us).cast("float64") * 1000.0
    task = task.mutate(_cpu=task.cpus * ns, _memory=task.memory_bytes * ns, _alive=task.to_us - task.from_us)
    keys = ["host_id", "window", "run_id", "task_id"]
    asked = task.group_by(*keys).aggregate(
        pipeline=task.pipeline.max(),
        task=task.task.max(),
        sample=task["sample"].max(),
        requested_cpu_ns=task._cpu.sum(),
        requested_memory=task._memory.sum(),
        alive_us=task._alive.sum().cast("int64"),
    )
    asked = asked.filter(asked.requested_cpu_ns.notnull() | asked.requested_memory.notnull())
    asked = session.kept(asked)  # few, as a rule
    part = parts(session, period).semi_join(asked, keys)
    used = part.group_by(*keys).aggregate(cpu_ns=part.cpu_ns.sum(), memory=part.memory.sum())
    joined = asked.left_join(used, keys)
    columns = {name: joined[name] for name in columns_of(asked)}
    return joined.select(**columns, cpu_ns=joined.cpu_ns.fill_null(0.0), memory=joined.memory.fill_null(0.0))


def parents(session: Session, period: Period) -> ir.Table:
    """run_id, parent_run_id of the runs that were started inside another."""
    run = runs(session, period.scope)
    run = run.filter(run.parent_run_id.notnull())
    return run.select("run_id", "parent_run_id").distinct()


LOOK_BACK_US = 7 * 24 * 3_600_000_000
"""How long before the period a program's START is looked for, where --by names a field that only START has"""


def by_group(session: Session, period: Period, by: str) -> ir.Table:
    """What each group took: host_id, window, group (string, null: unknown), cpu_ns, memory, programs, alive_us.

    by: a key of OF_PIECES or OF_PROGRAMS. alive_us (int64): time in which at least one program of the group
    was alive on the host.
    """
    part = parts(session, period)
    if by in OF_PIECES:
        part = part.mutate(group=part[OF_PIECES[by]])
    else:
        reach = dataclasses.replace(period.scope, since_us=period.since_us - LOOK_BACK_US)
        program = programs(session, reach)
        column = OF_PROGRAMS[by]
        value = (
            ibis.coalesce(program.container_name, program.container_id) if column == "container" else program[column]
        )
        named = program.select("program_id", group=value.cast("string"))
        joined = part.left_join(named, "program_id")
        part = joined.select(*(joined[name] for name in columns_of(part)), group=joined.group)
    amounts = part.group_by("host_id", "window", "group").aggregate(
        cpu_ns=part.cpu_ns.sum(), memory=part.memory.sum(), programs=part.program_id.nunique()
    )
    alive = part.filter(part.to_us > part.from_us)
    alive = alive.select("host_id", "window", "group", start_us=alive.from_us, end_us=alive.to_us)
    islands = merged(alive, "host_id", "window", "group")
    islands = islands.mutate(_length=islands.end_us - islands.start_us)
    wall = islands.group_by("host_id", "window", "group").aggregate(alive_us=islands._length.sum().cast("int64"))
    # A null group joins with a null group.
    amounts = amounts.mutate(_key=amounts.group.fill_null(""))
    wall = wall.mutate(_key=wall.group.fill_null("")).drop("group")
    joined = amounts.left_join(wall, ["host_id", "window", "_key"])
    columns = {name: joined[name] for name in ("host_id", "window", "group", "cpu_ns", "memory", "programs")}
    return joined.select(**columns, alive_us=joined.alive_us.fill_null(0))


def outside(session: Session, period: Period) -> ir.Table:
    """What programs outside runs used: host_id, comm, cpu_ns, programs."""
    part = parts(session, period)
    part = part.filter(part.run_id.isnull())
    return part.group_by("host_id", "comm").aggregate(cpu_ns=part.cpu_ns.sum(), programs=part.program_id.nunique())
