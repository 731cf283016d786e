# SPDX-License-Identifier: Apache-2.0
"""Flink, in batch mode, on a lake of files: its own connector for files, and its Avro format.

That format has no enums, and takes microseconds for milliseconds. So Flink gets copies of the files whose
schemas call an enum the int and a time the long that they are in the records' bytes, which stay as they are;
SQL gives enums their symbols back. Compacted days, which are Parquet, become Avro files of that kind.

What Flink's SQL, or Ibis's Flink backend, has no way to say is an error that names it. Where the two say
something else than the other engines do, _compiler() puts it right: GREATEST and LEAST leave nulls out, a count
of what meets a condition is 0 and not null for none, integer division goes down and not to 0.
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
from .values import plain_rows

JARS = "SLUICE_FLINK_JARS"
"""Environment: a folder of jars, instead of the environment's own jars/."""

_RANGE = "sluice_range"


class FlinkSession:
    """A Session over a folder of files. See session.Session."""

    engine = "flink"

    def __init__(self, lake: str) -> None:
        self.source = lake
        self.warnings: list[str] = []
        files.topics_of(lake)
        self._root = os.path.abspath(lake)
        self._slots = os.cpu_count() or 1
        self._env = _environment(self._slots)
        self._room = tempfile.mkdtemp(prefix="sluice-flink-")
        self._copied: dict[str, str] = {}
        self._ibis = ibis.flink.connect(self._env)
        self._ibis.compiler = _compiler()
        self._numbers = itertools.count()
        self._has_range = False

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
            select = f"SELECT {names} FROM ({' UNION ALL '.join(selects)}){_where(scope)}"
        else:
            nulls = ", ".join(f"CAST(NULL AS {_flink_type(c)}) AS `{c.name}`" for c in columns)
            select = f"SELECT {nulls} FROM (VALUES (1)) AS v (x) WHERE x = 0"
        if found.avro:  # delivery is at least once
            rank = "ROW_NUMBER() OVER (PARTITION BY agent_id, seq ORDER BY `time`)"
            select = f"SELECT {names} FROM (SELECT *, {rank} AS _rank FROM ({select})) WHERE _rank = 1"
        try:
            self._env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {select}")
        except Py4JError as e:
            raise self._explain(e) from e
        # As Backend.table() makes it, but for asking Flink for the columns that we know.
        table: ir.Table = ops.DatabaseTable(
            name, schema=ibis.schema(schema(topic)), source=self._ibis, namespace=ops.Namespace()
        ).to_expr()
        return table

    def rows(self, expression: ir.Table) -> list[Row]:
        """See Session.rows. UserError where Flink cannot say what the expression asks for."""
        from ibis.common.exceptions import IbisError
        from py4j.protocol import Py4JError

        kinds = expression.schema()
        try:
            self._ibis._run_pre_execute_hooks(expression)
            sql = self._ibis.compile(expression)
        except IbisError as e:
            raise self._cannot(str(e)) from e
        if _RANGE in sql.lower() and not self._has_range:
            self._add_range()
        try:
            with self._env.execute_sql(sql).collect() as found:
                rows = [
                    {name: _plain(value, kind) for (name, kind), value in zip(kinds.items(), row, strict=True)}
                    for row in found
                ]
        except Py4JError as e:
            raise self._explain(e) from e
        return plain_rows(rows, kinds)

    def close(self) -> None:
        """Removes what was copied; the JVM ends with the process."""
        shutil.rmtree(self._room, ignore_errors=True)

    def __enter__(self) -> FlinkSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

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
                values.append(f"CAST(NULL AS {_flink_type(column)}) AS `{column.name}`")
                continue
            symbols = kind["symbols"] if isinstance(kind, dict) and kind["type"] == "enum" else None
            outer.setdefault(first, []).append(f"`{inner}` " + ("INT" if symbols else _flink_type(column)))
            value = f"r.`{first}`" + (f".`{inner}`" if dot else "")
            if symbols:
                cases = " ".join(f"WHEN {n} THEN {_literal(symbol)}" for n, symbol in enumerate(symbols))
                value = f"CAST(CASE {value} {cases} END AS STRING)"
            values.append(f"{value} AS `{column.name}`")
        types = ", ".join(
            f"`{first}` " + (inner[0][3:] if inner[0].startswith("`` ") else f"ROW<{', '.join(inner)}>")
            for first, inner in outer.items()
        )
        self._env.execute_sql(
            f"CREATE TEMPORARY TABLE {name} ({types}) "
            f"WITH ('connector' = 'filesystem', 'path' = {_literal('file://' + folder)}, 'format' = 'avro')"
        )
        return f"SELECT {', '.join(values)} FROM {name} AS r"

    def _add_range(self) -> None:
        from pyflink.table.udf import udf

        self._env.create_temporary_function(
            _RANGE, udf(_range, result_type="ARRAY<BIGINT>", input_types=["BIGINT", "BIGINT", "BIGINT"])
        )
        self._has_range = True

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


