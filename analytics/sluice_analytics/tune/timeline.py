# SPDX-License-Identifier: Apache-2.0
"""A run over time: means over bins, and the gaps in which nothing of it worked."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING

from ..lake.expression import ibis
from ..lake.session import Session
from ..model.activity import by_window
from .run_report import TaskRow, Timeline

if TYPE_CHECKING:
    import ibis.expr.types as ir

BINS = 600
_STEPS_MS = (10, 20, 50, 100, 200, 500)
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)

WORK_CPU_SHARE = 0.01
"""A piece in which a program used this part of one CPU, or more, is work"""

MOVED = ("read_bytes", "write_bytes", "net_rx_bytes", "net_tx_bytes", "rchar", "wchar")
"""Bytes that a program moves: storage, network, reads and writes of any kind"""

WORK_BYTES_PER_S = 64 * 1024
"""So is one in which it moved so many bytes of MOVED a second"""

GAP_US = 1_000_000
"""Shortest gap that is reported, in microseconds; at least GAP_SHARE of the run's wall time too"""

GAP_SHARE = 0.01


def bin_us(start_us: int, end_us: int) -> int:
    """The shortest bin by which a time span has at most BINS bins; bins lie at multiples of their length."""
    for step in itertools.chain((ms * 1000 for ms in _STEPS_MS), (s * 1_000_000 for s in _STEPS_S)):
        if end_us // step - start_us // step < BINS:
            return step
    days = 86_400_000_000
    return -(-(end_us - start_us) // (days * (BINS - 2))) * days


def timeline(
    session: Session, activity: ir.Table, all_programs: ir.Table, tasks: list[TaskRow], start_us: int, end_us: int
) -> Timeline:
    """The curves of a run between two times. Exact in sum: a bin's mean times its length adds up to the totals.

    activity: the run's pieces; all_programs: its programs (model/records.programs).
    """
    step = bin_us(start_us, end_us)
    first = start_us // step
    count = end_us // step - first + 1
    cut = by_window(activity, step, first * step, (first + count) * step)
    rss = ibis.coalesce(cut.rss_bytes, cut.peak_rss_bytes)
    amounts = cut.group_by("window").aggregate(
        cpu_ns=(cut.cpu_user_ns + cut.cpu_system_ns).sum(),
        rss_byte_us=(rss * (cut.to_us - cut.from_us)).cast("float64").sum(),
        **{name: cut[name].sum() for name in ("read_bytes", "write_bytes", "net_rx_bytes", "net_tx_bytes")},
    )
    names = (
        "cpu_cores",
        "rss_bytes",
        "read_bytes_per_s",
        "write_bytes_per_s",
        "net_rx_bytes_per_s",
        "net_tx_bytes_per_s",
    )
    series: dict[str, list[float]] = {name: [0.0] * count for name in names}
    seconds = step / 1e6
    for row in session.rows(amounts):
        at = row["window"] // step - first
        if not 0 <= at < count:
            continue
        series["cpu_cores"][at] = (row["cpu_ns"] or 0) / (step * 1000)
        series["rss_bytes"][at] = (row["rss_byte_us"] or 0) / step
        for name in ("read_bytes", "write_bytes", "net_rx_bytes", "net_tx_bytes"):
            series[name + "_per_s"][at] = (row[name] or 0) / seconds
    series["running_programs"] = _alive(*_by_bin(session, all_programs, step), step, first, count)
    begins: Bins = {}
    ends: Bins = {}
    for task in tasks:
        for bins, at_us in ((begins, task.start_time), (ends, task.end_time)):
            if at_us is not None:
                n, rest = bins.get(at_us // step, (0, 0))
                bins[at_us // step] = (n + 1, rest + step - at_us % step)
    series["running_tasks"] = _alive(begins, ends, step, first, count)
    return Timeline(first * step, step, series)


Bins = dict[int, tuple[int, int]]
"""Bin -> how many times fall in it, and the microseconds from them to its end, summed"""


def _by_bin(session: Session, table: ir.Table, step: int) -> tuple[Bins, Bins]:
    """When programs began, and when they ended."""
    begins = table.select(is_end=ibis.literal(0, "int64"), at=table.program_start_time)
    ends = table.filter(table.end_time.notnull()).select(is_end=ibis.literal(1, "int64"), at=ibis._.end_time)
    times = begins.union(ends)
    length = ibis.literal(step, "int64")
    binned = times.mutate(bin=times["at"] // length, rest=length - times["at"] % length)
    found: tuple[Bins, Bins] = ({}, {})
    for row in session.rows(binned.group_by("is_end", "bin").aggregate(n=binned.count(), rest=binned.rest.sum())):
        found[row["is_end"]][int(row["bin"])] = (int(row["n"]), int(row["rest"]))
    return found


def _alive(begins: Bins, ends: Bins, step: int, first: int, count: int) -> list[float]:
    """Mean number alive in each bin."""
    alive = sum(n for at, (n, _) in begins.items() if at < first) - sum(n for at, (n, _) in ends.items() if at < first)
    means = []
    for at in range(first, first + count):
        began, begin_rest = begins.get(at, (0, 0))
        ended, end_rest = ends.get(at, (0, 0))
        means.append((alive * step + begin_rest - end_rest) / step)
        alive += began - ended
    return means


def is_work(t: ir.Table) -> ir.BooleanValue:
    """Did a program work in this piece? CPU of WORK_CPU_SHARE or bytes of WORK_BYTES_PER_S, in integers."""
    length = t.end_us - t.start_us
    cpu = t.cpu_user_ns.fill_null(0) + t.cpu_system_ns.fill_null(0)
    moved = functools.reduce(operator.add, (t[name].fill_null(0) for name in MOVED))
    share = round(WORK_CPU_SHARE * 1000)
    work: ir.BooleanValue = (cpu > length * share) | (moved * 1_000_000 > length * WORK_BYTES_PER_S)
    return work


def gaps(session: Session, activity: ir.Table, has_tasks: bool, start_us: int, end_us: int) -> list[tuple[int, int]]:
    """Times between start and end that no working piece covers, of GAP_US and GAP_SHARE or longer.

    A run that has tasks works when they do: what lies outside of them is the engine's own doing, such as
    waiting and polling. Pieces are as long as the agent's interval (10 s by default), so that a gap inside of
    a long program begins and ends with an interval, and one shorter than that inside of it is not seen.
    """
    work = activity.filter(is_work(activity))
    if has_tasks:
        work = work.filter(work.task_id.notnull())
    spans = work.group_by("start_us").aggregate(end_us=work.end_us.max())
    until = spans.mutate(_until=spans.end_us.max().over(ibis.cumulative_window(order_by=spans.start_us)))
    next_start = until.start_us.lead().over(ibis.window(order_by=until.start_us))
    quiet = until.mutate(_first=until.start_us, _next=next_start)
    least = max(GAP_US, round((end_us - start_us) * GAP_SHARE))
    first = spans.aggregate(_until=ibis.literal(start_us, "int64"), _next=spans.start_us.min())
    inner = quiet.select("_until", "_next").union(first)
    is_long = inner._next.isnull() | (inner._next - inner._until >= ibis.literal(least, "int64"))
    rows = session.rows(inner.filter(is_long).order_by("_until").select(begin=inner._until, end=inner._next))
    found = [(int(row["begin"]), end_us if row["end"] is None else min(int(row["end"]), end_us)) for row in rows]
    return [(a, b) for a, b in found if b - a >= least]
