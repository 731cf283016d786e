# SPDX-License-Identifier: Apache-2.0
"""sweep's findings: each kind once where it is there, and once where it must not be."""

from __future__ import annotations

from typing import Any

import pytest
from lakes import GIB, MIB, LakeMaker, S

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.prices import Price, Prices
from sluice_analytics.sweep import report
from sluice_analytics.sweep.find_hosts import weighted_percentile
from sluice_analytics.sweep.find_work import worker_name
from sluice_analytics.sweep.finding import KINDS, Finding
from sluice_analytics.sweep.period import Period
from sluice_analytics.sweep.thresholds import Thresholds

HOUR = 3600
KIB = 1 << 10
PRICES = Prices([Price(host="node1", per_hour=4.0, gpu=2.0)])


def find(lake: LakeMaker, until: float, kind: str | None = None, limits: Thresholds | None = None) -> list[Finding]:
    """The findings of the lake's time, all but the one on GPUs that PRICES give node1; or those of a kind."""
    lake.write()
    with DuckSession(str(lake.path)) as session:
        period = Period(lake.t0, lake.us(until))
        found = report.sweep(session, period, PRICES, "host", limits or Thresholds()).findings
    assert {f.kind for f in found} <= set(KINDS)
    return [f for f in found if (f.kind != "GPU_NOT_OBSERVED" if kind is None else f.kind == kind)]


def up(lake: LakeMaker, start: float, end: float, step: float = 60, busy: float = 0.01, **fields: Any) -> None:
    """A host that is up, with so many CPUs of its 4 busy."""
    at = start
    while at < end:
        lake.host(start=at, end=min(at + step, end), cpu_busy_ns=round(busy * (min(at + step, end) - at) * S), **fields)
        at += step


def work(
    lake: LakeMaker, start: float, end: float, run: str = "r1", cores: float = 1.0, **fields: Any
) -> dict[str, Any]:
    """A run with one program that computes all the time and has a record each minute."""
    lake.run(run_id=run, start=start, end=end, cpu_user_ns=round(cores * (end - start) * S))
    p = lake.program(run_id=run, start=start, end=end, cpu_user_ns=round(cores * (end - start) * S), **fields)
    at = start
    while at + 60 < end:
        lake.usage(p, start=at, end=at + 60, cpu_user_ns=round(cores * 60 * S))
        at += 60
    return p


def kinds(found: list[Finding]) -> list[str]:
    return [f.kind for f in found]


def test_a_host_that_stays_up_after_its_last_run(maker: LakeMaker) -> None:
    up(maker, 0, 1800, busy=1.01)
    up(maker, 1800, 2 * HOUR)
    work(maker, 0, 1800, rchar=100 * MIB)
    (one,) = find(maker, 2 * HOUR)
    assert (one.kind, one.host_name) == ("IDLE_AFTER_RUN", "node1")
    assert one.hours == pytest.approx(1.5)
    assert one.money == pytest.approx(6.0)
    assert one.start_us == maker.us(1800)
    assert one.evidence["last_run_time"] == maker.us(1800)
    assert one.evidence["busy_cores"] == pytest.approx(0.01)


def test_a_host_whose_run_goes_on_is_not_idle_after_it(maker: LakeMaker) -> None:
    up(maker, 0, 2 * HOUR, busy=1.01)
    work(maker, 0, 2 * HOUR, rchar=100 * MIB)
    assert find(maker, 2 * HOUR) == []


def test_a_forgotten_host_and_one_that_was_there_for_minutes(maker: LakeMaker) -> None:
    up(maker, 0, 3 * HOUR)
    up(maker, 0, 1800, host_id="b" * 32, host_name="node2")
    (one,) = find(maker, 3 * HOUR)
    assert (one.kind, one.subject, one.hours) == ("FORGOTTEN_HOST", "node1", pytest.approx(3.0))
    assert one.money == pytest.approx(12.0)


def test_a_forgotten_host_counts_the_time_that_was_watched(maker: LakeMaker) -> None:
    up(maker, 0, HOUR)
    up(maker, 2 * HOUR, 3 * HOUR)
    (one,) = find(maker, 3 * HOUR)
    assert (one.kind, one.hours) == ("FORGOTTEN_HOST", pytest.approx(2.0))


