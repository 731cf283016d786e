# SPDX-License-Identifier: Apache-2.0
"""Runs for the HTML page's tests, made by hand: this file has all that the page shows of them."""

from __future__ import annotations

import dataclasses

from sluice_analytics.tune.run import NO_TASK, SHARES
from sluice_analytics.tune.run_report import (
    Cost,
    Efficiency,
    Failure,
    Loss,
    Observation,
    ProgramRow,
    Recommendation,
    Resources,
    RunReport,
    TaskRow,
    Timeline,
    ToolRow,
)

S = 1_000_000
"""Microseconds in a second."""

T0 = 1_793_534_400_000_000
"""2026-11-01 12:00:00 UTC: when all runs here start."""

MIB = 1 << 20
GIB = 1 << 30

HOSTILE = (
    "x </script><script>window.hacked=1</script><img src=x onerror=window.hacked=2> \"'`&lt; "
    "\u2028 \x1b[31m\x00 \u202e "
    "${window.hacked=3} javascript:window.hacked=4 -->"
)
"""An argument that would like to be more than text."""


def task(at: int, name: str, start: float, wall: float, **fields: object) -> TaskRow:
    """A task that took `wall` seconds from `start` (seconds after T0) on, half of them on a CPU."""
    row = TaskRow(
        task_id=f"task-{at}",
        name=name,
        sample=f"S{at}",
        engine="snakemake",
        host_name="node1",
        attempt=1,
        start_time=T0 + round(start * S),
        end_time=T0 + round((start + wall) * S),
        wall_ns=round(wall * 1e9),
        parallelism=0.5,
        programs=1,
        failed_programs=0,
        exit_code=0,
        exit_signal=None,
        bound="COMPUTE",
        demand="COMPUTE",
        denied="NOTHING",
        denied_share=0.0,
        shares=dict.fromkeys(SHARES, 0.2),
        usage=Resources(
            cpu_user_ns=round(wall * 4e8),
            cpu_system_ns=round(wall * 1e8),
            peak_rss_bytes=(at + 1) * 10 * MIB,
            read_bytes=5 * MIB,
            write_bytes=2 * MIB,
            net_rx_bytes=0,
            net_tx_bytes=0,
        ),
        efficiency=Efficiency(requested_cpus=4, requested_memory_bytes=GIB, cpu=0.125, memory=0.01),
        cost=Cost(),
    )
    return dataclasses.replace(row, **fields)  # type: ignore[arg-type]


def program(at: int, owner: TaskRow | None, start: float, wall: float, **fields: object) -> ProgramRow:
    """A program that took `wall` seconds from `start` (seconds after T0) on."""
    row = ProgramRow(
        program_id=f"program-{at}",
        parent_program_id=None,
        tool="sort",
        exe="/usr/bin/sort",
        command=f"sort part{at}.txt",
        task_id=owner.task_id if owner else None,
        task=owner.name if owner else None,
        host_name="node1",
        pid=1000 + at,
        start_time=T0 + round(start * S),
        end_time=T0 + round((start + wall) * S),
        exit_code=0,
        exit_signal=None,
        oom_killed=False,
        cpu_ns=round(wall * 5e8),
        peak_rss_bytes=10 * MIB,
        read_bytes=5 * MIB,
        write_bytes=2 * MIB,
        net_bytes=0,
        overhead=owner is None,
    )
    return dataclasses.replace(row, **fields)  # type: ignore[arg-type]


def tool(name: str, programs: int, cpu_s: float, **fields: object) -> ToolRow:
    """A tool that used `cpu_s` seconds of CPU."""
    row = ToolRow(
        tool=name,
        tasks=["align"],
        programs=programs,
        failed=0,
        wall_ns=round(cpu_s * 2e9),
        bound="COMPUTE",
        demand="COMPUTE",
        usage=Resources(cpu_user_ns=round(cpu_s * 1e9), cpu_system_ns=0, read_bytes=MIB, write_bytes=MIB),
        share_of_cpu=0.5,
        share_of_io=0.25,
    )
    return dataclasses.replace(row, **fields)  # type: ignore[arg-type]


