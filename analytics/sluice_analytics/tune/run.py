# SPDX-License-Identifier: Apache-2.0
"""Everything that the lake knows of one run: `load` makes the RunReport behind `sluice tune RUN`.

Totals of a run and of a task are those of its own records, which the agent added up, and so are `demand` and
`denied`; what no task accounts for (the driver, the engine's overhead) is the row "-". What the agent has no sum of
(tools, curves, mean memory) is added up here from pieces of programs, which lose nothing (model/activity.py).
"""

from __future__ import annotations

from ..lake.columns import BILL, SUMS
from ..lake.session import Row, Scope, Session
from ..model import verdict
from ..model.activity import pieces
from ..model.records import programs, run_scope, tasks
from ..prices import Prices, add
from . import energy, failure, observations, recommend
from .critical_path import critical_path
from .evidence import BY_DESCENT
from .find import Run, find_run, now
from .losses import losses_of
from .money import Host, cost, efficiency, hosts_of, reserved_cost, unpriced, used_cost
from .run_report import Cost, Efficiency, Resources, RunReport, TaskRow
from .timeline import gaps, timeline
from .tools import COLUMNS, Key, Part, by_host, most, parts_of, program_rows, resources_of, tool_rows, total_of

NO_TASK = "-"
"""task_id and name of what belongs to the run and to no task"""

SHARES = ("cpu", "run_delay", "block_io", "memory", "idle")


