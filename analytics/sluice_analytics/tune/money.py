# SPDX-License-Identifier: Apache-2.0
"""What a run's hosts are, and what a part of one costs and was requested.

prices.py has the formula of costs. The shares of a piece of work on a host are
  used:     CPU time / (wall * CPUs) and resident byte-seconds / (wall * memory);
  reserved: requested CPUs / CPUs and requested memory / memory.
Both costs are published, for they answer different questions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from ..lake.session import Row, Scope, Session
from ..prices import Prices, cost_of_share, larger_share
from .run_report import Cost, Efficiency


@dataclasses.dataclass
class Host:
    """One host of a run: sizes from its own records, None where it wrote none; price_per_hour None: unknown."""

    host_id: str
    host_name: str
    cpus: int | None = None
    memory_bytes: int | None = None
    instance_type: str | None = None
    cloud: str | None = None
    region: str | None = None
    lifecycle: str | None = None
    price_per_hour: float | None = None
    records: list[Row] = dataclasses.field(default_factory=list)
    """Host records of the run's time, in order"""

    def names(self) -> tuple[str | None, ...]:
        """What a row of a price table is chosen by, in the order of Prices.of_host()."""
        return (self.host_name, self.instance_type, self.region, self.cloud, self.lifecycle)

    def public(self) -> dict[str, Any]:
        """What RunReport.hosts has of it."""
        names = ("host_id", "host_name", "cpus", "memory_bytes", "instance_type", "price_per_hour")
        return {name: getattr(self, name) for name in names}


def unpriced(hosts: Iterable[Host], prices: Prices) -> list[str]:
    """A sentence for each host for which a price table has several rows that differ, or none where nothing else has."""
    said = []
    for host in hosts:
        disagreement = prices.disagreement(*host.names())
        if disagreement:
            used = "its cost is unknown" if host.price_per_hour is None else "the price in its records is used"
            said.append(f"{disagreement}; {used}")
        elif host.price_per_hour is None:
            known = f"instance type {host.instance_type or 'unknown'}, region {host.region or 'unknown'}"
            said.append(f"the price table has no row for {host.host_name} ({known}): its cost is unknown")
    return said


def hosts_of(
    session: Session, names: dict[str, str], start_us: int, end_us: int, prices: Prices | None
) -> dict[str, Host]:
    """The hosts of a run by host_id, from Host records between its start and two minutes after its end.

    names: host_id -> host_name. A row of the user's price table wins over the price that the agent was
    configured with.
    """
    scope = Scope(since_us=start_us, until_us=end_us + 120_000_000, hosts=tuple(sorted(names)))
    t = session.table("host", scope)
    wanted = t.select(
        "time", "host_id", "interval_ns", "cpus", "memory_bytes", "instance_type", "cloud", "region", "lifecycle",
        "price_per_hour", "psi_cpu_some", "psi_memory_some", "psi_memory_full", "psi_io_some", "psi_io_full",
        "cpu_busy_ns", "cpu_capacity_ns", "cpu_steal_ns", "agent_id", "energy_uj", "energy_source",
        "energy_attributed_uj", "energy_unattributed_uj", "energy_idle_uj",
    )  # fmt: skip
    found = {host_id: Host(host_id, name) for host_id, name in names.items()}
    for row in session.rows(wanted.order_by("time")):
        host = found[row["host_id"]]
        host.records.append(row)
        for name in ("cpus", "memory_bytes", "instance_type", "cloud", "region", "lifecycle", "price_per_hour"):
            if row[name] is not None:
                setattr(host, name, row[name])
    for host in found.values():
        row_of_table = prices and prices.of_host(*host.names())
        if row_of_table:
            host.price_per_hour = row_of_table.per_hour
    return found


def used_cost(host: Host | None, cpu_ns: int | None, byte_ns: float | None) -> float | None:
    """Price * the larger share of CPU time and of memory time. byte_ns: resident bytes times nanoseconds.

    A host's CPU share is cpu_ns / cpus, in nanoseconds of the whole host: wall time cancels out.
    """
    if host is None:
        return None
    whole_host_ns = larger_share((cpu_ns, host.cpus), (byte_ns, host.memory_bytes))
    return cost_of_share(host.price_per_hour, whole_host_ns)


def reserved_cost(host: Host | None, wall_ns: int | None, cpus: float | None, memory: int | None) -> float | None:
    """Price * wall time * the larger share of requested CPUs and memory; None where nothing was requested."""
    if host is None:
        return None
    share = larger_share((cpus or None, host.cpus), (memory or None, host.memory_bytes))
    return cost_of_share(host.price_per_hour, wall_ns, share)


def efficiency(
    cpu_ns: int | None,
    wall_ns: int | None,
    peak_bytes: int | None,
    cpus: float | None,
    memory: int | None,
    hosts: list[Host],
) -> Efficiency:
    """CPU and memory efficiency as seff and jobstats define them.

    cpu = TotalCPU / (Elapsed * AllocCPUS) and memory = peak / requested memory (Slurm contribs/seff; jobstats
    has the same two: sum of used CPU seconds / (CPUs * elapsed), largest resident bytes / total). The peak is
    that of all programs together, where records have it, and at least that of the largest one. Where nothing was
    requested the hosts' sizes replace it (over_host).
    """
    over_host = not cpus and not memory
    if over_host:
        if hosts and all(h.cpus for h in hosts):
            cpus = float(sum(h.cpus or 0 for h in hosts))
        if hosts and all(h.memory_bytes for h in hosts):
            memory = min(h.memory_bytes or 0 for h in hosts)  # one program lives on one host
    return Efficiency(
        requested_cpus=None if over_host else cpus,
        requested_memory_bytes=None if over_host else memory,
        cpu=cpu_ns / (wall_ns * cpus) if cpus and wall_ns and cpu_ns is not None else None,
        memory=peak_bytes / memory if memory and peak_bytes is not None else None,
        over_host=over_host,
    )


def cost(used: float | None, reserved: float | None, prices: Prices | None) -> Cost:
    """Both amounts, in the table's currency."""
    return Cost(used=used, reserved=reserved, currency=prices.currency if prices else "USD")
