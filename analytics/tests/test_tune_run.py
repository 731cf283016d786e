# SPDX-License-Identifier: Apache-2.0
"""The answer of `sluice tune` on a run: its numbers are those of a plain computation over the records."""

from __future__ import annotations

import pathlib
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import sluice_binary
from lakes import GIB, MIB, LakeMaker, S

from sluice_analytics import prices
from sluice_analytics.errors import NotFound
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.sweep.period import Period
from sluice_analytics.sweep.use import by_group
from sluice_analytics.tune.run import load
from sluice_analytics.tune.run_report import Resources, RunReport, TaskRow

SUMS = (
    "cpu_user_ns", "cpu_system_ns", "run_delay_ns", "minor_faults", "major_faults", "read_bytes", "write_bytes",
    "rchar", "wchar", "net_rx_bytes", "net_tx_bytes", "block_io_delay_ns",
)  # fmt: skip

SCRIPT = """
(head -c 3000000 /dev/urandom | gzip -c >a.gz) &
(seq 200000 | sort -r >b.txt) &
wait
grep -q nothing /etc/hostname
for i in 1 2 3; do dd if=/dev/zero of=c bs=64k count=40 conv=fsync 2>/dev/null; done
sleep 1.2
PYTHON -c 'import time
e = time.monotonic() + 2.5
n = 0
while time.monotonic() < e: n += 1; time.sleep(0.01)
sum(range(2000000))'
exit 3
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A lake of a real run, longer than two intervals of the agent, which exits with 3."""
    folder = tmp_path_factory.mktemp("recorded")
    script = folder / "script.sh"
    script.write_text(f"cd {folder}\n" + SCRIPT.replace("PYTHON", sys.executable))
    assert sluice_binary.record(folder / "lake", "bash", str(script), interval="1s") == 3
    return folder / "lake"


def of(lake: pathlib.Path, run: str | None = None, **options: Any) -> RunReport:
    """The report of a run."""
    with DuckSession(str(lake)) as session:
        return load(session, run, **{"with_recommendations": False} | options)


def sums(records: list[dict[str, Any]]) -> dict[str, int | None]:
    """END records added up, in plain Python; None where none knows."""
    totals: dict[str, int | None] = {}
    for name in SUMS:
        known = [r["usage"][name] for r in records if r["usage"][name] is not None]
        totals[name] = sum(known) if known else None
    totals["peak_rss_bytes"] = max(r["usage"]["peak_rss_bytes"] for r in records)
    return totals


def shown(usage: Resources) -> dict[str, int | None]:
    """The same names of a report."""
    return {name: getattr(usage, name) for name in (*SUMS, "peak_rss_bytes")}


def test_recorded_totals_equal_sums_over_end_records(recorded: pathlib.Path) -> None:
    """Run, tasks, tools, and what is no task's: each equals its END records added up."""
    report = of(recorded)
    ends = [r for r in sluice_binary.cat(recorded, "program") if r["phase"] == "END"]
    assert len({r["program_id"] for r in ends}) == len(ends) == report.programs_total
    assert shown(report.usage) == sums(ends)
    assert report.failed_programs == sum(1 for r in ends if r["exit_code"] or r["exit_signal"])
    by_task = defaultdict(list)
    by_tool = defaultdict(list)
    for r in ends:
        by_task[r["task_id"] or "-"].append(r)
        by_tool[r["tool"] or r["comm"]].append(r)
    assert len(by_task) > 5
    assert {t.task_id for t in report.tasks} == set(by_task)
    for task in report.tasks:
        mine = by_task[task.task_id]
        assert shown(task.usage) == sums(mine), task.name
        assert task.programs == len(mine)
        assert task.failed_programs == sum(1 for r in mine if r["exit_code"] or r["exit_signal"])
    assert {t.tool for t in report.tools} == set(by_tool)
    for tool in report.tools:
        mine = by_tool[tool.tool]
        assert shown(tool.usage) == sums(mine), tool.tool
        assert tool.wall_ns == sum((r["end_time"] - r["program_start_time"]) * 1000 for r in mine)
    assert sum(t.share_of_cpu or 0 for t in report.tools) == pytest.approx(1)


