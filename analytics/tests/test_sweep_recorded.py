# SPDX-License-Identifier: Apache-2.0
"""sweep on what an agent recorded of this host: an idle time, a busy run, an idle run.

The truth is this test's own clock, and the kernel's own count of idle time at the same moments.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sluice_binary

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.prices import Price, Prices
from sluice_analytics.sweep import report
from sluice_analytics.sweep.attribution import CLASSES
from sluice_analytics.sweep.period import Period
from sluice_analytics.sweep.thresholds import Thresholds

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "integration"))

IDLE_S, BUSY_S, SLEEP_S = 25, 15, 25
MAKEFILE = f"""
busy:
	@timeout {BUSY_S} sh -c 'while :; do :; done' || true
idle:
	@sleep {SLEEP_S}
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="an agent needs root")


def idle_ns() -> int:
    """Idle time of all CPUs since boot, waiting for I/O too, by /proc/stat."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))


@dataclasses.dataclass
class Played:
    """What happened: (microseconds, idle_ns) at each mark, CPU time by wait4, and sweep's answer from start to end."""

    marks: dict[str, tuple[int, int]]
    cpu_ns: dict[str, int]
    found: report.SweepReport

    def length(self, begin: str, end: str) -> float:
        return (self.marks[end][0] - self.marks[begin][0]) / 1e6

    def idle(self, begin: str, end: str) -> int:
        return self.marks[end][1] - self.marks[begin][1]


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    sluice = sluice_binary.path()
    os.environ["SLUICE"] = sluice
    import agent as integration

    # Not below pytest's own folder: that is root's alone, and the agent becomes nobody.
    room = pathlib.Path(tempfile.mkdtemp(prefix="sluice-sweep-"))
    (room / "Makefile").write_text(MAKEFILE)
    (room / "rules.d").mkdir()  # ours alone: others may run pipelines on this host meanwhile
    (room / "rules.d" / "ours.yaml").write_text(f"include: [{{cwd: {room}}}]\n")
    agent = integration.Agent(str(room), sluice=sluice)
    marks: dict[str, tuple[int, int]] = {}

    def mark(name: str) -> None:
        marks[name] = (time.time_ns() // 1000, idle_ns())

    cpu_ns: dict[str, int] = {}

    def make(target: str) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["make", "-s", target], cwd=room, check=True, env={"PATH": os.environ["PATH"]})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cpu_ns[target] = round(used * 1e9)

    try:
        agent.start()
        time.sleep(2.5)
        mark("start")
        time.sleep(IDLE_S)
        mark("busy")
        make("busy")
        mark("sleep")
        make("idle")
        mark("end")
        time.sleep(2.5)
        assert agent.stop() == 0
        yield Played(marks, cpu_ns, _answer(agent.lake, marks))
    finally:
        agent.remove()
        shutil.rmtree(room, ignore_errors=True)


def _answer(lake: str, marks: dict[str, tuple[int, int]]) -> report.SweepReport:
    prices = Prices([Price("", "", "", "", "*", 3600.0, None, None, None)])  # a unit of money a second
    limits = Thresholds(least_us=10_000_000, idle_cores=0.2)
    with DuckSession(lake) as session:
        return report.sweep(session, Period(marks["start"][0], marks["end"][0]), prices, "run", limits)


def test_parts_add_up(played: Played) -> None:
    for hour in played.found.hours:
        assert abs(hour.residue) <= 0.01 * hour.capacity, {c: hour.cpu[c] / 1e9 for c in CLASSES}
        assert sum(hour.cpu.values()) + hour.residue == pytest.approx(hour.capacity)


def test_time_is_what_the_clock_says(played: Played) -> None:
    total = played.found.total
    whole = played.length("start", "end")
    assert total.host_ns / 1e9 == pytest.approx(whole, rel=0.02)
    assert total.covered_ns / 1e9 == pytest.approx(whole, rel=0.02)
    without = (total.covered_ns - total.run_ns) / 1e9
    assert without == pytest.approx(played.length("start", "busy"), rel=0.02)
    assert total.run_ns / 1e9 == pytest.approx(played.length("busy", "end"), rel=0.02)


def test_idle_time_is_what_the_kernel_counted(played: Played) -> None:
    total = played.found.total
    idle = sum(total.cpu_ns[c] for c in ("reserved", "idle_run", "idle_none"))
    near = 0.02 * total.capacity_ns
    assert idle == pytest.approx(played.idle("start", "end"), abs=near)
    assert total.cpu_ns["idle_none"] == pytest.approx(played.idle("start", "busy"), abs=near)
    assert total.cpu_ns["idle_run"] + total.cpu_ns["reserved"] == pytest.approx(played.idle("busy", "end"), abs=near)


def test_runs_used_what_their_programs_did(played: Played) -> None:
    groups = sorted((g for g in played.found.groups if g.known), key=lambda g: -g.cpu_ns)
    assert len(groups) == 2  # two calls of make
    busy, idle = groups
    assert busy.cpu_ns + idle.cpu_ns == pytest.approx(played.found.total.cpu_ns["runs"])
    assert busy.cpu_ns == pytest.approx(played.cpu_ns["busy"], rel=0.01)
    assert busy.alive_ns / 1e9 == pytest.approx(played.length("busy", "sleep"), rel=0.05)
    assert idle.cpu_ns == pytest.approx(played.cpu_ns["idle"], abs=5_000_000)
    assert idle.alive_ns / 1e9 == pytest.approx(played.length("sleep", "end"), rel=0.05)


def test_the_idle_run_is_told_and_the_busy_one_is_not(played: Played) -> None:
    runs = {g.group.split()[-1]: g for g in played.found.groups if g.known}
    busy = max(runs, key=lambda r: runs[r].cpu_ns)
    about: dict[str, list[Any]] = {}
    for finding in played.found.findings:
        if finding.run_id is not None:
            about.setdefault(finding.run_id, []).append(finding)
    assert not {"IDLE_RUN", "ZOMBIE_RUN"} & {f.kind for f in about.get(busy, [])}
    (other,) = (r for r in runs if r != busy)
    told = [f for f in about[other] if f.kind in ("IDLE_RUN", "IDLE_TASK", "ZOMBIE_RUN")]
    assert told
    assert told[0].hours is not None
    assert told[0].hours * 3600 == pytest.approx(SLEEP_S, rel=0.05)