_MOVES = [
    ({"net_rx_bytes": 32 * KIB * 60, "disk_write_bytes": 32 * KIB * 60}, True),  # receives and stores
    ({"disk_read_bytes": 40 * KIB * 60, "net_tx_bytes": None}, False),  # below 64 KiB a second
    ({"net_tx_bytes": 70 * KIB * 60, "disk_read_bytes": None}, True),
    ({"disk_read_bytes": None, "disk_write_bytes": None, "net_rx_bytes": None, "net_tx_bytes": None}, False),
]
"""Of a minute with hardly any CPU: is that work?"""


@pytest.mark.parametrize(("minute", "works"), _MOVES)
def test_a_host_that_moves_data_is_not_forgotten(maker: LakeMaker, minute: dict[str, int | None], works: bool) -> None:
    up(maker, 0, 3 * HOUR, **minute)
    found = find(maker, 3 * HOUR)
    assert kinds(found) == ([] if works else ["FORGOTTEN_HOST"])
    known = [n for n in minute.values() if n is not None]
    assert [f.evidence["moved_bytes"] for f in found] == ([] if works else [sum(known) * 180 if known else None])


@pytest.mark.parametrize(("minute", "works"), _MOVES)
def test_a_host_that_moves_data_after_its_run_is_not_idle(
    maker: LakeMaker, minute: dict[str, int | None], works: bool
) -> None:
    up(maker, 0, 1800, busy=1.01, net_rx_bytes=GIB)
    up(maker, 1800, 2 * HOUR, **minute)
    work(maker, 0, 1800, rchar=100 * MIB)
    assert kinds(find(maker, 2 * HOUR)) == ([] if works else ["IDLE_AFTER_RUN"])


def test_a_host_that_is_busy_only_with_background(maker: LakeMaker) -> None:
    up(maker, 0, 2 * HOUR, busy=1.6)
    maker.program(start=0, end=2 * HOUR, cpu_user_ns=round(1.5 * 2 * HOUR * S), exe="/usr/bin/indexer", rchar=GIB)
    (one,) = find(maker, 2 * HOUR)
    assert (one.kind, one.hours) == ("BUSY_WITHOUT_RUNS", pytest.approx(2.0))
    assert one.evidence["busy_share"] == pytest.approx(0.4)
    assert one.evidence["programs"][0]["comm"] == "indexer"
    assert one.evidence["programs"][0]["cpu_ns"] == pytest.approx(1.5 * 2 * HOUR * S)


def test_spikes_at_a_steady_distance(maker: LakeMaker) -> None:
    at = 0
    for _ in range(6):  # a minute of 2 CPUs every 20 minutes
        up(maker, at, at + 60, busy=2.0)
        up(maker, at + 60, at + 1200)
        at += 1200
    (one,) = find(maker, at, "PERIODIC_SPIKES")
    assert one.evidence["bursts"] == 6
    assert one.evidence["median_distance_ns"] == 1200 * S
    assert one.evidence["mean_cores"] == pytest.approx(2.0)
    assert one.hours == pytest.approx((5 * 1200 + 60) / HOUR)


@pytest.mark.parametrize("case", ["irregular", "sustained", "in a run"])
def test_no_spikes(maker: LakeMaker, case: str) -> None:
    at = 0
    pauses = [100, 2000, 300, 5000, 700] if case == "irregular" else [1140] * 5
    for pause in pauses:
        length = 600 if case == "sustained" and at > 0 else 60
        up(maker, at, at + length, busy=2.0)
        if case == "in a run":
            work(maker, at, at + length, run=f"r{at}", cores=1.9, rchar=100 * MIB)
        up(maker, at + length, at + length + pause)
        at += length + pause
    assert find(maker, at, "PERIODIC_SPIKES") == []


