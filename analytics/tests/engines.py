# SPDX-License-Identifier: Apache-2.0
"""The same analyses on any engine, and whether their answers are equal.

    with engines.Engine("spark") as engine:
        assert engines.compare(engine, lake, case, names) == {}

An Engine is this file as a process in that engine's own environment, which opens lakes as the commands do and
says of each analysis its rows, or the error that it ended with; so a JVM starts once for all lakes of a test.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

from sluice_analytics.errors import UserError
from sluice_analytics.lake import open as lake_open
from sluice_analytics.lake.columns import COLUMNS, SCHEMA_VERSION
from sluice_analytics.lake.session import Scope, Session
from sluice_analytics.model import activity, hosts, losses, records
from sluice_analytics.prices import Prices
from sluice_analytics.report import machine
from sluice_analytics.report import run as present
from sluice_analytics.report import sweep as sweep_document
from sluice_analytics.sweep import observed, report, use
from sluice_analytics.sweep.period import HOUR_US, Period
from sluice_analytics.sweep.thresholds import Thresholds
from sluice_analytics.sweep.view import View
from sluice_analytics.tune import find
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
    "model.losses.lost_events": lambda s, c: losses.lost_events(s, c.period.scope),
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
    """The answer of an analysis: rows in no order, or a report, without the name of its lake."""
    with mock.patch.object(find, "now", return_value=case.until_us):  # the age of evidence is rounded to hours
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
    """An engine's Python."""
    at = ROOT / "build" / "analytics" / name
    assert (at / "pinned").exists(), f"{at} is not made; run: dev/analytics {name}"
    return str(at / "bin" / "python")


# A machine of two CPUs, that others use too, and queries over few records.
SMALL = {
    "spark": ["--spark-master", "local[2]", "--spark-conf", "spark.ui.enabled=false",
              "--spark-conf", "spark.sql.shuffle.partitions=2"],
}  # fmt: skip


