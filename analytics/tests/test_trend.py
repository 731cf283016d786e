# SPDX-License-Identifier: Apache-2.0
"""Trends of made-up runs, and the statistics against SciPy's results (1.17.1) and published tables."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest
from executions import MIB, S, add_execution, add_run
from lakes import T0, LakeMaker

from sluice_analytics.cli import common, tune_trend
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.report.trend import sparkline
from sluice_analytics.tune import rank_tests, trend
from sluice_analytics.tune.find import all_runs

NOW = T0 + 86_400_000_000


def test_ranks_share_ties() -> None:
    assert rank_tests.ranks([30, 10, 20, 20]) == [4, 1, 2.5, 2.5]


def test_mann_whitney() -> None:
    # Complete separation: 2 of the C(n + m, n) arrangements.
    assert rank_tests.mann_whitney([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert rank_tests.mann_whitney([5, 6, 7], [1, 2, 3]) == pytest.approx(2 / 20)
    # scipy.stats.mannwhitneyu(..., method="exact") and, for ties, permutation_test of the rank sum.
    assert rank_tests.mann_whitney([1.1, 2.2, 3.3, 9.9], [4.4, 5.5, 6.6, 7.7]) == pytest.approx(0.34285714)
    assert rank_tests.mann_whitney([1, 2, 2, 3], [2, 4, 4, 5]) == pytest.approx(4 / 35)
    assert rank_tests.mann_whitney([1, 1], [1, 1]) == 1
    # 20 and 20, apart by 5: method="asymptotic".
    assert rank_tests.mann_whitney(list(range(20)), [v + 5 for v in range(20)]) == pytest.approx(0.01852194627574225)
    with pytest.raises(ValueError):
        rank_tests.mann_whitney([], [1])


def test_mann_kendall() -> None:
    # Kendall's table: n = 5, S = 10 has 1 / 120 on one side; n = 4, S = 6 has 1 / 24.
    assert rank_tests.mann_kendall([1, 2, 3, 4, 5]) == pytest.approx(2 / 120)
    assert rank_tests.mann_kendall([4, 3, 2, 1]) == pytest.approx(2 / 24)
    values = [1, 2, 3, 4, 9, 10, 8, 7, 6, 5]
    assert rank_tests.kendall_s(values) == 17
    assert rank_tests.mann_kendall(values) == pytest.approx(0.1557418430335097)  # kendalltau(method="exact")
    assert rank_tests.mann_kendall([3, 3, 3, 3, 3]) == 1
    # With ties: 2 orders of (1, 1, 2, 2) of 6 are as far from S = 0 as (1, 1, 2, 2) is, itself and its reverse.
    assert rank_tests.mann_kendall([1, 1, 2, 2]) == pytest.approx(2 / 6)


def test_theil_sen() -> None:
    assert rank_tests.theil_sen([1, 3, 5, 7]) == 2
    assert rank_tests.theil_sen([1, 2, 3, 100]) == pytest.approx((1 + 33) / 2)  # slopes 1 1 1 33 49 97


def test_cliffs_delta() -> None:
    assert rank_tests.cliffs_delta([1, 2], [3, 4]) == 1
    assert rank_tests.cliffs_delta([1, 2], [2, 0]) == pytest.approx((1 - 2) / 4)


def test_paired() -> None:
    assert rank_tests.paired([1, 2, 3, 4, 5, 6]) == pytest.approx(2 / 64)
    assert rank_tests.paired([1, -1]) == 1
    assert rank_tests.paired([0, 0]) == 1
    # Of 16 sums of +-1 +-2 +-3 +-4 those at least 8 from 0: 8 and 10, twice.
    assert rank_tests.paired([-1, 2, 3, 4]) == pytest.approx(4 / 16)
    assert rank_tests.paired([1.0] * 20) == pytest.approx(1 / 5000)  # no draw of 4,999 has all signs alike


def test_spearman() -> None:
    assert rank_tests.spearman([1, 2, 3, 4], [10, 20, 40, 30]) == pytest.approx(0.8)  # 1 - 6 * 2 / 60
    assert rank_tests.spearman([1, 2], [1, 2]) is None
    assert rank_tests.spearman([1, 2, 3], [5, 5, 5]) is None


def test_change_point() -> None:
    assert rank_tests.change_point([1, 2, 3, 4, 5]) is None
    found = rank_tests.change_point([1, 2, 3, 11, 12, 13])
    assert found is not None
    assert (found.at, found.p) == (3, pytest.approx(2 * 36 / 720))
    # Eight values, four and four: 2 of 70, for any order within; drawn, so about.
    found = rank_tests.change_point([1, 3, 2, 4, 11, 14, 13, 12])
    assert found is not None
    assert found.at == 4
    assert found.p == pytest.approx(2 / 70, abs=0.01)
    quiet = rank_tests.change_point([5, 3, 6, 4, 5.5, 3.5, 6.5, 4.5, 5.2, 3.2])
    assert quiet is not None
    assert quiet.p > 0.2


def runs_with_walls(maker: LakeMaker, walls: list[float], **fields: Any) -> None:
    for n, wall in enumerate(walls):
        usage = {"cpu_user_ns": round(wall * S), "cpu_system_ns": 0, "peak_rss_bytes": 100 * MIB, "rchar": MIB,
                 "read_bytes": 0, "write_bytes": 0}  # fmt: skip
        add_run(maker, f"r{n:02d}", start=3600 * n, wall=wall, usage=usage, **fields)
        add_execution(maker, f"r{n:02d}", start=3600 * n, wall=wall, cpu=wall)


def found_in(maker: LakeMaker, **options: Any) -> dict[str, trend.Metric]:
    maker.write()
    with DuckSession(str(maker.path)) as session:
        points = trend.points(session, all_runs(session), now_us=NOW)
    return {m.name: m for m in trend.metrics(points, **options)}


def test_too_few_runs(maker: LakeMaker) -> None:
    runs_with_walls(maker, [10, 20, 30, 40])
    wall = found_in(maker)["wall_ns"]
    assert wall.drift_p is None
    assert wall.verdict == "too few runs: 4, 5 needed"


def test_drift(maker: LakeMaker) -> None:
    runs_with_walls(maker, [100, 103, 106, 109, 112])
    found = found_in(maker)
    wall = found["wall_ns"]
    assert wall.slope_per_run == pytest.approx(3e9)
    assert wall.drift_p == pytest.approx(2 / 120)
    assert wall.verdict == "drift: rises, too few runs to search for a step: 5, 8 needed"
    assert found["peak_rss_bytes"].drift_p == 1
    assert "drift" not in found["peak_rss_bytes"].verdict


@pytest.mark.parametrize(
    ("walls", "verdict"),
    [
        ([100, 102, 104, 106, 108], "drift, small"),  # 8 of 104 from the first run to the last
        ([108, 106, 104, 102, 100], "drift, small"),
        ([112, 109, 106, 103, 100], "drift: falls"),
    ],
)
def test_drift_has_a_least_effect(maker: LakeMaker, walls: list[float], verdict: str) -> None:
    runs_with_walls(maker, walls)
    wall = found_in(maker)["wall_ns"]
    assert wall.drift_p == pytest.approx(2 / 120)
    assert wall.verdict.startswith(verdict + ", too few runs")


def test_drift_of_what_is_mostly_none(maker: LakeMaker) -> None:
    """Of a median of 0 there is no part."""
    runs_with_walls(maker, [100] * 12)
    for n in range(7, 12):
        for k in range(n):
            add_execution(maker, f"r{n:02d}", start=3600 * n + k, wall=1, exit_code=1)
    failed = found_in(maker)["failed_tasks"]
    assert failed.median == 0
    assert "drift: rises" in failed.verdict and "regression" in failed.verdict


def test_the_peak_of_all_programs_where_each_run_has_it(maker: LakeMaker) -> None:
    runs_with_walls(maker, [100, 102, 104, 106, 108], peak_memory_bytes=250 * MIB, peak_memory_source="PASS")
    found = found_in(maker)
    assert "peak_rss_bytes" not in found
    assert found["peak_memory_bytes"].title == "peak memory"
    assert found["peak_memory_bytes"].values == [250 * MIB] * 5


def test_the_peak_is_one_figure_over_runs_of_two_agents(maker: LakeMaker) -> None:
    runs_with_walls(maker, [100, 102, 104, 106])
    add_run(maker, "r04", start=3600 * 4, usage={"peak_rss_bytes": 100 * MIB}, peak_memory_bytes=250 * MIB)
    found = found_in(maker)
    assert "peak_memory_bytes" not in found
    assert found["peak_rss_bytes"].title == "peak of the largest program"
    assert found["peak_rss_bytes"].values == [100 * MIB] * 5


def test_regression(maker: LakeMaker) -> None:
    runs_with_walls(maker, [100, 103, 101, 102, 99, 150, 153, 151, 152, 149])
    wall = found_in(maker)["wall_ns"]
    assert wall.change_run_id == "r05"
    assert (wall.change_before, wall.change_after) == (5, 5)
    assert (wall.median_before, wall.median_after) == (101e9, 151e9)
    assert wall.cliffs_delta == 1
    assert wall.change_p is not None
    assert wall.change_p < 0.05
    assert "regression" in wall.verdict


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (1.02, "step, small"),
        (1.08, "step, small"),
        (1 / 1.08, "step, small"),
        (1.2, "regression"),
        (0.8, "improvement"),
    ],
)
def test_a_step_has_a_least_effect(maker: LakeMaker, factor: float, verdict: str) -> None:
    walls = [100, 100.3, 100.1, 100.2, 99.9]
    runs_with_walls(maker, [*walls, *(w * factor for w in walls)])
    wall = found_in(maker)["wall_ns"]
    assert wall.change_p is not None and wall.change_p < 0.05
    assert wall.verdict.endswith(verdict)


def test_steady(maker: LakeMaker) -> None:
    runs_with_walls(maker, [100, 103, 98, 102, 99, 101, 97, 104, 100.5, 99.5])
    wall = found_in(maker)["wall_ns"]
    assert wall.verdict == "steady"
    assert wall.change_p is not None
    assert wall.change_p > 0.05


def test_last_runs_against_those_before(maker: LakeMaker) -> None:
    runs_with_walls(maker, [100, 103, 101, 102, 50, 53, 51])
    found = found_in(maker, last=3)["wall_ns"]
    assert found.change_p is None  # 2 of C(7, 3) = 35 are 0.057
    assert "too few" in found.verdict


def test_last_four_of_eight(maker: LakeMaker) -> None:
    runs_with_walls(maker, [100, 103, 101, 102, 50, 53, 51, 52])
    wall = found_in(maker, last=4)["wall_ns"]
    assert wall.change_p == pytest.approx(2 / 70)
    assert "improvement" in wall.verdict


def test_failed_runs_count_as_failures_alone(maker: LakeMaker) -> None:
    runs_with_walls(maker, [100, 101, 102])
    add_run(maker, "r90", start=90_000, wall=5, exit_code=1)
    add_execution(maker, "r90", start=90_000, wall=5, exit_code=1)
    add_execution(maker, "r90", start=90_001, wall=2, exit_code=None, exit_signal=9)
    add_execution(maker, "r90", start=90_002, wall=2)
    found = found_in(maker)
    assert len(found["wall_ns"].values) == 3
    assert found["failed_tasks"].values == [0, 0, 0, 2]


def test_cost_of_a_run(maker: LakeMaker) -> None:
    # 360 s with 1 of 4 CPUs busy at 1.00 an hour: a quarter of 0.10. Memory: 100 MiB of 16 GiB is less.
    runs_with_walls(maker, [360])
    assert found_in(maker)["cost"].values == [pytest.approx(0.025)]


def test_cost_by_memory(maker: LakeMaker) -> None:
    add_run(maker, "r0", wall=360, usage={"cpu_user_ns": 0, "cpu_system_ns": 0})
    add_execution(maker, "r0", wall=360, cpu=0, programs=[(0, 360, 8192)])
    cost = found_in(maker)["cost"].values
    assert cost == [pytest.approx(0.05)]  # half of 16 GiB for a tenth of an hour


def test_sparkline() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"
    assert sparkline([3, 3]) == "▅▅"
    assert sparkline([]) == ""
    assert len(sparkline(list(range(100)))) == 40


def test_command(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    runs_with_walls(maker, [100, 103, 101, 102, 99, 150, 153, 151, 152, 149])
    maker.write()

    def main(argv: list[str]) -> int:
        parser = argparse.ArgumentParser()
        tune_trend.add_arguments(parser)
        return tune_trend.main(parser.parse_args(argv))

    lake = ["--lake", str(maker.path)]
    assert common.run("sluice tune trend", main, [*lake, "--pipeline", "p"]) == 0
    said = capsys.readouterr().out
    assert "10: 10 SUCCEEDED" in said
    assert "regression" in said
    assert "r05" in said
    assert common.run("sluice tune trend", main, [*lake, "--pipeline", "p", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["metrics"][0]["name"] == "wall_ns"
    assert len(data["runs"]) == 10
    assert common.run("sluice tune trend", main, [*lake, "--pipeline", "p", "--format", "csv", "--runs", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert common.run("sluice tune trend", main, [*lake, "--pipeline", "q"]) == 1
    assert 'no run of a pipeline "q"' in capsys.readouterr().err
