# SPDX-License-Identifier: Apache-2.0
"""A RunReport as a Document: what the terminal, JSON and CSV show of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import units
from ..tune.run_report import MODELLED, UNNAMED, Recommendation, Resources, RunReport, TaskRow, ToolRow, by_reason
from . import verdict
from .document import Column, Document, Kind, Table

if TYPE_CHECKING:  # it loads Ibis, and the sections of CSV are read without it
    from ..tune.find import Run

TOOLS_SHOWN = 20
TASKS_SHOWN = 200
SECTIONS = ("tasks", "tools", "programs", "failures", "observations", "recommendations", "too_little_evidence")

_USAGE = [
    Column("cpu_user_ns", "user", "ns"),
    Column("cpu_system_ns", "system", "ns"),
    Column("run_delay_ns", "run delay", "ns"),
    Column("peak_rss_bytes", "peak", "size"),
    Column("mean_rss_bytes", "mean", "size"),
    Column("major_faults", "maj faults", "count"),
    Column("minor_faults", "min faults", "count"),
    Column("read_bytes", "disk read", "size"),
    Column("write_bytes", "disk write", "size"),
    Column("rchar", "read calls", "size"),
    Column("wchar", "write calls", "size"),
    Column("net_rx_bytes", "net in", "size"),
    Column("net_tx_bytes", "net out", "size"),
]


def _short(peak: str) -> list[Column]:
    """What tables for people have of usage. peak: the heading of the peak."""
    return [
        Column("cpu_ns", "CPU", "ns"),
        Column("peak_bytes", peak, "size"),
        Column("disk_bytes", "disk", "size"),
        Column("call_bytes", "calls", "size"),
        Column("net_bytes", "net", "size"),
    ]


_VERDICT = [
    Column("demand", "demand"),
    Column("demand_confidence", "demand confidence", "number"),
    Column("waiting_for", "waiting for"),
    Column("denied", "denied"),
    Column("denied_share", "denied share", "percent"),
]


def _words(row: TaskRow | ToolRow | RunReport) -> dict[str, str | None]:
    return verdict.texts(row.demand, row.waiting_for, row.denied, row.denied_share)


def exit_text(code: int | None, number: int | None) -> str | None:
    """How something ended: 0, 1, SIGKILL; None: not known, or it runs."""
    if number is not None:
        return units.signal_name(number)
    return None if code is None else str(code)


def ended_by(code: int | None, number: int | None) -> str:
    """The same in a sentence: exit code 1, SIGKILL; empty where it is unknown."""
    if number is not None:
        return units.signal_name(number)
    return f"exit code {code}" if code else ""


def _sum(*values: int | None) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _usage(usage: Resources) -> dict[str, Any]:
    return vars(usage) | {
        "cpu_ns": _sum(usage.cpu_user_ns, usage.cpu_system_ns),
        "disk_bytes": _sum(usage.read_bytes, usage.write_bytes),
        "call_bytes": _sum(usage.rchar, usage.wchar),
        "net_bytes": _sum(usage.net_rx_bytes, usage.net_tx_bytes),
    }


def _peak(together: int | None, usage: Resources) -> dict[str, int | None]:
    """For people: the most that all programs held at once; where that is unknown, the largest program's peak."""
    return {"peak_bytes": usage.peak_rss_bytes if together is None else together}


def _tool(tool: ToolRow, is_short: bool) -> dict[str, Any]:
    row = dict(vars(tool)) | {"cost_used": tool.cost.used} | _usage(tool.usage) | _peak(None, tool.usage)
    for name in ("usage", "cost"):
        row.pop(name)
    return row | (_words(tool) if is_short else {})


def _task(task: TaskRow, is_short: bool) -> dict[str, Any]:
    """A task's row. For people, efficiency is shown only where something was requested."""
    row = dict(vars(task))  # asdict() copies all that is below, of thousands of tasks
    for name in ("usage", "efficiency", "cost", "energy", "shares", "bill", "own_bill"):
        row.pop(name)
    e = task.efficiency
    return (
        row
        | _usage(task.usage)
        | {f"share_{name}": value for name, value in task.shares.items()}
        | {
            "label": f"{task.name} ({task.sample})" if task.sample else task.name,
            "exit": exit_text(task.exit_code, task.exit_signal),
            "requested_cpus": e.requested_cpus,
            "requested_memory_bytes": e.requested_memory_bytes,
            "cpu_efficiency": None if is_short and e.over_host else e.cpu,
            "memory_efficiency": None if is_short and e.over_host else e.memory,
            "efficiency_over_host": e.over_host,
            "cost_used": task.cost.used,
            "cost_reserved": task.cost.reserved,
            "energy_joules": task.energy.joules,
            "energy_source": task.energy.source,
            "path": "*" if task.on_critical_path else "",
        }
        | _peak(task.peak_memory_bytes, task.usage)
        | (_words(task) if is_short else {})
    )


