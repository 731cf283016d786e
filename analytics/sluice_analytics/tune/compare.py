# SPDX-License-Identifier: Apache-2.0
"""`sluice tune compare`: runs side by side, task by task and tool by tool, against the first of them.

Figures are those of `sluice tune RUN`. A task that has several executions of the same sample in a run is compared
by their median time and CPU, and by their largest peak: that of all programs together where every run has it, else that
of the largest program. Statistics are over the executions of a task that succeeded: pairs of equal samples where every
execution has its own sample, else by Mann and Whitney. A difference is reported if it is rank_tests.LEAST_EFFECT or
more, and improbable as one of all the tests of that figure. It is one of these runs: executions of one run
share its host, its hour and its neighbours, and are no independent samples of a version.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import UserError
from ..lake.session import Session
from ..prices import Prices, add
from . import find, rank_tests
from .evidence import scope_of
from .run import NO_TASK, load
from .run_report import Resources, RunReport, TaskRow, ToolRow

_PAIRS_NEEDED = 6
"""Fewer pairs give no p-value below 0.05: 2 / 2^5 is 0.06"""


PEAK_TOGETHER = "peak_memory_bytes"
PEAK_OF_PROGRAM = "peak_rss_bytes"


@dataclasses.dataclass(kw_only=True)
class Side:
    """What one run has of a task and sample, or of a tool. count: executions or programs. Ratios: to the first run."""

    run: int
    """Its position in the order of the command, from 1"""
    count: int
    wall_ns: float | None
    cpu_ns: float | None
    peak_rss_bytes: int | None
    read_bytes: float | None
    write_bytes: float | None
    cost: float | None
    bound: str | None
    demand: str | None
    """Of several executions each that there is, with commas, as are the next two"""
    waiting_for: str | None
    denied: str | None
    denied_share: float | None
    """The largest"""
    exit: str
    peak_memory_bytes: int | None = None
    """Of a tool, whose programs are no task's, unknown"""
    wall_ratio: float | None = None
    cpu_ratio: float | None = None
    peak_ratio: float | None = None


@dataclasses.dataclass
class Test:
    """Executions of a task, or programs of a tool, in the first run against those in another."""

    subject: str
    run: int
    figure: str
    first: int
    other: int
    median_ratio: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    """By Benjamini and Hochberg, over the tests of the same run and figure"""
    test: str = ""
    verdict: str = "not enough executions to say"


@dataclasses.dataclass
class Version:
    """Executables and container images by which a tool ran in each run; they differ."""

    tool: str
    run: int
    exes: list[str]
    images: list[str]


@dataclasses.dataclass
class Comparison:
    """Everything, for --format json and the page."""

    runs: list[dict[str, Any]]
    tasks: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    tests: list[Test]
    versions: list[Version]
    peak: str
    """The figure that is compared as peak of runs and tasks: peak_memory_bytes, or peak_rss_bytes"""


def compare(session: Session, names: Sequence[str], prices: Prices | None = None) -> Comparison:
    """Compares runs by id, unique beginning of one, or run_name. UserError below two different ones; NotFound."""
    ids = [find.find_run(session, name).run_id for name in names]
    if len(set(ids)) < 2:
        raise UserError("compare needs two or more different runs", "sluice tune compare RUN RUN")
    ids = list(dict.fromkeys(ids))
    reports = [load(session, i, prices=prices, programs_limit=0, with_recommendations=False) for i in ids]
    versions = _versions(session, ids)
    peak = PEAK_TOGETHER if all(r.peak_memory_bytes is not None for r in reports) else PEAK_OF_PROGRAM
    tests = [t for n, other in enumerate(reports[1:], 2) for t in _task_tests(reports[0], other, n, peak)]
    tests += _tool_tests(session, ids, sorted({v.tool for v in versions}))
    decide(tests)
    return Comparison(
        [_run(report, n, reports[0], peak) for n, report in enumerate(reports, 1)],
        _sides(reports, _tasks_of, ("task", "sample"), peak),
        _sides(reports, _tools_of, ("tool",), PEAK_OF_PROGRAM),
        tests,
        versions,
        peak,
    )


