# SPDX-License-Identifier: Apache-2.0
"""Why it failed: the program that caused it is found, and no other is blamed."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import pytest
import sluice_binary
from lakes import GIB, LakeMaker, Record

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.tune.run import load
from sluice_analytics.tune.run_report import Failure, RunReport


def report_of(lake: pathlib.Path) -> RunReport:
    """The report of a lake's latest run."""
    with DuckSession(str(lake)) as session:
        return load(session, with_recommendations=False)


class Case:
    """A run of one task that failed with a shell of some exit code, below which programs are put."""

    def __init__(self, maker: LakeMaker, code: int = 1, end: float = 50, **shell: Any) -> None:
        self.maker = maker
        maker.run(run_id="r1", end=end + 1, exit_code=1, programs=9)
        driver = maker.program(run_id="r1", end=end + 1, tool="snakemake", exit_code=1)
        maker.task(run_id="r1", end=end, exit_code=code)
        self.shell = self.put("bash", end=end, parent_program_id=driver["program_id"], exit_code=code, **shell)

    def put(self, tool: str, start: float = 0, end: float = 10, **fields: Any) -> Record:
        """A program of the task; a child of the shell by default."""
        if hasattr(self, "shell"):
            fields.setdefault("parent_program_id", self.shell["program_id"])
        return self.maker.program(run_id="r1", task_id="t1", task="step", tool=tool, start=start, end=end, **fields)

    def report(self) -> RunReport:
        """Of the lake with all that."""
        self.maker.write()
        return report_of(self.maker.path)

    def failure(self) -> Failure:
        """The one failure."""
        [failure] = self.report().failures
        return failure


def test_the_command_that_failed_not_the_shell(maker: LakeMaker) -> None:
    """`set -e; ok; bad`: bad, and the shell and the engine after it."""
    case = Case(maker)
    case.put("head", end=40)
    bad = case.put("samtools sort", start=40, end=50, exit_code=1)
    failure = case.failure()
    assert failure.program_id == bad["program_id"]
    assert (failure.kind, failure.tool, failure.exit_code) == ("EXIT", "samtools sort", 1)
    assert [c.split(" ")[0] for c in failure.chain] == ["bash", "snakemake"]
    assert not failure.victims


def test_what_was_passed_over_is_no_failure(maker: LakeMaker) -> None:
    """`grep -q x || true; false_alarm; bad`: programs after which the shell continued are not the cause."""
    case = Case(maker)
    case.put("grep", start=0, end=1, exit_code=1)
    case.put("diff", start=1, end=2, exit_code=1)
    bad = case.put("bwa mem", start=2, end=50, exit_code=1)
    report = case.report()
    assert [f.program_id for f in report.failures] == [bad["program_id"]]
    [over] = [o for o in report.observations if o.kind == "PASSED_OVER"]
    assert over.evidence["programs"] == {"grep": 1, "diff": 1}


def test_successful_task_has_no_failure(maker: LakeMaker) -> None:
    """`grep || seq` in a task that succeeded."""
    maker.run(run_id="r1", end=10)
    maker.task(run_id="r1", end=10)
    maker.program(run_id="r1", task_id="t1", end=1, tool="grep", exit_code=1)
    maker.write()
    report = report_of(maker.path)
    assert report.failures == []
    assert [o.kind for o in report.observations] == ["GAP", "PASSED_OVER"]


def test_in_a_pipe_the_one_that_died_first(maker: LakeMaker) -> None:
    """`bwa | samtools` where samtools fails and SIGPIPE then ends bwa: samtools, with bwa a victim."""
    case = Case(maker)
    bwa = case.put("bwa mem", end=49.5, exit_signal=13)
    samtools = case.put("samtools sort", end=49, exit_code=1)
    failure = case.failure()
    assert failure.program_id == samtools["program_id"]
    assert failure.victims == [bwa["program_id"]]
    assert failure.evidence["ended_because_of_it"] == [f"bwa mem (pid {bwa['pid']}, SIGPIPE)"]


def test_through_exec_and_several_shells(maker: LakeMaker) -> None:
    """The shell starts a shell that execs a wrapper that starts what fails."""
    case = Case(maker, code=7)
    inner = case.put("bash", start=1, end=2, end_reason="EXEC", exit_code=None, pid=77)
    wrapper = case.put(
        "wrapper", start=2, end=50, parent_program_id=inner["program_id"], pid=77, program_index=1, exit_code=7
    )
    deep = case.put("picard", start=3, end=49.9, parent_program_id=wrapper["program_id"], exit_code=7)
    failure = case.failure()
    assert failure.program_id == deep["program_id"]
    assert [c.split(" ")[0] for c in failure.chain] == ["wrapper", "bash", "snakemake"]


