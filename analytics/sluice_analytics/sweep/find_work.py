# SPDX-License-Identifier: Apache-2.0
"""Findings about work: runs and tasks that do nothing, stall or fail again and again; containers that stay."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .. import units
from ..lake.session import Row
from ..model.activity import CALLED_BYTES_PER_S
from ..prices import add
from . import observed
from .finding import Finding, Scene
from .period import HOUR_US
from .thresholds import WORKERS


def find(scene: Scene, programs: list[Row]) -> Iterator[Finding]:
    """All findings about work; programs: observed.long_programs."""
    work = {topic: scene.session.rows(observed.work(scene.session, scene.period, topic, scene.limits.least_us))
            for topic in ("task", "run")}  # fmt: skip
    silent = list(_silences(scene, work["run"]))
    reported = {f.run_id for f in silent if f.kind == "ZOMBIE_RUN"}
    workers = list(_workers(scene, programs))
    reported_tasks = {(f.run_id, f.evidence["task_id"]) for f in workers if f.evidence["task_id"] is not None}
    tasks = [f for f in _idle(scene, work["task"], "task")
             if f.run_id not in reported and (f.run_id, f.evidence["task_id"]) not in reported_tasks]  # fmt: skip
    reported |= {f.run_id for f in [*tasks, *workers]}
    yield from silent
    yield from workers
    yield from tasks
    yield from (f for f in _idle(scene, work["run"], "run") if f.run_id not in reported)
    yield from _containers(scene)
    yield from _failures(scene, work["task"], "task")
    yield from _failures(scene, work["run"], "run")


def run_label(row: Row) -> str:
    """What a person calls a run: its pipeline or name, and the start of its id."""
    name = row.get("pipeline") or row.get("run_name") or "run"
    return f"{name} {str(row['run_id'] or '-')[:8]}"


def _task_label(row: Row) -> str:
    return f"{row['task'] or '-'}" + (f" ({row['sample']})" if row.get("sample") else "")


def _idle(scene: Scene, rows: list[Row], topic: str) -> Iterator[Finding]:
    """Alive for long with next to no use; of a run, on all of its hosts together."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        key = (row["run_id"],) if topic == "run" else (row["run_id"], row["task_id"], row["attempt"])
        groups[key].append(row)
    limits, period = scene.limits, scene.period
    for group in groups.values():
        first = min(group, key=lambda r: r["start_time"])
        alive = {r["host_id"]: period.inside(r["start_time"], r["last_us"]) for r in group}
        wall_us = max(r["last_us"] for r in group) - first["start_time"]
        if max(alive.values()) < limits.least_us or any(r["cpu_ns"] is None for r in group):
            continue
        cpu_ns = sum(r["cpu_ns"] for r in group)
        moved, called = sum(r["moved_bytes"] for r in group), sum(r["called_bytes"] for r in group)
        cores = cpu_ns / (wall_us * 1000)
        if cores >= limits.idle_cores or limits.moves(moved, called, wall_us):
            continue
        money = add([
            scene.money(r["host_id"], alive[r["host_id"]],
                        scene.share(r["host_id"], r["requested_cpus"] or cores,
                                    r["requested_memory_bytes"] or r["peak_rss_bytes"]))
            for r in group
        ])  # fmt: skip
        asked = [r["requested_cpus"] for r in group if r["requested_cpus"] is not None]
        what = f"run {run_label(first)}" if topic == "run" else f"task {_task_label(first)} of {run_label(first)}"
        yield Finding(
            kind="IDLE_RUN" if topic == "run" else "IDLE_TASK",
            subject=run_label(first) if topic == "run" else _task_label(first),
            host_id=first["host_id"] if len(group) == 1 else None,
            host_name=", ".join(sorted(scene.name(r["host_id"]) for r in group)),
            start_us=max(first["start_time"], period.since_us),
            end_us=min(max(r["last_us"] for r in group), period.until_us),
            hours=sum(alive.values()) / HOUR_US,
            money=money,
            sentence=f"{what} lived {units.duration(wall_us * 1000)} and used {units.duration(cpu_ns)} of CPU "
            f"({cores:.3f} cores) and moved {units.size(max(moved, called))}",
            evidence={
                "wall_ns": wall_us * 1000, "cpu_ns": cpu_ns, "cores": cores, "moved_bytes": moved,
                "called_bytes": called, "task_id": first["task_id"],
                "live_programs": sum(r["live_programs"] or 0 for r in group),
                "requested_cpus": sum(asked) if asked else None, "ended": all(r["phase"] == "END" for r in group),
            },
            run_id=first["run_id"], pipeline=first["pipeline"], task=first["task"],
        )  # fmt: skip


