# SPDX-License-Identifier: Apache-2.0
"""A run as one HTML page: no server, no network, no other file.

All that comes from records is foreign text (an argument may hold </script>, quotes, control characters). It
reaches the page once, as JSON whose <, > and & are escaped, in a script element that is data; page*.js puts it
into the document as text nodes alone. The page's Content-Security-Policy lets it run its own script, by hash,
and nothing else: no network, no eval, no handler in an attribute.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import html
import importlib.resources
import json
import math
import os
import string
from collections.abc import Iterable
from typing import Any

from ..spell import spell, spell_json
from ..tune.run import NO_TASK, SHARES
from ..tune.run_report import UNNAMED, ProgramRow, Resources, RunReport, TaskRow, by_reason, ended_badly

PROGRAMS = 5_000
"""Programs that the page lists: those that failed first, then the longest."""

TASKS = 2_000
"""Task executions that the page lists, chosen alike."""

TOOLS, FAILURES, SENTENCES, BINS = 500, 100, 300, 1_500
"""Tools by CPU time; failures; observations and recommendations, each; points of a curve."""

PAGE_BYTES = 2_950_000
"""What the page may weigh: commands are cut shorter until it does."""

COMMANDS = (300, 200, 120, 80, 40)
"""Characters of a command line, from the most to the least."""

_SCRIPTS = ("page.js", "page_table.js", "page_gantt.js", "page_timeline.js")
_NOTICE = "Contains Vega, Vega-Lite, Vega-Embed: Copyright University of Washington Interactive Data Lab, BSD-3-Clause."


def render(report: RunReport) -> str:
    """The page. A run with more programs or tasks than PROGRAMS and TASKS is cut; the page counts what is left out."""
    before, after = _shell(f"{report.run_name or report.pipeline or report.run_id} · sluice")
    room = PAGE_BYTES - len(before.encode()) - len(after.encode())
    data = ""
    for limit in COMMANDS:
        data = _json(payload(report, limit))
        if len(data.encode()) <= room:
            break
    return before + data + after


def payload(report: RunReport, command_chars: int = COMMANDS[0]) -> dict[str, Any]:
    """What the page's script reads. Times are microseconds since the run's start_us, tables columns of arrays.

    Texts that come again and again are numbers into `texts`; programs and tasks refer to each other by row.
    """
    texts = _Texts()
    tasks = _tasks(report)
    programs = _programs(report)
    task_at = {t.task_id: i for i, t in enumerate(tasks)}  # of several attempts the last
    program_at = {p.program_id: i for i, p in enumerate(programs)}
    return {
        "run": _run(report),
        "failures": [dataclasses.asdict(f) for f in report.failures[:FAILURES]],
        "observations": [dataclasses.asdict(o) for o in _worst_first(report)[:SENTENCES]],
        "recommendations": [dataclasses.asdict(r) for r in report.recommendations[:SENTENCES]],
        "lacks": _lacks(report),
        "losses": [dataclasses.asdict(x) for x in report.losses],
        "timeline": _timeline(report),
        "gaps": [[a - report.start_time, b - report.start_time] for a, b in report.gaps[:BINS]],
        "critical_path": [task_at[i] for i in report.critical_path if i in task_at],
        "tasks": _task_columns(tasks, report.start_time, texts),
        "tools": [_tool(t) for t in report.tools[:TOOLS]],
        "programs": _program_columns(programs, report.start_time, texts, task_at, program_at, command_chars),
        "named_programs": _named(report, program_at),
        "texts": texts.all,
        "share_names": SHARES,
        "usage_names": [f.name for f in dataclasses.fields(Resources)],
        "left_out": {
            "programs": report.programs_left_out + len(report.programs) - len(programs),
            "tasks": len(report.tasks) - len(tasks),
            "tools": max(0, len(report.tools) - TOOLS),
            "failures": max(0, len(report.failures) - FAILURES),
            "observations": max(0, len(report.observations) - SENTENCES),
            "recommendations": max(0, len(report.recommendations) - SENTENCES),
        },
        "command_chars": command_chars,
    }


def _lacks(report: RunReport) -> list[str]:
    """Why tasks have no recommendation: a sentence for each reason."""
    said = [f"{tasks}: {why}" if tasks else why for tasks, why in by_reason(report.lacks)]
    is_unnamed = report.pipeline is None and any(x.task for x in report.lacks)
    return [*said[: SENTENCES - 1], *([UNNAMED] if is_unnamed else [])]


class _Texts:
    """Each text once, and its number."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._at: dict[str, int] = {}

    def __call__(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text not in self._at:
            self._at[text] = len(self.all)
            self.all.append(text)
        return self._at[text]


def _programs(report: RunReport) -> list[ProgramRow]:
    """Those to list, by start: what a failure names, what failed, then the longest."""
    named = {i for f in report.failures for i in (f.program_id, *f.chain, *f.victims)}

    def rank(p: ProgramRow) -> tuple[bool, bool, int]:
        wall = (p.end_time if p.end_time is not None else report.last_time) - p.start_time
        return (p.program_id not in named, not (ended_badly(p.exit_code, p.exit_signal) or p.oom_killed), -wall)

    return sorted(sorted(report.programs, key=rank)[:PROGRAMS], key=lambda p: (p.start_time, p.pid))


def _tasks(report: RunReport) -> list[TaskRow]:
    kept = {*(f.task_id for f in report.failures), *report.critical_path}

    def rank(t: TaskRow) -> tuple[bool, bool, int]:
        is_kept = t.task_id in kept or t.task_id == NO_TASK
        return (not is_kept, not ended_badly(t.exit_code, t.exit_signal), -(t.wall_ns or 0))

    return sorted(sorted(report.tasks, key=rank)[:TASKS], key=lambda t: (t.task_id == NO_TASK, t.start_time, t.name))


def _worst_first(report: RunReport) -> list[Any]:
    order = {"ERROR": 0, "WARNING": 1}
    return sorted(report.observations, key=lambda o: order.get(o.severity, 2))


def _run(report: RunReport) -> dict[str, Any]:
    plain = (
        "run_id", "run_name", "pipeline", "engine", "command", "work_dir", "hosts", "state", "end_time", "last_time",
        "wall_ns", "exit_code", "exit_signal", "programs_total", "failed_programs", "lost_events", "parallelism",
        "demand", "waiting_for", "denied", "denied_share", "peak_memory_bytes", "warnings",
    )  # fmt: skip
    run = {name: getattr(report, name) for name in plain}
    run["start_us"] = report.start_time
    run["tasks_total"] = sum(t.task_id != NO_TASK for t in report.tasks)
    for name in ("usage", "efficiency", "cost"):
        run[name] = dataclasses.asdict(getattr(report, name))
    return run


def _columns(rows: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def _after(time: int | None, start: int) -> int | None:
    return None if time is None else time - start


def _short(value: float | None) -> float | None:
    """Four significant digits: what a page shows."""
    return None if value is None else float(f"{value:.4g}")


_TASK_TEXTS = ("name", "sample", "engine", "host_name", "demand", "waiting_for", "denied", "work_dir")


def _task_columns(tasks: list[TaskRow], start: int, texts: _Texts) -> dict[str, list[Any]]:
    def row(t: TaskRow) -> dict[str, Any]:
        return {
            "id": t.task_id,
            **{n: texts(getattr(t, n)) for n in _TASK_TEXTS},
            "start": t.start_time - start,
            "end": _after(t.end_time, start),
            "wall": t.wall_ns,
            "parallelism": _short(t.parallelism),
            **{n: getattr(t, n) for n in ("attempt", "programs", "failed_programs", "exit_code", "exit_signal")},
            "none": int(t.task_id == NO_TASK),
            "retried": int(t.retried),
            "denied_share": _short(t.denied_share),
            "peak_memory": t.peak_memory_bytes,
            "shares": [_short(t.shares.get(name)) for name in SHARES],
            "usage": [value if value is None else int(value) for value in dataclasses.asdict(t.usage).values()],
            "cpus": t.efficiency.requested_cpus,
            "memory": t.efficiency.requested_memory_bytes,
            "cpu_efficiency": _short(t.efficiency.cpu),
            "memory_efficiency": _short(t.efficiency.memory),
            "over_host": int(t.efficiency.over_host),
            "cost": _short(t.cost.used),
            "reserved": _short(t.cost.reserved),
        }

    return _columns(map(row, tasks))


def _tool(tool: Any) -> dict[str, Any]:
    row: dict[str, Any] = dataclasses.asdict(tool)
    return {**row, "tasks": row["tasks"][:50], "tasks_total": len(row["tasks"])}


def _program_columns(
    programs: list[ProgramRow],
    start: int,
    texts: _Texts,
    task_at: dict[str, int],
    program_at: dict[str, int],
    command_chars: int,
) -> dict[str, list[Any]]:
    def cut(command: str) -> str:
        return command if len(command) <= command_chars else command[: command_chars - 1] + "…"

    def row(p: ProgramRow) -> dict[str, Any]:
        return {
            "tool": texts(p.tool),
            "exe": texts(p.exe),
            "command": texts(cut(p.command)),
            "task": None if p.task_id is None else task_at.get(p.task_id),
            "task_name": texts(p.task),
            "parent": None if p.parent_program_id is None else program_at.get(p.parent_program_id),
            "host_name": texts(p.host_name),
            "pid": p.pid,
            "start": p.start_time - start,
            "end": _after(p.end_time, start),
            "exit_code": p.exit_code,
            "exit_signal": p.exit_signal,
            "flags": int(p.oom_killed) + 2 * int(p.overhead),
            "cpu": p.cpu_ns if p.cpu_ns is None else round(p.cpu_ns / 1000),
            "rss": p.peak_rss_bytes,
            "read": p.read_bytes,
            "written": p.write_bytes,
            "net": p.net_bytes,
        }

    return _columns(map(row, programs))


def _named(report: RunReport, program_at: dict[str, int]) -> dict[str, int]:
    """Rows of the programs that failures refer to by program_id."""
    wanted = (i for f in report.failures for i in (f.program_id, *f.chain, *f.victims))
    return {i: program_at[i] for i in wanted if i in program_at}


def _timeline(report: RunReport) -> dict[str, Any]:
    """The curves, of at most BINS points: neighbours are replaced by their mean, the last few by theirs."""
    line = report.timeline
    length = max((len(values) for values in line.series.values()), default=0)
    step = -(-length // BINS) or 1

    def thin(values: list[float]) -> list[float | None]:
        groups = (values[i : i + step] for i in range(0, len(values), step))
        return [_short(sum(g) / len(g)) for g in groups]

    return {
        "start": line.start_us - report.start_time,
        "bin": line.bin_us * step,
        "series": {name: thin(values) for name, values in line.series.items()},
    }


def _finite(value: Any) -> Any:
    """What JSON has a word for: no NaN and no infinity, which are unknown."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def _json(value: Any) -> str:
    """JSON that cannot end its script element, nor be read as markup, for any text in it."""
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return spell_json(text.encode("utf-8", "replace").decode())  # half a surrogate pair is no text


@functools.cache
def _file(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


CHARTS = "charts.json"
"""What _make_charts() makes, in a file beside this module: ahead.py writes it, and it is not in git"""


@functools.cache
def _charts() -> dict[str, str]:
    """Vega and the plots' specifications: those that were made ahead of the plots.py that is there, else made now."""
    try:
        charts: dict[str, str] = json.loads(_file(CHARTS))
        if charts["of"] == _plots():
            return charts
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return _make_charts()


def _plots() -> str:
    return hashlib.sha256(_file("plots.py").encode()).hexdigest()


def _make_charts() -> dict[str, str]:
    from . import plots  # Altair and the compiler of its charts take two seconds

    return {"of": _plots(), "library": plots.library(), "specs": _json(plots.specs())}


def write_charts() -> None:
    """Makes the file of charts."""
    path = os.path.join(os.path.dirname(__file__), CHARTS)
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(_make_charts(), f)
    os.replace(path + ".part", path)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _shell(title: str) -> tuple[str, str]:
    """The page before and after its data."""
    charts = _charts()
    library, script, style = charts["library"], "\n".join(map(_file, _SCRIPTS)), _file("page.css")
    for text, end in ((library, "</script"), (script, "</script"), (style, "</style")):
        if end in text.lower() or "<!--" in text:
            raise AssertionError(f"{end} inside of its own element")
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    mark = "\0"
    # Seven values are filled in once each, without loops or conditions: string.Template is enough, and a template
    # engine such as Jinja2 would be one more dependency.
    page = string.Template(_file("page.html")).substitute(
        title=html.escape(spell(title)),
        policy=policy,
        notice=_NOTICE,
        style=style,
        specs=charts["specs"],
        data=mark,
        library=library,
        script=script,
    )
    before, _, after = page.partition(mark)
    return before, after
