# SPDX-License-Identifier: Apache-2.0
"""Bounds of what is recommended: memory that no host exceeds, and time that no execution has exceeded."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from executions import GIB, MIB, NEXTFLOW, SNAKEMAKE, add_execution, add_run
from lakes import T0, LakeMaker

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.report import emit
from sluice_analytics.tune import recommend

DAY_US = 86_400_000_000
NOW = T0 + DAY_US


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
    maker.write()
    with DuckSession(str(maker.path)) as session:
        found = recommend.advices_of(session, now_us=NOW)
    wanted = {a.task: r.recommended for a in found if (r := a.of("memory_bytes"))}
    at, seen = -1, dict[int, list[int]]()
    for line in emit.render(form, found, "lake").splitlines():
        if named := re.search(begins, line):
            at = int(named[1])
        for pattern, unit in numbers:
            if number := re.search(pattern, line):
                seen.setdefault(at, []).append(int(number[1]) * unit)
                assert seen[at][-1] <= hosts[at]
                assert seen[at][-1] > (wanted[f"T{at}"] or 0) - unit
    assert {k: len(v) >= len(numbers) for k, v in seen.items()} == dict.fromkeys(range(len(hosts)), True)
