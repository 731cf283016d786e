# SPDX-License-Identifier: Apache-2.0
"""What is advised for one task: its sizes, and what sizes do not fix. With too little evidence, nothing."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from typing import Any

from .. import units
from ..model.verdict import WAITING
from ..prices import HOUR_NS, Price, Prices, cost_of_share, larger_share
from . import money, sizes
from .evidence import BY_DESCENT, Execution, Kind
from .percentiles import variation
from .rank_tests import spearman
from .run_report import Recommendation
from .sizes import Basis

VARIES = 0.5
"""Coefficient of variation of a task's wall time between runs from which it counts as varying much"""
STALLS = 0.9
"""Median share of idle time from which a task counts as stalling"""
LONG_NS = 10_000_000_000
"""Shorter tasks do not count as stalling or varying: starting them is most of it"""
CHEAPER = 0.9
"""A node shape is reported where it costs less than this part of the present one"""

_GPU = "unknown: no record has GPUs; rows with a gpu are left out"


@dataclasses.dataclass
class Advice:
    """One task of a pipeline. lack: why nothing is recommended; notes: which part of the advice could not be made."""

    pipeline: str | None
    task: str
    engine: str | None
    is_named_by_engine: bool
    """False: the name is that of the command, since the engine gave none"""
    executions: int
    successful: int
    runs: int
    """Different runs that the successful ones are of"""
    hosts: int = 1
    """On how many at once its newest successful execution ran"""
    lack: str = ""
    recommendations: list[Recommendation] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    saving: float | None = None
    """Money a run with all sizes as recommended; None unknown"""
    command: str | None = None
    work_dir: str | None = None
    """With command, what distinguishes its runs from others, where they have no pipeline"""

    def of(self, what: str) -> Recommendation | None:
        """The recommendation of cpus, memory_bytes or time_ns."""
        return next((r for r in self.recommendations if r.what == what), None)


def advise(
    kind: Kind,
    task: str,
    found: list[Execution],
    hosts: dict[str, money.Host],
    prices: Prices | None,
    now: int,
) -> Advice:
    """All rules for one task. now: microseconds UTC, for the age of the evidence."""
    good = [e for e in found if e.succeeded]
    pipeline = kind.pipeline
    advice = Advice(
        pipeline, task, next((e.engine for e in found if e.engine), None), all(e.source != BY_DESCENT for e in found),
        len(found), len(good), sizes.runs_of(good), lack=_lack(found, good), command=kind.command,
        work_dir=kind.work_dir,
    )  # fmt: skip
    if advice.lack:
        return advice
    basis = Basis(pipeline, task, good, found, hosts, now)
    advice.hosts = len(basis.newest.host_ids)
    cpu, no_cpu = sizes.cpus(basis)
    ram, no_ram = sizes.memory(basis)
    advice.recommendations += [r for r in (cpu, ram, sizes.time(basis, cpu)) if r]
    advice.notes += [text for text in (no_ram,) if text]
    if cpu:
        cpu.saving = sizes.saving(basis, cpu, None)
    else:
        advice.recommendations.append(_investigate(basis, "CPUs: " + no_cpu, len(good)))
    if ram:
        ram.saving = sizes.saving(basis, None, ram)
    if cpu or ram:
        advice.saving = sizes.saving(basis, cpu, ram)
    if advice.hosts > 1:
        advice.notes.append(f"it ran on {advice.hosts} hosts at once: CPUs are those of all, memory is that of each")
    if any(e.is_shared_limit for e in found):
        advice.notes.append("the request is that of the whole run, shared by its tasks: the saving is unknown")
    advice.recommendations += [r for r in (_storage(basis), _stalls(basis), _varies(basis)) if r]
    if cpu and ram and prices:
        shape = _node_shape(basis, cpu, ram, prices)
        advice.recommendations += [shape] if shape else []
    return advice


def _lack(found: list[Execution], good: list[Execution]) -> str:
    runs = sizes.runs_of(good)
    if runs >= sizes.RUNS_NEEDED:
        return ""
    if len(good) < sizes.RUNS_NEEDED:
        lack = f"{units.counted(len(good), 'successful execution')}, {sizes.RUNS_NEEDED} needed, in different runs"
    else:
        lack = f"{len(good)} successful executions in {units.counted(runs, 'run')}, {sizes.RUNS_NEEDED} runs needed"
    floor = sizes.oom_floor(found)
    failed = len(found) - len(good)
    if floor:
        lack += f"; killed for memory at {units.size(floor[0])}: it needs more than that"
    elif failed:
        lack += f"; {failed} failed, or their end is unknown"
    return lack


