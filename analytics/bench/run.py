# SPDX-License-Identifier: Apache-2.0
"""Time and memory of tune and sweep by size of the lake and engine, each as a process of its own.

    python run.py LAKE [LAKE ...] [--engine duckdb --engine spark] [--what tune ...] [--times 3]

Lakes are those of generate.py. Of several runs of a measurement the least counts: other processes only add.
CPU is user and system time of all processes of a command (Spark's JVM too), memory the sum of the largest
resident sizes of each (of none less than this one has, some 100 MiB). Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.session import ALL
from sluice_analytics.units import rfc3339

BIN = pathlib.Path(sys.executable).parent


@dataclasses.dataclass
class Lake:
    """A generated lake: its size and the runs to ask for."""

    path: str
    programs: int
    runs: int
    usual: str
    """A run with the median number of programs"""
    largest: str
    last_us: int


def look(path: str) -> Lake:
    """Finds the runs to ask for."""
    with DuckSession(path) as session:
        con = session.connection
        (programs,) = con.execute(f"SELECT count(*) FROM ({session.select('program', ALL)})").fetchall()[0]
        runs = con.execute(
            f"SELECT run_id, any_value(programs), max(time) FROM ({session.select('run', ALL)}) WHERE phase = 'END' "
            "GROUP BY run_id ORDER BY 2, 3"
        ).fetchall()
    return Lake(path, programs, len(runs), runs[len(runs) // 2][0], runs[-1][0], max(r[2] for r in runs))


def commands(lake: Lake) -> dict[str, list[str]]:
    """What is measured: a name, and the command without its engine."""
    sweep = ["sluice-sweep", "--until", rfc3339(lake.last_us) or "", "--lake", lake.path, "--format", "json"]
    return {
        "tune, usual run": ["sluice-tune", lake.usual, "--lake", lake.path, "--format", "json"],
        "tune, largest run": ["sluice-tune", lake.largest, "--lake", lake.path, "--format", "json"],
        "tune, latest run": ["sluice-tune", "--lake", lake.path, "--format", "json"],
        "sweep, 7 days": [*sweep, "--since", "7d"],
        "sweep, 1 day": [*sweep, "--since", "1d"],
        "info": ["sluice-lake", "info", "--lake", lake.path],
    }


@dataclasses.dataclass
class Cost:
    """One measurement: seconds and bytes; failed: the error of a command that failed."""

    wall_s: float
    cpu_s: float
    rss_bytes: int
    failed: str = ""


_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Makes this process the parent of what a command leaves behind, such as Spark's JVM, so that it is counted."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def measure(command: list[str]) -> Cost:
    """Runs a command; its wall time is that of its own process, CPU and memory are those of all it started."""
    begin = time.monotonic()
    wall, cpu, rss, exit_code = 0.0, 0.0, 0, 0
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [str(BIN / command[0]), *command[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, used = os.wait4(-1, 0)
                cpu += used.ru_utime + used.ru_stime
                rss += used.ru_maxrss * 1024
                if pid == child.pid:
                    wall, exit_code = time.monotonic() - begin, os.waitstatus_to_exitcode(status)
                    child.returncode = exit_code
        errors.seek(0)
        said = errors.read().strip()
    failed = (said.splitlines() or [f"exit {exit_code}"])[-1] if exit_code else ""
    return Cost(wall, cpu, rss, failed)


def least(costs: list[Cost], of: Callable[[Cost], float]) -> float:
    """The smallest of some measurements."""
    return min(of(c) for c in costs)


def machine() -> str:
    """CPU, cores and memory, as the kernel reports them."""
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = next((line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")), "CPU")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model}, {os.cpu_count()} CPUs, {memory:.0f} GiB"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lakes", metavar="LAKE", nargs="+")
    parser.add_argument("--engine", action="append", choices=("duckdb", "spark"))
    parser.add_argument("--what", action="append", help="measure what begins with this: tune, sweep, info")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    adopt()
    print(f"{machine()}; {time.strftime('%Y-%m-%d', time.gmtime())}; load {os.getloadavg()[0]:.1f} at the start\n")
    print("| program records | runs | what | engine | wall | CPU | peak memory |")
    print("|---:|---:|---|---|---:|---:|---:|")
    for path in args.lakes:
        lake = look(path)
        for what, command in commands(lake).items():
            if args.what and not any(what.startswith(w) for w in args.what):
                continue
            for engine in args.engine or ["duckdb"]:
                if engine != "duckdb" and command[0] == "sluice-lake":
                    continue
                full = [*command, "--engine", engine] if command[0] != "sluice-lake" else command
                costs = [measure(full) for _ in range(args.times)]
                bad = next((c.failed for c in costs if c.failed), "")
                row = (
                    f"{least(costs, lambda c: c.wall_s):.1f} s | {least(costs, lambda c: c.cpu_s):.1f} s | "
                    f"{least(costs, lambda c: c.rss_bytes) / 2**20:.0f} MiB"
                )
                print(f"| {lake.programs:,} | {lake.runs:,} | {what} | {engine} | {bad or row} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