def _ratio(value: float | None, first: float | None) -> float | None:
    return value / first if value is not None and first else None


def _cpu(u: Resources) -> int | None:
    return None if u.cpu_user_ns is None or u.cpu_system_ns is None else u.cpu_user_ns + u.cpu_system_ns


def _peak(r: RunReport | TaskRow, peak: str) -> int | None:
    return r.peak_memory_bytes if peak == PEAK_TOGETHER else r.usage.peak_rss_bytes


def _run(r: RunReport, n: int, first: RunReport, peak: str) -> dict[str, Any]:
    return {
        "run": n, "run_id": r.run_id, "run_name": r.run_name, "pipeline": r.pipeline, "start_time": r.start_time,
        "state": r.state, "wall_ns": r.wall_ns, "wall_ratio": _ratio(r.wall_ns, first.wall_ns),
        "cpu_ns": _cpu(r.usage), "cpu_ratio": _ratio(_cpu(r.usage), _cpu(first.usage)),
        "peak_rss_bytes": r.usage.peak_rss_bytes,
        "peak_memory_bytes": r.peak_memory_bytes, "peak_ratio": _ratio(_peak(r, peak), _peak(first, peak)),
        "read_bytes": r.usage.read_bytes, "write_bytes": r.usage.write_bytes, "cost": r.cost.used, "bound": r.bound,
        "demand": r.demand, "demand_confidence": r.demand_confidence, "waiting_for": r.waiting_for,
        "denied": r.denied, "denied_share": r.denied_share, "tasks": len(_tasks(r)),
        "hosts": [h["host_name"] for h in r.hosts], "warnings": r.warnings,
    }  # fmt: skip


def _tasks(report: RunReport) -> list[TaskRow]:
    return [t for t in report.tasks if t.task_id != NO_TASK]


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def _exits(rows: Sequence[TaskRow]) -> str:
    """0; signal 9; 0, 0, 1 as '0 (2), 1 (1)'; running; unknown."""
    counts: dict[str, int] = {}
    for t in rows:
        if t.exit_signal is not None:
            word = f"signal {t.exit_signal}"
        elif t.exit_code is not None:
            word = str(t.exit_code)
        else:
            word = "running" if t.end_time is None else "unknown"
        counts[word] = counts.get(word, 0) + 1
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{word} ({n})" for word, n in sorted(counts.items()))


def _largest(values: Iterable[Any]) -> Any:
    return max((v for v in values if v is not None), default=None)


def _each(rows: Sequence[TaskRow], name: str) -> str | None:
    """What there is of a word in these rows, with commas."""
    return ", ".join(dict.fromkeys(word for t in rows if (word := getattr(t, name)))) or None


def _task_side(rows: Sequence[TaskRow], n: int) -> Side:
    return Side(
        run=n, count=len(rows), wall_ns=_median([t.wall_ns for t in rows]),
        cpu_ns=_median([_cpu(t.usage) for t in rows]),
        peak_rss_bytes=_largest(t.usage.peak_rss_bytes for t in rows),
        peak_memory_bytes=_largest(t.peak_memory_bytes for t in rows),
        read_bytes=_median([t.usage.read_bytes for t in rows]),
        write_bytes=_median([t.usage.write_bytes for t in rows]), cost=add([t.cost.used for t in rows]),
        bound=_each(rows, "bound"), demand=_each(rows, "demand"), waiting_for=_each(rows, "waiting_for"),
        denied=_each(rows, "denied"), denied_share=_largest(t.denied_share for t in rows), exit=_exits(rows),
    )  # fmt: skip


