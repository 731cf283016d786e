# SPDX-License-Identifier: Apache-2.0
"""What all tests share."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from lakes import LakeMaker


@pytest.fixture
def maker(tmp_path: pathlib.Path) -> Iterator[LakeMaker]:
    """A new lake in a folder of its own; call write() before reading it."""
    yield LakeMaker(tmp_path / "lake")


@pytest.fixture(scope="module")
def stack(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A broker and a schema registry (topics.Stack), of the kind that a module's STACK says."""
    import topics

    try:
        found = topics.Stack(**getattr(request.module, "STACK", {}))
    except topics.StackError as e:
        pytest.skip(str(e))
    with found:
        yield found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A lake that sluice recorded, and the same with its days compacted (engines.Recorded)."""
    import engines

    return engines.Recorded(tmp_path_factory.mktemp("recorded"))
