# SPDX-License-Identifier: Apache-2.0
"""What Spark reads of a lake of files, for a topic and scope, at one moment."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os

from ..errors import UserError
from . import avro, compact, files
from .columns import SCHEMA_VERSION
from .session import Scope

_numbers = itertools.count()


@dataclasses.dataclass(frozen=True)
class Found:
    """Compacted days, and the Avro files beside them; warnings: what the reader should know of these."""

    days: list[compact.Day]
    avro: list[files.File]
    warnings: list[str]


def look(lake: str, topic: str, scope: Scope, copies: str | None) -> Found:
    """Finds the files, though an agent writes and sluice-lake compacts meanwhile.

    copies: a folder for copies of the whole blocks of files that are being written; None: these are left out.
    """
    headers = files.Headers()
    days, finished, opened = compact.files_in(lake, topic, scope, headers)
    warnings = []
    if opened and copies is None:
        warnings.append(f"{lake}: a cluster does not read files that are being written")
    elif copies is not None:
        for file in opened:
            with contextlib.suppress(FileNotFoundError, UserError):  # renamed since, or its header is not on disk yet
                copy = _whole_blocks(file, headers, copies)
                if copy is not None:
                    finished.append(copy)
            if not file.is_live:
                warnings.append(file.of_the_dead())
    return Found(days, finished, warnings + _from_the_future(topic, finished))


def _from_the_future(topic: str, found: list[files.File]) -> list[str]:
    """A warning for each schema that this version does not know whole."""
    groups: dict[str, list[files.File]] = {}
    for file in found:
        groups.setdefault(file.schema, []).append(file)
    warnings = []
    for group in groups.values():
        with contextlib.suppress(UserError):  # damaged: its reader finds out
            first = next(avro.records(group[0].path), None)
            if first is not None and first["schema_version"] > SCHEMA_VERSION:
                warnings.append(files.of_the_future([f.path for f in group], first["schema_version"], topic))
    return warnings


def _whole_blocks(file: files.OpenFile, headers: files.Headers, to: str) -> files.File | None:
    blocks = files.blocks_of(file.path, headers)
    if blocks.records == 0:
        return None
    path = os.path.join(to, f"{next(_numbers)}.avro")
    with open(path, "wb") as out:
        out.write(files.header_bytes(blocks.header))
        files.copy_blocks(file.path, blocks.header.size, blocks.end, blocks.header.sync, out)
    return files.File(path, file.day, file.host, blocks.header.schema)