def test_recorded_run_is_reported_as_it_was(recorded: pathlib.Path) -> None:
    """State, exit, times, engine's own record, programs with their parents."""
    report = of(recorded)
    last = [r for r in sluice_binary.cat(recorded, "run") if r["phase"] == "END"][-1]
    assert (report.state, report.exit_code, report.exit_signal) == ("FAILED", 3, None)
    assert (report.start_time, report.end_time, report.wall_ns) == (
        last["start_time"], last["end_time"], last["wall_ns"],
    )  # fmt: skip
    assert report.bound == last["bound"]
    assert report.parallelism == pytest.approx(last["parallelism"], rel=1e-12)
    assert {p.program_id for p in report.programs} == {r["program_id"] for r in sluice_binary.cat(recorded, "program")}
    tasks = {r["task_id"]: r for r in sluice_binary.cat(recorded, "task") if r["phase"] == "END"}
    for task in report.tasks:
        if task.task_id != "-":
            mine = tasks[task.task_id]
            assert (task.bound, task.wall_ns, task.exit_code) == (mine["bound"], mine["wall_ns"], mine["exit_code"])
            assert task.shares == mine["shares"]
            assert (task.bill, task.own_bill) == (mine["bill"], mine["own_bill"])
            names = ("demand", "demand_confidence", "waiting_for", "denied", "denied_share", "peak_memory_bytes")
            assert [getattr(task, name) for name in names] == [mine[name] for name in names]


def test_recorded_timeline_adds_up(recorded: pathlib.Path) -> None:
    """A curve's mean times its time is the total, for any bins; so is the time that programs lived."""
    report = of(recorded)
    line = report.timeline
    seconds = line.bin_us / 1e6
    usage = report.usage
    assert len(line.series["cpu_cores"]) <= 600
    total = (usage.cpu_user_ns or 0) + (usage.cpu_system_ns or 0)
    assert sum(line.series["cpu_cores"]) * seconds == pytest.approx(total / 1e9, rel=1e-9)
    assert sum(line.series["read_bytes_per_s"]) * seconds == pytest.approx(usage.read_bytes or 0, rel=1e-9)
    assert sum(line.series["write_bytes_per_s"]) * seconds == pytest.approx(usage.write_bytes or 0, rel=1e-9)
    lived = sum((p.end_time or 0) - p.start_time for p in report.programs)
    assert sum(line.series["running_programs"]) * line.bin_us == pytest.approx(lived, rel=1e-9)
    tasks = sum((t.end_time or 0) - t.start_time for t in report.tasks if t.task_id != "-")
    assert sum(line.series["running_tasks"]) * line.bin_us == pytest.approx(tasks, rel=1e-9)
    assert sum(line.series["rss_bytes"]) * line.bin_us == pytest.approx(
        (usage.mean_rss_bytes or 0) * report.wall_ns / 1000, rel=1e-6
    )


def test_recorded_gap_is_where_only_sleep_ran(recorded: pathlib.Path) -> None:
    """The sleep of 1.2 s is a gap: it lies between what ran before it and what came next, by their records."""
    ends = [r for r in sluice_binary.cat(recorded, "program") if r["phase"] == "END"]
    (sleep,) = [r for r in ends if r["comm"] == "sleep"]
    begin, end = sleep["program_start_time"], sleep["end_time"]
    before = max(r["end_time"] for r in ends if r["end_time"] <= begin)
    after = min(r["program_start_time"] for r in ends if r["program_start_time"] >= end)
    assert any(before - 100_000 <= a <= begin + 300_000 and end - 300_000 <= b <= after + 300_000
               for a, b in of(recorded).gaps)  # fmt: skip


# Made lakes


def task(report: RunReport, task_id: str) -> TaskRow:
    """A task by its id."""
    return next(t for t in report.tasks if t.task_id == task_id)


@pytest.fixture
def priced(maker: LakeMaker) -> Iterator[LakeMaker]:
    """A host of 4 CPUs and 16 GiB; a task that asked for 2 CPUs and 4 GiB for 100 s, and a driver."""
    maker.run(run_id="r1", end=100, programs=2, cpu_user_ns=60 * S, cpu_system_ns=10 * S, peak_rss_bytes=2 * GIB)
    usage = {"cpu_user_ns": 50 * S, "cpu_system_ns": 10 * S, "peak_rss_bytes": 2 * GIB}
    maker.task(run_id="r1", end=100, requested_cpus=2.0, requested_memory_bytes=4 * GIB, **usage)
    maker.program(run_id="r1", task_id="t1", task="step", end=100, tool="bwa mem", rss_bytes=GIB, **usage)
    maker.program(run_id="r1", end=100, tool="snakemake", cpu_user_ns=10 * S, rss_bytes=0)
    maker.host(start=0, end=100, instance_type="m5.xlarge", region="eu-central-1", cloud="aws")
    maker.write()
    yield maker


