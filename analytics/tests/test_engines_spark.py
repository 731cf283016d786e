# SPDX-License-Identifier: Apache-2.0
"""Spark says what DuckDB says, of the same records."""

from __future__ import annotations

import pathlib

import engines
import pytest


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, engines.Case]:
    path = tmp_path_factory.mktemp("made") / "a lake, [odd] {name}"
    return path, engines.made_lake(path)


def test_all_analyses_are_equal(made: tuple[pathlib.Path, engines.Case]) -> None:
    assert engines.compare("spark", *made, list(engines.ANALYSES)) == {}
