# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables as the streaming jobs write them: one a topic, with the columns of columns.py.

They are named as CATALOG.NAMESPACE, or by the folder of a namespace in a Hadoop catalog, where the table of
programs is FOLDER/program. The jobs have each record in there once. A scope's bounds go into
Iceberg's own filters, so that files whose times, runs or hosts lie outside are not read.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import shutil
import tempfile
import urllib.parse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import duckdb

from ..errors import UserError
from .columns import COLUMNS, Column, schema
from .duck import connect, keep, load_extension, rows_of
from .expression import table
from .session import ALL, Row, Scope, Session
from .sql import literal, quoted, where
from .stage import SQL_TYPES

if TYPE_CHECKING:
    import ibis.expr.types as ir

_HOW = "name CATALOG.NAMESPACE, or the folder of a namespace as in file:///warehouse/sluice"


@dataclasses.dataclass(frozen=True)
class TableLocation:
    """Where the tables are: a folder, by path or URL, or a catalog and a namespace in it."""

    folder: str = ""
    catalog: str = ""
    namespace: str = ""


def table_location(name: str) -> TableLocation:
    """What --table names."""
    if name.startswith("file:"):
        return TableLocation(folder=os.path.abspath(urllib.parse.unquote(urllib.parse.urlsplit(name).path)))
    if "://" in name:
        return TableLocation(folder=name.rstrip("/"))
    if "/" in name or os.path.isdir(name):
        return TableLocation(folder=os.path.abspath(name))
    catalog, dot, namespace = name.partition(".")
    if not dot or not catalog or not namespace:
        raise UserError(f"--table {name}: does not name tables", _HOW)
    return TableLocation(catalog=catalog, namespace=namespace)


def open_table(
    name: str, engine: str, memory_limit: str | None, spark_master: str | None = None, spark_conf: Sequence[str] = ()
) -> Session:
    """The Session over the tables that --table names."""
    at = table_location(name)
    if engine == "spark":
        return _on_spark(name, at, spark_master, spark_conf)
    return IcebergSession(name, at, memory_limit)


def metadata_of(folder: str) -> str | None:
    """The newest metadata file of the table in a folder; None where there is none."""
    at = os.path.join(folder, "metadata")
    found = []
    for entry in os.listdir(at) if os.path.isdir(at) else []:
        match = re.match(r"v?(\d+)(?:-[0-9a-f-]+)?\.metadata\.json$", entry)
        if match:
            found.append((int(match[1]), entry))
    return os.path.join(at, max(found)[1]) if found else None