def test_a_parent_with_a_code_of_its_own(maker: LakeMaker) -> None:
    """Make exits with 2 because a compiler exited with 1, and right after it; other jobs ran on meanwhile."""
    case = Case(maker, code=2)
    make = case.put("make", end=50, exit_code=2)
    bad = case.put("cc1", start=5, end=10, parent_program_id=make["program_id"], exit_code=1)
    case.put("cc1plus", start=2, end=49.5, parent_program_id=make["program_id"])
    assert case.failure().program_id == bad["program_id"]


def test_a_script_that_fails_by_itself(maker: LakeMaker) -> None:
    """A grep found nothing long before the script exited with another code: the script's own failure."""
    case = Case(maker, code=3)
    script = case.put("align.py", end=50, exit_code=3)
    case.put("grep", start=1, end=2, parent_program_id=script["program_id"], exit_code=1)
    assert case.failure().program_id == script["program_id"]


def test_a_trap_that_cleans_up(maker: LakeMaker) -> None:
    """`trap 'rm tmp' EXIT`: rm ran after what failed, whose code the shell has."""
    case = Case(maker, code=66)
    bad = case.put("gatk", start=1, end=49, exit_code=66)
    case.put("rm", start=49, end=49.5)
    assert case.failure().program_id == bad["program_id"]


def test_killed_for_memory(maker: LakeMaker) -> None:
    """Decisive at any position; the numbers are in the evidence."""
    maker.run(run_id="r1", end=60, exit_code=1)
    maker.task(run_id="r1", end=50, exit_code=137, requested_memory_bytes=2 * GIB)
    shell = maker.program(run_id="r1", task_id="t1", task="step", end=50, tool="bash", exit_code=137)
    sort = maker.program(
        run_id="r1", task_id="t1", task="step", end=49, tool="sort", exit_signal=9, oom_killed=True,
        peak_rss_bytes=2 * GIB - 4096, parent_program_id=shell["program_id"],
    )  # fmt: skip
    maker.write()
    [failure] = report_of(maker.path).failures
    assert (failure.kind, failure.program_id) == ("OOM_KILLED", sort["program_id"])
    assert failure.evidence["peak_rss_bytes"] == 2 * GIB - 4096
    assert failure.evidence["requested_memory_bytes"] == 2 * GIB
    assert "memory ran out at 2.0 GiB of 2.0 GiB" in failure.sentence


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"exit_code": 127}, "NOT_FOUND", "did not find a command"),
        ({"exit_code": 126}, "NOT_EXECUTABLE", "could not execute"),
        ({"exit_code": 139}, "SIGNAL", "SIGSEGV"),
        ({"exit_signal": 6}, "SIGNAL", "SIGABRT"),
        ({"exit_signal": 40}, "SIGNAL", "signal 40"),
        ({"exit_code": 255}, "EXIT", "exit code 255"),
        ({"exit_code": 200}, "EXIT", "exit code 200"),
    ],
)
def test_what_an_exit_means(maker: LakeMaker, fields: dict[str, int], kind: str, words: str) -> None:
    """Shells' codes and signals by name."""
    case = Case(maker, code=fields.get("exit_code", 128 + fields.get("exit_signal", 0)))
    case.put("tool", end=50, **fields)
    failure = case.failure()
    assert failure.kind == kind and words in failure.sentence


def test_timeout_is_named(maker: LakeMaker) -> None:
    """`timeout 20 tool`: the tool was ended by SIGTERM, by timeout."""
    case = Case(maker, code=124)
    timeout = case.put("timeout", start=30, end=50, exit_code=124)
    case.put("slow", start=30, end=50, parent_program_id=timeout["program_id"], exit_signal=15)
    failure = case.failure()
    assert failure.tool == "slow" and "timeout ended it after 20.0 s" in failure.sentence