def run(tasks: list[TaskRow], programs: list[ProgramRow], seconds: float, **fields: object) -> RunReport:
    """A run of `seconds` on one host of 4 CPUs and 64 GiB: 2 CPUs busy, 1 GiB resident all the time."""
    bins = 50
    flat = {"cpu_cores": 2.0, "rss_bytes": float(GIB), "read_bytes_per_s": 3e6, "write_bytes_per_s": 1e6}
    flat |= {"net_rx_bytes_per_s": 0.0, "net_tx_bytes_per_s": 0.0, "running_programs": 3.0, "running_tasks": 1.0}
    row = RunReport(
        run_id="0af76519-16cd-43dd-8448-eb211c80319c",
        run_name="tiny_torvalds",
        pipeline="rnaseq",
        engine="snakemake",
        command="snakemake -c4",
        work_dir="/data/run1",
        state="SUCCEEDED",
        start_time=T0,
        end_time=T0 + round(seconds * S),
        hosts=[
            {
                "host_id": "h1",
                "host_name": "node1",
                "cpus": 4,
                "memory_bytes": 64 * GIB,
                "instance_type": "c6.xlarge",
                "price_per_hour": None,
            }
        ],
        last_time=T0 + round(seconds * S),
        wall_ns=round(seconds * 1e9),
        exit_code=0,
        exit_signal=None,
        programs_total=len(programs),
        failed_programs=0,
        lost_events=0,
        parallelism=2.0,
        bound="COMPUTE",
        demand="COMPUTE",
        denied="RECLAIM",
        denied_share=0.12,
        usage=Resources(
            cpu_user_ns=round(seconds * 15e8),
            cpu_system_ns=round(seconds * 5e8),
            peak_rss_bytes=GIB,
            read_bytes=300 * MIB,
            write_bytes=100 * MIB,
            net_rx_bytes=0,
            net_tx_bytes=0,
        ),
        efficiency=Efficiency(cpu=0.5, memory=1 / 64, over_host=True),
        cost=Cost(),
        tasks=tasks,
        tools=[tool("sort", 3, 60), tool("bwa mem", 1, 90)],
        programs=programs,
        programs_left_out=0,
        failures=[],
        observations=[],
        recommendations=[],
        timeline=Timeline(T0, round(seconds * S / bins), {name: [v] * bins for name, v in flat.items()}),
        gaps=[],
        critical_path=[t.task_id for t in tasks[:2]],
        losses=[],
        warnings=[],
    )
    return dataclasses.replace(row, **fields)  # type: ignore[arg-type]


def failed_run() -> RunReport:
    """Two minutes: `align` three times, `sort <hostile>`, `call`, which was killed for memory; and the driver."""
    align = [task(n, "align", 5 + 20 * n, 18) for n in range(3)]
    align[0].demand = "STORAGE"
    odd = task(3, "sort " + HOSTILE, 70, 10, sample=None, demand="MEMORY", denied=None, denied_share=None)
    call = task(
        4, "call", 85, 30, sample=None, exit_code=None, exit_signal=9, failed_programs=1, demand="WAITING_FOR",
        waiting_for="PIPE", denied="RUN_QUEUE", denied_share=0.45, peak_memory_bytes=5 * GIB,
    )  # fmt: skip
    driver = task(5, NO_TASK, 0, 120, task_id=NO_TASK, sample=None, bound=None, demand=None, denied=None)
    programs = [program(0, None, 0, 120, tool="snakemake", command="snakemake -c4", exit_code=1)]
    for n, t in enumerate(align):
        command = f"bwa mem ref.fa S{n}.fq"
        programs.append(program(1 + n, t, (t.start_time - T0) / S, 17, tool="bwa mem", command=command))
    programs.append(program(4, odd, 70, 9, command=HOSTILE, exe=HOSTILE))
    killed = program(
        5, call, 85, 30, tool="bcftools call", command="bcftools call -mv", exit_code=None, exit_signal=9,
        oom_killed=True, parent_program_id="program-0", peak_rss_bytes=3 * GIB,
    )  # fmt: skip
    programs += [killed, program(6, call, 90, 5, exit_code=None, exit_signal=15)]
    failure = Failure(
        kind="OOM_KILLED", task_id="task-4", task="call", program_id="program-5", tool="bcftools call",
        command="bcftools call -mv " + HOSTILE, exit_code=None, exit_signal=9, time=T0 + 115 * S,
        sentence="bcftools call was killed: the host was out of memory",
        evidence={"peak_rss_bytes": 3 * GIB, "oom_killed": True},
        chain=["snakemake (pid 1000, exit code 1)"], victims=["program-6"],
    )  # fmt: skip
    observations = [
        Observation("STRAGGLER", "INFO", "task-2", "align S2 took twice as long", {"wall_ns": 18 * 10**9}),
        Observation("STUCK", "WARNING", "task-3", "sort did nothing for 4 s", {}),
    ]
    cpus = Recommendation(
        pipeline="rnaseq", task="align", what="cpus", current=4.0, recommended=1.0,
        sentence="align used 0.5 CPUs of 4", runs=3, confidence="medium", evidence={"runs": 3}, saving=0.25,
    )  # fmt: skip
    memory = Recommendation(
        pipeline="rnaseq", task="call", what="memory_bytes", current=GIB, recommended=4 * GIB,
        sentence="call ran out of memory", runs=3, confidence="low", evidence={},
    )  # fmt: skip
    return run(
        [*align, odd, call, driver], programs, 120, state="FAILED", exit_code=1, failed_programs=3, failures=[failure],
        gaps=[(T0 + 66 * S, T0 + 70 * S)], losses=[Loss("node1", "ring", "full", 7)], observations=observations,
        warnings=["one file was skipped " + HOSTILE], recommendations=[cpus, memory],
    )  # fmt: skip


def large_run(programs: int, tasks: int, command_chars: int) -> RunReport:
    """Many of both, with commands of that length; program 7 of each 1,000 failed."""
    seconds = 3600.0
    rows = [task(n, ("align", "sort", "call")[n % 3], 3000 * n / tasks, 300 * (n % 7 + 1) / 7) for n in range(tasks)]
    each = [
        program(
            n,
            rows[n % tasks],
            3000 * n / programs,
            1 + n % 100,
            exit_code=1 if n % 1000 == 7 else 0,
            command=f"{n} " + "".join(chr(97 + (n * 31 + k * 7) % 26) for k in range(command_chars - 8)),
        )
        for n in range(programs)
    ]
    return run(rows, each, seconds, failed_programs=programs // 1000)
