# SPDX-License-Identifier: Apache-2.0
"""The same analyses on any engine, and whether their answers are equal.

    python engines.py ENGINE LAKE RUN_ID SINCE_US UNTIL_US [NAME...]

prints, in that engine's own environment, one line of JSON an analysis: its name and rows, or the error that
it ended with. Tests compare these with what DuckDB says in theirs.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from sluice_analytics.errors import UserError
from sluice_analytics.lake.columns import COLUMNS
from sluice_analytics.lake.session import Scope, Session
from sluice_analytics.model import activity, hosts, records
from sluice_analytics.prices import Prices
from sluice_analytics.report import machine
from sluice_analytics.sweep import document as sweep_document
from sluice_analytics.sweep import losses, observed, report, use
from sluice_analytics.sweep.period import HOUR_US, Period
from sluice_analytics.sweep.thresholds import Thresholds
from sluice_analytics.tune import present
from sluice_analytics.tune import run as tune_run

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Case:
    """What an analysis is asked about."""

    run_id: str
    since_us: int
    until_us: int

    @property
    def period(self) -> Period:
        """The same as sweep has it."""
        return Period(self.since_us, self.until_us)

    @property
    def scope(self) -> Scope:
        """Records of the middle of the period, and of one run."""
        third = (self.until_us - self.since_us) // 3
        return Scope(since_us=self.since_us + third, until_us=self.until_us - third, run_ids=(self.run_id,))


_Analysis = Callable[[Session, Case], Any]

TABLES: dict[str, _Analysis] = {f"table {topic}": (lambda s, c, t=topic: s.table(t)) for topic in COLUMNS}
"""All columns of all topics, and of one in a narrow scope."""
TABLES["table program in scope"] = lambda s, c: s.table("program", c.scope)

EXPRESSIONS: dict[str, _Analysis] = {
    "model.records.programs": lambda s, c: records.programs(s),
    "model.records.tasks": lambda s, c: records.tasks(s),
    "model.records.runs": lambda s, c: records.runs(s),
    "model.activity.pieces": lambda s, c: activity.pieces(s),
    "model.activity.by_window": lambda s, c: activity.by_window(
        activity.pieces(s), HOUR_US // 60, c.since_us, c.until_us
    ),
    "model.hosts.hours": lambda s, c: hosts.hours(s, c.period.scope, HOUR_US, c.since_us, c.until_us),
    "model.hosts.gaps": lambda s, c: hosts.gaps(s),
    "model.hosts.levels": lambda s, c: hosts.levels(s, c.period.scope, c.since_us, c.until_us),
    "model.hosts.spikes": lambda s, c: hosts.spikes(s, c.period.scope, 0.2, c.since_us, c.until_us),
    "sweep.use.by_run": lambda s, c: use.by_run(s, c.period),
    "sweep.use.by_group": lambda s, c: use.by_group(s, c.period, "tool"),
    "sweep.use.task_requests": lambda s, c: use.task_requests(s, c.period),
    "sweep.observed.long_programs": lambda s, c: observed.long_programs(s, c.period, 0),
    "sweep.observed.silences": lambda s, c: observed.silences(s, c.period, Thresholds()),
    "sweep.observed.without_run": lambda s, c: observed.without_run(s, c.period),
    "sweep.losses.lost_events": lambda s, c: losses.lost_events(s, c.period.scope),
}
"""What the analyses are made of: expressions, each one query."""


def _sweep(session: Session, case: Case) -> str:
    found = report.sweep(session, case.period, Prices(), "tool", Thresholds())
    return machine.json_text(sweep_document.of_report(found))


def _tune(session: Session, case: Case) -> str:
    found = tune_run.load(session, case.run_id, now_us=case.until_us)
    return machine.json_text(present.document(found, is_short=False))


REPORTS: dict[str, _Analysis] = {"sweep": _sweep, "tune": _tune}
"""Whole answers of the commands, as --format json prints them."""

ANALYSES = TABLES | EXPRESSIONS | REPORTS


def answer(session: Session, name: str, case: Case) -> Any:
    """What an analysis says: rows in no order, or a report, without the name of its lake."""
    found = ANALYSES[name](session, case)
    if name in REPORTS:
        said = json.loads(found)
        said.pop("source", None)
        return said
    return session.rows(found)


def difference(a: Any, b: Any, at: str = "") -> str | None:
    """Where two answers differ: floats by more than 1e-12 of their size, all else at all. None: nowhere."""
    if isinstance(a, float) and isinstance(b, float):
        return None if math.isclose(a, b, rel_tol=1e-12) or (math.isnan(a) and math.isnan(b)) else f"{at}: {a!r}, {b!r}"
    if type(a) is not type(b):
        return f"{at}: {a!r}, {b!r}"
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return f"{at}: names {a.keys() ^ b.keys()}"
        return next((d for k in a if (d := difference(a[k], b[k], f"{at}.{k}"))), None)
    if isinstance(a, list):
        if len(a) != len(b):
            return f"{at}: {len(a)} and {len(b)} values"
        return next(
            (d for n, (x, y) in enumerate(zip(a, b, strict=True)) if (d := difference(x, y, f"{at}[{n}]"))), None
        )
    return None if a == b else f"{at}: {a!r}, {b!r}"


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that came in no order, in one that does not hang on the last digits of floats."""
    return sorted(
        rows, key=lambda row: json.dumps([f"{v:.6g}" if isinstance(v, float) else repr(v) for v in row.values()])
    )