@pytest.mark.parametrize(
    ("found", "ended", "kind"),
    [
        ({"at": 100}, {"exit_code": 1}, "DISK_FULL"),
        ({"at": 110, "task_id": "t1"}, {"exit_code": 1}, "DISK_FULL"),  # as the task or run ends
        ({"at": 110, "task_id": "t2"}, {"exit_code": 1}, "DISK_FULL"),  # it names the first task that works there
        ({"at": 41}, {"exit_code": 1}, "DISK_FULL"),
        ({"at": 100}, {"exit_signal": 7}, "DISK_FULL"),  # SIGBUS: a page of a file had no place
        ({"at": 39}, {"exit_code": 1}, "EXIT"),  # it need not be full any more
        ({"at": 131}, {"exit_code": 1}, "EXIT"),
        ({"at": 100, "run_id": "r2"}, {"exit_code": 1}, "EXIT"),
        ({"at": 100, "host_id": "b" * 32}, {"exit_code": 1}, "EXIT"),
        ({"at": 100}, {"exit_code": 127}, "NOT_FOUND"),
        ({"at": 100}, {"exit_signal": 15}, "SIGNAL"),
        ({"at": 100}, {"exit_signal": 11}, "SIGNAL"),  # no program fails so of a disk
    ],
)
def test_disk_full_by_run_and_time(maker: LakeMaker, found: dict[str, Any], ended: dict[str, int], kind: str) -> None:
    """The finding names the program that wrote most, and that need not be the one that failed."""
    case = Case(maker, end=100)
    case.put("dd", end=100, **ended)
    wrote = case.put("tar", end=95)
    maker.finding("DISK_FULL", **({"run_id": "r1", "program_id": wrote["program_id"], "message": "full"} | found))
    failure = case.failure()
    assert (failure.tool, failure.kind) == ("dd", kind)
    if kind == "DISK_FULL":
        assert failure.evidence["disk_full_time"] == maker.us(found["at"])
        assert failure.evidence["finding"] == "full"


def test_who_wrote_most_and_failed_long_after(maker: LakeMaker) -> None:
    """A full disk does not explain it; nor is it one without a finding, whatever the exit code."""
    case = Case(maker, end=600)
    bad = case.put("dd", end=600, exit_code=1)
    maker.finding("DISK_FULL", at=50, run_id="r1", program_id=bad["program_id"])
    assert case.failure().kind == "EXIT"


SENT = "which scancel (pid 7) of uid 1007 sent, started by bash (pid 6)"


@pytest.mark.parametrize(
    ("found", "ended", "said"),
    [
        ({}, {"exit_signal": 9}, f"dd was ended by SIGKILL, {SENT}"),
        ({"at": 60}, {"exit_signal": 9}, f"dd was ended by SIGKILL, {SENT}"),
        ({"program_id": "driver", "task_id": None}, {"exit_signal": 9}, f"dd was ended by SIGKILL, {SENT}"),
        ({"program_id": "shell"}, {"exit_code": 137}, f"as a shell does when SIGKILL ends what it ran, {SENT}"),
        ({"program_id": "shell", "at": 103}, {"exit_signal": 9}, "SIGKILL (sent by another process or by the kernel)"),
        ({"program_id": "x", "task_id": "t2"}, {"exit_signal": 9}, "SIGKILL (sent by another process"),
        ({"host_id": "b" * 32}, {"exit_signal": 9}, "SIGKILL (sent by another process"),
        ({"run_id": "r2"}, {"exit_signal": 9}, "SIGKILL (sent by another process"),
        ({"kind": "OOM_KILLED"}, {"exit_signal": 9}, "SIGKILL (sent by another process"),
        ({}, {"exit_signal": 15}, "SIGTERM (another process asked it to terminate)"),  # the finding is of SIGKILL
        ({}, {"exit_code": 1}, "dd ended with exit code 1"),
    ],
)
def test_who_sent_the_signal(maker: LakeMaker, found: dict[str, Any], ended: dict[str, int], said: str) -> None:
    """As the finding of the program has it, or that of what the same signal ended in its task or run."""
    case = Case(maker, end=100, code=137)
    dd = case.put("dd", end=100, **ended)
    message = f"dd (pid 3) was ended by SIGKILL, {SENT}"
    finding = {"kind": "KILLED", "at": 100, "program_id": dd["program_id"], "task_id": "t1", "run_id": "r1"} | found
    maker.finding(**finding, severity="ERROR", message=message)
    failure = case.failure()
    assert failure.tool == "dd" and said in failure.sentence
    assert failure.evidence.get("finding") == (message if SENT in said else None)


def test_timeout_is_the_sender(maker: LakeMaker) -> None:
    """Whatever else the same signal ended at that time."""
    case = Case(maker, code=124)
    timeout = case.put("timeout", start=30, end=50, exit_code=124)
    case.put("slow", start=30, end=50, parent_program_id=timeout["program_id"], exit_signal=15)
    message = f"other (pid 3) was ended by SIGTERM, {SENT}"
    maker.finding("KILLED", at=50, run_id="r1", task_id="t1", message=message)
    assert SENT not in case.failure().sentence


