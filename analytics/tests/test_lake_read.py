# SPDX-License-Identifier: Apache-2.0
"""Reading a lake of files with DuckDB: what is there is read once, what is wrong is named."""

from __future__ import annotations

import fcntl
import os
import pathlib
import random
import shutil
import struct
import tempfile
from collections.abc import Iterator

import pytest
from lakes import DAY_US, T0, LakeMaker, S

from sluice_analytics.errors import UserError
from sluice_analytics.lake import files
from sluice_analytics.lake.columns import COLUMNS
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.session import ALL, Row, Scope
from sluice_analytics.lake.statements import columns_of


def rows_of(lake: LakeMaker, topic: str, scope: Scope = ALL) -> list[Row]:
    with DuckSession(str(lake.path)) as session:
        return session.rows(session.table(topic, scope).order_by("agent_id", "seq"))


def error_of(lake: pathlib.Path | str, topic: str = "program") -> UserError:
    with pytest.raises(UserError) as caught, DuckSession(str(lake)) as session:
        session.rows(session.table(topic))
    return caught.value


def test_values_are_those_that_were_written(maker: LakeMaker) -> None:
    maker.run(run_id="r1", end=60, bound="COMPUTE", share_cpu=0.75, requested_cpus=2.0)
    maker.program(run_id="r1", start=1.5, end=31, argv=["a b", "ü", ""], cpu_user_ns=7 * S, net_rx_bytes=None)
    maker.host(cpus=8, psi_cpu_some=0.5)
    maker.agent(lost=[{"place": "ring", "reason": "full", "count": 3}])
    maker.finding("FAILED", severity="ERROR")
    maker.write()
    run = rows_of(maker, "run")[-1]
    assert (run["bound"], run["share_cpu"], run["share_idle"], run["requested_cpus"]) == ("COMPUTE", 0.75, None, 2.0)
    start, end = rows_of(maker, "program")
    assert start["phase"] == "START" and start["cpu_user_ns"] is None and start["end_time"] is None
    assert end["time"] == end["end_time"] == T0 + 31_000_000
    assert end["program_start_time"] == T0 + 1_500_000
    assert (end["argv"], end["cpu_user_ns"], end["net_rx_bytes"]) == (["a b", "ü", ""], 7 * S, None)
    host = rows_of(maker, "host")[0]
    assert (host["cpus"], host["cpu_capacity_ns"], host["psi_cpu_some"]) == (8, 80 * S, 0.5)
    assert rows_of(maker, "agent")[0]["lost"] == [{"place": "ring", "reason": "full", "count": 3}]
    assert rows_of(maker, "finding")[0]["severity"] == "ERROR"


def test_a_topic_without_records_is_an_empty_table(maker: LakeMaker) -> None:
    maker.run(end=1)
    maker.write()
    with DuckSession(str(maker.path)) as session:
        for topic, columns in COLUMNS.items():
            table = session.table(topic)
            assert list(columns_of(table)) == [c.name for c in columns]
            assert len(session.rows(table)) == (2 if topic == "run" else 0)
        assert session.rows(session.table("usage").aggregate(n=lambda t: t.count())) == [{"n": 0}]


def test_what_is_no_lake_is_said(tmp_path: pathlib.Path) -> None:
    assert "no such folder" in error_of(tmp_path / "none").message
    assert "has no sluice topics" in error_of(tmp_path).message
    file = tmp_path / "file"
    file.write_text("x")
    assert "is not a folder" in error_of(file).message


def test_second_deliveries_count_once(maker: LakeMaker) -> None:
    first = maker.program(start=0, end=1, cpu_user_ns=10)
    second = maker.program(start=1, end=2, cpu_user_ns=20)
    maker.repeat(first)
    maker.write()
    maker.repeat(second, first)
    maker.program(start=2, end=3, cpu_user_ns=40)
    maker.write()
    with DuckSession(str(maker.path)) as session:
        table = session.table("program")
        total = session.rows(table.aggregate(n=table.count(), cpu=table.cpu_user_ns.sum()))
    assert total == [{"n": 6, "cpu": 70}]


def test_equal_seq_of_other_agents_and_topics_are_no_duplicates(maker: LakeMaker) -> None:
    maker.program(end=1)
    maker.program(end=1, host_id="other")
    maker.usage(end=1)
    maker.write()
    assert len(rows_of(maker, "program")) == 4
    assert len(rows_of(maker, "usage")) == 1