class Engine:
    """An engine's process. close() ends it; use it as a context manager."""

    def __init__(self, name: str) -> None:
        """name: of one of SMALL."""
        self.name = name
        env = dict(os.environ, PYTHONPATH=f"{os.path.dirname(__file__)}:{ROOT / 'analytics'}")
        # Half a machine, and queries that run once: to compile them well is not worth its time.
        env["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx1g"
        self._process = subprocess.Popen(
            [environment(name), __file__, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip

    def ask(self, where: Sequence[str], case: Case, names: Sequence[str]) -> dict[str, Any]:
        """Analysis -> its answer, or an error as {"error": text}. where: options of a command that name a lake."""
        return self._ask([list(where), dataclasses.asdict(case), list(names)])

    def make_tables(self, lake: str, warehouse: str) -> None:
        """Spark: Iceberg tables of a lake's records, in the namespace sluice of a warehouse."""
        assert self._ask({"lake": lake, "warehouse": warehouse}) == {}

    def _ask(self, question: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):  # an engine may print lines too
                found: dict[str, Any] = json.loads(line)
                return found
        raise AssertionError(f"{self.name} ended with {self._process.wait()}")

    def close(self) -> None:
        """Ends it: in good order, or at all."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.stdout.close()
        assert self._process.returncode == 0

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def compare(
    engine: Engine, lake: str | os.PathLike[str], case: Case, names: Sequence[str], where: Sequence[str] = ()
) -> dict[str, str]:
    """Analysis -> where an engine's answer is not DuckDB's, or its error; those not named agree.

    where: options by which the engine finds what DuckDB finds in lake, if not there.
    """
    from sluice_analytics.lake.duck import DuckSession

    found = {}
    answers = engine.ask(where or ("--lake", os.fspath(lake)), case, names)
    assert list(answers) == list(names), answers
    with DuckSession(os.fspath(lake)) as session:
        for name, got in answers.items():
            if isinstance(got, dict) and set(got) == {"error"}:
                found[name] = got["error"]
                continue
            wanted = answer(session, name, case)
            if name not in REPORTS:
                wanted, got = in_order(json.loads(json.dumps(wanted))), in_order(got)
            if (at := difference(wanted, got)) is not None:
                found[name] = at
    return found


_MAKEFILE = """
all: sorted copied idle
sorted:
	@seq 200000 -1 1 | sort -n | md5sum >/dev/null
copied:
	@dd if=/dev/zero of=zeroes bs=1M count=32 conv=fsync 2>/dev/null && cat zeroes >/dev/null && rm zeroes
idle:
	@sleep 2.5
failing:
	@ls /nowhere 2>/dev/null
"""


class Recorded:
    """Two runs of make, recorded by sluice, the second of which fails.

    files: a lake as it was recorded; lake: the same, but that the first run is in compacted days alone, and the
    second in files beside them; first, second: questions about these runs.
    """

    def __init__(self, at: pathlib.Path) -> None:
        """at: a folder for all of it."""
        import pytest
        import sluice_binary

        from sluice_analytics.cli import lake as lake_command
        from sluice_analytics.lake import files

        self.files, self.lake = at / "files", at / "lake"
        (at / "Makefile").write_text(_MAKEFILE)
        make = ("make", "-s", "-k", "-j2", "-C", str(at))
        assert sluice_binary.record(self.files, *make, interval="1s") == 0
        shutil.copytree(self.files, self.lake)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "today", lambda: "2999-12-31")
            assert lake_command.main(["compact", "--lake", str(self.lake), "--remove-avro"]) == 0
        assert not list(self.lake.rglob("*.avro"))
        first = {path.relative_to(self.files) for path in self.files.rglob("*.avro")}
        assert sluice_binary.record(self.files, *make, "failing", "idle", interval="1s") == 2
        for path in {path.relative_to(self.files) for path in self.files.rglob("*.avro")} - first:
            (self.lake / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.files / path, self.lake / path)
        last = {r["run_id"]: r["time"] for r in sluice_binary.cat(self.files, "run")}
        since, until = min(last.values()) - HOUR_US, max(last.values()) + HOUR_US
        self.first, self.second = (Case(run_id, since, until) for run_id in sorted(last, key=lambda r: last[r]))


def made_lake(path: pathlib.Path) -> Case:
    """See make_lake."""
    return make_lake(path)[1]


def make_lake(path: pathlib.Path) -> tuple[Any, Case]:
    """Two days of two hosts with one agent_id, as clones have: nulls, second deliveries, holes in seq; other fields."""
    from lakes import MIB, LakeMaker, S

    rng = random.Random(6)
    lake = LakeMaker(path)
    other = "aaaabbbbccccddddeeeeffff00001111"
    day = 86400
    for run in range(4):
        host = {"host_id": other, "host_name": "node2", "agent_id": lake.agent_of(lake.host_id)} if run % 2 else {}
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
            lake.write(extra={"colour": (["null", "string"], "green")}, schema_version=SCHEMA_VERSION + 1)
        else:
            lake.write(without=without)
    return lake, Case("run-2", lake.us(-3600), lake.us(2 * day))


def _make_tables(lake: str, warehouse: str) -> None:
    from sluice_analytics.lake.spark import SparkSession

    at = "spark.sql.catalog.lab"
    conf = [f"{at}=org.apache.iceberg.spark.SparkCatalog", f"{at}.type=hadoop", f"{at}.warehouse={warehouse}"]
    with SparkSession(lake, conf=conf) as session:
        for topic in COLUMNS:
            frame = session.frame(topic).selectExpr("*", "timestamp_micros(time) AS event_time")
            frame.createOrReplaceTempView("records")
            session._spark.sql(
                f"CREATE TABLE lab.sluice.{topic} USING iceberg PARTITIONED BY (days(event_time)) "
                "AS SELECT * FROM records"
            )


def main(engine: str) -> None:
    """Answers questions, one a line of standard input, until it ends."""
    parser = argparse.ArgumentParser()
    lake_open.add_arguments(parser)
    for line in sys.stdin:
        question = json.loads(line)
        answers: dict[str, Any] = {}
        if isinstance(question, dict):
            _make_tables(**question)
            print("{}", flush=True)
            continue
        where, case, names = question
        try:
            with lake_open.open_session(parser.parse_args([*where, "--engine", engine, *SMALL[engine]])) as opened:
                session = View(opened, [])  # what is kept is kept once for all analyses
                for name in names:
                    began = time.monotonic()
                    try:
                        answers[name] = answer(session, name, Case(**case))
                    except UserError as e:
                        answers[name] = {"error": str(e)}
                    print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
        except UserError as e:
            answers = {"error": str(e)}
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