def test_memory_is_no_cause_where_the_sender_is_known(maker: LakeMaker) -> None:
    """A program near its limit that another one killed."""
    maker.run(run_id="r1", end=60, exit_code=1)
    maker.task(run_id="r1", end=50, exit_signal=9, requested_memory_bytes=2 * GIB)
    sort = maker.program(run_id="r1", task_id="t1", end=50, tool="sort", exit_signal=9, peak_rss_bytes=2 * GIB)
    maker.write()
    assert "a memory limit is the likely cause" in report_of(maker.path).failures[0].sentence
    maker.finding("KILLED", at=50, run_id="r1", task_id="t1", program_id=sort["program_id"],
                  message=f"sort (pid 3) was ended by SIGKILL, {SENT}")  # fmt: skip
    maker.write()
    assert report_of(maker.path).failures[0].sentence == f"sort was ended by SIGKILL, {SENT}"


def test_what_the_engine_killed_because_of_it(maker: LakeMaker) -> None:
    """A second task that SIGTERM ended after the first failed: because of it, and a victim of it."""
    case = Case(maker)
    bad = case.put("bad", end=50, exit_code=1)
    maker.task(run_id="r1", task_id="t2", task="other", end=50.5, exit_signal=15)
    other = maker.program(run_id="r1", task_id="t2", task="other", tool="sleep", end=50.5, exit_signal=15)
    first, second = case.report().failures
    assert (first.program_id, first.kind) == (bad["program_id"], "EXIT")
    assert first.victims == [other["program_id"]]
    assert second.kind == "KILLED_BY_ENGINE" and second.evidence["because_of"] == bad["program_id"]
    assert second.evidence["after_ns"] == 500_000_000
    maker.finding("KILLED", at=50.5, run_id="r1", task_id="t2", program_id=other["program_id"],
                  message=f"sleep (pid 3) was ended by SIGTERM, {SENT}")  # fmt: skip
    first, second = case.report().failures
    assert (first.victims, second.kind, second.sentence) == ([], "SIGNAL", f"sleep was ended by SIGTERM, {SENT}")


def test_an_attempt_that_a_later_one_mended(maker: LakeMaker) -> None:
    """The run succeeded: the failure is reported, as recovered."""
    maker.run(run_id="r1", end=100)
    for n, code in ((1, 1), (2, 0)):
        maker.task(run_id="r1", task_id=f"t{n}", task="step", sample="A", start=30 * n, end=30 * n + 20, exit_code=code)
        maker.program(
            run_id="r1", task_id=f"t{n}", task="step", tool="flaky", start=30 * n, end=30 * n + 20, exit_code=code
        )
    maker.write()
    report = report_of(maker.path)
    assert report.state == "SUCCEEDED"
    assert [(f.tool, f.recovered) for f in report.failures] == [("flaky", True)]


def test_a_run_without_tasks(maker: LakeMaker) -> None:
    """The driver's own child."""
    maker.run(run_id="r1", end=10, exit_code=2)
    top = maker.program(run_id="r1", end=10, tool="bash", exit_code=2)
    bad = maker.program(run_id="r1", start=5, end=10, tool="ls", exit_code=2, parent_program_id=top["program_id"])
    maker.write()
    [failure] = report_of(maker.path).failures
    assert (failure.program_id, failure.task_id, failure.task) == (bad["program_id"], None, None)


def test_recorded_failures(tmp_path: pathlib.Path) -> None:
    """A real run: what fails in a pipe of a script that a script starts, and a real SIGSEGV."""
    script = tmp_path / "step.sh"
    script.write_text("set -euo pipefail\ngrep nothing /etc/hostname || true\nseq 100 | sort -r | ls /nowhere\n")
    code = sluice_binary.record(tmp_path / "lake", "bash", "-c", f"bash {script}")
    assert code == subprocess.run(["bash", str(script)], capture_output=True).returncode == 2
    [failure] = report_of(tmp_path / "lake").failures
    assert (failure.tool, failure.kind, failure.exit_code) == ("ls", "EXIT", 2)
    assert failure.command == "ls /nowhere"
    assert sluice_binary.record(tmp_path / "lake", "bash", "-c", "bash -c 'kill -SEGV $$'; exit 9") == 9
    [failure] = report_of(tmp_path / "lake").failures
    assert (failure.kind, failure.exit_signal) == ("SIGNAL", 11)
