# SPDX-License-Identifier: Apache-2.0
"""sluice-lake compact: nothing is lost or doubled, also where it fails half way."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import tempfile
from collections.abc import Callable
from typing import Any

import duckdb
import pytest
import sluice_binary
from lakes import DAY_US, T0, TOPICS, LakeMaker, S

from sluice_analytics.cli.lake import main
from sluice_analytics.errors import UserError
from sluice_analytics.lake import compact, compactor, files
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.session import ALL, Scope

MIDNIGHT = T0 - T0 % DAY_US
DAY = "2026-11-01"
NEXT = "2026-11-02"


@pytest.fixture(autouse=True)
def _a_later_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The days of these lakes are over, for any clock of the machine."""
    monkeypatch.setattr(files, "today", lambda: "2026-12-01")


def records(lake: os.PathLike[str] | str) -> dict[str, list[str]]:
    """All records of all topics, in an order of their own."""
    with DuckSession(str(lake)) as session:
        return {t: sorted(json.dumps(r) for r in session.rows(session.table(t))) for t in TOPICS}


def fill(maker: LakeMaker, runs: int = 3) -> None:
    """Some of each topic on two days and two hosts; some of it written twice."""
    for n in range(runs):
        host = f"host{n % 2}"
        at = 1000.0 * n
        maker.run(run_id=f"r{n}", host_id=host, start=at, end=at + 900)
        maker.task(run_id=f"r{n}", host_id=host, start=at, end=at + 800)
        for k in range(20):
            p = maker.program(
                run_id=f"r{runs - n}", host_id=host, start=at + k, end=at + 500 + k, cpu_user_ns=n * S + k,
                argv=["x", str(k)],
            )  # fmt: skip
            maker.usage(p, start=at + k, end=at + k + 10, cpu_user_ns=k)
        maker.host(host_id=host, start=at, end=at + 10)
        maker.agent(host_id=host, at=at, lost=[{"place": "ring", "reason": "full", "count": n}])
        maker.finding("FAILED", host_id=host, at=at, evidence={"code": n}, causes=["a", "b"])
        maker.repeat(p)
        maker.write()
    maker.program(host_id="host0", start=DAY_US / 1e6, end=DAY_US / 1e6 + 9)
    maker.write()


def run(*argv: str) -> int:
    return main(list(argv))


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    capsys.readouterr()
    assert run(*argv, "--format", "json") == 0
    return json.loads(capsys.readouterr().out)


def manifest(lake: pathlib.Path, topic: str, day: str = DAY) -> pathlib.Path:
    return pathlib.Path(compact.day_folder(str(lake), topic, day)) / compact.MANIFEST


