# SPDX-License-Identifier: Apache-2.0
"""The lake of files: <lake>/sluice.<topic>/date=YYYY-MM-DD/host=<host_id>/<agent_id>-<first seq>.avro.

A file's date is the day, in UTC, of its first record; it is closed soon after the day ends, so that a
record's day is its file's day or the next. Days that `sluice-lake compact` has closed have Parquet files
under <lake>/compact (see compact.py), which stand for the Avro files that their manifest names.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
from pathlib import Path
from typing import Any

from ..errors import UserError
from .columns import SCHEMA_VERSION
from .session import Scope

_DAY_US = 86_400_000_000
_MAGIC = b"Obj\x01"
_HEAD = 1 << 16


@dataclasses.dataclass(frozen=True)
class File:
    """A finished Avro file of a lake. schema is its writer's schema, as text."""

    path: str
    day: str
    host: str
    schema: str


def topics_of(lake: str) -> list[str]:
    """The topics that a lake has a folder of, without their `sluice.`; UserError where there is no lake."""
    root = Path(lake)
    if not root.exists():
        raise UserError(f"{lake}: no such folder", "name the lake with --lake DIR; `sluice run` writes ./sluice-lake")
    if not root.is_dir():
        raise UserError(f"{lake}: is no folder", "a lake is the folder that `sluice run --lake` or the agent writes")
    found = [p.name.removeprefix("sluice.") for p in root.iterdir() if p.is_dir() and p.name.startswith("sluice.")]
    if not found and not (root / "compact").is_dir():
        raise UserError(f"{lake}: holds no sluice topics", "a lake has folders such as sluice.program")
    return sorted(found)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag integer of Avro's binary encoding (Avro specification, "Binary encoding")."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def avro_schema_text(path: str) -> str:
    """The writer's schema in the header of an object container file. UserError names a file that is none."""
    broken = UserError(
        f"{path}: is no Avro file or its header is damaged",
        "move it out of the lake; the agent repairs its own at start",
    )
    try:
        with open(path, "rb") as f:
            data = f.read(_HEAD)
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}") from e
    if not data.startswith(_MAGIC):
        raise broken
    try:
        at = len(_MAGIC)
        while True:
            count, at = _varint(data, at)
            if count == 0:
                raise broken
            if count < 0:
                count = -count
                _, at = _varint(data, at)
            for _ in range(count):
                length, at = _varint(data, at)
                key = data[at : at + length]
                at += length
                length, at = _varint(data, at)
                value = data[at : at + length]
                at += length
                if key == b"avro.schema":
                    if len(value) < length:
                        raise broken
                    return value.decode()
    except (IndexError, UnicodeDecodeError) as e:
        raise broken from e


def day_of(us: int) -> str:
    """The UTC day of a time in microseconds, as folders are named."""
    return datetime.datetime.fromtimestamp(us / 1e6, datetime.UTC).strftime("%Y-%m-%d")


def days_of(scope: Scope) -> tuple[str | None, str | None]:
    """First and last day whose folders can hold records of a scope, both included."""
    first = None if scope.since_us is None else day_of(scope.since_us - _DAY_US)
    last = None if scope.until_us is None else day_of(scope.until_us - 1)
    return first, last


_DATE = re.compile(r"date=(\d{4}-\d\d-\d\d)$")


def avro_files(lake: str, topic: str, scope: Scope, without: frozenset[str] = frozenset()) -> list[File]:
    """The finished files that can hold records of a scope, but for those whose paths relative to the lake are in without."""
    first, last = days_of(scope)
    root = os.path.join(lake, "sluice." + topic)
    found = []
    schemas: dict[str, str] = {}
    for day_dir in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        match = _DATE.match(day_dir)
        if not match or (first and match[1] < first) or (last and match[1] > last):
            continue
        for host_dir in sorted(os.listdir(os.path.join(root, day_dir))):
            host = host_dir.removeprefix("host=")
            if scope.hosts is not None and host not in scope.hosts:
                continue
            at = os.path.join(root, day_dir, host_dir)
            for name in sorted(os.listdir(at)):
                path = os.path.join(at, name)
                if not name.endswith(".avro") or os.path.relpath(path, lake) in without:
                    continue
                text = avro_schema_text(path)
                found.append(File(path, match[1], host, schemas.setdefault(text, text)))
    return found


def schema_fields(text: str, path: str) -> dict[str, Any]:
    """Field name -> Avro type of a record's schema; nested records as 'outer.inner' too."""
    try:
        record = json.loads(text)
        named: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        _collect(record, "", fields, named)
    except (ValueError, KeyError, TypeError) as e:
        raise UserError(f"{path}: its schema cannot be read: {e}") from e
    return fields


def _collect(record: dict[str, Any], prefix: str, fields: dict[str, Any], named: dict[str, Any]) -> None:
    named[record["name"]] = record
    for field in record["fields"]:
        kind = field["type"]
        if isinstance(kind, list):
            kind = next((k for k in kind if k != "null"), "null")
        if isinstance(kind, str):
            kind = named.get(kind.removeprefix("sluice."), kind)
        fields[prefix + field["name"]] = kind
        if isinstance(kind, dict) and kind.get("type") == "record":
            _collect(kind, prefix + field["name"] + ".", fields, named)


def is_from_the_future(fields: dict[str, Any], known: set[str]) -> list[str]:
    """Fields that a newer agent wrote and no analysis here knows."""
    return sorted(name for name in fields if "." not in name and name not in known)


__all__ = [
    "SCHEMA_VERSION", "File", "avro_files", "avro_schema_text", "day_of", "days_of", "is_from_the_future",
    "schema_fields", "topics_of",
]  # fmt: skip
