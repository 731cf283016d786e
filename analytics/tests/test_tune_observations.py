# SPDX-License-Identifier: Apache-2.0
"""Curves, gaps, critical path, stragglers, contention, idle, stuck and quiet: on made lakes, by hand."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from lakes import MIB, LakeMaker, S

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.tune import observations
from sluice_analytics.tune.run import load
from sluice_analytics.tune.run_report import Observation, RunReport
from sluice_analytics.tune.timeline import bin_us


def of(maker: LakeMaker, **options: Any) -> RunReport:
    """The report of what was made."""
    maker.write()
    with DuckSession(str(maker.path)) as session:
        return load(session, with_recommendations=False, **options)


def kinds(report: RunReport, kind: str) -> list[Observation]:
    """The observations of a kind."""
    return [o for o in report.observations if o.kind == kind]


# Timeline


@pytest.mark.parametrize("wall_us", [1, 10_000, 5_999_999, 6_000_001, 47_000_000, 3_600_000_000, 10**12, 10**15])
def test_bins_are_few_and_no_longer_than_need_be(wall_us: int) -> None:
    """At most 600, wherever the run begins."""
    for start in (0, 1, 1_793_534_400_123_456):
        step = bin_us(start, start + wall_us)
        assert (start + wall_us) // step - start // step + 1 <= 600
        if wall_us > 10_000_000:
            assert wall_us // step >= 100


def test_curves_by_hand(maker: LakeMaker) -> None:
    """A program of 10 s with 5 s of CPU: half a CPU in each bin that it fills; its bytes are spread as evenly."""
    maker.run(run_id="r1", end=20, programs=2)
    maker.program(run_id="r1", start=0, end=10, cpu_user_ns=4 * S, cpu_system_ns=S, read_bytes=1000, rss_bytes=MIB)
    maker.program(run_id="r1", start=5, end=20, net_tx_bytes=1500, rss_bytes=MIB)
    line = of(maker).timeline
    assert line.start_us == maker.us(0) and line.bin_us == 50_000
    at = {second: int(second * 20) for second in (0, 3, 7, 9.95, 10, 12)}
    cores = line.series["cpu_cores"]
    assert [round(cores[at[s]], 9) for s in (0, 3, 9.95, 10)] == [0.5, 0.5, 0.5, 0]
    assert round(line.series["read_bytes_per_s"][at[3]], 6) == 100
    assert round(line.series["net_tx_bytes_per_s"][at[7]], 6) == 100
    assert line.series["running_programs"][at[3]] == 1 and line.series["running_programs"][at[7]] == 2
    assert round(line.series["rss_bytes"][at[7]]) == 2 * MIB and round(line.series["rss_bytes"][at[12]]) == MIB


def test_intervals_are_curves(maker: LakeMaker) -> None:
    """A program that worked in one of its intervals alone is busy there and not elsewhere."""
    maker.run(run_id="r1", end=30, programs=1)
    p = maker.program(run_id="r1", start=0, end=30, cpu_user_ns=10 * S)
    maker.usage(p, start=0, end=10, program_start_time=maker.us(0))
    maker.usage(p, start=10, end=20, cpu_user_ns=10 * S, program_start_time=maker.us(0))
    line = of(maker).timeline
    cores = line.series["cpu_cores"]
    second = 1_000_000 // line.bin_us
    assert cores[5 * second] == 0 and cores[25 * second] == 0
    assert cores[15 * second] == pytest.approx(1)


# Gaps


def test_gaps_are_where_no_task_works(maker: LakeMaker) -> None:
    """Two tasks with a pause between; the driver's work, and a program that only waits, fill no gap."""
    maker.run(run_id="r1", start=0, end=60, programs=4)
    maker.program(run_id="r1", start=0, end=60, tool="snakemake", cpu_user_ns=30 * S)
    for task_id, start, end in (("t1", 0, 20), ("t2", 30, 60)):
        maker.task(run_id="r1", task_id=task_id, start=start, end=end)
        maker.program(run_id="r1", task_id=task_id, start=start, end=end, cpu_user_ns=10 * S)
    maker.program(run_id="r1", task_id="t1", start=5, end=28, tool="sleep", cpu_user_ns=1_000_000)
    report = of(maker)
    assert report.gaps == [(maker.us(20), maker.us(30))]
    [gap] = kinds(report, "GAP")
    assert gap.severity == "WARNING" and gap.evidence["tasks"] == []


