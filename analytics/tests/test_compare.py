# SPDX-License-Identifier: Apache-2.0
"""Runs side by side, against numbers computed by hand."""

from __future__ import annotations

import argparse
import json
import random

import pytest
from executions import MIB, add_execution, add_run
from lakes import LakeMaker

from sluice_analytics.cli import common, tune_compare
from sluice_analytics.errors import UserError
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.report.compare import document
from sluice_analytics.tune import compare


def compared(maker: LakeMaker, *runs: str) -> compare.Comparison:
    maker.write()
    with DuckSession(str(maker.path)) as session:
        return compare.compare(session, runs)


def rows(found: compare.Comparison, task: str, sample: str | None) -> list[dict[str, object]]:
    return [r for r in found.tasks if (r["task"], r["sample"]) == (task, sample)]


def test_task_by_task(maker: LakeMaker) -> None:
    for n, (wall, cpu, peak) in enumerate(((100, 50, 200), (150, 40, 300))):
        add_run(maker, f"run{n}", start=3600 * n, wall=200)
        for sample, more in (("a", 0), ("b", 10)):
            add_execution(
                maker, f"run{n}", start=3600 * n, sample=sample, task_id=f"{sample}{n}", wall=wall + more, cpu=cpu,
                programs=[(0, wall + more, peak)], bound="COMPUTE", read_bytes=n * MIB,
            )  # fmt: skip
    add_execution(maker, "run1", "EXTRA", start=3700, wall=5, exit_code=None, exit_signal=9)
    found = compared(maker, "run0", "run1")
    assert [r["run_id"] for r in found.runs] == ["run0", "run1"]
    first, second = rows(found, "ALIGN", "a")
    assert (first["wall_ns"], first["wall_ratio"]) == (100e9, 1)
    assert (second["wall_ns"], second["wall_ratio"]) == (150e9, 1.5)
    assert second["cpu_ratio"] == pytest.approx(0.8)
    assert second["peak_ratio"] == pytest.approx(1.5)
    assert (second["read_bytes"], second["bound"], second["exit"]) == (MIB, "COMPUTE", "0")
    assert rows(found, "ALIGN", "b")[1]["wall_ratio"] == pytest.approx(160 / 110)
    (extra,) = rows(found, "EXTRA", None)
    assert (extra["run"], extra["exit"], extra["wall_ratio"]) == (2, "signal 9", None)
    wall = next(t for t in found.tests if t.figure == "wall_ns")
    assert (wall.first, wall.other, wall.p) == (2, 2, None)
    assert wall.verdict == "not enough executions to say"
    assert found.versions == []


@pytest.mark.parametrize("is_old", [False, True])
def test_peaks_of_all_programs_where_both_runs_have_them(maker: LakeMaker, is_old: bool) -> None:
    for n, held in enumerate((500, 750)):
        memory = {} if is_old and n == 0 else {"peak_memory_bytes": held * MIB, "peak_memory_source": "PASS"}
        add_run(maker, f"run{n}", start=3600 * n, wall=200, **memory)
        for k in range(2):
            add_execution(maker, f"run{n}", start=3600 * n, task_id=f"{k}-{n}", **memory)
    found = compared(maker, "run0", "run1")
    assert found.peak == ("peak_rss_bytes" if is_old else "peak_memory_bytes")
    (_, second) = rows(found, "ALIGN", None)
    assert (second["peak_memory_bytes"], second["peak_rss_bytes"]) == (750 * MIB, 100 * MIB)
    assert second["peak_ratio"] == (1 if is_old else 1.5)
    assert {t.figure for t in found.tests} == {"wall_ns", "cpu_ns", found.peak}
    assert [t["peak_ratio"] for t in found.tools] == [1, 1]
    table = document(found, "lake").table("tasks")
    assert (found.peak, "peak of program" if is_old else "peak mem") in [(c.key, c.title) for c in table.columns]


