# SPDX-License-Identifier: Apache-2.0
"""Findings about hosts: idle after their last run, forgotten, busy with something else, over-sized, with GPUs."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator

from .. import units
from ..lake.session import Row
from ..model import hosts
from . import observed, use
from .attribution import Host
from .finding import Finding, Scene


def find(scene: Scene) -> Iterator[Finding]:
    """All findings about hosts."""
    rows: dict[str, Row] = {
        r["host_id"]: r for r in scene.session.rows(observed.without_run(scene.session, scene.period))
    }
    others: dict[str, list[Row]] = defaultdict(list)
    for row in scene.session.rows(use.outside(scene.session, scene.period)):
        others[row["host_id"]].append(row)
    for host in scene.hosts.values():
        times = rows.get(host.host_id)
        if times is None or not host.is_watched:  # `sluice run` watches a host while its command runs alone
            continue
        yield from _without_runs(scene, host, times, others[host.host_id])
    yield from _spikes(scene, {h.host_id for h in scene.hosts.values() if h.is_watched}, others)
    yield from _oversized(scene, {h for h, r in rows.items() if r["last_run_us"] is not None})
    yield from _gpus(scene)


def _by_whom(rows: list[Row], most: int = 3) -> list[dict[str, object]]:
    """The programs outside runs that used most CPU, by name."""
    top = sorted((r for r in rows if r["cpu_ns"]), key=lambda r: -r["cpu_ns"])[:most]
    return [{"comm": r["comm"], "cpu_ns": r["cpu_ns"], "programs": r["programs"]} for r in top]


def _names(top: list[dict[str, object]]) -> str:
    return ", ".join(str(x["comm"]) for x in top) or "no program that records name"


def _without_runs(scene: Scene, host: Host, row: Row, others: list[Row]) -> Iterator[Finding]:
    limits = scene.limits
    no_run_us, busy_ns = row["no_run_us"], row["no_run_busy_ns"]
    busy = busy_ns / row["no_run_capacity_ns"] if row["no_run_capacity_ns"] else 0.0
    top = _by_whom(others)
    evidence = {
        "watched_ns": no_run_us * 1000, "busy_cores": busy * host.cpus, "busy_share": busy, "cpus": host.cpus,
        "moved_bytes": row["no_run_moved_bytes"],
        "first_heard_time": host.first_us, "last_heard_time": host.last_us, "last_run_time": row["last_run_us"],
        "programs": top,
    }  # fmt: skip
    start, end = max(host.first_us, scene.period.since_us), min(host.last_us, scene.period.until_us)
    if busy >= limits.busy_share and no_run_us >= limits.least_us:
        yield scene.finding(
            "BUSY_WITHOUT_RUNS", host.host_id, no_run_us, subject=host.host_name, start_us=start, end_us=end,
            sentence=f"{host.host_name} had {units.duration(no_run_us * 1000)} without a run and was "
            f"{units.percent(busy)} busy in it ({busy * host.cpus:.2f} of {host.cpus} CPUs), most of it by "
            f"{_names(top)}",
            evidence=evidence,
        )  # fmt: skip
    if row["last_run_us"] is None:
        moves = limits.host_moves(row["no_run_moved_bytes"], no_run_us)
        if no_run_us >= limits.forgotten_us and busy < limits.busy_share and not moves:
            yield scene.finding(
                "FORGOTTEN_HOST", host.host_id, no_run_us, subject=host.host_name, start_us=start, end_us=end,
                sentence=f"{host.host_name} was watched for {units.duration(no_run_us * 1000)} and had no run; "
                f"{busy * host.cpus:.2f} of {host.cpus} CPUs were busy on average",
                evidence=evidence,
            )  # fmt: skip
        return
    after = row["after_us"]
    after_busy = row["after_busy_ns"] / row["after_capacity_ns"] if row["after_capacity_ns"] else 0.0
    moves = limits.host_moves(row["after_moved_bytes"], after)
    if after >= limits.after_run_us and after_busy < limits.busy_share and not moves:
        evidence |= {
            "watched_ns": after * 1000, "busy_cores": after_busy * host.cpus, "busy_share": after_busy,
            "moved_bytes": row["after_moved_bytes"],
        }  # fmt: skip
        yield scene.finding(
            "IDLE_AFTER_RUN", host.host_id, after, subject=host.host_name, start_us=row["last_run_us"], end_us=end,
            sentence=f"{host.host_name} was up for {units.duration(after * 1000)} after its last run ended at "
            f"{units.clock(row['last_run_us'])}; {after_busy * host.cpus:.2f} of {host.cpus} CPUs were busy on average",
            evidence=evidence,
        )  # fmt: skip


def _spikes(scene: Scene, watched: set[str], others: dict[str, list[Row]]) -> Iterator[Finding]:
    limits, period = scene.limits, scene.period
    by_host: dict[str, list[Row]] = defaultdict(list)
    expression = hosts.spikes(scene.session, period.scope, limits.spike_share, period.since_us, period.until_us)
    for row in scene.session.rows(expression):
        by_host[row["host_id"]].append(row)
    for host_id, rows in by_host.items():
        rows.sort(key=lambda r: r["start_us"])
        lengths = [r["end_us"] - r["start_us"] for r in rows]
        if host_id not in watched or len(rows) < limits.spike_least or max(lengths) > limits.spike_us:
            continue
        distances = [b["start_us"] - a["start_us"] for a, b in itertools.pairwise(rows)]
        middle = statistics.median(distances)
        steady = sum(abs(d - middle) <= limits.spike_jitter * middle for d in distances)
        if steady * 2 < len(distances):
            continue
        host = scene.hosts[host_id]
        span = rows[-1]["end_us"] - rows[0]["start_us"]
        cores = sum(r["cpu_busy_ns"] for r in rows) / (sum(lengths) * 1000)
        top = _by_whom(others[host_id])
        yield scene.finding(
            "PERIODIC_SPIKES", host_id, span, subject=host.host_name, start_us=rows[0]["start_us"],
            end_us=rows[-1]["end_us"],
            sentence=f"{host.host_name} had {len(rows)} bursts of {units.duration(statistics.median(lengths) * 1000)} "
            f"({cores:.2f} CPUs), one about every {units.duration(middle * 1000)}, and no run in them; "
            f"outside runs most CPU went to {_names(top)}",
            evidence={
                "bursts": len(rows), "median_distance_ns": middle * 1000,
                "median_length_ns": statistics.median(lengths) * 1000,
                "steady_distances": steady, "distances": len(distances), "mean_cores": cores,
                "bursts_ns": sum(lengths) * 1000, "first_time": rows[0]["start_us"], "last_time": rows[-1]["start_us"],
                "programs": top,
            },
        )  # fmt: skip


PERCENTILES = (50, 95, 99)


def weighted_percentile(levels: Iterable[tuple[float, float]], percent: float) -> float:
    """The smallest level at or under which the weight reaches percent of all (nearest rank, by weight).

    DuckDB has no weighted quantile, and neither has Ibis.
    """
    ordered = sorted(levels)
    wanted = sum(weight for _, weight in ordered) * percent / 100
    seen = 0.0
    for level, weight in ordered:
        seen += weight
        if seen >= wanted:
            return level
    return ordered[-1][0]


def _oversized(scene: Scene, with_runs: set[str]) -> Iterator[Finding]:
    period, limits = scene.period, scene.limits
    levels: dict[str, list[Row]] = defaultdict(list)
    for row in scene.session.rows(hosts.levels(scene.session, period.scope, period.since_us, period.until_us)):
        levels[row["host_id"]].append(row)
    for host_id in sorted(with_runs & set(levels)):
        host = scene.hosts[host_id]
        own = [h for h in scene.hours if h.host.host_id == host_id and h.busiest_cores is not None]
        watched = sum(h.covered_us for h in own)
        if watched < limits.oversized_us:
            continue
        cores = max(h.busiest_cores or 0.0 for h in own)
        memory = max(h.fullest_bytes or 0 for h in own)
        share = max(cores / host.cpus, memory / host.memory_bytes)
        if share > limits.oversized_share:
            continue
        rows = levels[host_id]
        # A bin holds what is from n to n + 1 percent: its upper end is never too small.
        busy = [(r["cpu_percent"] + 1, r["length_us"]) for r in rows]
        full = [(r["memory_percent"] + 1, r["length_us"]) for r in rows]
        cpu = {f"p{p}_cores": min(cores, weighted_percentile(busy, p) / 100 * host.cpus) for p in PERCENTILES}
        mem = {
            f"p{p}_memory_bytes": min(memory, weighted_percentile(full, p) / 100 * host.memory_bytes)
            for p in PERCENTILES
        }
        start, end = min(h.from_us for h in own), max(h.to_us for h in own)
        yield scene.finding(
            "OVERSIZED_HOST", host_id, watched, subject=host.host_name, start_us=start, end_us=end, share=1.0 - share,
            sentence=f"{host.host_name} never used more than {cores:.2f} of {host.cpus} CPUs (99 % of the time under "
            f"{cpu['p99_cores']:.2f}) and {units.size(memory)} of {units.size(host.memory_bytes)} in "
            f"{units.duration(watched * 1000)} watched; {units.percent(1 - share)} of it was never needed",
            evidence={
                "peak_cores": cores, "cpus": host.cpus, "peak_memory_bytes": memory, "memory_bytes": host.memory_bytes,
                "watched_ns": watched * 1000, "unused_share": 1.0 - share, "percentile": "nearest rank by time",
                **cpu, **mem,
            },
        )  # fmt: skip


def _gpus(scene: Scene) -> Iterator[Finding]:
    for host in scene.hosts.values():
        if host.gpu:
            start, end = max(host.first_us, scene.period.since_us), min(host.last_us, scene.period.until_us)
            yield Finding(
                kind="GPU_NOT_OBSERVED", subject=host.host_name, host_id=host.host_id, host_name=host.host_name,
                start_us=start, end_us=end, hours=None, money=None,
                sentence=f"{host.host_name} has {host.gpu:g} GPU{'s' if host.gpu != 1 else ''} by the price table; no "
                "record has GPUs, so whether they worked is not known",
                evidence={"gpus": host.gpu, "source": "price table"},
            )  # fmt: skip
