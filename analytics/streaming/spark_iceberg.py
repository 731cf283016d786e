#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kafka topics into Iceberg tables, each record once: a Spark Structured Streaming job.

A batch is what Kafka has beyond the checkpoint. For each topic in it, records are decoded by the schemas
that their ids name in the registry, those that are there twice are dropped, and the rest is merged into
the topic's table. See README.md for why that is exact, and for what is kept of messages that do not decode.
"""

from __future__ import annotations

import argparse
import functools
import re
import signal
import sys
import time
from typing import Any

import client
import decode
import layout
import tables
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, StructType

from sluice_analytics.cli import common
from sluice_analytics.errors import UserError
from sluice_analytics.lake.columns import COLUMNS, KEY, same_key
from sluice_analytics.lake.registry import Registry

PATIENCE_S = 60.0
"""How long a registry may be away before the job stops."""

_Field = tuple[str, tuple[str, ...], str]
"""Column, path in the record, type."""

_Decoded = tuple[int, list[_Field], DataFrame]
"""Schema id, its fields, messages with the record r and whether it is good."""

_HOUR_US = 3_600_000_000
_RANGES_MAX = 64
_EARLIEST_US, _LATEST_US = 946_684_800_000_000, 4_102_444_800_000_000  # 2000 to 2100


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="spark_iceberg.py", description=(__doc__ or "").split("\n")[0])
    client.add_arguments(p)
    p.add_argument(
        "--checkpoint", required=True, metavar="URL", help="folder for the offsets of this job alone; keep it"
    )
    p.add_argument(
        "--topics",
        metavar="TOPIC,…",
        default=",".join("sluice." + t for t in COLUMNS),
        help="only these topics (default: all of sluice); topics that do not exist yet are waited for",
    )
    p.add_argument(
        "--trigger",
        metavar="WHEN",
        default="10s",
        help="time between batches, such as 10s; available-now: write the records that exist now, and end",
    )
    p.add_argument(
        "--max-per-batch",
        metavar="N",
        type=int,
        default=200_000,
        help="largest number of messages in a batch (default: 200000)",
    )
    p.add_argument(
        "--allow-data-loss",
        action="store_true",
        help="continue if Kafka has deleted records before they were read (default: stop with an error)",
    )
    tables.add_arguments(p)
    return p


def trigger(text: str) -> dict[str, Any]:
    """--trigger as Spark's keyword arguments."""
    if text == "available-now":
        return {"availableNow": True}
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", text)
    if not match:
        raise UserError(f"--trigger {text}: is neither available-now nor a time", "as in 10s or 5m")
    unit = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}[match[2]]
    return {"processingTime": f"{match[1]} {unit}"}


