# SPDX-License-Identifier: Apache-2.0
"""Records of some runs among many others', in Avro files: all of them, and little beside them is read."""

from __future__ import annotations

import pathlib

import pytest
from lakes import LakeMaker, S

from sluice_analytics.errors import UserError
from sluice_analytics.lake import stage
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.session import ALL, Row, Scope

OTHERS = 600


@pytest.fixture(params=["null", "deflate"])
def busy(request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> LakeMaker:
    """A day of many runs in two files, the second still open, and one run of twenty programs beside them."""
    monkeypatch.setattr(stage, "_MUCH", 0)
    lake = LakeMaker(tmp_path / "lake")
    for left_open in (False, True):
        for n in range(OTHERS):
            lake.program(run_id=f"other-{n}", start=n, end=n + 1, cpu_user_ns=n)
            if n % (OTHERS // 10) == 0:
                lake.program(run_id="mine", start=n, end=n + 1, cpu_user_ns=S)
        lake.write(codec=request.param, left_open=left_open)
    return lake


def read(session: DuckSession, scope: Scope) -> list[Row]:
    return session.rows(session.table("program", scope).order_by("seq"))


def read_by_stage(session: DuckSession) -> int:
    """Records that were read from Avro files, as often as they were."""
    return sum(part.rows for parts in session.stage._parts.values() for part in parts)


@pytest.mark.parametrize("run_ids", [("mine",), ("other-7", "mine"), ("none",), ()])
def test_records_of_runs_are_those_that_a_whole_day_has(busy: LakeMaker, run_ids: tuple[str, ...]) -> None:
    with DuckSession(str(busy.path)) as session:
        expected = [r for r in read(session, ALL) if r["run_id"] in run_ids]
    with DuckSession(str(busy.path)) as session:
        assert read(session, Scope(run_ids=run_ids)) == expected
        assert read(session, Scope(run_ids=run_ids)) == expected  # what was read is read no more
        assert len(expected) == sum({"mine": 40, "other-7": 4}.get(i, 0) for i in run_ids)
        assert read_by_stage(session) < (OTHERS * 4 if run_ids else 1)


def test_one_run_takes_a_part_of_the_day(busy: LakeMaker) -> None:
    with DuckSession(str(busy.path)) as session:
        assert len(read(session, Scope(run_ids=("other-7",)))) == 4
        # A block has some 80 of these records: two blocks of each file, where START and END part.
        assert read_by_stage(session) < OTHERS * 4 / 5


def test_what_is_read_as_a_whole_is_not_searched(busy: LakeMaker) -> None:
    with DuckSession(str(busy.path)) as session:
        everything = read(session, ALL)
        assert len(read(session, Scope(run_ids=("mine",)))) == 40
        assert read_by_stage(session) == len(everything)


def test_records_that_come_meanwhile(busy: LakeMaker) -> None:
    """Of an open file that grew, what is new is searched."""
    scope = Scope(run_ids=("mine",))
    with DuckSession(str(busy.path)) as session:
        before = read(session, scope)
        busy.program(run_id="mine", start=9000, end=9001)
        [path] = busy.write(codec="deflate")
        opened = next(busy.path.rglob(".*.part"))
        assert len(read(session, scope)) == len(before) + 2
        path.unlink()
        grown, more = opened.read_bytes(), opened.read_bytes()
        header = more.index(more[-16:]) + 16
        opened.write_bytes(grown + more[header:])  # the same blocks once more: second deliveries
        assert read(session, scope) == before


@pytest.mark.parametrize("busy", ["deflate"], indirect=True)
def test_a_damaged_block_is_named(busy: LakeMaker) -> None:
    """Whether or not the run's records are in it."""
    path = next(p for p in busy.files if not p.name.startswith("."))
    data = bytearray(path.read_bytes())
    at = data.index(bytes(data[-16:])) + 16 + 6
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    with DuckSession(str(busy.path)) as session, pytest.raises(UserError, match="is damaged"):
        read(session, Scope(run_ids=("mine",)))
