# SPDX-License-Identifier: Apache-2.0
"""Spark's answers are DuckDB's, on the same records."""

from __future__ import annotations

import pathlib

import engines
import pytest
import topics


@pytest.mark.nightly
def test_a_made_lake(spark: engines.Engine, tmp_path: pathlib.Path) -> None:
    lake = tmp_path / "a lake, [odd] {name}"
    case = engines.made_lake(lake)
    assert engines.compare(spark, lake, case, list(engines.ANALYSES)) == {}


def test_a_recorded_lake(spark: engines.Engine, recorded: engines.Recorded) -> None:
    """Its compacted days, and the files beside them, have what the files had that DuckDB reads."""
    where = ("--lake", str(recorded.lake))
    assert engines.compare(spark, recorded.files, recorded.first, list(engines.REPORTS), where) == {}


def test_topics(spark: engines.Engine, recorded: engines.Recorded, stack: topics.Stack) -> None:
    topics.create(stack)
    topics.deliver(stack, recorded.files.rglob("*.avro"))
    where = ("--kafka", stack.brokers, "--registry", stack.registry_url)
    assert engines.compare(spark, recorded.files, recorded.second, ["tune"], where) == {}
