# SPDX-License-Identifier: Apache-2.0
"""Avro files as columns: each file that a session needs is read once, checked, and kept as Parquet until the end.

DuckDB's Avro reader takes about 10 µs a record for any columns of a query, a millisecond a file, and it
stops without a word where a file is damaged. So a session reads an Avro file once: the records are counted
against the counts of the file's blocks, small files are put together first, and the columns rest in a
folder of the session's own, from which queries read only what they need. Of many files, a question about some runs
reads only the blocks in which their run_ids are. The index beside a file names them (run_index.py); what it lacks is
searched, since to inflate a block and to look for a text in it costs a tenth of reading its records.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from typing import Any

import duckdb

from ..errors import UserError
from . import files, run_index
from .columns import COLUMNS, KEY, SCHEMA_VERSION, Column
from .sql import literal, quoted

SQL_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "float64": "DOUBLE", "boolean": "BOOLEAN",
             "array<string>": "VARCHAR[]",
             "array<struct<place: string, reason: string, count: int64>>":
                 'STRUCT(place VARCHAR, reason VARCHAR, "count" BIGINT)[]'}  # fmt: skip
"""Ibis types of columns.py in DuckDB."""

_SMALL = 1 << 20
"""Files below this are put together where there are many: opening one costs a millisecond."""
_MANY = 16
_TOGETHER = 64 << 20
_MUCH = 1 << 19
"""Of files of a topic that are larger together, the blocks of the runs that are asked for are read: some 10,000
records, which takes as long as to read and to keep a part of them for each of a few questions."""
_ROW_GROUP = 20_480


_Key = tuple[str, tuple[str, ...] | None]
"""A topic, and the runs whose records a part has; None: all"""


def paths_list(function: str, paths: Sequence[str]) -> str:
    """A call of a table function that reads files."""
    return f"{function}([{', '.join(literal(p) for p in paths)}])"


@dataclasses.dataclass(frozen=True)
class Part:
    """Staged records: a Parquet file, the Avro files behind it, and each agent's first and last seq in it."""

    parquet: str
    paths: frozenset[str]
    days: frozenset[str]
    rows: int
    agents: dict[str, tuple[int, int]]
    has_duplicates: bool
    is_open: bool


@dataclasses.dataclass(frozen=True)
class Source:
    """Some blocks of an Avro file: the bytes of each span; until: up to where it was searched for them.

    is_whole: they are all that a finished file has.
    """

    path: str
    day: str
    header: files.Header
    spans: tuple[tuple[int, int], ...]
    records: int
    is_open: bool
    is_whole: bool
    until: int


def value_of(column: Column, fields: dict[str, Any]) -> str:
    """A column's value in terms of a record's schema; null where the schema lacks it."""
    kind = SQL_TYPES[column.type]
    if column.source not in fields:
        return f"NULL::{kind}"
    source = ".".join(quoted(part) for part in column.source.split("."))
    return f"epoch_us({source})" if column.is_time else f"{source}::{kind}"


def _unread(columns: list[Column], fields: dict[str, Any]) -> list[str]:
    """The leaves of a schema that no column reads, as SQL; a nested one is named 'outer.inner'."""
    read = {c.source for c in columns}
    found = []
    for name, kind in fields.items():
        is_record = isinstance(kind, dict) and kind.get("type") == "record"
        if name not in read and not is_record:
            source = ".".join(quoted(part) for part in name.split("."))
            is_enum = isinstance(kind, dict) and kind.get("type") == "enum"
            found.append(f"{source}{'::VARCHAR' if is_enum else ''} AS {quoted(name)}")
    return found


