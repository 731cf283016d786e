# SPDX-License-Identifier: Apache-2.0
"""What each run, pipeline, task, tool, sample, container, user or tag used, requested and left unused.

Money of a group on a host in an hour, by the formula of prices.py: used, of its shares of the host's CPU time and
memory time; reserved, of what was requested, where that is known; wasted = reserved less used, not below 0. The money
of groups does not add up to the host's; the money of the classes of host time does.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from ..lake.session import Row, Session
from ..prices import larger_share
from . import use
from .attribution import CLASSES, HostHour
from .period import Period


@dataclasses.dataclass
class Group:
    """One line of --by. CPU in ns, memory in byte ns, times in ns; money None: a host's price is unknown.

    alive_ns: time in which at least one of its programs was alive, summed over hosts. reserved_*: None where
    nothing is known of a request. unpriced_ns: of alive_ns, on hosts without a price.
    """

    group: str
    known: bool
    programs: int = 0
    hosts: int = 0
    alive_ns: int = 0
    cpu_ns: float = 0.0
    memory_byte_ns: float = 0.0
    reserved_cpu_ns: float | None = None
    reserved_used_cpu_ns: float | None = None
    """CPU time of those runs and tasks alone whose request is known"""
    reserved_memory_byte_ns: float | None = None
    money_used: float | None = None
    money_reserved: float | None = None
    money_wasted: float | None = None
    unpriced_ns: int = 0


def find(session: Session, period: Period, hours: list[HostHour], by: str) -> list[Group]:
    """The groups of one --by but host and day, dearest and largest first."""
    at = {(h.host.host_id, h.window): h for h in hours}
    found: dict[str | None, Group] = {}
    hosts: dict[str | None, set[str]] = defaultdict(set)
    requests, pipelines = _requests(session, period, by)

    def group_of(name: str | None) -> Group:
        label = name if name is not None else "(none)"
        if by == "run" and name is not None:
            label = f"{pipelines.get(name) or 'run'} {name}"
        return found.setdefault(name, Group(label, name is not None))

    for row in session.rows(use.by_group(session, period, by)):
        hour = at.get((row["host_id"], row["window"]))
        if hour is None:
            continue
        group = group_of(row["group"])
        hosts[row["group"]].add(row["host_id"])
        cpu, memory = row["cpu_ns"] or 0.0, row["memory"] or 0.0
        group.cpu_ns += cpu
        group.memory_byte_ns += memory
        group.programs = max(group.programs, row["programs"])
        group.alive_ns += row["alive_us"] * 1000
        if hour.cost is None:
            group.unpriced_ns += row["alive_us"] * 1000
        else:
            group.money_used = (group.money_used or 0.0) + hour.cost * _share(hour, cpu, memory)
    for request in requests:
        hour = at.get((request.host_id, request.window))
        if hour is None:
            continue
        group = group_of(request.group)
        hosts[request.group].add(request.host_id)
        if request.cpu_ns is not None:
            group.reserved_cpu_ns = (group.reserved_cpu_ns or 0.0) + request.cpu_ns
            group.reserved_used_cpu_ns = (group.reserved_used_cpu_ns or 0.0) + request.used_cpu_ns
        if request.memory is not None:
            group.reserved_memory_byte_ns = (group.reserved_memory_byte_ns or 0.0) + request.memory
        if hour.cost is not None:
            took = _share(hour, request.used_cpu_ns, request.used_memory)
            held = max(took, _share(hour, request.cpu_ns or 0.0, request.memory or 0.0))
            group.money_reserved = (group.money_reserved or 0.0) + hour.cost * held
            group.money_wasted = (group.money_wasted or 0.0) + hour.cost * (held - took)
    for name, group in found.items():
        group.hosts = len(hosts[name])
    return sorted(found.values(), key=lambda g: (-(g.money_used or 0.0), -g.cpu_ns, g.group))


def _share(hour: HostHour, cpu_ns: float, memory: float) -> float:
    return min(1.0, larger_share((cpu_ns, hour.capacity), (memory, hour.memory_capacity)) or 0.0)


@dataclasses.dataclass
class _Request:
    """What one run or task requested on a host in an hour (None: unknown), and what it used of the host."""

    host_id: str
    window: int
    group: str | None
    cpu_ns: float | None
    memory: float | None
    used_cpu_ns: float
    used_memory: float


def _requests(session: Session, period: Period, by: str) -> tuple[list[_Request], dict[str, str | None]]:
    """The requests, and the pipelines of runs. A run by its request, else by its tasks' own; others have none."""
    if by not in ("run", "pipeline", "task", "sample"):
        return [], {}
    tasks = session.rows(use.task_requests(session, period))

    def of_task(row: Row, group: str | None) -> _Request:
        return _Request(
            row["host_id"], row["window"], group, row["requested_cpu_ns"], row["requested_memory"], row["cpu_ns"],
            row["memory"],
        )  # fmt: skip

    if by in ("task", "sample"):
        return [of_task(row, row[by]) for row in tasks], {}
    used = {(r["host_id"], r["window"], r["run_id"]): r for r in session.rows(use.by_run(session, period))}
    pipelines: dict[str, str | None] = {row["run_id"]: row["pipeline"] for row in tasks}
    found = []
    asked = set()
    for row in session.rows(use.run_requests(session, period)):
        pipelines[row["run_id"]] = row["pipeline"]
        if row["requested_cpu_ns"] is None and row["requested_memory"] is None:
            continue
        key = (row["host_id"], row["window"], row["run_id"])
        asked.add(key)
        own = used.get(key)
        found.append(
            _Request(
                row["host_id"], row["window"], row["run_id"] if by == "run" else row["pipeline"],
                row["requested_cpu_ns"], row["requested_memory"],
                own["cpu_ns"] if own else 0.0, own["memory"] if own else 0.0,
            )
        )  # fmt: skip
    for row in tasks:
        if (row["host_id"], row["window"], row["run_id"]) not in asked:
            found.append(of_task(row, row["run_id"] if by == "run" else row["pipeline"]))
    return found, pipelines


