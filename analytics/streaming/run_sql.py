#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Flink SQL over sluice's topics: the files of flink/, or your own.

A file finds the topics as tables (sources.py) and may use ${NAME} for what --set gives and for: brokers,
registry, prefix, warehouse, late; `sink.NAME` (the options in WITH of a result, by `--sink`); columns.TOPIC and
ddl.TOPIC (columns.py as a list and as a declaration). A statement with ${topic} is executed once for each topic of
columns.py, with the topic's name in its place, also inside another variable: ${columns.${topic}}. All INSERTs of all
files are one job. Beyond Flink's SQL there is one statement: PARTITION catalog.namespace.table BY DAY(column).
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import client
import sources

from sluice_analytics.cli import common
from sluice_analytics.errors import UserError
from sluice_analytics.lake.columns import COLUMNS
from sluice_analytics.options import pairs

JARS = "SLUICE_FLINK_JARS"
"""Environment: a folder of jars instead of the environment's own jars/."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="run_sql.py", description=(__doc__ or "").split("\n")[0])
    p.add_argument("files", nargs="+", metavar="FILE.sql", help="a file of statements, such as flink/alerts.sql")
    client.add_arguments(p)
    p.add_argument("--prefix", default="", help="prefix of the topics, before sluice.")
    p.add_argument(
        "--checkpoint",
        metavar="URL",
        help="folder of the job's checkpoints; when started again, it continues from the newest one there",
    )
    p.add_argument(
        "--every",
        metavar="TIME",
        default="10s",
        help="time between checkpoints, and between commits to Iceberg tables (default: 10s)",
    )
    p.add_argument(
        "--late",
        metavar="INTERVAL",
        default="'2' MINUTE",
        help="how long a window waits for records that arrive late (default: '2' MINUTE)",
    )
    p.add_argument(
        "--state",
        metavar="TIME",
        default="7d",
        help="how long a record is remembered, so that its duplicates are dropped (default: 7d)",
    )
    p.add_argument(
        "--start",
        metavar="WHEN",
        default="earliest",
        help="start without a checkpoint: earliest (the default), latest, or a time such as 2026-11-01T12:00Z",
    )
    p.add_argument("--bounded", action="store_true", help="read the records that exist now, and end")
    p.add_argument(
        "--sink",
        metavar="kafka|print|URL",
        default="kafka",
        help="destination of the results: topics, standard output, or JSON files in a folder",
    )
    p.add_argument("--warehouse", metavar="URL", help="warehouse of the Iceberg tables")
    p.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a variable of the SQL")
    p.add_argument("--flink-conf", metavar="KEY=VALUE", action="append", default=[], help="a property of Flink")
    return p


def split(text: str) -> Iterator[str]:
    """The statements of a file, without comments."""
    statement = ""
    for token in re.findall(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|`[^`]*`|;|[^-/'`;]+|.", text, re.DOTALL):
        if token == ";":
            yield statement.strip()
            statement = ""
        elif not token.startswith(("--", "/*")):
            statement += token
    if statement.strip():
        yield statement.strip()


def of_each_topic(statement: str) -> list[str]:
    """A statement with ${topic} once for each topic; any other as it is."""
    return [statement.replace("${topic}", t) for t in COLUMNS] if "${topic}" in statement else [statement]


def fill(text: str, variables: dict[str, str], path: str) -> str:
    """The text with its variables replaced; UserError names one without a value."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in variables:
            raise UserError(f"{path}: ${{{match[1]}}} has no value", f"give it by --set {match[1]}=…")
        return variables[match[1]]

    return re.sub(r"\$\{([A-Za-z0-9_.]+)\}", value, text)


