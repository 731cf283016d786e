# SPDX-License-Identifier: Apache-2.0
"""Kafka topics as tables of Flink SQL: the columns of lake/columns.py and ALSO, each KEY once.

Flink's avro-confluent format reads each message by the schema of its id and projects it onto one reader's
schema, here: what these columns name of the newest schema that the registry has for the topic. It must be
given, since Flink would make one of its own from a table's columns, in which an enum is a string and so
does not match; and without logical types, of which Flink takes no microseconds.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import layout

from sluice_analytics.errors import UserError
from sluice_analytics.lake.columns import COLUMNS, KEY_SQL, Column
from sluice_analytics.lake.registry import Registry, without_logical_types
from sluice_analytics.lake.sql import literal

_SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schemas", "avro")
_PLAIN = {
    "string": "STRING", "enum": "STRING", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
    "boolean": "BOOLEAN",
}  # fmt: skip
ALSO: dict[str, tuple[Column, ...]] = {
    "finding": (
        Column("evidence", "array<struct<name: string, value: float64>>"),
        Column("causes", "array<string>"),
    ),
}
"""Columns of the tables here that columns.py does not have, since no analysis of a lake reads them."""

_SQL_TYPES = {"string": "STRING", "int64": "BIGINT", "float64": "DOUBLE", "boolean": "BOOLEAN"}

Tree = dict[str, "Tree"]


def columns_of(topic: str) -> list[Column]:
    """The columns of a topic's table, in order."""
    return [*COLUMNS[topic], *ALSO.get(topic, ())]


def sql_type(ibis_type: str) -> str:
    """A type of columns.py as Flink writes it."""
    if ibis_type in _SQL_TYPES:
        return _SQL_TYPES[ibis_type]
    if ibis_type.startswith("array<"):
        return f"ARRAY<{sql_type(ibis_type[6:-1])}>"
    inner = [part.split(": ") for part in ibis_type.removeprefix("struct<").removesuffix(">").split(", ")]
    return "ROW<" + ", ".join(f"`{name}` {sql_type(kind)}" for name, kind in inner) + ">"


def newest_schema(registry: Registry, kafka_topic: str) -> dict[str, Any]:
    """The registry's newest for a topic, or where none has been written yet that of schemas/avro."""
    found = registry.latest(kafka_topic + "-value")
    if found is None:
        path = os.path.join(_SCHEMAS, layout.topic_of(kafka_topic) + ".avsc")
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError) as e:
            raise UserError(
                f"the registry knows no schema of {kafka_topic}", "start the job once an agent has delivered"
            ) from e
    return found


def reader_schema(topic: str, schema: dict[str, Any]) -> dict[str, Any]:
    """What the table's columns name of a schema, without logical types."""
    wanted: Tree = {}
    for column in columns_of(topic):
        at = wanted
        for name in column.source.split("."):
            at = at.setdefault(name, {})
        for name in re.findall(r"(\w+): ", column.type):
            at.setdefault(name, {})
    plain = without_logical_types(schema)
    pruned: dict[str, Any] = _prune(plain, wanted, layout.named_types(plain), set())
    return pruned


def _prune(kind: Any, wanted: Tree, named: dict[str, Any], defined: set[str]) -> Any:
    if isinstance(kind, list):
        return [_prune(branch, wanted, named, defined) for branch in kind]
    if isinstance(kind, str) and kind in named:
        return kind if kind.rpartition(".")[2] in defined else _prune(named[kind], wanted, named, defined)
    if not isinstance(kind, dict):
        return kind
    if "name" in kind:
        defined.add(kind["name"].rpartition(".")[2])
    if kind["type"] == "record":
        fields = []
        for field in kind["fields"]:
            if field["name"] in wanted:
                inner = _prune(field["type"], wanted[field["name"]], named, defined)
                fields.append({k: v for k, v in field.items() if k != "aliases"} | {"type": inner})
        return kind | {"fields": fields}
    if kind["type"] == "array":
        return kind | {"items": _prune(kind["items"], wanted, named, defined)}
    if isinstance(kind["type"], (dict, list)):
        return _prune(kind["type"], wanted, named, defined)
    return kind


