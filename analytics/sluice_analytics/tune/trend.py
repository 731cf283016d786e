# SPDX-License-Identifier: Apache-2.0
"""`sluice tune trend`: what the runs of a pipeline took, one after the other, and whether that changes.

Drift is a rise or fall over all runs: Theil and Sen's slope with Mann and Kendall's test. A regression is a
step: the runs from one on differ from those before, by the largest standardised Mann-Whitney statistic over
all splits (the p-value counts that the split was looked for), with the ratio of medians and Cliff's delta as
effect. Either is called small where the effect is below rank_tests.LEAST_EFFECT: of a step by the ratio of medians, of
drift by the slope from the first run to the last as a part of the median. Both look at runs that succeeded; failures
are counted over all that ended.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Literal

from ..lake.expression import ibis
from ..lake.session import Session
from ..model.activity import pieces
from ..model.records import failed, tasks
from ..prices import Prices, add
from . import evidence, find, money, rank_tests

DRIFT_RUNS = 5
"""Fewer give no p-value below 0.05, whatever they are: 2 / 4! is 0.08"""
CHANGE_RUNS = 8
"""As DRIFT_RUNS, for a step that was looked for"""


Unit = Literal["ns", "size", "money", "count"]


@dataclasses.dataclass(kw_only=True)
class Point:
    """One run. state as in find.Run.state; failed_tasks counts executions, retries too, and of a run that failed 1."""

    run_id: str
    start_time: int
    state: str
    wall_ns: int
    cpu_ns: int | None
    peak_memory_bytes: int | None
    """Of all programs together; None: written by an older agent"""
    peak_rss_bytes: int | None
    """Of the largest program"""
    rchar: int | None
    storage_bytes: int | None
    cost: float | None
    tasks: int
    failed_tasks: int


@dataclasses.dataclass
class Metric:
    """One figure over the runs, the first run first, with the statistics. None: too few runs, or all alike."""

    name: str
    title: str
    kind: Unit
    values: list[float]
    run_ids: list[str]
    slope_per_run: float | None = None
    drift_p: float | None = None
    change_run_id: str | None = None
    change_before: int | None = None
    change_after: int | None = None
    median_before: float | None = None
    median_after: float | None = None
    cliffs_delta: float | None = None
    change_p: float | None = None
    change_test: str = ""
    verdict: str = ""

    @property
    def median(self) -> float | None:
        """Over all its runs."""
        return statistics.median(self.values) if self.values else None


def points(
    session: Session, runs: Sequence[find.Run], prices: Prices | None = None, now_us: int | None = None
) -> list[Point]:
    """Each of these runs, the first to start first."""
    now = find.now() if now_us is None else now_us
    ordered = sorted(runs, key=lambda r: (r.start_time, r.run_id))
    scope = evidence.scope_of(ordered)
    t = tasks(session, scope)
    t = t.filter((t.phase == "END") & t.task_id.notnull())
    t = t.mutate(_failed=failed(t).cast("int64"))
    counts = t.group_by("run_id").aggregate(tasks=t.count(), failed=t._failed.sum())
    by_run = {row["run_id"]: (int(row["tasks"]), int(row["failed"])) for row in session.rows(counts)}
    costs = _costs(session, ordered, evidence.hosts(session, ordered, prices))
    found = []
    for run in ordered:
        usage = run.usage
        done, bad = by_run.get(run.run_id, (0, 0))
        state = run.state(now, bad > 0 if done else None)
        found.append(
            Point(
                run_id=run.run_id,
                start_time=run.start_time,
                state=state,
                wall_ns=run.wall_ns,
                cpu_ns=_sum(usage["cpu_user_ns"], usage["cpu_system_ns"]),
                peak_memory_bytes=run.largest("peak_memory_bytes"),
                peak_rss_bytes=usage["peak_rss_bytes"],
                rchar=usage["rchar"],
                storage_bytes=_sum(usage["read_bytes"], usage["write_bytes"]),
                cost=costs.get(run.run_id),
                tasks=done,
                failed_tasks=max(bad, int(state == "FAILED")),
            )
        )
    return found


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _costs(session: Session, runs: Sequence[find.Run], hosts: dict[str, money.Host]) -> dict[str, float | None]:
    """What each run used, in money; empty where no host has a price."""
    if all(h.price_per_hour is None for h in hosts.values()):
        return {}
    activity = pieces(session, evidence.scope_of(list(runs)))
    held = ibis.coalesce(activity.rss_bytes, activity.peak_rss_bytes)
    memory = activity.group_by("run_id", "host_id").aggregate(
        byte_us=(held * (activity.end_us - activity.start_us)).cast("float64").sum()
    )
    byte_ns = {
        (row["run_id"], row["host_id"]): row["byte_us"] * 1000
        for row in session.rows(memory)
        if row["byte_us"] is not None
    }
    return {
        run.run_id: add([
            money.used_cost(hosts.get(p["host_id"]), _sum(p["cpu_user_ns"], p["cpu_system_ns"]),
                            byte_ns.get((run.run_id, p["host_id"])))
            for p in run.parts
        ])
        for run in runs
    }  # fmt: skip


_METRICS: tuple[tuple[str, str, Unit], ...] = (
    ("wall_ns", "wall", "ns"), ("cpu_ns", "CPU", "ns"), ("peak_memory_bytes", "peak memory", "size"),
    ("peak_rss_bytes", "peak of the largest program", "size"),
    ("rchar", "bytes read", "size"), ("storage_bytes", "storage I/O", "size"), ("cost", "cost", "money"),
    ("failed_tasks", "failed tasks", "count"),
)  # fmt: skip


def has_peak_memory(found: Sequence[Point]) -> bool:
    """Does each of these runs have the peak of all programs together?"""
    return bool(found) and all(p.peak_memory_bytes is not None for p in found)


def metrics(found: Sequence[Point], last: int | None = None) -> list[Metric]:
    """Each figure with its statistics. last: set so many last runs against those before, and look for no step.

    Of the two peaks, that of all programs together where each run that succeeded has it, else that of the largest one:
    both in a row would be a step where the agent was upgraded.
    """
    ended = [p for p in found if p.state in ("SUCCEEDED", "FAILED")]
    good = [p for p in ended if p.state == "SUCCEEDED"]
    other_peak = "peak_rss_bytes" if has_peak_memory(good) else "peak_memory_bytes"
    made = []
    for name, title, kind in _METRICS:
        if name == other_peak:
            continue
        of = ended if name == "failed_tasks" else good
        known = [p for p in of if getattr(p, name) is not None]
        metric = Metric(name, title, kind, [float(getattr(p, name)) for p in known], [p.run_id for p in known])
        if metric.values:
            _test(metric, last)
            made.append(metric)
    return made


def _test(metric: Metric, last: int | None) -> None:
    values = metric.values
    n = len(values)
    said = []
    if n >= DRIFT_RUNS:
        metric.slope_per_run = rank_tests.theil_sen(values)
        metric.drift_p = rank_tests.mann_kendall(values)
        if metric.drift_p < rank_tests.SIGNIFICANT:
            over_all = abs(metric.slope_per_run) * (n - 1)
            if over_all < rank_tests.LEAST_EFFECT * abs(statistics.median(values)):
                said.append("drift, small")
            else:
                said.append("drift: rises" if rank_tests.kendall_s(values) > 0 else "drift: falls")
    at = _change(metric, last)
    if at is not None:
        before, after = values[:at], values[at:]
        metric.change_run_id = metric.run_ids[at]
        metric.change_before, metric.change_after = len(before), len(after)
        metric.median_before, metric.median_after = statistics.median(before), statistics.median(after)
        metric.cliffs_delta = rank_tests.cliffs_delta(before, after)
        if metric.change_p is not None and metric.change_p < rank_tests.SIGNIFICANT:
            old, new = metric.median_before, metric.median_after
            if old == new or (old and rank_tests.is_little(new / old)):
                said.append("step, small")
            else:
                said.append("regression" if new > old else "improvement")
    if n < DRIFT_RUNS:
        said.append(f"too few runs: {n}, {DRIFT_RUNS} needed")
    elif at is None:
        said.append(_too_few_for_change(n, last))
    metric.verdict = ", ".join(said) or "steady"


def _change(metric: Metric, last: int | None) -> int | None:
    """Where the later runs begin, its p-value noted; None where no answer is possible."""
    values = metric.values
    n = len(values)
    if last is not None:
        if last >= n or 2 / math.comb(n, last) >= rank_tests.SIGNIFICANT:
            return None
        metric.change_test = "Mann-Whitney"
        metric.change_p = rank_tests.mann_whitney(values[: n - last], values[n - last :])
        return n - last
    found = rank_tests.change_point(values) if n >= CHANGE_RUNS else None
    if found is None:
        return None
    metric.change_test = "largest Mann-Whitney of all splits"
    metric.change_p = found.p
    return found.at


def _too_few_for_change(n: int, last: int | None) -> str:
    if last is not None:
        return f"too few runs to compare the last {last} with those before: {n}"
    return f"too few runs to search for a step: {n}, {CHANGE_RUNS} needed"
