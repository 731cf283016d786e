# SPDX-License-Identifier: Apache-2.0
"""Pieces of programs cut at windows, at the edges that a sweep's period has: programs older than it, found anew."""

from __future__ import annotations

import pytest
from lakes import LakeMaker, S

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.session import ALL, Scope
from sluice_analytics.model.activity import by_window, pieces


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