def test_machines_with_one_agent_id_keep_all_their_records(maker: LakeMaker) -> None:
    """A machine that was cloned with its agent's state: other records under the same agent_id and seq."""
    agent = maker.agent_of(maker.host_id)
    first = maker.program(end=1, cpu_user_ns=10)
    maker.program(end=1, cpu_user_ns=20, host_id="clone", agent_id=agent)
    maker.write()
    maker.repeat(first)
    maker.write()
    rows = rows_of(maker, "program")
    assert sorted((r["host_id"] == "clone", r["seq"], r["cpu_user_ns"]) for r in rows if r["phase"] == "END") == [
        (False, 1, 10),
        (True, 1, 20),
    ]
    assert len(rows) == 4


def test_fields_that_an_older_agent_lacks_are_null(maker: LakeMaker) -> None:
    maker.program(end=1, container_name="old", cpu_user_ns=5)
    maker.write(without=("container_name", "usage.cpu_system_ns", "usage.tcp_rx_bytes"), schema_version=1)
    maker.program(end=2, container_name="new", cpu_user_ns=5)
    maker.write()
    old, new = (r for r in rows_of(maker, "program") if r["phase"] == "END")
    assert (old["container_name"], old["cpu_user_ns"], old["cpu_system_ns"]) == (None, 5, None)
    assert (new["container_name"], new["cpu_user_ns"], new["cpu_system_ns"]) == ("new", 5, 0)


def test_a_schema_from_the_future_is_read_and_reported(maker: LakeMaker) -> None:
    maker.program(end=1)
    [path] = maker.write(extra={"quantum_ns": (["null", "long"], 7)}, schema_version=99)
    with DuckSession(str(maker.path)) as session:
        assert len(session.rows(session.table("program"))) == 2
        session.table("program")
        [warning] = session.warnings
    assert str(path) in warning and "schema_version 99" in warning


def test_a_lake_without_anything_odd_has_no_warnings(maker: LakeMaker) -> None:
    maker.program(end=1)
    maker.write()
    with DuckSession(str(maker.path)) as session:
        session.rows(session.table("program"))
        assert session.warnings == []


@pytest.fixture(params=["null", "deflate"])
def many(request: pytest.FixtureRequest, maker: LakeMaker) -> Iterator[tuple[LakeMaker, pathlib.Path]]:
    """A lake with a file of several blocks, and its path.

    What is in it is the same each time: deflate has no checksum, and now and then damage makes other valid data of it.
    """
    chance = random.Random(1)
    for n in range(400):
        maker.program(start=n, end=n + 1, argv=[chance.randbytes(100).hex()])
    [path] = maker.write(codec=request.param)
    yield maker, path