def test_an_oversized_host(maker: LakeMaker) -> None:
    # 100 minutes at 0.4 CPUs, one at 1.2; 6 GiB of 16 in use at most.
    for n in range(420):
        busy, free = (1.2, 10 * GIB) if n == 7 else (0.4, 12 * GIB)
        up(maker, n * 60, n * 60 + 60, busy=busy, memory_available_bytes=free)
    work(maker, 0, 420 * 60, cores=0.4, rchar=GIB)
    (one,) = find(maker, 420 * 60, "OVERSIZED_HOST")
    assert one.evidence["peak_cores"] == pytest.approx(1.2)
    assert one.evidence["peak_memory_bytes"] == 6 * GIB
    # Bins of 1 %: 0.4 of 4 is in the bin that ends at 11 %; 4 of 16 GiB in the one that ends at 26 %.
    assert one.evidence["p99_cores"] == pytest.approx(0.44)
    assert one.evidence["p95_memory_bytes"] == pytest.approx(0.26 * 16 * GIB)
    assert one.evidence["unused_share"] == pytest.approx(1 - 6 / 16)
    assert one.money == pytest.approx(7 * 4.0 * (1 - 6 / 16))


def test_a_host_whose_memory_is_needed_is_not_oversized(maker: LakeMaker) -> None:
    up(maker, 0, 7 * HOUR, busy=0.4, memory_available_bytes=GIB)
    work(maker, 0, 7 * HOUR, cores=0.4, rchar=GIB)
    assert find(maker, 7 * HOUR, "OVERSIZED_HOST") == []


def test_gpus_are_not_judged(maker: LakeMaker) -> None:
    up(maker, 0, 600)
    up(maker, 0, 600, host_id="b" * 32, host_name="node2")
    (one,) = find(maker, 600, "GPU_NOT_OBSERVED")
    assert (one.host_name, one.hours, one.money, one.evidence["gpus"]) == ("node1", None, None, 2.0)
    assert "not known" in one.sentence


def test_weighted_percentile() -> None:
    levels = [(10, 50.0), (20, 45.0), (90, 5.0)]
    assert [weighted_percentile(levels, p) for p in (50, 51, 95, 96, 100)] == [10, 20, 20, 90, 90]


def test_a_worker_that_waits_and_one_that_works(maker: LakeMaker) -> None:
    up(maker, 0, 2 * HOUR, busy=1.01)
    idle = maker.program(
        start=0, exe="/usr/bin/python3", argv=["/usr/bin/python3", "/opt/bin/dask-worker", "tcp://a:1"]
    )
    busy = maker.program(start=0, exe="/usr/bin/celery", argv=["celery", "-A", "x", "worker"])
    child = maker.program(start=0, parent_program_id=busy["program_id"], exe="/usr/bin/python3")
    for at in range(0, 2 * HOUR, 600):
        maker.usage(idle, start=at, end=at + 600, cpu_user_ns=S, peak_rss_bytes=GIB)
        maker.usage(busy, start=at, end=at + 600, cpu_user_ns=S)
        maker.usage(child, start=at, end=at + 600, cpu_user_ns=600 * S, rchar=GIB)
    (one,) = find(maker, 2 * HOUR, "WAITING_WORKER")
    assert one.subject == "dask-worker"
    assert one.hours == pytest.approx(2.0)
    assert one.evidence["cpu_ns"] == pytest.approx(12 * S)
    assert one.money == pytest.approx(2 * 4.0 / 16)  # it holds 1 of 16 GiB


def test_what_is_a_worker() -> None:
    assert worker_name("python3", "python3", "/usr/bin/python3", ["python3", "-m", "distributed.cli.dask_worker"])
    assert worker_name("slurmstepd", None, "/usr/sbin/slurmstepd", None) == "slurmstepd"
    assert worker_name("ray::IDLE", None, None, None) == "ray::IDLE"
    assert worker_name("vim", "vim", "/usr/bin/vim", ["vim", "celery.py"]) is None
    assert worker_name("python3", "align.py", "/usr/bin/python3", ["python3", "align.py"]) is None


