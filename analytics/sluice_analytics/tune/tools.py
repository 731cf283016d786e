# SPDX-License-Identifier: Apache-2.0
"""What a run's programs used, added up by task, tool and host; and the programs themselves.

The sums are over pieces (model/activity.py), which add up to the END record of each program exactly and
hold what the agent has reported of those that still run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..lake.columns import SUMS
from ..lake.expression import ibis
from ..lake.session import Row, Session
from ..model import verdict
from ..model.records import failed
from ..prices import add
from .money import Host, used_cost
from .run_report import Cost, ProgramRow, Resources, TaskRow, ToolRow

if TYPE_CHECKING:
    import ibis.expr.types as ir

COMMAND_CHARACTERS = 300
UNNAMED = "unknown"
"""The tool of a program that has neither a tool, nor a comm"""

COLUMNS = (
    "program_id", "parent_program_id", "program_index", "tool", "comm", "exe", "argv", "task_id", "task", "host_id",
    "host_name", "pid", "phase", "program_start_time", "end_time", "end_reason", "exit_code", "exit_signal",
    "oom_killed", "cpu_user_ns", "cpu_system_ns", "peak_rss_bytes", "read_bytes", "write_bytes", "net_rx_bytes",
    "net_tx_bytes", "overhead",
)  # fmt: skip
"""The columns of programs that a report reads (model/records.programs)"""


@dataclasses.dataclass
class Part:
    """What programs of one task and tool used on one host; add() makes larger ones."""

    sums: dict[str, int | None] = dataclasses.field(default_factory=lambda: dict.fromkeys(SUMS))
    peak_rss_bytes: int | None = None
    rss_byte_ns: int | None = None
    """Resident bytes times nanoseconds, over all its programs"""
    programs: int = 0
    failed: int = 0
    wall_ns: int = 0

    def add(self, other: Part) -> None:
        """Adds another's; what is unknown there leaves this as it is."""
        sums = self.sums
        for name, value in other.sums.items():
            if value is not None:
                own = sums[name]
                sums[name] = value if own is None else own + value
        self.peak_rss_bytes = most(self.peak_rss_bytes, other.peak_rss_bytes)
        self.rss_byte_ns = plus(self.rss_byte_ns, other.rss_byte_ns)
        self.programs += other.programs
        self.failed += other.failed
        self.wall_ns += other.wall_ns

    @property
    def cpu_ns(self) -> int | None:
        """CPU time, user and system."""
        return plus(self.sums["cpu_user_ns"], self.sums["cpu_system_ns"])


def plus(a: int | None, b: int | None) -> int | None:
    """The sum of what is known, as the agent adds programs up."""
    return b if a is None else a if b is None else a + b


def most(a: int | None, b: int | None) -> int | None:
    """The larger of what is known."""
    return b if a is None else a if b is None else max(a, b)


Key = tuple[str | None, str, str]
"""task_id (None: no task's), tool, host_id"""


def parts_of(activity: ir.Table, all_programs: ir.Table, session: Session, last_us: int) -> dict[Key, Part]:
    """What each task, tool and host of a run used, from its pieces and its programs."""
    rss = ibis.coalesce(activity.rss_bytes, activity.peak_rss_bytes)
    used = activity.mutate(tool=_tool(activity)).group_by("task_id", "tool", "host_id").aggregate(
        **{name: activity[name].sum() for name in SUMS},
        peak_rss_bytes=activity.peak_rss_bytes.max(),
        rss_byte_us=(rss * (activity.end_us - activity.start_us)).cast("float64").sum(),
    )  # fmt: skip
    parts: dict[Key, Part] = {}
    for row in session.rows(used):
        rss_byte_ns = None if row["rss_byte_us"] is None else round(row["rss_byte_us"] * 1000)
        part = Part({name: row[name] for name in SUMS}, row["peak_rss_bytes"], rss_byte_ns)
        _put(parts, row, part)
    t = all_programs
    until = ibis.coalesce(t.end_time, ibis.greatest(t.program_start_time, ibis.literal(last_us, "int64")))
    each = t.mutate(tool=_tool(t), _wall=(until - t.program_start_time) * 1000, _failed=failed(t).cast("int64"))
    counted = each.group_by("task_id", "tool", "host_id").aggregate(
        programs=each.count(), failed=each._failed.sum(), wall_ns=each._wall.sum()
    )
    for row in session.rows(counted):
        _put(parts, row, Part(programs=row["programs"], failed=int(row["failed"]), wall_ns=int(row["wall_ns"])))
    return parts


def _put(parts: dict[Key, Part], row: Row, part: Part) -> None:
    key = (row["task_id"], row["tool"] or UNNAMED, row["host_id"])
    if key in parts:
        parts[key].add(part)
    else:
        parts[key] = part


def _tool(t: ir.Table) -> ir.StringValue:
    tool: ir.StringValue = t.tool.fill_null(t.comm)
    return tool


def total_of(parts: Iterable[Part]) -> Part:
    """All of them together."""
    whole = Part()
    for part in parts:
        whole.add(part)
    return whole