def _investigate(basis: Basis, sentence: str, executions: int, **evidence: object) -> Recommendation:
    sure = sizes.confidence(basis, basis.succeeded, [e.wall_ns for e in basis.succeeded])
    return basis.recommendation("investigate", sentence, runs=executions, confidence=sure, evidence=dict(evidence))


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def _storage(basis: Basis) -> Recommendation | None:
    """For a task that storage or the network holds up in half of its executions: what it moves."""
    good = basis.succeeded
    for demand, place in (("STORAGE", "storage"), ("NETWORK_FS", "network file system"), ("NETWORK", "network")):
        held = [e for e in good if e.verdict.demand == demand]
        if not held or 2 * len(held) < len(good):
            continue
        rates = {
            name: _median([v * 1e9 / e.wall_ns for e in held if (v := getattr(e, name)) is not None and e.wall_ns])
            for name in ("read_bytes", "write_bytes", "rchar", "wchar", "net_bytes")
        }
        moved = {name: _median([float(v) for e in held if (v := getattr(e, name)) is not None]) for name in rates}
        if demand == "STORAGE":
            sentence = (
                f"storage delays it in {len(held)} of {len(good)}: it reads {units.size(rates['read_bytes'])}/s and "
                f"writes {units.size(rates['write_bytes'])}/s (medians); faster or local storage helps, CPUs do not"
            )
            asked, fetched = moved["rchar"], moved["read_bytes"]
            if asked and fetched is not None and asked > 2 * fetched:
                sentence += (
                    f"; of {units.size(asked)} that it read {units.size(fetched)} came from storage: it reads data "
                    "again, or from pipes"
                )
        elif demand == "NETWORK_FS":
            sentence = (
                f"a network file system, or one of FUSE, delays it in {len(held)} of {len(good)}: it reads "
                f"{units.size(rates['rchar'])}/s and writes {units.size(rates['wchar'])}/s by calls (medians); a copy "
                "on local storage, or fewer and larger accesses, helps; CPUs do not"
            )
        else:
            sentence = (
                f"the network delays it in {len(held)} of {len(good)}: it moves {units.size(moved['net_bytes'])} at "
                f"{units.size(rates['net_bytes'])}/s (medians); closer data, or fetching it once, helps; CPUs do not"
            )
        evidence: dict[str, Any] = {"demand": demand, "executions": len(good), "demand_executions": len(held)}
        evidence |= {f"median_{n}": v for n, v in moved.items()}
        evidence |= {f"median_{n}_per_s": v for n, v in rates.items()}
        sure = sizes.confidence(basis, held, [e.wall_ns for e in held])
        evidence["place"] = place
        return basis.recommendation("storage", sentence, runs=len(good), confidence=sure, evidence=evidence)
    return None


def _stalls(basis: Basis) -> Recommendation | None:
    idle = [e.share_idle for e in basis.succeeded if e.share_idle is not None and e.wall_ns >= LONG_NS]
    stalled = [e for e in basis.succeeded if e.verdict.demand == WAITING and not e.reads_or_writes]
    if not idle or statistics.median(idle) < STALLS or 2 * len(stalled) < len(basis.succeeded):
        return None
    longest = max(e.wall_ns for e in basis.succeeded)
    sentence = (
        f"it stalls: {units.percent(statistics.median(idle))} of its time (median of {len(idle)}) none of its programs "
        f"ran or waited for a CPU or storage; up to {units.duration(longest)} an execution: see what it waits for"
    )
    waits = Counter(e.verdict.waiting_for.lower() for e in stalled if e.verdict.waiting_for)
    if waits:
        sentence += " (" + ", ".join(f"{name} in {n}" for name, n in waits.most_common()) + ")"
    return _investigate(
        basis, sentence, len(idle), median_share_idle=statistics.median(idle), idle_executions=len(stalled),
        longest_wall_ns=longest, waiting_for=dict(waits),
    )  # fmt: skip


