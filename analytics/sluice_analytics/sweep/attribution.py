# SPDX-License-Identifier: Apache-2.0
"""Where each host's hours went. The parts add up to what the host offered, and what misses is shown.

Of each host and hour, in nanoseconds of CPU:

    capacity = runs + outside + other + stolen + reserved + idle_run + idle_none + unknown + residue

runs, outside: CPU time of programs, inside and outside of runs. other: busy by the host's own count
(/proc/stat), but no program's: interrupts, kernel threads, what the rules leave out. stolen: given to others
by the hypervisor. Idle time is measured by the host (capacity - busy - stolen): reserved is the part of it
that live runs and tasks had requested and did not use, idle_run the rest of what was idle while a run was
there, idle_none what was idle without one. unknown: CPUs times the time that no Host record covers, and
`other` of hours in which events were lost (whose it was is not known). residue: what programs account for
beyond the busy time that the host counted, as a negative number: two clocks that disagree.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ..lake.session import Row, Session
from ..model import hosts
from ..prices import Prices, cost_of_share
from . import use
from .losses import Loss
from .period import Period

CLASSES = ("runs", "outside", "other", "stolen", "reserved", "idle_run", "idle_none", "unknown")
"""The parts of CPU capacity, in the order in which they are reported."""

MEMORY_CLASSES = ("runs", "other", "reserved", "free", "unknown")
"""The parts of memory: resident in runs (pages they share counted in each), all else in use, requested by
runs but free, free, unknown."""


@dataclasses.dataclass(kw_only=True)
class Host:
    """A host in the period. price_per_hour and gpu are None where unknown."""

    host_id: str
    host_name: str
    cpus: int
    memory_bytes: int
    instance_type: str | None
    region: str | None
    first_us: int
    last_us: int
    is_watched: bool
    """A daemon recorded it, not `sluice run` alone"""
    price_per_hour: float | None
    price_source: str
    gpu: float | None


@dataclasses.dataclass(kw_only=True)
class HostHour:
    """One host and hour, or its part in the period. Times in microseconds, CPU in ns, memory in bytes times ns."""

    host: Host
    window: int
    length_us: int
    """Time that the host was there, watched or not"""
    covered_us: int
    run_us: int
    capacity: float
    cpu: dict[str, float]
    """CLASSES"""
    iowait_ns: float
    """Of the idle time, what waited for I/O"""
    memory_capacity: float
    memory: dict[str, float]
    """MEMORY_CLASSES"""
    busiest_cores: float | None
    fullest_bytes: int | None
    lost: int
    """Records and events of this hour that are known to be missing"""
    from_us: int
    to_us: int

    @property
    def residue(self) -> float:
        """What cpu lacks of capacity; below 0: what it has beyond that."""
        return self.capacity - sum(self.cpu.values())

    @property
    def memory_residue(self) -> float:
        """The same of memory."""
        return self.memory_capacity - sum(self.memory.values())

    @property
    def cost(self) -> float | None:
        """Money for the hour: the host's price, for any use; None: unknown."""
        return cost_of_share(self.host.price_per_hour, self.length_us * 1000)


def read_hosts(session: Session, period: Period, prices: Prices) -> tuple[list[Host], list[str]]:
    """The hosts of the period, and warnings: prices that the table leaves open, hosts that two agents recorded."""
    found, warnings = [], []
    for row in sorted(session.rows(hosts.facts(session, period.scope)), key=lambda r: (r["host_name"], r["host_id"])):
        if period.inside(row["first_us"], row["last_us"]) == 0:
            continue
        names = [row[name] for name in ("host_name", "instance_type", "region", "cloud", "lifecycle")]
        price = prices.of_host(*names)
        per_hour = price.per_hour if price else row["price_per_hour"]
        disagreement = prices.disagreement(*names)
        if disagreement:
            used = "its price is unknown" if per_hour is None else "the price in its records is used"
            warnings.append(f"{disagreement}; {used}")
        source = "price table" if price else "records" if per_hour is not None else "unknown"
        found.append(
            Host(
                host_id=row["host_id"], host_name=row["host_name"], cpus=row["cpus"], memory_bytes=row["memory_bytes"],
                instance_type=row["instance_type"], region=row["region"], first_us=row["first_us"],
                last_us=row["last_us"], is_watched=row["daemon_records"] > 0, price_per_hour=per_hour,
                price_source=source, gpu=price.gpu if price else None,
            )
        )  # fmt: skip
    return found, warnings


def _reserved(
    rows: Iterable[Row], tasks: Iterable[Row], used: dict[tuple[Any, ...], Row], parents: dict[str, str]
) -> dict[tuple[str, int], tuple[float, float]]:
    """(host, hour) -> CPU ns and memory byte ns that live runs requested and did not use.

    A run inside another (an engine in a Slurm job) is inside what that one requested: the family's largest
    request counts once. Where no run of the family asked, its tasks' own requests count, each by itself.
    """

    def root(run_id: str) -> str:
        seen = set()
        while run_id in parents and run_id not in seen:
            seen.add(run_id)
            run_id = parents[run_id]
        return run_id

    asked: dict[tuple[str, int, str], dict[str, list[float | None]]] = defaultdict(lambda: {"cpu": [], "memory": []})
    family: dict[tuple[str, int, str], list[str]] = defaultdict(list)
    for row in rows:
        key = (row["host_id"], row["window"], root(row["run_id"]))
        asked[key]["cpu"].append(row["requested_cpu_ns"])
        asked[key]["memory"].append(row["requested_memory"])
        family[key].append(row["run_id"])
    unused: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    known: set[tuple[str, int, str, str]] = set()
    for key, requests in asked.items():
        for i, (kind, column) in enumerate((("cpu", "cpu_ns"), ("memory", "memory"))):
            amounts = [x for x in requests[kind] if x is not None]
            if not amounts:
                continue
            known.add((*key, kind))
            took = sum((used.get((key[0], key[1], run)) or {}).get(column) or 0.0 for run in family[key])
            unused[key[:2]][i] += max(0.0, max(amounts) - took)
    for row in tasks:
        if row["run_id"] is None:
            continue
        key = (row["host_id"], row["window"], root(row["run_id"]))
        for i, (kind, wanted, column) in enumerate(
            (("cpu", "requested_cpu_ns", "cpu_ns"), ("memory", "requested_memory", "memory"))
        ):
            if row[wanted] is not None and (*key, kind) not in known:
                unused[key[:2]][i] += max(0.0, row[wanted] - row[column])
    return {key: (cpu, memory) for key, (cpu, memory) in unused.items()}


