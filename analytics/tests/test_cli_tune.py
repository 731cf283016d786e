# SPDX-License-Identifier: Apache-2.0
"""The command as its user has it: help, options, formats and errors."""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import command
import pytest
from lakes import GIB, LakeMaker, S


def tune(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs it."""
    return command.run("tune", *args, **env)


@pytest.fixture
def lake(maker: LakeMaker) -> Iterator[str]:
    """Two runs; the second failed: samtools in one of its two tasks."""
    maker.run(run_id="old", start=0, end=50, programs=0)
    maker.run(run_id="new", start=100, end=200, exit_code=1, programs=3, cpu_user_ns=90 * S)
    maker.task(run_id="new", task_id="t1", task="align", sample="A", start=100, end=150, bound="COMPUTE")
    maker.task(run_id="new", task_id="t2", task="call", sample="A", start=150, end=199, exit_code=1)
    maker.program(
        run_id="new", task_id="t1", task="align", start=100, end=150, tool="bwa mem", cpu_user_ns=45 * S,
        argv=["bwa", "mem", "ref.fa", "a b;c"], peak_rss_bytes=GIB,
    )  # fmt: skip
    maker.program(run_id="new", task_id="t2", task="call", start=150, end=199, tool="samtools sort", exit_code=1)
    maker.program(run_id="new", start=100, end=200, tool="snakemake", cpu_user_ns=S, exit_code=1)
    maker.write()
    yield str(maker.path)


def test_help() -> None:
    """Options, commands, examples, exit status."""
    done = tune("--help")
    assert done.returncode == 0
    for word in ("--lake", "--kafka", "--table", "--engine", "--prices", "--format", "--follow", "--section", "compare",
                 "trend", "recommend", "export", "examples:", "exit status:"):  # fmt: skip
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120


@pytest.mark.parametrize("command", ["compare", "trend", "recommend", "export"])
def test_help_of_commands(command: str) -> None:
    """Each has its own."""
    done = tune(command, "--help")
    assert done.returncode == 0 and f"sluice-tune {command}" in done.stdout


def test_table(lake: str) -> None:
    """Failures first, then tasks and tools; what is unknown is a dash."""
    done = tune("--lake", lake)
    assert done.returncode == 0 and done.stderr == ""
    out = done.stdout
    assert "\x1b" not in out
    assert re.search(r"^run new$", out, re.M) and "FAILED, exit code 1" in out
    places = [out.index(word) for word in ("Why it failed", "samtools sort ended with exit code 1", "Tasks", "Tools")]
    assert places == sorted(places)
    assert re.search(r"^\* +align \(A\) +50\.0 s .* compute +-$", out, re.M)
    assert re.search(r"^\* +call \(A\) +49\.0 s .* 1 +- +-$", out, re.M)


def test_width_and_colour(lake: str) -> None:
    """As wide as COLUMNS; colour only on a terminal."""
    assert max(map(len, tune("--lake", lake, COLUMNS="100").stdout.splitlines())) <= 100
    for columns in ("40", "20"):
        assert tune("--lake", lake, COLUMNS=columns).returncode == 0


def test_terminal_has_colour_unless_no_color(lake: str) -> None:
    """NO_COLOR (no-color.org) and dumb terminals."""
    import pty

    def shown(**env: str) -> str:
        leader, follower = pty.openpty()
        shell = [sys.executable, "-m", "sluice_analytics.cli.tune", "--lake", lake]
        base = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
        with subprocess.Popen(shell, stdout=follower, env=base | env) as running:
            os.close(follower)
            text = b""
            try:
                while data := os.read(leader, 65536):
                    text += data
            except OSError:
                pass
            assert running.wait() == 0
        os.close(leader)
        return text.decode()

    assert "\x1b[1;31mFAILED" in shown() or "\x1b[1m" in shown()
    assert "\x1b[" not in shown(NO_COLOR="1")
    assert "\x1b[" not in shown(TERM="dumb")


def test_json(lake: str) -> None:
    """The whole report, times as RFC 3339, unknown as null."""
    text = tune("--lake", lake, "--format", "json").stdout
    data = json.loads(text)
    lines = [line.strip().rstrip(",") for line in text.splitlines()]
    assert all(lines.count(json.dumps(task, ensure_ascii=False)) == 1 for task in data["tasks"])  # each a line
    assert (data["run_id"], data["state"], data["exit_code"]) == ("new", "FAILED", 1)
    assert data["start_time"] == "2026-11-01T12:01:40.000000Z"
    assert datetime.datetime.fromisoformat(data["tasks"][0]["end_time"]).tzinfo is not None
    assert [t["name"] for t in data["tasks"]] == ["align", "call", "-"]
    assert data["usage"]["cpu_user_ns"] == 90 * S
    assert data["cost"] == {"used": None, "reserved": None, "currency": "USD"}
    assert data["failures"][0]["tool"] == "samtools sort"
    assert data["failures"][0]["chain"] == [f"snakemake (pid {data['programs'][1]['pid']}, exit code 1)"]
    assert all(set(gap) == {"start_time", "end_time"} for gap in data["gaps"])
    assert len(data["timeline"]["series"]["cpu_cores"]) <= 600


@pytest.mark.parametrize(
    ("section", "rows", "column", "value"),
    [
        ("tasks", 3, "cpu_user_ns", "0"),
        ("tools", 3, "cpu_user_ns", str(45 * S)),
        ("programs", 3, "command", "bwa mem ref.fa a b;c"),
        ("failures", 1, "kind", "EXIT"),
    ],
)
def test_csv(lake: str, section: str, rows: int, column: str, value: str) -> None:
    """One section a file, plain numbers, a heading."""
    done = tune("--lake", lake, "--format", "csv", "--section", section)
    assert done.returncode == 0
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(lines) == rows and lines[0][column] == value


def test_html_is_a_page(lake: str, tmp_path: pathlib.Path) -> None:
    """To a file, whole."""
    page = tmp_path / "run.html"
    assert tune("--lake", lake, "--format", "html", "-o", str(page)).returncode == 0
    text = page.read_text()
    assert text.startswith("<!doctype html>".upper()) or text.lower().startswith("<!doctype html>")
    assert "samtools sort" in text
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("run.html")] == ["run.html"]


def test_output_that_cannot_be_written(lake: str) -> None:
    """Named, with why."""
    done = tune("--lake", lake, "-o", "/nowhere/report.txt")
    assert done.returncode == 2 and "/nowhere/report.txt: No such file or directory" in done.stderr


def test_list(lake: str) -> None:
    """Every run, the latest first."""
    out = tune("--lake", lake, "--list").stdout
    assert re.search(r"12:01:40Z +demo +new +FAILED +1m40s +2 +1 +3\n.*12:00:00Z +demo +old +SUCCEEDED", out)
    data = json.loads(tune("--lake", lake, "--list", "--format", "json").stdout)
    assert [(r["run_id"], r["state"], r["tasks"]) for r in data["runs"]] == [
        ("new", "FAILED", 2),
        ("old", "SUCCEEDED", 0),
    ]


def test_list_for_programs(lake: str) -> None:
    """As CSV and JSON; a section of a report's is none of a list's."""
    done = tune("--lake", lake, "--list", "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert [row["run_id"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["new", "old"]
    done = tune("--lake", lake, "--list", "--format", "json")
    assert [row["run_id"] for row in json.loads(done.stdout)["runs"]] == ["new", "old"]
    done = tune("--lake", lake, "--list", "--format", "csv", "--section", "tools")
    assert done.returncode == 2 and "--section tools" in done.stderr


def test_names_of_runs(lake: str) -> None:
    """A beginning is enough."""
    assert tune("o", "--lake", lake).stdout.startswith("run old\n")


def test_unknown_run(lake: str) -> None:
    """The answer is no: 1, and the runs there are."""
    done = tune("nope", "--lake", lake)
    assert done.returncode == 1
    assert 'no run "nope"' in done.stderr and "new  2026-11-01 12:01:40Z  demo" in done.stderr


def test_prices(lake: str, tmp_path: pathlib.Path) -> None:
    """A table that cannot be read is named with the line; a good one gives costs only where it fits."""
    table = tmp_path / "prices.csv"
    table.write_text("host,instance_type,usd_per_hour\nnode1,,cheap\n")
    done = tune("--lake", lake, "--prices", str(table))
    assert done.returncode == 2 and f"{table}: line 2: " in done.stderr
    table.write_text("host,instance_type,usd_per_hour\nnode*,,3.6\n")
    with LakeMaker(lake) as maker:
        maker.host(start=100, end=200)
    done = tune("--lake", lake, "--prices", str(table), "--format", "json")
    # 45 of the 4 * 3600 CPU seconds that 3.6 USD buy; 1 GiB of the host's 16 is the smaller share.
    assert json.loads(done.stdout)["tools"][0]["cost"]["used"] == pytest.approx(3.6 * 45 / (4 * 3600))
    assert tune("--lake", lake, "--prices", "/nowhere").returncode == 2


def test_a_price_table_without_the_host_is_reported(lake: str, maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    """Costs are unknown then: why, and what the host is by its records."""
    maker.host(start=100, end=110, instance_type="m5.large", cloud="aws")
    maker.write()
    table = tmp_path / "prices.csv"
    head = "provider,region,instance_type,lifecycle,usd_per_hour\n"
    for rows, said in (
        ("aws,,c5.large,,1\n", "the price table has no row for node1 (instance type m5.large, region unknown)"),
        ("aws,,m5.large,spot,1\naws,,m5.large,on-demand,2\n", "prices.csv: lines 2, 3: these rows apply to node1"),
        ("aws,,m5.large,,1\n", ""),
    ):
        table.write_text(head + rows)
        done = tune("--lake", lake, "--prices", str(table), "--format", "json")
        warnings = json.loads(done.stdout)["warnings"]
        assert [said in w for w in warnings] == ([True] if said else []), warnings


def test_no_lake(tmp_path: pathlib.Path) -> None:
    """A folder that is not there, is no lake, or is empty."""
    done = tune("--lake", str(tmp_path / "none"))
    assert done.returncode == 2 and "no such folder" in done.stderr
    done = tune("--lake", str(tmp_path))
    assert done.returncode == 2 and "has no sluice topics" in done.stderr
    (tmp_path / "file").write_text("x")
    assert tune("--lake", str(tmp_path / "file")).returncode == 2


def test_lake_without_a_run(tmp_path: pathlib.Path) -> None:
    """Topics, and no run: the answer is no, with what to do."""
    with LakeMaker(tmp_path / "lake") as maker:
        maker.host()
    for more in ([], ["--follow"]):
        done = tune("--lake", str(tmp_path / "lake"), *more)
        assert done.returncode == 1 and "has no runs yet; record one: sluice run" in done.stderr
    done = tune("--lake", str(tmp_path / "lake"), "--list")
    assert done.returncode == 0 and done.stdout.startswith("0 runs")


def test_broken_file(lake: str) -> None:
    """Named, with what can be done; both where its head is damaged and where its blocks are."""
    [path] = pathlib.Path(lake).glob("sluice.program/*/*/*.avro")
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:-20] + b"\xff" * 20, b"no avro"):
        path.write_bytes(broken)
        done = tune("--lake", lake)
        assert done.returncode == 2, broken[:8]
        assert str(path) in done.stderr and "move it out of the lake" in done.stderr


def test_schema_from_the_future(maker: LakeMaker) -> None:
    """It is read, with a warning on the page and in JSON."""
    maker.run(run_id="r1", end=10, programs=0)
    maker.write(extra={"invented": ("string", "x")}, schema_version=99)
    done = tune("--lake", str(maker.path))
    assert done.returncode == 0 and "schema_version 99" in done.stdout and "run r1" in done.stdout
    data = json.loads(tune("--lake", str(maker.path), "--format", "json").stdout)
    assert any("schema_version 99" in w for w in data["warnings"])


def test_no_spark(lake: str) -> None:
    """Says what to install: this environment has none."""
    done = tune("--lake", lake, "--engine", "spark")
    assert done.returncode == 2 and "Spark is not installed" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        ["--engine", "oracle"], ["--format", "xml"], ["--kafka", "localhost:9092"], ["--section", "nothing"],
        ["--interval", "0", "--follow"], ["--lake", "a", "--kafka", "b"], ["--programs", "-1"], ["one", "two"],
        ["--lak", "x"],
    ],
)  # fmt: skip
def test_wrong_usage(wrong: list[str]) -> None:
    """2, and one line with the error."""
    done = tune(*wrong)
    assert done.returncode == 2 and done.stderr.strip()


def test_names_cannot_move_the_cursor(maker: LakeMaker) -> None:
    """A task or tool with control characters in its name is shown with its bytes."""
    evil = "a\x1b[2Jb\nc"
    maker.run(run_id="r1", end=10, programs=1, command=evil)
    maker.task(run_id="r1", task=evil, end=5)
    maker.program(run_id="r1", task_id="t1", task=evil, tool=evil, argv=[evil], end=5, exit_code=1)
    maker.write()
    done = tune("--lake", str(maker.path))
    assert done.returncode == 0 and "\x1b" not in done.stdout and "a\\x1b[2Jb\\nc" in done.stdout
    tune("--lake", str(maker.path), "--format", "csv", "--section", "programs")
    assert json.loads(tune("--lake", str(maker.path), "--format", "json").stdout)["command"] == evil


def test_reader_that_leaves(lake: str) -> None:
    """`| head -1` is no error."""
    shell = f"{sys.executable} -m sluice_analytics.cli.tune --lake {lake} --format json | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", shell], capture_output=True, text=True)
    assert done.stdout == "{\n" and done.stderr == "" and done.returncode == 0