class _Sinks(dict[str, str]):
    """The variables, and `sink.NAME` for any NAME."""

    def __init__(self, values: dict[str, str], args: argparse.Namespace, properties: dict[str, str]) -> None:
        super().__init__(values)
        self._args = args
        self._properties = properties

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).startswith("sink.")

    def __missing__(self, name: str) -> str:
        result = name.removeprefix("sink.")
        json = {"timestamp-format.standard": "ISO-8601", "encode.decimal-as-plain-number": "true"}
        if self._args.sink == "print":
            return sources.options({"connector": "print", "print-identifier": result})
        if self._args.sink == "kafka":
            made = {"connector": "kafka", "topic": f"{self._args.prefix}sluice.{result}", "value.format": "json"}
            made |= {f"value.json.{k}": v for k, v in json.items()}
            made |= {"key.format": "json", "key.fields": "host_id", "sink.delivery-guarantee": "at-least-once"}
            return sources.options(made | self._properties)
        made = {"connector": "filesystem", "path": f"{absolute(self._args.sink)}/{result}", "format": "json"}
        return sources.options(made | {f"json.{k}": v for k, v in json.items()})


def absolute(url: str) -> str:
    """A URL; of a path, one that Flink takes for a local one."""
    return url if "://" in url else "file://" + os.path.abspath(url)


def newest_checkpoint(url: str) -> str | None:
    """The newest whole checkpoint under a local folder; None where there is none yet."""
    if not url.startswith("file://"):
        return None
    found = list(Path(url.removeprefix("file://")).glob("*/chk-*/_metadata"))
    return "file://" + str(max(found, key=lambda p: p.stat().st_mtime).parent) if found else None


def jars() -> list[Path]:
    """The connectors: those of the folder that SLUICE_FLINK_JARS names, else of this environment's jars folder."""
    folder = Path(os.environ.get(JARS) or Path(sys.prefix, "jars"))
    return [p.resolve() for p in sorted(folder.glob("*.jar"))]


