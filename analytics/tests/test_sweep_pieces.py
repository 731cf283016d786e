# SPDX-License-Identifier: Apache-2.0
"""Pieces of programs cut at windows, at the edges that a sweep's period has: programs older than it, found anew."""

from __future__ import annotations

import ibis.expr.types as ir
import pytest
from lakes import LakeMaker, S

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.session import ALL, Scope
from sluice_analytics.model.activity import by_window, pieces
from sluice_analytics.model.records import ended_programs, programs
from sluice_analytics.sweep.period import Period
from sluice_analytics.sweep.view import without_agents


def cpu(lake: LakeMaker, scope: Scope = ALL) -> list[tuple[int, int, int]]:
    """(start, end, CPU seconds) of all pieces, in seconds after t0."""
    lake.write()
    with DuckSession(str(lake.path)) as session:
        rows = session.rows(pieces(session, scope))
    return sorted(
        ((r["start_us"] - lake.t0) // 1_000_000, (r["end_us"] - lake.t0) // 1_000_000, r["cpu_user_ns"] // S)
        for r in rows
    )


def test_a_program_that_began_before_the_scope_has_its_intervals_alone(maker: LakeMaker) -> None:
    p = maker.program(start=0, end=35, cpu_user_ns=35 * S)
    for at in (0, 10, 20):
        maker.usage(p, start=at, end=at + 10, cpu_user_ns=10 * S)
    assert cpu(maker) == [(0, 10, 10), (10, 20, 10), (20, 30, 10), (30, 35, 5)]
    assert cpu(maker, Scope(since_us=maker.us(15))) == [(10, 20, 10), (20, 30, 10)]
    assert cpu(maker, Scope(since_us=maker.us(0))) == cpu(maker)


def test_a_program_found_anew_after_a_gap_counts_from_then(maker: LakeMaker) -> None:
    p = maker.program(start=0, phase="START")
    maker.usage(p, start=0, end=10, cpu_user_ns=10 * S)
    same = {"program_id": p["program_id"], "pid": p["pid"], "observed_time": maker.us(100)}
    maker.program(start=0, phase="START", time=maker.us(100), **same)
    maker.usage(p, start=100, end=110, cpu_user_ns=3 * S)
    maker.program(start=0, end=115, phase="END", cpu_user_ns=5 * S, **same)  # since it was found
    assert cpu(maker) == [(0, 10, 10), (100, 110, 3), (110, 115, 2)]


def test_windows_are_cut_to_the_period(maker: LakeMaker) -> None:
    maker.program(start=5, end=25, cpu_user_ns=20 * S)
    maker.write()
    with DuckSession(str(maker.path)) as session:
        cut = by_window(pieces(session), 10_000_000, maker.us(8), maker.us(22))
        rows = session.rows(cut.select("window", "from_us", "to_us", "cpu_user_ns").order_by("window"))
    assert [(r["window"] - maker.t0, r["from_us"] - maker.t0, r["to_us"] - maker.t0) for r in rows] == [
        (0, 8_000_000, 10_000_000),
        (10_000_000, 10_000_000, 20_000_000),
        (20_000_000, 20_000_000, 22_000_000),
    ]
    assert [r["cpu_user_ns"] / S for r in rows] == [pytest.approx(2), pytest.approx(10), pytest.approx(2)]


def phases(session: DuckSession, table: ir.Table) -> dict[str, tuple[str, int | None]]:
    rows = session.rows(table)
    assert len(rows) == len({r["program_id"] for r in rows})
    return {r["program_id"]: (r["phase"], r["cpu_user_ns"]) for r in rows}


def test_of_each_program_the_record_that_knows_most(maker: LakeMaker) -> None:
    ended = maker.program(run_id="r", start=0, end=5, cpu_user_ns=1 * S)["program_id"]
    alive = maker.program(run_id="r", start=1, phase="START")["program_id"]
    again = maker.program(run_id="r", start=1, phase="START", program_id=alive, time=maker.us(9))["program_id"]
    twice = maker.program(run_id="r", start=2, end=6, cpu_user_ns=2 * S)["program_id"]
    maker.write()
    assert again == alive
    expected: dict[str, tuple[str, int | None]] = {
        ended: ("END", 1 * S), alive: ("START", None), twice: ("END", 2 * S),
    }  # fmt: skip
    with DuckSession(str(maker.path)) as session:
        assert phases(session, programs(session)) == expected
        assert phases(session, programs(session, Scope(since_us=maker.us(0)))) == expected
        of = session.table("program").filter(lambda t: t.program_id == alive).select("program_id")
        assert phases(session, programs(session, of=of)) == {alive: ("START", None)}
    # A second END: the later one counts, with all of a lake and with one run alike.
    maker.program(run_id="r", start=2, end=6, phase="END", program_id=twice, time=maker.us(20), cpu_user_ns=3 * S)
    maker.write()
    expected[twice] = ("END", 3 * S)
    with DuckSession(str(maker.path)) as session:
        assert phases(session, programs(session)) == expected
        assert phases(session, programs(session, Scope(run_ids=("r",)))) == expected
        del expected[alive]
        assert phases(session, ended_programs(session)) == expected
        assert phases(session, ended_programs(session, Scope(run_ids=("r",)))) == expected


def test_a_sweep_asks_the_same_table_each_time(maker: LakeMaker) -> None:
    maker.program(start=0, end=5)
    maker.host()
    maker.write()
    with DuckSession(str(maker.path)) as session:
        view, _ = without_agents(session, Period(maker.us(0), maker.us(60)))
        kept = view.kept(view.table("program").select("program_id"))
        assert kept is view.kept(view.table("program").select("program_id"))
        assert kept is not view.kept(view.table("program").select("seq"))
        maker.program(start=6, end=7)
        maker.write()
        assert len(view.rows(view.table("program"))) == 2
        assert len(session.rows(session.table("program"))) == 4
