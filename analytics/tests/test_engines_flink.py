# SPDX-License-Identifier: Apache-2.0
"""Flink says what DuckDB says, of the same records."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import engines
import pytest
import topics


@pytest.fixture(scope="module")
def flink() -> Iterator[engines.Engine]:
    with engines.Engine("flink") as engine:
        yield engine


def test_a_made_lake(flink: engines.Engine, tmp_path: pathlib.Path) -> None:
    lake = tmp_path / "a lake, [odd] {name}"
    case = engines.made_lake(lake)
    assert engines.compare(flink, lake, case, [*engines.TABLES, *engines.EXPRESSIONS, "tune"]) == {}


def test_a_recorded_lake(flink: engines.Engine, recorded: engines.Recorded) -> None:
    """Its compacted days, and the files beside them, have what the files had that DuckDB reads."""
    where = ("--lake", str(recorded.lake))
    assert engines.compare(flink, recorded.files, recorded.first, list(engines.REPORTS), where) == {}


def test_topics(flink: engines.Engine, recorded: engines.Recorded, stack: topics.Stack) -> None:
    topics.create(stack)
    topics.deliver(stack, recorded.files.rglob("*.avro"))
    where = ("--kafka", stack.brokers, "--registry", stack.registry_url)
    assert engines.compare(flink, recorded.files, recorded.second, ["tune"], where) == {}
