# SPDX-License-Identifier: Apache-2.0
"""sweep on what an agent recorded of this host: an idle time, a busy run, an idle run.

The truth is what the kernel counted at the same moments as the agent, for any other load of this host and
however late anything begins: /proc/stat, wait4(2), and clocks that are read on both sides of a moment.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sluice_binary
from agent import Agent

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.prices import Price, Prices
from sluice_analytics.sweep import report
from sluice_analytics.sweep.attribution import CLASSES
from sluice_analytics.sweep.period import Period
from sluice_analytics.sweep.thresholds import Thresholds

IDLE_S, BUSY_S, SLEEP_S = 6, 6, 8
MAKEFILE = f"""
busy:
	@date +%s%N; timeout {BUSY_S} sh -c 'while :; do :; done' || true; date +%s%N
idle:
	@date +%s%N; sleep {SLEEP_S}; date +%s%N
"""


def used_ns() -> tuple[int, int]:
    """By /proc/stat, of all CPUs since boot: what was busy, and what a hypervisor gave to others."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = (int(f) * (10**9 // os.sysconf("SC_CLK_TCK")) for f in fields[:8])
    return user + nice + system + irq + softirq, steal


class Watch:
    """used_ns() all the time, in a thread: of any moment between."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._used: list[tuple[int, int]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(0.05):
            self._times.append(time.time_ns() // 1000)
            self._used.append(used_ns())

    def _at(self, us: float, which: int) -> float:
        after = min(max(bisect.bisect(self._times, us), 1), len(self._times) - 1)
        (t0, t1), (u0, u1) = self._times[after - 1 : after + 1], self._used[after - 1 : after + 1]
        return u0[which] + (u1[which] - u0[which]) * (us - t0) / (t1 - t0)

    def stolen(self, begin: float, end: float) -> float:
        """Nanoseconds that a hypervisor took."""
        return self._at(end, 1) - self._at(begin, 1)

    def idle(self, begin: float, end: float) -> float:
        """Nanoseconds of all CPUs in which nothing ran: the clock's, less what was used and what was stolen."""
        used = self._at(end, 0) - self._at(begin, 0)
        return (os.cpu_count() or 1) * (end - begin) * 1000 - used - self.stolen(begin, end)


@dataclasses.dataclass
class Made:
    """A run of make: microseconds before it began and in its recipe's first and last step and after its end."""

    before: int
    begun: int
    ending: int
    after: int
    cpu_ns: int

    def length(self) -> tuple[float, float]:
        """It took no fewer and no more seconds than these."""
        return (self.ending - self.begun) / 1e6, (self.after - self.before) / 1e6


