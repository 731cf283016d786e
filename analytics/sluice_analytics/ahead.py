# SPDX-License-Identifier: Apache-2.0
"""Makes what the commands would make anew each time: SQL of their questions, and the charts of the HTML page.

    python -m sluice_analytics.ahead

Every command runs on small lakes that are made up here, so that each question is asked that a command asks. The files
are written beside the modules that read them (lake/statements.py, report/html.py) and are not in git; what they lack
is made when it is needed. The file of statements has no records in it: these only decide which questions are asked.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from typing import Any
from unittest import mock

from .cli import sweep, tune
from .lake import open as lake_open
from .lake import statements
from .lake.columns import COLUMNS, RESOURCES
from .lake.duck import DuckSession
from .lake.session import Scope
from .lake.sql import literal, quoted, where
from .lake.stage import SQL_TYPES
from .report import html
from .sweep.grouping import OF_PIECES, OF_PROGRAMS
from .sweep.period import HOUR_US, Period
from .sweep.use import by_group
from .sweep.view import without_agents

Lake = dict[str, list[dict[str, Any]]]

_T0 = 1_793_534_400_000_000
_S = 1_000_000
_HOST = "11112222333344445555666677778888"


def _add(lake: Lake, topic: str, at_s: float, **fields: Any) -> None:
    fields = {
        "time": _T0 + round(at_s * _S), "host_id": _HOST, "host_name": "node1", "boot_id": "b", "agent_id": "daemon",
        "seq": len(lake[topic]), **fields,
    }  # fmt: skip
    known = {c.name for c in COLUMNS[topic]}
    lake[topic].append({name: value for name, value in fields.items() if name in known})


def _work(lake: Lake, topic: str, start: float, end: float | None, bad: bool = False, **fields: Any) -> None:
    """A task or run; end: None where it still runs."""
    common = {
        "start_time": _T0 + round(start * _S), "programs": 1, "failed_programs": int(bad), "lost_events": 0,
        "requested_cpus": 2.0, "requested_memory_bytes": 1 << 30, "attempt": 1, "engine": "snakemake", **fields,
    }  # fmt: skip
    at = start + 5 if end is None else end
    common |= dict.fromkeys(RESOURCES, 10) | {"phase": "LIVE", "wall_ns": round((at - start) * 1e9)}
    if end is not None:
        common |= {"phase": "END", "end_time": _T0 + round(end * _S), "exit_code": int(bad)}
    _add(lake, topic, at, **common)


def _program(lake: Lake, name: str, start: float, end: float | None, bad: bool = False, **fields: Any) -> None:
    common = {
        "program_id": name, "program_start_time": _T0 + round(start * _S), "start_time": _T0 + round(start * _S),
        "pid": 1, "comm": "tool", "tool": "tool", "exe": "/bin/tool", "overhead": False, **fields,
    }  # fmt: skip
    _add(lake, "program", start, **common, phase="START")
    _add(lake, "usage", start + 1, interval_ns=10**9, **common, **dict.fromkeys(RESOURCES, 1000))
    if end is not None:
        ended = {"phase": "END", "end_time": _T0 + round(end * _S), "end_reason": "EXIT", "exit_code": int(bad)}
        _add(lake, "program", end, **common, **ended, **dict.fromkeys(RESOURCES, 10**9))


def _run(lake: Lake, run_id: str, start: float, end: float | None, bad: bool, tasks: int, source: str) -> None:
    """A run of so many tasks, each a program; the last one failed where bad. source: what its tasks' names are by."""
    of = {"run_id": run_id, "pipeline": None if source == "descent" else "demo", "run_name": run_id + "_name"}
    _work(lake, "run", start, end, bad, **of, command="make", work_dir="/w", source=source)
    _program(lake, run_id + "-driver", start, end, bad, **of)
    for n in range(tasks):
        failed = bad and n == tasks - 1
        own = {**of, "task_id": f"{run_id}-{n}", "task": "step"}
        _work(lake, "task", start + n, end, failed, **own, name="step", source=source)
        above = {"parent_program_id": run_id + "-driver", "container_id": "c", "container_name": "n"}
        _program(lake, f"{run_id}-{n}", start + n, end, failed, **own, **above)


