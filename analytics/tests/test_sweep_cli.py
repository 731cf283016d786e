# SPDX-License-Identifier: Apache-2.0
"""sluice-sweep as its users call it: formats, groupings, periods, and what they get wrong."""

from __future__ import annotations

import csv
import io
import json
import pathlib
from typing import Any

import pytest
from lakes import GIB, LakeMaker, S

from sluice_analytics.cli.sweep import main
from sluice_analytics.errors import UserError
from sluice_analytics.sweep import period

HOUR = 3600
WHEN = ["--since", "2026-11-01T12:00Z", "--until", "2026-11-01T14:00Z"]


@pytest.fixture
def lake(maker: LakeMaker) -> LakeMaker:
    """Two hours of one host of 4 CPUs and 16 GiB: two runs of two tasks each, in the first hour."""
    for n in range(12):
        maker.host(start=n * 600, end=n * 600 + 600, cpu_busy_ns=(600 if n < 6 else 6) * S, rss_attributed_bytes=GIB)
    for run, start in (("r1", 0), ("r2", 1800)):
        maker.run(run_id=run, pipeline="rna" if run == "r1" else "dna", start=start, end=start + 1800, cpu_user_ns=1)
        for n, (task, sample) in enumerate((("ALIGN", "A"), ("SORT", "B"))):
            of: dict[str, Any] = {"run_id": run, "task_id": f"{run}{n}", "task": task, "sample": sample}
            of["pipeline"] = "rna" if run == "r1" else "dna"
            begin = start + n * 900
            maker.task(start=begin, end=begin + 900, requested_cpus=2.0, cpu_user_ns=900 * S, **of)
            maker.program(
                start=begin, end=begin + 900, cpu_user_ns=900 * S, rchar=GIB, peak_rss_bytes=GIB, uid=1000 + n,
                container_id=f"{n}" * 64, scheduler="slurm", job_id="47", tool=task.lower(), **of,
            )  # fmt: skip
    maker.write()
    return maker


def prices(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "prices.csv"
    path.write_text("host,instance_type,usd_per_hour\nnode1,,8.0\n")
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    status = main(list(args))
    out = capsys.readouterr()
    return status, out.out, out.err


def data(capsys: pytest.CaptureFixture[str], lake: LakeMaker, *args: str) -> dict[str, Any]:
    status, out, err = run(capsys, "--lake", str(lake.path), *WHEN, "--format", "json", *args)
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_json_has_everything(capsys: pytest.CaptureFixture[str], lake: LakeMaker, tmp_path: pathlib.Path) -> None:
    found = data(capsys, lake, "--prices", prices(tmp_path))
    assert found["since_time"] == "2026-11-01T12:00:00.000000Z"
    assert [h["host_name"] for h in found["hosts"]] == ["node1"]
    assert len(found["hours"]) == 2
    total = found["total"]
    assert total["capacity_ns"] == pytest.approx(4 * 2 * HOUR * S)
    assert sum(total["cpu_ns"].values()) + total["residue_ns"] == pytest.approx(total["capacity_ns"])
    assert total["cpu_ns"]["runs"] == pytest.approx(HOUR * S)
    assert total["cpu_ns"]["reserved"] == pytest.approx(HOUR * S)  # 2 CPUs asked for, 1 used
    assert total["money"] == pytest.approx(16)
    assert sum(total["money_by_class"].values()) == pytest.approx(16)
    (after,) = (f for f in found["findings"] if f["kind"] == "IDLE_AFTER_RUN")
    assert (after["hours"], after["money"]) == (pytest.approx(1), pytest.approx(8))
    assert after["evidence"]["last_run_time"] == "2026-11-01T13:00:00.000000Z"
    assert found["thresholds"]["idle_cores"] == 0.05


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("run", {"rna r1": (1800, 1800), "dna r2": (1800, 1800)}),
        ("pipeline", {"rna": (1800, 1800), "dna": (1800, 1800)}),
        ("task", {"ALIGN": (1800, 1800), "SORT": (1800, 1800)}),
        ("sample", {"A": (1800, 1800), "B": (1800, 1800)}),
        ("tool", {"align": (1800, None), "sort": (1800, None)}),
        ("user", {"1000": (1800, None), "1001": (1800, None)}),
        ("container", {"0" * 64: (1800, None), "1" * 64: (1800, None)}),
        ("scheduler", {"slurm": (3600, None)}),
    ],
)
def test_groups(
    capsys: pytest.CaptureFixture[str], lake: LakeMaker, tmp_path: pathlib.Path, by: str, groups: dict[str, Any]
) -> None:
    found = data(capsys, lake, "--by", by, "--prices", prices(tmp_path))["groups"]
    assert {g["group"] for g in found} == set(groups)
    for group in found:
        cpu_s, wasted_s = groups[group["group"]]
        assert group["cpu_ns"] == pytest.approx(cpu_s * S)
        assert group["alive_ns"] == pytest.approx(cpu_s * S)
        assert group["memory_byte_ns"] == pytest.approx(cpu_s * S * GIB)
        # 1 of 4 CPUs is more of the host than 1 of 16 GiB; 8.00 an hour.
        assert group["money_used"] == pytest.approx(8 * cpu_s / HOUR / 4)
        if wasted_s is None:
            assert (group["money_reserved"], group["money_wasted"]) == (None, None)
        else:
            assert group["money_reserved"] == pytest.approx(2 * 8 * cpu_s / HOUR / 4)
            assert group["money_wasted"] == pytest.approx(8 * wasted_s / HOUR / 4)


