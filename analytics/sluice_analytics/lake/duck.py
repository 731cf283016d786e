# SPDX-License-Identifier: Apache-2.0
"""DuckDB: the engine of one machine. Reads a lake of files without a server.

Records go through one view a topic and scope: Avro files by groups of equal schemas, Parquet files of
compacted days, and at the end each (agent_id, seq) once.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir

from ..errors import UserError
from . import files
from .columns import COLUMNS, Column
from .session import ALL, Row, Scope

_SQL_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "float64": "DOUBLE", "boolean": "BOOLEAN",
              "array<string>": "VARCHAR[]",
              "array<struct<place: string, reason: string, count: int64>>":
                  'STRUCT(place VARCHAR, reason VARCHAR, "count" BIGINT)[]'}  # fmt: skip


def literal(value: str) -> str:
    """A string as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def connect(memory_limit: str | None = None) -> Any:
    """A DuckDB connection in memory that reads Avro. memory_limit: as DuckDB writes sizes, such as 1GiB."""
    from duckdb_extensions import import_extension

    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    if memory_limit:
        con.execute(f"SET memory_limit = {literal(memory_limit)}")
    import_extension("avro")
    con.execute("LOAD avro")
    return con


class DuckSession:
    """A Session over a folder of files. See session.Session."""

    engine = "duckdb"

    def __init__(self, lake: str, memory_limit: str | None = None) -> None:
        self.source = lake
        self.warnings: list[str] = []
        self._topics = files.topics_of(lake)
        self._con = connect(memory_limit)
        self._ibis = ibis.duckdb.from_connection(self._con)
        self._numbers = itertools.count()

    @property
    def connection(self) -> Any:
        """The DuckDB connection, for lake/compact.py alone."""
        return self._con

    def table(self, topic: str, scope: Scope = ALL) -> ir.Table:
        """See Session.table."""
        name = f"{topic}_{next(self._numbers)}"
        self._con.execute(f"CREATE VIEW {name} AS {self._select(topic, scope)}")
        return self._ibis.table(name)

    def rows(self, expression: ir.Table) -> list[Row]:
        """See Session.rows."""
        try:
            result: list[Row] = expression.to_pyarrow().to_pylist()
        except duckdb.Error as e:
            raise self._explain(e) from e
        return result

    def close(self) -> None:
        """Ends the connection."""
        self._con.close()

    def __enter__(self) -> DuckSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _select(self, topic: str, scope: Scope) -> str:
        from . import compact

        columns = COLUMNS[topic]
        covered, parquet = compact.parts_of(self.source, topic, scope)
        groups: dict[str, list[str]] = {}
        for file in files.avro_files(self.source, topic, scope, covered):
            groups.setdefault(file.schema, []).append(file.path)
        known = {c.source.split(".")[0] for c in columns}
        selects = []
        for text, paths in groups.items():
            fields = files.schema_fields(text, paths[0])
            selects.append(_select_avro(columns, fields, paths, scope))
            self._warn_of_the_future(topic, fields, known, paths[0])
        select = " UNION ALL ".join(selects)
        if select:  # delivery is at least once
            select = (
                f"SELECT * FROM ({select}) QUALIFY row_number() OVER (PARTITION BY agent_id, seq ORDER BY time) = 1"
            )
        if parquet:
            part = f"SELECT {', '.join(_quoted(c.name) for c in columns)} FROM {_list('read_parquet', parquet)}{_where(scope)}"
            select = f"{part} UNION ALL {select}" if select else part
        if not select:
            select = (
                "SELECT "
                + ", ".join(f"NULL::{_SQL_TYPES[c.type]} AS {_quoted(c.name)}" for c in columns)
                + " WHERE false"
            )
        return select

    def _warn_of_the_future(self, topic: str, fields: dict[str, Any], known: set[str], path: str) -> None:
        if "schema_version" not in fields:
            raise UserError(f"{path}: is no record of sluice.{topic}", "move it out of the lake")

    def _explain(self, e: Exception) -> UserError:
        """Which file an engine's error is about: tried one by one, since the engine does not say."""
        for topic in self._topics:
            for file in files.avro_files(self.source, topic, ALL):
                try:
                    self._con.execute(f"SELECT count(*), max(time) FROM read_avro({literal(file.path)})").fetchall()
                except duckdb.Error as broken:
                    reason = str(broken).splitlines()[0]
                    return UserError(
                        f"{file.path}: is damaged: {reason}",
                        "move it out of the lake; `sluice cat` prints what can be read of it",
                    )
        return UserError(f"{self.source}: {str(e).splitlines()[0]}")


def _quoted(name: str) -> str:
    return f'"{name}"'


def _list(function: str, paths: Sequence[str]) -> str:
    return f"{function}([{', '.join(literal(os.fspath(p)) for p in paths)}])"


def _where(scope: Scope) -> str:
    parts = []
    if scope.since_us is not None:
        parts.append(f'"time" >= {scope.since_us}')
    if scope.until_us is not None:
        parts.append(f'"time" < {scope.until_us}')
    if scope.run_ids is not None:
        parts.append("run_id IN (" + ", ".join(literal(r) for r in scope.run_ids or ("",)) + ")")
    if scope.hosts is not None:
        parts.append("host_id IN (" + ", ".join(literal(h) for h in scope.hosts or ("",)) + ")")
    return " WHERE " + " AND ".join(parts) if parts else ""


def _value(column: Column, fields: dict[str, Any]) -> str:
    kind = _SQL_TYPES[column.type]
    if column.source not in fields:
        return f"NULL::{kind}"
    source = ".".join(_quoted(part) for part in column.source.split("."))
    if column.is_time:
        return f"epoch_us({source})"
    return f"{source}::{kind}"


def _select_avro(columns: list[Column], fields: dict[str, Any], paths: list[str], scope: Scope) -> str:
    values = ", ".join(f"{_value(c, fields)} AS {_quoted(c.name)}" for c in columns)
    return f"SELECT * FROM (SELECT {values} FROM {_list('read_avro', paths)}){_where(scope)}"
