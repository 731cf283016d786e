# SPDX-License-Identifier: Apache-2.0
"""Recommended sizes against numbers computed by hand, their evidence and confidence, and the command."""

from __future__ import annotations

import argparse
import json
import pathlib

import pytest
from executions import GIB, MIB, add_execution, add_run, same_in_runs
from lakes import T0, LakeMaker, S
from recommend_kit import NOW, advices, found_in, made_basis, of, only

from sluice_analytics.cli import common, tune_recommend
from sluice_analytics.errors import NotFound
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.tune import recommend, sizes
from sluice_analytics.tune.percentiles import percentile, variation
from sluice_analytics.tune.run import load

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


# Confidence


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
    basis, used = made_basis(walls, runs, age)
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