def _flink_type(kind: Any, named: dict[str, Any]) -> str:
    """As Flink itself converts an Avro type, which a table's columns must equal to the letter."""
    nullable = isinstance(kind, list) and "null" in kind
    kind = layout.resolve(kind, named)
    name = kind["type"] if isinstance(kind, dict) else kind
    if name == "record":
        text = "ROW<" + ", ".join(f"`{x['name']}` {_flink_type(x['type'], named)}" for x in kind["fields"]) + ">"
    elif name == "array":
        text = f"ARRAY<{_flink_type(kind['items'], named)}>"
    elif isinstance(name, str) and name in _PLAIN:
        text = _PLAIN[name]
    else:
        raise UserError(f"the registry's schema has {json.dumps(kind)}, which no table of sluice can hold")
    return text if nullable else text + " NOT NULL"


def _paths(record: dict[str, Any], named: dict[str, Any], at: str = "") -> set[str]:
    found = set()
    for field in record["fields"]:
        path = at + field["name"]
        found.add(path)
        kind = layout.resolve(field["type"], named)
        if isinstance(kind, dict) and kind["type"] == "record":
            found |= _paths(kind, named, path + ".")
    return found


def options(values: dict[str, str]) -> str:
    """The options in WITH (...)."""
    return ",\n  ".join(f"{literal(k)} = {literal(v)}" for k, v in values.items())


def statements(registry: Registry, kafka_topic: str, kafka: dict[str, str], late: str) -> tuple[str, str]:
    """The table kafka_<topic>, every message, and the view <topic>: each record once, with columns_of(topic).

    Both also have ts (TIMESTAMP_LTZ(3), the record's time, of which the watermark is made: late behind the
    newest, as SQL writes an interval) and proc (when it was read). kafka: the connector's options.
    """
    topic = layout.topic_of(kafka_topic)
    schema = reader_schema(topic, newest_schema(registry, kafka_topic))
    named = layout.named_types(schema)
    columns = ",\n  ".join(f"`{x['name']}` {_flink_type(x['type'], named)}" for x in schema["fields"])
    form = {
        "connector": "kafka",
        # A pattern and a look every minute: a topic that does not exist yet is no error.
        "topic-pattern": re.escape(kafka_topic),
        "scan.topic-partition-discovery.interval": "1 min",
        "format": "avro-confluent",
        "avro-confluent.url": registry.url,
        "avro-confluent.schema": json.dumps(schema),
    }
    if registry.auth:
        form |= {
            "avro-confluent.basic-auth.credentials-source": "USER_INFO",
            "avro-confluent.basic-auth.user-info": registry.auth,
        }
    table = (
        f"CREATE TEMPORARY TABLE kafka_{topic} (\n  {columns},\n"
        "  ts AS TO_TIMESTAMP_LTZ(`time` / 1000, 3),\n  proc AS PROCTIME(),\n"
        f"  WATERMARK FOR ts AS ts - INTERVAL {late}\n) WITH (\n  {options(form | kafka)}\n)"
    )
    have = _paths(schema, named)
    values = []
    for column in columns_of(topic):
        at = ".".join(f"`{p}`" for p in column.source.split("."))
        kind = sql_type(column.type)
        value = f"CAST({at if column.source in have else 'NULL'} AS {kind})"
        values.append(f"{value} AS `{column.name}`")
    view = (
        f"CREATE TEMPORARY VIEW `{topic}` AS SELECT\n  {', '.join(values)},\n  ts, proc\n"
        f"FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {KEY_SQL} ORDER BY proc) AS copy FROM "
        f"kafka_{topic}) WHERE copy = 1"
    )
    return table, view
