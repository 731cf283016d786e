# SPDX-License-Identifier: Apache-2.0
"""Recommendations against numbers computed by hand."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import random
from typing import Any

import pytest
from executions import GIB, MIB, add_execution, add_run, same_in_runs
from lakes import T0, LakeMaker, S

from sluice_analytics.cli import common, tune_recommend
from sluice_analytics.errors import NotFound
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.model.verdict import Verdict
from sluice_analytics.prices import Price, Prices
from sluice_analytics.tune import money, recommend, sizes
from sluice_analytics.tune.advice import Advice
from sluice_analytics.tune.evidence import Execution, executions
from sluice_analytics.tune.find import all_runs
from sluice_analytics.tune.percentiles import percentile, variation
from sluice_analytics.tune.run import load
from sluice_analytics.tune.run_report import Recommendation

DAY_US = 86_400_000_000
NOW = T0 + DAY_US


def advices(lake: LakeMaker, **options: Any) -> dict[str, Advice]:
    lake.write()
    with DuckSession(str(lake.path)) as session:
        return {a.task: a for a in recommend.advices_of(session, **({"now_us": NOW} | options))}


def only(lake: LakeMaker, **options: Any) -> Advice:
    found = advices(lake, **options)
    assert len(found) == 1
    return next(iter(found.values()))


def of(advice: Advice, what: str) -> Recommendation:
    found = advice.of(what)
    assert found is not None, advice
    return found


def found_in(lake: LakeMaker) -> list[Execution]:
    lake.write()
    with DuckSession(str(lake.path)) as session:
        return executions(session, all_runs(session))


def price(name: str, per_hour: float, vcpu: float | None, gib: float | None, gpu: float | None = None) -> Price:
    return Price(instance_type=name, per_hour=per_hour, vcpu=vcpu, mem_gib=gib, gpu=gpu)


# Sizes


def test_sizes_of_three_runs(maker: LakeMaker) -> None:
    for n, (wall, cpu, peak) in enumerate(((50, 90, 300), (100, 240, 500), (150, 180, 400))):
        add_run(maker, f"r{n}", start=3600 * n)
        add_execution(maker, f"r{n}", start=3600 * n, wall=wall, cpu=cpu, programs=[(0, wall, peak)])
    advice = only(maker)
    assert (advice.pipeline, advice.executions, advice.successful, advice.runs, advice.lack) == ("p", 3, 3, 3, "")
    # P95 of three values is the largest: 2.4 CPUs, 500 MiB, 150 s.
    assert of(advice, "cpus").recommended == 3
    assert of(advice, "memory_bytes").recommended == 575 * MIB
    assert of(advice, "time_ns").recommended == 180e9
    evidence = of(advice, "cpus").evidence
    assert (evidence["executions"], evidence["runs"]) == (3, 3)
    assert evidence["median_cpus"] == pytest.approx(1.8)
    assert evidence["p95_cpus"] == pytest.approx(2.4)
    assert of(advice, "cpus").current is None
    assert of(advice, "cpus").runs == 3


def test_cpus_are_rounded_up_but_for_a_twentieth(maker: LakeMaker) -> None:
    for task, cpu in (("A", 104), ("B", 106), ("C", 3), ("D", 300)):
        for n in range(3):
            add_execution(maker, f"r{n}", task, start=3600 * n, wall=100, cpu=cpu)
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n)
    found = advices(maker)
    assert {t: of(a, "cpus").recommended for t, a in found.items()} == {"A": 1, "B": 2, "C": 1, "D": 3}


def test_least_memory_and_time(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=2, cpu=1, programs=[(0, 2, 4)])
    advice = only(maker)
    assert of(advice, "memory_bytes").recommended == 250 * MIB
    assert of(advice, "time_ns").recommended == 60e9


def test_memory_is_rounded_up_to_whole_mebibytes(maker: LakeMaker) -> None:
    same_in_runs(maker, programs=[(0, 100, 301)])  # * 1.15 is 346.15
    assert of(only(maker), "memory_bytes").recommended == 347 * MIB


def test_percentile_is_a_value_that_was_measured() -> None:
    values = [float(v) for v in range(1, 21)]
    assert percentile(values, 0.95) == 19  # 19 of 20 do not exceed it
    assert percentile(values[:19], 0.95) == 19
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2
    assert percentile([5.0], 0.0) == 5
    with pytest.raises(ValueError):
        percentile([], 0.5)


def test_variation() -> None:
    assert variation([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) == pytest.approx((32 / 7) ** 0.5 / 5)
    assert variation([1.0]) is None
    assert variation([0.0, 0.0]) is None


# Evidence


def test_too_little_evidence(maker: LakeMaker) -> None:
    add_run(maker, "r0")
    add_run(maker, "r1", start=3600)
    add_execution(maker, "r0", "TWO")
    add_execution(maker, "r1", "TWO", start=3600)
    add_execution(maker, "r0", "FAILS", exit_code=1)
    add_execution(maker, "r0", "UNSEEN", exit_code=None, failed_programs=1)
    add_execution(maker, "r0", "NO_DRIVER", exit_code=None)
    for n in range(3):
        add_execution(maker, "r0", "ONE_RUN", start=n)
    found = advices(maker)
    assert all(not a.recommendations for a in found.values())
    assert found["TWO"].lack == "2 successful executions, 3 needed, in different runs"
    assert found["FAILS"].lack.startswith("0 successful executions, 3 needed")
    assert found["UNSEEN"].successful == 0
    assert found["NO_DRIVER"].successful == 1
    assert found["ONE_RUN"].lack == "3 successful executions in 1 run, 3 runs needed"


def test_failed_executions_are_no_evidence(maker: LakeMaker) -> None:
    same_in_runs(maker, programs=[(0, 100, 300)])
    add_execution(maker, "r0", start=200, wall=900, cpu=3600, programs=[(0, 900, 4000)], exit_code=1)
    add_execution(maker, "r1", start=4000, wall=900, cpu=3600, programs=[(0, 900, 4000)], exit_code=None, exit_signal=9)
    advice = only(maker)
    assert (advice.executions, advice.successful) == (5, 3)
    assert of(advice, "memory_bytes").recommended == 345 * MIB
    assert of(advice, "cpus").recommended == 1
    assert of(advice, "time_ns").recommended == 1080e9  # but that one was cut after 900 s is


@pytest.mark.parametrize(
    ("programs", "together"),
    [
        ([(0, 10, 300), (20, 30, 200)], 300),  # one after the other
        ([(0, 10, 300), (5, 15, 200)], 500),
        ([(0, 10, 300), (10, 15, 200)], 300),  # one makes room for the next
        ([(0, 30, 10), (1, 20, 300), (2, 3, 200), (10, 25, 250), (24, 29, 500)], 760),
        ([(5, 5, 300), (6, 7, 100)], 300),  # no time at all is a moment
    ],
)
def test_peaks_of_programs_side_by_side(
    maker: LakeMaker, programs: list[tuple[float, float, float]], together: float
) -> None:
    add_run(maker, "r0")
    add_execution(maker, "r0", programs=programs)
    (one,) = found_in(maker)
    assert one.peak_together_bytes == together * MIB
    assert one.peak_program_bytes == max(p for _, _, p in programs) * MIB
    assert one.programs == len(programs)


def test_programs_of_the_engine_do_not_count(maker: LakeMaker) -> None:
    add_run(maker, "r0")
    add_execution(maker, "r0", task_id="t", programs=[(0, 100, 300)])
    maker.program(run_id="r0", task_id="t", task="ALIGN", start=1, end=90, peak_rss_bytes=GIB, overhead=True)
    maker.program(run_id="r0", task_id=None, start=1, end=90, peak_rss_bytes=GIB)
    (one,) = found_in(maker)
    assert one.peak_together_bytes == 300 * MIB


def test_attempts_of_one_id_are_distinguished(maker: LakeMaker) -> None:
    add_run(maker, "r0", wall=500)
    add_execution(maker, "r0", task_id="t", attempt=1, exit_code=1, programs=[(0, 100, 300)])
    add_execution(maker, "r0", task_id="t", attempt=2, start=200, programs=[(0, 100, 700), (10, 20, 50)])
    first, second = found_in(maker)
    assert (first.attempt, first.peak_together_bytes) == (1, 300 * MIB)
    assert (second.attempt, second.peak_together_bytes, second.programs) == (2, 750 * MIB, 2)


def test_a_limit_that_held_bounds_what_was_needed(maker: LakeMaker) -> None:
    # Four forked children with the same pages: their sum is beyond the limit that held them all.
    same_in_runs(maker, programs=[(0, 100, 400)] * 4, requested_memory_bytes=GIB)
    assert of(only(maker), "memory_bytes").recommended == 1178 * MIB  # 1 GiB * 1.15 = 1177.6


def test_memory_is_no_more_than_a_host_has(maker: LakeMaker) -> None:
    # Forked children that share their pages: their sum is beyond the host of 16 GiB, on which they ran.
    same_in_runs(maker, programs=[(0, 100, 5 * 1024)] * 4)
    ram = of(only(maker), "memory_bytes")
    assert ram.recommended == 16 * GIB
    assert "no host that it ran on has more than 16 GiB" in ram.sentence


def test_an_execution_on_two_hosts(maker: LakeMaker) -> None:
    add_run(maker, "r0")
    add_execution(maker, "r0", task_id="t", wall=100, cpu=150, programs=[(0, 100, 300)])
    add_execution(maker, "r0", task_id="t", start=10, wall=140, cpu=100, programs=[(0, 100, 500)], host_id="b" * 32)
    # The programs of the second part were written for the maker's host: move none, memory is the Task record's.
    (one,) = found_in(maker)
    assert one.wall_ns == 150e9
    assert one.cpu_ns == 250e9
    assert one.host_ids == [maker.host_id, "b" * 32]


def test_requests_add_up_over_hosts(maker: LakeMaker) -> None:
    for n in range(3):
        for h in ("a", "b"):
            host = {"host_id": h * 32, "host_name": f"node-{h}"}
            add_run(maker, f"r{n}", start=3600 * n, wall=360, requested_cpus=4.0, cpu_user_ns=720 * S, **host)
            add_execution(
                maker, f"r{n}", start=3600 * n, task_id=f"t{n}", wall=360, cpu=720, requested_cpus=4.0,
                requested_memory_bytes=8 * GIB, threads=2, **host,
            )  # fmt: skip
    cpus, memory = of(only(maker), "cpus"), of(only(maker), "memory_bytes")
    assert (cpus.current, cpus.recommended) == (8, 4)  # 2 busy on each of 2 hosts
    assert memory.current == 8 * GIB  # of each host
    # Half of two hosts for a tenth of an hour; they hold no more threads, so that it takes no longer.
    assert cpus.saving == pytest.approx(2 * 0.1 * (1 - 0.5))
    assert of(only(maker), "time_ns").recommended == 432e9
    with DuckSession(str(maker.path)) as session:
        efficiency = load(session, "r0", programs_limit=0).efficiency
    assert (efficiency.requested_cpus, efficiency.cpu) == (8, pytest.approx(0.5))


# Time


def test_time_is_not_below_the_longest(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=20000 * n, wall=4000)
        for i in range(34):
            wall = 3600 if (34 * n + i) % 25 == 24 else 600
            add_execution(maker, f"r{n}", start=20000 * n + i, wall=wall, cpu=wall, sample=f"S{i}")
    time = of(only(maker), "time_ns")
    assert time.recommended == 3600e9 * 1.2
    assert "the longest of 102 successful executions in 3 runs took" in time.sentence


@pytest.mark.parametrize(
    ("fields", "seconds", "said"),
    [
        ({"exit_code": None, "exit_signal": 9}, 1080, "a signal ended 1 execution, after 15m00s at most"),
        ({"exit_code": None, "exit_signal": 15}, 1080, "a signal ended 1 execution, after 15m00s at most"),
        ({"exit_code": 137}, 1080, "a signal ended 1 execution, after 15m00s at most"),  # as a shell passes it on
        ({"exit_code": 200}, 900, "the longest of 1 failed execution took 15m00s"),  # no signal has that number
        ({"exit_code": 1}, 900, "the longest of 1 failed execution took 15m00s"),
        ({"exit_code": 137, "wall": 99}, 120, ", + 20 %"),  # no longer than those that succeeded
    ],
)
def test_time_is_not_below_what_was_cut(maker: LakeMaker, fields: dict[str, Any], seconds: int, said: str) -> None:
    same_in_runs(maker, wall=100)
    add_execution(maker, "r0", start=200, **({"wall": 900} | fields))
    time = of(only(maker), "time_ns")
    assert time.recommended == seconds * 1e9
    assert said in time.sentence
    assert time.evidence["failed_executions"] == 1
    assert time.evidence["longest_failed_ns"] == fields.get("wall", 900) * 1e9
    assert time.evidence["signalled_executions"] == int(fields["exit_code"] in (None, 137))


def test_fewer_cpus_take_longer(maker: LakeMaker) -> None:
    # 900 s on one CPU, then 100 s on all of 16: on 3 CPUs it takes 900 + 1600 / 3 s.
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, wall=1000, cpus=16)
        add_execution(maker, f"r{n}", start=3600 * n, wall=1000, cpu=2500, requested_cpus=16.0, threads=16)
    advice = only(maker)
    assert of(advice, "cpus").recommended == 3
    # At most, all of it on 16 at once: 1000 + 2500 / 3 - 2500 / 16 = 1677.08.
    most = 1000 + 2500 / 3 - 2500 / 16
    assert most > 900 + 1600 / 3
    assert of(advice, "time_ns").recommended == 2013e9
    assert "on 3 CPUs" in of(advice, "time_ns").sentence
    assert advice.saving == pytest.approx((1000 - most * 3 / 16) / 3600)


def test_what_is_not_recorded_is_not_taken_for_little(maker: LakeMaker) -> None:
    # Of the 64 programs that the Task record counts there is a record of one: their threads are unknown, not one.
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, wall=1000, cpus=16)
        add_execution(maker, f"r{n}", start=3600 * n, wall=1000, cpu=2500, programs=[(0, 1000, 100)], counted=64)
    advice = only(maker)
    assert of(advice, "time_ns").recommended == 2013e9  # as many at once as the host has CPUs
    assert of(advice, "memory_bytes").evidence["programs_of_unknown_peak"] == 3 * 63


@pytest.mark.parametrize(
    ("busiest", "threads", "seconds"),
    [
        (3.9, 20, 1450),  # it held: (1000 + 2500 / 3 - 2500 / 4) * 1.2
        (8.0, 20, 2013),  # it did not: (1000 + 2500 / 3 - 2500 / 16) * 1.2
        (None, 20, 2013),  # unknown
        (8.0, 4, 1825),  # more ran at once than records of programs have: (1000 + 2500 / 3 - 2500 / 8) * 1.2
    ],
)
def test_a_request_is_what_ran_at_once_only_if_it_held(
    maker: LakeMaker, busiest: float | None, threads: int, seconds: int
) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, wall=1000, cpus=16)
        add_execution(
            maker, f"r{n}", start=3600 * n, task_id=f"t{n}", wall=1000, cpu=2500, requested_cpus=4.0, threads=threads,
        )  # fmt: skip
        if busiest is not None:
            maker.usage(
                run_id=f"r{n}", task_id=f"t{n}", program_id=f"x{n}", start=3600 * n, end=3600 * n + 10,
                cpu_user_ns=round(busiest * 10 * S),
            )  # fmt: skip
    assert of(only(maker), "time_ns").recommended == seconds * 1e9


def test_cpus_that_stay_take_no_longer(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=1000, cpu=3900, requested_cpus=4.0, threads=16)
    assert of(only(maker), "cpus").recommended == 4
    assert of(only(maker), "time_ns").recommended == 1200e9
    assert only(maker).saving == 0


def test_hosts_that_differ_in_number(maker: LakeMaker) -> None:
    for n in range(3):
        for h in "ab"[: 1 + n % 2]:
            host = {"host_id": h * 32, "host_name": f"node-{h}"}
            add_run(maker, f"r{n}", start=3600 * n, **host)
            add_execution(maker, f"r{n}", start=3600 * n, task_id=f"t{n}", **host)
    advice = only(maker)
    assert advice.of("cpus") is None and advice.of("memory_bytes") and advice.of("time_ns")
    assert any("1 to 2 hosts" in r.sentence for r in advice.recommendations)


def _part(draw: random.Random, e: Execution, width: int) -> tuple[float, list[float]]:
    """A quarter of an execution at most, in which each of its hosts keeps up to width CPUs busy."""
    return draw.uniform(0, e.wall_ns / 4), [draw.uniform(0, width) for _ in e.host_ids]


def test_limits_would_have_let_their_own_evidence_live() -> None:
    draw = random.Random(3)
    for _ in range(300):
        sigma, width, hosts = draw.uniform(0, 1.5), draw.choice((1, 4, 32)), draw.choice((1, 1, 3))
        basis, used = _basis([draw.lognormvariate(5, sigma) for _ in range(draw.randint(3, 60))], 3, 1)
        basis.hosts |= {f"h{n}": money.Host(f"h{n}", "h", cpus=32, memory_bytes=64 * GIB) for n in range(hosts)}
        runs: list[tuple[Execution, list[tuple[float, list[float]]]]] = []
        for e in used:
            e.host_ids = [f"h{n}" for n in range(hosts)]
            of_it = [_part(draw, e, width) for _ in range(4)]
            e.cpu_ns = round(sum(length * sum(busy) for length, busy in of_it))
            e.busiest_cpus = draw.choice((None, max(max(busy) for _, busy in of_it)))
            # A request below what ran at once did not hold, which Usage records show.
            e.requested_cpus = float(width * hosts) if e.busiest_cpus is None else draw.choice((None, 1.0))
            e.programs, e.threads_together = 1, draw.choice((width, 2 * width))
            e.unknown_threads = draw.choice((0, 0, 1))
            e.peak_program_bytes = round(draw.lognormvariate(0, sigma) * GIB)
            runs.append((e, of_it))
        cpus, _ = sizes.cpus(basis)
        memory, _ = sizes.memory(basis)
        assert cpus and cpus.recommended and memory and memory.recommended
        time = sizes.time(basis, cpus).recommended or 0
        share = cpus.recommended / hosts
        for e, of_it in runs:
            # A part takes as long as on the host where it takes longest: ranks wait for each other.
            longer = sum(length * max(0.0, max(busy) / share - 1) for length, busy in of_it)
            assert time >= e.wall_ns + longer
        assert memory.recommended >= min(64 * GIB, max(e.peak_program_bytes or 0 for e in used))
        assert memory.recommended <= 64 * GIB


def test_busiest_interval(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n)
        add_execution(maker, f"r{n}", start=3600 * n, wall=100, cpu=50, task_id=f"t{n}")
        for name, cpu in (("x", 20e9), ("y", 15e9)):
            maker.usage(
                run_id=f"r{n}", task_id=f"t{n}", program_id=f"{name}{n}", start=3600 * n, end=3600 * n + 10,
                cpu_user_ns=int(cpu), cpu_system_ns=0,
            )  # fmt: skip
    cpus = of(only(maker), "cpus")
    assert cpus.recommended == 1
    assert cpus.evidence["busiest_interval_p95_cpus"] == pytest.approx(3.5)
    assert "3.5" in cpus.sentence


# The peak of all programs together


_SIDE_BY_SIDE = [(0.0, 50.0, 400.0), (10.0, 60.0, 500.0)]


@pytest.mark.parametrize(
    ("programs", "held", "limit", "needed"),
    [
        (_SIDE_BY_SIDE, None, None, 900),  # a record of an older agent: the sum of the peaks
        (_SIDE_BY_SIDE, 600, None, 600),  # they share 300 MiB
        (_SIDE_BY_SIDE, 300, None, 500),  # the largest maps files: with less, it reads them again and again
        (_SIDE_BY_SIDE, None, 550, 550),  # a limit that held bounds the sum
        (_SIDE_BY_SIDE, 600, 550, 600),  # but not what was measured: 50 MiB were in swap
        ([(0.0, 50.0, 900.0)], 2048, 1024, 2048),
        ([(0.0, 50.0, 400.0), (1.0, 2.0, 300.0)], 400, 500, 500),  # what no pass saw was below the limit, too
        (_SIDE_BY_SIDE, 300, 450, 500),
        ([*_SIDE_BY_SIDE, (20.0, 20.5, 100.0), (20.1, 20.7, 50.0)], 600, None, 750),  # two that no pass saw
        ([(0.0, 1.5, 400.0), (0.5, 1.9, 500.0)], 500, None, 900),  # only those, each of them beside nothing known
        ([(0.0, 50.0, 400.0)], 700, None, 700),  # 300 of it in swap
    ],
)
def test_the_peak_is_what_programs_held_together(
    maker: LakeMaker,
    programs: list[tuple[float, float, float]],
    held: int | None,
    limit: int | None,
    needed: int,
) -> None:
    same_in_runs(
        maker, programs=programs, peak_memory_bytes=None if held is None else held * MIB,
        peak_memory_source=None if held is None else "PASS", requested_memory_bytes=limit and limit * MIB,
    )  # fmt: skip
    memory = of(only(maker), "memory_bytes")
    assert memory.evidence["max_bytes"] == needed * MIB
    assert memory.evidence["executions_with_peak_memory"] == (0 if held is None else 3)


def test_programs_without_a_record_leave_the_sum_of_peaks_no_upper_bound(maker: LakeMaker) -> None:
    same_in_runs(maker, programs=[(0.0, 1.5, 400.0)], counted=2, peak_memory_bytes=500 * MIB, peak_memory_source="PASS")
    assert of(only(maker), "memory_bytes").evidence["max_bytes"] == 900 * MIB


def test_on_several_hosts_the_peak_is_known_where_each_has_it(maker: LakeMaker) -> None:
    for n, held in enumerate((None, 600, 600)):
        add_run(maker, f"r{n}", start=3600 * n)
        for host, of_host in (("h1", 500), ("h2", held)):
            add_execution(
                maker, f"r{n}", start=3600 * n, programs=_SIDE_BY_SIDE, task_id=f"t{n}", host_id=host,
                peak_memory_bytes=of_host and of_host * MIB,
            )  # fmt: skip
    memory = of(only(maker), "memory_bytes")
    assert memory.evidence["max_bytes"] == 900 * MIB
    assert memory.evidence["executions_with_peak_memory"] == 2


@pytest.mark.parametrize(
    ("found", "delayed"),
    [
        ({"bound": "MEMORY"}, True),
        ({"demand": "MEMORY", "denied": "RECLAIM"}, True),
        ({"demand": "STORAGE", "denied": "RECLAIM"}, True),
        ({"demand": "COMPUTE", "denied": "NOTHING", "bound": "MEMORY"}, False),
    ],
)
def test_memory_that_delayed(maker: LakeMaker, found: dict[str, str], delayed: bool) -> None:
    same_in_runs(maker, **found)
    assert ("memory delayed it in 3 of 3" in of(only(maker), "memory_bytes").sentence) is delayed


# Killed for memory


@pytest.mark.parametrize(
    ("killed_at", "limit", "needed"),
    [
        (1000, None, 1200),  # * 1.2
        (300, None, 400),  # + 100 MiB is more
        (900, 1000, 1200),  # near its limit: that is what it had
        (500, 1000, 600),  # far from it: something else killed it
    ],
)
def test_never_below_a_kill_for_memory(maker: LakeMaker, killed_at: float, limit: int | None, needed: int) -> None:
    same_in_runs(maker, programs=[(0, 100, 200)], sample="s")
    add_execution(
        maker, "r0", start=200, sample="s", programs=[(0, 50, killed_at)], exit_code=None, exit_signal=9,
        oom_killed=True, requested_memory_bytes=None if limit is None else limit * MIB,
    )  # fmt: skip
    memory = of(only(maker), "memory_bytes")
    assert memory.recommended == needed * MIB
    assert memory.evidence["oom_killed_executions"] == 1
    assert "killed for memory in 1 execution" in memory.sentence
    assert "1 succeeded when" in memory.sentence


def test_a_kill_without_success_recommends_nothing(maker: LakeMaker) -> None:
    add_run(maker, "r0")
    add_execution(maker, "r0", programs=[(0, 50, 800)], exit_code=137, oom_killed=True)
    advice = only(maker)
    assert not advice.recommendations
    assert "killed for memory at 800 MiB" in advice.lack


# Starved of CPU


def test_starved_executions_recommend_no_cpus(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=100, cpu=190, delay=200)
    advice = only(maker)
    assert advice.of("cpus") is None
    (said,) = [r for r in advice.recommendations if r.what == "investigate"]
    assert "3 of 3 executions were starved" in said.sentence
    assert "1.90 were busy, 3.90 wanted" in said.sentence
    assert advice.of("memory_bytes") is not None


def test_starved_ones_are_left_out_where_three_runs_remain(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=100, cpu=290)
    add_execution(maker, "r0", start=300, wall=100, cpu=90, delay=700)
    cpus = of(only(maker), "cpus")
    assert cpus.recommended == 3
    assert cpus.evidence["starved_executions"] == 1
    assert cpus.runs == 3


def test_waiting_that_changes_no_number_is_no_obstacle(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=100, cpu=30, delay=40, requested_cpus=8.0)  # 0.3 busy, 0.7 wanted: 1 either way
    cpus = of(only(maker), "cpus")
    assert (cpus.current, cpus.recommended) == (8.0, 1)


def test_a_task_that_uses_all_its_cpus_may_want_more(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=100, cpu=195, requested_cpus=2.0)
    cpus = of(only(maker), "cpus")
    assert cpus.recommended == 2
    assert "it used all of the 2" in cpus.sentence


# Input size


def test_memory_that_grows_with_input(maker: LakeMaker) -> None:
    for n in range(6):
        add_run(maker, f"r{n}", start=3600 * n)
        size = (n + 1) * 100
        add_execution(maker, f"r{n}", start=3600 * n, rchar=size * MIB, programs=[(0, 100, 500 + 2 * size)])
    memory = of(only(maker), "memory_bytes")
    assert memory.evidence["spearman_peak_rchar"] == pytest.approx(1)
    fit = memory.evidence["fit"]
    assert fit["bytes_per_byte"] == pytest.approx(2)
    assert fit["base_bytes"] == pytest.approx(500 * MIB)
    assert fit["r_squared"] == pytest.approx(1)
    assert (fit["least_bytes"], fit["most_bytes"]) == (250 * MIB, 16 * GIB)
    assert memory.evidence["by_input_size"] == [
        {"rchar_from": 100 * MIB, "rchar_to": 300 * MIB, "executions": 3, "peak_max_bytes": 1100 * MIB},
        {"rchar_from": 400 * MIB, "rchar_to": 600 * MIB, "executions": 3, "peak_max_bytes": 1700 * MIB},
    ]
    assert memory.recommended == 1955 * MIB  # the largest remains all the same


def test_a_line_lies_above_every_execution(maker: LakeMaker) -> None:
    peaks = (700, 880, 1100, 1340, 1480, 1700)
    for n, peak in enumerate(peaks):
        add_run(maker, f"r{n}", start=3600 * n)
        add_execution(maker, f"r{n}", start=3600 * n, rchar=(n + 1) * 100 * MIB, programs=[(0, 100, peak)])
    fit = of(only(maker), "memory_bytes").evidence["fit"]
    for n, peak in enumerate(peaks):
        assert fit["base_bytes"] + fit["bytes_per_byte"] * (n + 1) * 100 * MIB >= peak * MIB * 0.999999


def test_a_line_has_the_bounds_of_the_size(maker: LakeMaker) -> None:
    for n in range(6):
        add_run(maker, f"r{n}", start=3600 * n)
        size = (n + 1) * 100
        add_execution(maker, f"r{n}", start=3600 * n, rchar=size * MIB, programs=[(0, 100, 500 + 2 * size)])
    add_execution(maker, "r0", start=200, programs=[(0, 50, 3000)], exit_code=137, oom_killed=True)
    memory = of(only(maker), "memory_bytes")
    assert memory.recommended == 3600 * MIB
    assert (memory.evidence["fit"]["least_bytes"], memory.evidence["fit"]["most_bytes"]) == (3600 * MIB, 16 * GIB)


def test_no_fit_where_memory_does_not_grow(maker: LakeMaker) -> None:
    for n, peak in enumerate((500, 300, 400, 450, 350, 420)):
        add_run(maker, f"r{n}", start=3600 * n)
        add_execution(maker, f"r{n}", start=3600 * n, rchar=(n + 1) * 100 * MIB, programs=[(0, 100, peak)])
    evidence = of(only(maker), "memory_bytes").evidence
    assert "fit" not in evidence
    assert "by_input_size" not in evidence


# Money


def test_saving(maker: LakeMaker) -> None:
    # 1.00 an hour, 4 CPUs, 16 GiB; asked for all CPUs and half of the memory, for 360 s a run, once or twice.
    asked = {"requested_cpus": 4.0, "requested_memory_bytes": 8 * GIB}
    same_in_runs(maker, wall=360, cpu=300, programs=[(0, 360, 890)], **asked)
    add_execution(maker, "r0", start=400, wall=360, cpu=300, programs=[(0, 360, 890)], **asked)
    advice = only(maker)
    assert of(advice, "cpus").recommended == 1
    assert of(advice, "memory_bytes").recommended == 1024 * MIB  # 890 * 1.15 = 1023.5
    # Four executions over three runs of 0.1 hours each: asked 4/4; CPUs alone leave 8/16; both leave 1/4.
    assert of(advice, "cpus").saving == pytest.approx(4 / 3 * 0.1 * (1 - 0.5))
    assert of(advice, "memory_bytes").saving == pytest.approx(0)
    assert advice.saving == pytest.approx(4 / 3 * 0.1 * (1 - 0.25))


def test_saving_is_unknown_without_a_price_or_a_request(maker: LakeMaker) -> None:
    same_in_runs(maker)
    assert only(maker).saving is None


def test_saving_by_the_users_prices(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, price_per_hour=None, instance_type="m5.xlarge")
        add_execution(maker, f"r{n}", start=3600 * n, wall=360, cpu=300, requested_cpus=4.0)
    assert only(maker).saving is None
    table = Prices([price("m5.xlarge", 2.0, 4, 16)])
    assert only(maker, prices=table).saving == pytest.approx(2.0 * 0.1 * (1 - 0.25))


def test_the_price_is_that_of_the_lifecycle(maker: LakeMaker) -> None:
    """Also where the newest Host record is one of `sluice run`, which has no configuration."""
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, price_per_hour=None, instance_type="m5.xlarge" if n == 0 else None)
        maker.host(start=3600 * n + 20, end=3600 * n + 30, lifecycle="spot" if n == 0 else None)
        add_execution(maker, f"r{n}", start=3600 * n, wall=360, cpu=300, requested_cpus=4.0)
    rows = {life: dataclasses.replace(price("m5.xlarge", per, 4, 16), lifecycle=life) for life, per in
            (("on-demand", 2.0), ("spot", 0.5))}  # fmt: skip
    assert only(maker, prices=Prices([*rows.values()])).saving == pytest.approx(0.5 * 0.1 * (1 - 0.25))
    assert only(maker, prices=Prices([rows["on-demand"]])).saving is None


def test_a_limit_of_the_whole_run_saves_nothing_of_one_task(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, requested_cpus=4.0)
        for task in ("A", "B"):
            add_execution(maker, f"r{n}", task, start=3600 * n, requested_cpus=4.0)
    advice = advices(maker)["A"]
    assert of(advice, "cpus").current == 4
    assert advice.saving is None
    assert any("whole run" in note for note in advice.notes)


def test_a_cheaper_node_shape(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, instance_type="mem", cpus=4, memory_bytes=64 * GIB)
        add_execution(maker, f"r{n}", start=3600 * n, wall=100, cpu=195, programs=[(0, 100, 1780)])
    table = Prices([
        price("mem", 1.0, 4, 64), price("cpu", 0.4, 4, 8), price("small", 0.1, 1, 2), price("gpu", 0.01, 8, 64, gpu=1),
        price("shapeless", 0.001, None, None),
    ])  # fmt: skip
    (shape,) = [r for r in only(maker, prices=table).recommendations if r.what == "node_shape"]
    # 2 CPUs and 2 GiB: half of `mem` by CPUs, half of `cpu`; `small` is too small, `gpu` is left out.
    assert shape.evidence["instance_type"] == "cpu"
    assert (shape.current, shape.recommended) == (pytest.approx(0.5), pytest.approx(0.2))
    assert "no record has GPUs" in shape.evidence["gpu"]


# What sizes do not fix


@pytest.mark.parametrize("found", [{"bound": "IO"}, {"demand": "STORAGE", "denied": "NOTHING", "bound": "STARVED"}])
def test_steps_that_wait_for_storage(maker: LakeMaker, found: dict[str, str]) -> None:
    """By records of older agents, which have bound alone, and by those of others, of which it does not count."""
    same_in_runs(maker, wall=100, cpu=5, read_bytes=5000 * MIB, write_bytes=200 * MIB, rchar=20000 * MIB, **found)
    (said,) = [r for r in only(maker).recommendations if r.what == "storage"]
    assert said.evidence["median_read_bytes_per_s"] == pytest.approx(50 * MIB)
    assert said.evidence["place"] == "storage"
    assert (said.evidence["demand"], said.evidence["demand_executions"]) == ("STORAGE", 3)
    assert "reads 50 MiB/s and writes 2.0 MiB/s" in said.sentence
    assert "reads data again" in said.sentence


def test_steps_that_wait_for_a_network_file_system(maker: LakeMaker) -> None:
    found = {"demand": "NETWORK_FS", "denied": "NOTHING", "bound": "IO"}
    same_in_runs(maker, wall=100, cpu=5, rchar=400 * MIB, wchar=100 * MIB, **found)
    (said,) = [r for r in only(maker).recommendations if r.what == "storage"]
    assert said.evidence["place"] == "network file system"
    assert "in 3 of 3: it reads 4.0 MiB/s and writes 1.0 MiB/s by calls" in said.sentence


@pytest.mark.parametrize("found", [{"bound": "NETWORK"}, {"demand": "NETWORK", "denied": "NOTHING"}])
def test_steps_that_wait_for_the_network(maker: LakeMaker, found: dict[str, str]) -> None:
    same_in_runs(maker, wall=100, cpu=5, net_rx_bytes=900 * MIB, net_tx_bytes=100 * MIB, **found)
    (said,) = [r for r in only(maker).recommendations if r.what == "storage"]
    assert said.evidence["place"] == "network"
    assert said.evidence["median_net_bytes_per_s"] == pytest.approx(10 * MIB)


def test_steps_that_stall(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=100, cpu=1, bound="IDLE", share_idle=0.97)
    (said,) = [r for r in only(maker).recommendations if r.what == "investigate"]
    assert "97%" in said.sentence
    assert said.evidence["median_share_idle"] == 0.97
    assert said.sentence.endswith("see what it waits for")


def test_steps_that_stall_name_what_they_wait_for(maker: LakeMaker) -> None:
    for n, waits in enumerate(("PIPE", "PIPE", "LOCK")):
        add_run(maker, f"r{n}", start=3600 * n)
        found = {"demand": "WAITING_FOR", "waiting_for": waits, "denied": "NOTHING"}
        add_execution(maker, f"r{n}", start=3600 * n, wall=100, cpu=1, share_idle=0.97, **found)
    (said,) = [r for r in only(maker).recommendations if r.what == "investigate"]
    assert said.evidence["waiting_for"] == {"pipe": 2, "lock": 1}
    assert "(pipe in 2, lock in 1)" in said.sentence


def test_an_idle_step_by_bound_that_has_another_demand_does_not_stall(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=100, cpu=1, bound="IDLE", demand="MIXED", denied="NOTHING", share_idle=0.97)
    assert [r.what for r in only(maker).recommendations] == ["cpus", "memory_bytes", "time_ns"]


def test_a_step_that_reads_by_calls_does_not_stall(maker: LakeMaker) -> None:
    # 50 MiB a second of a network file system: no block I/O of its own, which the agent takes for idle.
    same_in_runs(maker, wall=100, cpu=1, bound="IDLE", share_idle=0.97, rchar=5000 * MIB)
    assert [r.what for r in only(maker).recommendations] == ["cpus", "memory_bytes", "time_ns"]


def test_steps_that_vary_between_runs(maker: LakeMaker) -> None:
    for n, wall in enumerate((20, 20, 110)):
        add_run(maker, f"r{n}", start=3600 * n, wall=200)
        add_execution(maker, f"r{n}", start=3600 * n, wall=wall, cpu=wall / 2)
    (said,) = [r for r in only(maker).recommendations if r.what == "investigate"]
    # Mean 50, sum of squares 30² + 30² + 60² = 5400, / 2 = 2700, root 51.96.
    assert said.evidence["variation"] == pytest.approx(51.9615 / 50, rel=1e-4)
    assert "coefficient of variation 1.04 over 3 runs" in said.sentence


def test_samples_of_one_run_are_no_variance_between_runs(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, wall=400)
        for sample, wall in (("a", 20), ("b", 60), ("c", 300)):
            add_execution(maker, f"r{n}", start=3600 * n, wall=wall, cpu=wall / 2, sample=sample)
    assert [r.what for r in only(maker).recommendations] == ["cpus", "memory_bytes", "time_ns"]


# Confidence


def _basis(walls: list[float], runs: int, age_days: float) -> tuple[sizes.Basis, list[Execution]]:
    now = T0
    used = [
        Execution(
            pipeline="p", run_id=f"r{n % runs}", task="t", task_id=f"t{n}", sample=None, attempt=None, engine=None,
            source=None, host_ids=["h"], start_time=now - round(age_days * DAY_US), end_time=now,
            wall_ns=round(w * 1e9), cpu_ns=1, run_delay_ns=0, peak_program_bytes=1, read_bytes=0, write_bytes=0,
            rchar=0, wchar=0, net_bytes=0, threads_peak=1, requested_cpus=None, requested_memory_bytes=None,
            is_shared_limit=False, exit_code=0, exit_signal=None, verdict=Verdict(), share_idle=None,
            succeeded=True,
        )
        for n, w in enumerate(walls)
    ]  # fmt: skip
    return sizes.Basis("p", "t", used, used, {}, now), used


@pytest.mark.parametrize(
    ("walls", "runs", "age", "certain", "sure"),
    [
        ([10.0] * 10, 5, 1, True, "high"),
        ([10.0] * 10, 5, 1, False, "medium"),
        ([10.0] * 10, 4, 1, True, "medium"),
        ([10.0] * 9, 5, 1, True, "medium"),
        ([10.0] * 9 + [12.5], 5, 30, True, "high"),
        ([10.0] * 9 + [12.6], 5, 1, True, "medium"),
        ([10.0] * 10, 5, 31, True, "medium"),
        ([10.0] * 10, 5, 91, True, "low"),
        ([10.0] * 9 + [21.0], 5, 1, True, "low"),
        ([10.0] * 4, 4, 1, True, "low"),
        ([10.0] * 5, 3, 1, True, "medium"),
    ],
)
def test_confidence(walls: list[float], runs: int, age: float, certain: bool, sure: str) -> None:
    basis, used = _basis(walls, runs, age)
    assert sizes.confidence(basis, used, walls, certain) == sure


# Which runs, and the command


def test_only_the_latest_runs_count(maker: LakeMaker) -> None:
    for n, peak in enumerate((5000, 400, 400, 400)):
        add_run(maker, f"r{n}", start=3600 * n)
        add_execution(maker, f"r{n}", start=3600 * n, programs=[(0, 100, peak)])
    assert of(only(maker), "memory_bytes").recommended == 5750 * MIB
    assert of(only(maker, runs=3), "memory_bytes").recommended == 460 * MIB
    assert of(only(maker, runs=None, since_us=T0 + 1_000_000), "memory_bytes").recommended == 460 * MIB
    with pytest.raises(NotFound, match="no run began in this time"):
        advices(maker, since_us=NOW)


def test_pipelines_are_kept_apart(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, pipeline=f"p{n % 2}")
        add_execution(maker, f"r{n}", start=3600 * n)
    maker.write()
    with DuckSession(str(maker.path)) as session:
        found = recommend.advices_of(session, now_us=NOW)
        assert [(a.pipeline, a.successful) for a in found] == [("p0", 2), ("p1", 1)]
        assert [a.lack != "" for a in recommend.advices_of(session, "p0", now_us=NOW)] == [True]
        with pytest.raises(NotFound, match="pipelines: p0, p1"):
            recommend.advices_of(session, "p2")


def without_pipeline(maker: LakeMaker, n: int, command: str, folder: str = "/data", peak: float = 100) -> None:
    """The n-th run, of a command without a pipeline: an ALIGN in it."""
    add_run(maker, f"r{n}", start=3600 * n, pipeline=None, command=command, work_dir=folder)
    add_execution(maker, f"r{n}", start=3600 * n, pipeline=None, programs=[(0, 100, peak)])


def test_a_run_without_a_pipeline_is_compared_with_its_own_kind(maker: LakeMaker) -> None:
    """Same command, same folder. What other runs without a pipeline need, or a pipeline, is none of its concern."""
    for n in range(3):
        without_pipeline(maker, n, "bash a.sh", peak=300)
        without_pipeline(maker, 10 + n, "bash b.sh", peak=900)
    without_pipeline(maker, 20, "bash a.sh", folder="/other", peak=2000)
    for n in range(30, 33):
        add_run(maker, f"r{n}", start=3600 * n)
        add_execution(maker, f"r{n}", start=3600 * n, programs=[(0, 100, 4000)])
    maker.write()
    with DuckSession(str(maker.path)) as session:
        said = {r: load(session, r) for r in ("r0", "r12", "r20", "r30")}
        found = [a for a in recommend.advices_of(session, now_us=NOW) if a.pipeline is None]
    sizes_of = {
        run: [r.recommended for r in report.recommendations if r.what == "memory_bytes"] for run, report in said.items()
    }
    assert sizes_of == {"r0": [345.0 * MIB], "r12": [1035.0 * MIB], "r20": [], "r30": [4600.0 * MIB]}
    assert [(x.task, x.why) for x in said["r20"].lacks] == [
        ("ALIGN", "1 successful execution, 3 needed, in different runs")
    ]
    assert said["r0"].lacks == []
    # The command, which is asked of the whole lake, keeps them apart too.
    assert [(a.command, a.work_dir, a.successful, bool(a.recommendations)) for a in found] == [
        ("bash a.sh", "/data", 3, True), ("bash a.sh", "/other", 1, False), ("bash b.sh", "/data", 3, True)
    ]  # fmt: skip


def test_a_report_says_why_nothing_is_recommended(maker: LakeMaker) -> None:
    """Of each task; of a run without tasks, that it has none."""
    for n in range(2):
        add_run(maker, f"r{n}", start=3600 * n)
        add_execution(maker, f"r{n}", "ALIGN", start=3600 * n)
        add_execution(maker, f"r{n}", "SORT", start=3600 * n + 1)
    add_execution(maker, "r1", "CALL", start=3700, exit_code=1)
    maker.task(run_id="r1", task_id="now", task="WAIT", start=3600)
    add_run(maker, "empty", start=9000)
    maker.write()
    with DuckSession(str(maker.path)) as session:
        lacks = {x.task: x.why for x in load(session, "r1").lacks}
        (none,) = load(session, "empty").lacks
        left_out = load(session, "r1", with_recommendations=False).lacks
    two = "2 successful executions, 3 needed, in different runs"
    assert lacks.keys() == {"ALIGN", "SORT", "CALL", "WAIT"}
    assert lacks["ALIGN"] == lacks["SORT"] == two
    assert lacks["CALL"].startswith("0 successful executions, 3 needed")
    assert lacks["WAIT"] == "no execution of it has ended"
    assert (none.task, none.why) == (None, "it has no tasks, and sizes are recommended for tasks")
    assert left_out == []


def command(*argv: str) -> int:
    def main(rest: list[str]) -> int:
        parser = argparse.ArgumentParser(prog="sluice tune recommend")
        tune_recommend.add_arguments(parser)
        return tune_recommend.main(parser.parse_args(rest))

    return common.run("sluice tune recommend", main, list(argv))


def test_command(maker: LakeMaker, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    same_in_runs(maker, wall=50, cpu=90, programs=[(0, 50, 500)], requested_memory_bytes=4 * GIB)
    maker.write()
    lake = str(maker.path)
    assert command("--lake", lake) == 0
    said = capsys.readouterr().out
    assert "4.0 GiB" in said
    assert "575 MiB" in said
    assert "3 successful executions in 3 runs" in said
    assert command("--lake", lake, "--format", "json") == 0
    task = json.loads(capsys.readouterr().out)["tasks"][0]
    assert [r["recommended"] for r in task["recommendations"]] == [2.0, 575.0 * MIB, 60e9]
    assert command("--lake", lake, "--format", "csv", "-o", str(tmp_path / "out.csv")) == 0
    heading, row = (tmp_path / "out.csv").read_text().splitlines()
    assert dict(zip(heading.split(","), row.split(","), strict=True))["recommended_memory_bytes"] == str(575.0 * MIB)


def test_emit_is_for_one_kind_of_run(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(3):
        without_pipeline(maker, n, "bash a.sh")
        without_pipeline(maker, 10 + n, "bash b.sh")
        add_run(maker, f"p{n}", start=3600 * n)
    maker.write()
    lake = str(maker.path)
    assert command("--lake", lake, "--emit", "slurm") == 2
    assert "sluice run --pipeline" in capsys.readouterr().err
    assert command("--lake", lake, "--task", "ALIGN") == 0
    said = capsys.readouterr().out
    assert "bash a.sh" in said and "bash b.sh" in said
    assert command("--lake", lake, "--format", "csv") == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    at = heading.split(",").index("command")
    assert [row.split(",")[at] for row in rows] == ["bash a.sh", "bash b.sh"]


def test_command_errors(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    same_in_runs(maker)
    maker.write()
    lake = str(maker.path)
    assert command("--lake", lake, "--pipeline", "other") == 1
    assert 'no run of a pipeline "other"' in capsys.readouterr().err
    assert command("--lake", lake, "--task", "other") == 1
    assert 'no execution of a task "other"' in capsys.readouterr().err
    assert command("--lake", lake, "--since", "soon") == 2
    assert "--since" in capsys.readouterr().err
    assert command("--lake", lake, "--prices", "/nowhere.csv") == 2
    assert "/nowhere.csv" in capsys.readouterr().err
    assert command("--lake", "/nowhere") == 2
    with pytest.raises(SystemExit) as stopped:
        command("--lake", lake, "--runs", "0")
    assert stopped.value.code == 2
