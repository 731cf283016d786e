# SPDX-License-Identifier: Apache-2.0
"""Spark: the engine of many machines, on a lake of files that all of them see (a shared or a local folder).

The same views as duck.py makes: Avro files by groups of equal schemas, Parquet files of compacted days,
each record once, by columns.KEY. Without a master it runs on the cores of this machine.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import re
import shutil
import sys
import tempfile
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis

from ..errors import UserError
from ..options import pairs
from . import files
from .columns import COLUMNS, KEY, Column
from .expression import build, table
from .listing import look
from .session import ALL, Row, Scope, Session

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from ibis.backends.sql import SQLBackend

JARS = "SLUICE_SPARK_JARS"
"""Environment: a folder of jars, or jars with colons between, instead of the environment's own jars/."""


def jars() -> list[str]:
    """The connectors: those that SLUICE_SPARK_JARS names, else those of this Python environment's jars folder."""
    named = os.environ.get(JARS)
    if named and os.path.isdir(named):
        found = sorted(str(p) for p in Path(named).glob("*.jar"))
    elif named:
        found = [p for p in named.split(":") if p]
        for path in found:
            if not os.path.exists(path):
                raise UserError(f"{JARS}: {path}: no such file", "name a folder of jars, or jars separated by colons")
    else:
        found = sorted(str(p) for p in Path(sys.prefix, "jars").glob("*.jar"))
    return found


def settings(conf: Sequence[str]) -> dict[str, str]:
    """--spark-conf KEY=VALUE as a dictionary."""
    return pairs("--spark-conf", conf, "as in --spark-conf spark.executor.memory=4g")


class _Room:
    """A folder for what the JVM writes: its log, and the artifacts folder that it makes in its working directory.

    While it starts, that folder is the current one and standard error is a file in it, both of which the
    JVM inherits and keeps: until this process ends, for the next session has the same JVM.
    """

    def __init__(self) -> None:
        self.at = tempfile.mkdtemp(prefix="sluice-spark-")
        self.log = os.path.join(self.at, "log")
        atexit.register(shutil.rmtree, self.at, ignore_errors=True)

    def __enter__(self) -> _Room:
        sys.stderr.flush()
        self._folder = os.open(".", os.O_RDONLY)
        self._stderr = os.dup(2)
        with open(self.log, "ab") as log:
            os.dup2(log.fileno(), 2)
        os.chdir(self.at)
        return self

    def __exit__(self, *exc: object) -> None:
        os.fchdir(self._folder)
        os.dup2(self._stderr, 2)
        os.close(self._folder)
        os.close(self._stderr)

    def said(self) -> str:
        """The first error in the JVM's log, for a JVM that ended while it started."""
        with open(self.log, errors="replace") as f:
            lines = [line.strip() for line in f if line.strip() and not line.startswith("WARNING: ")]
        return lines[0] if lines else ""


@functools.cache
def _room() -> _Room:
    return _Room()


class Engine:
    """Spark's own session: the one that runs in this process already, or a new one, which close() ends."""

    def __init__(self, master: str | None, conf: dict[str, str]) -> None:
        self._own: str | None = None  # a folder; None where the session is not ours
        try:
            import pyspark
            from pyspark.sql import SparkSession as Spark
        except ModuleNotFoundError as e:
            raise UserError(
                f"Spark is not installed: this Python environment has no module {e.name}",
                "dev/analytics spark makes one that has it, whose commands are build/analytics/spark/bin/sluice-*; "
                'elsewhere: pip install "sluice-analytics[spark]" and Java 17',
            ) from e
        active = Spark.getActiveSession()
        if active is not None:
            self.session = active
            return
        builder = Spark.builder.appName("sluice " + os.path.basename(sys.argv[0]))
        for key, value in (_defaults(master, conf) | conf).items():
            builder = builder.config(key, value)
        room = _room()
        try:
            with room:
                self.session = builder.getOrCreate()
        except Exception as e:  # the JVM's, of any kind
            why = room.said() if "JAVA_GATEWAY_EXITED" in str(e) else reason(e)
            raise UserError(
                f"Spark {pyspark.__version__} does not start: {why}",
                "it needs Java 17 or newer (java on PATH, or JAVA_HOME), and --spark-master and --spark-conf as for "
                "spark-submit",
            ) from e
        self._own = tempfile.mkdtemp(dir=room.at)

    def local_folder(self) -> str | None:
        """A folder that lasts as long as this and that Spark sees too; None where it runs on other machines."""
        if self._own is None or not self.session.sparkContext.master.startswith("local"):
            return None
        return self._own

    def close(self) -> None:
        """Ends Spark, where it was started here."""
        if self._own is not None:
            self.session.stop()
            shutil.rmtree(self._own, ignore_errors=True)
            self._own = None


