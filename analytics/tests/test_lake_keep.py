# SPDX-License-Identifier: Apache-2.0
"""sluice-lake retain and info."""

from __future__ import annotations

import json
import os
import pathlib
import time
from typing import Any

import pytest
from lakes import DAY_US, LakeMaker

from sluice_analytics.cli.lake import main
from sluice_analytics.lake.duck import DuckSession


@pytest.fixture
def lake(tmp_path: pathlib.Path) -> LakeMaker:
    """Program and Usage records of noon on each of the last 20 days; those more than ten days old are compacted."""
    now = int(time.time() * 1e6)
    maker = LakeMaker(tmp_path / "lake", t0=now - now % DAY_US + DAY_US // 2)
    for day in range(1, 21):
        p = maker.program(start=-day * 86_400, phase="START")
        maker.usage(p, start=-day * 86_400, end=-day * 86_400 + 10)
    maker.write()
    until = time.strftime("%Y-%m-%d", time.gmtime(now / 1e6 - 10 * 86_400))
    assert main(["compact", "--lake", str(maker.path), "--until", until, "--remove-avro"]) == 0
    return maker


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    capsys.readouterr()
    assert main([*argv, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def counts(lake: LakeMaker) -> tuple[int, int]:
    with DuckSession(str(lake.path)) as session:
        program, usage = (session.rows(session.table(t).count().as_table())[0] for t in ("program", "usage"))
    return next(iter(program.values())), next(iter(usage.values()))


def test_retain_says_and_does_nothing_without_yes(lake: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    days = answer(capsys, "retain", "--lake", str(lake.path), "--keep", "5d")["days"]
    assert {d["state"] for d in days} == {"would be deleted"}
    # Noon of 6 days ago was 5.5 days before today's noon: its day ended more than five days ago.
    assert len(days) == 2 * len(range(6, 21))
    assert counts(lake) == (20, 20)


def test_retain_deletes_compacted_and_other_days(lake: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    days = answer(capsys, "retain", "--lake", str(lake.path), "--keep", "15d", "--keep-usage", "5d", "--yes")["days"]
    assert {d["state"] for d in days} == {"deleted"}
    assert counts(lake) == (15, 5)
    assert not list(lake.path.glob("compact/sluice.usage/date=*"))
    assert len(list(lake.path.glob("sluice.usage/date=*"))) == 5
    answer(capsys, "retain", "--lake", str(lake.path), "--keep", "15d", "--yes")
    assert counts(lake) == (15, 5)


def test_retain_leaves_what_is_not_the_lakes(lake: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sorted(lake.path.glob("sluice.program/date=*/host=*"))[0]
    (folder / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert main(["retain", "--lake", str(lake.path), "--keep", "2d", "--yes"]) == 0
    printed = capsys.readouterr()
    assert f"{folder / 'notes.txt'}: does not belong to a lake" in " ".join((printed.out + printed.err).split())
    assert os.listdir(folder) == ["notes.txt"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["retain", "--keep", "ten"], '"ten" is not a duration'),
        (["retain", "--keep", "3h"], "by days"),
        (["retain", "--keep", "90d", "--keep-usage", "x"], "--keep-usage"),
        (["retain", "--keep", "90d", "--lake", "/nonexistent"], "no such folder"),
        (["info", "--lake", "/nonexistent"], "no such folder"),
        (["compact", "--lake", "/dev/null"], "is not a folder"),
    ],
)
def test_mistakes_are_one_sentence(
    lake: LakeMaker, argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    if "--lake" not in argv:
        argv = [*argv, "--lake", str(lake.path)]
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert said in error and error.startswith("sluice-lake: ") and error.count("\n") == 1


def test_a_topic_that_is_not_there_is_the_answer_no(lake: LakeMaker) -> None:
    assert main(["info", "--lake", str(lake.path), "--topic", "finding"]) == 1


def test_no_lake_at_all(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sluice_analytics.cli.lake.DEFAULT_LAKES", ("./sluice-lake",))
    assert main(["info"]) == 2
    assert "name one with --lake DIR" in capsys.readouterr().err


def test_info(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    first = maker.program(start=0, end=10)
    maker.skip("program", 3)
    maker.program(start=20, end=30, host_id="h2")
    maker.program(start=20, end=40)
    maker.repeat(first)
    maker.host()
    paths = maker.write()
    maker.program(start=50, phase="START")
    [part] = maker.write(left_open=True)
    document = answer(capsys, "info", "--lake", str(maker.path))
    host, program = document["topics"]
    assert (host["topic"], host["records"]) == ("sluice.host", 1)
    assert (program["topic"], program["records"], program["missing"]) == ("sluice.program", 7, 3)
    assert (program["hosts"], program["agents"], program["days"]) == (2, 2, 1)
    assert (program["avro_files"], program["open_files"], program["compacted_days"]) == (2, 1, 0)
    sizes = [p.stat().st_size for p in (*paths, part) if "sluice.program" in str(p)]
    assert program["bytes"] == sum(sizes)
    assert (program["first"], program["last"]) == ("2026-11-01T12:00:01.000000Z", "2026-11-01T12:00:51.000000Z")
