# SPDX-License-Identifier: Apache-2.0
"""columns.py against schemas/avro: every path is a field there, of that type, and every field is accounted for."""

from __future__ import annotations

from typing import Any

import pytest
from lakes import SCHEMAS, schema_of, schema_text

from sluice_analytics.lake import columns, files

AVRO_TYPES = {
    "string": {"string", "enum"},
    "int64": {"int", "long"},
    "float64": {"double"},
    "boolean": {"boolean"},
    "array<string>": {"array of string"},
    "array<struct<place: string, reason: string, count: int64>>": {"array of Loss"},
}
"""What an Ibis type of columns.py may be in Avro."""


def kind_of(kind: Any) -> str:
    if isinstance(kind, dict):
        if kind["type"] == "array":
            items = kind["items"]
            return "array of " + (items if isinstance(items, str) else items["name"])
        return str(kind["type"])
    return str(kind)


def is_time(kind: Any) -> bool:
    return isinstance(kind, dict) and kind.get("logicalType") == "timestamp-micros"


def leaves(fields: dict[str, Any]) -> set[str]:
    return {name for name, kind in fields.items() if kind_of(kind) != "record"}


def test_topics_are_those_of_the_schemas() -> None:
    written = {path.stem for path in SCHEMAS.glob("*.avsc")} - {"dead_letter"}  # no topic of a lake
    assert set(columns.COLUMNS) == written == set(columns.UNREAD)


@pytest.mark.parametrize("topic", columns.COLUMNS)
def test_columns_are_fields(topic: str) -> None:
    fields = files.schema_fields(schema_text(topic), topic)
    for column in columns.COLUMNS[topic]:
        assert column.source in fields, f"{topic}: schemas/avro has no {column.source}"
        kind = fields[column.source]
        assert is_time(kind) == column.is_time, f"{topic}.{column.source}"
        assert kind_of(kind) in AVRO_TYPES[column.type], f"{topic}.{column.source}: {kind}"


@pytest.mark.parametrize("topic", columns.COLUMNS)
def test_every_field_is_read_or_named_as_unread(topic: str) -> None:
    fields = leaves(files.schema_fields(schema_text(topic), topic))
    read = {c.source for c in columns.COLUMNS[topic]}
    unread = set(columns.UNREAD[topic])
    assert read & unread == set()
    assert read | unread == fields


@pytest.mark.parametrize("topic", columns.COLUMNS)
def test_names_are_used_once(topic: str) -> None:
    names = [c.name for c in columns.COLUMNS[topic]]
    assert len(names) == len(set(names))
    assert list(columns.schema(topic)) == names


def test_resources_are_levels_or_sums() -> None:
    assert set(columns.LEVELS) | set(columns.SUMS) == set(columns.RESOURCES)
    assert not set(columns.LEVELS) & set(columns.SUMS)


def test_the_named_struct_is_that_of_the_schema() -> None:
    lost = next(f for f in schema_of("agent")["fields"] if f["name"] == "lost")
    assert [f["name"] for f in lost["type"]["items"]["fields"]] == ["place", "reason", "count"]