def test_demand_and_denied_of_several_executions(maker: LakeMaker) -> None:
    for n in range(2):
        add_run(maker, f"run{n}", start=3600 * n, wall=200)
    same = {"denied": "RUN_QUEUE", "demand": "WAITING_FOR", "waiting_for": "PIPE"}
    add_execution(maker, "run0", task_id="a", denied_share=0.2, **same)
    add_execution(maker, "run0", task_id="b", demand="COMPUTE", denied="NOTHING", denied_share=0.0)
    add_execution(maker, "run0", task_id="c", denied_share=0.5, **same)
    add_execution(maker, "run1", task_id="d", start=3600, bound="IO")
    found = compared(maker, "run0", "run1")
    first, second = rows(found, "ALIGN", None)
    assert first["demand"] in ("WAITING_FOR, COMPUTE", "COMPUTE, WAITING_FOR")
    assert (first["waiting_for"], first["denied_share"]) == ("PIPE", 0.5)
    assert (second["demand"], second["denied"], second["bound"]) == ("STORAGE", None, "IO")
    shown = document(found, "lake").table("tasks").rows
    assert set(str(shown[0]["demand"]).split(", ")) == {"waits: pipe", "compute"}
    assert [shown[0]["denied"], shown[1]["demand"], shown[1]["denied"]] == ["run queue 50%", "storage", None]


def test_several_executions_of_one_sample(maker: LakeMaker) -> None:
    for n, walls in enumerate(((10, 20, 60), (12, 30))):
        add_run(maker, f"run{n}", start=3600 * n, wall=200)
        for k, wall in enumerate(walls):
            add_execution(
                maker, f"run{n}", start=3600 * n + 100 * k, wall=wall, cpu=wall, programs=[(0, wall, 100 + k)],
                exit_code=1 if k == 0 else 0,
            )  # fmt: skip
    one, two = rows(compared(maker, "run0", "run1"), "ALIGN", None)
    assert (one["count"], one["wall_ns"], one["peak_rss_bytes"]) == (3, 20e9, 102 * MIB)
    assert one["exit"] == "0 (2), 1 (1)"
    assert (two["count"], two["wall_ns"], two["wall_ratio"]) == (2, 21e9, pytest.approx(1.05))


def test_pairs_of_samples_tell_more(maker: LakeMaker) -> None:
    # Samples differ by far more than the runs do: only in pairs it shows.
    for n, factor in enumerate((1.0, 1.2)):
        add_run(maker, f"run{n}", start=3600 * n, wall=3000)
        for k, wall in enumerate((10, 20, 40, 80, 160, 320)):
            add_execution(
                maker, f"run{n}", start=3600 * n, sample=f"s{k}", wall=wall * factor, cpu=wall, task_id=f"{n}{k}"
            )
    tests = {t.figure: t for t in compared(maker, "run0", "run1").tests}
    assert tests["wall_ns"].test == "6 pairs of samples, signs exchanged"
    assert tests["wall_ns"].p == pytest.approx(2 / 64)
    assert tests["wall_ns"].median_ratio == pytest.approx(1.2)
    assert tests["wall_ns"].verdict == "more"
    assert tests["cpu_ns"].p == 1
    assert tests["cpu_ns"].verdict == "no difference to be seen"


def test_executions_without_samples(maker: LakeMaker) -> None:
    for n, walls in enumerate(((10, 11, 12, 13), (5, 6, 7, 8))):
        add_run(maker, f"run{n}", start=3600 * n, wall=3000)
        for k, wall in enumerate(walls):
            add_execution(maker, f"run{n}", start=3600 * n + 100 * k, wall=wall, cpu=1)
    wall = next(t for t in compared(maker, "run0", "run1").tests if t.figure == "wall_ns")
    assert (wall.test, wall.p, wall.verdict) == ("Mann-Whitney", pytest.approx(2 / 70), "less")
    assert wall.median_ratio == pytest.approx(6.5 / 11.5)


def test_two_versions_of_a_tool(maker: LakeMaker) -> None:
    for n, (exe, wall) in enumerate((("/opt/bwa-0.7.17/bwa", 20), ("/opt/bwa-0.7.18/bwa", 10))):
        add_run(maker, f"run{n}", start=3600 * n, wall=3000)
        for k in range(6):
            add_execution(
                maker, f"run{n}", start=3600 * n + 100 * k, wall=wall + k, cpu=1, tool="bwa", exe=exe,
                task_id=f"{n}{k}",
            )  # fmt: skip
        maker.program(run_id=f"run{n}", start=3600 * n, end=3600 * n + 1, tool="sort", exe="/usr/bin/sort")
    found = compared(maker, "run0", "run1")
    assert [(v.tool, v.run, v.exes) for v in found.versions] == [
        ("bwa", 1, ["/opt/bwa-0.7.17/bwa"]), ("bwa", 2, ["/opt/bwa-0.7.18/bwa"]),
    ]  # fmt: skip
    wall_test = next(t for t in found.tests if t.subject == "tool bwa" and t.figure == "wall_ns")
    assert (wall_test.first, wall_test.other) == (6, 6)
    assert wall_test.p == pytest.approx(2 / 924)  # 20..25 and 10..15: apart; C(12, 6)
    assert wall_test.verdict == "less"
    bwa = [r for r in found.tools if r["tool"] == "bwa"]
    assert bwa[1]["wall_ratio"] == pytest.approx((60 + 15) / (120 + 15))


