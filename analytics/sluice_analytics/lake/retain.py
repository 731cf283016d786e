# SPDX-License-Identifier: Apache-2.0
"""Retention: deletes days of a lake, Avro and compacted, that are older than they need be."""

from __future__ import annotations

import contextlib
import dataclasses
import os

from ..errors import UserError
from . import compact, files, run_index
from .session import ALL

_DAY_US = 86_400_000_000
_ENDINGS = (".avro", ".avro.part", run_index.SUFFIX, ".parquet")


@dataclasses.dataclass(frozen=True)
class OldDay:
    """A day of a topic that is past its time: its files, and those in its folders that are not a lake's.

    waits: why it stays nevertheless; empty: it can go.
    """

    topic: str
    day: str
    paths: list[str]
    foreign: list[str]
    bytes: int
    waits: str = ""


def old_days(lake: str, keep_us: dict[str, int], now_us: int) -> list[OldDay]:
    """The days that ended before now_us - keep_us[topic], for the topics named in keep_us, in order."""
    found = []
    for topic, keep in keep_us.items():
        live = {f.day: f.path for f in files.open_files(lake, topic, ALL) if f.is_live}
        days: dict[str, list[str]] = {}
        for root in (os.path.join(lake, "sluice." + topic), os.path.join(lake, "compact", "sluice." + topic)):
            for day, path in files.day_folders(root, ALL):
                if files.day_start(day) + _DAY_US <= now_us - keep:
                    days.setdefault(day, []).append(path)
        for day, folders in sorted(days.items()):
            paths, foreign, size = _contents(folders)
            waits = f"{live[day]} is being written" if day in live else ""
            found.append(OldDay(topic, day, paths, foreign, size, waits))
    return found


def _contents(folders: list[str]) -> tuple[list[str], list[str], int]:
    paths, foreign, size = [], [], 0
    for at in folders:
        inner = [e for e in files.folder(at) if not e.is_dir(follow_symlinks=False)]
        for host in files.folder(at):
            if host.is_dir(follow_symlinks=False):
                inner += files.folder(host.path)
        for entry in inner:
            if entry.name.endswith(_ENDINGS) or _is_of_compaction(entry.name):
                paths.append(entry.path)
                with contextlib.suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_size
            else:
                foreign.append(entry.path)
    return paths, foreign, size


def _is_of_compaction(name: str) -> bool:
    return name == compact.MANIFEST or (name.endswith(".json") and name.removesuffix(".json").isdigit())


def delete(day: OldDay) -> None:
    """Deletes a day. The caller holds compactor.locked(). What a crash leaves of the day, the next call deletes."""
    # The manifest before what it names: a reader never finds one whose files are gone.
    for path in sorted(day.paths, key=lambda p: not p.endswith(compact.MANIFEST)):
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as e:
            raise UserError(f"{path}: {e.strerror}", "run it as the owner of the lake or as root") from e
    folders = {os.path.dirname(path) for path in day.paths}
    folders |= {os.path.dirname(f) for f in folders if os.path.basename(f).startswith("host=")}
    for at in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):  # not empty: others' files are there
            os.rmdir(at)
