# SPDX-License-Identifier: Apache-2.0
"""What all tests share."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from lakes import LakeMaker


@pytest.fixture
def maker(tmp_path: pathlib.Path) -> Iterator[LakeMaker]:
    """A new lake in a folder of its own; call write() before reading it."""
    yield LakeMaker(tmp_path / "lake")