class Landing:
    """What is done with each batch."""

    def __init__(self, at: tables.Tables, registry: Registry) -> None:
        self.tables = at
        self.registry = registry

    def land(self, batch: DataFrame, number: int) -> None:
        """Merges one batch into the tables. Done again after a crash, it changes nothing that it had done."""
        began = time.monotonic()
        self.registry.forget_unknown()
        framed = (f.length("value") > 5) & (f.substring("value", 1, 1) == f.lit(b"\0"))
        number_of = f.conv(f.hex(f.substring("value", 2, 4)), 16, 10).cast("int")
        messages = batch.withColumn("schema_id", f.when(framed, number_of)).persist()
        said = []
        try:
            groups: dict[str, dict[int | None, int]] = {}
            for row in messages.groupBy("topic", "schema_id").count().collect():
                groups.setdefault(row["topic"], {})[row["schema_id"]] = row["count"]
            rejected: list[DataFrame] = []
            for topic, ids in sorted(groups.items()):
                part = messages.where(f.col("topic") == topic)
                added = self._land_topic(topic, sorted(ids, key=str), part, rejected)
                said.append(f"{topic} {sum(ids.values())} read, {added} new")
            if rejected:
                said.append(f"{layout.QUARANTINE} {self._quarantine(rejected)} new")
        finally:
            messages.unpersist()
        took = time.monotonic() - began
        print(f"batch {number}: {'; '.join(said) or 'empty'}; {took:.1f} s", file=sys.stderr, flush=True)

    def _land_topic(
        self, kafka_topic: str, ids: list[int | None], messages: DataFrame, rejected: list[DataFrame]
    ) -> int:
        """Lands one topic's messages; adds to rejected what cannot be decoded. Rows that were new."""
        topic = layout.topic_of(kafka_topic)
        self.tables.make(topic)
        decoded: list[_Decoded] = []
        for schema_id in ids:
            if schema_id is None:
                reason = "is not in the registry's framing: a byte 0, four bytes of schema id, Avro"
                rejected.append(_reject(messages.where(f.col("schema_id").isNull()), reason))
                continue
            part = messages.where(f.col("schema_id") == schema_id)
            try:
                columns, rows = self._decode(topic, schema_id, part)
            except ValueError as e:
                rejected.append(_reject(part, f"schema {schema_id}: {e}"))
                continue
            decoded.append((schema_id, columns, rows))
        return self._merge(topic, decoded, rejected) if decoded else 0

    def _decode(self, topic: str, schema_id: int, part: DataFrame) -> tuple[list[_Field], DataFrame]:
        """(columns of the schema, messages with the record r and whether it is good); ValueError: why it cannot be."""
        from pyspark.sql.avro.functions import from_avro

        schema = self.registry.schema(schema_id)
        if schema is None:
            raise ValueError("the registry does not know it")
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ValueError("is not a record")
        try:
            columns = list(decode.fields(topic, schema))
        except RecursionError as e:
            raise ValueError("contains itself") from e
        lacking = {"time", *KEY} - {path[0] for _, path, _ in columns}
        if lacking:
            raise ValueError(f"is of no record of sluice: without {', '.join(sorted(lacking))}")
        self.tables.grow(topic, {name: decode.parse_type(kind) for name, _, kind in columns})
        record = from_avro(f.expr("substring(value, 6)"), decode.reader_text(schema), {"mode": "PERMISSIVE"})
        rows = part.withColumn("r", record)
        plausible = (
            f.col("r.time").between(_EARLIEST_US, _LATEST_US) & (f.col("r.seq") >= 0) & (f.col("r.agent_id") != "")
        )
        return columns, rows.withColumn("good", f.coalesce(plausible, f.lit(False)))

    def _merge(self, topic: str, decoded: list[_Decoded], rejected: list[DataFrame]) -> int:
        """Adds the rows that the table does not have. Only files that can have them are read: see README.md."""
        times = [rows.select(f.lit(n).alias("id"), "good", f.col("r.time").alias("time")) for n, _, rows in decoded]
        hour = f.when(f.col("good"), (f.col("time") / _HOUR_US).cast("bigint")).alias("hour")
        found = functools.reduce(DataFrame.union, times).groupBy("id", hour)
        spans: list[tuple[int, int]] = []
        bad: set[int] = set()
        for span in found.agg(f.min("time").alias("low"), f.max("time").alias("high")).collect():
            if span["hour"] is None:
                bad.add(span["id"])
            else:
                spans.append((span["low"], span["high"]))
        for schema_id, _, rows in decoded:
            if schema_id in bad:
                rejected.append(_reject(rows.where(~f.col("good")), f"does not decode by schema {schema_id}"))
        if not spans:
            return 0
        once = _as_rows(decoded, self.tables.schema(topic)).dropDuplicates(list(KEY))
        once.createOrReplaceTempView("sluice_batch")
        columns = ", ".join(f"`{name}`" for name in once.columns)
        once.sparkSession.sql(
            f"MERGE INTO {self.tables.name(topic)} t USING sluice_batch s "
            f"ON {same_key('t', 's')} AND ({_ranges(spans)}) "
            f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({', '.join(f's.`{n}`' for n in once.columns)})"
        )
        return self.tables.added_by_last_commit(topic)

    def _quarantine(self, rejected: list[DataFrame]) -> int:
        """Keeps what could not be decoded, each message once. Messages of this batch that are new there."""
        self.tables.make(layout.QUARANTINE)
        rows = functools.reduce(DataFrame.union, rejected)
        rows.select(*(f.col(n).cast(kind) for n, kind in layout.QUARANTINE_COLUMNS.items())).createOrReplaceTempView(
            "sluice_rejected"
        )
        rows.sparkSession.sql(
            f"MERGE INTO {self.tables.name(layout.QUARANTINE)} t USING sluice_rejected s ON t.topic = s.topic AND "
            "t.kafka_partition = s.kafka_partition AND t.kafka_offset = s.kafka_offset WHEN NOT MATCHED THEN INSERT *"
        )
        return self.tables.added_by_last_commit(layout.QUARANTINE)


