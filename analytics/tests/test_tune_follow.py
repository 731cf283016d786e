# SPDX-License-Identifier: Apache-2.0
"""--follow: a run while it runs. The last tests follow real ones."""

from __future__ import annotations

import os
import pathlib
import pty
import re
import subprocess
import sys
import time
from typing import Any

import command
import pytest
import sluice_binary
from lakes import LakeMaker, S

from sluice_analytics import units
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.report.follow import events, table
from sluice_analytics.tune import follow

COMMAND = [sys.executable, "-m", "sluice_analytics.cli.tune", "--follow", "--interval", "0.5"]


def watched(maker: LakeMaker) -> tuple[follow.Watch, list[str]]:
    """The state of r1, and the lines about it."""
    maker.write()
    watch = follow.Watch("r1")
    said: dict[int, str] = {}
    with DuckSession(str(maker.path)) as session:
        lines = list(events(follow.look(session, watch, maker.us(0)), said))
        assert follow.look(session, watch, maker.us(0)) == []  # what is known is not news
    return watch, lines


def live(maker: LakeMaker, at: float, task_id: str = "t1", **fields: Any) -> None:
    """A record of a live task."""
    maker.task(run_id="r1", task_id=task_id, task="align", phase="LIVE", time=maker.us(at), **fields)


def test_steps_begin_end_and_fail(maker: LakeMaker) -> None:
    """One that runs, one that finished, one that failed; counts and lines have them."""
    maker.run(run_id="r1")
    maker.task(run_id="r1", task_id="t1", task="align", sample="A")
    maker.task(run_id="r1", task_id="t2", task="sort", start=1, end=3)
    maker.task(run_id="r1", task_id="t3", task="call", start=2, end=4, exit_code=1)
    watch, lines = watched(maker)
    assert {state: watch.count(state) for state in follow.STATES} == {
        "active": 1, "stalled": 0, "finished": 1, "failed": 1,
    }  # fmt: skip
    assert [line.split("Z  ")[1] for line in lines] == [
        "align (A) began",
        "sort began",
        "call began",
        "sort finished in 2.0 s",
        "call failed after 2.0 s: exit code 1",
    ]


def test_what_runs_shows_its_demand(maker: LakeMaker) -> None:
    """Of the record of each that runs; several of one name show what they have in common."""
    maker.run(run_id="r1")
    live(maker, 10, demand="WAITING_FOR", waiting_for="LOCK", denied="THROTTLED", denied_share=0.4)
    live(maker, 10, task_id="t2", demand="WAITING_FOR", waiting_for="PIPE", denied="THROTTLED", denied_share=0.3)
    maker.task(
        run_id="r1", task_id="old", task="sort", phase="LIVE", time=maker.us(11), bound="STARVED", share_run_delay=0.5
    )
    watch, _ = watched(maker)
    shown = {row["task"]: (row["demand"], row["denied"]) for row in table(watch, maker.us(12)).rows}
    assert shown == {"align": ("waits", "throttled 30%"), "sort": (None, "run queue 50%")}


def test_stalled_after_three_quiet_records_and_goes_on(maker: LakeMaker) -> None:
    """Nothing used in three intervals: stalled; a byte moved or CPU used: no more."""
    maker.run(run_id="r1")
    live(maker, 10, cpu_user_ns=9 * S)
    for at in (20, 30, 40):
        live(maker, at, cpu_user_ns=9 * S + 1_000_000, rchar=1000)
    watch, _ = watched(maker)
    assert watch.count("stalled") == 1
    live(maker, 50, cpu_user_ns=12 * S, rchar=1000)
    watch, lines = watched(maker)
    assert watch.count("stalled") == 0 and watch.count("active") == 1
    assert [re.sub("Z  align (.*?):?( it .*)?$", r"\1", line[19:]) for line in lines] == [
        "began",
        "stalled",
        "continues",
    ]


def test_two_quiet_records_are_not_stalled(maker: LakeMaker) -> None:
    """A pause of two intervals is none; moved bytes break it."""
    maker.run(run_id="r1")
    live(maker, 10)
    live(maker, 20)
    live(maker, 30)
    live(maker, 40, net_rx_bytes=1 << 30)
    live(maker, 50, net_rx_bytes=1 << 30)
    watch, _ = watched(maker)
    assert watch.count("active") == 1


def test_late_and_repeated_records(maker: LakeMaker) -> None:
    """An END has an earlier time than the last LIVE, and stays; a record that comes twice counts once."""
    maker.run(run_id="r1")
    live(maker, 10, seq=0)
    end = maker.task(run_id="r1", task_id="t1", task="align", start=0, end=9, phase="END", seq=2)
    live(maker, 9.5, seq=1)
    maker.repeat(end)
    watch, _ = watched(maker)
    assert watch.count("finished") == 1 and len(watch.steps) == 1


def test_machines_with_one_agent_id_are_two(maker: LakeMaker) -> None:
    """A run on two hosts, one of which is a clone of the other: their records have the same agent_id and seq."""
    agent = maker.agent_of(maker.host_id)
    maker.run(run_id="r1")
    for host in (maker.host_id, "clone"):
        maker.task(run_id="r1", task_id=f"t-{host}", task="align", end=9, host_id=host, agent_id=agent)
    watch, _ = watched(maker)
    assert watch.count("finished") == 2


