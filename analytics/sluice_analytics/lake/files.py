# SPDX-License-Identifier: Apache-2.0
"""The lake of files: <lake>/sluice.<topic>/date=YYYY-MM-DD/host=<host_id>/<agent_id>-<first seq>.avro.

A file's date is the UTC day of its records' times. A record that comes up to an hour late for a new day
stays in the newer day's file (src/lake/writer.h), so that a record's day is its file's or the one
before. A file that is being written has a dot in front and .part behind and its writer's lock on it; an
agent that starts gives the ones that a dead agent left their real names. Beside a file of some size is an index of
its runs, .<agent_id>-<first seq>.runs (run_index.py). Days that `sluice-lake compact`
has closed have Parquet files under <lake>/compact (see compact.py), which replace the Avro files that
they were made of.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import fcntl
import functools
import json
import mmap
import os
import re
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from ..errors import UserError
from .columns import SCHEMA_VERSION
from .session import LATE_US, Scope

_MAGIC = b"Obj\x01"
_SYNC = 16
_HEAD = 1 << 14
_HEAD_MAX = 1 << 24
_DATE = re.compile(r"date=(\d{4}-\d\d-\d\d)$")
MOVE = "move it out of the lake; `sluice cat` prints what can be read of it"
"""What to do about a damaged file"""


@dataclasses.dataclass(frozen=True)
class File:
    """An Avro file of a lake. schema is its writer's schema, as text."""

    path: str
    day: str
    host: str
    schema: str

    @property
    def agent_id(self) -> str:
        """The agent that wrote it, by the file's name."""
        return os.path.basename(self.path).lstrip(".").rpartition("-")[0]


@dataclasses.dataclass(frozen=True)
class Header:
    """The header of an Avro file; size: its bytes, with the sync marker."""

    schema: str
    codec: str
    sync: bytes
    size: int


@dataclasses.dataclass(frozen=True)
class Blocks:
    """The whole blocks of an Avro file: where they end, how many records their headers count.

    broken: what is wrong with the rest of the file, empty where there is no rest.
    """

    header: Header
    end: int
    records: int
    broken: str = ""


def topics_of(lake: str) -> list[str]:
    """The topics that a lake has a folder of, without their `sluice.`; UserError where there is no lake."""
    if not os.path.exists(lake):
        raise UserError(f"{lake}: no such folder", "name the lake with --lake DIR; `sluice run` writes ./sluice-lake")
    if not os.path.isdir(lake):
        raise UserError(f"{lake}: is not a folder", "a lake is the folder that `sluice run --lake` or the agent writes")
    names = {e.name for e in folder(lake) if e.is_dir()}
    if "compact" in names:
        names.update(e.name for e in folder(os.path.join(lake, "compact")) if e.is_dir())
    found = [name.removeprefix("sluice.") for name in names if name.startswith("sluice.")]
    if not found:
        raise UserError(f"{lake}: has no sluice topics", "a lake has folders such as sluice.program")
    return sorted(found)


def folder(path: str) -> list[os.DirEntry[str]]:
    """What a folder holds, by name; nothing where there is no such folder, UserError where it cannot be read."""
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda e: e.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}", "read the lake as its owner or as root") from e


# Headers and blocks are parsed here: fastavro takes 25 ms to load, reads all data that it passes, and does not report
# at which byte a file is damaged; DuckDB's reader does not report damage at all.