def by_host(parts: dict[Key, Part]) -> dict[str, Part]:
    """What was used on each host, by host_id."""
    found: dict[str, Part] = {}
    for (_, _, host_id), part in parts.items():
        found.setdefault(host_id, Part()).add(part)
    return found


def resources_of(part: Part, wall_ns: int | None) -> Resources:
    """A part as a report has it; mean_rss_bytes over wall_ns."""
    names = {f.name for f in dataclasses.fields(Resources)} & set(SUMS)
    mean = part.rss_byte_ns / wall_ns if part.rss_byte_ns is not None and wall_ns else None
    return Resources(
        **{name: part.sums[name] for name in names}, peak_rss_bytes=part.peak_rss_bytes, mean_rss_bytes=mean
    )


def tool_rows(parts: dict[Key, Part], tasks: list[TaskRow], wall_ns: int, hosts: dict[str, Host]) -> list[ToolRow]:
    """One row a tool, the one with the most CPU time first."""
    by_id = {t.task_id: t for t in tasks}
    by_tool: dict[str, dict[Key, Part]] = {}
    for key, part in parts.items():
        by_tool.setdefault(key[1], {})[key] = part
    on_hosts = {tool: by_host(own) for tool, own in by_tool.items()}
    totals = {tool: total_of(shares.values()) for tool, shares in on_hosts.items()}
    whole = total_of(totals.values())
    rows = []
    for tool, own in by_tool.items():
        part = totals[tool]
        names = {by_id[task_id].name for task_id, _, _ in own if task_id in by_id}
        its_tasks = {task_id: by_id.get(task_id) if task_id is not None else None for task_id, _, _ in own}
        bounds = {t.bound if t else None for t in its_tasks.values()}
        money = add([used_cost(hosts.get(h), p.cpu_ns, p.rss_byte_ns) for h, p in on_hosts[tool].items()])
        rows.append(
            ToolRow(
                tool=tool,
                tasks=sorted(names),
                programs=part.programs,
                failed=part.failed,
                wall_ns=part.wall_ns,
                usage=resources_of(part, wall_ns),
                bound=bounds.pop() if len(bounds) == 1 else None,
                **verdict.agreed(verdict_of(t) for t in its_tasks.values()).fields,
                share_of_cpu=_share(part.cpu_ns, whole.cpu_ns),
                share_of_io=_share(storage(part), storage(whole)),
                cost=Cost(used=money),
            )
        )
    return sorted(rows, key=lambda r: (-(r.share_of_cpu or 0), r.tool))


def verdict_of(task: TaskRow | None) -> verdict.Verdict:
    """A task's verdict; None: of what belongs to no task, of which there is none."""
    names = [f.name for f in dataclasses.fields(verdict.Verdict)]
    return verdict.Verdict(**{name: getattr(task, name) for name in names}) if task else verdict.Verdict()


def storage(part: Part) -> int | None:
    """Bytes from and to storage."""
    return plus(part.sums["read_bytes"], part.sums["write_bytes"])


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def program_rows(session: Session, all_programs: ir.Table, limit: int | None) -> list[ProgramRow]:
    """The programs of a run that matter most, by their beginning: failed ones, then the longest; None: all.

    all_programs: COLUMNS of its programs.
    """
    t = all_programs
    wall = ibis.coalesce(t.end_time, ibis.literal(2**62, "int64")) - t.program_start_time
    ranked = t.mutate(_failed=failed(t).cast("int64"), _wall=wall)
    if limit is not None:
        ranked = ranked.order_by(ranked._failed.desc(), ranked._wall.desc(), ranked.program_id).limit(limit)
    chosen = ranked.select(*COLUMNS)
    rows = [program_row(row) for row in session.rows(chosen)]
    return sorted(rows, key=lambda p: (p.start_time, p.program_id))


def program_row(row: Row) -> ProgramRow:
    """One program's record as a report has it."""
    return ProgramRow(
        program_id=row["program_id"],
        parent_program_id=row["parent_program_id"],
        tool=row["tool"] or row["comm"],
        exe=row["exe"],
        command=command_of(row),
        task_id=row["task_id"],
        task=row["task"],
        host_name=row["host_name"],
        pid=row["pid"],
        start_time=row["program_start_time"],
        end_time=row["end_time"],
        exit_code=row["exit_code"],
        exit_signal=row["exit_signal"],
        oom_killed=bool(row["oom_killed"]),
        cpu_ns=plus(row["cpu_user_ns"], row["cpu_system_ns"]),
        peak_rss_bytes=row["peak_rss_bytes"],
        read_bytes=row["read_bytes"],
        write_bytes=row["write_bytes"],
        net_bytes=plus(row["net_rx_bytes"], row["net_tx_bytes"]),
        overhead=bool(row["overhead"]),
    )


def command_of(row: dict[str, Any], most_characters: int = COMMAND_CHARACTERS) -> str:
    """The command line, cut; where arguments are not known, the executable or the kernel's name."""
    text = " ".join(row["argv"]) if row["argv"] else row["exe"] or row["comm"] or UNNAMED
    return text if len(text) <= most_characters else text[: most_characters - 1] + "…"