def _silences(scene: Scene, rows: list[Row]) -> Iterator[Finding]:
    by_run: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_run[row["run_id"]].append(row)
    quiet: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in scene.session.rows(observed.silences(scene.session, scene.period, scene.limits)):
        group = by_run.get(row["run_id"], [])  # none: it lived for long on no single host
        if not group:
            continue
        start, end = scene.watched(row["start_us"], row["end_us"], [r["host_id"] for r in group])
        if end - start >= scene.limits.least_us:
            quiet[row["run_id"]].append((start, end))
    for run_id, stretches in quiet.items():
        group = by_run[run_id]
        stretches.sort()
        first = min(group, key=lambda r: r["start_time"])
        last_us = min(max(r["last_us"] for r in group), scene.period.until_us)
        start, end = max(stretches, key=lambda s: s[1] - s[0])
        length = sum(b - a for a, b in stretches)
        is_over = any(b >= last_us - 1_000_000 for _, b in stretches)
        if is_over:
            start, end = max(stretches, key=lambda s: s[1])
        money = add([
            scene.money(r["host_id"], length, scene.share(r["host_id"], r["requested_cpus"],
                                                          r["requested_memory_bytes"] or r["peak_rss_bytes"]))
            for r in group
        ])  # fmt: skip
        yield Finding(
            kind="ZOMBIE_RUN" if is_over else "STALLED_RUN",
            subject=run_label(first),
            host_id=first["host_id"] if len(group) == 1 else None,
            host_name=", ".join(sorted(scene.name(r["host_id"]) for r in group)),
            start_us=start, end_us=end, hours=length / HOUR_US, money=money,
            sentence=f"run {run_label(first)} was alive and made no progress for "
            f"{units.duration((end - start) * 1000)}, from {units.clock(start)} to {units.clock(end)}: no program "
            f"began, none used {scene.limits.quiet_cores:g} CPUs or moved "
            f"{units.size(scene.limits.quiet_bytes_per_s)} a second, or "
            f"{units.size(CALLED_BYTES_PER_S)} by read and write calls"
            + ("" if is_over else "; then it continued"),
            evidence={
                "silent_ns": length * 1000, "stretches": len(stretches), "resumed": not is_over, "start_time": start,
                "end_time": end, "live_programs": sum(r["live_programs"] or 0 for r in group),
                "ended": all(r["phase"] == "END" for r in group), "task_id": None,
            },
            run_id=run_id, pipeline=first["pipeline"],
        )  # fmt: skip


def worker_name(comm: str | None, tool: str | None, exe: str | None, argv: list[str] | None) -> str | None:
    """The entry of WORKERS that a program is, by its names and first arguments; None: it is none of them."""
    names = [x for x in (tool, comm, os.path.basename(exe) if exe else None) if x]
    words = (argv or [])[:6]
    command = " ".join([os.path.basename(words[0]), *(os.path.basename(w) for w in words[1:])]) if words else ""
    for worker in WORKERS:
        cut = worker[:15]  # comm is at most 15 bytes
        if any(name.startswith(worker) or name == cut for name in names):
            return worker
        if f" {command} ".find(f" {worker} ") >= 0:
            return worker
    return None


def _workers(scene: Scene, programs: list[Row]) -> Iterator[Finding]:
    limits = scene.limits
    for row in programs:
        worker = worker_name(row["comm"], row["tool"], row["exe"], row["argv"])
        if worker is None:
            continue
        start = max(row["reported_from_us"], scene.period.since_us)
        end = row["end_time"] or scene.alive_until(row["host_id"], max(row["heard_us"] or 0, row["reported_to_us"]))
        end = min(end, scene.period.until_us)
        alive = (
            end - start - sum(max(0, min(x.end_us, end) - max(x.start_us, start)) for x in scene.away(row["host_id"]))
        )
        cores = row["family_cpu_ns"] / (alive * 1000) if alive > 0 else 0.0
        if alive < limits.least_us or cores >= limits.idle_cores:
            continue
        moved, called = row["family_moved_bytes"], row["family_called_bytes"]
        if limits.moves(moved, called, alive):
            continue
        yield scene.finding(
            "WAITING_WORKER", row["host_id"], alive, subject=worker, start_us=start, end_us=end,
            share=scene.share(row["host_id"], cores, row["peak_rss_bytes"]), of=row,
            sentence=f"{worker} on {scene.name(row['host_id'])} was alive for {units.duration(alive * 1000)} and used, "
            f"with its children, {units.duration(row['family_cpu_ns'])} of CPU ({cores:.3f} cores) and moved "
            f"{units.size(max(moved, called))}",
            evidence={
                "program_id": row["program_id"], "argv": row["argv"], "comm": row["comm"], "cpu_ns": row["cpu_ns"],
                "family_cpu_ns": row["family_cpu_ns"], "cores": cores, "children": row["children"],
                "moved_bytes": moved, "called_bytes": called, "alive_ns": alive * 1000,
                "peak_rss_bytes": row["peak_rss_bytes"],
                "task_id": row["task_id"],
            },
        )  # fmt: skip