def _task_columns(
    is_short: bool,
    with_cost: bool,
    with_requests: tuple[bool, bool],
    with_attempt: bool,
    with_host: bool,
    energy: str | None,
) -> list[Column]:
    """energy: the heading of energy; None: no such column for people."""
    if is_short:
        return [
            Column("path", ""),
            Column("label", "task"),
            *([Column("attempt", "try", "count")] if with_attempt else []),
            *([Column("host_name", "host")] if with_host else []),
            Column("wall_ns", "wall", "ns"),
            Column("parallelism", "CPUs", "cores"),
            *_short("peak mem"),
            *([Column("cpu_efficiency", "CPU eff", "percent")] if with_requests[0] else []),
            *([Column("memory_efficiency", "mem eff", "percent")] if with_requests[1] else []),
            *([Column("cost_used", "cost", "money")] if with_cost else []),
            *([Column("energy_joules", energy, "energy")] if energy else []),
            Column("exit", "exit"),
            *verdict.COLUMNS,
        ]
    return [
        *(Column(n, n) for n in ("task_id", "name", "sample", "engine", "host_name")),
        Column("attempt", "attempt", "count"),
        Column("start_time", "start", "time"),
        Column("end_time", "end", "time"),
        Column("wall_ns", "wall", "ns"),
        Column("parallelism", "parallelism", "cores"),
        Column("programs", "programs", "count"),
        Column("failed_programs", "failed programs", "count"),
        *(Column(n, n) for n in ("exit_code", "exit_signal", "bound")),
        *_VERDICT,
        *(Column(f"share_{n}", n, "percent") for n in ("cpu", "run_delay", "block_io", "memory", "idle")),
        *_USAGE,
        Column("peak_memory_bytes", "peak of all", "size"),
        Column("peak_memory_source", "its source"),
        Column("requested_cpus", "requested CPUs", "number"),
        Column("requested_memory_bytes", "requested memory", "size"),
        Column("cpu_efficiency", "CPU efficiency", "percent"),
        Column("memory_efficiency", "memory efficiency", "percent"),
        Column("efficiency_over_host", "over host"),
        Column("cost_used", "cost used", "money"),
        Column("cost_reserved", "cost reserved", "money"),
        Column("energy_joules", "energy", "energy"),
        Column("energy_source", "its source"),
        *(Column(n, n) for n in ("retried", "on_critical_path", "work_dir")),
    ]


def _tool_columns(is_short: bool, with_cost: bool) -> list[Column]:
    if is_short:
        return [
            Column("tool", "tool"), Column("programs", "programs", "count"), Column("failed", "failed", "count"),
            Column("wall_ns", "wall", "ns"), *_short("peak"), Column("share_of_cpu", "of CPU", "percent"),
            Column("share_of_io", "of disk", "percent"), *([Column("cost_used", "cost", "money")] if with_cost else []),
            *verdict.COLUMNS,
        ]  # fmt: skip
    return [
        Column("tool", "tool"), Column("tasks", "tasks"), Column("programs", "programs", "count"),
        Column("failed", "failed", "count"), Column("wall_ns", "wall", "ns"), *_USAGE,
        Column("share_of_cpu", "share of CPU", "percent"), Column("share_of_io", "share of storage I/O", "percent"),
        Column("bound", "bound"), *_VERDICT, Column("cost_used", "cost used", "money"),
    ]  # fmt: skip


