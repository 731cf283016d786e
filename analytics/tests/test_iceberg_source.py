# SPDX-License-Identifier: Apache-2.0
"""--table: Iceberg tables, made by pyiceberg and by Spark of a lake of files, give the same answers as that lake."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import engines
import pyarrow as pa
import pytest
from lakes import TOPICS, LakeMaker
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.config import Config

from sluice_analytics.errors import UserError
from sluice_analytics.lake.columns import COLUMNS, schema
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.expression import table
from sluice_analytics.lake.iceberg import IcebergSession, open_table, table_location
from sluice_analytics.lake.session import Scope

_KINDS = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "boolean": pa.bool_()}


def arrow_type(kind: str) -> pa.DataType:
    if kind == "array<string>":
        return pa.list_(pa.string())
    if kind.startswith("array<struct<"):
        fields = [part.strip().split(": ") for part in kind.removeprefix("array<struct<").removesuffix(">>").split(",")]
        return pa.list_(pa.struct([(name, _KINDS[k]) for name, k in fields]))
    return _KINDS[kind]


class Tables:
    """A lake of files, and its records in Iceberg tables of a catalog and of folders."""

    def __init__(self, at: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake, self.case = engines.make_lake(at / "lake")
        self.folder = f"file://{at}/warehouse/sluice"
        self.properties = {"uri": f"sqlite:///{at}/catalog.db", "warehouse": f"file://{at}/warehouse"}
        for key, value in ({"type": "sql"} | self.properties).items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAB__{key.upper()}", value)
        # pyiceberg looks at its environment once, when it is imported.
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
        catalog = SqlCatalog("lab", **self.properties)
        catalog.create_namespace("sluice")
        with DuckSession(str(self.lake.path)) as session:
            for topic in TOPICS:
                if topic == "finding":
                    continue  # a topic of which nothing came yet has no table
                self._make(catalog, topic, session.rows(session.table(topic)))

    def _make(self, catalog: Any, topic: str, rows: list[dict[str, Any]]) -> None:
        schema = pa.schema(
            [pa.field(c.name, arrow_type(c.type)) for c in COLUMNS[topic] if (topic, c.name) != ("host", "region")]
            + [pa.field("schema_version", pa.int64()), pa.field("event_time", pa.timestamp("us", tz="UTC"))]
        )
        table = catalog.create_table(f"sluice.{topic}", schema, location=f"{self.folder}/{topic}")
        with table.update_spec() as spec:
            spec.add_identity("host_id")
        rows = [row | {"schema_version": 2, "event_time": row["time"]} for row in rows]
        for part in (rows[::2], rows[1::2]):  # two commits
            table.append(pa.Table.from_pylist(part, schema))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield Tables(tmp_path_factory.mktemp("iceberg"), patch)


@pytest.mark.parametrize("where", ["folder", "catalog"])
def test_equals_the_lake_of_files(tables: Tables, where: str) -> None:
    name = tables.folder if where == "folder" else "lab.sluice"
    with open_table(name, "duckdb", None) as there, DuckSession(str(tables.lake.path)) as here:
        for analysis in engines.TABLES | engines.EXPRESSIONS:
            if analysis == "table finding":
                continue
            got, wanted = (engines.in_order(engines.answer(s, analysis, tables.case)) for s in (there, here))
            if analysis == "table host":
                wanted = [row | {"region": None} for row in wanted]
            assert engines.difference(wanted, got) is None, analysis
        assert there.rows(there.table("finding")) == []


def test_a_scope_reads_the_files_that_it_needs(tables: Tables) -> None:
    scopes = (Scope(), Scope(hosts=(tables.lake.host_id,)), Scope(since_us=tables.case.until_us))
    read = []
    with open_table(tables.folder, "duckdb", None) as there:
        assert isinstance(there, IcebergSession)
        for number, scope in enumerate(scopes):
            there.table("program", scope)
            plan = there._con.execute(f"EXPLAIN ANALYZE SELECT max(pid) FROM program_{number}").fetchall()
            print(plan)
            found = re.search(r"Total Files Read: (\d+)", str(plan))
            read.append(int(found[1]) if found else 0)
    assert read == [4, 2, 0]  # two hosts, two commits


def test_what_rests_elsewhere_is_fetched_by_pyiceberg(tables: Tables) -> None:
    scopes = (Scope(), tables.case.scope, Scope(hosts=(tables.lake.host_id,)), Scope(run_ids=("run-0", "run-3")))
    with open_table("lab.sluice", "duckdb", None) as there, DuckSession(str(tables.lake.path)) as here:
        assert isinstance(there, IcebergSession)
        for number, scope in enumerate(scopes):
            there._fetch("program", f"fetched_{number}", scope)
            got = engines.in_order(there.rows(table(f"fetched_{number}", schema("program"))))
            wanted = engines.in_order(here.rows(here.table("program", scope)))
            assert wanted
            assert engines.difference(wanted, got) is None


@pytest.mark.parametrize("where", ["folder", "catalog"])
def test_a_table_that_is_made_later_has_what_was_committed_since(
    where: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `tune --follow` rests on: one session, a table of it for each look."""
    growing = Tables(tmp_path, monkeypatch)
    with open_table(growing.folder if where == "folder" else "lab.sluice", "duckdb", None) as there:
        rows = there.rows(there.table("run"))
        new = [rows[-1] | {"seq": 1_000_000 + n, "run_id": f"later-{n}", "event_time": 0} for n in range(2)]
        table = SqlCatalog("lab", **growing.properties).load_table("sluice.run")
        for row in new:
            table.append(pa.Table.from_pylist([row | {"schema_version": 2}], table.schema().as_arrow()))
        later = there.rows(there.table("run", Scope(run_ids=("later-0", "later-1"))))
        assert sorted(r["run_id"] for r in later) == ["later-0", "later-1"]
        assert len(there.rows(there.table("run"))) == len(rows) + 2


def test_errors_say_what_to_mend(tables: Tables, tmp_path: pathlib.Path) -> None:
    for name, said in (
        ("program", "does not name tables"),
        (f"file://{tmp_path}", "has no Iceberg table of a sluice topic"),
        (str(tmp_path / "nowhere"), "has no Iceberg table of a sluice topic"),
        ("lab.other", "has no Iceberg table of a sluice topic"),
        ("nocatalog.sluice", "catalog nocatalog cannot be opened"),
        ("s3://bucket/warehouse/sluice", "DuckDB reads folders of this machine"),
    ):
        with pytest.raises(UserError, match=said):
            open_table(name, "duckdb", None)
    assert table_location("file:///a%20b/c") == table_location("/a b/c")


def test_a_hadoop_catalog_of_spark(spark: engines.Engine, tmp_path: pathlib.Path) -> None:
    lake, case = engines.make_lake(tmp_path / "lake")
    assert isinstance(lake, LakeMaker)
    warehouse = tmp_path / "warehouse"
    folder = f"file://{warehouse}/sluice"
    names = list(engines.TABLES)
    spark.make_tables(str(lake.path), str(warehouse))
    assert engines.compare(spark, lake.path, case, [*names, "sweep.use.by_run"], ("--table", folder)) == {}
    with open_table(folder, "duckdb", None) as there, DuckSession(str(lake.path)) as here:
        for name in names:
            got, wanted = (engines.in_order(engines.answer(s, name, case)) for s in (there, here))
            assert engines.difference(wanted, got) is None, name
