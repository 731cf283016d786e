# SPDX-License-Identifier: Apache-2.0
"""What `sluice sweep` knows: the data behind the table, the JSON and the CSV."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from ..errors import NotFound
from ..lake.files import day_of
from ..lake.session import Scope, Session
from ..prices import Prices
from ..units import clock
from . import attribution, find_hosts, find_programs, find_work, grouping, groups, losses, observed
from .attribution import Host, HostHour
from .finding import Finding, Scene
from .groups import Group, HostTime
from .losses import Loss
from .period import Period
from .thresholds import Thresholds
from .view import without_agents

SILENT_INTERVALS_US = 600_000_000
"""A host without records for this long before the period's end is reported"""


@dataclasses.dataclass(kw_only=True)
class SweepReport:
    """Everything. by: the name of what groups or host_times are of; exactly one of the two is filled."""

    session: Session
    """What it was read from: with each host's records once"""
    period: Period
    limits: Thresholds
    by: str
    hosts: list[Host]
    hours: list[HostHour]
    total: HostTime
    host_times: list[HostTime]
    groups: list[Group]
    findings: list[Finding]
    losses: list[Loss]
    warnings: list[str]
    notes: list[str]
    currency: str = "USD"
    has_prices: bool = False
    """A price table was given, also one without a matching row"""


def host_time(
    session: Session, period: Period, prices: Prices, by: str, limits: Thresholds | None = None
) -> SweepReport:
    """Where host time went, without findings. NotFound: no host was recorded in the period."""
    grouping.check(by)
    limits = limits or Thresholds()
    session, warnings = without_agents(session, period)
    found, more = attribution.read_hosts(session, period, prices)
    if not found:
        raise _nothing(session, period)
    lost = losses.find(session, period)
    hours = attribution.attribute(session, period, found, lost)
    host_times: list[HostTime] = []
    own: list[Group] = []
    if by in grouping.PLAIN:
        host_times = _by_host(hours) if by == "host" else _by_day(hours)
    else:
        own = groups.find(session, period, hours, by)
    return SweepReport(
        session=session, period=period, limits=limits, by=by, hosts=found, hours=hours,
        total=groups.add_up("all", hours), host_times=host_times, groups=own, findings=[], losses=lost,
        warnings=[*warnings, *more, *_residues(hours, limits)], notes=_notes(period, found),
        currency=prices.currency, has_prices=bool(prices.rows),
    )  # fmt: skip


def sweep(session: Session, period: Period, prices: Prices, by: str, limits: Thresholds) -> SweepReport:
    """Host time and findings, dearest and longest first. NotFound: no host was recorded in the period."""
    report = host_time(session, period, prices, by, limits)
    session = report.session
    scene = Scene(session, period, limits, {h.host_id: h for h in report.hosts}, report.hours, report.losses)
    programs = session.rows(observed.long_programs(session, period, min(limits.spin_us, limits.least_us)))
    report.findings = [*find_hosts.find(scene), *find_work.find(scene, programs), *find_programs.find(scene, programs)]
    report.findings.sort(
        key=lambda f: (-(f.money or 0.0), -(f.hours or 0.0), f.kind, f.subject, f.start_us, f.host_id or "")
    )
    return report


def _nothing(session: Session, period: Period) -> NotFound:
    table = session.table("host", Scope())
    last = session.rows(table.aggregate(last=table.time.max()))[0]["last"]
    between = f"between {clock(period.since_us)} and {clock(period.until_us)}"
    if last is None:
        return NotFound(f"{session.source}: has no records of hosts", "the agent and `sluice run` write sluice.host")
    return NotFound(
        f"{session.source}: no host was recorded {between}",
        f"the latest record of a host is of {clock(last)}: change --since and --until",
    )


def _by_host(hours: list[HostHour]) -> list[HostTime]:
    by: dict[str, list[HostHour]] = defaultdict(list)
    for hour in hours:
        by[hour.host.host_id].append(hour)
    times = [groups.add_up(own[0].host.host_name, own) for own in by.values()]
    return sorted(times, key=lambda t: (-(t.money_wasted or 0.0), -t.host_ns, t.group))


def _by_day(hours: list[HostHour]) -> list[HostTime]:
    by: dict[str, list[HostHour]] = defaultdict(list)
    for hour in hours:
        by[day_of(hour.window)].append(hour)
    return [groups.add_up(day, by[day]) for day in sorted(by)]


def _residues(hours: list[HostHour], limits: Thresholds) -> list[str]:
    off = [h for h in hours if h.capacity and abs(h.residue) > limits.residue_share * h.capacity]
    if not off:
        return []
    worst = max(off, key=lambda h: abs(h.residue) / h.capacity)
    return [
        f"in {len(off)} of {len(hours)} host-hours the parts miss the capacity by more than "
        f"{limits.residue_share * 100:g} %, at worst by {worst.residue / worst.capacity * 100:.1f} % "
        f"({worst.host.host_name}, {clock(worst.window)}): programs account for more CPU than the host counted"
    ]


def _notes(period: Period, found: list[Host]) -> list[str]:
    silent = [h for h in found if h.is_watched and period.until_us - h.last_us > SILENT_INTERVALS_US]
    return [f"{h.host_name} has no records after {clock(h.last_us)}: what came after is not counted" for h in silent]
