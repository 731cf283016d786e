# SPDX-License-Identifier: Apache-2.0
"""Flink, in batch mode, on a lake of files: its own connector for files, and its Avro format.

That format has no enums, and takes microseconds for milliseconds. So Flink gets copies of the files whose
schemas call an enum the int and a time the long that they are in the records' bytes, which stay as they are;
SQL gives enums their symbols back. Compacted days, which are Parquet, become Avro files of that kind.

All queries of a process run on one small cluster in its JVM. What Flink's SQL, or Ibis's Flink backend, has no
way to say is an error that names it. Where the two say something else than the other engines do, or nothing,
_compiler() puts it right.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir

from ..errors import UserError
from . import files
from .columns import COLUMNS, Column, schema
from .listing import look
from .session import ALL, Row, Scope
from .sql import literal, where
from .values import plain_rows

JARS = "SLUICE_FLINK_JARS"
"""Environment: a folder of jars, instead of the environment's own jars/."""

_MANY = "SPLIT"
"""What makes an array of as many strings as a range has numbers."""

_BATCH = 10_000


class FlinkSession:
    """A Session over a folder of files. See session.Session."""

    engine = "flink"

    def __init__(self, lake: str) -> None:
        self.source = lake
        self.warnings: list[str] = []
        files.topics_of(lake)
        self._root = os.path.abspath(lake)
        self._env = _environment()
        self._room = tempfile.mkdtemp(prefix="sluice-flink-")
        self._copied: dict[str, str] = {}
        self._ibis = ibis.flink.connect(self._env)
        self._ibis.compiler = _compiler()
        self._numbers = itertools.count()

    def table(self, topic: str, scope: Scope = ALL) -> ir.Table:
        """See Session.table."""
        from py4j.protocol import Py4JError

        columns = COLUMNS[topic]
        found = look(self._root, topic, scope, self._room)
        self.warnings += [w for w in found.warnings if w not in self.warnings]
        name = f"{topic}_{next(self._numbers)}"
        groups: dict[str, list[str]] = {}
        headers = files.Headers()
        for file in found.avro:
            groups.setdefault(file.schema, []).append(self._copy(file, headers))
        for day in found.days:
            for path in day.parquet:
                groups.setdefault(_flat_schema(topic), []).append(self._of_parquet(topic, path))
        selects = [self._select(f"{name}_{n}", columns, text, paths) for n, (text, paths) in enumerate(groups.items())]
        names = ", ".join(f"`{c.name}`" for c in columns)
        if selects:
            select = f"SELECT {names} FROM ({' UNION ALL '.join(selects)}){where(scope, _quoted)}"
        else:
            nulls = ", ".join(f"CAST(NULL AS {_flink_type(c.type)}) AS `{c.name}`" for c in columns)
            select = f"SELECT {nulls} FROM (VALUES (1)) AS v (x) WHERE x = 0"
        if found.avro:  # delivery is at least once
            rank = "ROW_NUMBER() OVER (PARTITION BY agent_id, seq ORDER BY `time`)"
            select = f"SELECT {names} FROM (SELECT *, {rank} AS _rank FROM ({select})) WHERE _rank = 1"
        try:
            self._env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {select}")
        except Py4JError as e:
            raise self._explain(e) from e
        return self._view(name, ibis.schema(schema(topic)))

    def kept(self, expression: ir.Table) -> ir.Table:
        """See Session.kept: as Avro files of ours."""
        from py4j.protocol import Py4JError

        name = f"kept_{next(self._numbers)}"
        kinds = expression.schema()
        sql = self._sql(expression)
        values = ", ".join(f"CAST(`{n}` AS {_flink_type(str(kind))}) AS `{n}`" for n, kind in kinds.items())
        self._create(name, [f"`{n}` {_flink_type(str(kind))}" for n, kind in kinds.items()], self._new(""))
        try:
            self._env.execute_sql(f"INSERT INTO {name} SELECT {values} FROM ({sql})").wait()
        except Py4JError as e:
            raise self._explain(e) from e
        return self._view(name, kinds)

    def rows(self, expression: ir.Table) -> list[Row]:
        """See Session.rows. UserError where Flink cannot say what the expression asks for."""
        import pyarrow
        from py4j.protocol import Py4JError
        from pyflink.java_gateway import get_gateway

        try:
            # As Table.to_pandas() has them; its own rows take several calls of the JVM for each value.
            arrow = get_gateway().jvm.org.apache.flink.table.runtime.arrow.ArrowUtils
            batches = arrow.collectAsPandasDataFrame(self._env.sql_query(self._sql(expression))._j_table, _BATCH)
            data = b"".join(iter(lambda: batches.next() if batches.hasNext() else b"", b""))
        except Py4JError as e:
            raise self._explain(e) from e
        rows = pyarrow.ipc.open_stream(data).read_all().to_pylist() if data else []
        return plain_rows(rows, expression.schema())

    def close(self) -> None:
        """Removes what was copied; the JVM ends with the process."""
        shutil.rmtree(self._room, ignore_errors=True)

    def __enter__(self) -> FlinkSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _sql(self, expression: ir.Table) -> str:
        from ibis.common.exceptions import IbisError

        try:
            self._ibis._run_pre_execute_hooks(expression)
            sql: str = self._ibis.compile(expression)
            return sql
        except IbisError as e:
            raise self._cannot(str(e)) from e

    def _view(self, name: str, kinds: Any) -> ir.Table:
        """A table or view as Backend.table() makes it, but for asking Flink for the columns that we know."""
        table: ir.Table = ops.DatabaseTable(name, schema=kinds, source=self._ibis, namespace=ops.Namespace()).to_expr()
        return table

    def _create(self, name: str, columns: list[str], folder: str) -> None:
        """A table over a folder of Avro files."""
        self._env.execute_sql(
            f"CREATE TEMPORARY TABLE {name} ({', '.join(columns)}) "
            f"WITH ('connector' = 'filesystem', 'path' = {literal('file://' + folder)}, 'format' = 'avro')"
        )

    def _new(self, name: str) -> str:
        return os.path.join(self._room, f"{next(self._numbers)}{name}")

    def _copy(self, file: files.File, headers: files.Headers) -> str:
        """A finished file with a schema that Flink reads."""
        if file.path not in self._copied:
            blocks = files.blocks_of(file.path, headers)
            if blocks.broken:
                raise UserError(
                    f"{file.path}: is damaged: {blocks.broken}",
                    "move it out of the lake; `sluice cat` prints what can be read of it",
                )
            to = self._new(".avro")
            schema = json.dumps(_for_flink(json.loads(blocks.header.schema), {}))
            with open(file.path, "rb") as data, open(to, "wb") as out:
                out.write(files.header_bytes(dataclasses.replace(blocks.header, schema=schema)))
                data.seek(blocks.header.size)
                shutil.copyfileobj(data, out, 1 << 20)
            self._copied[file.path] = to
        return self._copied[file.path]

    def _of_parquet(self, topic: str, path: str) -> str:
        """A file of a compacted day as Avro."""
        import fastavro
        import pyarrow.parquet

        if path not in self._copied:
            to = self._new(".avro")
            try:
                data = pyarrow.parquet.ParquetFile(path)
                # A field that was no column when the day was compacted may be there under its name in Avro.
                names = {
                    c.name: next((n for n in (c.name, c.source) if n in data.schema_arrow.names), None)
                    for c in COLUMNS[topic]
                }
                rows = (
                    {c.name: _plain_value(c, row.get(names[c.name] or "")) for c in COLUMNS[topic]}
                    for batch in data.iter_batches(columns=sorted({n for n in names.values() if n}))
                    for row in batch.to_pylist()
                )
                with open(to, "wb") as out:
                    fastavro.writer(out, json.loads(_flat_schema(topic)), rows)
            except (OSError, pyarrow.ArrowException) as e:
                raise UserError(f"{path}: is damaged: {e}", "compact its day again") from e
            self._copied[path] = to
        return self._copied[path]

    def _select(self, name: str, columns: list[Column], text: str, paths: list[str]) -> str:
        """A table over files of one schema, and the columns of columns.py from it."""
        folder = self._new("")
        os.mkdir(folder)
        for path in paths:
            os.link(path, os.path.join(folder, os.path.basename(path)))
        fields = files.schema_fields(text, paths[0])
        outer: dict[str, list[str]] = {}
        values = []
        for column in columns:
            kind = fields.get(column.source)
            is_flat = column.source not in fields and column.name in fields  # of a compacted day
            first, dot, inner = (column.name, "", "") if is_flat else column.source.partition(".")
            if kind is None and not is_flat:
                values.append(f"CAST(NULL AS {_flink_type(column.type)}) AS `{column.name}`")
                continue
            symbols = kind["symbols"] if isinstance(kind, dict) and kind["type"] == "enum" else None
            outer.setdefault(first, []).append(f"`{inner}` " + ("INT" if symbols else _flink_type(column.type)))
            value = f"r.`{first}`" + (f".`{inner}`" if dot else "")
            if symbols:
                cases = " ".join(f"WHEN {n} THEN {literal(symbol)}" for n, symbol in enumerate(symbols))
                value = f"CAST(CASE {value} {cases} END AS STRING)"
            values.append(f"{value} AS `{column.name}`")
        types = [
            f"`{first}` " + (inner[0][3:] if inner[0].startswith("`` ") else f"ROW<{', '.join(inner)}>")
            for first, inner in outer.items()
        ]
        self._create(name, types, folder)
        return f"SELECT {', '.join(values)} FROM {name} AS r"

    def _cannot(self, why: str) -> UserError:
        return UserError(
            f"--engine flink cannot run this analysis ({_asker()}): {why.strip().splitlines()[0]}",
            "run it with --engine duckdb or --engine spark",
        )

    def _explain(self, e: Exception) -> UserError:
        text = str(e)
        causes = re.findall(r"Caused by: [\w.$]+(?:Exception|Error): (.*)", text)
        if "Could not find any format factory" in text:
            return UserError(
                "Flink lacks its Avro format", f"dev/analytics flink fetches it; or name its folder by {JARS}"
            )
        said = re.search(r"(?:ValidationException|TableException|SqlParserException|CodeGenException)\S*: (.*)", text)
        if said:
            return self._cannot(causes[-1] if causes else said[1])
        return UserError(f"{self.source}: Flink: {causes[-1] if causes else text.splitlines()[0]}")