class IcebergSession(Session):
    """A Session over Iceberg tables, on DuckDB. See session.Session."""

    engine = "duckdb"

    def __init__(self, name: str, at: TableLocation, memory_limit: str | None = None) -> None:
        """name: as the user wrote it."""
        self.source = name
        self.warnings: list[str] = []
        self._catalog = _Catalog(at) if at.catalog else None
        self._folder = at.folder
        if "://" in self._folder:
            raise UserError(
                f"--table {name}: DuckDB reads folders of this machine",
                "name the catalog of these tables, or use --engine spark",
            )
        if not any(self._metadata(topic) for topic in COLUMNS):
            raise UserError(
                f"--table {name}: has no Iceberg table of a sluice topic, such as program",
                _HOW + "; analytics/streaming fills them",
            )
        self._con = connect(memory_limit)
        self._room = tempfile.mkdtemp(prefix="sluice-iceberg-")
        load_extension(self._con, "iceberg")
        self._con.execute(f"SET temp_directory = {literal(self._room)}")
        self._numbers = itertools.count()

    def table(self, topic: str, scope: Scope = ALL) -> ir.Table:
        """See Session.table."""
        name = f"{topic}_{next(self._numbers)}"
        columns = COLUMNS[topic]
        metadata = self._metadata(topic)
        try:
            if metadata is None:
                nulls = ", ".join(f"NULL::{SQL_TYPES[c.type]} AS {quoted(c.name)}" for c in columns)
                self._con.execute(f"CREATE VIEW {name} AS SELECT {nulls} WHERE false")
            elif "://" in metadata:
                self._fetch(topic, name, scope)
            else:
                source = f"iceberg_scan({literal(metadata)})"
                types = {r[0]: r[1] for r in self._con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
                values = ", ".join(f"{_value(c, types)} AS {quoted(c.name)}" for c in columns)
                self._con.execute(f"CREATE VIEW {name} AS SELECT {values} FROM {source}{where(scope)}")
        except duckdb.Error as e:
            raise self._explain(e) from e
        return table(name, schema(topic))

    def kept(self, expression: ir.Table) -> ir.Table:
        """See Session.kept."""
        try:
            return keep(self._con, expression, f"kept_{next(self._numbers)}", self._room)
        except duckdb.Error as e:
            raise self._explain(e) from e

    def rows(self, expression: ir.Table) -> list[Row]:
        """See Session.rows."""
        try:
            return rows_of(self._con, expression)
        except duckdb.Error as e:
            raise self._explain(e) from e

    def close(self) -> None:
        """Ends the connection."""
        self._con.close()
        shutil.rmtree(self._room, ignore_errors=True)

    def _metadata(self, topic: str) -> str | None:
        if self._catalog is None:
            return metadata_of(os.path.join(self._folder, topic))
        found = self._catalog.metadata(topic)
        return found.removeprefix("file://").removeprefix("file:") if found and found.startswith("file:") else found

    def _fetch(self, topic: str, name: str, scope: Scope) -> None:
        """Records of a table that rests elsewhere, by pyiceberg, into a table of ours."""
        assert self._catalog is not None
        reader = self._catalog.scan(topic, scope)
        self._con.register(f"{name}_there", reader)
        types = {r[0]: r[1] for r in self._con.execute(f"DESCRIBE SELECT * FROM {name}_there").fetchall()}
        values = ", ".join(f"{_value(c, types)} AS {quoted(c.name)}" for c in COLUMNS[topic])
        self._con.execute(f"CREATE TABLE {name} AS SELECT {values} FROM {name}_there")
        self._con.unregister(f"{name}_there")

    def _explain(self, e: Exception) -> UserError:
        return UserError(f"--table {self.source}: {str(e).splitlines()[0]}", "if it was compacted meanwhile, try again")


class _Catalog:
    """A namespace of a catalog that pyiceberg knows by name, from ~/.pyiceberg.yaml or PYICEBERG_CATALOG__…."""

    def __init__(self, at: TableLocation) -> None:
        try:
            from pyiceberg.catalog import load_catalog
        except ModuleNotFoundError as e:
            raise UserError(
                f"--table: this Python environment has no module {e.name}", 'pip install "sluice-analytics[iceberg]"'
            ) from e
        self._at = at
        try:
            self._catalog = load_catalog(at.catalog)
        except Exception as e:  # of any library behind a catalog
            raise UserError(f"--table: the catalog {at.catalog} cannot be opened: {e}", "see ~/.pyiceberg.yaml") from e

    def _table(self, topic: str) -> Any:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return self._catalog.load_table(f"{self._at.namespace}.{topic}")
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as e:
            raise UserError(
                f"--table: {self._at.catalog}.{self._at.namespace}.{topic}: {e}", "see ~/.pyiceberg.yaml"
            ) from e

    def metadata(self, topic: str) -> str | None:
        """Where a topic's table has its newest metadata; None where there is no such table."""
        found = self._table(topic)
        return None if found is None else str(found.metadata_location)

    def scan(self, topic: str, scope: Scope) -> Any:
        """A topic's records in a scope, as a reader of Arrow batches."""
        from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, In, LessThan

        wanted: list[Any] = [AlwaysTrue()]
        if scope.since_us is not None:
            wanted.append(GreaterThanOrEqual("time", scope.since_us))
        if scope.until_us is not None:
            wanted.append(LessThan("time", scope.until_us))
        if scope.run_ids is not None:
            wanted.append(In("run_id", scope.run_ids))
        if scope.hosts is not None:
            wanted.append(In("host_id", scope.hosts))
        condition = wanted[0]
        for part in wanted[1:]:
            condition = And(condition, part)
        found = self._table(topic)
        names = {f.name for f in found.schema().fields}
        fields = tuple(c.name for c in COLUMNS[topic] if c.name in names)
        return found.scan(row_filter=condition, selected_fields=fields).to_arrow_batch_reader()


def _value(column: Column, types: dict[str, str]) -> str:
    if column.name not in types:
        return f"NULL::{SQL_TYPES[column.type]}"
    if types[column.name].startswith("TIMESTAMP"):
        return f"epoch_us({quoted(column.name)})"
    return f"{quoted(column.name)}::{SQL_TYPES[column.type]}"


def _on_spark(name: str, at: TableLocation, master: str | None, conf: Sequence[str]) -> Session:
    from . import spark

    catalog, namespace = at.catalog, at.namespace
    needs = {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"}
    if at.folder:
        catalog, namespace = "sluice_tables", os.path.basename(at.folder)
        key = f"spark.sql.catalog.{catalog}"
        needs |= {
            key: "org.apache.iceberg.spark.SparkCatalog",
            f"{key}.type": "hadoop",
            f"{key}.warehouse": os.path.dirname(at.folder),
        }

    class SparkIceberg(spark.SparkTables):
        """A Session over Iceberg tables, on Spark."""

        def exists(self, topic: str) -> bool:
            """Whether there is a topic's table."""
            return bool(self._spark.catalog.tableExists(f"`{catalog}`.{namespace}.`{topic}`"))

        def refresh(self) -> None:
            """See Growing.refresh: a catalog of Spark keeps what it knows of a table for a while."""
            for topic in COLUMNS:
                if self.exists(topic):
                    self._spark.catalog.refreshTable(f"`{catalog}`.{namespace}.`{topic}`")

        def frame(self, topic: str, scope: Scope = ALL) -> Any:
            """See SparkTables."""
            if not self.exists(topic):
                return self._spark.createDataFrame([], spark.ddl(COLUMNS[topic]))
            table = self._spark.table(f"`{catalog}`.{namespace}.`{topic}`")
            return spark.within(spark.of_table(table, COLUMNS[topic]), scope)

    session = SparkIceberg(name, master, conf, needs)
    try:
        if not any(session.exists(topic) for topic in COLUMNS):
            raise UserError(f"--table {name}: has no Iceberg table of a sluice topic, such as program", _HOW)
    except UserError:
        session.close()
        raise
    except Exception as e:
        session.close()
        raise UserError(
            f"--table {name}: {spark.reason(e)}",
            f"name its catalog to Spark: --spark-conf spark.sql.catalog.{catalog}=org.apache.iceberg.spark.SparkCatalog"
            f" --spark-conf spark.sql.catalog.{catalog}.type=…",
        ) from e
    return session