def _lakes() -> dict[str, Lake]:
    """The lakes: one as the daemon of a host writes it, the other with a `sluice run` at the same time."""
    lake: Lake = {topic: [] for topic in COLUMNS}
    _run(lake, "done", 0, 4000, False, 2, "engine")
    _run(lake, "done2", 4000, 8000, False, 2, "engine")
    _run(lake, "failed", 100, 3000, True, 2, "engine")
    _run(lake, "scripted", 100, 3000, True, 2, "descent")
    _run(lake, "bare", 200, 4000, True, 0, "engine")
    _run(lake, "alive", 300, None, False, 1, "engine")
    for at in range(0, 10_000, 1_000):
        busy = {"cpu_capacity_ns": 4 * 10**10, "cpu_busy_ns": 10**10, "cpu_iowait_ns": 0, "cpu_steal_ns": 0}
        _add(lake, "host", at, interval_ns=10**10, cpus=4, memory_bytes=1 << 34, price_per_hour=1.0,
             memory_available_bytes=1 << 33, cpu_attributed_ns=10**9, rss_attributed_bytes=1 << 20, **busy)  # fmt: skip
        _add(lake, "agent", at, event="LIVE", interval_ns=10**10)
    for topic in COLUMNS:  # a hole in seq of each
        if lake[topic]:
            lake[topic][-1]["seq"] += 1
    doubled = {topic: [*records] for topic, records in lake.items()}
    own = ({**r, "agent_id": "run", "run_id": "done", "time": r["time"] + 5 * _S} for r in lake["host"])
    doubled["host"] = [*lake["host"], *own]
    return {"daemon": lake, "doubled": doubled}


class _Sample(DuckSession):
    """A lake that is made up."""

    def __init__(self, folder: str, lake: Lake) -> None:
        super().__init__(folder)
        self._lake = lake
        self._made: set[str] = set()

    def select(self, topic: str, scope: Scope) -> str:
        """See DuckSession.select."""
        if topic not in self._made:
            self._made.add(topic)
            names = ", ".join(f"{quoted(c.name)} {SQL_TYPES[c.type]}" for c in COLUMNS[topic])
            self.connection.execute(f"CREATE TABLE all_{topic} ({names})")
            for row in self._lake[topic]:
                columns, values = ", ".join(map(quoted, row)), ", ".join(map(_value, row.values()))
                self.connection.execute(f"INSERT INTO all_{topic} ({columns}) VALUES ({values})")
        return f"SELECT * FROM all_{topic}{where(scope)}"


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    return literal(value) if isinstance(value, str) else repr(value)


def _commands(name: str) -> list[tuple[Any, list[str]]]:
    """The command lines that are run on a lake."""
    until = ["--since", "4h", "--until", "2026-11-01T15:00:00Z"]
    found: list[tuple[Any, list[str]]] = [(sweep, [*until, "--by", by]) for by in ("host", "run")]
    if name == "daemon":
        runs = ("done", "done2", "failed", "scripted", "bare", "alive")
        found += [(tune, [run + "_name"]) for run in runs]
        found += [(tune, line.split()) for line in (
            "", "--list", "compare done_name done2_name", "trend --pipeline demo",
            "trend --pipeline demo --since 10000d", "recommend", "recommend --pipeline demo",
            "recommend --pipeline demo --since 10000d", "--follow failed_name", "--follow done_name",
        )]  # fmt: skip
        found += [(tune, ["export", run + "_name", "--openlineage-file", "-"]) for run in runs]
    return found


def ask() -> None:
    """Runs all commands, so that statements.py knows the SQL of all their questions."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "sluice.run"))
        for name, lake in _lakes().items():
            for command, line in _commands(name):
                said = io.StringIO()
                with (
                    mock.patch.object(lake_open, "open_session", lambda args, lake=lake: _Sample(folder, lake)),
                    contextlib.redirect_stdout(said),
                    contextlib.redirect_stderr(said),
                ):
                    status = command.main(line)
                if status not in (0, 1):
                    raise RuntimeError(f"{line}: {said.getvalue()}")
            period = Period(_T0, _T0 + 3 * HOUR_US)
            with _Sample(folder, lake) as session:
                view, _ = without_agents(session, period)
                for by in (*OF_PIECES, *OF_PROGRAMS):
                    view.rows(by_group(view, period, by))


def main() -> int:
    """Writes the files."""
    statements.forget()
    ask()
    statements.write()
    html.write_charts()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