def _asker() -> str:
    """The function of an analysis that asks for rows, such as tune.timeline.series."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sluice_analytics.lake."):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return "unknown"
    return f"{frame.f_globals.get('__name__', '').removeprefix('sluice_analytics.')}.{frame.f_code.co_name}"


def jars() -> list[str]:
    """The formats: those in the folder that SLUICE_FLINK_JARS names, else in this Python environment's jars folder."""
    return sorted(str(p) for p in Path(os.environ.get(JARS) or os.path.join(sys.prefix, "jars")).glob("*.jar"))


def _environment() -> Any:
    try:
        from pyflink.table import EnvironmentSettings, TableEnvironment
    except ModuleNotFoundError as e:
        raise UserError(
            f"no Flink installed: this Python environment has no module {e.name}",
            "dev/analytics flink makes one, whose commands are build/analytics/flink/bin/sluice-*; "
            'elsewhere: pip install "sluice-analytics[flink]" in an environment of its own, and Java 17',
        ) from e
    try:
        address, port = _cluster()
        conf = _configuration() | {
            "execution.target": "remote",
            "rest.address": address,
            "rest.port": str(port),
            "table.local-time-zone": "UTC",
        }
        settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(_of_flink(conf)).build()
        return TableEnvironment.create(settings)
    except Exception as e:  # the JVM's, of any kind
        raise UserError(
            f"Flink does not start: {str(e).splitlines()[0]}", "it needs Java 17 (java on PATH, or JAVA_HOME)"
        ) from e


