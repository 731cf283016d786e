# SPDX-License-Identifier: Apache-2.0
"""What the lake does not know: times that no agent watched, records that never arrived, events that were lost.

Three sources, all in records: the times that Host records leave open; holes in seq, by agent and topic; and
what Agent records count as lost. Each becomes a Loss with its time; hours with one are marked.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..lake.columns import COLUMNS
from ..lake.expression import ibis
from ..lake.session import Scope, Session
from ..model import hosts
from ..model.losses import lost_events
from .period import SLACK_US, Period

if TYPE_CHECKING:
    import ibis.expr.types as ir

AWAY_INTERVALS = 2
"""A host without records for longer than so many of its agent's intervals was not watched"""


@dataclasses.dataclass(frozen=True)
class Loss:
    """Something unknown of a host between two times (microseconds).

    kind: AWAY (no Host records: no agent watched), SEQ_HOLE (records of a topic that never arrived, or that a
    full lake has given up: lake_over_share of the agent's status; those of an hour together),
    LOST_EVENTS (counted by the agent), NOT_RECORDED (between two `sluice run`s, where no agent was to watch).
    count: records or events; None for a time.
    """

    host_id: str
    kind: str
    start_us: int
    end_us: int
    count: int | None
    what: str

    @property
    def hides_use(self) -> bool:
        """Whether programs may have used CPU that no record has."""
        return self.kind == "LOST_EVENTS" or (self.kind == "SEQ_HOLE" and self.what in ("program", "usage"))


def _holes(session: Session, topic: str, scope: Scope, agents: list[str], period: Period) -> ir.Table:
    """Holes, those between the same hours together: a lake that has given up records has one between any two others."""
    record = session.table(topic, scope)
    record = record.filter(record.agent_id.isin(agents)).select("host_id", "agent_id", "seq", "time")
    window = ibis.window(group_by=[record.host_id, record.agent_id], order_by=record.seq.asc())
    record = record.mutate(_seq=record.seq.lag().over(window), start_us=record.time.lag().over(window))
    record = record.filter(record.seq - record._seq > 1)
    hole = record.select(
        "host_id",
        start_us=ibis.least(record.start_us, record.time),
        end_us=ibis.greatest(record.start_us, record.time),
        count=record.seq - record._seq - 1,
    )
    hole = hole.filter(hole.end_us > period.since_us, hole.start_us < period.until_us)
    hours = hole.group_by("host_id", first=hole.start_us // period.window_us, last=hole.end_us // period.window_us)
    return hours.aggregate(start_us=hole.start_us.min(), end_us=hole.end_us.max(), count=hole["count"].sum())


def seq_holes(session: Session, period: Period) -> list[Loss]:
    """Records whose seq is missing. A hole lies between the times of the records beside it."""
    scope = Scope(period.since_us - SLACK_US, period.until_us + SLACK_US)
    found = []
    for topic in COLUMNS:
        record = session.table(topic, scope)
        spans = record.group_by("host_id", "agent_id").aggregate(
            n=record.count(), first=record.seq.min(), last=record.seq.max()
        )
        broken = {r["agent_id"] for r in session.rows(spans.filter(spans["last"] - spans["first"] + 1 > spans.n))}
        if not broken:
            continue
        found += [
            Loss(row["host_id"], "SEQ_HOLE", row["start_us"], row["end_us"], row["count"], topic)
            for row in session.rows(_holes(session, topic, scope, sorted(broken), period))
        ]
    return found


def away(session: Session, period: Period) -> list[Loss]:
    """Times longer than AWAY_INTERVALS of the agent's intervals without a Host record, inside the period."""
    scope = Scope(period.since_us - SLACK_US, period.until_us + SLACK_US)
    found = []
    for row in session.rows(hosts.gaps(session, scope, least_us=1_000_000)):
        length = row["end_us"] - row["start_us"]
        if period.inside(row["start_us"], row["end_us"]) == 0:
            continue
        if row["only_runs"]:
            what = "between two `sluice run`s"
            found.append(Loss(row["host_id"], "NOT_RECORDED", row["start_us"], row["end_us"], None, what))
        elif length * 1000 > AWAY_INTERVALS * row["interval_ns"]:
            what = "the host booted meanwhile" if row["restarted"] else "no agent watched the host"
            found.append(Loss(row["host_id"], "AWAY", row["start_us"], row["end_us"], None, what))
    return found


def find(session: Session, period: Period) -> list[Loss]:
    """All that is unknown of the period, by host and time."""
    events = [
        Loss(r["host_id"], "LOST_EVENTS", r["start_us"], r["end_us"], r["count"], f"{r['place']}: {r['reason']}")
        for r in session.rows(lost_events(session, Scope(period.since_us - SLACK_US, period.until_us + SLACK_US)))
        if period.inside(r["start_us"], r["end_us"]) or period.since_us <= r["end_us"] < period.until_us
    ]
    return sorted([*away(session, period), *seq_holes(session, period), *events], key=lambda x: (x.host_id, x.start_us))