def test_gap_at_both_ends_and_moving_bytes_is_work(maker: LakeMaker) -> None:
    """A program that uses no CPU and moves bytes works."""
    maker.run(run_id="r1", start=0, end=100, programs=1)
    maker.task(run_id="r1", start=10, end=90)
    maker.program(run_id="r1", task_id="t1", start=10, end=90, net_rx_bytes=100 * MIB)
    assert of(maker).gaps == [(maker.us(0), maker.us(10)), (maker.us(90), maker.us(100))]


def test_a_run_that_never_works_is_one_gap(maker: LakeMaker) -> None:
    """From its beginning to its end; without tasks every program counts."""
    maker.run(run_id="r1", start=0, end=100, programs=1)
    maker.program(run_id="r1", start=0, end=100, tool="sleep")
    report = of(maker)
    assert report.gaps == [(maker.us(0), maker.us(100))]


# Critical path


def test_critical_path(maker: LakeMaker) -> None:
    """Back from the task that ended last, each time to the one that had ended last."""
    maker.run(run_id="r1", end=100, programs=0)
    spans = {"a": (0, 10), "b": (0, 30), "c": (31, 50), "d": (11, 45), "e": (51, 99), "f": (51, 60), "g": (30, 49)}
    for task_id, (start, end) in spans.items():
        maker.task(run_id="r1", task_id=task_id, task=task_id, start=start, end=end)
    report = of(maker)
    assert report.critical_path == ["b", "c", "e"]
    assert {t.task_id for t in report.tasks if t.on_critical_path} == {"b", "c", "e"}


def test_critical_path_ends_with_what_still_runs(maker: LakeMaker) -> None:
    """A live task is on it; tasks of no length do not precede themselves."""
    maker.run(run_id="r1", phase="LIVE", time=maker.us(50))
    maker.task(run_id="r1", task_id="a", start=0, end=10)
    maker.task(run_id="r1", task_id="z", start=10, end=10)
    maker.task(run_id="r1", task_id="b", start=10, phase="LIVE", time=maker.us(50))
    assert of(maker).critical_path == ["a", "z", "b"]


# Stragglers


def test_straggler(maker: LakeMaker) -> None:
    """One of eight equal tasks took thrice as long, with thrice the bytes."""
    walls = [10.0, 11, 9, 10.5, 9.5, 10, 10.2, 33]
    maker.run(run_id="r1", end=100, programs=0)
    for n, wall in enumerate(walls):
        moved = {"rchar": int(wall * 1000), "cpu_user_ns": S}
        maker.task(run_id="r1", task_id=f"t{n}", task="align", sample=f"S{n}", end=wall, **moved)
    [straggler] = kinds(of(maker), "STRAGGLER")
    median = statistics.median(walls)
    mad = statistics.median(abs(w - median) for w in walls)
    assert straggler.task_id == "t7"
    assert straggler.evidence["modified_z"] == round(0.6745 * (33 - median) / mad, 2)
    assert straggler.evidence["median_wall_ns"] == median * 1e9
    assert straggler.sentence.startswith("align (S7) took 33.0 s, 3.3 times the median of 8 tasks")
    assert straggler.sentence.endswith("with 3.3 times the bytes read and written")


@pytest.mark.parametrize(
    "walls",
    [
        [10.0, 10, 30],  # too few
        [10.0, 11, 9, 10, 14],  # an outlier, but not much longer
        [0.1, 0.1, 0.1, 0.11, 0.5],  # much longer, but by less than a second
        [1.0, 10, 20, 30, 40, 50],  # they differ anyway
        [10.0, 10, 10, 10],
        [0.0, 0, 0, 0, 5],  # nothing to compare with
    ],
)
def test_no_straggler(maker: LakeMaker, walls: list[float]) -> None:
    """Too few, too little, too short, or all different."""
    maker.run(run_id="r1", end=100, programs=0)
    for n, wall in enumerate(walls):
        maker.task(run_id="r1", task_id=f"t{n}", task="align", end=wall)
    assert kinds(of(maker), "STRAGGLER") == []


