# SPDX-License-Identifier: Apache-2.0
"""A lake as one sweep sees it: the same records for all its questions, and each host counted once, where
`sluice run` and the agent recorded it at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..lake.expression import identity
from ..lake.session import ALL, Row, Scope, Session
from ..model import hosts
from .period import Period

if TYPE_CHECKING:
    import ibis.expr.types as ir


class View(Session):
    """A Session without the records of some agents, in which a table is the same at each call.

    What is kept is kept once, then: equal expressions over equal tables are equal.
    """

    def __init__(self, session: Session, agents: list[str]) -> None:
        self._session = session
        self._agents = agents
        self.engine = session.engine
        self.source = session.source
        self.warnings = session.warnings
        self._tables: dict[tuple[str, Scope], ir.Table] = {}
        self._kept: dict[tuple[Any, ...], ir.Table] = {}

    def table(self, topic: str, scope: Scope = ALL) -> ir.Table:
        """See Session.table."""
        found = self._tables.get((topic, scope))
        if found is None:
            found = self._session.table(topic, scope)
            if self._agents:
                found = found.filter(~found.agent_id.isin(self._agents))
            self._tables[topic, scope] = found
        return found

    def kept(self, expression: ir.Table) -> ir.Table:
        """See Session.kept."""
        key = identity(expression)
        if key not in self._kept:
            self._kept[key] = self._session.kept(expression)
        return self._kept[key]

    def rows(self, expression: ir.Table) -> list[Row]:
        """See Session.rows."""
        return self._session.rows(expression)

    def close(self) -> None:
        """Does nothing: the owner of the session closes it."""


def without_agents(session: Session, period: Period) -> tuple[Session, list[str]]:
    """The session without recordings of a `sluice run` that lie within what the host's own agent recorded.

    Both record the same programs: counted twice, a host would have used more than it has.
    """
    row = hosts.intervals(session, period.scope)
    twice = row.group_by("host_id").aggregate(
        overlap_us=row.overlap_us.sum().cast("int64"), agents=row.agent_id.nunique()
    )
    doubled = [r["host_id"] for r in session.rows(twice.filter((twice.overlap_us > 0) & (twice.agents > 1)))]
    if not doubled:
        return View(session, []), []
    record = session.table("host", period.scope)
    record = record.filter(record.host_id.isin(doubled))
    spans = record.mutate(start_us=record.time - record.interval_ns // 1000)
    spans = spans.group_by("host_id", "agent_id").aggregate(
        start_us=spans.start_us.min(), end_us=spans.time.max(), is_run=spans.run_id.notnull().any()
    )
    rows = session.rows(spans)
    inner = [
        r
        for r in rows
        if r["is_run"]
        and any(
            o["host_id"] == r["host_id"]
            and not o["is_run"]
            and min(o["end_us"], r["end_us"]) - max(o["start_us"], r["start_us"]) > (r["end_us"] - r["start_us"]) / 2
            for o in rows
        )
    ]
    if not inner:
        return View(session, []), []
    hosts_of = len({r["host_id"] for r in inner})
    return View(session, sorted(r["agent_id"] for r in inner)), [
        f"{len(inner)} recording(s) of `sluice run` on {hosts_of} host(s) lie within what the host's agent recorded "
        "and are left out: both have the same programs"
    ]
