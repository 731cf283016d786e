# SPDX-License-Identifier: Apache-2.0
"""What each host offered and did, hour by hour: capacity, busy and idle time, memory, and when runs were there.

A Host record covers the interval_ns before it. Only those times are known: nothing is interpolated between
them. Where two agents recorded a host at the same time (`sluice run` beside the daemon), the overlap counts
once. CPU times are nanoseconds of CPU, memory amounts are bytes times nanoseconds; sums are float64, since
an interval may lie in two windows.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

from ..lake.expression import ibis
from ..lake.session import ALL, Scope, Session
from ..lake.statements import columns_of
from .activity import cut
from .records import runs

if TYPE_CHECKING:
    import ibis.expr.types as ir

AMOUNTS = ("cpu_capacity_ns", "cpu_busy_ns", "cpu_iowait_ns", "cpu_steal_ns", "cpu_attributed_ns")
"""The columns of a Host record that add up over time."""

COLUMNS = (
    "time", "host_id", "host_name", "boot_id", "agent_id", "seq", "run_id", "interval_ns", "cpus", "memory_bytes",
    "memory_available_bytes", "rss_attributed_bytes", "instance_type", "price_per_hour", "cloud", "region",
    "lifecycle", *AMOUNTS,
)  # fmt: skip
"""The columns of a Host record that intervals() keeps."""

MOVED = ("disk_read_bytes", "disk_write_bytes", "net_rx_bytes", "net_tx_bytes")
"""The columns of a Host record that moved_bytes adds up."""

LEAST_NS = 500_000_000
"""Shorter intervals have sums but no rates: /proc/stat counts in ticks of 10 ms."""


def intervals(session: Session, scope: Scope = ALL) -> ir.Table:
    """One row a Host record and the time that it alone covers: start_us (inclusive) to end_us.

    Beside COLUMNS: start_us, end_us (int64 microseconds); gap_us (int64, time before
    start_us that no record covers; null for a host's first); overlap_us (int64, what another record had
    covered already, left out); cores (float64, mean CPUs busy; null for intervals under LEAST_NS);
    before_boot_id, before_agent_id, before_run_id (of the record before); moved_bytes (float64, MOVED together, null
    where none is known). AMOUNTS and moved_bytes are scaled to the time that is left (float64). Records that cover no
    further time are left out.
    """
    record = session.table("host", scope)
    amounts = [record[name] for name in MOVED]
    moved = functools.reduce(operator.add, (amount.fill_null(0) for amount in amounts))
    is_known = functools.reduce(operator.or_, (amount.notnull() for amount in amounts))
    record = record.select(*COLUMNS, moved_bytes=ibis.cases((is_known, moved)))
    order = [record.time.asc(), record.seq.asc()]
    before = ibis.window(group_by=record.host_id, order_by=order)
    all_before = ibis.window(group_by=record.host_id, order_by=order, rows=(None, -1))
    known = record.mutate(
        _begin=record.time - record.interval_ns // 1000,
        _reported_until=record.time.max().over(all_before),
        before_boot_id=record.boot_id.lag().over(before),
        before_agent_id=record.agent_id.lag().over(before),
        before_run_id=record.run_id.lag().over(before),
    )
    start = ibis.greatest(known._begin, ibis.coalesce(known._reported_until, known._begin))
    placed = known.mutate(start_us=start, end_us=known.time).filter(ibis._.end_us > ibis._.start_us)
    kept = (placed.end_us - placed.start_us).cast("float64") / (placed.end_us - placed._begin).cast("float64")
    rate = placed.cpu_busy_ns.cast("float64") / placed.interval_ns.cast("float64").nullif(0.0)
    placed = placed.mutate(
        gap_us=placed.start_us - placed._reported_until,
        overlap_us=placed.start_us - placed._begin,
        cores=ibis.cases((placed.interval_ns >= LEAST_NS, ibis.least(rate, placed.cpus.cast("float64")))),
        **{name: placed[name] * kept for name in (*AMOUNTS, "moved_bytes")},
    )
    return session.kept(placed.drop("_begin", "_reported_until"))


def merged(table: ir.Table, *keys: str, slack_us: int = 0, sums: tuple[str, ...] = ()) -> ir.Table:
    """The union of the intervals start_us to end_us of each key: keys, start_us, end_us, disjoint, in no order.

    Intervals that are no more than slack_us apart are joined. sums: columns added up over what is joined.
    """
    order = [table.start_us.asc(), table.end_us.asc()]
    before = ibis.window(group_by=list(keys), order_by=order, rows=(None, -1))
    marked = table.mutate(_reported=table.end_us.max().over(before))
    is_new = marked._reported.isnull() | (marked.start_us > marked._reported + slack_us)
    marked = marked.mutate(_is_new=is_new.cast("int64"))
    until = ibis.window(group_by=list(keys), order_by=[marked.start_us.asc(), marked.end_us.asc()], rows=(None, 0))
    islands = marked.mutate(_island=marked._is_new.sum().over(until))
    grouped = islands.group_by(*keys, "_island").aggregate(
        start_us=islands.start_us.min(),
        end_us=islands.end_us.max(),
        **{name: islands[name].sum() for name in sums},
    )
    return grouped.drop("_island")


def presence(session: Session, scope: Scope = ALL) -> ir.Table:
    """When at least one run was alive on a host: host_id, start_us, end_us, disjoint.

    A run that has not ended is alive until its last record.
    """
    alive = runs(session, scope)
    alive = alive.select("host_id", start_us=alive.start_time, end_us=ibis.coalesce(alive.end_time, alive.time))
    return merged(alive.filter(alive.end_us > alive.start_us), "host_id")


def with_presence(session: Session, scope: Scope, window_us: int, since_us: int, until_us: int) -> ir.Table:
    """intervals() cut at windows (activity.cut), with run_us (int64): for how much of it a run was alive there."""
    parts = cut(intervals(session, scope), window_us, since_us, until_us)
    alive = cut(presence(session, scope), window_us, since_us, until_us)
    alive = alive.select("host_id", "window", alive_from=alive.from_us, alive_to=alive.to_us)
    both = parts.select("host_id", "window", "from_us", "to_us").inner_join(alive, ["host_id", "window"])
    until: Any = ibis.least(both.to_us, both.alive_to)
    both = both.mutate(_both_us=until - ibis.greatest(both.from_us, both.alive_from))
    both = both.filter(both._both_us > 0)
    present = both.group_by("host_id", "window", "from_us").aggregate(_run_us=both._both_us.sum().cast("int64"))
    joined = parts.left_join(present, ["host_id", "window", "from_us"])
    columns = {name: joined[name] for name in columns_of(parts)}
    return joined.select(**columns, run_us=joined._run_us.fill_null(0))


def hours(session: Session, scope: Scope, window_us: int, since_us: int, until_us: int) -> ir.Table:
    """One row a host and window, of the times that Host records cover.

    int64: covered_us; run_us (of it, a run was present); from_us, to_us (first and last moment covered);
    records, cpus, memory_bytes, fullest_bytes (largest memory in use: not available). float64: AMOUNTS;
    cpu_idle_ns and, of it, cpu_idle_run_ns while a run was present (not busy and not stolen: waiting for
    I/O is idle); memory_capacity, memory_available, memory_attributed (bytes times ns); busiest_cores.
    """
    part = with_presence(session, scope, window_us, since_us, until_us)
    length_us = part.to_us - part.from_us
    ns = length_us.cast("float64") * 1000.0
    idle = (part.cpu_capacity_ns - part.cpu_busy_ns - part.cpu_steal_ns) * part.share
    part = part.mutate(
        _length_us=length_us,
        _idle=idle,
        _idle_run=idle * (part.run_us.cast("float64") / length_us.cast("float64").nullif(0.0)),
        _memory=part.memory_bytes * ns,
        _available=part.memory_available_bytes * ns,
        _rss=part.rss_attributed_bytes * ns,
        _full=part.memory_bytes - part.memory_available_bytes,
        **{name: part[name] * part.share for name in AMOUNTS},
    )
    return part.group_by("host_id", "window").aggregate(
        host_name=part.host_name.max(),
        covered_us=part._length_us.sum().cast("int64"),
        run_us=part.run_us.sum().cast("int64"),
        from_us=part.from_us.min(),
        to_us=part.to_us.max(),
        records=part.count(),
        cpus=part.cpus.max(),
        memory_bytes=part.memory_bytes.max(),
        cpu_idle_ns=part._idle.sum(),
        cpu_idle_run_ns=part._idle_run.sum(),
        memory_capacity=part._memory.sum(),
        memory_available=part._available.sum(),
        memory_attributed=part._rss.sum(),
        busiest_cores=part.cores.max(),
        fullest_bytes=part._full.max(),
        **{name: part[name].sum() for name in AMOUNTS},
    )


def facts(session: Session, scope: Scope = ALL) -> ir.Table:
    """One row a host: host_name, cpus, memory_bytes, instance_type, price_per_hour, cloud, region and lifecycle.

    first_us, last_us: when its records begin and end; interval_ns: the agent's interval (the mean
    of full ones); overlap_us: time that two records cover. only_runs: no daemon recorded it.
    """
    row = intervals(session, scope)
    return row.group_by("host_id").aggregate(
        host_name=row.host_name.max(),
        cpus=row.cpus.max(),
        memory_bytes=row.memory_bytes.max(),
        instance_type=row.instance_type.max(),
        price_per_hour=row.price_per_hour.max(),
        cloud=row.cloud.max(),
        region=row.region.max(),
        lifecycle=row.lifecycle.max(),
        first_us=row.start_us.min(),
        last_us=row.end_us.max(),
        interval_ns=row.interval_ns.max(),
        overlap_us=row.overlap_us.sum().cast("int64"),
        daemon_records=row.run_id.isnull().cast("int64").sum().cast("int64"),
    )


def gaps(session: Session, scope: Scope = ALL, least_us: int = 0) -> ir.Table:
    """Times longer than least_us that no Host record covers: host_id, start_us, end_us, and whose records adjoin them.

    interval_ns: the host's longest interval; restarted (boolean): the host booted in between; only_runs: both
    neighbours are records of a `sluice run`,
    which watches a host no longer than its command lasts.
    """
    row = intervals(session, scope)
    usual = ibis.window(group_by=row.host_id)
    row = row.mutate(_interval=row.interval_ns.max().over(usual)).filter(row.gap_us > least_us)
    return row.select(
        "host_id",
        "host_name",
        start_us=row.start_us - row.gap_us,
        end_us=row.start_us,
        interval_ns=row._interval,
        restarted=row.before_boot_id != row.boot_id,
        only_runs=row.before_run_id.notnull() & row.run_id.notnull(),
    )


def levels(session: Session, scope: Scope, since_us: int, until_us: int) -> ir.Table:
    """How long each host was how busy: host_id, cpu_percent, memory_percent (int64, 0 to 100, rounded down), length_us.

    Of intervals, so that a burst shorter than the agent's interval counts as its mean over the interval.
    """
    row = intervals(session, scope)
    since, until = ibis.literal(since_us, "int64"), ibis.literal(until_us, "int64")
    row = row.filter((row.end_us > since) & (row.start_us < until) & row.cores.notnull())
    used = row.memory_bytes - row.memory_available_bytes
    row = row.mutate(
        cpu_percent=(row.cores * 100.0 / row.cpus).floor().cast("int64"),
        memory_percent=used * 100 // row.memory_bytes.nullif(0),
        _length=row.end_us - row.start_us,
    )
    return row.group_by("host_id", "cpu_percent", "memory_percent").aggregate(length_us=row._length.sum().cast("int64"))


def spikes(session: Session, scope: Scope, least_share: float, since_us: int, until_us: int) -> ir.Table:
    """Stretches without a run in which a host was busier than least_share of its CPUs.

    Columns: host_id, start_us, end_us (int64), cpu_busy_ns (float64).
    """
    part = with_presence(session, scope, until_us - since_us + 1, since_us, until_us)
    high = part.filter((part.run_us == 0) & (part.cores >= part.cpus * least_share))
    busy = high.cpu_busy_ns * high.share
    high = high.select("host_id", start_us=high.from_us, end_us=high.to_us, cpu_busy_ns=busy)
    return merged(high, "host_id", slack_us=1_000_000, sums=("cpu_busy_ns",))