def test_many_tests_and_small_differences_report_nothing() -> None:
    draw = random.Random(2)

    def reported(noise: float, factor: float) -> int:
        tests = []
        for task in range(60):
            base = [draw.lognormvariate(0, 0.8) for _ in range(12)]
            one, two = ([(f"S{i}", b * f * draw.lognormvariate(0, noise)) for i, b in enumerate(base)]
                        for f in (1.0, factor))  # fmt: skip
            tests.append(compare.judge(f"t{task}", 2, "wall_ns", one, two))
        compare.decide(tests)
        return sum(t.verdict in ("more", "less") for t in tests)

    assert [reported(0.05, 1.0) for _ in range(5)] == [0] * 5  # two runs of one version
    assert [reported(0.03, 1.03) for _ in range(5)] == [0] * 5  # on a slower node
    assert reported(0.05, 1.3) == 60
    assert reported(0.05, 1 / 1.3) == 60


def test_a_difference_by_chance_is_one_of_many() -> None:
    same = [compare.Test(f"t{n}", 2, "wall_ns", 9, 9, 1.5, p) for n, p in enumerate((0.03, 0.3, 0.5, 0.7))]
    compare.decide(same)
    assert [t.verdict for t in same] == ["no difference to be seen"] * 4
    # scipy.stats.false_discovery_control([0.03, 0.3, 0.5, 0.7])
    assert [t.p_adjusted for t in same] == pytest.approx([0.12, 0.6, 2 / 3, 0.7])
    zero = compare.Test("t", 2, "cpu_ns", 9, 9, None, 0.001)  # the first run's median is 0: no ratio
    compare.decide([zero])
    assert zero.verdict == "no difference to be seen"
    few = [compare.Test("t", 2, "wall_ns", 9, 9, 1.5, 0.03), compare.Test("t", 2, "cpu_ns", 9, 9, 1.02, 0.01)]
    compare.decide(few)
    assert [t.verdict for t in few] == ["more", "differs by less than 10%"]


def test_judge_needs_values() -> None:
    test = compare.judge("t", 2, "wall_ns", [], [(None, 1.0)])
    assert (test.p, test.verdict) == (None, "not enough executions to say")
    # 3 and 3 cannot be below 0.05 (2 / 20), 2 and 8 can (2 / 45).
    three: list[tuple[str | None, float]] = [(None, 1.0), (None, 2.0), (None, 3.0)]
    assert compare.judge("t", 2, "wall_ns", three, three).p is None
    two: list[tuple[str | None, float]] = [(None, 1.0), (None, 2.0)]
    eight: list[tuple[str | None, float]] = [(None, float(v)) for v in range(3, 11)]
    assert compare.judge("t", 2, "wall_ns", two, eight).p == pytest.approx(2 / 45)


def test_command(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(3):
        add_run(maker, f"run{n}", start=3600 * n, run_name=f"happy_{n}")
        add_execution(maker, f"run{n}", start=3600 * n, wall=100 * (n + 1), cpu=10)
    maker.write()

    def command(*argv: str) -> int:
        def main(rest: list[str]) -> int:
            parser = argparse.ArgumentParser()
            tune_compare.add_arguments(parser)
            return tune_compare.main(parser.parse_args(rest))

        return common.run("sluice tune compare", main, [*argv, "--lake", str(maker.path)])

    assert command("run0", "happy_1", "run2") == 0
    said = capsys.readouterr().out
    assert "3 runs in" in said
    assert "2.00" in said
    assert "too few executions to decide whether" in said
    assert command("run0", "run1", "--format", "json") == 0
    assert [t["wall_ratio"] for t in json.loads(capsys.readouterr().out)["tasks"]] == [1.0, 2.0]
    assert command("run0", "run1", "--format", "csv") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert command("run0", "nobody") == 1
    assert 'no run "nobody"' in capsys.readouterr().err
    assert command("run0", "run0") == 2
    assert "two or more different runs" in capsys.readouterr().err
    with DuckSession(str(maker.path)) as session, pytest.raises(UserError):
        compare.compare(session, ["run1"])
