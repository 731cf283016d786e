# SPDX-License-Identifier: Apache-2.0
"""Writes the index of an Avro file's runs, as an agent does beside a file (src/lake/run_index.h)."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterable
from typing import Any

import fastavro

from sluice_analytics.lake import files, run_index

FROM = 32 * 1024
"""RUN_INDEX_FROM: a smaller file has none"""

RUNS_MAX = 64
"""RUN_INDEX_RUNS_MAX: a block with more runs has "*" """


def lines(header: files.Header, blocks: Iterable[tuple[int, int, set[str]]]) -> bytes:
    """An index. blocks: where each ends, its records and its run_ids."""
    index = b""
    first = f"sluice-runs 1 {header.sync.hex()} {header.size} "
    for line in itertools.chain([first], (f"{end} {n} {_runs(run_ids)}" for end, n, run_ids in blocks)):
        index += line.encode()
        index += f"{zlib.crc32(index):08x}\n".encode()
    return index


def _runs(run_ids: set[str]) -> str:
    if len(run_ids) > RUNS_MAX:
        return "* "
    return "".join(f"{zlib.crc32(run_id.encode()):08x} " for run_id in sorted(run_ids))


def blocks_of(path: str) -> list[tuple[int, int, set[str]]]:
    """Where each block of an Avro file ends, its records and its run_ids."""
    found = []
    with open(path, "rb") as f:
        for block in fastavro.block_reader(f):
            records: list[Any] = list(block)
            end = block.offset + block.size
            found.append((end, len(records), {r["run_id"] for r in records if r["run_id"] is not None}))
    return found


def write(path: str, least: int = FROM) -> None:
    """Writes the index of an Avro file that has so many bytes."""
    if os.path.getsize(path) < least:
        return
    index = lines(files.Headers().read(path), blocks_of(path))
    with open(run_index.path_of(path), "wb") as f:
        f.write(index)
