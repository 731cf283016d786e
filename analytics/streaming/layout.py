# SPDX-License-Identifier: Apache-2.0
"""The layout of records in tables, of all jobs: one table a topic, columns as lake/columns.py names them.

Beside those a table has `schema_version` and `event_time`: `time` as a timestamp with time zone, which is
there so that tables can be partitioned by its day (days(event_time), hidden: a query need not name the
partition in a query). Every field that a registered schema has and columns.py does not name is a column
too, from the first record with that schema on, named by the same rule: the fields of `usage` as they are,
of another nested record `r` as `r_<field>` (of `shares`: `share_<field>`), integers and times as 64-bit
integers.
"""

from __future__ import annotations

from typing import Any

from sluice_analytics.errors import UserError
from sluice_analytics.lake.columns import COLUMNS

PARTITIONED_BY = "days(event_time)"
SORTED_BY = ("run_id", "host_id", "time")

_COMPLEX = ("record", "enum", "fixed", "array", "map")
_PREFIXES = {"usage": "", "shares": "share_"}

QUARANTINE = "quarantine"
"""The table of messages that could not be decoded."""

QUARANTINE_COLUMNS = {
    "topic": "string",
    "kafka_partition": "int",
    "kafka_offset": "bigint",
    "event_time": "timestamp",
    "schema_id": "int",
    "reason": "string",
    "message_key": "binary",
    "message_value": "binary",
}
"""event_time: the message's, as the broker has it."""


def topic_of(kafka_topic: str) -> str:
    """The name in columns.py, and of the table, of a Kafka topic with any prefix: x.sluice.program -> program."""
    name = kafka_topic.rpartition("sluice.")[2]
    if name not in COLUMNS or "sluice." not in kafka_topic:
        raise UserError(
            f"--topics: {kafka_topic} is not a topic of sluice",
            "they end in " + ", ".join("sluice." + t for t in COLUMNS),
        )
    return name


def sql_type(ibis_type: str) -> str:
    """A type of columns.py as Spark and Iceberg write it."""
    return ibis_type.replace("int64", "bigint").replace("float64", "double").replace(": ", ":").replace(", ", ",")


def first_columns(topic: str) -> dict[str, str]:
    """Column -> type of a new table: what columns.py names, schema_version and event_time."""
    columns = {c.name: sql_type(c.type) for c in COLUMNS[topic]}
    return columns | {"schema_version": "bigint", "event_time": "timestamp"}


def column_name(topic: str, path: tuple[str, ...]) -> str:
    """The column of a field, whose path in the record is path."""
    source = ".".join(path)
    for column in COLUMNS[topic]:
        if column.source == source:
            return column.name
    *outer, name = path
    return "".join(_PREFIXES.get(o, o + "_") for o in outer) + name


def named_types(schema: Any, found: dict[str, Any] | None = None) -> dict[str, Any]:
    """Every named type that a schema defines, by its name with and without namespace."""
    found = {} if found is None else found
    if isinstance(schema, list):
        for branch in schema:
            named_types(branch, found)
    elif isinstance(schema, dict):
        if schema.get("type") in ("record", "enum", "fixed"):
            name = schema["name"]
            found[name] = found[name.rpartition(".")[2]] = schema
            if "namespace" in schema and "." not in name:
                found[f"{schema['namespace']}.{name}"] = schema
        for field in schema.get("fields", ()):
            named_types(field["type"], found)
        for key in ("items", "values"):
            if key in schema:
                named_types(schema[key], found)
        if isinstance(schema.get("type"), (dict, list)):
            named_types(schema["type"], found)
    return found


def resolve(kind: Any, named: dict[str, Any]) -> Any:
    """An Avro type without its null branch, names and {"type": {...}} looked through; a list where a union is left."""
    while True:
        if isinstance(kind, list):
            branches = [k for k in kind if k != "null"]
            if len(branches) != 1:
                return branches
            kind = branches[0]
        elif isinstance(kind, str) and (kind in named or kind.rpartition(".")[2] in named):
            kind = named.get(kind) or named[kind.rpartition(".")[2]]
        elif isinstance(kind, dict) and kind["type"] not in _COMPLEX:
            kind = kind["type"]
        else:
            return kind
