# SPDX-License-Identifier: Apache-2.0
"""The index of an Avro file's runs, which its writer keeps beside the file (src/lake/run_index.h has the format).

It is optional: one that is missing, cut, damaged or of another file is not used, and neither is one that does not agree
with the blocks that it names. What it does not describe is searched.
"""

from __future__ import annotations

import dataclasses
import mmap
import os
import re
import zlib
from collections.abc import Sequence

from . import files

SUFFIX = ".runs"
_LINE = re.compile(rb"(\d+) (\d+) .*[0-9a-f]{8}")


@dataclasses.dataclass(frozen=True)
class Found:
    """The blocks of some runs, as far as an index knows: where they begin and end, how many records they have.

    end: the end of the last block that the index describes.
    """

    spans: list[tuple[int, int]]
    records: int
    end: int


def path_of(avro: str) -> str:
    """The path of the index of an Avro file, which may be open."""
    folder, name = os.path.split(avro)
    stem = name.removeprefix(".").removesuffix(".part").removesuffix(".avro")
    return os.path.join(folder, f".{stem}{SUFFIX}")


def find(avro: str, header: files.Header, start: int, run_ids: Sequence[str]) -> Found | None:
    """The blocks of an Avro file, from start on, in which records of these runs can be; None: no index knows."""
    try:
        with open(path_of(avro), "rb") as f:
            index = _whole_lines(f.read())
        with open(avro, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _find(index, data, header, start, run_ids)
    except (OSError, ValueError, IndexError):
        return None  # an empty file cannot be mapped


def _whole_lines(index: bytes) -> bytes:
    """An index up to its last whole line. ValueError where it is not what its writer wrote."""
    index = index[: index.rfind(b"\n") + 1]
    line_end = len(index) - 1
    if line_end < 8 or zlib.crc32(index[: line_end - 8]) != int(index[line_end - 8 : line_end], 16):
        raise ValueError
    return index


def _find(index: bytes, data: mmap.mmap, header: files.Header, start: int, run_ids: Sequence[str]) -> Found | None:
    first = f"sluice-runs 1 {header.sync.hex()} {header.size} ".encode()
    end, _ = _line(index, index.rfind(b"\n", 0, -1) + 1, header)
    if not index.startswith(first) or end > len(data):
        return None
    spans: list[tuple[int, int]] = []
    records = 0
    hashes = [f"{zlib.crc32(run_id.encode()):08x}" for run_id in run_ids]
    wanted = re.compile(f" (?:{'|'.join([*hashes, re.escape('*')])}) ".encode())
    at = index.index(b"\n") + 1
    while (match := wanted.search(index, at)) is not None:
        line = index.rfind(b"\n", 0, match.start()) + 1
        at = index.index(b"\n", match.start()) + 1
        begin, _ = _line(index, index.rfind(b"\n", 0, line - 1) + 1, header)
        block_end, count = _line(index, line, header)
        if begin < start:
            continue
        if not _is_block(data, begin, block_end, count, header.sync):
            return None
        records += count
        if spans and spans[-1][1] == begin:
            begin = spans.pop()[0]
        spans.append((begin, block_end))
    return Found(spans, records, end)


def _line(index: bytes, at: int, header: files.Header) -> tuple[int, int]:
    """(end of the block, its records) of a line; of the first line, the end of the header."""
    if at == 0:
        return header.size, 0
    match = _LINE.match(index, at)
    if match is None:
        raise ValueError
    return int(match[1]), int(match[2])


def _is_block(data: mmap.mmap, begin: int, end: int, records: int, sync: bytes) -> bool:
    count, inner = files.varint(data, begin)
    length, inner = files.varint(data, inner)
    return count == records and inner + length + len(sync) == end and data[end - len(sync) : end] == sync
