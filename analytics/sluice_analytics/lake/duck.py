# SPDX-License-Identifier: Apache-2.0
"""DuckDB: the engine of one machine. Reads a lake of files without a server.

Records go through one view a topic and scope: Parquet files of compacted days, and Avro files by way of
stage.py, which reads each of them once. Delivery is at least once: where files overlap in seq, the view
has each record once, by columns.KEY; where they do not, nothing need be compared. That is the rule, except where
an agent's lake has files of what users wrote beyond their shares, which lie between the others.

Files that are still being written are read up to their last whole block.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import itertools
import os
from typing import TYPE_CHECKING, Any

import duckdb

from ..errors import UserError
from . import compact, expression, files, statements
from .columns import COLUMNS, KEY_SQL, Column, same_key, schema
from .session import ALL, Row, Scope, Session
from .sql import literal, quoted, where
from .stage import SQL_TYPES, Part, Stage, paths_list

if TYPE_CHECKING:
    import ibis.expr.types as ir

_MUCH_AVRO = 2_000_000


def connect(memory_limit: str | None = None) -> Any:
    """A DuckDB connection in memory that reads Avro. memory_limit: as DuckDB writes sizes, such as 1GiB."""
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute("SET enable_progress_bar = false")
    # It knows a file by name, size and second: another of the same name would be taken for it.
    con.execute("SET enable_external_file_cache = false")
    if memory_limit:
        try:
            con.execute(f"SET memory_limit = {literal(memory_limit)}")
        except duckdb.Error as e:
            raise UserError(f'--memory-limit "{memory_limit}" is not a size', "write it as 1GiB or 512MiB") from e
    load_extension(con, "avro")
    return con


def load_extension(con: Any, name: str) -> None:
    """Loads an extension from its package, without installing it: there may be no home to install it to."""
    try:
        package = importlib.resources.files(f"duckdb_extension_{name}")
        path = package / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        con.execute(f"LOAD {literal(str(path))}")
    except (duckdb.Error, ModuleNotFoundError) as e:
        raise UserError(
            f"DuckDB's extension {name} cannot be loaded: {str(e).splitlines()[0]}",
            f"install duckdb-extension-{name} {duckdb.__version__}",
        ) from e


def keep(con: Any, wanted: ir.Table, name: str, folder: str) -> ir.Table:
    """The rows of an expression as a Parquet file in a folder, and a view of it: it takes no memory, and queries
    read the columns that they need."""
    path = os.path.join(folder, name + ".parquet")
    kinds = statements.columns_of(wanted)
    # The sum of BIGINTs is a HUGEINT, which Parquet has not.
    values = ", ".join(
        f"{quoted(c)}::BIGINT AS {quoted(c)}" if kind == "int64" else quoted(c) for c, kind in kinds.items()
    )
    con.execute("SET preserve_insertion_order = false")
    try:
        con.execute(
            f"COPY (SELECT {values} FROM ({statements.sql_of(wanted)})) TO {literal(path)} "
            "(FORMAT parquet, COMPRESSION snappy)"
        )
    finally:
        con.execute("SET preserve_insertion_order = true")
    con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({literal(path)})")
    return expression.table(name, kinds)


def rows_of(con: Any, wanted: ir.Table) -> list[Row]:
    """The rows of an expression."""
    # Not by Ibis, which takes half a second to import pandas.
    cursor = con.execute(statements.sql_of(wanted))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


class DuckSession(Session):
    """A Session over a folder of files. See session.Session."""

    engine = "duckdb"

    def __init__(self, lake: str, memory_limit: str | None = None) -> None:
        self.source = lake
        self.warnings: list[str] = []
        files.topics_of(lake)
        self._con = connect(memory_limit)
        self._stage = Stage(self._con, self.warnings)
        self._con.execute(f"SET temp_directory = {literal(self._stage.folder)}")
        self._numbers = itertools.count()

    @property
    def connection(self) -> Any:
        """The DuckDB connection, for lake/ alone."""
        return self._con

    @property
    def stage(self) -> Stage:
        """The staged Avro files, for lake/ alone."""
        return self._stage

    def table(self, topic: str, scope: Scope = ALL) -> ir.Table:
        """See Session.table. Reads what Avro files the scope needs; files that came since are in the next table."""
        name = f"{topic}_{next(self._numbers)}"
        with self._errors():
            self._con.execute(f"CREATE VIEW {name} AS {self.select(topic, scope)}")
        return expression.table(name, schema(topic))

    def kept(self, wanted: ir.Table) -> ir.Table:
        """See Session.kept."""
        with self._errors():
            return keep(self._con, wanted, f"kept_{next(self._numbers)}", self._stage.folder)

    def rows(self, wanted: ir.Table) -> list[Row]:
        """See Session.rows."""
        with self._errors():
            return rows_of(self._con, wanted)

    def close(self) -> None:
        """Ends the connection and removes what was staged."""
        self._con.close()
        self._stage.close()

    def select(self, topic: str, scope: Scope) -> str:
        """The records of a topic in a scope, each once, as SQL with the columns of columns.py."""
        days, parts = self._look(topic, scope)
        columns = COLUMNS[topic]
        selects = [_select_avro(columns, parts, days, scope)] if parts else []
        shapes: dict[tuple[str, ...], list[str]] = {}
        for day in days:
            shapes.setdefault(day.columns, []).extend(day.parquet)
        for shape, paths in shapes.items():
            if paths:
                values = ", ".join(f"{_of_parquet(c, shape)} AS {quoted(c.name)}" for c in columns)
                selects.append(f"SELECT {values} FROM {paths_list('read_parquet', paths)}{where(scope)}")
        if not selects:
            nulls = ", ".join(f"NULL::{SQL_TYPES[c.type]} AS {quoted(c.name)}" for c in columns)
            return f"SELECT {nulls} WHERE false"
        return " UNION ALL ".join(selects)

    def _look(self, topic: str, scope: Scope) -> tuple[list[compact.Day], list[Part]]:
        """What is there, at one moment, though an agent writes and sluice-lake compacts meanwhile."""
        for _ in range(compact.TRIES):
            days, finished, opened = compact.files_in(self.source, topic, scope, self._stage.headers)
            try:
                parts = self._stage.parts(topic, finished, opened, scope.run_ids)
            except FileNotFoundError:
                continue
            if sum(p.rows for p in parts) > _MUCH_AVRO:
                self._stage.warn(
                    f"{self.source}: more than {_MUCH_AVRO:,} records are read from Avro files, which takes a while; "
                    "`sluice-lake compact` makes closed days faster to read"
                )
            return days, parts
        raise compact.changes_too_fast(self.source)

    @contextlib.contextmanager
    def _errors(self) -> Any:
        try:
            yield
        except duckdb.OutOfMemoryException as e:
            raise UserError(
                f"{self.source}: not enough memory: {_first_line(e)}",
                "raise --memory-limit, read less with --since, or run sluice-lake compact",
            ) from e
        except duckdb.IOException as e:
            raise UserError(f"{self.source}: {_first_line(e)}", "if it was compacted meanwhile, try again") from e
        except duckdb.Error as e:
            raise UserError(f"{self.source}: {_first_line(e)}") from e


def _first_line(e: Exception) -> str:
    return str(e).splitlines()[0]


def _select_avro(columns: list[Column], parts: list[Part], days: list[compact.Day], scope: Scope) -> str:
    """Staged records; those that a compacted day has too, and second deliveries, left out."""
    names = ", ".join(quoted(c.name) for c in columns)
    select = f"SELECT {names} FROM {paths_list('read_parquet', [p.parquet for p in parts])}{where(scope)}"
    if _overlap(parts):
        select = f"SELECT * FROM ({select}) QUALIFY row_number() OVER (PARTITION BY {KEY_SQL} ORDER BY time) = 1"
    twice = [path for day in days if day.may_have(parts) for path in day.parquet]
    if twice:
        select = (
            f"SELECT a.* FROM ({select}) a ANTI JOIN (SELECT {KEY_SQL} FROM {paths_list('read_parquet', twice)}) p "
            f"ON {same_key('a', 'p')}"
        )
    return select


def _overlap(parts: list[Part]) -> bool:
    """Can a record be in these parts twice?"""
    last: dict[str, list[tuple[int, int]]] = {}
    for part in parts:
        if part.has_duplicates:
            return True
        for agent, (low, high) in part.agents.items():
            before = last.setdefault(agent, [])
            if any(low <= h and l <= high for l, h in before):  # noqa: E741
                return True
            before.append((low, high))
    return False


def _of_parquet(column: Column, names: tuple[str, ...]) -> str:
    """A column in a compacted day: by its name, or as a field that was no column when the day was compacted."""
    if column.name in names:
        return quoted(column.name)
    if column.source in names:
        return (
            f"epoch_us({quoted(column.source)})"
            if column.is_time
            else f"{quoted(column.source)}::{SQL_TYPES[column.type]}"
        )
    return f"NULL::{SQL_TYPES[column.type]}"