def _failures(report: RunReport, is_short: bool) -> Table:
    rows = [dataclasses.asdict(f) | {"exit": exit_text(f.exit_code, f.exit_signal)} for f in report.failures]
    if is_short:
        columns = [
            Column("kind", "what"), Column("task", "task"), Column("time", "when", "time"), Column("sentence", "why"),
            Column("command", "command"), Column("chain", "then failed"),
            *([Column("recovered", "recovered")] if any(f.recovered for f in report.failures) else []),
        ]  # fmt: skip
    else:
        columns = [
            *(Column(n, n) for n in ("kind", "task_id", "task", "program_id", "tool", "command")),
            *(Column(n, n) for n in ("exit_code", "exit_signal")),
            Column("time", "time", "time"),
            *(Column(n, n) for n in ("sentence", "evidence", "chain", "victims", "recovered")),
        ]  # fmt: skip
    return Table("failures", "Why it failed" if report.state == "FAILED" else "Failures", columns, rows)


def _programs(report: RunReport) -> Table:
    columns = [
        *(Column(n, n) for n in ("program_id", "parent_program_id", "tool", "exe", "command")),
        *(Column(n, n) for n in ("task_id", "task", "host_name")),
        Column("pid", "pid", "number"), Column("start_time", "start", "time"), Column("end_time", "end", "time"),
        *(Column(n, n) for n in ("exit_code", "exit_signal", "oom_killed")), Column("cpu_ns", "CPU", "ns"),
        *(Column(n, n, "size") for n in ("peak_rss_bytes", "read_bytes", "write_bytes", "net_bytes")),
        Column("overhead", "overhead"),
    ]  # fmt: skip
    return Table("programs", "Programs", columns, [dataclasses.asdict(p) for p in report.programs])


def _facts(report: RunReport) -> list[tuple[str, str]]:
    usage, e = report.usage, report.efficiency
    ended = ended_by(report.exit_code, report.exit_signal)
    what = " ".join(w for w in (report.pipeline, report.run_name and f"({report.run_name})") if w) or "-"
    hosts = [
        h["host_name"]
        + (f": {h['cpus']} CPUs, {units.size(h['memory_bytes'])}" if h["cpus"] else "")
        + (f", {h['instance_type']}" if h["instance_type"] else "")
        for h in report.hosts
    ]
    cpu = _sum(usage.cpu_user_ns, usage.cpu_system_ns)
    asked = ""
    if e.cpu is not None:
        of = "the host's CPUs" if e.over_host else f"{e.requested_cpus:g} CPUs requested"
        asked = f"; {units.percent(e.cpu)} of {of}"
    memory = ""
    if e.memory is not None and not e.over_host:
        memory = f"; {units.percent(e.memory)} of {units.size(e.requested_memory_bytes)} requested"
    together = f"{units.size(report.peak_memory_bytes)} at most, " if report.peak_memory_bytes is not None else ""
    facts = [
        ("state", f"{report.state}, {ended}" if ended else report.state),
        ("pipeline", what),
        ("engine", report.engine or "-"),
        ("command", report.command or "-"),
        ("hosts", "; ".join(hosts)),
        ("time", f"{units.clock(report.start_time)} to {units.clock(report.end_time) if report.end_time else 'now'}, "
                 f"{units.duration(report.wall_ns)}"),
        ("CPU", f"{units.duration(cpu)} ({units.duration(usage.cpu_user_ns)} user, "
                f"{units.duration(usage.cpu_system_ns)} system), "
                f"{report.parallelism or 0:.2f} CPUs busy on average{asked}; "
                f"waited {units.duration(usage.run_delay_ns)} for a CPU"),
        ("memory", f"{together}{units.size(usage.peak_rss_bytes)} the largest program; all "
                   f"together {units.size(usage.mean_rss_bytes)} on average, what they share counted for each{memory}"),
        ("I/O", f"storage {units.size(usage.read_bytes)} read, {units.size(usage.write_bytes)} written; calls "
                f"{units.size(usage.rchar)} read, {units.size(usage.wchar)} written; network "
                f"{units.size(usage.net_rx_bytes)} in, {units.size(usage.net_tx_bytes)} out"),
        ("programs", f"{report.programs_total:,}; {report.failed_programs:,} ended with a code other than 0 or by a "
                     "signal"),
    ]  # fmt: skip
    facts += [(name, text) for name, text in _words(report).items() if text]
    cost = report.cost
    if cost.used is not None or cost.reserved is not None:
        facts.append(
            (
                "cost",
                f"{units.money(cost.used, cost.currency)} used, {units.money(cost.reserved, cost.currency)} reserved",
            )
        )
    return facts + _energy(report)