def environment(args: argparse.Namespace) -> Any:
    """Flink's own, configured."""
    try:
        from pyflink.common import Configuration
        from pyflink.table import EnvironmentSettings, TableEnvironment
    except ModuleNotFoundError as e:
        raise UserError(
            f"no Flink installed: this Python environment has no module {e.name}",
            "dev/analytics flink makes one: build/analytics/flink/bin/python",
        ) from e
    values = {
        "table.local-time-zone": "UTC",
        "table.exec.state.ttl": args.state,
        # A partition without messages holds the hours back for so long. What is only read to its end has an end.
        "table.exec.source.idle-timeout": "0 s" if args.bounded else "60 s",
        "parallelism.default": "1",
    }
    if found := jars():
        values["pipeline.jars"] = ";".join(p.as_uri() for p in found if not p.name.startswith("hadoop-"))
        # Flink looks for Hadoop's classes, which Iceberg needs, on the class path that its JVM starts with.
        os.environ.setdefault("HADOOP_CLASSPATH", ":".join(str(p) for p in found if p.name.startswith("hadoop-")))
    if args.checkpoint:
        at = absolute(args.checkpoint)
        values |= {
            "execution.checkpointing.interval": args.every,
            "execution.checkpointing.storage": "filesystem",
            "execution.checkpointing.dir": at,
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
        last = newest_checkpoint(at)
        if last:
            print(f"run_sql.py: continues from {last}", file=sys.stderr)
            values["execution.state-recovery.path"] = last
    values |= pairs("--flink-conf", args.flink_conf)
    configuration = Configuration()
    for key, value in values.items():
        configuration.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    return TableEnvironment.create(settings)


def start(when: str) -> dict[str, str]:
    """--start as options of the connector."""
    if when in ("earliest", "latest"):
        return {"scan.startup.mode": f"{when}-offset"}
    try:
        at = datetime.datetime.fromisoformat(when)
    except ValueError as e:
        raise UserError(f"--start {when}: is neither earliest, latest nor a time", "as in 2026-11-01T12:00:00Z") from e
    at = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
    millis = round(at.timestamp() * 1000)
    return {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": str(millis)}


def read(path: str) -> str:
    """A file's text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: {getattr(e, 'strerror', None) or e}") from e


def main(argv: list[str]) -> int:
    """Runs the files until SIGTERM or SIGINT; with --bounded until all is read."""
    args = parser().parse_args(argv)
    texts = {path: read(path) for path in args.files}
    properties, registry = client.read(args)
    kafka = {"properties.bootstrap.servers": args.brokers} | {f"properties.{k}": v for k, v in properties.items()}
    variables = {"brokers": args.brokers, "registry": registry.url, "prefix": args.prefix, "late": args.late}
    if args.warehouse:
        variables["warehouse"] = absolute(args.warehouse)
    for topic, columns in COLUMNS.items():
        variables[f"columns.{topic}"] = ", ".join(f"`{c.name}`" for c in columns)
        variables[f"ddl.{topic}"] = ", ".join(f"`{c.name}` {sources.sql_type(c.type)}" for c in columns)
    known = _Sinks(variables | pairs("--set", args.set), args, kafka)
    todo = [
        fill(statement, known, path)
        for path, text in texts.items()
        for template in split(text)
        if template
        for statement in of_each_topic(template)
    ]

    source = kafka | start(args.start) | ({"scan.bounded.mode": "latest-offset"} if args.bounded else {})
    flink = environment(args)
    for topic in COLUMNS:
        for statement in sources.statements(registry, f"{args.prefix}sluice.{topic}", source, args.late):
            flink.execute_sql(statement)
    job = flink.create_statement_set()
    for statement in todo:
        setting = re.fullmatch(r"SET\s+'([^']+)'\s*=\s*'([^']*)'", statement, re.IGNORECASE)
        if setting:
            flink.get_config().set(setting[1], setting[2])
        elif by_day := re.fullmatch(r"PARTITION\s+(\w+)\.(\w+)\.(\w+)\s+BY\s+DAY\s*\((\w+)\)", statement):
            partition_by_day(flink, *by_day.groups())
        elif statement.upper().startswith("INSERT"):
            job.add_insert_sql(statement)
        else:
            flink.execute_sql(statement)
    return wait(job.execute())


def partition_by_day(flink: Any, catalog: str, namespace: str, table: str, column: str) -> None:
    """Makes an Iceberg table that has no partitions one of days, hidden, for which Flink's SQL has no words."""
    from pyflink.java_gateway import get_gateway
    from pyflink.util.java_utils import add_jars_to_context_class_loader

    add_jars_to_context_class_loader([p.as_uri() for p in jars() if not p.name.startswith("hadoop-")])
    jvm = get_gateway().jvm
    path = jvm.org.apache.flink.table.catalog.ObjectPath(namespace, table)
    found = flink._j_tenv.getCatalog(catalog).get().loadIcebergTable(path)
    if not found.spec().isPartitioned():
        found.updateSpec().addField(jvm.org.apache.iceberg.expressions.Expressions.day(column)).commit()


def wait(result: Any) -> int:
    """Until a job has ended, or a signal asks for its end."""
    failed: list[BaseException] = []

    def until_end() -> None:
        try:
            result.wait()
        except Exception as e:  # the JVM's, of any kind
            failed.append(e)

    waiting = threading.Thread(target=until_end, daemon=True)
    waiting.start()
    stopping: list[int] = []
    for signo in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signo, lambda number, _: stopping.append(number))
    while waiting.is_alive() and not stopping:
        waiting.join(0.5)
    if stopping:
        result.get_job_client().cancel().result()
    elif failed:
        raise UserError(f"the job failed: {reason(failed[0])}", "started again with the same --checkpoint it continues")
    return 0


def reason(e: BaseException) -> str:
    """The innermost sentence of a failure in the JVM."""
    causes = [x.strip().removeprefix("Caused by: ") for x in str(e).splitlines() if x.strip().startswith("Caused by: ")]
    return causes[-1] if causes else str(e).splitlines()[0]


if __name__ == "__main__":
    sys.exit(common.run("run_sql.py", main, None))