def test_table_and_csv(capsys: pytest.CaptureFixture[str], lake: LakeMaker, tmp_path: pathlib.Path) -> None:
    args = ["--lake", str(lake.path), *WHEN, "--prices", prices(tmp_path)]
    _, out, _ = run(capsys, *args)
    for word in ("2.00 host-hours", "16.00 USD", "node1", "IDLE_AFTER_RUN", "residue"):
        assert word in out
    _, out, _ = run(capsys, *args, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["group"], float(row["money"])) == ("node1", 16.0)
    assert float(row["runs_share"]) == pytest.approx(1 / 8)
    target = tmp_path / "findings.csv"
    status, out, _ = run(capsys, *args, "--format", "csv", "--section", "findings", "-o", str(target))
    assert (status, out) == (0, "")
    assert "IDLE_AFTER_RUN" in {r["kind"] for r in csv.DictReader(target.open())}


def test_unknown_prices_are_named(capsys: pytest.CaptureFixture[str], lake: LakeMaker, tmp_path: pathlib.Path) -> None:
    others = tmp_path / "prices.csv"
    others.write_text("host,instance_type,usd_per_hour\nelsewhere,,2\n")
    for options, why in (
        ([], "no price table (--prices FILE)"),
        (["--prices", str(others)], "no host of the lake is in"),
    ):
        _, out, _ = run(capsys, "--lake", str(lake.path), *WHEN, *options)
        assert f"unknown: {why}" in out
        assert "0.00" not in out.split("By host")[1].split("What was paid")[0]


def test_thresholds_are_options(capsys: pytest.CaptureFixture[str], lake: LakeMaker) -> None:
    assert {f["kind"] for f in data(capsys, lake)["findings"]} >= {"IDLE_AFTER_RUN"}
    assert "IDLE_AFTER_RUN" not in {f["kind"] for f in data(capsys, lake, "--after-run", "2h")["findings"]}


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["--by", "colour"], 2, "--by colour: records have no such field; choose one of host, day, run"),
        (["--since", "yesterday"], 2, '--since: "yesterday" is neither a duration nor a time'),
        (["--since", "2026-11-02", "--until", "2026-11-01"], 2, "is not before"),
        (["--prices", "/nowhere/p.csv"], 2, "/nowhere/p.csv: No such file"),
        (["--idle-cores", "few"], 2, '--idle-cores: "few" is not a number from 0'),
        (["--least", "5"], 2, "--least"),
        (["--busy-share", "1.5"], 2, "--busy-share"),
        (
            ["--since", "2025-01-01", "--until", "2025-01-02"],
            1,
            "the latest record of a host is of 2026-11-01 14:00:00",
        ),
        (["--section", "nothing", "--format", "csv"], 2, "--section nothing: there is no such section"),
        (["-o", "/nowhere/x"], 2, "/nowhere/x"),
    ],
)
def test_what_users_get_wrong(
    capsys: pytest.CaptureFixture[str], lake: LakeMaker, args: list[str], status: int, message: str
) -> None:
    when = [] if "--since" in args else WHEN
    got, out, err = run(capsys, "--lake", str(lake.path), *when, *args)
    assert (got, out) == (status, "")
    assert err.startswith("sluice-sweep: ") and message in err and err.count("\n") == 1


def test_lakes_that_are_none(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    status, _, err = run(capsys, "--lake", str(tmp_path / "none"))
    assert status == 2 and "no such folder" in err


def test_the_period(capsys: pytest.CaptureFixture[str]) -> None:
    now = 1_800_000_000_000_000
    week = period.of_options("7d", None, now)
    assert (week.since_us, week.until_us) == (now - 7 * 86400_000_000, now)
    past = period.of_options("2h", "1d", now)
    assert (past.since_us, past.until_us) == (now - 26 * 3600_000_000, now - 24 * 3600_000_000)
    day = period.of_options("2026-11-01", "2026-11-02T00:00+02:00", now)
    assert day.until_us - day.since_us == 22 * 3600_000_000
    with pytest.raises(UserError):
        period.of_options("0s", None, now)
    with pytest.raises(SystemExit) as e:
        main(["--help"])
    assert e.value.code == 0
    assert "--by" in capsys.readouterr().out
