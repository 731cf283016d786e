# SPDX-License-Identifier: Apache-2.0
"""What programs used when: each program's totals, spread over the intervals in which they fell.

The agent writes a Usage record for each interval in which a live program moved, as differences, and the
exact totals at its END. What the END has and the intervals do not (all of a program that was shorter
than an interval, and the last part of any other) is a piece of its own, from the last interval to the
end. So the pieces of a program add up to its END record exactly, and a question by hour, run or tool
divides and loses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..lake.columns import SUMS
from ..lake.expression import ibis
from ..lake.session import ALL, Scope, Session
from .records import ended_programs

if TYPE_CHECKING:
    import ibis.expr.types as ir

IDENTITY = ("host_id", "run_id", "pipeline", "task_id", "task", "sample", "program_id", "tool", "comm")

CALLED_BYTES_PER_S = 64 << 10
"""Bytes by read and write calls from which a task works, though no record shows I/O of its own: a cache, a network file
system or a pipe may have moved them. Fewer are none: what waits reads /proc, files of cgroups and its configuration"""


def are_work(called_bytes: float, us: float) -> bool:
    """Are so many bytes by read and write calls in that time work?"""
    return called_bytes >= CALLED_BYTES_PER_S * us / 1e6


def pieces(session: Session, scope: Scope = ALL) -> ir.Table:
    """Activity: one row a program and interval.

    Columns: IDENTITY; start_us, end_us (int64, microseconds UTC, start_us <= end_us); SUMS (int64, the
    amounts of this piece, null where unknown); rss_bytes, peak_rss_bytes (int64, levels in this piece,
    null where unknown). With a scope that has a beginning, a program that began before it has no piece
    for what its END has beyond the last interval: that total reaches back to before the scope.
    Kept (session.Session), since several questions rest on them.
    """
    usage = session.table("usage", scope)
    interval = usage.select(
        *IDENTITY,
        start_us=ibis.greatest(usage.time - usage.interval_ns // 1000, usage.program_start_time),
        end_us=usage.time,
        rss_bytes=usage.rss_bytes,
        peak_rss_bytes=usage.peak_rss_bytes,
        **{name: usage[name] for name in SUMS},
    )
    ended = ended_programs(session, scope)
    if scope.since_us is not None:  # its totals count from before the scope, where we did not look
        since = ibis.literal(scope.since_us, "int64")
        ended = ended.filter(ended.observed_time.fill_null(ended.program_start_time) >= since)
    counted_from = ended.select(
        "program_id", counted_from=ended.observed_time.fill_null(ended.program_start_time)
    )  # found anew after a gap: END counts from then on, and so do we
    counted = usage.inner_join(counted_from, "program_id").filter(ibis._.time > ibis._.counted_from)
    reported = counted.group_by("program_id").aggregate(
        reported_until=counted.time.max(), **{f"reported_{name}": counted[name].sum().cast("int64") for name in SUMS}
    )
    reported = session.kept(reported)  # so that the wide rows of what ended flow through one query, once
    joined = ended.left_join(reported, "program_id")
    start = ibis.coalesce(joined.reported_until, joined.observed_time, joined.program_start_time)
    rest = joined.select(
        *(joined[name] for name in IDENTITY),
        start_us=ibis.least(start, joined.end_time),
        end_us=joined.end_time,
        rss_bytes=joined.rss_bytes,
        peak_rss_bytes=joined.peak_rss_bytes,
        **{name: joined[name] - joined[f"reported_{name}"].fill_null(0) for name in SUMS},
    )
    return session.kept(interval.union(rest))


def cut(table: ir.Table, window_us: int, since_us: int | None = None, until_us: int | None = None) -> ir.Table:
    """Rows with start_us and end_us cut at multiples of window_us (since 1970), and to [since_us, until_us).

    Adds window (int64, its start), from_us and to_us (int64, the part that lies in it) and share (float64,
    that part of the row's whole time; 1 for a row of no length, which falls in the window of its end).
    Rows over more than 10,000 windows are not cut further.
    """
    length_us, since, until = (ibis.literal(us or 0, "int64") for us in (window_us, since_us, until_us))
    if since_us is not None:
        table = table.filter(table.end_us > since)
    if until_us is not None:
        table = table.filter(table.start_us < until)
    # Ibis types the least of two numbers as Value, for which mypy knows no arithmetic.
    begin: Any = table.start_us if since_us is None else ibis.greatest(table.start_us, since)
    end: Any = table.end_us if until_us is None else ibis.least(table.end_us, until)
    least: Any = ibis.least(begin, end)
    first = least // length_us
    final: Any = ibis.greatest(first, (end - 1) // length_us)
    table = table.mutate(_begin=begin, _end=end, _first=first, _count=ibis.least(final - first + 1, 10_000))
    steps = table.mutate(_step=ibis.range(0, table._count.cast("int64"), 1).unnest())
    window = (steps._first + steps._step) * length_us
    placed = steps.mutate(
        window=window, from_us=ibis.greatest(steps._begin, window), to_us=ibis.least(steps._end, window + length_us)
    )
    length = placed.end_us - placed.start_us
    inside = placed.to_us - placed.from_us
    share = ibis.cases((length <= 0, 1.0), else_=inside.cast("float64") / length.cast("float64").nullif(0.0))
    return placed.mutate(share=share).drop("_begin", "_end", "_first", "_count", "_step")


def by_window(table: ir.Table, window_us: int, since_us: int | None = None, until_us: int | None = None) -> ir.Table:
    """Pieces cut as cut() does; their SUMS are scaled by share, as float64: spread evenly over a piece's time."""
    shared = cut(table, window_us, since_us, until_us)
    return shared.mutate(**{name: shared[name] * shared.share for name in SUMS})
