# SPDX-License-Identifier: Apache-2.0
"""Energy of a run: shares of a meter, the residue of its hosts, and modelled figures where they are asked for."""

from __future__ import annotations

import csv
import io
import json
import pathlib
from typing import Any

import command
import pytest
from lakes import LakeMaker, S

from sluice_analytics import units
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.tune.energy import WATTS_PER_CPU
from sluice_analytics.tune.run import load
from sluice_analytics.tune.run_report import MODELLED, Energy, HostEnergy, RunReport

JOULE = 1_000_000


def lake(tmp_path: pathlib.Path, with_meter: bool = True, source: str = "POWERCAP") -> pathlib.Path:
    """A run of 20 s with two tasks, of 10 s and 5 s of CPU time, and 1 s of its driver's own."""
    folder = tmp_path / "lake"
    meter = {"energy_source": source} if with_meter else {}

    def energy(joules: float) -> dict[str, Any]:
        return meter | {"energy_uj": round(joules * JOULE)} if with_meter else {}

    with LakeMaker(folder) as made:
        made.program(run_id="r1", pid=1, start=0, end=20, task_id=None, task=None, cpu_user_ns=1 * S)
        made.program(run_id="r1", pid=2, start=0, end=15, task_id="a", task="align", cpu_user_ns=10 * S)
        made.program(run_id="r1", pid=3, start=0, end=15, task_id="c", task="call", cpu_user_ns=5 * S)
        made.task(run_id="r1", task_id="a", task="align", start=0, end=15, cpu_user_ns=10 * S, **energy(100))
        made.task(run_id="r1", task_id="c", task="call", start=0, end=15, cpu_user_ns=5 * S, **energy(50))
        made.run(start=0, end=20, cpu_user_ns=16 * S, **energy(160))
        for start in (-5, 5, 15):
            parts = {"attributed": 80, "unattributed": 20, "idle": 300} if with_meter else {}
            made.host(
                start=start,
                end=start + 10,
                **energy(400),
                **{f"energy_{name}_uj": joules * JOULE for name, joules in parts.items()},
            )
    return folder


def of(folder: pathlib.Path, **options: Any) -> RunReport:
    """Its report."""
    with DuckSession(str(folder)) as session:
        return load(session, with_recommendations=False, **options)


def energies(report: RunReport) -> dict[str, Energy]:
    """By the names of tasks."""
    return {t.name: t.energy for t in report.tasks}


def test_shares_of_the_meter_and_what_is_no_tasks(tmp_path: pathlib.Path) -> None:
    """Records' own figures; the driver has the rest. A model is not asked where a meter counted."""
    folder = lake(tmp_path)
    for watts in (None, 12.0):
        report = of(folder, watts=watts)
        assert report.energy == Energy(160.0, "POWERCAP")
        assert energies(report) == {
            "align": Energy(100.0, "POWERCAP"),
            "call": Energy(50.0, "POWERCAP"),
            "-": Energy(10.0, "POWERCAP"),
        }


def test_the_residue_of_a_host_is_of_the_time_of_the_run(tmp_path: pathlib.Path) -> None:
    """The first and the last record lie half in it."""
    (host,) = of(lake(tmp_path)).hosts
    assert host["energy"] == HostEnergy("POWERCAP", 800.0, 160.0, 40.0, 600.0)


def test_two_agents_read_one_meter(tmp_path: pathlib.Path) -> None:
    """`sluice run` beside the daemon: what both recorded counts once."""
    folder = tmp_path / "lake"
    with LakeMaker(folder) as made:
        made.run(start=0, end=10, energy_uj=5 * JOULE, energy_source="POWERCAP")
        for agent_id, joules in (("daemon", 100), ("own", 99)):
            made.host(
                start=0, end=10, agent_id=agent_id, energy_uj=joules * JOULE, energy_source="POWERCAP",
                energy_attributed_uj=5 * JOULE, energy_unattributed_uj=0, energy_idle_uj=(joules - 5) * JOULE,
            )  # fmt: skip
    (host,) = of(folder).hosts
    assert host["energy"] == HostEnergy("POWERCAP", 100.0, 5.0, 0.0, 95.0)


def test_without_a_meter_nothing_is_shown_unless_it_is_asked_for(tmp_path: pathlib.Path) -> None:
    """A modelled figure is never shown without that word."""
    folder = str(lake(tmp_path, with_meter=False))
    report = of(pathlib.Path(folder))
    assert report.energy == Energy()
    assert all(e == Energy() for e in energies(report).values())
    assert report.hosts[0]["energy"] is None
    plain = command.run("tune", "--lake", folder)
    assert plain.returncode == 0 and "energy" not in plain.stdout, plain.stdout
    asked = command.run("tune", "--lake", folder, "--watts-per-cpu", "10")
    assert "modelled energy" in asked.stdout and "160 J (modelled" in asked.stdout, asked.stdout
    report = of(pathlib.Path(folder), watts=10.0)
    assert report.energy == Energy(160.0, MODELLED)
    assert energies(report) == {
        "align": Energy(100.0, MODELLED),
        "call": Energy(50.0, MODELLED),
        "-": Energy(10.0, MODELLED),
    }


def test_json_and_csv_have_the_source_beside_each_figure(tmp_path: pathlib.Path) -> None:
    """Also of what is modelled."""
    folder = str(lake(tmp_path, with_meter=False))
    answer = json.loads(command.run("tune", "--lake", folder, "--format", "json", "--watts-per-cpu", "default").stdout)
    assert answer["energy"] == {"joules": 16 * WATTS_PER_CPU, "source": MODELLED}
    table = command.run("tune", "--lake", folder, "--format", "csv", "--watts-per-cpu", "default").stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert {r["energy_source"] for r in rows} == {MODELLED}
    assert {float(r["energy_joules"]) for r in rows} == {x * WATTS_PER_CPU for x in (10, 5, 1)}


def test_a_sum_with_an_unknown_part_is_unknown(tmp_path: pathlib.Path) -> None:
    """A run on two hosts of which one has a meter: what is modelled in part is modelled."""
    folder = tmp_path / "lake"
    with LakeMaker(folder) as made:
        made.run(start=0, end=10, cpu_user_ns=4 * S, energy_uj=5 * JOULE, energy_source="HWMON")
        made.run(start=0, end=10, cpu_user_ns=4 * S, host_id="h2", host_name="other")
    assert of(folder).energy == Energy()
    assert of(folder, watts=10.0).energy == Energy(45.0, MODELLED)


@pytest.mark.parametrize("text", ["0", "-1", "x", "nan", "inf", "10001"])
def test_what_is_no_power_is_refused(tmp_path: pathlib.Path, text: str) -> None:
    """By name."""
    done = command.run("tune", "--lake", str(tmp_path), f"--watts-per-cpu={text}")
    assert done.returncode == 2 and f'"{text}" is neither' in done.stderr


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (None, "-"),
        (0, "0.0 J"),
        (99.94, "99.9 J"),
        (480, "480 J"),
        (3600, "1.00 Wh"),
        (36e4, "100 Wh"),
        (3.6e7, "10.00 kWh"),
    ],
)
def test_energy_for_people(joules: float | None, text: str) -> None:
    """Units that people know."""
    assert units.energy(joules) == text