def test_stragglers_of_many(maker: LakeMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is usual is worked out once for a group, not for each of its tasks or stragglers."""
    values = 0

    def median(data: Sequence[float]) -> float:
        nonlocal values
        values += len(data)
        return statistics.median(data)

    maker.run(run_id="r1", end=100, programs=0)
    for n in range(60):
        maker.task(run_id="r1", task_id=f"t{n}", task="align", end=10 + n % 5 if n < 50 else 90, rchar=n, wchar=n)
    rows = of(maker).tasks
    monkeypatch.setattr(observations, "statistics", SimpleNamespace(median=median, fmean=statistics.fmean))
    assert len(observations.stragglers(rows, {})) == 10
    assert values <= 5 * 60


def test_straggler_among_equal_ones(maker: LakeMaker) -> None:
    """The median deviation is 0: the mean one replaces it."""
    assert observations.Spread([10, 10, 10, 10, 20]).modified_z(20) == pytest.approx(10 / (1.253314 * 2))
    assert observations.Spread([10, 10]).modified_z(10) == 0
    maker.run(run_id="r1", end=100, programs=0)
    for n, wall in enumerate([10.0] * 9 + [40]):
        maker.task(run_id="r1", task_id=f"t{n}", task="align", end=wall)
    assert [o.task_id for o in kinds(of(maker), "STRAGGLER")] == ["t9"]


def test_tasks_that_share_no_more_than_a_shell_are_not_equal(maker: LakeMaker) -> None:
    """Named by their command, for the engine named none: those that ran the same tools are compared."""
    maker.run(run_id="r1", end=100, programs=0)
    for n, (tool, wall) in enumerate([("rev", 10.0)] * 5 + [("sleep", 40.0), ("rev", 30.0)]):
        same = {"run_id": "r1", "task_id": f"t{n}", "task": "bash", "end": wall}
        maker.task(**same, source="child of the driver")
        maker.program(**same, tool="bash")
        maker.program(**same, tool=tool)
    assert [o.task_id for o in kinds(of(maker), "STRAGGLER")] == ["t6"]


# Contention, starvation, pressure


def test_contention_between_tasks(maker: LakeMaker) -> None:
    """Tasks that waited for a CPU beside each other; one alone is starved; one that did not wait is neither."""
    maker.run(run_id="r1", end=100, programs=0)
    for n in range(3):
        maker.task(
            run_id="r1", task_id=f"t{n}", task="align", start=0, end=40, share_run_delay=0.5, bound="STARVED",
            run_delay_ns=20 * S,
        )  # fmt: skip
    maker.task(run_id="r1", task_id="alone", task="sort", start=50, end=60, share_run_delay=0.9, bound="STARVED")
    maker.task(run_id="r1", task_id="fine", task="index", start=0, end=40, share_run_delay=0.1, bound="COMPUTE")
    maker.host(start=0, end=20, cpus=2, psi_cpu_some=0.8)
    maker.host(start=20, end=60, cpus=2, psi_cpu_some=0.2, psi_io_some=0.5)
    report = of(maker)
    [contention] = kinds(report, "CONTENTION")
    assert contention.evidence["tasks"] == ["t0", "t1", "t2"]
    assert contention.evidence["run_delay_ns"] == 60 * S
    assert contention.evidence["beside_at_most"] == 3
    assert contention.evidence["psi_cpu_some_mean"] == pytest.approx((20 * 0.8 + 20 * 0.2) / 40)
    assert [o.task_id for o in kinds(report, "STARVED")] == ["alone"]
    [pressure] = kinds(report, "PRESSURE")
    assert pressure.evidence["psi_io_some_mean"] == pytest.approx(40 * 0.5 / 60)


def test_demand_and_denied_come_before_bound(maker: LakeMaker) -> None:
    """A task is denied a CPU by its record of that, whatever bound and shares are; below 30 % it is not reported."""
    maker.run(run_id="r1", end=100, programs=0)
    found = {"demand": "COMPUTE", "denied": "RUN_QUEUE", "denied_share": 0.4, "bound": "COMPUTE", "run_delay_ns": S}
    for n in range(2):
        maker.task(run_id="r1", task_id=f"t{n}", task="align", end=40, **found)
    maker.task(run_id="r1", task_id="alone", task="sort", start=50, end=60, **found | {"denied_share": 0.9})
    maker.task(run_id="r1", task_id="brief", task="sort", start=70, end=70.5, **found)
    maker.task(run_id="r1", task_id="little", task="index", start=80, end=90, **found | {"denied_share": 0.29})
    own = {"denied": "NOTHING", "denied_share": 0.0, "bound": "STARVED", "share_run_delay": 0.9}
    maker.task(run_id="r1", task_id="own", task="index", start=80, end=90, **own)
    report = of(maker)
    [contention] = kinds(report, "CONTENTION")
    assert contention.evidence["tasks"] == ["t0", "t1"]
    assert contention.evidence["worst_denied_share"] == 0.4
    [starved] = kinds(report, "STARVED")
    assert starved.task_id == "alone" and starved.evidence["denied_share"] == 0.9
    assert "waited 90% of its time for a CPU" in starved.sentence


def test_throttled_and_reclaim(maker: LakeMaker) -> None:
    maker.run(run_id="r1", end=100, programs=0)
    for n, (denied, share) in enumerate((("THROTTLED", 0.5), ("THROTTLED", 0.2), ("RECLAIM", 0.6), ("RECLAIM", 0.1))):
        maker.task(
            run_id="r1", task_id=f"t{n}", task="align", end=40, demand="COMPUTE", denied=denied, denied_share=share,
            bill_cpu_ns=S, bill_throttled_ns=20 * S, bill_reclaim_ns=3 * S, bill_swap_ns=4 * S, major_faults=7,
            peak_memory_bytes=1 << 30,
        )  # fmt: skip
    report = of(maker)
    [throttled] = kinds(report, "THROTTLED")
    assert throttled.task_id == "t0" and throttled.evidence["throttled_ns"] == 20 * S
    assert "kept from a CPU for 50% of its time" in throttled.sentence
    [reclaim] = kinds(report, "RECLAIM")
    assert reclaim.task_id == "t2"
    names = ("denied_share", "reclaim_ns", "swap_ns", "major_faults", "peak_memory_bytes")
    assert [reclaim.evidence[name] for name in names] == [0.6, 3 * S, 4 * S, 7, 1 << 30]
    assert kinds(report, "CONTENTION") == [] and kinds(report, "STARVED") == []


# Idle, stuck, quiet, unused, I/O


def test_idle_task(maker: LakeMaker) -> None:
    """By the agent's own bound, but for one that read 1 MiB a second meanwhile."""
    maker.run(run_id="r1", end=100, programs=0)
    maker.task(run_id="r1", task_id="t1", task="wait", end=60, bound="IDLE", share_idle=0.99)
    maker.task(run_id="r1", task_id="t2", task="blink", end=1, bound="IDLE", share_idle=0.99)
    maker.task(run_id="r1", task_id="t3", task="read", end=60, bound="IDLE", share_idle=0.99, rchar=60 << 20)
    [idle] = kinds(of(maker), "IDLE")
    assert idle.task_id == "t1" and idle.evidence["idle_share"] == 0.99
    assert idle.sentence == "wait was idle for 99% of its 1m00s"


def test_idle_task_by_demand(maker: LakeMaker) -> None:
    maker.run(run_id="r1", end=100, programs=0)
    waits = {"demand": "WAITING_FOR", "waiting_for": "PIPE", "denied": "NOTHING", "share_idle": 0.99}
    maker.task(run_id="r1", task_id="t1", task="wait", end=60, **waits)
    maker.task(run_id="r1", task_id="t2", task="nfs", end=60, bound="IDLE", demand="NETWORK_FS", share_idle=0.99)
    [idle] = kinds(of(maker), "IDLE")
    assert idle.task_id == "t1" and idle.evidence["waiting_for"] == "PIPE"
    assert idle.sentence.endswith("; it waited most for: pipe")


def test_quiet_program(maker: LakeMaker) -> None:
    """Alive and silent for minutes: the child that waits, not the shell that waits for it, nor one that moves."""
    maker.run(run_id="r1", phase="LIVE", time=maker.us(300))
    shell = maker.program(run_id="r1", task_id="t1", task="step", tool="bash")
    sleeps = maker.program(
        run_id="r1", task_id="t1", task="step", tool="sleep", parent_program_id=shell["program_id"], start=5
    )
    moves = maker.program(run_id="r1", task_id="t1", tool="xz", parent_program_id=shell["program_id"])
    maker.usage(sleeps, start=5, end=10, cpu_user_ns=S)
    maker.usage(moves, start=280, end=290, cpu_user_ns=S)
    report = of(maker, now_us=maker.us(301))
    [quiet] = kinds(report, "QUIET")
    assert quiet.severity == "INFO"
    assert quiet.evidence["program_id"] == sleeps["program_id"]
    assert quiet.evidence["silent_ns"] == 290 * S
    assert quiet.evidence["moved_time"] == maker.us(10)
    assert kinds(report, "STUCK") == []  # a server and a sleep do no more: the agent alone knows for what they wait


def test_nothing_is_quiet_in_a_run_that_ended(maker: LakeMaker) -> None:
    """A program whose END is missing."""
    maker.run(run_id="r1", end=300, programs=1)
    maker.program(run_id="r1", tool="curl")
    assert kinds(of(maker), "QUIET") == []


def test_stuck_is_what_the_agent_found(maker: LakeMaker) -> None:
    """By its Finding records, with their severity; what is stuck is not quiet, unless it moved in between."""
    maker.run(run_id="r1", phase="LIVE", time=maker.us(600))
    hangs = maker.program(run_id="r1", task_id="t1", task="step", tool="cp")
    moved = maker.program(run_id="r1", task_id="t2", task="next", tool="cat")
    maker.usage(moved, start=400, end=410, cpu_user_ns=S)
    same = {"run_id": "r1", "kind": "STUCK"}
    maker.finding(**same, at=390, task_id="t2", task="next", program_id=moved["program_id"])
    message = "the task step has made no progress for 5m00s"
    maker.finding(**same, at=310, task_id="t1", task="step", program_id=hangs["program_id"], message=message)
    maker.finding("STUCK", at=311, run_id="r2", task_id="t1", program_id="other")
    report = of(maker, now_us=maker.us(601))
    first, second = kinds(report, "STUCK")
    assert (first.task_id, first.severity) == ("t1", "WARNING")
    assert first.sentence.startswith(f"{message} (found at ")
    assert first.evidence == {"program_id": hangs["program_id"], "found_time": maker.us(310)}
    assert second.task_id == "t2"
    assert [o.evidence["program_id"] for o in kinds(report, "QUIET")] == [moved["program_id"]]


def test_unused_request(maker: LakeMaker) -> None:
    """By jobstats' thresholds; a short task is not judged."""
    maker.run(run_id="r1", end=200, programs=0)
    asked = {"requested_cpus": 8.0, "requested_memory_bytes": 1000 * MIB, "cpu_user_ns": 100 * S}
    maker.task(run_id="r1", task_id="t1", end=100, peak_rss_bytes=100 * MIB, parallelism=1.0, **asked)
    maker.task(run_id="r1", task_id="t2", end=30, peak_rss_bytes=100 * MIB, **asked)
    maker.task(
        run_id="r1", task_id="t3", end=100, peak_rss_bytes=900 * MIB, requested_cpus=1.0,
        requested_memory_bytes=1000 * MIB, cpu_user_ns=90 * S,
    )  # fmt: skip
    report = of(maker)
    assert [(o.task_id, o.evidence["cpu_efficiency"]) for o in kinds(report, "UNUSED_CPUS")] == [("t1", 0.125)]
    assert [(o.task_id, o.evidence["memory_efficiency"]) for o in kinds(report, "UNUSED_MEMORY")] == [("t1", 0.1)]


def test_which_tool_made_the_io(maker: LakeMaker) -> None:
    """By share of storage bytes."""
    maker.run(run_id="r1", end=100, programs=3)
    maker.program(run_id="r1", end=10, tool="sort", write_bytes=600 * MIB)
    maker.program(run_id="r1", end=10, tool="sort", read_bytes=150 * MIB)
    maker.program(run_id="r1", end=10, tool="cat", read_bytes=250 * MIB)
    report = of(maker)
    [made] = kinds(report, "IO_BY_TOOL")
    assert made.evidence["tool"] == "sort" and made.evidence["share_of_io"] == 0.75
    assert {t.tool: t.share_of_io for t in report.tools} == {"sort": 0.75, "cat": 0.25}