def environment(name: str) -> str:
    """An engine's Python. Skips the test where dev/analytics has not made it."""
    import pytest  # not there where engines are

    python = ROOT / "build" / "analytics" / name / "bin" / "python"
    if not (ROOT / "build" / "analytics" / name / "pinned").exists():
        pytest.skip(f"no build/analytics/{name}: dev/analytics {name} makes it")
    return str(python)


def ask(engine: str, lake: str | os.PathLike[str], case: Case, names: list[str]) -> Iterator[tuple[str, Any]]:
    """(name, answer) of analyses on an engine, each as it comes."""
    command = [
        environment(engine), __file__, engine, os.fspath(lake),
        case.run_id, str(case.since_us), str(case.until_us), *names,
    ]  # fmt: skip
    env = dict(os.environ, PYTHONPATH=os.path.dirname(__file__))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                said = json.loads(line)
                yield said["name"], said["answer"]
    assert process.returncode == 0


def compare(
    engine: str, lake: str | os.PathLike[str], case: Case, names: list[str], asked: str | None = None
) -> dict[str, str]:
    """Analysis -> where an engine's answer is not DuckDB's, or what it said it cannot do; those not named agree.

    asked: where the engine finds what DuckDB finds in lake, if not there.
    """
    from sluice_analytics.lake.duck import DuckSession

    found = {}
    answers = dict(ask(engine, asked or lake, case, names))
    assert list(answers) == names
    with DuckSession(os.fspath(lake)) as session:
        for name, got in answers.items():
            if isinstance(got, dict) and set(got) == {"error"}:
                found[name] = got["error"]
                continue
            wanted = answer(session, name, case)
            if name not in REPORTS:
                wanted, got = in_order(json.loads(json.dumps(wanted))), in_order(got)
            if (where := difference(wanted, got)) is not None:
                found[name] = where
    return found


def made_lake(path: pathlib.Path) -> Case:
    """See make_lake."""
    return make_lake(path)[1]