class Run:
    """`sluice run` of a script, in the background. Each step of it is a cat that waits for a word of ours."""

    def __init__(self, at: pathlib.Path, script: str, steps: int) -> None:
        """script: its steps are "step N", from 1 on."""
        self.lake = at / "lake"
        self._pipes = [at / f"step{n}" for n in range(1, steps + 1)]
        for pipe in self._pipes:
            os.mkfifo(pipe)
        body = f"step() {{ cat {at}/step$1; }}\n{script}"
        self.process = subprocess.Popen(
            sluice_binary.line(self.lake, "bash", "-c", body, pipeline="live", interval="1s"),
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def end_step(self) -> None:
        """Lets the step that waits end."""
        with open(self._pipes.pop(0), "w") as pipe:  # opens once a step reads
            pipe.write("on\n")

    def wait_for_lake(self) -> None:
        """Until the lake has the run: only then can it be followed."""
        end = time.monotonic() + 60
        while not list(self.lake.glob("sluice.run/*/*/*")):
            assert self.process.poll() is None and time.monotonic() < end
            time.sleep(0.05)


def test_follows_a_real_run_to_its_end(tmp_path: pathlib.Path) -> None:
    """Steps are printed while they run, from files that are still open; the run's end ends it, with its state."""
    run = Run(tmp_path, "step 1; ls /nowhere; step 2; exit 3", 2)
    run.wait_for_lake()
    lines = []
    with subprocess.Popen([*COMMAND, "--lake", str(run.lake)], stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        for line in watcher.stdout:
            lines.append(line)
            if "Z  cat began" in line:
                run.end_step()  # it waited until it was printed
        status = watcher.wait()
    assert run.process.wait() == 3 and status == 1
    assert sum("Z  cat began" in line for line in lines) == 2, lines
    assert any("ls failed after" in line and "exit code 2" in line for line in lines)
    printed = [m[1] for line in lines if (m := re.search(r"Z  cat finished in (.*)$", line))]
    ends = [r for r in sluice_binary.cat(run.lake, "task") if r["phase"] == "END" and r["task"] == "cat"]
    assert printed == [units.duration(r["wall_ns"]) for r in sorted(ends, key=lambda r: r["end_time"])]
    assert any(line.startswith("FAILED, exit code 3 after ") for line in lines)
    assert "bash ended with exit code 3" in "".join(lines)


def test_follows_on_a_terminal(tmp_path: pathlib.Path) -> None:
    """On a terminal a table is drawn in place; a run that succeeds ends it with 0."""
    run = Run(tmp_path, "step 1; true", 1)
    run.wait_for_lake()
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "--lake", str(run.lake)],
        stdout=follower,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "90"},
    ) as watcher:
        os.close(follower)
        shown, is_held, deadline = b"", True, time.monotonic() + 120
        try:
            while time.monotonic() < deadline and (data := os.read(leader, 65536)):  # it is drawn twice a second
                shown += data
                # Who looks late sees that the step has done nothing so far.
                if is_held and re.search(rb"1 (active|stalled)", shown) and b"runs for" in shown:
                    is_held = False
                    run.end_step()
        except OSError:
            pass  # the other end was closed
        if is_held:
            run.end_step()
            watcher.kill()
        assert watcher.wait() == 0, shown[-2000:]
    os.close(leader)
    assert run.process.wait() == 0
    text = shown.decode()
    assert not is_held, text
    assert "\x1b[" in text
    [end] = [r for r in sluice_binary.cat(run.lake, "run") if r["phase"] == "END"]
    assert f"SUCCEEDED after {units.duration(end['wall_ns'])}: 1 finished, 0 failed" in text


def run_follow(*args: str) -> subprocess.CompletedProcess[str]:
    """--follow that ends by itself."""
    return command.run("tune", "--follow", "--interval", "0.5", *args)


def test_a_run_that_ended_is_reported_at_once(maker: LakeMaker) -> None:
    """By name; without a name nothing runs, and the error names the latest run."""
    maker.run(run_id="r1", end=10, run_name="calm_euler", programs=0)
    maker.task(run_id="r1", end=9)
    maker.write()
    done = run_follow("--lake", str(maker.path), "calm_euler")
    assert done.returncode == 0 and "SUCCEEDED after 10.0 s: 1 finished, 0 failed" in done.stdout
    done = run_follow("--lake", str(maker.path))
    assert done.returncode == 1 and "no run of" in done.stderr and "r1, is SUCCEEDED" in done.stderr


def test_a_run_that_went_silent(maker: LakeMaker) -> None:
    """Its last record is old: following it ends."""
    maker.run(run_id="r1", phase="LIVE", time=maker.us(100))
    maker.write()
    done = run_follow("--lake", str(maker.path), "r1")
    assert done.returncode == 1 and "UNKNOWN: no records since 2026-11-01 12:01:40Z" in done.stdout


@pytest.mark.parametrize("more", [["--format", "json"], ["-o", "x"]])
def test_wrong_options(maker: LakeMaker, more: list[str]) -> None:
    """It writes to the terminal."""
    assert run_follow("--lake", str(maker.path), *more).returncode == 2
