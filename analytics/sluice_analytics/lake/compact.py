# SPDX-License-Identifier: Apache-2.0
"""Compaction: the Avro files of closed days as few sorted Parquet files, each record once.

<lake>/compact/sluice.<topic>/date=YYYY-MM-DD/ holds of a day:

    manifest.json           names the other files; written last, by rename, so that it is the moment at which
                            the day is compacted. Files that it does not name are of no account
    <generation>-<n>.parquet  the records, sorted by run_id, host_id and time, so that a query for one run reads
                            few row groups. Columns are those of columns.py, and each field that no column
                            reads under its own name (usage.tcp_rx_bytes, evidence), so that nothing is lost
    <generation>.json       the Avro files that they replace, relative to the lake, and each agent's first
                            and last seq

Avro files that came later are read beside them until the day is compacted again, which makes the next
generation of files; those of the one before stay some minutes for who still reads them.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from ..errors import UserError
from . import files
from .session import Scope
from .stage import Part

MANIFEST = "manifest.json"
TRIES = 4


@dataclasses.dataclass(frozen=True)
class Day:
    """A compacted day of a topic. parquet: paths; columns: their columns; records: how many are in them."""

    lake: str
    day: str
    folder: str
    parquet: tuple[str, ...]
    columns: tuple[str, ...]
    records: int
    generation: int

    def covered(self) -> frozenset[str]:
        """The Avro files that the day replaces, relative to the lake; none where no Avro file can be."""
        topic = os.path.basename(os.path.dirname(self.folder))
        if not os.path.isdir(os.path.join(self.lake, topic, "date=" + self.day)):
            return frozenset()  # the rule for old days: no need to read a long list
        return frozenset(self._origin()["avro"])

    def agents(self) -> dict[str, tuple[int, int]]:
        """Each agent's first and last seq."""
        return {agent: (first, last) for agent, (first, last) in self._origin()["agents"].items()}

    def may_have(self, parts: list[Part]) -> bool:
        """Can a record of these parts be in this day too? Copies of a record are at most a day's folder apart."""
        near = {neighbour(self.day, n) for n in (-1, 0, 1)}
        some = [p for p in parts if p.days & near]
        if not some:
            return False
        agents = self.agents()
        return any(
            agent in agents and low <= agents[agent][1] and agents[agent][0] <= high
            for part in some
            for agent, (low, high) in part.agents.items()
        )

    def _origin(self) -> dict[str, Any]:
        return _read_json(os.path.join(self.folder, f"{self.generation}.json"))


def neighbour(day: str, n: int) -> str:
    """The day n days after a day."""
    return files.day_of(files.day_start(day) + n * 86_400_000_000)


def _read_json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as f:
            content: dict[str, Any] = json.load(f)
            return content
    except (OSError, ValueError) as e:
        raise UserError(f"{path}: {e}", "if its Avro files still exist, remove this folder and compact again") from e


def day_folder(lake: str, topic: str, day: str) -> str:
    """The folder of a compacted day."""
    return os.path.join(lake, "compact", "sluice." + topic, "date=" + day)


def read_day(lake: str, day: str, folder: str) -> Day | None:
    """A day by its manifest; None where it has none."""
    manifest = os.path.join(folder, MANIFEST)
    if not os.path.exists(manifest):
        return None
    content = _read_json(manifest)
    try:
        return Day(
            lake, day, folder, tuple(os.path.join(folder, str(name)) for name in content["parquet"]),
            tuple(content["columns"]), int(content["records"]), int(content["generation"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as e:
        raise UserError(
            f"{manifest}: is not a manifest: {e!r}",
            "if its Avro files still exist, remove this folder and compact again",
        ) from e


def days_in(lake: str, topic: str, scope: Scope) -> list[Day]:
    """The compacted days whose records can be in a scope, in order."""
    root = os.path.join(lake, "compact", "sluice." + topic)
    found = (read_day(lake, day, path) for day, path in files.day_folders(root, scope))
    return [day for day in found if day is not None]


def parts_of(lake: str, topic: str, scope: Scope) -> tuple[frozenset[str], list[str]]:
    """(Avro files, relative to the lake, that compacted days replace; the Parquet files of days in scope)."""
    days = days_in(lake, topic, scope)
    covered = frozenset(path for day in days for path in day.covered())
    return covered, [path for day in days for path in day.parquet]


def files_in(
    lake: str, topic: str, scope: Scope, headers: files.Headers
) -> tuple[list[Day], list[files.File], list[files.OpenFile]]:
    """Compacted days, finished and open Avro files of one moment, while an agent writes and sluice-lake compacts."""
    for _ in range(TRIES):
        days = days_in(lake, topic, scope)
        covered = frozenset(path for day in days for path in day.covered())
        # Open files first: one that is renamed in between is found twice, not never.
        opened = files.open_files(lake, topic, scope)
        finished = files.avro_files(lake, topic, scope, covered, headers)
        if days_in(lake, topic, scope) == days:
            return days, finished, opened
    raise changes_too_fast(lake)


def changes_too_fast(lake: str) -> UserError:
    """The error of who still saw files change after TRIES attempts."""
    return UserError(f"{lake}: its files change while they are being read", "try again")
