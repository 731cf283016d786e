# SPDX-License-Identifier: Apache-2.0
"""The price of a host by the facts that its agent's configuration has of it: sweep and tune on a recorded lake."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import command
import pytest
import sluice_binary
from agent import Agent

HOST = {
    "cloud": "aws",
    "region": "eu-central-1",
    "instance_type": "m6i.2xlarge",
    "lifecycle": "spot",
    "price_per_hour": "7",
}
HEADING = "provider,region,instance_type,lifecycle,usd_per_hour\n"
ON_DEMAND, SPOT = "aws,,m6i.2xlarge,on-demand,0.40\n", "aws,,m6i.2xlarge,spot,0.12\n"


@pytest.fixture(scope="module")
def lake() -> Iterator[str]:
    """A run of make, by an agent with these facts."""
    room = pathlib.Path(tempfile.mkdtemp(prefix="sluice-prices-"))  # the agent becomes `nobody`
    (room / "Makefile").write_text("one:\n\t@sleep 2\n")
    (room / "rules.d").mkdir()
    (room / "rules.d" / "ours.yaml").write_text(f"include: [{{cwd: {room}}}]\n")
    agent = Agent(str(room), sluice=sluice_binary.path(), host=HOST)
    try:
        agent.start()
        subprocess.run(["make", "-s", "one"], cwd=room, check=True, env={"PATH": os.environ["PATH"]})
        agent.settle(delivered=True, tasks=True)
        assert agent.stop() == 0
        yield agent.lake
    finally:
        agent.remove()
        shutil.rmtree(room, ignore_errors=True)


def answers(lake: str, tmp_path: pathlib.Path, rows: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """What sweep and tune find with a table of these rows; None: without a table."""
    table = tmp_path / "prices.csv"
    table.write_text(HEADING + (rows or ""))
    found = []
    for name in ("sweep", "tune"):
        args = ("--lake", lake, "--format", "json", *(() if rows is None else ("--prices", str(table))))
        done = command.run(name, *args)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    return found[0], found[1]


@pytest.mark.parametrize(
    ("rows", "per_hour", "source"),
    [
        (None, 7.0, "records"),
        (ON_DEMAND + SPOT, 0.12, "price table"),
        (SPOT + "aws,us-east-1,m6i.2xlarge,spot,9\n", 0.12, "price table"),
        (ON_DEMAND, 7.0, "records"),
        ("aws,,m6i.2xlarge,,0.40\n", 0.40, "price table"),
    ],
)
def test_the_price_is_found_by_instance_type_and_lifecycle(
    lake: str, tmp_path: pathlib.Path, rows: str | None, per_hour: float, source: str
) -> None:
    sweep, tune = answers(lake, tmp_path, rows)
    (host,) = sweep["hosts"]
    assert (host["instance_type"], host["region"]) == (HOST["instance_type"], HOST["region"])
    assert (host["price_per_hour"], host["price_source"]) == (per_hour, source)
    assert [h["price_per_hour"] for h in tune["hosts"]] == [per_hour]


def test_rows_that_disagree_are_named(lake: str, tmp_path: pathlib.Path) -> None:
    for found in answers(lake, tmp_path, SPOT + ON_DEMAND + "aws,,m6i.*,spot,0.13\n"):
        (host,) = found["hosts"]
        assert host["price_per_hour"] == 7.0
        (warning,) = [w for w in found["warnings"] if "disagree" in w]
        assert warning.startswith(f"{tmp_path / 'prices.csv'}: lines 2, 4: these rows apply to ")
        assert warning.endswith("a row with its name in the column host decides; the price in its records is used")