def test_compaction_changes_no_record(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(maker)
    before = records(maker.path)
    assert run("compact", "--lake", str(maker.path)) == 0
    assert records(maker.path) == before
    for topic in TOPICS:  # and the Avro files are not read for it
        shutil.rmtree(maker.path / f"sluice.{topic}")
    assert records(maker.path) == before
    out = capsys.readouterr().out
    assert "compacted" in out


def test_rows_are_sorted_and_once(maker: LakeMaker) -> None:
    fill(maker)
    run("compact", "--lake", str(maker.path))
    content = json.loads(manifest(maker.path, "program").read_text())
    [name] = content["parquet"]
    rows = duckdb.sql(
        f"SELECT run_id, host_id, time, agent_id, seq FROM '{manifest(maker.path, 'program').parent / name}'"
    ).fetchall()
    assert rows == sorted(rows)
    assert len({(agent, seq) for *_, agent, seq in rows}) == len(rows) == content["records"] == 120


def test_fields_that_no_column_reads_are_kept(maker: LakeMaker) -> None:
    maker.finding("FAILED", evidence={"code": 3}, causes=["a", "b"])
    maker.program(end=1, gid=77, tcp_rx_bytes=5, variables=[{"name": "A", "value": "1"}], tool_rule="x")
    maker.write(extra={"quantum": (["null", "string"], "q")}, schema_version=99)
    maker.program(end=2, gid=78)
    maker.write()
    run("compact", "--lake", str(maker.path))

    def rows(topic: str, columns: str) -> list[Any]:
        folder = manifest(maker.path, topic).parent
        return duckdb.sql(f"SELECT {columns} FROM '{folder}/*.parquet' ORDER BY seq").fetchall()

    assert rows("finding", "evidence, causes") == [([{"name": "code", "value": 3.0}], ["a", "b"])]
    found = rows("program", 'gid, "usage.tcp_rx_bytes", variables, tool_rule, schema_version, quantum')
    assert found[1] == (77, 5, [{"name": "A", "value": "1"}], "x", 99, "q")
    assert found[3] == (78, 0, [], None, 2, None)


def test_a_query_for_a_run_skips_row_groups(maker: LakeMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactor, "ROW_GROUP", 2048)
    for n in range(4):
        for k in range(1100):
            maker.program(run_id=f"r{n}", start=k, end=k + 1)
    maker.write()
    run("compact", "--lake", str(maker.path))
    [name] = json.loads(manifest(maker.path, "program").read_text())["parquet"]
    path = manifest(maker.path, "program").parent / name
    groups = duckdb.sql(
        f"SELECT stats_min_value, stats_max_value FROM parquet_metadata('{path}') WHERE path_in_schema = 'run_id'"
    ).fetchall()
    assert len(groups) >= 4
    assert sum(low <= "r2" <= high for low, high in groups) < len(groups)


def test_avro_files_that_come_later_are_read_beside(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(maker)
    run("compact", "--lake", str(maker.path))
    old = maker.written["program"][3]
    late = maker.program(run_id="late", host_id="host1", start=50, end=60)
    maker.repeat(old)  # delivered once more
    maker.write()
    expected = records(maker.path)
    assert sum('"late"' in r for r in expected["program"]) == 2
    assert len(expected["program"]) == 122 + 2
    found = answer(capsys, "compact", "--lake", str(maker.path))
    [again] = [d for d in found["days"] if d["state"] == "compacted"]
    assert (again["topic"], again["records"], again["new_files"]) == ("sluice.program", 122, 2)
    assert again["duplicates"] == 1
    assert records(maker.path) == expected
    assert late["run_id"] == "late"
    assert json.loads(manifest(maker.path, "program").read_text())["generation"] == 2


def test_a_record_in_two_days_files_counts_once(tmp_path: pathlib.Path) -> None:
    """Delivered again after midnight, a record of the last hour lands in the next day's file."""
    maker = LakeMaker(tmp_path / "lake", t0=MIDNIGHT + DAY_US)
    first = maker.program(start=-100, phase="START")
    maker.write()
    maker.program(start=5, phase="START")
    maker.repeat(first)
    paths = maker.write()
    assert sorted(p.parts[-3] for p in paths) == [f"date={DAY}", f"date={NEXT}"]
    [again] = [p for p in paths if DAY in str(p)]
    shutil.move(again, next(p for p in paths if NEXT in str(p)).parent / again.name)
    expected = records(maker.path)
    assert len(expected["program"]) == 2
    run("compact", "--lake", str(maker.path), "--until", DAY)
    assert records(maker.path) == expected
    run("compact", "--lake", str(maker.path), "--remove-avro")
    assert records(maker.path) == expected
    assert not list(maker.path.glob("sluice.program/**/*.avro"))


def test_records_beyond_a_users_share_are_between_the_others(tmp_path: pathlib.Path) -> None:
    """A file of them has numbers between those of the file beside it."""
    maker = LakeMaker(tmp_path / "lake", t0=MIDNIGHT)
    for seq in (0, 2, 5):
        maker.program(start=seq, phase="START", seq=seq)
    maker.write()
    for seq in (1, 3, 4):
        maker.program(start=seq, phase="START", seq=seq)
    [path] = [p for p in maker.write() if "-1." in p.name]
    path.rename(path.with_name(path.name.replace(".avro", ".over.avro")))
    expected = records(maker.path)
    assert len(expected["program"]) == 6
    run("compact", "--lake", str(maker.path), "--remove-avro")
    assert records(maker.path) == expected
    assert not list(maker.path.glob("sluice.program/**/*.avro"))


def test_machines_with_one_agent_id_keep_all_their_records(maker: LakeMaker) -> None:
    agent = maker.agent_of(maker.host_id)
    for host in (maker.host_id, "clone"):
        first = maker.program(end=1, host_id=host, agent_id=agent)
        maker.repeat(first)
    maker.write()
    expected = records(maker.path)
    assert len(expected["program"]) == 4
    run("compact", "--lake", str(maker.path), "--remove-avro")
    assert records(maker.path) == expected
    maker.program(start=2, end=3, host_id="clone", agent_id=agent)  # into a day that is compacted
    maker.write()
    expected = records(maker.path)
    assert len(expected["program"]) == 6
    run("compact", "--lake", str(maker.path), "--remove-avro")
    assert records(maker.path) == expected
    assert not list(maker.path.glob("sluice.program/**/*.avro"))


def test_a_day_that_is_being_written_waits(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    maker.program(end=1)
    maker.write()
    maker.program(end=2)
    [path] = maker.write(left_open=True)
    [row] = answer(capsys, "compact", "--lake", str(maker.path))["days"]
    assert row["state"].startswith("waits:") and str(path) in row["state"]
    assert not manifest(maker.path, "program").exists()


def test_today_is_not_closed(maker: LakeMaker, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    fill(maker)
    monkeypatch.setattr(files, "today", lambda: NEXT)
    run("compact", "--lake", str(maker.path))
    assert manifest(maker.path, "program").exists()
    assert not manifest(maker.path, "program", NEXT).exists()
    assert run("compact", "--lake", str(maker.path), "--until", NEXT) == 2
    assert "this day is not over yet" in capsys.readouterr().err
    assert run("compact", "--lake", str(maker.path), "--until", "yesterday") == 2


def test_dry_run_writes_nothing(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(maker)
    days = answer(capsys, "compact", "--lake", str(maker.path), "--dry-run", "--remove-avro")["days"]
    assert {d["state"] for d in days} == {"would be compacted"}
    assert not (maker.path / "compact").exists()
    assert all(path.exists() for path in maker.files)


def test_topic_alone(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(maker)
    days = answer(capsys, "compact", "--lake", str(maker.path), "--topic", "host")["days"]
    assert {d["topic"] for d in days} == {"sluice.host"}
    assert run("compact", "--lake", str(maker.path), "--topic", "sluice.run") == 0


def test_avro_is_removed_once_verified(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(maker)
    expected = records(maker.path)
    days = answer(capsys, "compact", "--lake", str(maker.path), "--remove-avro")["days"]
    assert sum(d["removed_files"] for d in days) == len(maker.files)
    assert not any(path.exists() for path in maker.files)
    assert records(maker.path) == expected
    maker.program(run_id="late", start=3, end=4)  # and the day is not closed to late records
    maker.write()
    run("compact", "--lake", str(maker.path), "--remove-avro")
    assert len(records(maker.path)["program"]) == 124
    assert not list(maker.path.glob("sluice.program/**/*.avro"))


def test_avro_stays_where_parquet_has_something_else(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(maker)
    run("compact", "--lake", str(maker.path))
    [name] = json.loads(manifest(maker.path, "program").read_text())["parquet"]
    path = manifest(maker.path, "program").parent / name
    changed = path.with_suffix(".changed")
    con = duckdb.connect()
    con.execute(
        f"COPY (SELECT * REPLACE (if(seq = 7 AND host_id = 'host0', 1, cpu_user_ns) AS cpu_user_ns) FROM '{path}') "
        f"TO '{changed}' (FORMAT parquet)"
    )
    os.replace(changed, path)
    capsys.readouterr()
    assert run("compact", "--lake", str(maker.path), "--topic", "program", "--remove-avro") == 2
    assert "differs from its Avro files" in capsys.readouterr().err
    assert all(p.exists() for p in maker.files)


def crash(step: int, lake: pathlib.Path, room: pathlib.Path) -> int:
    """Compacts in a process that is killed before the call of this number that changes the disk: how it ended."""
    child = os.fork()
    if child == 0:
        left = step

        def crashing(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **keywords: Any) -> Any:
                nonlocal left
                if any("sluice" in str(a) or isinstance(a, int) for a in args):
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **keywords)

            return call

        status = 99
        try:
            tempfile.tempdir = str(room)
            for name in ("replace", "unlink", "fsync", "rmdir", "makedirs"):
                setattr(os, name, crashing(getattr(os, name)))
            status = run("compact", "--lake", str(lake), "--topic", "program", "--remove-avro")
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_crash_at_any_step_loses_and_doubles_nothing(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    """Killed before each call that changes the disk, first to last; each time it is run again to the end too."""
    for n in range(2):
        maker.repeat(maker.program(run_id=f"r{n}", start=n, end=n + 5))
        maker.write()

    def programs(lake: pathlib.Path) -> list[str]:
        with DuckSession(str(lake)) as session:
            return sorted(json.dumps(r) for r in session.rows(session.table("program")))

    expected = programs(maker.path)
    assert len(expected) == 4
    killed = 0
    for step in range(1, 100):
        lake = tmp_path / f"crash{step}"
        shutil.copytree(maker.path, lake)
        status = crash(step, lake, tmp_path)
        assert programs(lake) == expected, f"after a crash at step {step}"
        if status == 0:
            break
        assert status == -signal.SIGKILL
        killed += 1
        assert run("compact", "--lake", str(lake), "--topic", "program", "--remove-avro") == 0
        assert programs(lake) == expected, f"run again after a crash at step {step}"
        assert not list(lake.glob("sluice.program/**/*.avro"))
        left = {p.name for p in (lake / "compact" / "sluice.program" / f"date={DAY}").iterdir()}
        assert left == {compact.MANIFEST, "1-0.parquet", "1.json"}
        shutil.rmtree(lake)
    assert killed >= 10  # three files written, synced and renamed, two folders synced, two Avro files removed
    assert status == 0


def test_earlier_generations_go_after_a_while(maker: LakeMaker) -> None:
    fill(maker)
    run("compact", "--lake", str(maker.path))
    maker.program(run_id="late", start=3, end=4)
    maker.write()
    run("compact", "--lake", str(maker.path))
    folder = manifest(maker.path, "program").parent
    assert {p.name for p in folder.glob("*.parquet")} == {"1-0.parquet", "2-0.parquet"}
    os.utime(folder / compact.MANIFEST, (1, 1))
    run("compact", "--lake", str(maker.path))
    assert {p.name for p in folder.iterdir()} == {compact.MANIFEST, "2-0.parquet", "2.json"}


def test_one_at_a_time(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(maker)
    with compactor.locked(str(maker.path)):
        assert run("compact", "--lake", str(maker.path)) == 2
    assert "another sluice-lake is working on it" in capsys.readouterr().err
    assert run("compact", "--lake", str(maker.path)) == 0


def test_a_damaged_avro_file_stops_its_day(maker: LakeMaker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(maker)
    path = next(p for p in maker.files if "sluice.program" in str(p))
    path.write_bytes(path.read_bytes()[:-20])
    assert run("compact", "--lake", str(maker.path)) == 2
    assert f"sluice-lake: {path}: is damaged" in capsys.readouterr().err
    assert path.exists()
    assert not manifest(maker.path, "program").exists()


def test_a_damaged_manifest_is_named(maker: LakeMaker) -> None:
    fill(maker)
    run("compact", "--lake", str(maker.path))
    for text in ("{", "[]", '{"parquet": []}'):
        manifest(maker.path, "program").write_text(text)
        with pytest.raises(UserError, match=r"manifest\.json"):
            records(maker.path)


def test_scope_of_compacted_days(maker: LakeMaker) -> None:
    fill(maker)
    scopes = [Scope(run_ids=("r1",)), Scope(hosts=("host1",)), Scope(since_us=T0 + 1_000_000_000), Scope(until_us=T0)]

    def look() -> list[list[str]]:
        with DuckSession(str(maker.path)) as session:
            return [sorted(json.dumps(r) for r in session.rows(session.table("program", s))) for s in scopes]

    before = look()
    run("compact", "--lake", str(maker.path))
    assert look() == before
    assert [len(found) for found in before[:2]] == [40, 40]


def test_parts_for_other_engines(maker: LakeMaker) -> None:
    fill(maker)
    run("compact", "--lake", str(maker.path))
    covered, parquet = compact.parts_of(str(maker.path), "program", ALL)
    assert covered == {os.path.relpath(p, maker.path) for p in maker.files if "sluice.program" in str(p)}
    assert [p.rpartition("sluice.program/")[2] for p in parquet] == [f"date={d}/1-0.parquet" for d in (DAY, NEXT)]
    assert files.avro_files(str(maker.path), "program", ALL, covered) == []


def test_sluice_cat_passes_over_the_compacted_days(maker: LakeMaker) -> None:
    fill(maker)
    before = sluice_binary.cat(maker.path, "program")
    run("compact", "--lake", str(maker.path))
    assert sluice_binary.cat(maker.path, "program") == before
    assert len(before) == len(maker.written["program"])
