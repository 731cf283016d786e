# SPDX-License-Identifier: Apache-2.0
"""Makes compacted days (see compact.py) and removes the Avro files that they replace.

Nothing that a reader knows is changed before its successor is whole on disk: a crash at any moment leaves
the day as it was, or compacted. What a crashed attempt left is removed by the next.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from typing import Any

import duckdb

from ..errors import UserError
from . import compact, files, run_index
from .columns import KEY_SQL, same_key
from .compact import Day
from .duck import DuckSession
from .session import ALL, Scope
from .sql import literal, quoted
from .stage import Part, paths_list

ROW_GROUP = 100_000
"""Rows of a row group; analytics/bench/README.md has what others cost."""

LEVEL = 3
"""Of zstd; analytics/bench/README.md has what others cost."""

_ORDER = "run_id, host_id, time, agent_id, seq"

_KEPT_S = 600
"""How long files of an earlier generation stay for readers that know them still."""

_WORK = ".work"


@dataclasses.dataclass(frozen=True)
class Work:
    """A day of a topic. new: its finished files that no compacted day replaces; covered: those that one does.

    waits: why the day cannot be closed yet; empty: it can.
    """

    topic: str
    day: str
    new: list[files.File]
    covered: list[files.File]
    compacted: Day | None
    waits: str = ""

    @property
    def new_bytes(self) -> int:
        """Bytes of the files that are to be compacted."""
        return sum(_size(f.path) for f in self.new)


@dataclasses.dataclass(frozen=True)
class Result:
    """What compact_day made: records and bytes in Parquet; duplicates: records of the sources that were left out."""

    records: int
    duplicates: int
    bytes: int


@contextlib.contextmanager
def locked(lake: str) -> Iterator[None]:
    """Alone at work on a lake's old days. UserError where another is, or nothing can be written."""
    root = os.path.join(lake, "compact")
    try:
        os.makedirs(root, exist_ok=True)
        fd = os.open(os.path.join(root, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as e:
        raise UserError(f"{root}: {e.strerror}", "run it as the owner of the lake or as root") from e
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            raise UserError(f"{lake}: another sluice-lake is working on it", "wait until it has ended") from e
        yield
    finally:
        os.close(fd)


def plan(session: DuckSession, topics: list[str], until: str, since: str | None = None) -> list[Work]:
    """The days from since up to until (both included) that have Avro files, for each topic, in order."""
    lake = session.source
    scope = Scope(since_us=files.day_start(since) if since else None, until_us=files.day_start(until))
    found = []
    for topic in topics:
        days: dict[str, list[files.File]] = {}
        waits: dict[str, str] = {}
        for opened in files.open_files(lake, topic, scope):
            if _is_between(since, opened.day, until):
                why = "is being written" if opened.is_live else "was left open by a writer that died"
                waits[opened.day] = f"{opened.path} {why}"
                days.setdefault(opened.day, [])
        for file in files.avro_files(lake, topic, scope, headers=session.stage.headers):
            if _is_between(since, file.day, until):
                days.setdefault(file.day, []).append(file)
        for day, some in sorted(days.items()):
            compacted = compact.read_day(lake, day, compact.day_folder(lake, topic, day))
            known = compacted.covered() if compacted else frozenset()
            new = [f for f in some if os.path.relpath(f.path, lake) not in known]
            covered = [f for f in some if os.path.relpath(f.path, lake) in known]
            found.append(Work(topic, day, new, covered, compacted, waits.get(day, "")))
    return found


def _is_between(since: str | None, day: str, until: str) -> bool:
    return (since is None or since <= day) and day <= until


def compact_day(session: DuckSession, work: Work) -> Result:
    """Compacts a day, or compacts it again with the files that came since. The caller holds locked()."""
    lake, topic, day = session.source, work.topic, work.day
    folder = compact.day_folder(lake, topic, day)
    with _system_errors(folder), _work_folder(lake) as temporary:
        os.makedirs(folder, exist_ok=True)
        sources = [session.stage.source_of(f) for f in work.new]
        staged = os.path.join(temporary, f"{topic}-{day}.parquet")
        rows = session.stage.copy(topic, sources, staged, unread=True)
        part = session.stage.part_of(staged, sources, rows)
        generation = work.compacted.generation + 1 if work.compacted else 1
        name = f"{generation}-0.parquet"
        made = os.path.join(temporary, f"{topic}-{day}-sorted.parquet")
        records, before = _write(session, work, part, made)
        avro = {os.path.relpath(f.path, lake) for f in (*work.new, *work.covered)}
        manifest, origin = manifest_of(session.connection, topic, day, generation, made, records, sorted(avro))
        os.replace(_synced(made), os.path.join(folder, name))
        _write_json(temporary, os.path.join(folder, f"{generation}.json"), origin)
        _sync_folder(folder)
        _write_json(temporary, os.path.join(folder, compact.MANIFEST), manifest)
        _sync_folder(folder)
        return Result(records, before - records, _size(os.path.join(folder, name)))


def _write(session: DuckSession, work: Work, part: Part, to: str) -> tuple[int, int]:
    """Writes a day's records, each once and sorted: (records, records of the sources)."""
    con = session.connection
    days = [work.compacted] if work.compacted else []
    paths = [part.parquet, *(p for d in days for p in d.parquet)]
    source = f"SELECT * FROM {paths_list('read_parquet', paths)[:-1]}, union_by_name = true)"
    if part.has_duplicates or any(d.may_have([part]) for d in days):
        source = f"SELECT * FROM ({source}) QUALIFY row_number() OVER (PARTITION BY {KEY_SQL} ORDER BY time) = 1"
    others = [
        path for d in _neighbours(session.source, work.topic, work.day) if d.may_have([part]) for path in d.parquet
    ]
    elsewhere = f"(SELECT {KEY_SQL} FROM {paths_list('read_parquet', others)})" if others else ""
    if others:
        source = f"SELECT s.* FROM ({source}) s ANTI JOIN {elsewhere} o ON {same_key('s', 'o')}"
    written = con.execute(
        f"COPY ({source} ORDER BY {_ORDER}) TO {literal(to)} "
        f"(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {LEVEL}, ROW_GROUP_SIZE {ROW_GROUP})"
    ).fetchall()[0][0]
    # Counted another way: what must be there by the keys alone.
    keys = f"SELECT DISTINCT {KEY_SQL} FROM {paths_list('read_parquet', paths)}"
    if others:
        keys = f"SELECT k.* FROM ({keys}) k ANTI JOIN {elsewhere} o ON {same_key('k', 'o')}"
    (expected,) = con.execute(f"SELECT count(*) FROM ({keys})").fetchall()[0]
    if written != expected:
        raise UserError(f"sluice.{work.topic} of {work.day}: {written} records were written of {expected}", "try again")
    return int(written), part.rows + sum(d.records for d in days)


def _neighbours(lake: str, topic: str, day: str) -> list[Day]:
    """The compacted days before and after a day: a record that was delivered twice can be in both."""
    near = (compact.neighbour(day, n) for n in (-1, 1))
    found = (compact.read_day(lake, d, compact.day_folder(lake, topic, d)) for d in near)
    return [d for d in found if d is not None]


def manifest_of(
    connection: Any, topic: str, day: str, generation: int, path: str, records: int, avro: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(manifest.json, <generation>.json) of a day whose one Parquet file is at path."""
    parquet = f"read_parquet({literal(path)})"
    columns = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {parquet}").fetchall()]
    ranges = connection.execute(f"SELECT agent_id, min(seq), max(seq) FROM {parquet} GROUP BY agent_id").fetchall()
    first, last = connection.execute(f"SELECT min(time), max(time) FROM {parquet}").fetchall()[0]
    manifest = {
        "topic": f"sluice.{topic}", "day": day, "generation": generation, "parquet": [f"{generation}-0.parquet"],
        "columns": columns, "records": records, "first_time": first, "last_time": last,
    }  # fmt: skip
    return manifest, {"avro": avro, "agents": {agent: (low, high) for agent, low, high in sorted(ranges)}}


def remove_avro(session: DuckSession, topic: str, day: str) -> tuple[int, int]:
    """Deletes the Avro files that a compacted day replaces: (files, bytes). The caller holds locked().

    They are read once more before: count and a sum over the hashes of all fields of all their records must
    be those of the same records in Parquet. UserError where they are not; then nothing is deleted.
    """
    lake = session.source
    work = next(iter(plan(session, [topic], day, day)), None)
    if work is None or work.compacted is None or not work.covered:
        return 0, 0
    with _system_errors(compact.day_folder(lake, topic, day)), _work_folder(lake) as temporary:
        sources = [session.stage.source_of(f) for f in work.covered]
        staged = os.path.join(temporary, f"{topic}-{day}-again.parquet")
        session.stage.copy(topic, sources, staged, unread=True)
        _verify(session, work, work.compacted, staged)
        bytes_before = sum(_size(f.path) for f in work.covered)
        folders = set()
        for file in work.covered:
            os.unlink(file.path)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(run_index.path_of(file.path))
            folders.add(os.path.dirname(file.path))
        for at in [*folders, *{os.path.dirname(f) for f in folders}]:
            with contextlib.suppress(OSError):  # others' files are there
                os.rmdir(at)
        return len(work.covered), bytes_before


def _verify(session: DuckSession, work: Work, day: Day, staged: str) -> None:
    con = session.connection
    names = ", ".join(quoted(name) for name in day.columns)
    near = [day, *_neighbours(session.source, work.topic, work.day)]
    parquet = f"{paths_list('read_parquet', [p for d in near for p in d.parquet])[:-1]}, union_by_name = true)"
    keys = f"(SELECT {KEY_SQL} FROM read_parquet({literal(staged)}))"
    sums = f"SELECT count(*), sum(hash({names})::HUGEINT), sum(seq), min(time), max(time)"
    # Of one shape: columns that only the other side has are null, types are those of the compacted day.
    shape = f"SELECT {names} FROM {parquet} WHERE false"
    avro = (
        f"SELECT * FROM read_parquet({literal(staged)}) "
        f"QUALIFY row_number() OVER (PARTITION BY {KEY_SQL} ORDER BY time) = 1"
    )
    try:
        of_avro = con.execute(f"{sums} FROM ({shape} UNION ALL BY NAME ({avro}))").fetchall()[0]
        of_parquet = con.execute(
            f"{sums} FROM (SELECT p.* FROM {parquet} p SEMI JOIN {keys} k ON {same_key('p', 'k')})"
        ).fetchall()[0]
    except duckdb.Error as e:
        raise UserError(f"{day.folder}: {str(e).splitlines()[0]}", "its Avro files were kept") from e
    if of_avro != of_parquet:
        raise UserError(
            f"{day.folder}: differs from its Avro files ({of_parquet[0]} of {of_avro[0]} records, or other "
            "values in them)",
            "its Avro files were kept; remove this folder and compact again",
        )


def tidy(lake: str, topic: str) -> None:
    """Removes what no manifest of a topic names: crashed attempts', and after a while earlier generations' files.

    The caller holds locked().
    """
    for day, path in files.day_folders(os.path.join(lake, "compact", "sluice." + topic), ALL):
        with _system_errors(path):
            _remove_leftovers(path, compact.read_day(lake, day, path))


def _remove_leftovers(folder: str, day: Day | None) -> None:
    named: set[str] = set()
    current, is_known = 0, True
    if day is not None:
        manifest = os.path.join(folder, compact.MANIFEST)
        named = {manifest, *day.parquet, os.path.join(folder, f"{day.generation}.json")}
        current = day.generation
        is_known = time.time() - os.stat(manifest).st_mtime < _KEPT_S
    for entry in files.folder(folder):
        generation = entry.name.split("-")[0].split(".")[0]
        if entry.path in named or not generation.isdigit():
            continue
        if int(generation) > current or not is_known:
            os.unlink(entry.path)


@contextlib.contextmanager
def _work_folder(lake: str) -> Iterator[str]:
    """A folder on the lake's own disk, so that renames are atomic; emptied before, removed behind."""
    path = os.path.join(lake, "compact", _WORK)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _system_errors(folder: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as e:
        raise UserError(f"{e.filename}: no longer exists", "run it again") from e
    except OSError as e:
        raise UserError(f"{e.filename or folder}: {e.strerror}", "nothing was lost; make room or run it again") from e
    except duckdb.Error as e:
        raise UserError(f"{folder}: {str(e).splitlines()[0]}", "nothing was lost; fix this and run it again") from e


def _synced(path: str) -> str:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return path


def _sync_folder(path: str) -> None:
    _synced(path)


def _write_json(temporary: str, to: str, content: dict[str, Any]) -> None:
    part = os.path.join(temporary, os.path.basename(to))
    with open(part, "w", encoding="utf-8") as f:
        json.dump(content, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(part, to)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