def varint(data: bytes | mmap.mmap, at: int) -> tuple[int, int]:
    """(value, offset behind it) of a zig-zag integer (Avro specification, "Binary encoding")."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _parse_header(data: bytes) -> Header | None:
    """The header at the beginning of data; None where data ends before it does. ValueError where it is none."""
    if not data.startswith(_MAGIC):
        if len(data) < len(_MAGIC):
            return None
        raise ValueError("is not an Avro file")
    pairs: dict[bytes, bytes] = {}
    at = len(_MAGIC)
    try:
        while True:
            count, at = varint(data, at)
            if count == 0:
                break
            if count < 0:
                count = -count
                _, at = varint(data, at)
            for _ in range(count):
                both = []
                for _ in range(2):
                    length, at = varint(data, at)
                    if not 0 <= length <= _HEAD_MAX:
                        raise ValueError("its header is damaged")
                    if at + length > len(data):
                        return None
                    both.append(data[at : at + length])
                    at += length
                pairs[both[0]] = both[1]
    except IndexError:
        return None
    if at + _SYNC > len(data):
        return None
    try:
        schema, codec = pairs[b"avro.schema"].decode(), pairs.get(b"avro.codec", b"null").decode()
    except (KeyError, UnicodeDecodeError):
        raise ValueError("its header is damaged: no schema") from None
    return Header(schema, codec, data[at : at + _SYNC], at + _SYNC)


class Headers:
    """Reads headers; most files of a lake share one, which is parsed once."""

    def __init__(self) -> None:
        self._known: list[tuple[bytes, Header]] = []
        self._by_path: dict[str, Header] = {}

    def read(self, path: str) -> Header:
        """The header of a file. UserError names one that has none, FileNotFoundError is the caller's."""
        header = self._by_path.get(path) or self._read(path)
        if not path.endswith(".part"):
            self._by_path[path] = header
        return header

    def _read(self, path: str) -> Header:
        wanted = _HEAD
        while True:
            try:
                with open(path, "rb") as f:
                    data = f.read(wanted)
            except FileNotFoundError:
                raise
            except OSError as e:
                raise UserError(f"{path}: {e.strerror}", "read the lake as its owner or as root") from e
            for prefix, header in self._known:
                if data.startswith(prefix) and len(data) >= header.size:
                    return dataclasses.replace(header, sync=data[header.size - _SYNC : header.size])
            try:
                found = _parse_header(data)
            except ValueError as e:
                raise UserError(f"{path}: {e}", MOVE) from e
            if found is not None:
                self._known.append((data[: found.size - _SYNC], found))
                return found
            if len(data) < wanted or wanted >= _HEAD_MAX:
                raise UserError(f"{path}: ends within its header", MOVE)
            wanted *= 8


def blocks_of(path: str, headers: Headers, start: int | None = None) -> Blocks:
    """Walks the blocks of a file by their lengths and sync markers, and reads no record.

    start: where a block begins that is the first to be walked. UserError where there is no header.
    """
    header = headers.read(path)
    at = header.size if start is None else start
    records = 0
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        if size <= at:
            return Blocks(header, at, 0)
        with mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ) as data:
            while at < size:
                try:
                    count, inner = varint(data, at)
                    length, inner = varint(data, inner)
                except IndexError:
                    return Blocks(header, at, records, f"byte {at}: ends within a block")
                end = inner + length
                if count < 0 or length < 0 or end + _SYNC > size:
                    return Blocks(header, at, records, f"byte {at}: ends within a block, or its length is damaged")
                if data[end : end + _SYNC] != header.sync:
                    return Blocks(header, at, records, f"byte {end}: no sync marker after a block")
                records += count
                at = end + _SYNC
    return Blocks(header, at, records)


def blocks_with(path: str, blocks: Blocks, start: int, texts: Sequence[bytes]) -> tuple[list[tuple[int, int]], int]:
    """The blocks of a file from start on that have one of these strings: (where each begins and ends, their records).

    A record that has the string is in one of them, since Avro writes its length and its bytes as they are. A block that
    cannot be inflated here counts as one that has it: reading it finds out what is wrong with it.
    """
    found: list[tuple[int, int]] = []
    records = 0
    if start >= blocks.end or not texts:
        return found, records
    wanted = _pattern_of(tuple(texts))
    with open(path, "rb") as f, mmap.mmap(f.fileno(), blocks.end, access=mmap.ACCESS_READ) as data:
        at = start
        while at < blocks.end:
            count, inner = varint(data, at)
            length, inner = varint(data, inner)
            end = inner + length
            if _has(data[inner:end], blocks.header.codec, wanted):
                found.append((at, end + _SYNC))
                records += count
            at = end + _SYNC
    return found, records


