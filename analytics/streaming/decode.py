# SPDX-License-Identifier: Apache-2.0
"""Avro records as rows of a table, in Spark: which columns a schema asks for, and how each value gets there."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import layout

from sluice_analytics.lake.registry import without_logical_types

try:
    from pyspark.sql.types import ArrayType, DataType, MapType, StructType, _parse_datatype_string
except ModuleNotFoundError:
    print(
        f"{os.path.basename(sys.argv[0])}: no Spark installed; dev/analytics spark makes an environment: "
        "build/analytics/spark/bin/python",
        file=sys.stderr,
    )
    sys.exit(2)

_PLAIN = {
    "string": "string", "enum": "string", "int": "bigint", "long": "bigint", "float": "double", "double": "double",
    "boolean": "boolean", "bytes": "binary", "fixed": "binary",
}  # fmt: skip


def type_of(kind: Any, named: dict[str, Any]) -> str:
    """The type of a column for an Avro type; what a column cannot hold (a union of several) is JSON text."""
    kind = layout.resolve(kind, named)
    name = kind["type"] if isinstance(kind, dict) else kind
    if isinstance(name, str) and name in _PLAIN:
        return _PLAIN[name]
    if name == "array":
        return f"array<{type_of(kind['items'], named)}>"
    if name == "map":
        return f"map<string,{type_of(kind['values'], named)}>"
    if name == "record":
        return "struct<" + ",".join(f"`{x['name']}`:{type_of(x['type'], named)}" for x in kind["fields"]) + ">"
    return "string"


def fields(topic: str, schema: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(column, path in the record, type) of every field, nested records flattened."""
    named = layout.named_types(schema)
    yield from _fields(topic, schema, (), named)


def _fields(
    topic: str, record: dict[str, Any], at: tuple[str, ...], named: dict[str, Any]
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    for field in record["fields"]:
        path = (*at, field["name"])
        kind = layout.resolve(field["type"], named)
        if isinstance(kind, dict) and kind["type"] == "record":
            yield from _fields(topic, kind, path, named)
        else:
            yield layout.column_name(topic, path), path, type_of(kind, named)


def value(record: str, source: DataType, path: tuple[str, ...], kind: DataType) -> str:
    """The value at path of a struct column of type source, as the table's type kind has it: an expression of SQL."""
    for name in path:
        assert isinstance(source, StructType)
        record, source = f"{record}.`{name}`", source[name].dataType
    return _fit(record, source, kind)


def _fit(at: str, source: DataType, kind: DataType, depth: int = 0) -> str:
    """Nested fields go by their names, those that the record lacks are null. depth: of arrays around it."""
    if isinstance(source, ArrayType) and isinstance(kind, ArrayType):
        item = f"item_{depth}"
        return f"transform({at}, {item} -> {_fit(item, source.elementType, kind.elementType, depth + 1)})"
    if isinstance(source, StructType) and isinstance(kind, StructType):
        have = {x.name: x.dataType for x in source.fields}
        parts = [
            (_fit(f"{at}.`{x.name}`", have[x.name], x.dataType, depth) if x.name in have else null(x.dataType))
            + f" AS `{x.name}`"
            for x in kind.fields
        ]
        return f"CASE WHEN {at} IS NOT NULL THEN struct({', '.join(parts)}) END"
    if isinstance(source, StructType):
        return f"to_json({at})"
    return f"CAST({at} AS {_sql(kind)})"


def null(kind: DataType) -> str:
    """No value of a type, as SQL."""
    return f"CAST(NULL AS {_sql(kind)})"


def _sql(kind: DataType) -> str:
    """A type as SQL writes it, for any names of its fields."""
    if isinstance(kind, ArrayType):
        return f"array<{_sql(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{_sql(kind.keyType)}, {_sql(kind.valueType)}>"
    if isinstance(kind, StructType):
        return "struct<" + ", ".join(f"`{x.name}`: {_sql(x.dataType)}" for x in kind.fields) + ">"
    return kind.simpleString()


@functools.cache
def parse_type(text: str) -> DataType:
    """A type that SQL writes so. Kept: the JVM takes several turns for each, and there are few of them."""
    return _parse_datatype_string(text)


def missing(have: DataType, want: DataType, path: str) -> Iterator[tuple[str, DataType]]:
    """(path, type) of what a table's column lacks to hold want; ValueError where no addition would help."""
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        yield from missing(have.elementType, want.elementType, path + ".element")
    elif isinstance(have, MapType) and isinstance(want, MapType):
        yield from missing(have.valueType, want.valueType, path + ".value")
    elif isinstance(have, StructType) and isinstance(want, StructType):
        known = {x.name: x.dataType for x in have.fields}
        for x in want.fields:
            if x.name in known:
                yield from missing(known[x.name], x.dataType, f"{path}.{x.name}")
            else:
                yield f"{path}.{x.name}", x.dataType
    elif have != want:
        raise ValueError(f"column {path} is {have.simpleString()}, the schema has {want.simpleString()}")


def reader_text(schema: dict[str, Any]) -> str:
    """A schema for from_avro."""
    return json.dumps(without_logical_types(schema))