def test_an_idle_run_and_an_idle_task_of_a_run_that_works(maker: LakeMaker) -> None:
    up(maker, 0, 2 * HOUR, busy=1.01)
    work(maker, 0, 2 * HOUR, run="r1", rchar=GIB)
    fields: dict[str, Any] = {"run_id": "r1", "task_id": "t9", "task": "wait", "cpu_user_ns": 10 * S}
    maker.task(start=600, end=600 + HOUR, requested_cpus=2.0, **fields)
    waiting = maker.program(start=600, end=600 + HOUR, **fields)
    maker.usage(waiting, start=600, end=610, cpu_user_ns=S)
    # A run of its own that polls enough to be alive, but uses next to nothing.
    maker.run(run_id="r2", pipeline="idler", start=0, end=HOUR, cpu_user_ns=120 * S)
    poller = maker.program(run_id="r2", start=0, end=HOUR, cpu_user_ns=120 * S)
    for at in range(0, HOUR, 600):
        maker.usage(poller, start=at, end=at + 600, cpu_user_ns=20 * S)
    found = find(maker, 2 * HOUR)
    assert sorted(kinds(found)) == ["IDLE_RUN", "IDLE_TASK"]
    task = next(f for f in found if f.kind == "IDLE_TASK")
    assert (task.subject, task.hours, task.evidence["cpu_ns"]) == ("wait", pytest.approx(1.0), 10 * S)
    assert task.money == pytest.approx(4.0 * 2 / 4)  # it had asked for 2 of 4 CPUs
    run = next(f for f in found if f.kind == "IDLE_RUN")
    assert (run.pipeline, run.run_id, run.hours) == ("idler", "r2", pytest.approx(1.0))


@pytest.mark.parametrize(("asked", "together"), [((8.0, 4.0), 12.0), ((None, 4.0), 4.0), ((None, None), None)])
def test_an_idle_run_asked_for_the_cpus_of_all_its_hosts(
    maker: LakeMaker, asked: tuple[float | None, float | None], together: float | None
) -> None:
    for host_id, cpus in zip(("a" * 32, "b" * 32), asked, strict=True):
        host = {"host_id": host_id}
        up(maker, 0, 2 * HOUR, busy=1.01, **host)
        maker.run(start=0, end=HOUR, run_id="r2", requested_cpus=cpus, cpu_user_ns=6 * S, **host)
        p = maker.program(start=0, end=HOUR, run_id="r2", cpu_user_ns=6 * S, **host)
        for end in range(600, HOUR + 1, 600):
            maker.usage(p, start=end - 600, end=end, cpu_user_ns=S)
    (run,) = find(maker, 2 * HOUR, "IDLE_RUN")
    assert run.evidence["requested_cpus"] == together


