# SPDX-License-Identifier: Apache-2.0
"""Recommended memory against numbers computed by hand."""

from __future__ import annotations

import pytest
from executions import GIB, MIB, add_execution, add_run, same_in_runs
from lakes import LakeMaker
from recommend_kit import of, only

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