def test_efficiency_by_hand(priced: LakeMaker) -> None:
    """Seff: 60 CPU seconds of 100 s * 2 CPUs; 2 of 4 GiB. The run requested nothing: the host's size replaces it."""
    report = of(priced.path)
    e = task(report, "t1").efficiency
    assert (e.cpu, e.memory, e.over_host) == (0.3, 0.5, False)
    assert (e.requested_cpus, e.requested_memory_bytes) == (2.0, 4 * GIB)
    r = report.efficiency
    assert (r.cpu, r.memory, r.over_host) == (70 / 400, 2 / 16, True)
    assert (r.requested_cpus, r.requested_memory_bytes) == (None, None)


def test_cost_by_hand(priced: LakeMaker, tmp_path: pathlib.Path) -> None:
    """3.6 an hour is 0.001 a second. Used: max(60/4, 100 GiB s/16) of 100 s; reserved: half of the CPUs."""
    table = tmp_path / "prices.csv"
    table.write_text("provider,region,instance_type,usd_per_hour\naws,eu-central-1,m5.xlarge,3.6\n")
    report = of(priced.path, prices=prices.read(str(table)))
    t1 = task(report, "t1")
    assert t1.cost.used == pytest.approx(0.001 * 60 / 4)
    assert t1.cost.reserved == pytest.approx(0.001 * 100 * 2 / 4)
    assert report.cost.used == pytest.approx(0.001 * 70 / 4)
    assert report.cost.reserved == t1.cost.reserved
    assert task(report, "-").cost.used == pytest.approx(0.001 * 10 / 4)
    assert {t.tool: t.cost.used for t in report.tools}["bwa mem"] == pytest.approx(0.001 * 60 / 4)


def test_unknown_price_is_unknown(priced: LakeMaker, tmp_path: pathlib.Path) -> None:
    """Never 0."""
    table = tmp_path / "prices.csv"
    table.write_text("instance_type,usd_per_hour\nother,3.6\n")
    for report in (of(priced.path), of(priced.path, prices=prices.read(str(table)))):
        assert report.cost.used is None and report.cost.reserved is None
        assert all(t.cost.used is None for t in report.tasks)


def test_mean_memory_is_over_time(maker: LakeMaker) -> None:
    """1 GiB for 30 s, then 3 GiB for 10 s of a task of 40 s: 1.5 GiB."""
    maker.run(run_id="r1", end=40, programs=1)
    maker.task(run_id="r1", end=40)
    p = maker.program(run_id="r1", task_id="t1", task="step", end=40, rss_bytes=3 * GIB, peak_rss_bytes=3 * GIB)
    for start in (0, 10, 20):
        maker.usage(p, start=start, end=start + 10, rss_bytes=GIB, peak_rss_bytes=GIB, program_start_time=maker.us(0))
    maker.write()
    assert task(of(maker.path), "t1").usage.mean_rss_bytes == 1.5 * GIB


def test_unknown_stays_unknown(maker: LakeMaker) -> None:
    """What the kernel does not know is None in tasks, tools and the run."""
    unknown = {"usage": None} | dict.fromkeys(("cpu_user_ns", "cpu_system_ns", "net_rx_bytes"))
    maker.run(run_id="r1", end=10, programs=1, **{k: v for k, v in unknown.items() if k != "usage"})
    maker.task(run_id="r1", end=10, net_rx_bytes=None)
    maker.program(run_id="r1", task_id="t1", end=10, net_rx_bytes=None, wchar=5)
    maker.write()
    report = of(maker.path)
    assert report.usage.net_rx_bytes is None and report.usage.cpu_user_ns is None
    assert report.parallelism is None and report.efficiency.cpu is None
    assert task(report, "t1").usage.net_rx_bytes is None
    assert report.tools[0].usage.net_rx_bytes is None and report.tools[0].usage.wchar == 5