def load(
    session: Session,
    run_id: str | None = None,
    *,
    prices: Prices | None = None,
    programs_limit: int | None = 5000,
    with_recommendations: bool = True,
    watts: float | None = None,
    now_us: int | None = None,
) -> RunReport:
    """The report of a run: run_id is its id, a unique beginning of it, or its run_name; None: the latest.

    programs_limit: how many programs to list, those that matter most; None: all. watts: of a busy CPU, by which energy
    is modelled where no meter counted it; None: it is unknown there. now_us: the time by which a
    run without an end is judged to be running (default: now). NotFound, with the runs there are, where there
    is none such.
    """
    run = find_run(session, run_id)
    scope = run_scope(session, run.run_id)
    usage, last = run.usage, run.last_time
    names = {str(p["host_id"]): str(p["host_name"]) for p in run.parts}
    hosts = hosts_of(session, names, run.start_time, last, prices)
    all_programs = session.kept(programs(session, scope).select(*COLUMNS))
    activity = pieces(session, scope)
    parts = parts_of(activity, all_programs, session, last)
    rows = _task_rows(session, scope, parts, hosts, prices, watts)
    path = critical_path(rows, last)
    for task in path:
        task.on_critical_path = True
    driven = [t for t in rows if failure.is_driven(t)]
    failed_tasks = any(failure.is_failed(t) and not t.retried for t in driven) if driven else None
    interval = max((r["interval_ns"] // 1000 for h in hosts.values() for r in h.records), default=0)
    state = run.state(now() if now_us is None else now_us, failed_tasks, interval)
    tools = tool_rows(parts, rows, run.wall_ns, hosts)
    failed = {t.tool: t.failed for t in tools if t.failed}
    found = failure.find(session, scope, all_programs, rows, state == "FAILED", failed)
    quiet = gaps(session, activity, bool(rows), run.start_time, last)
    of_hosts = by_host(parts)
    everything = total_of(of_hosts.values())
    peak_memory = run.largest("peak_memory_bytes")
    listed = program_rows(session, all_programs, programs_limit)
    contended = observations.contention(rows, hosts)
    whole_energy = energy.total(energy.of_record(p, _cpu(p), watts) for p in run.parts)
    own = [*rows, _no_task(run, parts, hosts, prices)]
    own[-1].energy = energy.without(whole_energy, [t.energy for t in rows])
    stuck = observations.stuck(session, scope)
    seen = [
        *stuck,
        *observations.stragglers(rows, _tools_of_unnamed(rows, parts)),
        *contended,
        *observations.starved(rows, contended),
        *observations.throttled(rows),
        *observations.reclaimed(rows),
        *observations.contended(rows),
        *observations.pressure_of_hosts(hosts, run.start_time, last),
        *observations.gap_observations(quiet, rows, run.wall_ns),
        *(observations.quiet(session, all_programs, activity, last, stuck) if run.end_time is None else []),
        *observations.retries(rows),
        *observations.idle(rows),
        *observations.unused(rows),
        *observations.who_made_io(tools),
        *observations.passed_over(found.passed_over),
    ]
    report = RunReport(
        run_id=run.run_id,
        run_name=run.first("run_name"),
        pipeline=run.first("pipeline"),
        engine=_engine(run, rows),
        command=run.first("command"),
        work_dir=run.first("work_dir"),
        hosts=[h.public() | {"energy": energy.of_host(h, run.start_time, last)} for h in hosts.values()],
        state=state,
        start_time=run.start_time,
        end_time=run.end_time,
        last_time=last,
        wall_ns=run.wall_ns,
        exit_code=run.exit_code,
        exit_signal=run.exit_signal,
        programs_total=run.total("programs") or 0,
        failed_programs=run.total("failed_programs") or 0,
        lost_events=run.total("lost_events") or 0,
        parallelism=_parallelism(usage, run.wall_ns),
        bound=_one_of(run, "bound"),
        **verdict.agreed(verdict.of_record(p) for p in run.parts).fields,
        peak_memory_bytes=peak_memory,
        peak_memory_source=next(
            (p["peak_memory_source"] for p in run.parts if p["peak_memory_bytes"] == peak_memory), None
        ),
        usage=_resources(usage, everything, run.wall_ns),
        efficiency=efficiency(
            _cpu(usage), run.wall_ns, most(peak_memory, usage["peak_rss_bytes"]),
            run.total("requested_cpus"), run.largest("requested_memory_bytes"), list(hosts.values()),
        ),
        cost=_run_cost(run, of_hosts, rows, hosts, prices),
        energy=whole_energy,
        tasks=own,
        tools=tools,
        programs=listed,
        programs_left_out=max(0, everything.programs - len(listed)),
        failures=found.failures,
        observations=seen,
        recommendations=[],
        timeline=timeline(session, activity, all_programs, rows, run.start_time, last),
        gaps=quiet,
        critical_path=[t.task_id for t in path],
        losses=losses_of(session, run, {h: of_hosts[h].programs if h in of_hosts else 0 for h in hosts}),
        warnings=list(session.warnings),
    )  # fmt: skip
    if with_recommendations:
        report.recommendations, report.lacks = recommend.of_run(session, run, (t.name for t in rows), prices)
    report.warnings += unpriced(hosts.values(), prices) if prices else []
    report.warnings += _warnings(report, found.tasks_left_out)
    return report


def _tools_of_unnamed(rows: list[TaskRow], parts: dict[Key, Part]) -> dict[str, frozenset[str]]:
    """The tools of tasks that have their command's name."""
    unnamed = {t.task_id for t in rows if t.source == BY_DESCENT}
    tools: dict[str, set[str]] = {}
    for task_id, tool, _ in parts:
        if task_id is not None and task_id in unnamed:
            tools.setdefault(task_id, set()).add(tool)
    return {task_id: frozenset(names) for task_id, names in tools.items()}


def _task_rows(
    session: Session,
    scope: Scope,
    parts: dict[Key, Part],
    hosts: dict[str, Host],
    prices: Prices | None,
    watts: float | None,
) -> list[TaskRow]:
    """The tasks of a run in the order in which they began, with attempts and retries."""
    latest: dict[tuple[str, str, int], Row] = {}
    for row in session.rows(tasks(session, scope)):
        # The agent may correct an attempt's number while it runs: one row a start, the one that knows most.
        key = (row["task_id"] or "", row["host_id"], row["start_time"])
        old = latest.get(key)
        if old is None or (row["phase"] == "END", row["time"]) > (old["phase"] == "END", old["time"]):
            latest[key] = row
    by_task: dict[tuple[str | None, str], Part] = {}
    for (task_id, _, host_id), part in parts.items():
        by_task.setdefault((task_id, host_id), Part()).add(part)
    rows = []
    for row in sorted(latest.values(), key=lambda r: (r["start_time"], r["task_id"] or "")):
        part = by_task.get((row["task_id"], row["host_id"]), Part())
        rows.append(_task_row(row, part, hosts.get(row["host_id"]), prices, watts))
    _count_attempts(rows)
    return rows


def _task_row(row: Row, part: Part, host: Host | None, prices: Prices | None, watts: float | None) -> TaskRow:
    cpus, memory = row["requested_cpus"], row["requested_memory_bytes"]
    return TaskRow(
        task_id=row["task_id"] or "",
        name=row["task"] or row["name"] or "unknown",
        sample=row["sample"],
        engine=row["engine"],
        host_name=row["host_name"],
        attempt=row["attempt"],
        start_time=row["start_time"],
        end_time=row["end_time"],
        wall_ns=row["wall_ns"],
        parallelism=row["parallelism"],
        programs=row["programs"],
        failed_programs=row["failed_programs"],
        exit_code=row["exit_code"],
        exit_signal=row["exit_signal"],
        bound=row["bound"],
        **verdict.of_record(row).fields,
        shares={name: row["share_" + name] for name in SHARES},
        bill={name: row["bill_" + name] for name in BILL},
        own_bill={name: row["own_" + name] for name in BILL},
        peak_memory_bytes=row["peak_memory_bytes"],
        peak_memory_source=row["peak_memory_source"],
        usage=_resources(row, part, row["wall_ns"]),
        efficiency=efficiency(
            _cpu(row), row["wall_ns"], most(row["peak_memory_bytes"], row["peak_rss_bytes"]), cpus, memory,
            [host] if host else [],
        ),
        cost=cost(
            used_cost(host, _cpu(row), part.rss_byte_ns), reserved_cost(host, row["wall_ns"], cpus, memory), prices
        ),
        energy=energy.of_record(row, _cpu(row), watts),
        work_dir=row["work_dir"],
        source=row["source"],
    )  # fmt: skip


def _count_attempts(rows: list[TaskRow]) -> None:
    """Which executions are retries: of the same name and sample, begun after a failed one had ended.

    The engine's own count wins; where it has none, an execution is attempt n + 1 of a failed attempt n. Each
    failed one has one successor at most, so that equal tasks without a sample are not taken for each other's
    retries as long as they succeed.
    """
    open_failures: dict[tuple[str, str | None], list[TaskRow]] = {}
    for row in rows:  # in the order in which they began
        waiting = open_failures.setdefault((row.name, row.sample), [])
        before = next((f for f in waiting if (f.end_time or 0) <= row.start_time), None)
        is_first = row.attempt == 1
        if before is not None and not is_first:
            waiting.remove(before)
            before.retried = True
        if row.attempt is None:
            row.attempt = (before.attempt or 1) + 1 if before is not None else 1
        if failure.is_failed(row) and row.end_time is not None:
            waiting.append(row)


def _no_task(run: Run, parts: dict[Key, Part], hosts: dict[str, Host], prices: Prices | None) -> TaskRow:
    """The row of what belongs to the run and to no task."""
    own = {key: part for key, part in parts.items() if key[0] is None}
    of_hosts = by_host(own)
    whole = total_of(of_hosts.values())
    used = add([used_cost(hosts.get(h), p.cpu_ns, p.rss_byte_ns) for h, p in of_hosts.items()])
    wall = run.wall_ns
    return TaskRow(
        task_id=NO_TASK,
        name=NO_TASK,
        sample=None,
        engine=run.first("engine"),
        host_name=str(run.parts[0]["host_name"]),
        attempt=None,
        start_time=run.start_time,
        end_time=run.end_time,
        wall_ns=wall,
        parallelism=whole.cpu_ns / wall if whole.cpu_ns is not None and wall else None,
        programs=whole.programs,
        failed_programs=whole.failed,
        exit_code=None,
        exit_signal=None,
        bound=None,
        shares=dict.fromkeys(SHARES),
        usage=resources_of(whole, wall),
        efficiency=Efficiency(),
        cost=Cost(used=used, currency=prices.currency if prices else "USD"),
    )


def _resources(totals: Row, part: Part, wall_ns: int | None) -> Resources:
    """A record's own totals, with the mean memory of its programs' pieces."""
    own = Part({name: totals[name] for name in SUMS}, totals["peak_rss_bytes"], part.rss_byte_ns)
    return resources_of(own, wall_ns)


def _cpu(row: Row) -> int | None:
    known = [row[name] for name in ("cpu_user_ns", "cpu_system_ns") if row[name] is not None]
    return sum(known) if known else None


def _parallelism(usage: Row, wall_ns: int) -> float | None:
    cpu = _cpu(usage)
    return cpu / wall_ns if cpu is not None and wall_ns else None


def _one_of(run: Run, name: str) -> str | None:
    """What all hosts agree on."""
    values = {p[name] for p in run.parts}
    value = values.pop() if len(values) == 1 else None
    return None if value is None else str(value)


def _engine(run: Run, rows: list[TaskRow]) -> str | None:
    """What drives it: what `sluice run` started has the engine of its tasks."""
    engine = run.first("engine")
    of_tasks = {t.engine for t in rows if t.engine}
    return of_tasks.pop() if engine in (None, "sluice") and len(of_tasks) == 1 else engine


def _run_cost(
    run: Run, of_hosts: dict[str, Part], rows: list[TaskRow], hosts: dict[str, Host], prices: Prices | None
) -> Cost:
    """Used: by each host's own share. Reserved: by the run's own request, else its tasks' together."""
    shares = {h: of_hosts.get(h, Part()) for h in hosts}
    used = add([used_cost(hosts[h], p.cpu_ns, p.rss_byte_ns) for h, p in shares.items()])
    own = [
        reserved_cost(hosts[p["host_id"]], p["wall_ns"], p["requested_cpus"], p["requested_memory_bytes"])
        for p in run.parts
    ]
    reserved = add(own)
    return cost(used, add([t.cost.reserved for t in rows]) if reserved is None else reserved, prices)


def _warnings(report: RunReport, failed_left_out: int) -> list[str]:
    said = []
    if report.lost_events:
        said.append(f"{report.lost_events} kernel events were lost while it ran: totals lack these programs")
    for loss in report.losses:
        said.append(f"{loss.host_name}: {loss.count} lost at {loss.place}: {loss.reason}")
    if report.state == "UNKNOWN" and report.end_time is None:
        said.append("the lake ends before the run does: later records are missing")
    if failed_left_out:
        said.append(f"{failed_left_out} more failed tasks were not examined")
    return said