def _configuration() -> dict[str, str]:
    return {
        "parallelism.default": str(os.cpu_count() or 1),
        "restart-strategy.type": "none",
        # A query of many joins has more exchanges than the least that Flink sets aside has room for.
        "taskmanager.memory.network.min": "256mb",
        "taskmanager.memory.network.max": "256mb",
        "taskmanager.memory.managed.size": "512mb",
    }


def _of_flink(values: dict[str, str]) -> Any:
    from pyflink.common import Configuration

    result = Configuration()
    for key, value in values.items():
        result.set_string(key, value)
    return result


@functools.cache
def _cluster() -> tuple[str, int]:
    """A cluster in this process's JVM, which ends with it: its address and port. Else each query starts one."""
    from pyflink.java_gateway import get_gateway

    # What Flink is told of jars later each of its jobs loads anew, which takes longer than the job.
    os.environ["HADOOP_CLASSPATH"] = os.pathsep.join(filter(None, [os.environ.get("HADOOP_CLASSPATH"), *jars()]))
    java = get_gateway().jvm.org.apache.flink.runtime.minicluster
    conf = _of_flink(_configuration() | {"rest.address": "localhost", "rest.bind-port": "0"})
    of = java.MiniClusterConfiguration.Builder().setConfiguration(conf._j_configuration)
    cluster = java.MiniCluster(of.setNumTaskManagers(1).setNumSlotsPerTaskManager(os.cpu_count() or 1).build())
    cluster.start()
    at = cluster.getRestAddress().get()
    return at.getHost(), at.getPort()


