# SPDX-License-Identifier: Apache-2.0
"""bench/generate.py: what it makes adds up as what it was made of did, and is the same each time."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest
from lakes import SCHEMAS, LakeMaker, S

from sluice_analytics.errors import UserError
from sluice_analytics.lake.columns import SUMS
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.info import topic_info
from sluice_analytics.lake.session import ALL
from sluice_analytics.model.activity import pieces

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import generate


@pytest.fixture
def template(maker: LakeMaker) -> str:
    """Two runs of ten programs; 7 of each have reported 3 s of CPU before their end."""
    for n in range(2):
        total = 0
        for k in range(10):
            cpu = (k + 1) * S
            p = maker.program(run_id=f"r{n}", task_id=f"t{k % 3}", start=k, end=k + 12, cpu_user_ns=cpu, read_bytes=k)
            total += cpu
            if k >= 3:
                maker.usage(p, start=k, end=k + 10, cpu_user_ns=3 * S)
        for k in range(3):
            maker.task(run_id=f"r{n}", task_id=f"t{k}", start=k, end=k + 20, programs=4 if k == 0 else 3)
        maker.run(run_id=f"r{n}", start=0, end=30, programs=10, cpu_user_ns=total, cpu_system_ns=0, read_bytes=45)
    maker.write()
    return str(maker.path)


def make(template: str, out: pathlib.Path, *more: str) -> str:
    argv = ["--template", template, "--out", str(out), "--programs", "4000", "--days", "3", "--last-day", "2026-11-20"]
    assert generate.main([*argv, *more]) == 0
    return str(out)


def rows(lake: str, sql: str) -> list[Any]:
    with DuckSession(lake) as session:
        topics = {t: f"({session.select(t, ALL)})" for t in ("program", "usage", "task", "run", "host")}
        found: list[Any] = session.connection.execute(sql.format(**topics)).fetchall()
        return found


def test_totals_are_consistent(template: str, tmp_path: pathlib.Path) -> None:
    lake = make(template, tmp_path / "made")
    [(programs, runs)] = rows(lake, "SELECT count(*), count(DISTINCT run_id) FROM {program}")
    assert 2000 < programs < 8000 and runs > 10
    # Programs add up to their runs, in count and amounts.
    off = rows(
        lake,
        "SELECT r.run_id FROM (SELECT * FROM {run} WHERE phase = 'END') r JOIN (SELECT run_id, count(*) AS n, "
        "sum(cpu_user_ns) AS cpu, sum(read_bytes) AS b FROM {program} WHERE phase = 'END' GROUP BY 1) p USING (run_id) "
        "WHERE r.programs <> p.n OR r.cpu_user_ns <> p.cpu OR r.read_bytes <> p.b",
    )
    assert off == []
    # Every program lies within its run, and within one day.
    outside = rows(
        lake,
        "SELECT 1 FROM {program} p JOIN (SELECT * FROM {run} WHERE phase = 'END') r USING (run_id) WHERE p.time > "
        "r.end_time + 1 OR p.program_start_time < r.start_time - 1 OR p.time // 86400000000 <> r.time // 86400000000",
    )
    assert outside == []
    with DuckSession(lake) as session:
        piece = pieces(session)
        least = session.rows(piece.aggregate(**{name: piece[name].min() for name in SUMS}))[0]
        assert min(v for v in least.values() if v is not None) >= 0  # usage never exceeds END
        total = session.rows(piece.aggregate(cpu=piece.cpu_user_ns.sum()))[0]["cpu"]
        for topic in ("program", "usage", "task", "run", "host"):
            assert topic_info(session, topic).missing == 0
    assert total == rows(lake, "SELECT sum(cpu_user_ns) FROM {program}")[0][0]
    [(attributed,)] = rows(lake, "SELECT sum(cpu_attributed_ns) FROM {host}")
    assert attributed == pytest.approx(total, rel=0.001)


def test_the_same_seed_makes_the_same_lake(template: str, tmp_path: pathlib.Path) -> None:
    one, two = make(template, tmp_path / "one"), make(template, tmp_path / "two")
    other = make(template, tmp_path / "other", "--seed", "2")
    sql = "SELECT sum(hash(p)::HUGEINT) FROM {program} p"
    assert rows(one, sql) == rows(two, sql) != rows(other, sql)


@pytest.mark.nightly
def test_avro_has_the_same_records(template: str, tmp_path: pathlib.Path) -> None:
    parquet, avro = make(template, tmp_path / "one"), make(template, tmp_path / "two", "--avro", str(SCHEMAS))
    assert not (tmp_path / "two" / "compact").exists()
    for topic in ("program", "usage", "task", "run", "host"):
        sql = f"SELECT count(*), sum(hash(p)::HUGEINT) FROM {{{topic}}} p"
        assert rows(parquet, sql) == rows(avro, sql), topic


def test_a_lake_without_a_finished_run_is_no_template(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    maker.run(start=0)
    maker.write()
    with pytest.raises(UserError, match="no finished run"):
        make(str(maker.path), tmp_path / "made")