def _reject(messages: DataFrame, reason: str) -> DataFrame:
    names = {
        "kafka_partition": "partition",
        "kafka_offset": "offset",
        "event_time": "timestamp",
        "message_key": "key",
        "message_value": "value",
    }
    columns = [f.col(names.get(c, c)).alias(c) for c in layout.QUARANTINE_COLUMNS if c != "reason"]
    return messages.select(*columns, f.lit(reason).alias("reason"))


def _as_rows(decoded: list[_Decoded], target: StructType) -> DataFrame:
    """The good records of several schemas as rows of the table, what a schema lacks as null."""
    parts = []
    for _, columns, rows in decoded:
        record = rows.schema["r"].dataType
        paths = {name: path for name, path, _ in columns}
        values = []
        for column in target.fields:
            if column.name == "event_time":
                value = "timestamp_micros(r.time)"
            elif column.name in paths:
                value = decode.value("r", record, paths[column.name], column.dataType)
            else:
                value = decode.null(column.dataType)
            values.append(f"{value} AS `{column.name}`")
        parts.append(rows.where("good").selectExpr(*values))
    return functools.reduce(DataFrame.union, parts)


def _ranges(spans: list[tuple[int, int]]) -> str:
    """A condition on t.time and t.event_time that holds for every time in spans, and not for much else."""
    spans = sorted(spans)
    while len(spans) > _RANGES_MAX:
        spans = [(a[0], max(a[1], b[1])) for a, b in zip(spans[::2], [*spans[1::2], spans[-1]], strict=False)]
    return " OR ".join(
        f"(t.time BETWEEN {low} AND {high} AND "
        f"t.event_time BETWEEN timestamp_micros({low}) AND timestamp_micros({high}))"
        for low, high in spans
    )


def main(argv: list[str]) -> int:
    """Runs the job: until SIGTERM or SIGINT, or with available-now until all has landed."""
    args = parser().parse_args(argv)
    topics = [t.strip() for t in args.topics.split(",") if t.strip()]
    for topic in topics:
        layout.topic_of(topic)
    when = trigger(args.trigger)
    properties, registry = client.read(args, PATIENCE_S)
    at = tables.Tables(args)
    reader = (
        at.spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.brokers)
        # A pattern, since a topic that does not exist yet would be an error by name.
        .option("subscribePattern", "|".join(re.escape(t) for t in topics))
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_per_batch)
        .option("failOnDataLoss", str(not args.allow_data_loss).lower())
    )
    for key, value in properties.items():
        reader = reader.option(f"kafka.{key}", value)
    messages = reader.load().withColumn("value", f.coalesce("value", f.lit(b"").cast(BinaryType())))
    landing = Landing(at, registry)
    query = (
        messages.writeStream.foreachBatch(landing.land)
        .option("checkpointLocation", tables.absolute(args.checkpoint))
        .trigger(**when)
        .start()
    )
    stopping: list[int] = []
    for signo in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signo, lambda number, _: stopping.append(number))
    try:
        while not query.awaitTermination(1):
            if stopping:
                query.stop()
                break
    except Exception as e:
        raise UserError(f"the job stopped: {_reason(e)}", "started again it continues from its checkpoint") from e
    finally:
        at.close()
    return 0


def _reason(e: Exception) -> str:
    """The most informative sentence in a failure of Spark."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    own = [line for line in lines if "UserError: " in line]
    return own[-1].partition("UserError: ")[2] if own else (lines[0] if lines else type(e).__name__)


if __name__ == "__main__":
    sys.exit(common.run("spark_iceberg.py", main, None))
