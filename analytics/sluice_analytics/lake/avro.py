# SPDX-License-Identifier: Apache-2.0
"""Avro records in Python, by fastavro, where no engine's own reader fits: Kafka's messages."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import fastavro

from ..errors import UserError
from .columns import Column
from .files import MOVE
from .registry import without_logical_types

Record = dict[str, Any]


def parsed(text: str) -> Any:
    """A schema as fastavro takes it, without logical types. ValueError where it is none."""
    try:
        return fastavro.parse_schema(without_logical_types(json.loads(text)))
    except Exception as e:
        raise ValueError(f"its schema cannot be read: {e}") from e


def decode(schema: Any, data: bytes) -> Record:
    """One record, which must be all of data; ValueError where it is not one."""
    source = io.BytesIO(data)
    try:
        record = fastavro.schemaless_reader(source, schema, None)
    except (EOFError, IndexError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as e:
        raise ValueError(str(e) or type(e).__name__) from e
    if source.tell() != len(data):
        raise ValueError(f"{len(data) - source.tell()} bytes remain after the last record")
    if not isinstance(record, dict):
        raise ValueError("is not a record")
    return record


def block(count: int, data: bytes, sync: bytes) -> bytes:
    """A block of an object container file: data is count records, sync the file's marker."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", count)
    fastavro.schemaless_writer(out, "long", len(data))
    return out.getvalue() + data + sync


def records(path: str) -> Iterator[Record]:
    """All records of an object container file. UserError where it is damaged."""
    try:
        with open(path, "rb") as f:
            blocks = fastavro.block_reader(f)
            schema = parsed(blocks.metadata["avro.schema"])
            for block in blocks:
                for _ in range(block.num_records):
                    record = fastavro.schemaless_reader(block.bytes_, schema, None)
                    assert isinstance(record, dict)
                    yield record
    except OSError as e:
        raise UserError(f"{path}: {e.strerror or e}") from e
    except (EOFError, IndexError, ValueError, TypeError, KeyError, OverflowError, AssertionError) as e:
        raise UserError(f"{path}: is damaged: {e or type(e).__name__}", MOVE) from e


def getter(column: Column) -> Callable[[Record], Any]:
    """A function from a record to a column's value: None where the record, or the nested record, has none."""
    outer, _, inner = column.source.partition(".")
    if column.type == "float64":

        def number(record: Record) -> Any:
            value = _find(record, outer, inner)
            return None if value is None else float(value)

        return number
    if not inner:
        return lambda record: record.get(outer)
    return lambda record: _find(record, outer, inner)


def _find(record: Record, outer: str, inner: str) -> Any:
    value = record.get(outer)
    return value.get(inner) if inner and value is not None else value