def _environment(slots: int) -> Any:
    try:
        from pyflink.common import Configuration
        from pyflink.table import EnvironmentSettings, TableEnvironment
    except ModuleNotFoundError as e:
        raise UserError(
            f"no Flink installed: this Python environment has no module {e.name}",
            "dev/analytics flink makes one, whose commands are build/analytics/flink/bin/sluice-*; "
            'elsewhere: pip install "sluice-analytics[flink]" in an environment of its own, and Java 17',
        ) from e
    conf = Configuration()
    for key, value in {
        "parallelism.default": str(slots),
        "python.client.executable": sys.executable,
        "python.executable": sys.executable,
        "table.local-time-zone": "UTC",
        "restart-strategy.type": "none",
        # A query of many joins has more exchanges than the least that Flink sets aside has room for.
        "taskmanager.memory.network.min": "256mb",
        "taskmanager.memory.network.max": "256mb",
        "taskmanager.memory.managed.size": "512mb",
        "pipeline.jars": ";".join("file://" + path for path in jars()),
    }.items():
        conf.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(conf).build()
    try:
        return TableEnvironment.create(settings)
    except Exception as e:  # the JVM's, of any kind
        raise UserError(
            f"Flink does not start: {str(e).splitlines()[0]}", "it needs Java 17 (java on PATH, or JAVA_HOME)"
        ) from e


def _flink_type(column: Column) -> str:
    if column.type.startswith("array<struct<"):
        inner = column.type.removeprefix("array<struct<").removesuffix(">>")
        parts = (part.strip().split(": ") for part in inner.split(","))
        return "ARRAY<ROW<" + ", ".join(f"`{name}` {_PLAIN[kind]}" for name, kind in parts) + ">>"
    if column.type.startswith("array<"):
        return f"ARRAY<{_PLAIN[column.type.removeprefix('array<').removesuffix('>')]}>"
    return _PLAIN[column.type]


_PLAIN = {"string": "STRING", "int64": "BIGINT", "float64": "DOUBLE", "boolean": "BOOLEAN"}


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


def _plain(value: Any, kind: Any) -> Any:
    """A value of Flink's without its Rows: dictionaries, also in arrays. kind: its Ibis type."""
    if value is None:
        return None
    if kind.is_array():
        return [_plain(item, kind.value_type) for item in value]
    if kind.is_struct():
        return {name: _plain(item, k) for (name, k), item in zip(kind.items(), value, strict=True)}
    return value


def _plain_value(column: Column, value: Any) -> Any:
    if column.is_time and isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    return value


def _where(scope: Scope) -> str:
    parts = []
    if scope.since_us is not None:
        parts.append(f"`time` >= {scope.since_us}")
    if scope.until_us is not None:
        parts.append(f"`time` < {scope.until_us}")
    for name, values in (("run_id", scope.run_ids), ("host_id", scope.hosts)):
        if values is not None:
            parts.append(f"{name} IN ({', '.join(_literal(v) for v in values) or 'CAST(NULL AS STRING)'})")
    return " WHERE " + " AND ".join(parts) if parts else ""


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _range(start: int | None, stop: int | None, step: int | None) -> list[int]:
    return [] if start is None or stop is None or not step else list(range(start, stop, step))


@functools.cache
def _compiler() -> Any:
    """Ibis's compiler for Flink, where it means what it does for the other engines."""
    import sqlglot as sg
    import sqlglot.expressions as sge
    from ibis.backends.sql.compilers.flink import FlinkCompiler

    class Compiler(FlinkCompiler):  # type: ignore[misc]
        __slots__ = ()

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

        def visit_IntegerRange(self, op: Any, *, start: Any, stop: Any, step: Any) -> Any:
            """Flink has no function that counts."""
            return self.f.anon[_RANGE](*(self.cast(x, ibis.dtype("int64")) for x in (start, stop, step)))

    return Compiler()
