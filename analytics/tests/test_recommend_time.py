# SPDX-License-Identifier: Apache-2.0
"""Recommended time limits, and CPUs, against numbers computed by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest
from executions import GIB, add_execution, add_run, same_in_runs
from lakes import LakeMaker, S
from recommend_kit import made_basis, of, only

from sluice_analytics.tune import money, sizes
from sluice_analytics.tune.evidence import Execution

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
        basis, used = made_basis([draw.lognormvariate(5, sigma) for _ in range(draw.randint(3, 60))], 3, 1)
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
