# SPDX-License-Identifier: Apache-2.0
"""Made-up executions of tasks for the tests of recommend, emit, compare and trend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakes import GIB, MIB, LakeMaker, S

NEXTFLOW = {"engine": "nextflow", "source": "work folder and .command.run"}
SNAKEMAKE = {"engine": "snakemake", "source": "argv --target-jobs"}
_HOST = ("host_id", "host_name")


def add_run(lake: LakeMaker, run_id: str, start: float = 0, wall: float = 100, **fields: Any) -> None:
    """A run and a record of its host: 4 CPUs, 16 GiB, 1.00 an hour by default."""
    host = {k: fields.pop(k) for k in ("cpus", "memory_bytes", "price_per_hour", "instance_type") if k in fields}
    host |= {k: fields[k] for k in _HOST if k in fields}
    lake.run(run_id=run_id, start=start, end=start + wall, **({"pipeline": "p"} | fields))
    lake.host(start=start, end=start + 10, **({"price_per_hour": 1.0} | host))


def add_execution(
    lake: LakeMaker,
    run_id: str,
    task: str = "ALIGN",
    *,
    start: float = 0,
    wall: float = 100,
    cpu: float = 50,
    delay: float = 0,
    programs: Sequence[tuple[float, float, float]] = (),
    **fields: Any,
) -> None:
    """A task that ended, with its programs: (start after the task's, end, peak in MiB); by default one of 100 MiB.

    cpu and delay are seconds, threads are those of each program, counted is how many the Task record counts; every
    other keyword is a field of the Task record.
    """
    program = {k: fields.pop(k) for k in ("oom_killed", "overhead", "tool", "exe", "forked") if k in fields}
    task_id = fields.pop("task_id", f"{task}-{run_id}-{start}")
    peaks = list(programs) or [(0.0, wall, 100.0)]
    threads, counted = fields.pop("threads", 1), fields.pop("counted", len(peaks))
    pipeline = fields.pop("pipeline", "p")
    same = {
        "run_id": run_id,
        "pipeline": pipeline,
        "task_id": task_id,
        "task": task,
        "sample": fields.pop("sample", None),
    }
    host = {k: fields[k] for k in _HOST if k in fields}
    for begin, end, peak in peaks:
        lake.program(
            **same, start=start + begin, end=start + end, peak_rss_bytes=round(peak * MIB),
            rss_bytes=round(peak * MIB), threads_peak=threads,
            cpu_user_ns=round(cpu * S / len(peaks)), **program, **host,
        )  # fmt: skip
    known = {
        "cpu_user_ns": round(cpu * S), "cpu_system_ns": 0, "run_delay_ns": round(delay * S), "read_bytes": 0,
        "write_bytes": 0, "rchar": 0, "wchar": 0, "peak_rss_bytes": round(max(p for _, _, p in peaks) * MIB),
        "threads_peak": threads, "net_rx_bytes": 0, "net_tx_bytes": 0,
    }  # fmt: skip
    usage = known | {name: fields.pop(name) for name in known if name in fields}
    lake.task(
        **same, start=start, end=start + wall, usage=usage, parallelism=cpu / wall if wall else 0.0,
        programs=counted, **(NEXTFLOW | fields),
    )  # fmt: skip


def same_in_runs(lake: LakeMaker, runs: int = 3, task: str = "ALIGN", **fields: Any) -> None:
    """The same execution in so many runs, an hour apart."""
    for n in range(runs):
        add_run(lake, f"r{n}", start=3600 * n)
        add_execution(lake, f"r{n}", task, start=3600 * n, **fields)


__all__ = ["GIB", "MIB", "NEXTFLOW", "SNAKEMAKE", "S", "add_execution", "add_run", "same_in_runs"]