@dataclasses.dataclass
class Played:
    """What happened, and sweep's answer from since to until, which are marks of the agent's own intervals."""

    watch: Watch
    since: int
    until: int
    marks: list[int]
    busy: Made
    sleep: Made
    found: report.SweepReport

    def idle_before(self, us: int) -> float:
        """Idle time from since on. An interval of the agent is one number: a part of it has its part of that."""
        end = self.marks[bisect.bisect(self.marks, us)]
        begin = self.marks[bisect.bisect(self.marks, us) - 1]
        part = (us - begin) / (end - begin)
        return self.watch.idle(self.since, begin) + part * self.watch.idle(begin, end)


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    # Not below pytest's own folder: that is root's alone, and the agent becomes `nobody`.
    room = pathlib.Path(tempfile.mkdtemp(prefix="sluice-sweep-"))
    (room / "Makefile").write_text(MAKEFILE)
    (room / "rules.d").mkdir()  # ours alone: others may run pipelines on this host meanwhile
    (room / "rules.d" / "ours.yaml").write_text(f"include: [{{cwd: {room}}}]\n")
    agent = Agent(str(room), sluice=sluice_binary.path())

    def make(target: str) -> Made:
        usage, before = resource.getrusage(resource.RUSAGE_CHILDREN), time.time_ns() // 1000
        done = subprocess.run(
            ["make", "-s", target], cwd=room, check=True, env={"PATH": os.environ["PATH"]}, capture_output=True
        )
        after, then = time.time_ns() // 1000, resource.getrusage(resource.RUSAGE_CHILDREN)
        begun, ending = (int(line) // 1000 for line in done.stdout.split())
        used = then.ru_utime + then.ru_stime - usage.ru_utime - usage.ru_stime
        return Made(before, begun, ending, after, round(used * 1e9))

    def told(topic: str) -> list[dict[str, Any]]:
        with contextlib.suppress(subprocess.CalledProcessError):  # its folder may not be there yet
            return sluice_binary.cat(agent.lake, topic)
        return []

    try:
        with Watch() as watch:
            agent.start()
            began = time.time_ns() // 1000
            agent.wait(lambda: any(r["time"] > began for r in told("host")), what="record of the host")
            time.sleep(IDLE_S)
            busy, sleep = make("busy"), make("idle")
            agent.wait(lambda: sum(r["phase"] == "END" for r in told("run")) == 2, what="end of both runs")
            agent.wait(lambda: any(r["time"] > sleep.after for r in told("host")), what="record of the host after them")
            over = time.time_ns() // 1000
        assert agent.stop() == 0
        ends = sorted(r["time"] for r in told("host") if r["time"] - r["interval_ns"] // 1000 >= began)
        marks = [t for t in ends if t <= over]
        yield Played(watch, marks[0], marks[-1], marks, busy, sleep, _answer(agent.lake, marks[0], marks[-1]))
    finally:
        agent.remove()
        shutil.rmtree(room, ignore_errors=True)


def _answer(lake: str, since: int, until: int) -> report.SweepReport:
    prices = Prices([Price(host="*", per_hour=3600.0)])  # a unit of money a second
    limits = Thresholds(least_us=4_000_000, idle_cores=0.2)
    with DuckSession(lake) as session:
        return report.sweep(session, Period(since, until), prices, "run", limits)


def assert_between(value: float, bounds: tuple[float, float], more: float = 0.01) -> None:
    """more: what is forgiven; clocks of processes and of records begin some milliseconds apart."""
    assert bounds[0] - more <= value <= bounds[1] + more


def test_parts_add_up(played: Played) -> None:
    for hour in played.found.hours:
        # Where no clock of the scheduler knows of it, stolen time is a program's too.
        near = 0.01 * hour.capacity + played.watch.stolen(played.since, played.until)
        assert abs(hour.residue) <= near, {c: hour.cpu[c] / 1e9 for c in CLASSES}
        assert sum(hour.cpu.values()) + hour.residue == pytest.approx(hour.capacity)


def test_time_is_what_the_clock_says(played: Played) -> None:
    total = played.found.total
    whole = (played.until - played.since) / 1e6
    assert total.host_ns / 1e9 == pytest.approx(whole, rel=0.005)
    assert total.covered_ns / 1e9 == pytest.approx(whole, rel=0.005)
    least, most = (a + b for a, b in zip(played.busy.length(), played.sleep.length(), strict=True))
    # A record of the host has its time when it is written, which is milliseconds after its interval on a host that has
    # much to do: between two of them is then a moment of which nothing is known, in runs as well.
    uncovered = max(whole - total.covered_ns / 1e9, 0)
    assert_between(total.run_ns / 1e9, (least, most), 0.01 + uncovered)
    assert_between((total.covered_ns - total.run_ns) / 1e9, (whole - most, whole - least), 0.005 * whole)


def test_idle_time_is_what_the_kernel_counted(played: Played) -> None:
    total = played.found.total
    idle = sum(total.cpu_ns[c] for c in ("reserved", "idle_run", "idle_none"))
    near = 0.01 * total.capacity_ns
    assert idle == pytest.approx(played.watch.idle(played.since, played.until), abs=near)
    without = played.idle_before(played.busy.before)
    after = played.watch.idle(played.since, played.until) - played.idle_before(played.sleep.after)
    between = played.idle_before(played.sleep.before) - played.idle_before(played.busy.after)
    assert total.cpu_ns["idle_none"] == pytest.approx(without + between + after, abs=near)


def test_runs_used_what_their_programs_did(played: Played) -> None:
    groups = sorted((g for g in played.found.groups if g.known), key=lambda g: -g.cpu_ns)
    assert len(groups) == 2  # two calls of make
    busy, idle = groups
    assert busy.cpu_ns + idle.cpu_ns == pytest.approx(played.found.total.cpu_ns["runs"])
    assert busy.cpu_ns == pytest.approx(played.busy.cpu_ns, rel=0.01)
    assert_between(busy.alive_ns / 1e9, played.busy.length())
    assert idle.cpu_ns == pytest.approx(played.sleep.cpu_ns, abs=5_000_000)
    assert_between(idle.alive_ns / 1e9, played.sleep.length())


def test_the_idle_run_is_reported_and_the_busy_one_is_not(played: Played) -> None:
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
    # The interval of a second in which the run begins is not idle where its beginning took the CPU.
    least, most = played.sleep.length()
    assert_between(told[0].hours * 3600, (least - 1, most), 0.05 * SLEEP_S)