def _energy_heading(tasks: list[TaskRow]) -> str | None:
    """That of a column of energy, which says whether it is modelled; None: no task has any."""
    sources = {t.energy.source for t in tasks if t.energy.joules is not None}
    if not sources:
        return None
    return "energy" if MODELLED not in sources else "modelled energy" if len(sources) == 1 else "energy, part modelled"


def _energy(report: RunReport) -> list[tuple[str, str]]:
    """Its energy with the source, and the residue of each host that has a meter."""
    facts = []
    e = report.energy
    if e.joules is not None:
        how = "modelled: CPU time times watts, no meter" if e.source == MODELLED else f"share of CPU time, {e.source}"
        facts.append(("energy", f"{units.energy(e.joules)} ({how})"))
    for host in report.hosts:
        h = host["energy"]
        if h is not None:
            facts.append(
                (
                    "host energy",
                    f"{host['host_name']}: {units.energy(h.joules)} meanwhile ({h.source}): "
                    f"{units.energy(h.attributed_joules)} by runs; residue "
                    f"{units.energy(h.unattributed_joules)} by what else ran, {units.energy(h.idle_joules)} idle",
                )
            )
    return facts


_SIZES = ("cpus", "memory_bytes", "time_ns")
_CONFIDENCE = ("low", "medium", "high")


def _advice(all_of: list[Recommendation]) -> list[Table]:
    """Recommendations for people: sizes as a line a task, all else as sentences."""
    by_task: dict[str, list[Recommendation]] = {}
    for r in all_of:
        if r.what in _SIZES:
            by_task.setdefault(r.task, []).append(r)
    sizes = [
        {"task": task, "runs": max(r.runs for r in own), "saving": _add(r.saving for r in own)}
        | {r.what: r.recommended for r in own}
        | {f"now_{r.what}": r.current for r in own}
        | {"confidence": min((r.confidence for r in own), key=_CONFIDENCE.index)}
        for task, own in by_task.items()
    ]
    kinds: dict[str, Kind] = {"cpus": "number", "memory_bytes": "size", "time_ns": "ns"}
    titles = {"cpus": "CPUs", "memory_bytes": "memory", "time_ns": "time"}
    columns = [Column("task", "task")]
    for name in _SIZES:
        if any(r.get(f"now_{name}") is not None for r in sizes):
            columns.append(Column(f"now_{name}", f"{titles[name]} now", kinds[name]))
        columns.append(Column(name, titles[name], kinds[name]))
    columns += [Column("runs", "executions", "count"), Column("confidence", "confidence")]
    if any(r["saving"] is not None for r in sizes):
        columns.append(Column("saving", "saving", "money"))
    others = [dataclasses.asdict(r) for r in all_of if r.what not in _SIZES]
    note = "why, and as configuration: sluice tune recommend"
    return [
        Table("recommendations", "Recommended sizes", columns, sizes, note if sizes else ""),
        Table("advice", "Recommendations", [Column("task", "task"), Column("sentence", "")], others),
    ]


def _lacks(report: RunReport, is_short: bool) -> Table:
    """Why nothing is recommended for tasks: for people, those of one reason together."""
    title = "Too little evidence: nothing is recommended"
    if not is_short:
        columns = [Column("pipeline", "pipeline"), Column("task", "task"), Column("lack", "why")]
        every = [{"pipeline": report.pipeline, "task": x.task, "lack": x.why} for x in report.lacks]
        return Table("too_little_evidence", title, columns, every)
    rows = [{"tasks": tasks or None, "lack": why} for tasks, why in by_reason(report.lacks)]
    note = UNNAMED if report.pipeline is None and any(x.task for x in report.lacks) else ""
    return Table("too_little_evidence", title, [Column("tasks", "task"), Column("lack", "why")], rows, note)


