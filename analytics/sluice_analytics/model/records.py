# SPDX-License-Identifier: Apache-2.0
"""One row a program, task, run: what the lake knows last of each.

A program has a START and an END record, and others between; the END knows all that the START knew. A
task's or run's records come as LIVE each interval, and END. A run may have been seen by several hosts,
each of which tells of its own part: one row a run and host.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from ..lake.session import ALL, Scope, Session


def _last(records: ir.Table, *keys: str) -> ir.Table:
    """The record that knows most, of those that share keys: END before all else, then the latest."""
    order = [(records.phase == "END").cast("int64").desc(), records.time.desc(), records.seq.desc()]
    rank = ibis.row_number().over(group_by=list(keys), order_by=order)
    return records.mutate(_rank=rank).filter(lambda t: t._rank == 0).drop("_rank")


def programs(session: Session, scope: Scope = ALL) -> ir.Table:
    """One row a program (program_id), columns as columns.COLUMNS['program'].

    phase is END for one that ended, else it ran still when the lake heard of it last; then end_time,
    exit_code, exit_signal and all of usage are null. wall_ns (added): end_time - program_start_time.
    """
    last = _last(session.table("program", scope), "program_id")
    return last.mutate(wall_ns=(last.end_time - last.program_start_time) * 1000)


def ended_programs(session: Session, scope: Scope = ALL) -> ir.Table:
    """The rows of programs() whose phase is END, without looking at the records of those that run still."""
    records = session.table("program", scope)
    last = _last(records.filter(records.phase == "END"), "program_id")
    return last.mutate(wall_ns=(last.end_time - last.program_start_time) * 1000)


def tasks(session: Session, scope: Scope = ALL) -> ir.Table:
    """One row a run, task (task_id) and host, columns as columns.COLUMNS['task']."""
    return _last(session.table("task", scope), "run_id", "task_id", "attempt", "host_id")


def runs(session: Session, scope: Scope = ALL) -> ir.Table:
    """One row a run (run_id) and host, columns as columns.COLUMNS['run']."""
    return _last(session.table("run", scope), "run_id", "host_id")


def run_scope(session: Session, run_id: str) -> Scope:
    """The scope of all records of one run, from its own records: engines then read its days alone.

    A record is written up to some minutes after what it tells of (an agent that was away, a spool that
    waited), so that the scope is open for an hour behind a run's last record.
    """
    records = session.table("run", Scope(run_ids=(run_id,)))
    found = session.rows(records.aggregate(first=records.start_time.min(), last=records.time.max()))[0]
    if found["first"] is None:
        return Scope(run_ids=(run_id,))
    return Scope(since_us=found["first"], until_us=found["last"] + 3_600_000_000, run_ids=(run_id,))
