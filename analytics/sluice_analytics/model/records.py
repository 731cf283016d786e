# SPDX-License-Identifier: Apache-2.0
"""One row a program, task, run: what the lake knows last of each.

A program has a START and an END record, and others between; the END knows all that the START knew. A
task's or run's records come as LIVE each interval, and END. A run may have been seen by several hosts,
each of which records its own part: one row a run and host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lake.expression import ibis
from ..lake.session import ALL, LATE_US, Scope, Session

if TYPE_CHECKING:
    import ibis.expr.types as ir


def _last(records: ir.Table, *keys: str) -> ir.Table:
    """The record that knows most, of those that share keys: END before all else, then the latest."""
    order = [(records.phase == "END").cast("int64").desc(), records.time.desc(), records.seq.desc()]
    rank = ibis.row_number().over(group_by=list(keys), order_by=order)
    return records.mutate(_rank=rank).filter(ibis._._rank == 0).drop("_rank")


def programs(session: Session, scope: Scope = ALL, of: ir.Table | None = None) -> ir.Table:
    """One row a program (program_id), columns as columns.COLUMNS['program'].

    phase is END for one that ended, else it was running at its last record; then end_time,
    exit_code, exit_signal and all of usage are null. wall_ns (added): end_time - program_start_time.
    of: a table with program_ids, to which it keeps: of few programs, few records are compared.
    """
    records = session.table("program", scope)
    if of is not None:
        records = records.semi_join(of, "program_id")
    if of is not None or scope.run_ids is not None:
        last = _last(records, "program_id")
    else:  # to rank all of a lake takes much memory; what ended is known by its END, once
        ends = _ends(session, records)
        ended = session.kept(ends.select("program_id"))
        alive = records.filter(records.phase != "END").anti_join(ended, "program_id")
        last = ends.union(_last(alive, "program_id"))
    return _with_wall(last)


def ended_programs(session: Session, scope: Scope = ALL) -> ir.Table:
    """The rows of programs() whose phase is END, without looking at the records of those that run still."""
    records = session.table("program", scope)
    if scope.run_ids is not None:
        return _with_wall(_last(records.filter(records.phase == "END"), "program_id"))
    return _with_wall(_ends(session, records))


def _ends(session: Session, records: ir.Table) -> ir.Table:
    """The END records of programs, one each."""
    ends = records.filter(records.phase == "END")
    # As a rule there is one, and that is cheap to see.
    count = ends.group_by("program_id").aggregate(n=ends.count())
    again = session.kept(count.filter(count.n > 1).select("program_id").limit(1))
    return _last(ends, "program_id") if session.rows(again) else ends


def _with_wall(programs: ir.Table) -> ir.Table:
    return programs.mutate(wall_ns=(programs.end_time - programs.program_start_time) * 1000)


def tasks(session: Session, scope: Scope = ALL) -> ir.Table:
    """One row a run, task (task_id) and host, columns as columns.COLUMNS['task']."""
    return _last(session.table("task", scope), "run_id", "task_id", "attempt", "host_id")


def runs(session: Session, scope: Scope = ALL) -> ir.Table:
    """One row a run (run_id) and host, columns as columns.COLUMNS['run']."""
    return _last(session.table("run", scope), "run_id", "host_id")


def failed(t: ir.Table) -> ir.BooleanValue:
    """Whether a program, task or run ended by a signal or with a code other than 0, as the agent counts it."""
    is_failed: ir.BooleanValue = t.exit_signal.notnull() | (t.exit_code.fill_null(0) != 0)
    return is_failed


def run_scope(session: Session, run_id: str) -> Scope:
    """The scope of all records of one run, from its own records: engines then read its days alone.

    A record is written up to some minutes after the time that it describes (an agent that was down, a spool that
    waited), so that the scope is open for an hour behind a run's last record.
    """
    records = session.table("run", Scope(run_ids=(run_id,)))
    found = session.rows(records.aggregate(first=records.start_time.min(), last=records.time.max()))[0]
    if found["first"] is None:
        return Scope(run_ids=(run_id,))
    return Scope(since_us=found["first"], until_us=found["last"] + LATE_US, run_ids=(run_id,))
