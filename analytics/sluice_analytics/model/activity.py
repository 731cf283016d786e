# SPDX-License-Identifier: Apache-2.0
"""What programs used when: each program's totals, spread over the intervals in which they fell.

The agent writes a Usage record for each interval in which a live program moved, as differences, and the
exact totals at its END. What the END has and the intervals do not (all of a program that was shorter
than an interval, and the last part of any other) is a piece of its own, from the last interval to the
end. So the pieces of a program add up to its END record exactly, and a question by hour, run or tool
divides and loses nothing.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from ..lake.columns import SUMS
from ..lake.session import ALL, Scope, Session
from .records import programs

IDENTITY = ("host_id", "run_id", "pipeline", "task_id", "task", "sample", "program_id", "tool", "comm")


def pieces(session: Session, scope: Scope = ALL) -> ir.Table:
    """Activity: one row a program and interval.

    Columns: IDENTITY; start_us, end_us (int64, microseconds UTC, start_us <= end_us); SUMS (int64, the
    amounts of this piece, null where unknown); rss_bytes, peak_rss_bytes (int64, levels in this piece,
    null where unknown).
    """
    usage = session.table("usage", scope)
    last = programs(session, scope)
    interval = usage.select(
        *IDENTITY,
        start_us=ibis.greatest(usage.time - usage.interval_ns // 1000, usage.program_start_time),
        end_us=usage.time,
        rss_bytes=usage.rss_bytes,
        peak_rss_bytes=usage.peak_rss_bytes,
        **{name: usage[name] for name in SUMS},
    )
    told = usage.group_by("program_id").aggregate(
        told_until=usage.time.max(), **{f"told_{name}": usage[name].sum().cast("int64") for name in SUMS}
    )
    ended = last.filter(last.phase == "END")
    joined = ended.left_join(told, "program_id")
    start = ibis.coalesce(joined.told_until, joined.observed_time, joined.program_start_time)
    rest = joined.select(
        *(joined[name] for name in IDENTITY),
        start_us=ibis.least(start, joined.end_time),
        end_us=joined.end_time,
        rss_bytes=joined.rss_bytes,
        peak_rss_bytes=joined.peak_rss_bytes,
        **{name: joined[name] - joined[f"told_{name}"].fill_null(0) for name in SUMS},
    )
    return interval.union(rest)


def by_window(table: ir.Table, window_us: int) -> ir.Table:
    """Pieces cut at multiples of window_us (since 1970): adds window (int64, the start), and scales SUMS.

    Amounts are spread evenly over a piece's time, as float64. A piece of no length falls in the window of
    its end whole. Pieces over more than 10,000 windows are not cut further.
    """
    first = table.start_us // window_us
    final = ibis.greatest(first, (table.end_us - 1) // window_us)
    count = ibis.least(final - first + 1, 10_000)
    cut = table.mutate(_first=first, _step=ibis.range(0, count.cast("int64")).unnest())
    begin = (cut._first + cut._step) * window_us
    length = cut.end_us - cut.start_us
    inside = ibis.least(cut.end_us, begin + window_us) - ibis.greatest(cut.start_us, begin)
    share = ibis.cases((length <= 0, 1.0), else_=inside.cast("float64") / length.cast("float64").nullif(0.0))
    shared = cut.mutate(window=begin, _share=share)
    amounts = {name: shared[name] * shared._share for name in SUMS}
    return shared.mutate(**amounts).drop("_first", "_step", "_share")
