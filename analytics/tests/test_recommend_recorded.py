# SPDX-License-Identifier: Apache-2.0
"""Recommendations from runs that sluice recorded, against plain Python over what `sluice cat` prints."""

from __future__ import annotations

import datetime
import json
import math
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import sluice_binary

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.tune import compare, recommend, trend
from sluice_analytics.tune.find import all_runs

MIB = 1 << 20

# Two programs that hold 150 MiB each and wait for one another, then one of 200 MiB alone.
STEP = """
hold() { python3 -c "import pathlib, time
x = bytearray($1 << 20)
pathlib.Path('$2').touch()
while not pathlib.Path('$3').exists(): time.sleep(0.01)
time.sleep(0.4)"; }
hold 150 one other & hold 150 other one & wait
hold 200 one one
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Four runs of one step, the last of which fails."""
    folder = tmp_path_factory.mktemp("recorded")
    for n in range(4):
        at = folder / f"run{n}"
        at.mkdir()
        done = subprocess.run(
            [sluice_binary.path(), "run", "--quiet", "--lake", folder / "lake", "--pipeline", "tiny", "--task", "hold",
             "--run", f"run{n}", "--", "bash", "-c", STEP + ("exit 3" if n == 3 else "")],
            capture_output=True, text=True, cwd=at, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )  # fmt: skip
        assert done.returncode == (3 if n == 3 else 0), done.stderr
    yield folder / "lake"


def records(lake: pathlib.Path, topic: str) -> list[dict[str, Any]]:
    line = [sluice_binary.path(), "cat", "--topic", topic, lake]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return [r for r in map(json.loads, done.stdout.splitlines()) if r["phase"] == "END"]


def micros(text: str) -> int:
    at = datetime.datetime.fromisoformat(text)
    return round((at - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) / datetime.timedelta(microseconds=1))


def held_together(programs: list[dict[str, Any]]) -> int:
    """The largest sum of peaks of programs alive at one moment: tried at the start of each."""
    spans = [(micros(p["program_start_time"]), micros(p["end_time"]), p["usage"]["peak_rss_bytes"]) for p in programs]
    return max(sum(peak for begin, end, peak in spans if begin <= at < max(end, begin + 1)) for at, _, _ in spans)


def test_sizes_equal_those_of_plain_python(lake: pathlib.Path) -> None:
    tasks = {t["run_id"]: t for t in records(lake, "task")}
    programs = [p for p in records(lake, "program") if p["task"] == "hold" and not p["overhead"]]
    codes = {r["run_id"]: r["exit_code"] for r in records(lake, "run")}
    assert codes == {"run0": 0, "run1": 0, "run2": 0, "run3": 3}
    good = [t for t in tasks.values() if codes[t["run_id"]] == 0]
    peaks = [held_together([p for p in programs if p["run_id"] == t["run_id"]]) for t in good]
    assert max(peaks) > 300 * MIB > max(t["usage"]["peak_rss_bytes"] for t in good)
    cpu = [(t["usage"]["cpu_user_ns"] + t["usage"]["cpu_system_ns"]) / t["wall_ns"] for t in good]
    assert max(cpu) < 1, "the step sleeps"

    with DuckSession(str(lake)) as session:
        (advice,) = recommend.advices_of(session, "tiny")
    assert (advice.task, advice.executions, advice.successful, advice.runs) == ("hold", 4, 3, 3)
    memory = advice.of("memory_bytes")
    assert memory is not None
    # Peaks need not be at once: what the agent saw together is less where it saw all of them, as on a busy host.
    held = memory.evidence["max_bytes"]
    assert max(t["peak_memory_bytes"] for t in good) <= held <= max(peaks)
    assert memory.recommended == math.ceil(held * 1.15 / MIB) * MIB
    time = advice.of("time_ns")
    assert time is not None
    assert time.evidence["p95_ns"] == max(t["wall_ns"] for t in good)
    cpus = advice.of("cpus")
    if cpus is not None:  # a busy machine starves it: then there is no answer
        assert cpus.recommended == 1
        assert cpus.evidence["max_cpus"] == pytest.approx(max(cpu))


def test_trend_of_them(lake: pathlib.Path) -> None:
    with DuckSession(str(lake)) as session:
        points = trend.points(session, all_runs(session))
    assert [(p.run_id, p.state, p.failed_tasks) for p in points] == [
        ("run0", "SUCCEEDED", 0), ("run1", "SUCCEEDED", 0), ("run2", "SUCCEEDED", 0), ("run3", "FAILED", 1),
    ]  # fmt: skip
    (runs,) = [{r["run_id"]: r for r in records(lake, "run")}]
    assert [p.wall_ns for p in points] == [runs[p.run_id]["wall_ns"] for p in points]
    assert [p.peak_rss_bytes for p in points] == [runs[p.run_id]["usage"]["peak_rss_bytes"] for p in points]


def test_two_of_them_side_by_side(lake: pathlib.Path) -> None:
    with DuckSession(str(lake)) as session:
        found = compare.compare(session, ["run0", "run3"])
    tasks = {t["run_id"]: t for t in records(lake, "task")}
    first, second = found.tasks
    assert (first["run"], second["run"]) == (1, 2)
    assert second["wall_ratio"] == pytest.approx(tasks["run3"]["wall_ns"] / tasks["run0"]["wall_ns"])
    assert second["peak_rss_bytes"] == tasks["run3"]["usage"]["peak_rss_bytes"]