def _tool_side(t: ToolRow, n: int) -> Side:
    u = t.usage
    exits = f"{t.failed} of {t.programs} failed" if t.failed else "0"
    return Side(
        run=n, count=t.programs, wall_ns=t.wall_ns, cpu_ns=_cpu(u), peak_rss_bytes=u.peak_rss_bytes,
        read_bytes=u.read_bytes, write_bytes=u.write_bytes, cost=t.cost.used, bound=t.bound, demand=t.demand,
        waiting_for=t.waiting_for, denied=t.denied, denied_share=t.denied_share, exit=exits,
    )  # fmt: skip


Sides = dict[tuple[str | None, ...], Side]


def _tasks_of(report: RunReport, n: int) -> Sides:
    by_key: dict[tuple[str | None, ...], list[TaskRow]] = {}
    for t in _tasks(report):
        by_key.setdefault((t.name, t.sample), []).append(t)
    return {key: _task_side(rows, n) for key, rows in by_key.items()}


def _tools_of(report: RunReport, n: int) -> Sides:
    return {(t.tool,): _tool_side(t, n) for t in report.tools}


def _sides(
    reports: Sequence[RunReport], of: Callable[[RunReport, int], Sides], names: tuple[str, ...], peak: str
) -> list[dict[str, Any]]:
    """One row a subject and run that has it, in the order of the first run, with ratios to the first run's."""
    all_sides = [of(report, n) for n, report in enumerate(reports, 1)]
    rows = []
    for key in dict.fromkeys(key for sides in all_sides for key in sides):
        first = all_sides[0].get(key)
        for sides in all_sides:
            side = sides.get(key)
            if side is None:
                continue
            if first is not None:
                side.wall_ratio = _ratio(side.wall_ns, first.wall_ns)
                side.cpu_ratio = _ratio(side.cpu_ns, first.cpu_ns)
                side.peak_ratio = _ratio(getattr(side, peak), getattr(first, peak))
            rows.append(dict(zip(names, key, strict=True)) | dataclasses.asdict(side))
    return rows


# Statistics


def _figures(t: TaskRow) -> dict[str, float | None]:
    return {
        "wall_ns": t.wall_ns, "cpu_ns": _cpu(t.usage), PEAK_OF_PROGRAM: t.usage.peak_rss_bytes,
        PEAK_TOGETHER: t.peak_memory_bytes,
    }  # fmt: skip


def _good(report: RunReport) -> dict[str, list[TaskRow]]:
    found: dict[str, list[TaskRow]] = {}
    for t in _tasks(report):
        unseen = t.exit_code is None and t.exit_signal is None and not t.failed_programs
        if t.end_time is not None and (unseen or (t.exit_code == 0 and t.exit_signal is None)):
            found.setdefault(t.name, []).append(t)
    return found


def _task_tests(first: RunReport, other: RunReport, n: int, peak: str) -> list[Test]:
    one, two = _good(first), _good(other)
    tests = []
    for name in one:
        if name not in two or max(len(one[name]), len(two[name])) < 2:
            continue
        for figure in ("wall_ns", "cpu_ns", peak):
            a = [(t.sample, v) for t in one[name] if (v := _figures(t)[figure]) is not None]
            b = [(t.sample, v) for t in two[name] if (v := _figures(t)[figure]) is not None]
            tests.append(judge(name, n, figure, a, b))
    return tests


def judge(
    subject: str,
    run: int,
    figure: str,
    a: Sequence[tuple[str | None, float]],
    b: Sequence[tuple[str | None, float]],
) -> Test:
    """The test that these values allow: (sample, value) of the first run and of another. decide() adds the verdict."""
    x, y = [v for _, v in a], [v for _, v in b]
    test = Test(subject, run, figure, len(x), len(y))
    if not x or not y:
        return test
    test.median_ratio = _ratio(statistics.median(y), statistics.median(x))
    pairs = _pairs(a, b)
    if pairs is not None and len(pairs) >= _PAIRS_NEEDED:
        test.test = f"{len(pairs)} pairs of samples, signs exchanged"
        test.p = rank_tests.paired([math.log(v / u) for u, v in pairs])
        test.median_ratio = statistics.median([v / u for u, v in pairs])
    elif 2 / math.comb(len(x) + len(y), len(x)) < rank_tests.SIGNIFICANT:
        test.test = "Mann-Whitney"
        test.p = rank_tests.mann_whitney(x, y)
    return test


