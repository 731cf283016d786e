# SPDX-License-Identifier: Apache-2.0
"""A SweepReport as what is printed: a headline, hosts or groups, findings, and what is not known."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import units
from ..prices import add
from ..sweep.attribution import CLASSES, HostHour
from ..sweep.finding import KINDS, Finding
from ..sweep.groups import Group, HostTime
from ..sweep.losses import Loss
from ..sweep.report import SweepReport
from .document import Column, Document, Table

GIB_HOUR = float(1 << 30) * 3.6e12
"""A GiB for an hour, in bytes times nanoseconds."""

MOST = 40
"""Rows of findings and losses in the table; JSON has all"""


def of_report(report: SweepReport) -> Document:
    """The answer of `sluice sweep`."""
    main = _hosts(report) if report.host_times else _groups(report)
    since, until = units.clock(report.period.since_us), units.clock(report.period.until_us)
    return Document(
        title=f"{report.session.source}: {since} to {until}",
        facts=_headline(report),
        tables=[main, _findings(report), _losses(report)],
        notes=[*report.notes, *_remarks(report)],
        warnings=report.warnings,
        data=_data(report),
        main=main.name,
        currency=report.currency,
    )


def _share_of(time: HostTime, *classes: str) -> str:
    share = time.share(*classes)
    return units.DASH if share is None else f"{share * 100:.1f}%"


def _headline(report: SweepReport) -> list[tuple[str, str]]:
    total = report.total
    hours = total.host_ns / 3.6e12
    facts = [
        ("hosts", f"{total.hosts}, {hours:,.2f} host-hours, {total.capacity_ns / 3.6e12:,.2f} CPU-hours"),
        ("used", f"{_share_of(total, 'runs')} by runs, {_share_of(total, 'outside')} by other programs, "
                 f"{_share_of(total, 'other')} by no recorded program"
                 + (f", {_share_of(total, 'stolen')} taken by the hypervisor" if total.cpu_ns["stolen"] else "")),
        ("did nothing", f"{_share_of(total, 'reserved')} reserved and unused, {_share_of(total, 'idle_run')} idle with "
                        f"a run, {_share_of(total, 'idle_none')} idle without a run"),
        ("unknown", _share_of(total, "unknown")),
        ("residue", f"{total.residue_share * 100:.2f}% of capacity"),
    ]  # fmt: skip
    if total.money is None:
        money = "unknown: " + (
            "no host of the lake is in the price table" if report.has_prices else "no price table (--prices FILE)"
        )
    else:
        money = units.money(total.money, report.currency)
        money += f", of which {units.money(total.money_wasted, report.currency)} did nothing"
        if total.unpriced_ns:
            money += f"; {total.unpriced_ns / 3.6e12:,.2f} host-hours have no price"
    return [*facts, ("money", money)]


def _hosts(report: SweepReport) -> Table:
    columns = [
        Column("group", report.by), Column("host_ns", "time", "ns"), Column("run_ns", "with runs", "ns"),
        Column("runs_share", "runs", "percent"), Column("outside_share", "outside", "percent"),
        Column("other_share", "other", "percent"), Column("reserved_share", "reserved", "percent"),
        Column("idle_run_share", "idle, run", "percent"), Column("idle_none_share", "idle, no run", "percent"),
        Column("unknown_share", "unknown", "percent"), Column("residue_share", "residue", "percent"),
        Column("money", "money", "money"), Column("money_wasted", "did nothing", "money"), Column("missing", "missing"),
    ]  # fmt: skip
    rows = []
    for time in report.host_times:
        row: dict[str, Any] = {
            "group": time.group, "host_ns": time.host_ns, "run_ns": time.run_ns, "residue_share": time.residue_share,
            "money": time.money, "money_wasted": time.money_wasted, "missing": _missing(time),
        }  # fmt: skip
        row |= {f"{c}_share": time.share(c) for c in CLASSES}
        rows.append(row)
    return Table(f"by_{report.by}", f"By {report.by}: where CPU time went", columns, rows)


def _missing(time: HostTime) -> str:
    parts = []
    unwatched = time.host_ns - time.covered_ns
    if unwatched >= 1_000_000_000:
        parts.append(f"{units.duration(unwatched)} not watched")
    if time.lost:
        parts.append(f"{time.lost:,} records or events lost")
    return ", ".join(parts)


def _groups(report: SweepReport) -> Table:
    columns = [
        Column("group", report.by), Column("hosts", "hosts", "count"), Column("alive_ns", "alive", "ns"),
        Column("cpu_ns", "CPU time", "ns"), Column("memory_gib_hours", "GiB hours", "number"),
        Column("cpu_efficiency", "CPU/asked", "percent"), Column("money_used", "used", "money"),
        Column("money_reserved", "reserved", "money"), Column("money_wasted", "wasted", "money"),
    ]  # fmt: skip
    return Table(
        f"by_{report.by}",
        f"By {report.by}: what was used and requested",
        columns,
        [_group_row(g) for g in report.groups],
        note="reserved: what was requested, if known; money: by the larger share of a host's CPU and memory",
    )


def _group_row(group: Group) -> dict[str, Any]:
    asked, took = group.reserved_cpu_ns, group.reserved_used_cpu_ns
    return {
        **dataclasses.asdict(group),
        "memory_gib_hours": float(f"{group.memory_byte_ns / GIB_HOUR:.4g}"),
        "cpu_efficiency": took / asked if asked and took is not None else None,
    }


def _findings(report: SweepReport) -> Table:
    columns = [
        Column("kind", "finding"), Column("host", "host"), Column("duration_ns", "time", "ns"),
        Column("money", "money", "money"), Column("sentence", "what was seen"),
    ]  # fmt: skip
    rows = [_alike(fs) for fs in _kinds(report.findings)]
    note = "" if rows else "nothing that was paid for did nothing"
    if rows:
        note = "findings overlap and do not add up; each is an observation of the period, not a prediction"
    if len(rows) > MOST:
        note = f"{len(rows) - MOST} smaller ones are in --format json; " + note
    return Table("findings", "What was paid for and did nothing", columns, rows[:MOST], note)


def _kinds(findings: list[Finding]) -> list[list[Finding]]:
    """Findings of one kind about one thing together, in the order of the sum of their money and hours."""
    groups: dict[tuple[str | None, ...], list[Finding]] = {}
    for f in findings:
        groups.setdefault((f.kind, f.subject, f.pipeline, f.task), []).append(f)
    return sorted(
        groups.values(), key=lambda fs: (-sum(f.money or 0.0 for f in fs), -sum(f.hours or 0.0 for f in fs), fs[0].kind)
    )


def _alike(findings: list[Finding]) -> dict[str, Any]:
    first = findings[0]
    hosts = sorted({f.host_name for f in findings if f.host_name})
    hours = [f.hours for f in findings if f.hours is not None]
    more = f" (and {len(findings) - 1} more like it)" if len(findings) > 1 else ""
    return {
        "kind": first.kind,
        "host": ", ".join(hosts) if len(hosts) <= 3 else f"{len(hosts)} hosts",
        "duration_ns": round(sum(hours) * 3.6e12) if hours else None,
        "money": add([f.money for f in findings]),
        "sentence": first.sentence + more,
    }


def _losses(report: SweepReport) -> Table:
    columns = [
        Column("host", "host"), Column("kind", "what is missing"), Column("start_time", "from", "time"),
        Column("end_time", "to", "time"), Column("count", "count", "count"), Column("what", "of"),
    ]  # fmt: skip
    names = {h.host_id: h.host_name for h in report.hosts}
    rows = [_loss(x, names) for x in report.losses]
    note = f"{len(rows) - MOST} more in --format json" if len(rows) > MOST else ""
    return Table("losses", "What the lake does not contain", columns, rows[:MOST], note)


def _loss(loss: Loss, names: dict[str, str]) -> dict[str, Any]:
    return {
        "host": names.get(loss.host_id, loss.host_id[:8]), "host_id": loss.host_id, "kind": loss.kind,
        "start_time": loss.start_us, "end_time": loss.end_us, "count": loss.count, "what": loss.what,
    }  # fmt: skip


def _remarks(report: SweepReport) -> list[str]:
    remarks = []
    if any(x.kind == "NOT_RECORDED" for x in report.losses):
        remarks.append(
            "hosts that only `sluice run` recorded are counted while it ran; the time between is not in the hours"
        )
    if report.by == "task" or report.by == "sample":
        remarks.append("a task that has its run's request has none of its own: reserved is unknown")
    return remarks


def _hour(hour: HostHour) -> dict[str, Any]:
    return {
        "host_id": hour.host.host_id, "host_name": hour.host.host_name, "hour_time": hour.window,
        "host_ns": hour.length_us * 1000, "covered_ns": hour.covered_us * 1000, "run_ns": hour.run_us * 1000,
        "capacity_ns": hour.capacity, "cpu_ns": hour.cpu, "residue_ns": hour.residue, "iowait_ns": hour.iowait_ns,
        "memory_capacity_byte_ns": hour.memory_capacity, "memory_byte_ns": hour.memory,
        "memory_residue_byte_ns": hour.memory_residue, "peak_cores": hour.busiest_cores,
        "peak_memory_bytes": hour.fullest_bytes, "lost": hour.lost, "money": hour.cost,
    }  # fmt: skip


def _time(time: HostTime) -> dict[str, Any]:
    return {
        **dataclasses.asdict(time), "residue_share": time.residue_share, "money_wasted": time.money_wasted,
        "shares": {c: time.share(c) for c in CLASSES},
    }  # fmt: skip


def _data(report: SweepReport) -> dict[str, Any]:
    """What --format json prints. `*_time` are RFC 3339, `*_ns` nanoseconds, `*_byte_ns` bytes times nanoseconds."""
    names = {h.host_id: h.host_name for h in report.hosts}
    return {
        "since_time": report.period.since_us,
        "until_time": report.period.until_us,
        "currency": report.currency,
        "by": report.by,
        "total": _time(report.total),
        "hosts": [
            {
                "host_id": h.host_id, "host_name": h.host_name, "cpus": h.cpus, "memory_bytes": h.memory_bytes,
                "instance_type": h.instance_type, "region": h.region, "first_time": h.first_us, "last_time": h.last_us,
                "is_watched": h.is_watched, "price_per_hour": h.price_per_hour, "price_source": h.price_source,
                "gpu": h.gpu,
            }
            for h in report.hosts
        ],
        "groups": [_time(t) for t in report.host_times] or [_group_row(g) for g in report.groups],
        "hours": [_hour(h) for h in report.hours],
        "findings": [
            {
                "kind": f.kind, "meaning": KINDS[f.kind], "subject": f.subject, "host_id": f.host_id,
                "host_name": f.host_name, "run_id": f.run_id, "pipeline": f.pipeline, "task": f.task,
                "start_time": f.start_us, "end_time": f.end_us, "hours": f.hours, "money": f.money,
                "sentence": f.sentence, "evidence": f.evidence,
            }
            for f in report.findings
        ],
        "losses": [_loss(x, names) for x in report.losses],
        "thresholds": dataclasses.asdict(report.limits),
        "notes": report.notes,
        "warnings": report.warnings,
    }  # fmt: skip
