# SPDX-License-Identifier: Apache-2.0
"""The Iceberg tables of the streaming jobs, by Spark: where they are, how they are made and how they grow."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

import decode
import layout
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from sluice_analytics.errors import UserError
from sluice_analytics.lake import spark
from sluice_analytics.options import pairs

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")

# A garbage message must not ask for gigabytes before it turns out to be one: Avro's own limits on lengths. Kafka's
# largest message is 1 MiB unless configured, the agent's largest record a few times 32 KiB.
_AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength={16 << 20}" for what in ("string", "bytes", "collectionItems")
)

_PROPERTIES = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    # One file a day and batch, not one a task and day.
    "write.distribution-mode": "hash",
    # Each batch is a commit: without these, metadata files would be kept for ever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    # Compaction may commit at the same moment.
    "commit.retry.num-retries": "10",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that name the catalog of the tables, the same for every job."""
    group = parser.add_argument_group("where the tables are")
    group.add_argument(
        "--warehouse",
        metavar="URL",
        help="a Hadoop catalog: a folder or hdfs://, for one writer; s3:// needs a catalog that locks",
    )
    group.add_argument("--catalog", metavar="NAME", default="lake", help="name of the catalog in Spark (default: lake)")
    group.add_argument(
        "--catalog-property",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a property of the Iceberg catalog, such as type=rest, uri=https://…",
    )
    group.add_argument(
        "--namespace", metavar="NAME", default="sluice", help="namespace of the tables (default: sluice)"
    )
    group = parser.add_argument_group("Spark")
    group.add_argument("--spark-master", metavar="URL", help="the cluster, as for spark-submit (default: this machine)")
    group.add_argument("--spark-conf", metavar="KEY=VALUE", action="append", default=[], help="a property of Spark")


def absolute(url: str) -> str:
    """A URL as it is, a path as one that does not hang on where a JVM was started."""
    return url if "://" in url else os.path.abspath(url)


class Tables:
    """The catalog, with Spark started for it."""

    def __init__(self, args: argparse.Namespace) -> None:
        for option, name in (("--catalog", args.catalog), ("--namespace", args.namespace)):
            if not _NAME.match(name):
                raise UserError(f"{option} {name}: is not a name", "write letters, digits and _")
        catalog = pairs("--catalog-property", args.catalog_property)
        if args.warehouse:
            catalog = {"type": "hadoop"} | catalog | {"warehouse": absolute(args.warehouse)}
        if "type" not in catalog and "catalog-impl" not in catalog:
            raise UserError("where are the tables?", "name --warehouse DIR, or a catalog by --catalog-property type=…")
        at = f"spark.sql.catalog.{args.catalog}"
        # What another session has committed (a batch runs in one of its own, so does compaction) must be seen at once.
        catalog = {"cache-enabled": "false"} | catalog
        conf = {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            at: "org.apache.iceberg.spark.SparkCatalog",
            "spark.driver.extraJavaOptions": _AVRO_LIMITS,
            "spark.executor.extraJavaOptions": _AVRO_LIMITS,
        } | {f"{at}.{key}": value for key, value in catalog.items()}
        self.spark: SparkSession
        self._engine = spark.Engine(args.spark_master, conf | spark.settings(args.spark_conf))
        self.spark = self._engine.session
        self.catalog = args.catalog
        self.namespace = args.namespace
        self._schemas: dict[str, StructType] = {}

    def close(self) -> None:
        """Ends Spark."""
        self._engine.close()

    def name(self, table: str) -> str:
        """A table as SQL names it."""
        return f"{self.catalog}.{self.namespace}.{table}"

    def exists(self, table: str) -> bool:
        """Whether it has been made."""
        return bool(self.spark.catalog.tableExists(self.name(table)))

    def schema(self, table: str) -> StructType:
        """The columns as they are now."""
        if table not in self._schemas:
            self._schemas[table] = self.spark.table(self.name(table)).schema
        return self._schemas[table]

    def make(self, table: str) -> None:
        """Makes a topic's table, or the quarantine, if it is not there."""
        if table in self._schemas:
            return
        columns = layout.QUARANTINE_COLUMNS if table == layout.QUARANTINE else layout.first_columns(table)
        if not self.exists(table):
            properties = ", ".join(f"'{k}'='{v}'" for k, v in _PROPERTIES.items())
            declared = ", ".join(f"`{n}` {t}" for n, t in columns.items())
            self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.catalog}.{self.namespace}")
            self.spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({declared}) "
                f"USING iceberg PARTITIONED BY ({layout.PARTITIONED_BY}) TBLPROPERTIES ({properties})"
            )
            if table != layout.QUARANTINE:
                self.spark.sql(
                    f"ALTER TABLE {self.name(table)} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY "
                    + ", ".join(f"`{c}`" for c in layout.SORTED_BY)
                )
        # A newer columns.py may name more than the table was made with.
        self.grow(table, {n: decode.parse_type(t) for n, t in columns.items()})

    def grow(self, table: str, wanted: dict[str, DataType]) -> None:
        """Adds the columns, and the fields of nested ones, that a table lacks. ValueError where types contradict."""
        have = {x.name: x.dataType for x in self.schema(table).fields}
        added: list[tuple[str, DataType]] = []
        for name, kind in wanted.items():
            if name in have:
                added += decode.missing(have[name], kind, name)
            else:
                added.append((name, kind))
        if added:
            columns = ", ".join(
                ".".join(f"`{p}`" for p in path.split(".")) + " " + kind.simpleString() for path, kind in added
            )
            self.spark.sql(f"ALTER TABLE {self.name(table)} ADD COLUMNS ({columns})")
            del self._schemas[table]

    def added_by_last_commit(self, table: str) -> int:
        """Rows that the newest snapshot added."""
        jvm: Any = self.spark._jvm
        found = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self.name(table))
        snapshot = found.currentSnapshot()
        return int(snapshot.summary().get("added-records") or 0) if snapshot is not None else 0
