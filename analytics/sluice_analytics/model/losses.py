# SPDX-License-Identifier: Apache-2.0
"""The losses that agents report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lake.expression import ibis
from ..lake.session import Scope, Session

if TYPE_CHECKING:
    import ibis.expr.types as ir


def lost_events(session: Session, scope: Scope) -> ir.Table:
    """Events that agents counted as lost since their record before: host_id, start_us, end_us, place, reason, count.

    The counts in records are since the agent's start; an agent that began anew counts from 0.
    """
    record = session.table("agent", scope)
    first = record.group_by("host_id", "agent_id").aggregate(first_seq=record.seq.min())
    each = record.filter(record.lost.length() > 0)
    each = each.mutate(_at=ibis.range(0, each.lost.length(), 1).unnest())
    loss = each.lost[each._at]
    each = each.select(
        "host_id", "agent_id", "seq", "time", "event", "interval_ns",
        place=loss["place"], reason=loss["reason"], total=loss["count"],
    )  # fmt: skip
    each = each.inner_join(first, ["host_id", "agent_id"])
    window = ibis.window(group_by=[each.host_id, each.agent_id, each.place, each.reason], order_by=each.seq.asc())
    each = each.mutate(_before=each.total.lag().over(window))
    base = ibis.cases(
        (each._before.notnull() & (each._before <= each.total), each._before),
        # The first that we read of an agent that had begun before: when it lost them is not known.
        (each._before.isnull() & (each.seq == each.first_seq) & ~each.event.isin(["START", "GAP"]), each.total),
        else_=ibis.literal(0, type="int64"),
    )
    each = each.mutate(count=each.total - base, start_us=each.time - each.interval_ns // 1000, end_us=each.time)
    return each.filter(each["count"] > 0).select("host_id", "start_us", "end_us", "place", "reason", "count")
