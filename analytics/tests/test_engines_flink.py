# SPDX-License-Identifier: Apache-2.0
"""Flink says what DuckDB says, of the same records, or that it cannot say it."""

from __future__ import annotations

import pathlib

import engines

CANNOT = {"sweep.observed.silences": "LEFT SEMI", "sweep.losses.lost_events": "alias list has 1 columns"}
"""Analyses -> what Flink says of what it lacks: semi joins; rows of an array as one column"""


def test_expressions_are_equal_or_refused(tmp_path: pathlib.Path) -> None:
    lake = tmp_path / "a lake, [odd] {name}"
    case = engines.made_lake(lake)
    found = engines.compare("flink", lake, case, [*engines.TABLES, *engines.EXPRESSIONS])
    assert found.keys() == CANNOT.keys(), found
    for name, lacks in CANNOT.items():
        assert "--engine flink cannot run this analysis" in found[name]
        assert lacks in found[name]
        assert "--engine duckdb" in found[name]