def _flink_type(kind: str) -> str:
    """An Ibis type in Flink."""
    if kind.startswith("array<struct<"):
        inner = kind.removeprefix("array<struct<").removesuffix(">>")
        parts = (part.strip().split(": ") for part in inner.split(","))
        return "ARRAY<ROW<" + ", ".join(f"`{name}` {_PLAIN[kind]}" for name, kind in parts) + ">>"
    if kind.startswith("array<"):
        return f"ARRAY<{_PLAIN[kind.removeprefix('array<').removesuffix('>')]}>"
    return _PLAIN[kind.removeprefix("!")]


_PLAIN = {
    "string": "STRING", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float64": "DOUBLE",
    "boolean": "BOOLEAN",
}  # fmt: skip


def _for_flink(kind: Any, enums: dict[str, bool]) -> Any:
    """A schema of the same bytes: an enum's are those of an int, the number of its symbol; times are longs."""
    if isinstance(kind, str):
        return "int" if enums.get(kind.rpartition(".")[2]) else kind
    if isinstance(kind, list):
        return [_for_flink(k, enums) for k in kind]
    if kind.get("type") == "enum":
        enums[kind["name"].rpartition(".")[2]] = True
        return "int"
    result = {}
    for key, value in kind.items():
        if key in ("type", "items", "values"):
            result[key] = _for_flink(value, enums)
        elif key == "fields":
            # Defaults are for readers, and an enum's would be a string.
            result[key] = [{"name": f["name"], "type": _for_flink(f["type"], enums)} for f in value]
        elif key not in ("logicalType", "doc"):
            result[key] = value
    return result


@functools.cache
def _flat_schema(topic: str) -> str:
    """An Avro schema of the columns of columns.py."""
    plain = {"string": "string", "int64": "long", "float64": "double", "boolean": "boolean"}

    def kind_of(column: Column) -> Any:
        if column.type.startswith("array<struct<"):
            inner = column.type.removeprefix("array<struct<").removesuffix(">>")
            parts = (part.strip().split(": ") for part in inner.split(","))
            fields = [{"name": name, "type": ["null", plain[kind]]} for name, kind in parts]
            return {"type": "array", "items": {"type": "record", "name": column.name + "_item", "fields": fields}}
        if column.type.startswith("array<"):
            return {"type": "array", "items": plain[column.type.removeprefix("array<").removesuffix(">")]}
        return plain[column.type]

    fields = [{"name": c.name, "type": ["null", kind_of(c)]} for c in COLUMNS[topic]]
    return json.dumps({"type": "record", "name": topic, "fields": fields})


def _plain_value(column: Column, value: Any) -> Any:
    if column.is_time and isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    return value


def _quoted(name: str) -> str:
    return "`" + name + "`"


