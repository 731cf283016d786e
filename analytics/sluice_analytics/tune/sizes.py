# SPDX-License-Identifier: Apache-2.0
"""CPUs, memory and time that would be right for a task, from its executions.

Rules and their sources (sluice-tune-recommend(7) has them for users):

  memory  largest peak * 1.15, at least 250 MiB, and never below an out-of-memory kill: its peak * 1.2 or
          + 100 MiB, whichever is more. Margin, least and bump are those of Kubernetes' Vertical Pod Autoscaler
          (recommendation-margin-fraction, pod-recommendation-min-memory-mb, oom-bump-up-ratio, oom-min-bump-up).
          The largest peak replaces VPA's P90: a batch task that exceeds its limit is lost. Never more than the
          largest of its hosts has.
  CPUs    P95 of CPU time / wall time, rounded up but for a twentieth of a CPU; of several hosts, as many on each.
          Not where a task waited for CPUs and that hides how many it would have used, nor where what it used is
          unknown of an execution and nothing bounds how much longer that would take.
  time    longest wall time at the recommended CPUs * 1.2, at least a minute; AWS Compute Optimizer's headroom, by
          default, is 20 %. The longest, as for memory. What it takes with fewer CPUs is bounded by Brent's theorem
          (1974): see wall_at(). Never below what an execution took that failed, and never below that * 1.2 where a
          signal ended it: a limit that is too low appears as such executions, and in no successful one. Nor below
          what is known of one whose end is unknown.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Any

from .. import units
from ..prices import add
from . import money
from .evidence import Execution
from .percentiles import percentile, variation
from .rank_tests import spearman
from .run_report import Recommendation

RUNS_NEEDED = 3
MEMORY_MARGIN = 1.15
MEMORY_LEAST = 250 << 20
OOM_FACTOR = 1.2
OOM_STEP = 100 << 20
TIME_MARGIN = 1.2
TIME_LEAST_NS = 60_000_000_000
CPU_TOLERANCE = 0.05
"""Part of a CPU for which no further one is asked: at most so much longer it takes"""
STARVED_SHARE = 0.2
"""Waiting for a CPU, as a part of the time in which a thread could run, from which wall time misleads"""
AT_LIMIT = 0.9
"""Part of its CPUs from which a task counts as using all that it has"""

_MIB = 1 << 20
_DAY_US = 86_400_000_000


@dataclasses.dataclass
class Basis:
    """What a rule looks at: the successful executions of one task, and all of them. now: microseconds UTC."""

    pipeline: str | None
    task: str
    succeeded: list[Execution]
    all: list[Execution]
    hosts: dict[str, money.Host]
    now: int

    def memory_of_hosts(self) -> int | None:
        """That of the largest host on which it succeeded; None: unknown of one of them."""
        known = [self.hosts[h].memory_bytes if h in self.hosts else None for e in self.succeeded for h in e.host_ids]
        return None if None in known else max(m for m in known if m is not None)

    def cpus_of_host(self, e: Execution) -> int | None:
        """CPUs of the largest host of an execution; None: unknown of one of them."""
        known = [self.hosts[h].cpus if h in self.hosts else None for h in e.host_ids]
        return None if None in known else max(c for c in known if c is not None)

    def most_at_once(self, e: Execution) -> list[float]:
        """What bounds how many CPUs of a host an execution can have kept busy at once; empty: nothing that is known."""
        held = e.held_cpus if e.busiest_cpus is not None else None
        return [x for x in (e.most_threads, self.cpus_of_host(e), held) if x is not None]

    @property
    def newest(self) -> Execution:
        """The successful execution that began last."""
        return max(self.succeeded, key=lambda e: e.start_time)

    def recommendation(
        self,
        what: str,
        sentence: str,
        *,
        current: float | None = None,
        recommended: float | None = None,
        runs: int,
        confidence: str,
        evidence: dict[str, Any],
    ) -> Recommendation:
        """One for this task."""
        return Recommendation(
            pipeline=self.pipeline, task=self.task, what=what, current=current, recommended=recommended,
            sentence=sentence, runs=runs, confidence=confidence, evidence=evidence,
        )  # fmt: skip

    def counted(self, used: Sequence[Execution]) -> str:
        """How many executions in how many runs, as a sentence has it."""
        return f"{len(used)} successful executions in {units.counted(runs_of(used), 'run')}"


def runs_of(found: Sequence[Execution]) -> int:
    """How many different runs these executions are of."""
    return len({e.run_id for e in found})


def confidence(basis: Basis, used: Sequence[Execution], values: Sequence[float], certain: bool = True) -> str:
    """How sure: by the number of executions and runs, their spread (largest / median) and the age of the newest.

    low: fewer than 5 executions, a spread above 2, or older than 90 days. high: 10 executions in 5 runs, a spread
    up to 1.25, no older than 30 days, and nothing unknown (certain). medium: what lies between.
    """
    median = statistics.median(values)
    spread = max(values) / median if median > 0 else math.inf
    age = (basis.now - max(e.start_time for e in used)) / _DAY_US
    if len(used) < 5 or spread > 2 or age > 90:
        return "low"
    if len(used) >= 10 and runs_of(used) >= 5 and spread <= 1.25 and age <= 30 and certain:
        return "high"
    return "medium"


def _numbers(basis: Basis, used: Sequence[Execution], values: Sequence[float], unit: str) -> dict[str, Any]:
    return {
        "executions": len(used),
        "runs": runs_of(used),
        f"median{unit}": statistics.median(values),
        f"p95{unit}": percentile(values, 0.95),
        f"max{unit}": max(values),
        "variation": variation(values),
        "newest_days": round((basis.now - max(e.start_time for e in used)) / _DAY_US, 1),
    }


def requested(basis: Basis, name: str) -> float | None:
    """requested_cpus or requested_memory_bytes of the newest execution that has one."""
    newest_first = sorted(basis.all, key=lambda e: e.start_time, reverse=True)
    return next((getattr(e, name) for e in newest_first if getattr(e, name) is not None), None)


def cpus_for(parallelism: float) -> int:
    """Whole CPUs for so many on average."""
    return max(1, math.ceil(round(parallelism - CPU_TOLERANCE, 9)))


def cpus(basis: Basis) -> tuple[Recommendation | None, str]:
    """The recommendation of CPUs, or why there is none."""
    known = [e for e in basis.succeeded if e.parallelism is not None]
    if runs_of(known) < RUNS_NEEDED:
        return None, "CPU time is unknown"
    widths = {len(e.host_ids) for e in basis.succeeded}
    hosts = max(widths)
    if len(widths) > 1:
        return None, f"it ran on {min(widths)} to {hosts} hosts at once: CPUs of one number do not say those of another"
    unbounded = sum(e.cpu_ns is None and not basis.most_at_once(e) for e in basis.succeeded)
    if unbounded:
        return None, (
            f"CPU time, threads and the CPUs of the host are unknown of {units.counted(unbounded, 'execution')}: how "
            "much longer it takes with fewer CPUs is unknown, too"
        )
    used, note = known, ""
    starved = [e for e in known if (e.delay_share or 0.0) >= STARVED_SHARE]
    wanted_p95 = percentile([e.wanted_cpus or e.parallelism or 0.0 for e in known], 0.95)
    used_p95 = percentile([e.parallelism or 0.0 for e in known], 0.95)
    extra: dict[str, Any] = {"starved_executions": len(starved), "wanted_p95_cpus": wanted_p95}
    if starved and cpus_for(wanted_p95 / hosts) != cpus_for(used_p95 / hosts):
        used = [e for e in known if (e.delay_share or 0.0) < STARVED_SHARE]
        if runs_of(used) < RUNS_NEEDED:
            return None, (
                f"{len(starved)} of {len(known)} executions were starved of CPU: {used_p95:.2f} were busy, "
                f"{wanted_p95:.2f} wanted (P95, running or waiting to run); it may need more CPUs, and wall time does "
                "not show how many"
            )
        note = f"; {len(starved)} that waited for CPUs are left out"
    values = [e.parallelism or 0.0 for e in used]
    recommended = cpus_for(percentile(values, 0.95) / hosts) * hosts
    current = requested(basis, "requested_cpus")
    busiest = [e.busiest_cpus for e in used if e.busiest_cpus is not None]
    threads = max((e.threads_peak for e in used if e.threads_peak is not None), default=None)
    sentence = f"P95 of the CPUs kept busy over {basis.counted(used)} is {percentile(values, 0.95):.2f}{note}"
    if current is not None and max(values) >= AT_LIMIT * current:
        sentence += f"; it used all of the {current:g} that it had: it may need more"
    if busiest and percentile(busiest, 0.95) > recommended / hosts + 0.5:
        sentence += (
            f"; its busiest interval kept {percentile(busiest, 0.95):.1f} busy: that part takes longer with fewer"
        )
    if hosts > 1:
        sentence += f"; on {hosts} hosts at once, {recommended // hosts} on each"
    extra |= {"busiest_interval_p95_cpus": percentile(busiest, 0.95) if busiest else None, "threads_peak": threads}
    extra["hosts_at_once"] = hosts
    evidence = _numbers(basis, used, values, "_cpus") | extra | {"rule": "ceil(P95 of CPU time / wall time - 0.05)"}
    sure = confidence(basis, used, values, all(e.run_delay_ns is not None for e in used))
    return basis.recommendation(
        "cpus", sentence, current=current, recommended=float(recommended), runs=len(used), confidence=sure,
        evidence=evidence,
    ), ""  # fmt: skip


@dataclasses.dataclass
class Fit:
    """peak = base_bytes + bytes_per_byte * rchar lies above every execution; r_squared of the line of least squares.

    Memory by this line is the peak * MEMORY_MARGIN, but at least least_bytes, and then no more than most_bytes: the
    same bounds as those of the recommended number.
    """

    base_bytes: float
    bytes_per_byte: float
    r_squared: float
    spearman: float
    least_bytes: int
    """MEMORY_LEAST, or what an execution needed that was killed for memory"""
    most_bytes: int | None
    """That of the largest host; None: unknown"""


def grows_with_input(
    used: Sequence[Execution], least_bytes: int = MEMORY_LEAST, most_bytes: int | None = None
) -> tuple[float | None, Fit | None]:
    """Spearman's correlation of peak and bytes read, and the line where it is good enough to compute memory with.

    Asked of 6 executions or more whose bytes read differ by a factor of 2; the line needs an R² of 0.9.
    """
    pairs = [(float(e.rchar), float(e.peak_bytes)) for e in used if e.rchar and e.peak_bytes]
    if len(pairs) < 6 or max(x for x, _ in pairs) < 2 * min(x for x, _ in pairs):
        return None, None
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    rho = spearman(xs, ys)
    if rho is None or rho < 0.7:
        return rho, None
    line = statistics.linear_regression(xs, ys)
    r_squared = statistics.correlation(xs, ys) ** 2
    if r_squared < 0.9 or line.slope <= 0:
        return rho, None
    above = max(y - (line.intercept + line.slope * x) for x, y in pairs)
    return rho, Fit(line.intercept + above, line.slope, r_squared, rho, least_bytes, most_bytes)


def _by_input(used: Sequence[Execution]) -> list[dict[str, Any]]:
    """Thirds of the executions by bytes read, halves where there are fewer than 9."""
    pairs = sorted((e.rchar, e.peak_bytes) for e in used if e.rchar and e.peak_bytes)
    parts = 3 if len(pairs) >= 9 else 2
    found = []
    for n in range(parts):
        part = pairs[len(pairs) * n // parts : len(pairs) * (n + 1) // parts]
        found.append({
            "rchar_from": part[0][0], "rchar_to": part[-1][0], "executions": len(part),
            "peak_max_bytes": max(peak for _, peak in part),
        })  # fmt: skip
    return found


def oom_floor(executions: Sequence[Execution]) -> tuple[int, int] | None:
    """Of executions in which the kernel killed for memory: (the largest peak at a kill, what is needed at least).

    A task that was killed near its limit (0.8 of it) had reached that: the sum of peaks falls short or beyond.
    """
    peaks = []
    for e in executions:
        if not e.oom_killed or e.peak_bytes is None:
            continue
        limit = e.requested_memory_bytes
        peaks.append(limit if limit is not None and 0.8 * limit <= e.peak_bytes <= limit else e.peak_bytes)
    return (max(peaks), math.ceil(max(max(peaks) * OOM_FACTOR, max(peaks) + OOM_STEP))) if peaks else None


def memory(basis: Basis) -> tuple[Recommendation | None, str]:
    """The recommendation of memory, or why there is none."""
    used = [e for e in basis.succeeded if e.peak_bytes is not None]
    if runs_of(used) < RUNS_NEEDED:
        return None, "peak memory is unknown"
    values = [e.peak_bytes or 0 for e in used]
    floor = oom_floor(basis.all)
    least = max(MEMORY_LEAST, floor[1] if floor else 0)
    wanted = max(max(values) * MEMORY_MARGIN, least)
    recommended = math.ceil(wanted / _MIB) * _MIB
    most = basis.memory_of_hosts()
    if most is not None:
        recommended = min(recommended, most // _MIB * _MIB)
    current = requested(basis, "requested_memory_bytes")
    largest = max(used, key=lambda e: e.peak_bytes or 0)
    alone = largest.peak_program_bytes
    sentence = f"the largest peak of {basis.counted(used)} is {units.size(max(values))}"
    if alone is not None and alone < max(values):
        sentence += f" (programs running at the same time; the largest alone {units.size(alone)})"
    sentence += ", + 15 %"
    if recommended < wanted:
        sentence += f"; no host that it ran on has more than {units.size(most)}"
    elif recommended == MEMORY_LEAST:
        sentence += f"; less than {units.size(MEMORY_LEAST)} is not recommended"
    killed = [e for e in basis.all if e.oom_killed]
    if floor:
        retried = {(e.sample, e.run_id) for e in killed} & {(e.sample, e.run_id) for e in basis.succeeded}
        sentence += (
            f"; killed for memory in {len(killed)} executions, at {units.size(floor[0])}"
            + (f", {len(retried)} succeeded when they were retried" if retried else "")
        )  # fmt: skip
    held_up = sum(e.verdict.demand == "MEMORY" or e.verdict.denied == "RECLAIM" for e in basis.succeeded)
    if held_up * 2 >= len(basis.succeeded):
        sentence += f"; memory delayed it in {held_up} of {len(basis.succeeded)}"
    rho, fit = grows_with_input(used, least, most)
    evidence = _numbers(basis, used, values, "_bytes") | {
        "largest_program_bytes": alone,
        "oom_killed_executions": len(killed),
        "oom_peak_bytes": floor[0] if floor else None,
        "spearman_peak_rchar": rho,
        "peaks_are": "what the programs of an execution held at once, as the agent saw it once a second, and the "
        "largest sum of peaks of programs too brief for that; of records of older agents, the largest sum of peaks of "
        "all programs alive at one moment; a sum is no more than a limit that held, a peak no less than the largest "
        "program's",
        "executions_with_peak_memory": sum(e.peak_memory_bytes is not None for e in used),
        "forked_programs": largest.forked,
        "programs_of_unknown_peak": sum(e.unknown_peaks for e in used),
        "host_memory_bytes": most,
        "rule": "min(max(largest peak * 1.15, 250 MiB, largest peak at an OOM kill * 1.2 or + 100 MiB), host's memory)",
    }
    if rho is not None and rho >= 0.7:
        evidence["by_input_size"] = _by_input(used)
        sentence += f"; it grows with the bytes that it reads (Spearman {rho:.2f})"
    if fit:
        evidence["fit"] = dataclasses.asdict(fit)
        sentence += f": {fit.bytes_per_byte:.3g} B for each, R² {fit.r_squared:.2f}"
    sure = confidence(basis, used, values, all(e.unknown_peaks == 0 for e in used))
    return basis.recommendation(
        "memory_bytes", sentence, current=current, recommended=float(recommended), runs=len(used), confidence=sure,
        evidence=evidence,
    ), ""  # fmt: skip


def wall_at(basis: Basis, e: Execution, cpus: float | None) -> float:
    """Nanoseconds that an execution takes at most with so many CPUs, from what it took (None: as many as it had).

    Work that ran on p CPUs of a host at once takes p / c as long on c, and what ran on no more takes as long as before.
    How much ran on how many is not recorded, only the sum W; the worst that it can be is that all of it ran on P
    CPUs at once, while the other hosts waited. That adds W / c - W / P. P is at most the threads that were alive, the
    CPUs of the host and, where Usage records show that it held, the request; it is at least what those show. Where W is
    unknown, it is that of P CPUs throughout; where P is unknown, too, cpus() recommends none.
    """
    if cpus is None or (e.held_cpus is not None and cpus >= e.held_cpus):
        return e.wall_ns
    share, busy = cpus / len(e.host_ids), (e.parallelism or 0.0) / len(e.host_ids)
    width = max(min(basis.most_at_once(e), default=math.inf), busy, e.busiest_cpus or 0.0)
    if width <= share:
        return e.wall_ns
    work = e.wall_ns * width * len(e.host_ids) if e.cpu_ns is None else e.cpu_ns
    return e.wall_ns + work * (1 / share - 1 / width)


def time(basis: Basis, cpu: Recommendation | None = None) -> Recommendation:
    """The recommendation of a time limit, with the CPUs that are recommended. No record has the requested one.

    It is never below the longest execution, whatever its outcome. One that a signal ended would have taken longer.
    """
    values = [e.wall_ns for e in basis.succeeded]
    with_fewer = max(wall_at(basis, e, cpu.recommended if cpu else None) for e in basis.succeeded)
    by_rule = max(with_fewer * TIME_MARGIN, TIME_LEAST_NS)
    failed = [e.wall_ns for e in basis.all if not e.succeeded and e.has_ended]
    unended = [e.wall_ns for e in basis.all if not e.has_ended]
    cut = [e.wall_ns for e in basis.all if not e.succeeded and e.was_ended_by_signal and not e.oom_killed]
    by_cut, by_failed = max(cut, default=0) * TIME_MARGIN, max([*failed, *unended], default=0)
    recommended = math.ceil(max(by_rule, by_cut, by_failed) / 1e9) * 1_000_000_000
    sentence = f"the longest of {basis.counted(basis.succeeded)} took {units.duration(max(values))}"
    if cpu and with_fewer > max(values):
        on = units.counted(round(cpu.recommended or 0), "CPU")
        sentence += f", and none takes more than {units.duration(with_fewer)} on {on}"
    sentence += ", + 20 %"
    if by_cut > by_rule and by_cut >= by_failed:
        sentence += f"; a signal ended {units.counted(len(cut), 'execution')}, after {units.duration(max(cut))} at most"
        sentence += ": that + 20 % is more"
    elif by_failed > by_rule:
        these = units.counted(len(failed), "failed execution")
        others = f"{units.counted(len(unended), 'execution')} whose end is unknown"
        sentence += f"; the longest of {these if by_failed in failed else others} took {units.duration(by_failed)}"
    elif recommended == TIME_LEAST_NS:
        sentence += "; less than a minute is not recommended"
    evidence = _numbers(basis, basis.succeeded, values, "_ns") | {
        "longest_at_recommended_cpus_ns": with_fewer,
        "failed_executions": len(failed),
        "longest_failed_ns": max(failed, default=None),
        "executions_of_unknown_end": len(unended),
        "longest_of_unknown_end_ns": max(unended, default=None),
        "signalled_executions": len(cut),
        "longest_signalled_ns": max(cut, default=None),
        "rule": "max(longest wall time at the recommended CPUs * 1.2, longest that a signal ended * 1.2, longest that "
        "failed or whose end is unknown, 1 minute)",
    }
    sure = confidence(basis, basis.succeeded, values, all(e.cpu_ns is not None for e in basis.succeeded))
    return basis.recommendation(
        "time_ns", sentence, recommended=float(recommended), runs=len(values), confidence=sure, evidence=evidence
    )


def saving(basis: Basis, cpu: Recommendation | None, ram: Recommendation | None) -> float | None:
    """Money a run: reserved cost (price * wall * the larger share of CPUs and of memory) as it was requested, less
    the same with what is recommended and the time that it takes then at most, over the successful executions. None: a
    price or what was requested is unknown, or the limit was shared with other tasks.
    """
    now_cpus, now_memory = requested(basis, "requested_cpus"), requested(basis, "requested_memory_bytes")
    if (now_cpus is None and now_memory is None) or any(e.is_shared_limit for e in basis.succeeded):
        return None
    new_cpus = cpu.recommended if cpu and now_cpus is not None else now_cpus
    new_memory = ram.recommended if ram and ram.recommended and now_memory is not None else now_memory

    def cost(asked_cpus: float | None, asked_memory: float | None, cpus: float | None) -> float | None:
        memory_bytes = None if asked_memory is None else int(asked_memory)
        return add([
            money.reserved_cost(basis.hosts.get(h), round(wall_at(basis, e, cpus)),
                                None if asked_cpus is None else asked_cpus / len(e.host_ids), memory_bytes)
            for e in basis.succeeded
            for h in e.host_ids
        ])  # fmt: skip

    before, after = cost(now_cpus, now_memory, None), cost(new_cpus, new_memory, cpu.recommended if cpu else None)
    return None if before is None or after is None else (before - after) / runs_of(basis.succeeded)