def _containers(scene: Scene) -> Iterator[Finding]:
    for row in scene.session.rows(observed.containers(scene.session, scene.period)):
        start = row["task_end_us"]
        end = row["last_end_us"] or start
        if row["alive"]:
            end = max(end, scene.alive_until(row["host_id"], row["heard_us"]))
        length = scene.period.inside(start, end)
        if length < scene.limits.after_run_us:
            continue
        name = row["container_name"] or row["container_id"][:12]
        yield scene.finding(
            "CONTAINER_OUTLIVES_TASK", row["host_id"], length, subject=name, start_us=start, end_us=end,
            share=scene.share(row["host_id"], None, row["peak_rss_bytes"]), of=row,
            sentence=f"container {name} on {scene.name(row['host_id'])} stayed for {units.duration(length * 1000)} "
            f"after its last task ({row['task']}) ended at {units.clock(start)}: {row['programs']} program(s) such as "
            f"{row['comm']}" + (", still alive at its last record" if row["alive"] else ""),
            evidence={
                "container_id": row["container_id"], "task_end_time": start, "programs": row["programs"],
                "alive": row["alive"], "last_end_time": row["last_end_us"], "comm": row["comm"],
                "peak_rss_bytes": row["peak_rss_bytes"],
            },
        )  # fmt: skip


def _failures(scene: Scene, rows: list[Row], topic: str) -> Iterator[Finding]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        named = row["task"] if topic == "task" else row["pipeline"]
        if row["failed"] and named is not None and row["last_us"] >= scene.period.since_us:
            groups[(row["pipeline"], row["task"], row["sample"])].append(row)
    for group in groups.values():
        if len(group) < scene.limits.failures:
            continue
        group.sort(key=lambda r: r["start_time"])
        first, last = group[0], group[-1]
        wall_us = sum(scene.period.inside(r["start_time"], r["last_us"]) for r in group)
        cpu = [r["cpu_ns"] for r in group if r["cpu_ns"] is not None]
        money = add([
            scene.money(r["host_id"], scene.period.inside(r["start_time"], r["last_us"]),
                        scene.share(r["host_id"], max(r["requested_cpus"] or 0.0,
                                                      (r["cpu_ns"] or 0) / max(1, r["wall_ns"])),
                                    max(r["requested_memory_bytes"] or 0, r["peak_rss_bytes"] or 0)))
            for r in group
        ])  # fmt: skip
        ends = sorted(
            {f"exit {r['exit_code']}" if r["exit_signal"] is None else f"signal {r['exit_signal']}" for r in group}
        )
        what = (
            f"task {_task_label(first)} of {first['pipeline'] or '-'}"
            if topic == "task"
            else f"run {first['pipeline']}"
        )
        yield Finding(
            kind="REPEATED_FAILURE",
            subject=_task_label(first) if topic == "task" else str(first["pipeline"]),
            host_id=first["host_id"] if len({r["host_id"] for r in group}) == 1 else None,
            host_name=", ".join(sorted({scene.name(r["host_id"]) for r in group})),
            start_us=first["start_time"], end_us=last["last_us"], hours=wall_us / HOUR_US, money=money,
            sentence=f"{what} failed {len(group)} times ({', '.join(ends)}) between {units.clock(first['start_time'])} "
            f"and {units.clock(last['last_us'])}: {units.duration(wall_us * 1000)} and "
            f"{units.duration(sum(cpu))} of CPU",
            evidence={
                "failures": len(group), "ends": ends, "wall_ns": wall_us * 1000, "cpu_ns": sum(cpu) if cpu else None,
                "runs": sorted({r["run_id"] for r in group}), "first_time": first["start_time"],
                "last_time": last["last_us"],
                "failed_time": [r["last_us"] for r in group],
            },
            run_id=last["run_id"] if len({r["run_id"] for r in group}) == 1 else None,
            pipeline=first["pipeline"], task=first["task"],
        )  # fmt: skip