def _defaults(master: str | None, conf: dict[str, str]) -> dict[str, str]:
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    master = master or conf.get("spark.master") or (None if submitted else "local[*]")
    result = {"spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
    if master is not None:
        result["spark.master"] = master
    if master is not None and master.startswith("local"):
        result |= {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        }
    found = jars()
    if found:
        result["spark.jars"] = ",".join(os.path.abspath(path) for path in found)
    return result


def reason(e: BaseException) -> str:
    """The first informative line of a JVM's exception."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("An error occurred while calling", "at ", ":"))]
    return (said or lines or [type(e).__name__])[0]


class SparkTables(Session):
    """What sessions on Spark share; frame() has their records. See session.Session."""

    engine = "spark"

    def __init__(
        self, source: str, master: str | None, conf: Sequence[str], needs: dict[str, str] | None = None
    ) -> None:
        """master: as spark-submit has it, None for all cores of this machine; conf: KEY=VALUE, over needs."""
        self.source = source
        self.warnings: list[str] = []
        self._engine = Engine(master, (needs or {}) | settings(conf))
        self._spark = self._engine.session
        self._ibis: SQLBackend = ibis.pyspark.connect(self._spark)
        self._numbers = itertools.count()

    def frame(self, topic: str, scope: Scope = ALL) -> Any:
        """The records that table() has, as a DataFrame."""
        raise NotImplementedError

    def table(self, topic: str, scope: Scope = ALL) -> ir.Table:
        """See Session.table."""
        name = f"{topic}_{next(self._numbers)}"
        try:
            self.frame(topic, scope).createOrReplaceTempView(name)
            return self._view(name)
        except Exception as e:
            raise self._explain(e) from e

    def kept(self, expression: ir.Table) -> ir.Table:
        """See Session.kept. On disk: what it takes in memory would not be there for queries.

        Not persist(): the plan of what is kept would be part of every plan that rests on it.
        """
        from pyspark import StorageLevel

        name = f"kept_{next(self._numbers)}"
        try:
            frame = self._spark.sql(self._ibis.compile(build(expression)))
            frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY).createOrReplaceTempView(name)
            return self._view(name)
        except Exception as e:
            raise self._explain(e) from e

    def rows(self, expression: ir.Table) -> list[Row]:
        """See Session.rows."""
        try:
            built = build(expression)
            found = self._spark.sql(self._ibis.compile(built)).collect()
        except Exception as e:
            raise self._explain(e) from e
        return _plain_rows((row.asDict(recursive=True) for row in found), built.schema())

    def _view(self, name: str) -> ir.Table:
        return table(name, {c: str(kind) for c, kind in self._ibis.table(name).schema().items()})

    def close(self) -> None:
        """Ends Spark, where it was started here."""
        self._engine.close()

    def _explain(self, e: Exception) -> Exception:
        return explain(e, self.source)


def _plain_rows(found: Iterable[Row], schema: Any) -> list[Row]:
    """The rows with each value of its column's Ibis type in schema: Spark widens sums to decimals."""
    made: dict[str, Callable[[Any], Any]] = {}
    for name, kind in schema.items():
        if kind.is_integer():
            made[name] = int
        elif kind.is_floating():
            made[name] = float
        elif kind.is_boolean():
            made[name] = bool
    return [
        {name: made[name](value) if value is not None and name in made else value for name, value in row.items()}
        for row in found
    ]


class SparkSession(SparkTables):
    """A Session over a folder of files."""

    def __init__(self, lake: str, master: str | None = None, conf: Sequence[str] = ()) -> None:
        """See SparkTables."""
        files.topics_of(lake)
        super().__init__(lake, master, conf)
        self._root = os.path.abspath(lake)
        self._copies = self._engine.local_folder()

    def frame(self, topic: str, scope: Scope = ALL) -> Any:
        """See SparkTables."""
        columns = COLUMNS[topic]
        found = look(self._root, topic, scope, self._copies)
        self.warnings += [w for w in found.warnings if w not in self.warnings]
        groups: dict[str, list[str]] = {}
        for file in found.avro:
            groups.setdefault(file.schema, []).append(file.path)
        parts = []
        for text, paths in groups.items():
            read = self._spark.read.format("avro").option("avroSchema", text).load([_escaped(p) for p in paths])
            parts.append(_of_avro(read, columns, files.schema_fields(text, paths[0])))
        shapes: dict[tuple[str, ...], list[str]] = {}
        for day in found.days:
            shapes.setdefault(day.columns, []).extend(day.parquet)
        for paths in shapes.values():
            if paths:
                parts.append(of_table(self._spark.read.parquet(*[_escaped(p) for p in paths]), columns))
        if not parts:
            return self._spark.createDataFrame([], ddl(columns))
        frame = functools.reduce(lambda a, b: a.unionByName(b), [within(part, scope) for part in parts])
        return _once(frame) if groups else frame


def explain(e: Exception, source: str) -> Exception:
    """A UserError of an exception of the JVM's; a mistake of the program's own stays as it is."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not isinstance(e, PySparkException | Py4JError):
        return e
    text = str(e)
    if "Failed to find data source" in text or "DATA_SOURCE_NOT_FOUND" in text or "AVRO_NOT_LOADED" in text:
        return UserError(
            f"Spark lacks a connector: {reason(e)}",
            f"dev/analytics spark fetches them; or name them with {JARS} or --spark-conf spark.jars.packages=…",
        )
    damaged = re.search(r"reading file (\S+?)\.?(?:\s|$)", text)
    if damaged:
        path = urllib.parse.unquote(damaged[1].rstrip(".").removeprefix("file://"))
        what = ""
        if path.endswith(".avro"):
            with contextlib.suppress(OSError, UserError):
                what = files.blocks_of(path, files.Headers()).broken
        return UserError(f"{path}: is damaged: {what or reason(e)}", files.MOVE)
    return UserError(f"{source}: Spark: {reason(e)}")


def _of_avro(frame: Any, columns: list[Column], fields: dict[str, Any]) -> Any:
    """The columns of columns.py, of records as Avro has them; fields: what their schema has."""

    def value(column: Column) -> str:
        if column.source not in fields:
            return _null(column)
        source = ".".join(f"`{part}`" for part in column.source.split("."))
        return f"unix_micros({source})" if column.is_time else _cast(source, column)

    return _selected(frame, columns, value)


def of_table(frame: Any, columns: list[Column]) -> Any:
    """The columns of columns.py, of a table that was made of them, perhaps by a version that knew fewer."""
    types = dict(frame.dtypes)

    def value(column: Column) -> str:
        # A field that was no column then may be there under its name in Avro.
        name = next((n for n in (column.name, column.source) if n in types), None)
        if name is None:
            return _null(column)
        return f"unix_micros(`{name}`)" if types[name].startswith("timestamp") else _cast(f"`{name}`", column)

    return _selected(frame, columns, value)


def _selected(frame: Any, columns: list[Column], value: Callable[[Column], str]) -> Any:
    """The columns as SQL: to build each with calls of pyspark's functions takes thousands of turns to the JVM."""
    return frame.selectExpr(*[f"{value(column)} AS `{column.name}`" for column in columns])


def _null(column: Column) -> str:
    return f"CAST(NULL AS {_spark_type(column.type)})"


def _cast(source: str, column: Column) -> str:
    if column.type.startswith("array<struct<"):  # by name: a cast of structs goes by position
        inner = column.type.removeprefix("array<struct<").removesuffix(">>")
        names = [part.split(":")[0].strip() for part in inner.split(",")]
        source = f"transform({source}, item -> struct({', '.join(f'item.`{n}` AS `{n}`' for n in names)}))"
    return f"CAST({source} AS {_spark_type(column.type)})"


def within(frame: Any, scope: Scope) -> Any:
    """Those records of a frame that are in scope."""
    from pyspark.sql import functions as f

    if scope.since_us is not None:
        frame = frame.where(f.col("time") >= scope.since_us)
    if scope.until_us is not None:
        frame = frame.where(f.col("time") < scope.until_us)
    if scope.run_ids is not None:
        frame = frame.where(f.col("run_id").isin(list(scope.run_ids)))
    if scope.hosts is not None:
        frame = frame.where(f.col("host_id").isin(list(scope.hosts)))
    return frame


def _once(frame: Any) -> Any:
    """Each KEY once, for delivery is at least once; the earliest of those that share it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    rank = f.row_number().over(Window.partitionBy(*KEY).orderBy("time"))
    return frame.withColumn("_rank", rank).where(f.col("_rank") == 1).drop("_rank")


def ddl(columns: list[Column]) -> str:
    """The columns as Spark's DDL has them."""
    return ", ".join(f"`{c.name}` {_spark_type(c.type)}" for c in columns)


def _spark_type(kind: str) -> str:
    for ibis_name, name in (("int64", "bigint"), ("float64", "double")):
        kind = kind.replace(ibis_name, name)
    return kind


def _escaped(path: str) -> str:
    """A path that means itself where Hadoop takes patterns."""
    return "file://" + "".join("\\" + c if c in "\\{}[]*?," else c for c in path)