def attribute(session: Session, period: Period, found: list[Host], losses: list[Loss]) -> list[HostHour]:
    """Each host's hours in the period, in order of host and time."""
    scope = period.scope
    covered: dict[tuple[str, int], Row] = {
        (r["host_id"], r["window"]): r
        for r in session.rows(hosts.hours(session, scope, period.window_us, period.since_us, period.until_us))
    }
    used = {(r["host_id"], r["window"], r["run_id"]): r for r in session.rows(use.by_run(session, period))}
    programs: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for (host_id, window, run_id), row in used.items():
        programs[host_id, window][run_id is None] += row["cpu_ns"] or 0.0
    parents = {r["run_id"]: r["parent_run_id"] for r in session.rows(use.parents(session, period))}
    reserved = _reserved(
        session.rows(use.run_requests(session, period)), session.rows(use.task_requests(session, period)), used, parents
    )
    result = []
    for host in found:
        own = [x for x in losses if x.host_id == host.host_id]
        for window in _windows(period, host):
            start, end = (
                max(window, period.since_us, host.first_us),
                min(window + period.window_us, period.until_us, host.last_us),
            )
            unwatched = sum(
                max(0, min(x.end_us, end) - max(x.start_us, start)) for x in own if x.kind == "NOT_RECORDED"
            )
            record = covered.get((host.host_id, window))
            length = max(end - start - unwatched, record["covered_us"] if record else 0)
            if length > 0:
                hidden = [x for x in own if x.count is not None and x.start_us < end and x.end_us >= start]
                result.append(
                    _hour(host, window, length, record, programs=programs[host.host_id, window],
                          reserved=reserved.get((host.host_id, window), (0.0, 0.0)), losses=hidden, start_us=start,
                          end_us=end)
                )  # fmt: skip
    return result


def _windows(period: Period, host: Host) -> range:
    first = max(period.since_us, host.first_us) // period.window_us
    last = (min(period.until_us, host.last_us) - 1) // period.window_us
    return range(first * period.window_us, (last + 1) * period.window_us, period.window_us)


def _hour(
    host: Host,
    window: int,
    length_us: int,
    row: Row | None,
    *,
    programs: list[float],
    reserved: tuple[float, float],
    losses: list[Loss],
    start_us: int,
    end_us: int,
) -> HostHour:
    covered_us = row["covered_us"] if row else 0
    missing_ns = (length_us - covered_us) * 1000.0
    cpu = dict.fromkeys(CLASSES, 0.0)
    cpu["runs"], cpu["outside"] = programs
    cpu["unknown"] = host.cpus * missing_ns
    capacity = cpu["unknown"]
    memory = dict.fromkeys(MEMORY_CLASSES, 0.0)
    memory["unknown"] = memory_capacity = host.memory_bytes * missing_ns
    busy = 0.0
    if row:
        capacity += row["cpu_capacity_ns"]
        busy = row["cpu_busy_ns"]
        cpu["stolen"] = row["cpu_steal_ns"]
        idle = max(0.0, row["cpu_idle_ns"])
        present = min(idle, max(0.0, row["cpu_idle_run_ns"]))
        cpu["reserved"] = min(present, reserved[0])
        cpu["idle_run"] = present - cpu["reserved"]
        cpu["idle_none"] = idle - present
        memory_capacity += row["memory_capacity"]
        memory["runs"] = row["memory_attributed"]
        memory["reserved"] = min(row["memory_available"], reserved[1])
        memory["free"] = row["memory_available"] - memory["reserved"]
        memory["other"] = max(0.0, row["memory_capacity"] - row["memory_available"] - row["memory_attributed"])
    used = programs[0] + programs[1]
    if used > busy:  # some of it fell into the time that no Host record covers
        cpu["unknown"] -= min(cpu["unknown"], used - busy)
    else:
        cpu["unknown" if any(x.hides_use for x in losses) else "other"] += busy - used
    return HostHour(
        host=host, window=window, length_us=length_us, covered_us=covered_us, run_us=row["run_us"] if row else 0,
        capacity=capacity, cpu=cpu, iowait_ns=row["cpu_iowait_ns"] if row else 0.0, memory_capacity=memory_capacity,
        memory=memory, busiest_cores=row["busiest_cores"] if row else None,
        fullest_bytes=row["fullest_bytes"] if row else None,
        lost=sum(x.count or 0 for x in losses if start_us <= x.end_us < end_us),  # counted once, where it ends
        from_us=start_us, to_us=end_us,
    )  # fmt: skip