@dataclasses.dataclass
class HostTime:
    """Host time added up: of a host, a day, or all. CPU by class in ns, times in ns; money None: no price known.

    residue_share: of capacity. money: of hours with a price; by_class splits it by CPU time and adds up to it.
    """

    group: str
    hosts: int
    host_ns: int
    covered_ns: int
    run_ns: int
    unpriced_ns: int
    capacity_ns: float
    cpu_ns: dict[str, float]
    residue_ns: float
    iowait_ns: float
    memory_byte_ns: dict[str, float]
    memory_capacity_byte_ns: float
    memory_residue_byte_ns: float
    money: float | None
    money_by_class: dict[str, float] | None
    lost: int

    @property
    def residue_share(self) -> float:
        """What the parts miss of the capacity."""
        return self.residue_ns / self.capacity_ns if self.capacity_ns else 0.0

    def share(self, *classes: str) -> float | None:
        """The part of capacity that classes are; None: there was no capacity."""
        return sum(self.cpu_ns[c] for c in classes) / self.capacity_ns if self.capacity_ns else None

    @property
    def money_wasted(self) -> float | None:
        """Money for time that was reserved and unused, or idle."""
        if self.money_by_class is None:
            return None
        return sum(self.money_by_class[c] for c in ("reserved", "idle_run", "idle_none"))


def add_up(name: str, hours: list[HostHour]) -> HostTime:
    """Hours added up."""
    priced = [(h, h.cost) for h in hours if h.cost is not None]
    by_class: dict[str, float] | None = None
    if priced:
        by_class = dict.fromkeys(CLASSES, 0.0)
        for hour, cost in priced:
            whole = sum(hour.cpu.values())
            for c in CLASSES:
                by_class[c] += (cost or 0.0) * hour.cpu[c] / whole if whole else 0.0
    return HostTime(
        group=name,
        hosts=len({h.host.host_id for h in hours}),
        host_ns=sum(h.length_us for h in hours) * 1000,
        covered_ns=sum(h.covered_us for h in hours) * 1000,
        run_ns=sum(h.run_us for h in hours) * 1000,
        unpriced_ns=sum(h.length_us for h in hours if h.cost is None) * 1000,
        capacity_ns=sum(h.capacity for h in hours),
        cpu_ns={c: sum(h.cpu[c] for h in hours) for c in CLASSES},
        residue_ns=sum(h.residue for h in hours),
        iowait_ns=sum(h.iowait_ns for h in hours),
        memory_byte_ns={c: sum(h.memory[c] for h in hours) for c in hours[0].memory} if hours else {},
        memory_capacity_byte_ns=sum(h.memory_capacity for h in hours),
        memory_residue_byte_ns=sum(h.memory_residue for h in hours),
        money=sum(cost or 0.0 for _, cost in priced) if priced else None,
        money_by_class=by_class,
        lost=sum(h.lost for h in hours),
    )