def _add(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _recommendations(all_of: list[Recommendation]) -> Table:
    columns = [
        *(Column(n, n) for n in ("pipeline", "task", "what", "sentence")), Column("current", "current", "number"),
        Column("recommended", "recommended", "number"), Column("runs", "runs", "count"),
        Column("confidence", "confidence"), Column("evidence", "evidence"), Column("saving", "saving", "money"),
    ]  # fmt: skip
    return Table("recommendations", "Recommendations", columns, [dataclasses.asdict(r) for r in all_of])


def document(report: RunReport, is_short: bool = True) -> Document:
    """The report as tables. is_short: for people, with the columns that fit a terminal; else every column, for CSV."""
    with_cost = report.cost.used is not None
    tasks = [t for t in report.tasks if t.programs or t.task_id != "-"]
    shown = tasks if not is_short or len(tasks) <= TASKS_SHOWN else _worth_showing(tasks)
    columns = _task_columns(
        is_short,
        with_cost,
        (any(t.efficiency.requested_cpus for t in tasks), any(t.efficiency.requested_memory_bytes for t in tasks)),
        any((t.attempt or 1) > 1 for t in tasks),
        len(report.hosts) > 1,
        _energy_heading(tasks),
    )
    note = "* on the critical path: the chain of tasks that the run's end waited for" if report.critical_path else ""
    if len(shown) < len(tasks):
        note += f"; {len(tasks) - len(shown)} of {len(tasks)} tasks are left out: --format csv has all"
    tools = report.tools if not is_short else report.tools[:TOOLS_SHOWN]
    tables = [
        _failures(report, is_short),
        Table("tasks", "Tasks", columns, [_task(t, is_short) for t in shown], note),
        Table(
            "tools", "Tools", _tool_columns(is_short, with_cost),
            [_tool(t, is_short) for t in tools],
            f"{len(report.tools) - len(tools)} smaller ones are omitted" if len(tools) < len(report.tools) else "",
        ),
        *([] if is_short else [_programs(report)]),
        Table(
            "observations", "Observations",
            [Column("severity", ""), Column("kind", "what"), Column("sentence", "")] if is_short
            else [Column(n, n) for n in ("kind", "severity", "task_id", "sentence", "evidence")],
            [dataclasses.asdict(o) for o in report.observations],
        ),
        *(_advice(report.recommendations) if is_short else [_recommendations(report.recommendations)]),
        _lacks(report, is_short),
    ]  # fmt: skip
    return Document(
        title=f"run {report.run_id}",
        facts=_facts(report),
        tables=tables,
        warnings=report.warnings,
        data=_data(report),
        main="tasks",
        currency=report.cost.currency,
    )


def _worth_showing(tasks: list[TaskRow]) -> list[TaskRow]:
    """Failed tasks, those on the critical path and the longest, in their order."""
    ranked = sorted(
        tasks,
        key=lambda t: (not (t.exit_signal or t.exit_code), not t.on_critical_path, -(t.wall_ns or 0)),
    )
    chosen = {id(t) for t in ranked[:TASKS_SHOWN]}
    return [t for t in tasks if id(t) in chosen]


def _data(report: RunReport) -> dict[str, Any]:
    """What --format json prints: the report, with gaps as times by name."""
    data = dict(vars(report))
    data["gaps"] = [{"start_time": a, "end_time": b} for a, b in report.gaps]
    return data


def run_list(runs: list[Run], failed_tasks: dict[str, tuple[int, int]], now_us: int) -> Document:
    """`sluice tune --list`. failed_tasks: run_id -> (tasks, failed ones)."""
    rows = []
    for run in runs:
        count, bad = failed_tasks.get(run.run_id, (0, 0))
        rows.append(
            {
                "start_time": run.start_time, "pipeline": run.first("pipeline"), "run_name": run.first("run_name"),
                "run_id": run.run_id, "state": run.state(now_us, bool(bad) if count else None), "wall_ns": run.wall_ns,
                "tasks": count, "failed_tasks": bad, "programs": run.total("programs"),
                "hosts": len({p["host_id"] for p in run.parts}),
            }
        )  # fmt: skip
    columns = [
        Column("start_time", "started", "time"), Column("pipeline", "pipeline"),
        *([Column("run_name", "name")] if any(r["run_name"] for r in rows) else []),
        Column("run_id", "run"), Column("state", "state"), Column("wall_ns", "wall", "ns"),
        Column("tasks", "tasks", "count"), Column("failed_tasks", "failed", "count"),
        Column("programs", "programs", "count"),
    ]  # fmt: skip
    return Document(
        f"{len(rows)} run{'' if len(rows) == 1 else 's'}", tables=[Table("runs", "", columns, rows)], main="runs"
    )
