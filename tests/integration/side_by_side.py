# SPDX-License-Identifier: Apache-2.0
"""Nextflow's trace.txt and the agent's Task records of the same tasks: compared, and as a table for people.

`side_by_side.py [FILE]`, as root with SLUICE in the environment, runs the test pipeline and writes FILE
(docs/nextflow.md) anew: the table there is never made by hand.
"""
import os
import sys

# Nextflow's CPU time is rounded: to ticks of 10 ms for user and for system time, and its share by what all
# CPUs ticked meanwhile. Its figures hold those of its own helpers (grep, awk and sed load their libraries and
# read /proc), which the agent tags overhead and counts to no task: they are added here before the comparison.
CPU_TICKS_MS = 40
CPU_PART = 0.10

DOC = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# One Nextflow run, seen by Nextflow and by sluice

Nextflow 23.10.1 measures a task from inside: its wrapper reads /proc before and after, and a helper polls `ps`
at intervals of a second and more. Sluice reads the kernel's counters at the end of each program. Both measured the same
run of `tests/fixtures/pipelines/nextflow/main.nf` on a machine with {machine}:

{table}
In each pair trace.txt's figure is first, sluice's second. CPU is time on a CPU, from trace.txt's realtime × %cpu;
rchar and wchar are bytes that read and write calls moved. A dash means that there is no figure: Nextflow has none for a
task that fails. Its peak is the sum of the peaks of the programs that its poll saw, and 0 for a task that ends before
the first poll; sluice's peak is that of the largest program, however short. Nextflow's bytes include those of its own
helpers, about 0.1 MB a task, which sluice tags as overhead and attributes to the run only.

`tests/integration/side_by_side.py` writes this page; `test_engine_nextflow.py` checks on every run that sluice's
figures with those helpers are at least Nextflow's: every byte, and CPU time within {ticks} ms and {part} %.
"""


def cpu_ms_of_trace(row):
    """CPU time as trace.txt has it; None: it has none."""
    if row["realtime"] is None or row["%cpu"] is None:
        return None
    return row["realtime"] * row["%cpu"] / 100


def cpu_ms(record):
    return (record["usage"]["cpu_user_ns"] + record["usage"]["cpu_system_ns"]) / 1e6


def shortfalls(row, task, programs, helpers):
    """Where the agent has less than Nextflow: [sentence]. Program records of the task, and of its overhead."""
    wrong = []
    name = f"{row['name']} ({row['hash']})"
    u = task["usage"]
    for field in ("cpu_user_ns", "cpu_system_ns", "peak_rss_bytes", "rchar", "wchar"):
        if u[field] is None:
            wrong.append(f"{name}: {field} is missing")
    if wrong:
        return wrong
    for field in ("rchar", "wchar"):
        ours = u[field] + sum(p["usage"][field] for p in helpers)
        if row[field] is not None and ours < row[field]:
            wrong.append(f"{name}: {field} {ours} ({u[field]} without helpers) < {row[field]}")
    # Nextflow adds up the peaks of all programs that are alive at a poll; ours is the largest program's.
    peaks = sum(p["usage"]["peak_rss_bytes"] for p in programs)
    if row["peak_rss"] is not None and peaks < row["peak_rss"]:
        wrong.append(f"{name}: peaks {peaks} < {row['peak_rss']}")
    theirs = cpu_ms_of_trace(row)
    ours = cpu_ms(task) + sum(map(cpu_ms, helpers))
    if theirs is not None and ours + CPU_TICKS_MS < theirs * (1 - CPU_PART):
        wrong.append(f"{name}: CPU {ours:.0f} ms < {theirs:.0f} ms")
    if cpu_ms(task) <= 0:
        wrong.append(f"{name}: no CPU time")
    return wrong


def _pair(theirs, ours, scale, unit):
    return " / ".join("-" if x is None else f"{x / scale:.{0 if x / scale >= 100 else 1}f}" for x in (theirs, ours)) + " " + unit


def table(pairs):
    """Markdown, a row a task: [(row of trace.txt, Task record)]."""
    lines = ["| task | exit | attempt | wall | CPU | rchar | wchar | peak |", "|---|---|---|---|---|---|---|---|"]
    for row, task in pairs:
        u = task["usage"]
        lines.append("| " + " | ".join([
            row["name"], f"{row['exit']} / {task['exit_code']}", f"{row['attempt']} / {task['attempt']}",
            _pair(row["realtime"], task["wall_ns"] / 1e6, 1, "ms"),
            _pair(cpu_ms_of_trace(row), cpu_ms(task), 1, "ms"),
            _pair(row["rchar"], u["rchar"], 1e6, "MB"), _pair(row["wchar"], u["wchar"], 1e6, "MB"),
            _pair(row["peak_rss"], u["peak_rss_bytes"], 1e6, "MB")]) + " |")
    return "\n".join(lines) + "\n"


def main():
    import test_engine_nextflow as test

    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..", "docs", "nextflow.md")
    local = test.Local
    try:
        local.setUpClass()
        pairs = local.pairs("one")
    finally:
        local.doClassCleanups()
    machine = f"{os.cpu_count()} CPUs and Linux {os.uname().release.split('-')[0]}"
    text = DOC.format(machine=machine, table=table(pairs), ticks=CPU_TICKS_MS, part=round(CPU_PART * 100))
    with open(path, "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
