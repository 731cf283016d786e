# SPDX-License-Identifier: Apache-2.0
"""`sluice tune trend`: what the runs of a pipeline took, one after the other, and whether that changes.

Drift is a rise or fall over all runs: Theil and Sen's slope with Mann and Kendall's test. A regression is a
step: the runs from one on differ from those before, by the largest standardised Mann-Whitney statistic over
all splits (the p-value counts that the split was looked for), with the ratio of medians and Cliff's delta as
effect. Both look at runs that succeeded; failures are counted over all that ended.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Any

import ibis

from .. import prices as price_table
from .. import units
from ..cli import common
from ..lake import open as lake_open
from ..lake.session import Session
from ..model.activity import pieces
from ..model.records import tasks
from ..prices import Prices
from ..report.document import Column, Document, Kind, Table
from . import evidence, find, money, rank_tests
from .recommend import add_prices, add_run_choice, positive, runs_of, since
from .tools import failed

RUNS = 100
"""The latest runs of a pipeline that count, unless told otherwise"""
DRIFT_RUNS = 5
"""Fewer give no p-value below 0.05, whatever they are: 2 / 4! is 0.08"""
CHANGE_RUNS = 8
"""As DRIFT_RUNS, for a step that was looked for"""
NOTABLE = 0.05
"""A step of a smaller part of the median is told, but is no regression"""

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40


@dataclasses.dataclass
class Point:
    """One run. state as in find.Run.state; failed_tasks counts executions, retries too, and of a run that failed 1."""

    run_id: str
    start_time: int
    state: str
    wall_ns: int
    cpu_ns: int | None
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
    kind: Kind
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
    counts = t.mutate(_failed=failed(t).cast("int64")).group_by("run_id")
    by_run = {
        row["run_id"]: (int(row["tasks"]), int(row["failed"]))
        for row in session.rows(counts.aggregate(tasks=lambda g: g.count(), failed=lambda g: g._failed.sum()))
    }
    costs = _costs(session, ordered, evidence.hosts(session, ordered, prices))
    found = []
    for run in ordered:
        usage = run.usage
        done, bad = by_run.get(run.run_id, (0, 0))
        state = run.state(now, bad > 0 if done else None)
        found.append(
            Point(
                run.run_id,
                run.start_time,
                state,
                run.wall_ns,
                _sum(usage["cpu_user_ns"], usage["cpu_system_ns"]),
                usage["peak_rss_bytes"],
                usage["rchar"],
                _sum(usage["read_bytes"], usage["write_bytes"]),
                costs.get(run.run_id),
                done,
                max(bad, int(state == "FAILED")),
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
        run.run_id: money.add([
            money.used_cost(hosts.get(p["host_id"]), _sum(p["cpu_user_ns"], p["cpu_system_ns"]),
                            byte_ns.get((run.run_id, p["host_id"])))
            for p in run.parts
        ])
        for run in runs
    }  # fmt: skip


_METRICS: tuple[tuple[str, str, Kind], ...] = (
    ("wall_ns", "wall", "ns"), ("cpu_ns", "CPU", "ns"), ("peak_rss_bytes", "peak of the largest program", "size"),
    ("rchar", "bytes read", "size"), ("storage_bytes", "storage I/O", "size"), ("cost", "cost", "money"),
    ("failed_tasks", "failed tasks", "count"),
)  # fmt: skip


def metrics(found: Sequence[Point], last: int | None = None) -> list[Metric]:
    """Each figure with its statistics. last: set so many last runs against those before, and look for no step."""
    ended = [p for p in found if p.state in ("SUCCEEDED", "FAILED")]
    good = [p for p in ended if p.state == "SUCCEEDED"]
    made = []
    for name, title, kind in _METRICS:
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
            said.append("drift: rises" if rank_tests.kendall_s(values) > 0 else "drift: falls")
    at = _change(metric, last)
    if at is not None:
        before, after = values[:at], values[at:]
        metric.change_run_id = metric.run_ids[at]
        metric.change_before, metric.change_after = len(before), len(after)
        metric.median_before, metric.median_after = statistics.median(before), statistics.median(after)
        metric.cliffs_delta = rank_tests.cliffs_delta(before, after)
        if metric.change_p is not None and metric.change_p < rank_tests.SIGNIFICANT:
            difference = metric.median_after - metric.median_before
            if abs(difference) < NOTABLE * abs(metric.median_before):
                said.append("step, small")
            else:
                said.append("regression" if difference > 0 else "improvement")
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
        return f"too few runs to set the last {last} against those before: {n}"
    return f"too few runs to look for a step: {n}, {CHANGE_RUNS} needed"


def sparkline(values: Sequence[float]) -> str:
    """The last 40 values as bars, from the least to the largest of them."""
    shown = list(values)[-_WIDTH:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    if high == low:
        return _BARS[len(_BARS) // 2] * len(shown)
    return "".join(_BARS[min(len(_BARS) - 1, int((v - low) / (high - low) * len(_BARS)))] for v in shown)


def document(pipeline: str, source: str, found: Sequence[Point], made: Sequence[Metric], currency: str) -> Document:
    """The answer of the command."""
    states = [f"{n} {state}" for state in ("SUCCEEDED", "FAILED", "RUNNING", "UNKNOWN")
              if (n := sum(p.state == state for p in found))]  # fmt: skip
    facts = [
        ("runs", f"{len(found)}: {', '.join(states)}"),
        ("from", units.clock(found[0].start_time)),
        ("to", units.clock(found[-1].start_time)),
    ]
    tables = [_metric_table(made), _change_table(made), _run_table(found)]
    tests = sum(m.drift_p is not None for m in made) + sum(m.change_p is not None for m in made)
    notes = []
    if tests:
        notes.append(
            f"{units.counted(tests, 'test')} at 5 %: of 20 tests of nothing but chance one says that there is "
            "something. Runs that read more take longer: see bytes read."
        )
    return Document(
        f"Trend of {pipeline} in {source}", facts=facts, tables=tables, notes=notes, main="runs", currency=currency,
        data={"pipeline": pipeline, "metrics": [_metric_data(m) for m in made],
              "runs": [dataclasses.asdict(p) for p in found]},
    )  # fmt: skip


def _metric_data(m: Metric) -> dict[str, Any]:
    return dataclasses.asdict(m) | {"median": m.median}


def _text(m: Metric, value: float | None) -> str:
    """Rows of the tables have different kinds: written here."""
    if value is None:
        return units.DASH
    sign = "-" if value < 0 else ""
    if m.kind == "ns":
        return sign + units.duration(abs(value))
    if m.kind == "size":
        return units.size(value)
    return units.money(value) if m.kind == "money" else f"{value:g}"


def _p(p: float | None) -> str:
    return units.DASH if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _metric_table(made: Sequence[Metric]) -> Table:
    columns = [
        Column("title", "figure"), Column("runs", "runs", "count"), Column("sparkline", "over runs"),
        Column("median", "median"), Column("least", "least"), Column("most", "most"), Column("latest", "latest"),
        Column("slope", "slope a run"), Column("share", "of median"), Column("drift_p", "p"),
        Column("verdict", "verdict"),
    ]  # fmt: skip
    rows = []
    for m in made:
        share = m.slope_per_run / m.median if m.slope_per_run is not None and m.median else None
        rows.append({
            "title": m.title, "runs": len(m.values), "sparkline": sparkline(m.values), "median": _text(m, m.median),
            "least": _text(m, min(m.values)), "most": _text(m, max(m.values)), "latest": _text(m, m.values[-1]),
            "slope": _text(m, m.slope_per_run), "share": units.DASH if share is None else f"{share * 100:+.1f}%",
            "drift_p": _p(m.drift_p), "verdict": m.verdict,
        })  # fmt: skip
    return Table("metrics", "Drift: slope of Theil and Sen, p of Mann and Kendall", columns, rows,
                 "" if rows else "No run of it has succeeded: nothing to compare.")  # fmt: skip


def _change_table(made: Sequence[Metric]) -> Table:
    columns = [
        Column("title", "figure"), Column("since", "from run"), Column("before", "runs before", "count"),
        Column("after", "runs after", "count"), Column("median_before", "median before"),
        Column("median_after", "median after"), Column("ratio", "ratio"), Column("delta", "Cliff's delta"),
        Column("p", "p"), Column("test", "test"),
    ]  # fmt: skip
    rows = [
        {
            "title": m.title, "since": m.change_run_id, "before": m.change_before, "after": m.change_after,
            "median_before": _text(m, m.median_before), "median_after": _text(m, m.median_after),
            "ratio": f"{m.median_after / m.median_before:.2f}" if m.median_before and m.median_after else units.DASH,
            "delta": f"{m.cliffs_delta:+.2f}", "p": _p(m.change_p), "test": m.change_test,
        }
        for m in made if m.change_run_id is not None
    ]  # fmt: skip
    return Table("changes", "Steps: the split at which runs before and after differ most", columns, rows)


def _run_table(found: Sequence[Point]) -> Table:
    columns = [
        Column("start_time", "began", "time"), Column("run_id", "run"), Column("state", "state"),
        Column("wall_ns", "wall", "ns"), Column("cpu_ns", "CPU", "ns"), Column("peak_rss_bytes", "peak", "size"),
        Column("rchar", "bytes read", "size"), Column("storage_bytes", "storage I/O", "size"),
        Column("cost", "cost", "money"), Column("tasks", "tasks", "count"), Column("failed_tasks", "failed", "count"),
    ]  # fmt: skip
    return Table("runs", "Runs", columns, [dataclasses.asdict(p) for p in found])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sluice tune trend`."""
    parser.add_argument("--pipeline", metavar="P", required=True, help="the pipeline")
    add_run_choice(parser, RUNS)
    parser.add_argument(
        "--last", metavar="K", type=positive, help="set the last K runs against those before (default: look for a step)"
    )
    add_prices(parser)
    lake_open.add_arguments(parser)
    common.add_output(parser)
    parser.add_argument("--section", choices=("metrics", "changes", "runs"), help="the table of --format csv")


def main(args: argparse.Namespace) -> int:
    """`sluice tune trend`: prints the answer; 0."""
    prices = price_table.read(args.prices) if args.prices else None
    since_us = since(args.since)
    with lake_open.open_session(args) as session:
        kind = evidence.Kind(args.pipeline)
        chosen = evidence.choose_runs(session, kind, runs_of(args, RUNS), since_us)[kind]
        found = points(session, chosen, prices)
        answer = document(
            args.pipeline, session.source, found, metrics(found, args.last), prices.currency if prices else "USD"
        )
        answer.warnings = list(session.warnings)
    common.emit(answer, args)
    return 0