def decide(tests: Sequence[Test]) -> None:
    """Adds the verdict of all tests of a comparison: of how many there are depends what one of them shows."""
    families: dict[tuple[int, str], list[Test]] = {}
    for test in tests:
        if test.p is not None:
            families.setdefault((test.run, test.figure), []).append(test)
    for family in families.values():
        for test, p in zip(family, rank_tests.adjusted([t.p or 0.0 for t in family]), strict=True):
            ratio = test.median_ratio
            test.p_adjusted = p
            if ratio is None or p >= rank_tests.SIGNIFICANT:
                test.verdict = "no difference to be seen"
            elif rank_tests.is_little(ratio):
                test.verdict = f"differs by less than {rank_tests.LEAST_EFFECT:.0%}"
            else:
                test.verdict = "more" if ratio > 1 else "less"


def _pairs(
    a: Sequence[tuple[str | None, float]], b: Sequence[tuple[str | None, float]]
) -> list[tuple[float, float]] | None:
    """Values of equal samples, all above 0; None where a sample is unknown, or not one execution's alone."""
    one, two = dict(a), dict(b)
    if None in one or None in two or len(one) < len(a) or len(two) < len(b):
        return None
    return [(one[s], two[s]) for s in one if s in two and one[s] > 0 and two[s] > 0]


# Tools that are not the same


def _versions(session: Session, ids: Sequence[str]) -> list[Version]:
    """Tools whose executables or container images differ between runs."""
    t = session.table("program", scope_of([find.find_run(session, i) for i in ids]))
    t = t.filter(t.tool.notnull() & t.exe.notnull() & ~t.overhead.fill_null(False))
    origins: dict[str, dict[str, tuple[set[str], set[str]]]] = {}
    for row in session.rows(t.select("run_id", "tool", "exe", "container_image").distinct()):
        exes, images = origins.setdefault(row["tool"], {}).setdefault(row["run_id"], (set(), set()))
        exes.add(row["exe"])
        if row["container_image"]:
            images.add(row["container_image"])
    found = []
    for tool, by_run in sorted(origins.items()):
        if len({(frozenset(e), frozenset(i)) for e, i in by_run.values()}) < 2:
            continue
        found += [
            Version(tool, n, sorted(by_run[i][0]), sorted(by_run[i][1])) for n, i in enumerate(ids, 1) if i in by_run
        ]
    return found


def _tool_tests(session: Session, ids: Sequence[str], tools: Sequence[str]) -> list[Test]:
    """Programs of tools that are not the same, that ended with 0, against those of the first run."""
    if not tools:
        return []
    t = session.table("program", scope_of([find.find_run(session, i) for i in ids]))
    t = t.filter((t.phase == "END") & t.tool.isin(list(tools)) & (t.exit_code == 0) & ~t.overhead.fill_null(False))
    t = t.select(
        "run_id", "tool", "sample", "peak_rss_bytes",
        wall_ns=(t.end_time - t.program_start_time) * 1000, cpu_ns=t.cpu_user_ns + t.cpu_system_ns,
    )  # fmt: skip
    values: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in session.rows(t):
        values.setdefault((row["run_id"], row["tool"]), []).append(row)
    tests = []
    for tool in tools:
        one = values.get((ids[0], tool), [])
        for n, other in enumerate(ids[1:], 2):
            two = values.get((other, tool), [])
            for figure in ("wall_ns", "cpu_ns", "peak_rss_bytes") if one and two else ():
                a = [(r["sample"], float(r[figure])) for r in one if r[figure] is not None]
                b = [(r["sample"], float(r[figure])) for r in two if r[figure] is not None]
                tests.append(judge(f"tool {tool}", n, figure, a, b))
    return tests