class Stage:
    """The staged files of one session, in a folder that goes with it."""

    def __init__(self, connection: Any, warnings: list[str]) -> None:
        self._con = connection
        self._warnings = warnings
        self._headers = files.Headers()
        try:
            self.folder = tempfile.mkdtemp(prefix="sluice-")
        except OSError as e:
            raise UserError(f"no folder for temporary files: {e.strerror}", "set TMPDIR to a folder with room") from e
        self._finalize = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._numbers = itertools.count()
        self._parts: dict[_Key, list[Part]] = {}
        self._open_until: dict[tuple[_Key, str], int] = {}

    def close(self) -> None:
        """Removes what was staged."""
        self._finalize()

    @property
    def headers(self) -> files.Headers:
        """The headers that this session has seen."""
        return self._headers

    def warn(self, text: str) -> None:
        """Adds a warning to the session's, once."""
        if text not in self._warnings:
            self._warnings.append(text)

    def parts(
        self,
        topic: str,
        finished: list[files.File],
        opened: list[files.OpenFile],
        run_ids: tuple[str, ...] | None = None,
    ) -> list[Part]:
        """The parts that hold these files; what was not staged before is now. UserError names a damaged file.

        run_ids: other runs' records need not be in the parts. FileNotFoundError: a file has gone since it was listed.
        """
        wanted = {f.path for f in finished} | {f.path for f in opened}
        key: _Key = (topic, run_ids if self._is_much(topic, wanted) else None)
        # Open files that have their final names by now are staged again under those.
        kept = [p for p in self._parts.get(key, []) if not p.is_open or any(map(os.path.exists, p.paths))]
        self._parts[key] = kept
        known = {path for p in kept if not p.is_open for path in p.paths}
        sources = [self.source_of(f, key[1]) for f in finished if f.path not in known]
        sources += [s for f in opened if (s := self._opened(key, f)) is not None]
        for is_open in (False, True):
            some = [s for s in sources if s.is_open == is_open and s.records > 0]
            if some:
                kept.append(self._stage(topic, some))
        for source in sources:
            if source.is_open:
                self._open_until[key, source.path] = source.until
        return [p for p in kept if p.paths & wanted]

    def _is_much(self, topic: str, paths: set[str]) -> bool:
        """Are these files that much, and not staged as a whole, that it is worth the while to look for runs in them?"""
        if paths <= {path for p in self._parts.get((topic, None), []) for path in p.paths}:
            return False
        size = 0
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                size += os.stat(path).st_size
        return size > _MUCH

    def source_of(self, file: files.File, run_ids: tuple[str, ...] | None = None) -> Source:
        """The blocks of a finished file that can have records of these runs; None: all. UserError: it is damaged."""
        spans, records, blocks = self._blocks_of(file.path, None, run_ids)
        if blocks.broken:
            raise UserError(f"{file.path}: is damaged: {blocks.broken}", files.MOVE)
        return Source(file.path, file.day, blocks.header, spans, records, False, run_ids is None, blocks.end)

    def _blocks_of(
        self, path: str, start: int | None, run_ids: tuple[str, ...] | None
    ) -> tuple[tuple[tuple[int, int], ...], int, files.Blocks]:
        """(The blocks from start on that can have records of these runs, their records, the file's blocks).

        start: where a block begins; None: the first one. Only the blocks that no index describes are walked.
        """
        header = self._headers.read(path)
        at = header.size if start is None else start
        if run_ids is None:
            blocks = files.blocks_of(path, self._headers, at)
            return ((at, blocks.end),), blocks.records, blocks
        indexed = run_index.find(path, header, at, run_ids)
        behind = at if indexed is None else max(at, indexed.end)
        blocks = files.blocks_of(path, self._headers, behind)
        spans, records = files.blocks_with(path, blocks, behind, [run_id.encode() for run_id in run_ids])
        if indexed is not None:
            spans, records = indexed.spans + spans, indexed.records + records
        return tuple(spans), records, blocks

    def _opened(self, key: _Key, file: files.OpenFile) -> Source | None:
        """The blocks of a file without a final name that were not staged before."""
        found = None
        with contextlib.suppress(FileNotFoundError, UserError):  # renamed since, or its header is not on disk yet
            found = self._blocks_of(file.path, self._open_until.get((key, file.path)), key[1])
        if not file.is_live:
            what = "nothing can be read of it" if found is None else "its whole blocks are read"
            self.warn(file.of_the_dead(what))
        if found is None:
            return None
        spans, records, blocks = found
        if files.record_name(blocks.header.schema, file.path).lower() != key[0]:
            raise UserError(f"{file.path}: has no records of sluice.{key[0]}", files.MOVE)
        return Source(file.path, file.day, blocks.header, spans, records, True, False, blocks.end)

    def _new(self, ending: str) -> str:
        return os.path.join(self.folder, f"{next(self._numbers)}.{ending}")

    def _stage(self, topic: str, sources: list[Source]) -> Part:
        to = self._new("parquet")
        rows = self.copy(topic, sources, to)
        return self.part_of(to, sources, rows)

    def part_of(self, parquet: str, sources: list[Source], rows: int) -> Part:
        """What copy() made, looked at for second deliveries."""
        agents: dict[str, tuple[int, int]] = {}
        has_duplicates = False
        for agent, count, distinct, first, last in self._con.execute(
            "SELECT agent_id, sum(n), sum(keys), min(first), max(last) "
            "FROM (SELECT agent_id, count(*) AS n, count(DISTINCT seq) AS keys, min(seq) AS first, max(seq) AS last "
            f"FROM read_parquet({literal(parquet)}) GROUP BY host_id, agent_id) GROUP BY agent_id"
        ).fetchall():
            agents[agent] = (first, last)
            has_duplicates = has_duplicates or count != distinct
        paths = frozenset(s.path for s in sources)
        return Part(parquet, paths, frozenset(s.day for s in sources), rows, agents, has_duplicates, sources[0].is_open)

    def copy(self, topic: str, sources: list[Source], to: str, unread: bool = False) -> int:
        """Records of Avro files as one Parquet file, with columns.py's columns; unread: all other fields too."""
        columns = COLUMNS[topic]
        groups: dict[tuple[str, str], list[Source]] = {}
        for source in sources:
            groups.setdefault((source.header.schema, source.header.codec), []).append(source)
        selects = []
        merged: list[str] = []
        for (text, _), group in groups.items():
            fields = files.schema_fields(text, group[0].path)
            if "schema_version" not in fields or any(name not in fields for name in ("time", *KEY)):
                raise UserError(f"{group[0].path}: is not a record of sluice.{topic}", files.MOVE)
            values = [f"{value_of(c, fields)} AS {quoted(c.name)}" for c in columns]
            if unread:
                values += _unread(columns, fields)
            self._warn_of_the_future(topic, fields, group)
            paths = self._readable(group)
            merged += [p for p in paths if p.startswith(self.folder)]
            # The Avro reader uses one thread: two halves use two.
            for some in (paths[0::2], paths[1::2]):
                if some:
                    selects.append(f"SELECT {', '.join(values)} FROM {paths_list('read_avro', some)}")
        self._con.execute("SET preserve_insertion_order = false")
        try:
            rows = self._con.execute(
                f"COPY ({' UNION ALL BY NAME '.join(selects)}) TO {literal(to)} "
                f"(FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {_ROW_GROUP})"
            ).fetchall()[0][0]
        except duckdb.Error as e:
            self._find_damaged(topic, sources)
            raise UserError(f"{sources[0].path}: {str(e).splitlines()[0]}") from e
        finally:
            self._con.execute("SET preserve_insertion_order = true")
            for path in merged:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        counted = sum(s.records for s in sources)
        if rows != counted:
            self._find_damaged(topic, sources)
            raise UserError(
                f"{sources[0].path}: {counted} records are in this and the files beside it, {rows} were read"
            )
        return int(rows)

    def _warn_of_the_future(self, topic: str, fields: dict[str, Any], group: list[Source]) -> None:
        try:
            row = self._con.execute(
                f"SELECT schema_version FROM read_avro({literal(self._readable(group[:1])[0])}) LIMIT 1"
            ).fetchone()
        except duckdb.Error:
            return  # damaged: copy finds out
        if row is not None and row[0] > SCHEMA_VERSION:
            self.warn(files.of_the_future([s.path for s in group], row[0], topic))

    def _readable(self, group: list[Source]) -> list[str]:
        """Paths that the Avro reader can take: of one schema and codec, blocks of files and small files together."""
        small = [s for s in group if not s.is_whole or s.until < _SMALL]
        if all(s.is_whole for s in group) and len(small) < _MANY:
            return [s.path for s in group]
        paths = [s.path for s in group if s.is_whole and s.until >= _SMALL]
        size = 0
        out = None
        for source in small:
            if out is None or size > _TOGETHER:
                if out is not None:
                    out.close()
                paths.append(self._new("avro"))
                out = open(paths[-1], "wb")  # noqa: SIM115
                sync = source.header.sync
                size = out.write(files.header_bytes(source.header))
            for start, end in source.spans:
                size += files.copy_blocks(source.path, start, end, sync, out)
        if out is not None:
            out.close()
        return paths

    def _find_damaged(self, topic: str, sources: list[Source]) -> None:
        """UserError for the first file of which DuckDB reads other records than its blocks have."""
        for source in sources:
            [path] = self._readable([source])
            try:
                (count,) = self._con.execute(f"SELECT count(seq) FROM read_avro({literal(path)})").fetchall()[0]
            except duckdb.Error as e:
                raise UserError(f"{source.path}: is damaged: {str(e).splitlines()[0]}", files.MOVE) from e
            if count != source.records:
                raise UserError(
                    f"{source.path}: is damaged: {count} of its {source.records} records can be read", files.MOVE
                )
