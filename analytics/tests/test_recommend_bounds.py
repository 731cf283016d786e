# SPDX-License-Identifier: Apache-2.0
"""Bounds of what is recommended: memory that no host exceeds, and time that no execution has exceeded."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from executions import GIB, MIB, NEXTFLOW, SNAKEMAKE, add_execution, add_run, same_in_runs
from lakes import LakeMaker
from recommend_kit import advices, of, only

from sluice_analytics.report import emit

FORMS: dict[str, tuple[dict[str, Any], str, list[tuple[str, int]]]] = {
    "kubernetes": (NEXTFLOW, r'name: "t(\d+)"', [(r"memory: (\d+)Mi", MIB)]),
    "nextflow": (NEXTFLOW, r"withName: 'T(\d+)'", [(r"memory = '(\d+) MB'", MIB), (r"Math\.min\((\d+)L", 1)]),
    "slurm": (NEXTFLOW, r"--job-name=T(\d+)", [(r"--mem=(\d+)M", MIB)]),
    "snakemake": (
        SNAKEMAKE, r'- "?T(\d+):mem_mb', [(r"mem_mb=(\d+)", 1_000_000), (r"mem_mb=min\((\d+),", 1_000_000)]
    ),
}  # fmt: skip
"""Of each form: the engine of the tasks, where a task's settings begin, and its numbers of memory with their unit"""


@pytest.mark.parametrize("form", sorted(emit.FORMATS))
def test_no_form_asks_for_more_memory_than_the_host_has(maker: LakeMaker, form: str) -> None:
    """Whatever the unit; and for no less than is recommended, but for the part of a unit that the host lacks."""
    engine, begins, numbers = FORMS[form]
    draw = random.Random(5)
    hosts = [16 * GIB, 250 * MIB + 1, *(draw.randint(300 * MIB, 64 * GIB) for _ in range(10))]
    for n in range(3):
        for k, has in enumerate(hosts):
            host = {"host_id": f"{k:032x}", "host_name": f"n{k}"}
            add_run(maker, f"r{n}", start=3600 * n, memory_bytes=has, **host)
            for i in range(2):
                # It grows with what it reads, up to a peak with which the margin is more than the host has, or not.
                peak = has / MIB * (2 * n + i + 1) / 6 * (0.99 if k % 3 < 2 else 0.5)
                add_execution(
                    maker, f"r{n}", f"T{k}", start=3600 * n + 200 * i, programs=[(0, 100, peak)],
                    rchar=round(peak * MIB / 3), **host, **engine,
                )  # fmt: skip
    found = advices(maker)
    wanted = {task: of(advice, "memory_bytes").recommended for task, advice in found.items()}
    at, seen = -1, dict[int, list[int]]()
    for line in emit.render(form, list(found.values()), "lake").splitlines():
        if named := re.search(begins, line):
            at = int(named[1])
        for pattern, unit in numbers:
            if number := re.search(pattern, line):
                seen.setdefault(at, []).append(int(number[1]) * unit)
                assert seen[at][-1] <= hosts[at]
                assert seen[at][-1] > (wanted[f"T{at}"] or 0) - unit
    assert {k: len(v) >= len(numbers) for k, v in seen.items()} == dict.fromkeys(range(len(hosts)), True)


@pytest.mark.parametrize(
    ("wall", "seconds", "said"),
    [
        (900, 900, "; the longest of 1 execution whose end is unknown took 15m00s"),
        (110, 120, ", + 20 %"),  # less than is recommended anyway
    ],
)
def test_time_is_not_below_what_is_known_of_an_execution_without_an_end(
    maker: LakeMaker, wall: int, seconds: int, said: str
) -> None:
    """Its host died: LIVE records are all that there is of it. A task that never ended has no advice."""
    same_in_runs(maker, wall=100)
    for task in ("ALIGN", "OTHER"):
        maker.task(phase="LIVE", run_id="r0", pipeline="p", task_id=task, task=task, start=200, end=200 + wall - 10)
        maker.task(phase="LIVE", run_id="r0", pipeline="p", task_id=task, task=task, start=200, end=200 + wall)
    advice = only(maker)
    assert (advice.task, advice.executions, advice.successful) == ("ALIGN", 4, 3)
    time = of(advice, "time_ns")
    assert time.recommended == seconds * 1e9
    assert time.sentence.endswith(said)
    assert time.evidence["executions_of_unknown_end"] == 1
    assert time.evidence["longest_of_unknown_end_ns"] == wall * 1e9
    assert time.evidence["failed_executions"] == 0


def test_an_execution_has_ended_where_all_of_its_hosts_know_its_end(maker: LakeMaker) -> None:
    """One of two hosts died, 700 s after the start: that is no successful execution of one host."""
    for n in range(4):
        for h in "ab":
            host = {"host_id": h * 32, "host_name": f"node-{h}"}
            add_run(maker, f"r{n}", start=3600 * n, **host)
            if n or h == "a":
                add_execution(maker, f"r{n}", start=3600 * n, task_id="t", **host)
            else:
                maker.task(phase="LIVE", run_id="r0", pipeline="p", task_id="t", task="ALIGN", end=700, **host)
    advice = only(maker)
    assert (advice.executions, advice.successful, advice.hosts) == (4, 3, 2)
    assert of(advice, "time_ns").recommended == 700e9
    assert of(advice, "cpus").recommended == 2


@pytest.mark.parametrize(
    ("host_cpus", "threads", "seconds"),
    [
        (None, None, 1200),  # no fewer CPUs: as long as before, + 20 %
        (16, None, 19200),  # 16 CPUs throughout, and then one
        (None, 4, 4800),
    ],
)
def test_cpus_are_not_cut_where_nothing_bounds_how_long_that_takes(
    maker: LakeMaker, host_cpus: int | None, threads: int | None, seconds: int
) -> None:
    """Of one execution CPU time is unknown, and what its programs and host could have run at once may be, too."""
    for n in range(4):
        host = {"host_id": f"{n:032x}", "host_name": f"n{n}"}
        maker.run(run_id=f"r{n}", pipeline="p", start=3600 * n, end=3600 * n + 1000, **host)
        if n or host_cpus:
            maker.host(start=3600 * n, cpus=host_cpus or 4, **host)
        unknown: dict[str, Any] = {"cpu_user_ns": None, "counted": 9 if threads is None else 1} if n == 0 else {}
        add_execution(
            maker, f"r{n}", start=3600 * n, wall=1000, cpu=900, requested_cpus=16.0, threads=threads or 1, **unknown,
            **host,
        )  # fmt: skip
    advice = only(maker)
    assert of(advice, "time_ns").recommended == seconds * 1e9
    cpus = advice.of("cpus")
    if seconds == 1200:
        assert cpus is None
        said = [r.sentence for r in advice.recommendations if r.what == "investigate"]
        assert any("CPU time, threads and the CPUs of the host are unknown of 1 execution" in x for x in said)
    else:
        assert cpus and cpus.recommended == 1
