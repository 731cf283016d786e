# SPDX-License-Identifier: Apache-2.0
"""The index of runs beside an Avro file: it saves the search, and changes no answer whatever it has."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Iterator

import pytest
from lakes import DAY_US, LakeMaker

from sluice_analytics.cli.lake import main
from sluice_analytics.errors import UserError
from sluice_analytics.lake import files, run_index, stage
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.session import ALL, Row, Scope

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import run_indexes

WRITTEN = """sluice-runs 1 000102030405060708090a0b0c0d0eff 100 b0c4f40b
5000 6 2a6ca8e3 b365f959 60a64210
32767 1 58c36ece
32768 1 3041a608 0829b525
"""
"""What src/lake/run_index.c writes; the text is also in tests/unit/test_lake_run_index.c."""

MINE = Scope(run_ids=("mine",))


class Searched:
    """Counts the bytes of blocks that are searched for runs."""

    def __init__(self) -> None:
        self.bytes = 0


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> Searched:
    count = Searched()
    original = files.blocks_with

    def counting(path: str, blocks: files.Blocks, start: int, texts: list[bytes]) -> tuple[list[tuple[int, int]], int]:
        count.bytes += max(0, blocks.end - start)
        return original(path, blocks, start, texts)

    monkeypatch.setattr(files, "blocks_with", counting)
    return count


@pytest.fixture(params=["null", "deflate"])
def lake(request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> LakeMaker:
    """Two days of two hosts with many runs, and one run on all of them; each has a file and one that is open."""
    monkeypatch.setattr(stage, "_MUCH", 0)
    maker = LakeMaker(tmp_path / "lake")
    for left_open in (False, True):
        for day in (0, 1):
            for host in "ab":
                for n in range(150):
                    start = day * DAY_US / 1e6 + n
                    run_id = "mine" if n % 50 == 7 else f"other-{n // 2}"
                    maker.program(run_id=run_id, host_id=host * 32, start=start, end=start + 2)
                maker.program(run_id=None, host_id=host * 32, start=start, end=start + 2)
        maker.write(codec=request.param, left_open=left_open)
    for path in maker.files:
        run_indexes.write(str(path), 0)
    return maker


@pytest.fixture
def expected(lake: LakeMaker) -> list[Row]:
    with DuckSession(str(lake.path)) as session:
        found = [r for r in read(session, ALL) if r["run_id"] == "mine"]
    assert len(found) == 2 * 2 * 2 * 3 * 2
    return found


def read(session: DuckSession, scope: Scope) -> list[Row]:
    return session.rows(session.table("program", scope).order_by("agent_id", "seq"))


def answer(lake: LakeMaker, scope: Scope = MINE) -> list[Row]:
    with DuckSession(str(lake.path)) as session:
        return read(session, scope)


def indexes(lake: LakeMaker) -> list[pathlib.Path]:
    found = [pathlib.Path(run_index.path_of(str(p))) for p in lake.files]
    assert len(found) == 8 and all(p.exists() for p in found)
    return found


def test_what_the_agent_writes_is_read() -> None:
    header = files.Header("", "null", bytes([*range(15), 255]), 100)
    blocks = [(5000, 6, {"run-1", "run-2"}), (32767, 1, set[str]()), (32768, 1, {"a:b"})]
    assert run_indexes.lines(header, blocks).decode() == WRITTEN
    assert run_index._whole_lines(WRITTEN.encode()) == WRITTEN.encode()


def test_open_and_finished_files_have_one_name_of_an_index() -> None:
    assert run_index.path_of("l/a-7.avro") == run_index.path_of("l/.a-7.avro.part") == "l/.a-7.runs"
    assert run_index.path_of("a-7.2.avro") == ".a-7.2.runs"


@pytest.mark.parametrize("run_ids", [("mine",), ("other-7", "mine"), ("other-7",), ("none",), ()])
def test_nothing_is_searched(lake: LakeMaker, searched: Searched, run_ids: tuple[str, ...]) -> None:
    expected = [r for r in answer(lake, ALL) if r["run_id"] in run_ids]
    with DuckSession(str(lake.path)) as session:
        assert read(session, Scope(run_ids=run_ids)) == expected
        assert read(session, Scope(run_ids=run_ids)) == expected
        rows = sum(part.rows for parts in session.stage._parts.values() for part in parts)
    assert searched.bytes == 0
    assert (rows == 0) == (expected == [])
    assert rows < len(answer(lake, ALL)) / 2 or "mine" in run_ids


def test_a_block_of_too_many_runs_is_read(lake: LakeMaker, expected: list[Row], searched: Searched) -> None:
    for path in lake.files:
        header = files.Headers().read(str(path))
        many = {f"r{n}" for n in range(run_indexes.RUNS_MAX + 1)}
        blocks = [(end, n, many) for end, n, _ in run_indexes.blocks_of(str(path))]
        pathlib.Path(run_index.path_of(str(path))).write_bytes(run_indexes.lines(header, blocks))
    assert answer(lake) == expected
    assert searched.bytes == 0


def _flipped(index: bytes) -> Iterator[bytes]:
    for at in range(0, len(index), 23):
        yield index[:at] + bytes([index[at] ^ 1]) + index[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "empty": lambda index: iter([b""]),
    "cut within the first line": lambda index: iter([index[:20]]),
    "cut behind the first line": lambda index: iter([index[: index.index(b"\n") + 1]]),
    "cut within a line": lambda index: iter([index[: len(index) // 2]]),
    "cut before the last newline": lambda index: iter([index[:-1]]),
    "zeros at the end": lambda index: iter([index + bytes(4096), index[:-30] + bytes(30)]),
    "another bit": _flipped,
    "not text": lambda index: iter([bytes(range(256)) * 4, b"\n", b"\n\n\n", b"xxxxxxxx\n", b"00000000\n"]),
}


@pytest.mark.parametrize("lake", ["deflate"], indirect=True)
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_cut_or_damaged_index_changes_nothing(
    lake: LakeMaker, expected: list[Row], searched: Searched, kind: str
) -> None:
    first, *others = indexes(lake)
    for path in others:
        path.unlink()
    for content in DAMAGE[kind](first.read_bytes()):
        first.write_bytes(content)
        assert answer(lake) == expected, content
    assert searched.bytes > 0


def test_an_index_of_another_file_changes_nothing(lake: LakeMaker, expected: list[Row], searched: Searched) -> None:
    paths = indexes(lake)
    contents = [p.read_bytes() for p in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert answer(lake) == expected
    headers = sum(files.Headers().read(str(p)).size for p in lake.files)
    assert searched.bytes == sum(p.stat().st_size for p in lake.files) - headers


def test_some_files_have_none(lake: LakeMaker, expected: list[Row], searched: Searched) -> None:
    for path in indexes(lake)[::2]:
        path.unlink()
    assert answer(lake) == expected
    assert searched.bytes < sum(p.stat().st_size for p in lake.files)


def test_a_file_that_grows(lake: LakeMaker, expected: list[Row], searched: Searched) -> None:
    """What has no line yet is searched, and no more once it has one."""
    opened = next(p for p in lake.files if p.name.startswith("."))
    index = pathlib.Path(run_index.path_of(str(opened)))
    whole, all_lines = opened.read_bytes(), index.read_bytes()
    ends = [end for end, _, _ in run_indexes.blocks_of(str(opened))]
    assert len(ends) >= 3
    lines = all_lines.splitlines(keepends=True)
    opened.write_bytes(whole[: ends[1]])
    index.write_bytes(b"".join(lines[:2]))  # the first block's
    with DuckSession(str(lake.path)) as session:
        before = read(session, MINE)
        assert searched.bytes == ends[1] - ends[0]
        opened.write_bytes(whole[: ends[2] + 9])
        index.write_bytes(b"".join(lines[:4]))
        between = read(session, MINE)
        assert searched.bytes == ends[1] - ends[0]
        opened.write_bytes(whole)
        index.write_bytes(all_lines)
        assert read(session, MINE) == expected
    assert len(before) <= len(between) <= len(expected)
    assert searched.bytes == ends[1] - ends[0]


def test_a_finished_file_keeps_its_index(lake: LakeMaker, expected: list[Row], searched: Searched) -> None:
    for path in lake.files:
        if path.name.startswith("."):
            path.rename(path.with_name(path.name[1:].removesuffix(".part")))
    assert answer(lake) == expected
    assert searched.bytes == 0


def test_a_file_that_is_shorter_than_its_index_is_damaged(lake: LakeMaker) -> None:
    path = lake.files[0]
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(UserError, match=f"{path.name}: is damaged: byte "):
        answer(lake)


def test_a_damaged_block_of_the_run_is_named(lake: LakeMaker) -> None:
    path = lake.files[0]
    data = bytearray(path.read_bytes())
    start = files.Headers().read(str(path)).size
    data[start] += 2  # one record more than it has
    path.write_bytes(data)
    with pytest.raises(UserError, match=f"{path.name}: is damaged: "):
        answer(lake)


def test_files_of_runs_go_with_their_day(lake: LakeMaker) -> None:
    for path in lake.files:
        if path.name.startswith("."):
            path.unlink()
            pathlib.Path(run_index.path_of(str(path))).unlink()
    assert main(["compact", "--lake", str(lake.path), "--until", "2026-11-01", "--remove-avro"]) == 0
    assert [p.name for p in (lake.path / "sluice.program").iterdir()] == ["date=2026-11-02"]
    assert main(["retain", "--lake", str(lake.path), "--keep", "0d", "--yes"]) in (0, 2)