def test_live_programs_count_by_what_is_recorded(maker: LakeMaker) -> None:
    """A program that runs still has the sums of its intervals; the run is RUNNING, later UNKNOWN."""
    maker.run(run_id="r1", start=0)
    maker.run(run_id="r1", phase="LIVE", time=maker.us(20), cpu_user_ns=12 * S, programs=1)
    p = maker.program(run_id="r1", task_id="t1", task="step")
    maker.task(run_id="r1", start=0)
    maker.usage(p, start=0, end=10, cpu_user_ns=7 * S, program_start_time=maker.us(0))
    maker.usage(p, start=10, end=20, cpu_user_ns=5 * S, program_start_time=maker.us(0))
    maker.write()
    report = of(maker.path, now_us=maker.us(25))
    assert (report.state, report.end_time, report.last_time) == ("RUNNING", None, maker.us(20))
    assert report.tools[0].usage.cpu_user_ns == 12 * S
    assert report.programs[0].end_time is None
    assert of(maker.path, now_us=maker.us(2000)).state == "UNKNOWN"


def test_attempts_and_retries(maker: LakeMaker) -> None:
    """A failed execution that another of the same name and sample follows is retried; equal tasks are not."""
    maker.run(run_id="r1", end=100, programs=0)
    maker.task(run_id="r1", task_id="a1", task="align", sample="A", start=0, end=10, exit_code=1)
    maker.task(run_id="r1", task_id="b1", task="align", sample="B", start=0, end=30)
    maker.task(run_id="r1", task_id="a2", task="align", sample="A", start=20, end=40, exit_code=1)
    maker.task(run_id="r1", task_id="a3", task="align", sample="A", start=50, end=60)
    maker.task(run_id="r1", task_id="c1", task="count", start=0, end=5)
    maker.task(run_id="r1", task_id="c2", task="count", start=6, end=9)
    maker.write()
    report = of(maker.path)
    assert {t.task_id: (t.attempt, t.retried) for t in report.tasks if t.task_id != "-"} == {
        "a1": (1, True), "a2": (2, True), "a3": (3, False), "b1": (1, False), "c1": (1, False), "c2": (1, False),
    }  # fmt: skip
    [retries] = [o for o in report.observations if o.kind == "RETRIES"]
    assert retries.evidence["failed_attempts"] == 2 and retries.evidence["wall_ns"] == 30 * S


def test_run_without_driver_is_judged_by_its_tasks(maker: LakeMaker) -> None:
    """Where the driver's exit is unknown, a failed task that was not retried makes the run FAILED."""
    for run_id, code in (("good", 0), ("bad", 1)):
        maker.run(run_id=run_id, end=10, exit_code=None, programs=0)
        maker.task(run_id=run_id, end=10, exit_code=code)
    maker.write()
    assert of(maker.path, "good").state == "SUCCEEDED"
    assert of(maker.path, "bad").state == "FAILED"


def test_two_hosts_are_one_run(maker: LakeMaker) -> None:
    """Totals are sums over hosts, the peak the larger; each task has its host; the exit is the driver's."""
    other = "f" * 32
    maker.run(run_id="r1", start=0, end=100, cpu_user_ns=10 * S, peak_rss_bytes=MIB, programs=1, exit_code=0)
    maker.run(run_id="r1", start=5, end=120, cpu_user_ns=30 * S, peak_rss_bytes=2 * MIB, host_id=other, exit_code=None)
    maker.task(run_id="r1", task_id="t2", start=5, end=120, host_id=other)
    maker.program(run_id="r1", task_id="t2", task="step", start=5, end=120, cpu_user_ns=30 * S, host_id=other)
    maker.program(run_id="r1", start=0, end=100, cpu_user_ns=10 * S)
    maker.write()
    report = of(maker.path)
    assert report.usage.cpu_user_ns == 40 * S and report.usage.peak_rss_bytes == 2 * MIB
    assert report.wall_ns == 120 * S and report.state == "SUCCEEDED"
    assert len(report.hosts) == 2 and task(report, "t2").host_name == "host-ffffffff"