@pytest.mark.parametrize(
    ("fields", "of_each", "expected"),
    [
        ({"task_id": "t", "task": "t"}, 600, "IDLE_TASK"),
        ({}, 600, "IDLE_RUN"),
        ({}, 10, "ZOMBIE_RUN"),  # ten seconds of each ten minutes
    ],
)
def test_reads_of_a_network_file_system_are_work(
    maker: LakeMaker, fields: dict[str, Any], of_each: int, expected: str
) -> None:
    # Neither block I/O nor a socket of its own: the kernel's client fetches. The other reads its status each second.
    up(maker, 0, 2 * HOUR, busy=1.01)
    for run, rate in (("reads", 50 * MIB), ("waits", 8 << 10)):
        of = {"run_id": run, "rchar": rate * of_each * 6, "cpu_user_ns": 6 * of_each * S // 600, **fields}
        maker.run(start=0, end=HOUR, pipeline=run, **of)
        if fields:
            maker.task(start=0, end=HOUR, **of)
        p = maker.program(start=0, end=HOUR, **of)
        for end in range(600, HOUR + 1, 600):
            maker.usage(p, start=end - of_each, end=end, cpu_user_ns=of_each * S // 600, rchar=of_each * rate)
    assert [(f.run_id, f.kind) for f in find(maker, 2 * HOUR) if f.run_id is not None] == [("waits", expected)]


def test_a_worker_that_reads_from_a_network_file_system_works(maker: LakeMaker) -> None:
    up(maker, 0, 2 * HOUR)
    for name, rate in (("reads", 50 * MIB), ("waits", 8 << 10)):
        worker = maker.program(start=0, end=HOUR, exe="/usr/bin/python3", argv=["python3", "-m", "celery", name])
        child = maker.program(start=0, end=HOUR, parent_program_id=worker["program_id"], rchar=rate * HOUR)
        maker.usage(child, start=0, end=HOUR, rchar=rate * HOUR)
        maker.usage(worker, start=0, end=HOUR)
    (found,) = find(maker, 2 * HOUR, "WAITING_WORKER")
    assert found.evidence["argv"][-1] == "waits"
    assert found.evidence["called_bytes"] == HOUR * (8 << 10)


def test_a_zombie_run_and_one_that_went_on(maker: LakeMaker) -> None:
    up(maker, 0, 3 * HOUR, busy=1.01)
    p = maker.program(run_id="z", start=0)
    q = maker.program(run_id="s", start=0)
    for r, last in (("z", p), ("s", q)):
        maker.run(run_id=r, pipeline=r, phase="LIVE", start=0, time=maker.us(3 * HOUR), cpu_user_ns=HOUR * S)
        for at in range(0, HOUR, 60):
            maker.usage(last, start=at, end=at + 60, cpu_user_ns=60 * S)
    for at in range(2 * HOUR, 3 * HOUR, 60):
        # The interval begins at its last record: the silence is not taken for slow progress.
        maker.usage(q, start=HOUR if at == 2 * HOUR else at, end=at + 60, cpu_user_ns=60 * S)
    found = {f.kind: f for f in find(maker, 3 * HOUR) if f.kind in ("ZOMBIE_RUN", "STALLED_RUN")}
    assert set(found) == {"ZOMBIE_RUN", "STALLED_RUN"}
    zombie, stalled = found["ZOMBIE_RUN"], found["STALLED_RUN"]
    assert (zombie.run_id, zombie.start_us, zombie.end_us) == ("z", maker.us(HOUR), maker.us(3 * HOUR))
    assert zombie.hours == pytest.approx(2.0)
    assert (stalled.run_id, stalled.start_us, stalled.end_us) == ("s", maker.us(HOUR), maker.us(2 * HOUR))


def test_new_programs_and_bytes_are_progress_and_unwatched_time_is_no_silence(maker: LakeMaker) -> None:
    up(maker, 0, HOUR)
    up(maker, 3 * HOUR, 4 * HOUR)
    maker.run(run_id="p", phase="LIVE", start=0, time=maker.us(HOUR), cpu_user_ns=400 * S)
    maker.run(run_id="io", phase="LIVE", start=0, time=maker.us(HOUR), read_bytes=GIB, cpu_user_ns=S)
    reader = maker.program(run_id="io", start=0)
    for at in range(0, HOUR, 600):
        maker.program(run_id="p", start=at, end=at + 1)
        maker.usage(reader, start=at, end=at + 600, read_bytes=100 * MIB)
    maker.run(run_id="away", phase="LIVE", start=1200, time=maker.us(3.2 * HOUR), cpu_user_ns=3000 * S)
    away = maker.program(run_id="away", start=1200)
    for at in (*range(1200, HOUR, 600), 3 * HOUR):
        maker.usage(away, start=at, end=at + 600, cpu_user_ns=600 * S)
    assert [f for f in find(maker, 4 * HOUR) if f.kind in ("ZOMBIE_RUN", "STALLED_RUN")] == []


def test_a_container_that_outlives_its_task(maker: LakeMaker) -> None:
    up(maker, 0, 2 * HOUR, busy=1.01)
    maker.run(run_id="r1", start=0, end=2 * HOUR, cpu_user_ns=2 * HOUR * S)
    for box, gone in (("c" * 64, None), ("d" * 64, 1900)):
        task = f"t-{box[0]}"
        maker.task(run_id="r1", task_id=task, task="ALIGN", start=0, end=1800, cpu_user_ns=1800 * S)
        maker.program(
            run_id="r1", task_id=task, task="ALIGN", container_id=box, start=0, end=1800, cpu_user_ns=1800 * S
        )
        maker.program(
            run_id="r1", container_id=box, container_name=f"box-{box[0]}", exe="/usr/bin/tini", start=0, end=gone
        )
    (one,) = find(maker, 2 * HOUR, "CONTAINER_OUTLIVES_TASK")
    assert (one.subject, one.start_us, one.hours) == ("box-c", maker.us(1800), pytest.approx(1.5))
    assert (one.evidence["comm"], one.evidence["alive"]) == ("tini", 1)


def test_programs_that_spin(maker: LakeMaker) -> None:
    up(maker, 0, HOUR, busy=3.0)
    cases: dict[str, dict[str, int]] = {
        "spinner": {"cpu_user_ns": 1},
        "worker": {"cpu_user_ns": 1, "rchar": 100 * MIB},
        "parent": {"cpu_user_ns": 1},
    }
    for name, each in cases.items():
        p = maker.program(start=0, exe=f"/usr/bin/{name}")
        for at in range(0, HOUR, 600):
            maker.usage(p, start=at, end=at + 600, **(each | {"cpu_user_ns": 540 * S}))
        if name == "parent":
            maker.program(start=5, end=6, parent_program_id=p["program_id"])
    storm = maker.program(start=0, exe="/usr/bin/storm")
    maker.usage(storm, start=0, end=600, cpu_user_ns=60 * S, syscr=1_200_000, rchar=100)
    assert find(maker, HOUR, "SPINNING") == []  # a simulation looks the same
    found = find(maker, HOUR, "SPINNING", Thresholds(spinning=True))
    assert sorted(f.subject for f in found) == ["spinner", "storm"]
    spinner = next(f for f in found if f.subject == "spinner")
    assert (spinner.hours, spinner.evidence["cores"]) == (pytest.approx(1.0), pytest.approx(0.9))
    assert spinner.money == pytest.approx(4.0 * 0.9 / 4)


def test_programs_that_poll(maker: LakeMaker) -> None:
    up(maker, 0, HOUR)
    maker.run(run_id="r1", start=0, end=HOUR, cpu_user_ns=HOUR * S)
    poller = maker.program(run_id="r1", start=0, exe="/usr/bin/watcher")
    quiet = maker.program(run_id="r1", start=0, exe="/usr/bin/sleeper")
    shell = maker.program(run_id="r1", start=0, exe="/bin/bash")
    for at in range(0, HOUR, 600):
        maker.usage(poller, start=at, end=at + 600, cpu_user_ns=S, voluntary_switches=6000)
        maker.usage(quiet, start=at, end=at + 600, cpu_user_ns=S, voluntary_switches=60)
        maker.usage(shell, start=at, end=at + 600, cpu_user_ns=S, voluntary_switches=20)
    for at in range(0, HOUR, 60):
        maker.program(run_id="r1", start=at, end=at + 60, exe="/usr/bin/sleep", parent_program_id=shell["program_id"])
    found = {f.subject: f for f in find(maker, HOUR, "POLLING")}
    assert set(found) == {"watcher", "bash"}
    assert found["watcher"].evidence["voluntary_switches"] == pytest.approx(36000)
    assert found["bash"].evidence["sleeps"] == 60


def test_a_task_that_fails_again_and_again(maker: LakeMaker) -> None:
    up(maker, 0, 2 * HOUR, busy=1.01)
    for n in range(4):
        run = f"r{n}"
        code = 0 if n == 3 else 1
        maker.run(run_id=run, start=n * 900, end=n * 900 + 800, exit_code=0, cpu_user_ns=700 * S)
        fields: dict[str, Any] = {"run_id": run, "task_id": f"t{n}", "start": n * 900, "end": n * 900 + 600}
        maker.task(task="CALL", sample="A", exit_code=code, cpu_user_ns=300 * S, requested_cpus=2.0, **fields)
        maker.task(task="CALL", sample="B", exit_code=1 if n < 2 else 0, cpu_user_ns=1, **fields | {"task_id": f"u{n}"})
    (one,) = find(maker, 2 * HOUR, "REPEATED_FAILURE")
    assert (one.subject, one.evidence["failures"], one.evidence["ends"]) == ("CALL (A)", 3, ["exit 1"])
    assert one.hours == pytest.approx(0.5)
    assert one.money == pytest.approx(0.5 * 4.0 * 2 / 4)
    assert one.evidence["cpu_ns"] == 900 * S


def test_findings_are_sorted_by_money_and_then_by_hours(maker: LakeMaker) -> None:
    up(maker, 0, 2 * HOUR)
    up(maker, 0, 3 * HOUR, host_id="b" * 32, host_name="node2")
    up(maker, 0, 2.5 * HOUR, host_id="c" * 32, host_name="node3")
    assert [(f.subject, f.money) for f in find(maker, 3 * HOUR)] == [
        ("node1", pytest.approx(8.0)),
        ("node2", None),
        ("node3", None),
    ]