def _varies(basis: Basis) -> Recommendation | None:
    """Between runs, by each run's median over the executions of the task: samples of one run are no variance."""
    by_run: dict[str, list[Execution]] = {}
    for e in basis.succeeded:
        by_run.setdefault(e.run_id, []).append(e)
    walls = [statistics.median([e.wall_ns for e in es]) for es in by_run.values()]
    spread = variation(walls)
    if spread is None or spread < VARIES or statistics.median(walls) < LONG_NS:
        return None
    pairs = [(float(e.rchar), float(e.wall_ns)) for e in basis.succeeded if e.rchar]
    rho = spearman([x for x, _ in pairs], [y for _, y in pairs])
    sentence = (
        f"its wall time varies between runs: {units.duration(min(walls))} to {units.duration(max(walls))}, coefficient "
        f"of variation {spread:.2f} over {len(walls)} runs"
    )
    if rho is not None and rho >= 0.7:
        sentence += f"; the bytes that it reads explain it (Spearman {rho:.2f})"
    return _investigate(
        basis, sentence, len(basis.succeeded), variation=spread, runs=len(walls), least_wall_ns=min(walls),
        largest_wall_ns=max(walls), spearman_wall_rchar=rho,
    )  # fmt: skip


def _machine_cost(row: Price, cpus: float, memory: float) -> float | None:
    """Money an hour for so many CPUs and bytes on such a machine; None: it is too small, or its shape unknown."""
    if not row.vcpu or not row.mem_gib or cpus > row.vcpu or memory > row.mem_gib * (1 << 30):
        return None
    share = larger_share((cpus, row.vcpu), (memory, row.mem_gib * (1 << 30)))
    return cost_of_share(row.per_hour, HOUR_NS, share)


def _node_shape(basis: Basis, cpu: Recommendation, ram: Recommendation, prices: Prices) -> Recommendation | None:
    """The row of the price table, of the same provider, region and lifecycle, on which the sizes cost least."""
    host = basis.hosts.get(basis.newest.host_ids[0])
    if host is None or cpu.recommended is None or ram.recommended is None:
        return None
    now = prices.of_host(*host.names())
    if now is None:
        return None
    cpus = cpu.recommended / len(basis.newest.host_ids)
    costs = []
    for row in prices.rows:
        same = (row.provider, row.region, row.lifecycle) == (now.provider, now.region, now.lifecycle)
        cost = _machine_cost(row, cpus, ram.recommended) if same and not row.gpu and not row.host else None
        if cost is not None:
            costs.append((cost, row.instance_type, row))
    present = _present_cost(host, now, cpus, ram.recommended)
    if not costs or present is None:
        return None
    cost, name, row = min(costs, key=lambda c: c[:2])
    if cost >= CHEAPER * present:
        return None
    per_cpu = ram.recommended / cpus
    sentence = (
        f"it needs {units.size(per_cpu)} a CPU: {name} ({row.vcpu:g} CPUs, {row.mem_gib:g} GiB) has that for "
        f"{cost:.4f} an hour, {now.instance_type or host.host_name} for {present:.4f}, each filled with such tasks"
    )
    evidence = {
        "instance_type": name, "per_hour": row.per_hour, "vcpu": row.vcpu, "mem_gib": row.mem_gib,
        "memory_bytes_per_cpu": per_cpu, "gpu": _GPU,
    }  # fmt: skip
    return basis.recommendation(
        "node_shape", sentence, current=present, recommended=cost, runs=cpu.runs,
        confidence=min_confidence(cpu, ram), evidence=evidence,
    )  # fmt: skip


def _present_cost(host: money.Host, now: Price, cpus: float, memory: float) -> float | None:
    """As _machine_cost, of the machine that it ran on: its own size where the table has none."""
    vcpu = now.vcpu or host.cpus
    gib = now.mem_gib or (host.memory_bytes / (1 << 30) if host.memory_bytes else None)
    return _machine_cost(dataclasses.replace(now, vcpu=vcpu, mem_gib=gib), cpus, memory)


_ORDER = ("low", "medium", "high")


def min_confidence(*of: Recommendation) -> str:
    """The least sure of some recommendations."""
    return min((r.confidence for r in of), key=_ORDER.index)