@functools.cache
def _compiler() -> Any:
    """Ibis's compiler for Flink, where it means what it does for the other engines."""
    import sqlglot as sg
    import sqlglot.expressions as sge
    from ibis.backends.sql.compilers.flink import FlinkCompiler
    from ibis.backends.sql.dialects import Flink
    from ibis.common.exceptions import UnsupportedOperationError

    class Numbering(Flink):  # type: ignore[misc]
        class Generator(Flink.Generator):  # type: ignore[misc]
            UNNEST_WITH_ORDINALITY = True

            def unnest_sql(self, expression: Any) -> str:
                """Of what visit_IntegerRange made: the numbers of its rows."""
                found = expression.find(sge.Anonymous)
                if found is not None and found.name == _MANY:
                    alias = expression.args["alias"]
                    alias.set("columns", [sg.to_identifier("_text"), *alias.columns])
                    expression.set("offset", True)
                text: str = super().unnest_sql(expression)
                return text

    class Compiler(FlinkCompiler):  # type: ignore[misc]
        __slots__ = ()
        dialect = Numbering

        def _without_nulls(self, name: str, args: Any) -> Any:
            return self.f[name](*(self.f.coalesce(a, *(b for b in args if b is not a)) for a in args))

        def visit_Greatest(self, op: Any, *, arg: Any) -> Any:
            """Flink's is null where one of its arguments is."""
            return self._without_nulls("greatest", arg)

        def visit_Least(self, op: Any, *, arg: Any) -> Any:
            """Flink's is null where one of its arguments is."""
            return self._without_nulls("least", arg)

        def visit_CountStar(self, op: Any, *, arg: Any, where: Any) -> Any:
            """Ibis takes a sum, which is null for no rows."""
            return (
                super().visit_CountStar(op, arg=arg, where=None)
                if where is None
                else self.f.count(sge.Case(ifs=[sge.If(this=where, true=sge.convert(1))]))
            )

        def visit_FloorDivide(self, op: Any, *, left: Any, right: Any) -> Any:
            """Flink's division of integers goes to 0; this one goes down."""
            if not (op.left.dtype.is_integer() and op.right.dtype.is_integer()):
                return super().visit_FloorDivide(op, left=left, right=right)
            a, b = sg.exp.paren(left), sg.exp.paren(right)
            rest = self.f.anon.mod(self.f.anon.mod(a, b) + b, b)
            return self.cast(sg.exp.paren(a - rest) / b, op.dtype)

        def visit_ArrayIndex(self, op: Any, *, arg: Any, index: Any) -> Any:
            """Flink takes ints alone."""
            return super().visit_ArrayIndex(op, arg=arg, index=self.cast(index, ibis.dtype("int32")))

        def visit_JoinChain(self, op: Any, *, first: Any, rest: Any, values: Any) -> Any:
            """Flink has no word for semi and anti joins, but runs EXISTS as such."""
            halves = [link for link in rest if link.kind in ("SEMI", "ANTI")]
            others = [link for link in rest if link.kind not in ("SEMI", "ANTI")]
            if halves and any(link.side in ("RIGHT", "FULL") for link in others):
                raise UnsupportedOperationError("a semi join before an outer join")
            query = super().visit_JoinChain(op, first=first, rest=others, values=values)
            for link in halves:
                is_there = sge.Exists(this=sg.select(sge.convert(1)).from_(link.this).where(link.args["on"]))
                query = query.where(is_there if link.kind == "SEMI" else sg.not_(is_there), copy=False)
            return query

        def visit_Unnest(self, op: Any, *, arg: Any) -> Any:
            """Of a range: Flink has no function that counts, but numbers the rows of an array from 1."""
            if not isinstance(op.arg, ops.IntegerRange):
                return super().visit_Unnest(op, arg=arg)
            return sg.exp.paren(self.cast(sge.Explode(this=arg), op.dtype) - 1)

        def visit_IntegerRange(self, op: Any, *, start: Any, stop: Any, step: Any) -> Any:
            """An array of so many."""
            if start != sge.convert(0) or step != sge.convert(1):
                raise UnsupportedOperationError("a range that is not 0, 1, 2 …")
            text = self.f.concat(self.f.anon.repeat("0,", self.cast(stop, ibis.dtype("int32")) - 1), "0")
            return sge.Case(ifs=[sge.If(this=stop > 0, true=self.f.anon[_MANY](text, ","))])

    return Compiler()