def test_every_truncation_is_found(many: tuple[LakeMaker, pathlib.Path]) -> None:
    """DuckDB's reader takes the blocks that are whole and does not report the others."""
    maker, path = many
    whole = path.read_bytes()
    for size in (0, 3, 1000, 20_000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert error_of(maker.path).message.startswith(str(path)), size


def test_damaged_blocks_are_found(many: tuple[LakeMaker, pathlib.Path]) -> None:
    maker, path = many
    whole = path.read_bytes()
    blocks = files.blocks_of(str(path), files.Headers())
    assert blocks.records == 800 and blocks.broken == ""
    damages = {
        "sync": blocks.end - 5,
        "length": blocks.header.size + 1,
        "records": blocks.end - 200,
    }
    for what, at in damages.items():
        path.write_bytes(whole[:at] + b"\xff\xff\xff\xff" + whole[at + 4 :])
        error = error_of(maker.path)
        assert error.message.startswith(str(path)), what
        assert "sluice cat" in error.hint


def test_what_is_no_avro_file_is_named(maker: LakeMaker) -> None:
    maker.program(end=1)
    [path] = maker.write()
    path.write_text("hello, this is no Avro file at all")
    assert error_of(maker.path).message == f"{path}: is not an Avro file"


def test_a_file_of_another_topic_is_named(maker: LakeMaker) -> None:
    maker.program(end=1)
    maker.host()
    program, host = maker.write()
    shutil.copy(host, program.parent / "stray-0.avro")
    assert "has Host records" in error_of(maker.path).message


def test_other_things_in_the_folders_are_passed_over(maker: LakeMaker) -> None:
    maker.program(end=1)
    [path] = maker.write()
    (path.parent / "README").write_text("x")
    (path.parent / "sub.avro").mkdir()
    (path.parents[1] / "README").write_text("x")
    (path.parents[2] / "README").write_text("x")
    (path.parents[2] / "date=today").mkdir()
    assert len(rows_of(maker, "program")) == 2


def test_a_folder_that_cannot_be_read_is_named() -> None:
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        maker = LakeMaker(os.path.join(root, "lake"))
        maker.program(end=1)
        [path] = maker.write()
        os.chmod(path.parent, 0o700 if os.geteuid() == 0 else 0)
        with DuckSession(str(maker.path)) as session:
            is_root = os.geteuid() == 0
            if is_root:
                os.seteuid(65534)
            try:
                with pytest.raises(UserError) as caught:
                    session.table("program")
            finally:
                if is_root:
                    os.seteuid(0)
                os.chmod(path.parent, 0o755)
        assert caught.value.message == f"{path.parent}: Permission denied"


def test_a_file_that_a_dead_writer_left_open_is_read_as_far_as_it_goes(maker: LakeMaker) -> None:
    for n in range(400):
        maker.program(start=n, end=n + 1)
    [path] = maker.write(left_open=True)
    whole = path.read_bytes()
    end = files.blocks_of(str(path), files.Headers()).end
    assert end == len(whole)
    path.write_bytes(whole[:-30])
    with DuckSession(str(maker.path)) as session:
        count = len(session.rows(session.table("program")))
        [warning] = session.warnings
    assert 0 < count < 800
    assert warning.startswith(f"{path}: was left open by a writer that crashed")


def lock(path: pathlib.Path) -> int:
    """Locks a file as the agent locks those that it writes (src/lake/folders.c)."""
    fd = os.open(path, os.O_RDWR)
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return fd


def test_a_file_that_is_being_written_is_followed(maker: LakeMaker) -> None:
    for n in range(300):
        maker.program(start=n, end=n + 1)
    [path] = maker.write(left_open=True)
    whole = path.read_bytes()
    cut = len(whole) // 2
    path.write_bytes(whole[:cut])
    fd = lock(path)
    try:
        with DuckSession(str(maker.path)) as session:
            before = len(session.rows(session.table("program")))
            path.write_bytes(whole)
            after = len(session.rows(session.table("program")))
            os.rename(path, path.parent / path.name.removeprefix(".").removesuffix(".part"))
            closed = len(session.rows(session.table("program")))
            assert session.warnings == []
    finally:
        os.close(fd)
    assert 0 < before < 600
    assert after == closed == 600


def test_open_files_outside_one_scope_are_there_in_the_next(maker: LakeMaker) -> None:
    for host in ("h1", "h2"):
        maker.program(end=1, host_id=host)
    one, two = maker.write(left_open=True)
    with DuckSession(str(maker.path)) as session:

        def count(scope: Scope = ALL) -> int:
            return len(session.rows(session.table("program", scope)))

        assert count() == 4
        assert count(Scope(hosts=("h1",))) == 2
        assert count() == 4
        os.rename(one, one.parent / one.name.removeprefix(".").removesuffix(".part"))
        assert count() == 4
        assert count(Scope(hosts=("h2",))) == 2
        os.rename(two, two.parent / two.name.removeprefix(".").removesuffix(".part"))
        assert count() == 4


def test_small_files_are_read_together(maker: LakeMaker) -> None:
    for n in range(120):
        maker.program(start=n, end=n + 1, cpu_user_ns=n, host_id=f"host{n % 7}")
        if n == 60:
            maker.write(without=("k8s_pod_uid",))
        else:
            maker.write(codec="deflate" if n % 2 else "null")
    with DuckSession(str(maker.path)) as session:
        table = session.table("program")
        total = session.rows(
            table.aggregate(n=table.count(), cpu=table.cpu_user_ns.sum(), hosts=table.host_id.nunique())
        )
    assert total == [{"n": 240, "cpu": 119 * 120 // 2, "hosts": 7}]


def test_scope(maker: LakeMaker) -> None:
    maker.program(run_id="r1", start=0, end=10)
    maker.program(run_id="r2", start=5, end=20, host_id="h2")
    maker.program(start=DAY_US / 1e6, end=DAY_US / 1e6 + 5)
    maker.write()

    def ends(**scope: object) -> list[int]:
        found = rows_of(maker, "program", Scope(**scope))  # type: ignore[arg-type]
        return sorted(r["time"] - T0 for r in found)

    day = DAY_US
    assert ends() == [1_000_000, 6_000_000, 10_000_000, 20_000_000, day + 1_000_000, day + 5_000_000]
    assert ends(run_ids=("r1",)) == [1_000_000, 10_000_000]
    assert ends(run_ids=("r1", "r2")) == [1_000_000, 6_000_000, 10_000_000, 20_000_000]
    assert ends(run_ids=()) == []
    assert ends(hosts=("h2",)) == [6_000_000, 20_000_000]
    assert ends(since_us=T0 + 10_000_000) == [10_000_000, 20_000_000, day + 1_000_000, day + 5_000_000]
    assert ends(until_us=T0 + 10_000_000) == [1_000_000, 6_000_000]
    assert ends(since_us=T0 + day) == [day + 1_000_000, day + 5_000_000]
    assert ends(since_us=T0 + day, until_us=T0 + day + 5_000_000) == [day + 1_000_000]


def test_a_late_record_in_the_next_days_file_is_found(tmp_path: pathlib.Path) -> None:
    """The output to files leaves a record that comes up to an hour late in the newer day's file."""
    midnight = T0 - T0 % DAY_US + DAY_US
    maker = LakeMaker(tmp_path / "lake", t0=midnight)
    maker.program(start=5, phase="START")
    maker.program(start=-3000, phase="START")
    old, new = sorted(maker.write())
    assert old.parts[-3] < new.parts[-3]
    shutil.move(old, new.parent / "late-1.avro")
    old.parent.rmdir()
    assert len(rows_of(maker, "program", Scope(until_us=midnight))) == 1


def test_files_are_read_once_a_session(maker: LakeMaker) -> None:
    maker.program(end=1)
    [path] = maker.write()
    with DuckSession(str(maker.path)) as session:
        first = session.rows(session.table("program"))
        data = bytearray(path.read_bytes())
        data[-40:-30] = bytes(10)
        path.write_bytes(data)  # a second look would find the damage
        assert session.rows(session.table("program", Scope(hosts=(maker.host_id,)))) == first


def test_a_file_that_goes_while_the_session_is_open_is_no_error(maker: LakeMaker) -> None:
    maker.program(end=1)
    maker.write()
    maker.program(end=2)
    [path] = maker.write()
    with DuckSession(str(maker.path)) as session:
        table = session.table("program")
        path.unlink()
        assert len(session.rows(table)) == 4


def test_temporary_files_go_with_the_session(maker: LakeMaker) -> None:
    maker.program(end=1)
    maker.write()
    session = DuckSession(str(maker.path))
    session.rows(session.table("program"))
    folder = session.stage.folder
    assert os.listdir(folder)
    session.close()
    assert not os.path.exists(folder)


def test_memory_limit_is_checked(maker: LakeMaker) -> None:
    maker.program(end=1)
    maker.write()
    with pytest.raises(UserError, match=r"--memory-limit .lots. is not a size"):
        DuckSession(str(maker.path), "lots")
    DuckSession(str(maker.path), "200MiB").close()


def test_names_with_quotes(tmp_path: pathlib.Path) -> None:
    maker = LakeMaker(tmp_path / 'it\'s a "lake"', host_id="h'1")
    maker.program(run_id="r'1", end=1)
    maker.write()
    assert len(rows_of(maker, "program", Scope(run_ids=("r'1",), hosts=("h'1",)))) == 2


def test_kept_rows_are_those_of_the_expression_as_of_then(maker: LakeMaker) -> None:
    huge = 2**60 + 1  # a double would lose the 1
    maker.program(start=0, end=1, cpu_user_ns=huge, argv=["a", "ü"], tool=None)
    maker.program(start=2, end=3, cpu_user_ns=huge, argv=None, tool="t")
    maker.agent(lost=[{"place": "ring", "reason": "full", "count": 3}])
    maker.write()
    with DuckSession(str(maker.path)) as session:
        t = session.table("program")
        kept = session.kept(t.filter(t.phase == "END"))
        assert columns_of(kept) == columns_of(t)
        rows = session.rows(kept.order_by("seq"))
        assert rows == session.rows(t.filter(t.phase == "END").order_by("seq"))
        assert [(r["cpu_user_ns"], r["argv"], r["tool"]) for r in rows] == [(huge, ["a", "ü"], None), (huge, None, "t")]
        total = session.kept(t.aggregate(cpu_ns=t.cpu_user_ns.sum()))
        assert session.rows(total) == [{"cpu_ns": 2 * huge}]
        agents = session.table("agent")
        assert session.rows(session.kept(agents.select("lost"))) == session.rows(agents.select("lost"))
        maker.program(start=4, end=5, cpu_user_ns=1)
        maker.write()
        assert session.rows(total) == [{"cpu_ns": 2 * huge}]
        t = session.table("program")
        assert session.rows(t.aggregate(cpu_ns=t.cpu_user_ns.sum())) == [{"cpu_ns": 2 * huge + 1}]
