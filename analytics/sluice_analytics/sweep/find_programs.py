# SPDX-License-Identifier: Apache-2.0
"""Findings about single programs: those that spin, and those that poll."""

from __future__ import annotations

from collections.abc import Iterator

from .. import units
from ..lake.session import Row
from .finding import Finding, Scene


def find(scene: Scene, programs: list[Row]) -> Iterator[Finding]:
    """All findings about programs; programs: observed.long_programs."""
    for row in programs:
        finding = _spin(scene, row) or _poll(scene, row)
        if finding is not None:
            yield finding


def _moved(row: Row) -> float:
    return float(max(row["moved_bytes"], row["called_bytes"]))


def _finding(scene: Scene, kind: str, row: Row, sentence: str) -> Finding:
    name = row["tool"] or row["comm"] or row["program_id"]
    length = row["reported_us"]
    cores = row["cpu_ns"] / (length * 1000)
    return scene.finding(
        kind, row["host_id"], length, subject=name, start_us=row["reported_from_us"], end_us=row["reported_to_us"],
        share=scene.share(row["host_id"], cores, row["peak_rss_bytes"]), of=row,
        sentence=f"{name} on {scene.name(row['host_id'])} {sentence}",
        evidence={
            "program_id": row["program_id"], "comm": row["comm"], "argv": row["argv"], "told_ns": length * 1000,
            "cpu_ns": row["cpu_ns"], "cores": cores, "moved_bytes": row["moved_bytes"],
            "called_bytes": row["called_bytes"], "calls": row["calls"], "switches": row["switches"],
            "voluntary_switches": row["voluntary_switches"], "children": row["children"], "sleeps": row["sleeps"],
            "task_id": row["task_id"],
        },
    )  # fmt: skip


def _spin(scene: Scene, row: Row) -> Finding | None:
    limits = scene.limits
    if not limits.spinning or row["reported_us"] < limits.spin_us or row["children"]:
        return None
    seconds = row["reported_us"] / 1e6
    cores = row["cpu_ns"] / (row["reported_us"] * 1000)
    time = units.duration(row["reported_us"] * 1000)
    if cores >= limits.spin_cores and _moved(row) <= limits.spin_bytes:
        return _finding(
            scene, "SPINNING", row,
            f"used {cores:.2f} CPUs for {time}, moved {units.size(_moved(row))} in all and started no program",
        )  # fmt: skip
    calls, switches = row["calls"] / seconds, row["switches"] / seconds
    if max(calls, switches) >= limits.storm_per_s and _moved(row) < limits.storm_bytes_per_call * max(
        row["calls"], row["switches"]
    ):
        return _finding(
            scene, "SPINNING", row,
            f"made {calls:,.0f} read and write calls and {switches:,.0f} context switches a second for {time}, "
            f"used {cores:.2f} CPUs, moved {units.size(_moved(row))} in all and started no program",
        )  # fmt: skip
    return None


def _poll(scene: Scene, row: Row) -> Finding | None:
    limits = scene.limits
    if row["reported_us"] < limits.least_us:
        return None
    seconds = row["reported_us"] / 1e6
    cores = row["cpu_ns"] / (row["reported_us"] * 1000)
    time = units.duration(row["reported_us"] * 1000)
    if row["sleeps"] >= limits.poll_sleeps and row["family_cpu_ns"] / (row["reported_us"] * 1000) < limits.idle_cores:
        return _finding(
            scene, "POLLING", row, f"started `sleep` {row['sleeps']:,} times in {time} and used {cores:.3f} CPUs itself"
        )
    wakes = row["voluntary_switches"] / seconds
    if (
        row["run_id"] is not None
        and not row["children"]
        and wakes >= limits.poll_per_s
        and cores < limits.idle_cores
        and _moved(row) <= limits.spin_bytes
    ):
        return _finding(
            scene, "POLLING", row,
            f"woke {wakes:.1f} times a second for {time}, used {cores:.3f} CPUs and moved "
            f"{units.size(_moved(row))} in all",
        )  # fmt: skip
    return None