@functools.lru_cache(maxsize=8)
def _pattern_of(texts: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """What finds any of these strings in Avro data, all at once: those of one length behind that length."""
    by_length: dict[bytes, list[bytes]] = {}
    for text in texts:
        by_length.setdefault(_zigzag(len(text)), []).append(re.escape(text))
    return re.compile(b"|".join(re.escape(length) + b"(?:%s)" % b"|".join(some) for length, some in by_length.items()))


def _has(data: bytes, codec: str, wanted: re.Pattern[bytes]) -> bool:
    if codec == "deflate":
        try:
            data = zlib.decompress(data, -zlib.MAX_WBITS, 1 << 18)
        except zlib.error:
            return True
    return codec not in ("null", "deflate") or wanted.search(data) is not None


def _zigzag(value: int) -> bytes:
    value <<= 1  # never negative here
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def header_bytes(header: Header) -> bytes:
    """A header as an Avro file has it."""
    out = _MAGIC + _zigzag(2)
    for key, value in (("avro.codec", header.codec), ("avro.schema", header.schema)):
        for text in (key.encode(), value.encode()):
            out += _zigzag(len(text)) + text
    return out + _zigzag(0) + header.sync


def copy_blocks(path: str, start: int, end: int, sync: bytes, out: BinaryIO) -> int:
    """Adds a file's blocks from start to end, which blocks_of() has walked, to out, whose marker is sync: bytes."""
    with open(path, "rb") as f:
        f.seek(start)
        data = f.read(end - start)
    at = 0
    while at < len(data):
        _, inner = varint(data, at)
        length, inner = varint(data, inner)
        out.write(data[at : inner + length] + sync)
        at = inner + length + _SYNC
    return at


def day_of(us: int) -> str:
    """The UTC day of a time in microseconds, as folders are named."""
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us)).strftime("%Y-%m-%d")


def today() -> str:
    """The current UTC day."""
    return day_of(int(time.time() * 1_000_000))


def day_start(day: str) -> int:
    """The first microsecond of a UTC day, since 1970; ValueError where it is none."""
    begin = datetime.datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=datetime.UTC)
    return int(begin.timestamp()) * 1_000_000


def days_of(scope: Scope) -> tuple[str | None, str | None]:
    """First and last day whose folders can hold records of a scope, both included."""
    first = None if scope.since_us is None else day_of(scope.since_us - LATE_US)
    last = None if scope.until_us is None else day_of(scope.until_us - 1 + LATE_US)
    return first, last


def is_day_in(day: str, scope: Scope) -> bool:
    """Can the folder of a day hold records of a scope?"""
    first, last = days_of(scope)
    return not ((first and day < first) or (last and day > last))


def day_folders(root: str, scope: Scope) -> Iterator[tuple[str, str]]:
    """(day, path) of the date= folders below root that can hold records of a scope, in order."""
    for entry in folder(root):
        match = _DATE.match(entry.name)
        if match and is_day_in(match[1], scope):
            yield match[1], entry.path


def _entries(lake: str, topic: str, scope: Scope) -> Iterator[tuple[str, str, os.DirEntry[str]]]:
    """(day, host, file) below the folders that can hold records of a scope, in order."""
    for day, day_path in day_folders(os.path.join(lake, "sluice." + topic), scope):
        for host in folder(day_path):
            host_id = host.name.removeprefix("host=")
            if scope.hosts is None or host_id in scope.hosts:
                for entry in folder(host.path):
                    yield day, host_id, entry