def make_lake(path: pathlib.Path) -> tuple[Any, Case]:
    """Two days of two hosts: nulls, second deliveries, holes in seq; fields that older and newer agents have."""
    from lakes import MIB, LakeMaker, S

    rng = random.Random(6)
    lake = LakeMaker(path)
    other = "aaaabbbbccccddddeeeeffff00001111"
    day = 86400
    for run in range(4):
        host = {"host_id": other, "host_name": "node2"} if run % 2 else {}
        begin = run * day / 3 + 0.25
        run_id = f"run-{run}"
        of_run = {"run_id": run_id, "pipeline": "demo", **host}
        failed = run == 2
        lake.run(start=begin, end=begin + 900, requested_cpus=2.5, exit_code=int(failed), programs=6, **of_run)
        for step in range(6):
            start = begin + 40 * step + rng.random()
            end = start + rng.choice([0.0004, 7.5, 300.0])
            task = {"task_id": f"t{step}", "task": f"step{step % 3}", "sample": None if step == 4 else f"s{step}"}
            program = lake.program(
                start=start, end=None if run == 3 and step == 5 else end, exe=f"/usr/bin/tool{step % 2}",
                exit_code=1 if failed and step == 3 else 0,
                cpu_user_ns=rng.randrange(200 * S), cpu_system_ns=rng.choice([None, rng.randrange(S)]),
                read_bytes=rng.choice([None, rng.randrange(1 << 54)]), peak_rss_bytes=rng.randrange(900 * MIB),
                run_delay_ns=None, argv=None if step == 1 else ["tool", "--näme", "a b'c\"\\n"], **of_run, **task,
            )  # fmt: skip
            for piece in range(int((end - start) // 60)):
                lake.usage(
                    program, start=start + 60 * piece, end=start + 60 * piece + 60,
                    cpu_user_ns=rng.randrange(9 * S), read_bytes=rng.choice([None, rng.randrange(MIB)]),
                )  # fmt: skip
            lake.task(
                start=start, end=end, requested_memory_bytes=rng.choice([None, 512 * MIB]), parallelism=rng.random(),
                bound=rng.choice([None, "COMPUTE", "IO"]), exit_code=1 if failed and step == 3 else 0,
                cpu_user_ns=rng.randrange(9 * S), share_cpu=rng.choice([None, rng.random()]), **of_run, **task,
            )  # fmt: skip
            if step == 2:
                lake.repeat(program)
                lake.skip("program", 3, host.get("host_id"))
        for n in range(20):
            busy = rng.randrange(200 * S)
            lake.host(
                start=begin - 100 + 60 * n, end=begin - 40 + 60 * n, cpu_busy_ns=busy, cpu_attributed_ns=busy // 2,
                psi_cpu_some=rng.random() * 100, price_per_hour=rng.choice([None, 0.192]), **host,
            )  # fmt: skip
        lake.agent("START", at=begin, **host)
        lake.agent(at=begin + 10, lost=[{"place": "ring", "reason": "full", "count": 5 + run}], **host)
        lake.finding("OOM_KILLED", at=begin + 50, program_id="p", **host)
        without = ("usage.threads_peak", "uid", "sample") if run == 0 else ()
        if run == 1:
            lake.write(extra={"colour": (["null", "string"], "green")}, schema_version=9)
        else:
            lake.write(without=without)
    return lake, Case("run-2", lake.us(-3600), lake.us(2 * day))


def main(argv: list[str]) -> None:
    """Prints the answers of one engine."""
    engine, lake, run_id, since, until, *names = argv
    case = Case(run_id, int(since), int(until))
    session: Session
    if engine == "spark" and "://" in lake:
        from sluice_analytics.lake.iceberg import open_table

        session = open_table(lake, "spark", None)
    elif engine == "spark":
        from sluice_analytics.lake.spark import SparkSession

        session = SparkSession(lake)
    else:
        from sluice_analytics.lake.flink import FlinkSession

        session = FlinkSession(lake)
    with session:
        for name in names:
            began = time.monotonic()
            try:
                said = answer(session, name, case)
            except UserError as e:
                said = {"error": str(e)}
            print(json.dumps({"name": name, "answer": said}), flush=True)
            print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
