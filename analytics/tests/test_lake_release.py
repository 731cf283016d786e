# SPDX-License-Identifier: Apache-2.0
"""Lakes that older releases left (tests/fixtures/releases, made by dev/keep-release) are read, each record once."""

from __future__ import annotations

import json
import pathlib
import tarfile

import pytest

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.tune.find import all_runs

RELEASES = sorted((pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "releases").iterdir())


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_each_record_is_read_once(release: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with tarfile.open(release / "state.tar.xz") as archive:
        archive.extractall(tmp_path)
    expected = json.loads((release / "expected.json").read_text())["lake"]
    with DuckSession(str(tmp_path / "lake")) as session:
        for topic, records in expected.items():
            table = session.table(topic.removeprefix("sluice.")).order_by("agent_id", "seq")
            assert [int(text.split()[0]) for text in records] == [row["seq"] for row in session.rows(table)], topic
        assert len(all_runs(session)) == 1