def avro_files(
    lake: str,
    topic: str,
    scope: Scope,
    without: frozenset[str] = frozenset(),
    headers: Headers | None = None,
) -> list[File]:
    """The finished files that can hold records of a scope.

    without: paths, relative to the lake, of files to leave out. A file of another topic is a UserError.
    """
    headers = headers or Headers()
    found = []
    base = os.path.join(lake, "")
    kinds: dict[str, str] = {}
    for day, host, entry in _entries(lake, topic, scope):
        if not entry.name.endswith(".avro") or entry.name.startswith(".") or not entry.is_file():
            continue
        if entry.path.removeprefix(base) in without:
            continue
        with contextlib.suppress(FileNotFoundError):  # removed between two looks
            schema = headers.read(entry.path).schema
            if schema not in kinds:
                kinds[schema] = record_name(schema, entry.path)
            if kinds[schema].lower() != topic:
                raise UserError(f"{entry.path}: has {kinds[schema]} records, not those of sluice.{topic}", MOVE)
            found.append(File(entry.path, day, host, schema))
    return found


def of_the_future(group: list[str], version: int, topic: str) -> str:
    """The warning for files with a schema that has fields unknown to this version."""
    others = f" and {len(group) - 1} more" if len(group) > 1 else ""
    return (
        f"{group[0]}{others}: written with schema_version {version} of sluice.{topic}, this version knows "
        f"{SCHEMA_VERSION}: newer fields are not read"
    )


@dataclasses.dataclass(frozen=True)
class OpenFile:
    """A file that is being written (is_live), or was when its writer died."""

    path: str
    day: str
    host: str
    is_live: bool

    def of_the_dead(self, what: str = "its whole blocks are read") -> str:
        """The warning for one whose writer died. what: what of it counts."""
        return (
            f"{self.path}: was left open by a writer that crashed; {what}; "
            "the agent or `sluice run --lake` repairs it when it starts the next time on that host"
        )


def open_files(lake: str, topic: str, scope: Scope) -> list[OpenFile]:
    """The files without a final name that can hold records of a scope."""
    return [
        OpenFile(entry.path, day, host, _is_locked(entry.path))
        for day, host, entry in _entries(lake, topic, scope)
        if entry.name.startswith(".") and entry.name.endswith(".avro.part")
    ]


def _is_locked(path: str) -> bool:
    """Does a writer hold its lock on a file? (F_OFD_GETLK of fcntl(2), as src/lake/folders.c takes it.)"""
    try:
        with open(path, "rb") as f:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind: int = struct.unpack_from("h", fcntl.fcntl(f.fileno(), fcntl.F_OFD_GETLK, asked))[0]
            return kind != fcntl.F_UNLCK
    except OSError:
        return False


def record_name(text: str, path: str) -> str:
    """The name of a schema's record, such as Program."""
    try:
        schema = json.loads(text)
        name: str = schema["name"].rpartition(".")[2]
        return name if schema["type"] == "record" else f"{schema['type']}"
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise UserError(f"{path}: its schema cannot be read: {e!r}", MOVE) from e


def schema_fields(text: str, path: str) -> dict[str, Any]:
    """Field name -> Avro type of a record's schema; nested records as 'outer.inner' too."""
    try:
        record = json.loads(text)
        named: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        _collect(record, "", fields, named)
    except (ValueError, KeyError, TypeError) as e:
        raise UserError(f"{path}: its schema cannot be read: {e!r}", MOVE) from e
    return fields


def _collect(record: dict[str, Any], prefix: str, fields: dict[str, Any], named: dict[str, Any]) -> None:
    named[record["name"].rpartition(".")[2]] = record
    for field in record["fields"]:
        kind = field["type"]
        if isinstance(kind, list):
            kind = next((k for k in kind if k != "null"), "null")
        if isinstance(kind, str):
            kind = named.get(kind.rpartition(".")[2], kind)
        fields[prefix + field["name"]] = kind
        if isinstance(kind, dict) and kind.get("type") == "record":
            _collect(kind, prefix + field["name"] + ".", fields, named)