def test_delivery_twice_counts_once(priced: LakeMaker) -> None:
    """Delivery is at least once."""
    before = of(priced.path)
    priced.repeat(*priced.written["program"], *priced.written["task"], *priced.written["run"])
    priced.write()
    after = of(priced.path)
    assert after.usage == before.usage and after.tools == before.tools and len(after.tasks) == len(before.tasks)


def test_missing_program_records_are_reported(maker: LakeMaker) -> None:
    """The agent counted 3 programs, the lake has 1."""
    maker.run(run_id="r1", end=10, programs=3)
    maker.program(run_id="r1", end=10)
    maker.write()
    report = of(maker.path)
    assert [(loss.place, loss.count) for loss in report.losses] == [("sluice.program", 2)]
    assert any("2 lost at sluice.program" in w for w in report.warnings)


def test_programs_are_limited_to_those_that_matter(maker: LakeMaker) -> None:
    """Failed ones, then the longest; totals have all."""
    maker.run(run_id="r1", end=100, programs=12)
    for n in range(10):
        maker.program(run_id="r1", start=0, end=n + 1, exe=f"/bin/p{n}", cpu_user_ns=S)
    maker.program(run_id="r1", start=0, end=0.5, exe="/bin/bad", exit_code=1)
    maker.program(run_id="r1", start=0, exe="/bin/live")
    maker.write()
    report = of(maker.path, programs_limit=3)
    assert {p.exe for p in report.programs} == {"/bin/bad", "/bin/live", "/bin/p9"}
    assert report.programs_left_out == 9 and report.programs_total == 12
    assert sum(t.usage.cpu_user_ns or 0 for t in report.tools) == 10 * S


def test_a_start_adds_nothing_to_an_end(tmp_path: pathlib.Path) -> None:
    """A lake where each program has a START, and one where those that ended have an END alone."""
    reports, swept = [], []
    for name in ("starts", "ends"):
        maker = LakeMaker(tmp_path / name)
        maker.run(run_id="r", start=0, end=60, exit_code=3, programs=6)
        maker.host(start=0, end=60)
        for n in range(4):
            task: dict[str, Any] = {"run_id": "r", "task_id": f"t{n}", "task": "ALIGN", "sample": f"s{n}"}
            maker.task(start=n, end=n + 20, exit_code=3 if n == 3 else 0, **task)
            length = (0.2, 0.9, 15, 20)[n]
            facts = {
                **task,
                "exit_code": 3 if n == 3 else 0,
                "cpu_user_ns": round(length * S) // 2,
                "exe": "/usr/bin/bwa",
            }
            if name == "starts":
                maker.program(phase="START", start=n, time=maker.us(n), pid=n + 1, **facts)
            p = maker.program(phase="END", start=n, end=n + length, pid=n + 1, **facts)
            if n >= 2:
                maker.usage(p, start=n, end=n + 10, cpu_user_ns=5 * S)
        maker.program(run_id="r", start=30, phase="START", pid=5)  # which is alive
        maker.write()
        reports.append(of(maker.path, with_recommendations=True))
        with DuckSession(str(maker.path)) as session:
            rows = session.rows(by_group(session, Period(maker.us(0), maker.us(60)), "exe"))
            swept.append(sorted(str(row) for row in rows))
    assert reports[0].programs and reports[0].tasks
    assert reports[0] == reports[1]
    assert swept[0] == swept[1]


def test_which_run(maker: LakeMaker) -> None:
    """By id, unique beginning, name; the latest; and what there is, where it is not there."""
    maker.run(run_id="aaa1", start=0, end=1, run_name="calm_euler", programs=0)
    maker.run(run_id="aaa2", start=10, end=11, run_name="mad_gauss", programs=0)
    maker.run(run_id="bbb", start=5, end=6, run_name="mad_gauss", programs=0)
    maker.write()
    assert of(maker.path).run_id == "aaa2"
    assert of(maker.path, "b").run_id == "bbb"
    assert of(maker.path, "calm_euler").run_id == "aaa1"
    assert of(maker.path, "mad_gauss").run_id == "aaa2"
    with pytest.raises(NotFound, match="beginning of 2 runs"):
        of(maker.path, "aaa")
    with pytest.raises(NotFound, match=r'no run "zzz"(.|\n)*aaa2(.|\n)*bbb(.|\n)*aaa1'):
        of(maker.path, "zzz")
