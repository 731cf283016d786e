# SPDX-License-Identifier: Apache-2.0
"""What is made ahead: the SQL that Ibis makes of the same expressions, enough for all commands, without Ibis."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from lakes import LakeMaker, S

import sluice_analytics

HEAVY = {"ibis", "sqlglot", "pandas", "pyarrow", "numpy", "altair", "vl_convert"}

SAME = """
import re, sys
from sluice_analytics import ahead
from sluice_analytics.lake import statements
from sluice_analytics.lake.expression import build, key_of
sql_of, seen = statements.sql_of, {}
def noted(expression):
    seen.setdefault(key_of(expression)[0], expression)
    return sql_of(expression)
statements.sql_of = noted
ahead.ask()
for expression in list(seen.values())[:: int(sys.argv[1])]:
    texts = (sql_of(expression), str(statements._backend().compile(build(expression))))
    # Ibis names what is dropped in any order.
    ours, theirs = (re.sub(r"EXCLUDE \\(([^)]*)\\)", lambda m: str(sorted(m[1].split(", "))), t) for t in texts)
    assert ours == theirs, (ours, theirs)
for key, columns in statements._known()["columns"].items():
    assert columns, key
print(len(seen), "statements,", len(statements.asked), "not in the file")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with a copy of the package for which the files were made."""
    folder = tmp_path_factory.mktemp("ahead")
    package = pathlib.Path(sluice_analytics.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "*.json")
    shutil.copytree(package, folder / package.name, ignore=ignored)
    done = python(folder, "-m", "sluice_analytics.ahead")
    assert done.returncode == 0, done.stderr
    assert {p.name for p in folder.rglob("*.json")} == {"statements.json", "charts.json"}
    return folder


def python(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the package that is in a folder."""
    env = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env, cwd=folder)


@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.nightly)])
def test_statements_are_those_of_the_expressions(each: int, made: pathlib.Path) -> None:
    """Every question of every command is in the file, and each so-manieth has, filled in, the SQL that Ibis makes."""
    done = python(made, "-c", SAME, str(each))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" statements, 0 not in the file\n") and int(done.stdout.split()[0]) > 100, done.stdout


@pytest.mark.parametrize(
    "line",
    ["tune r1", "tune --list", "tune r2 --format json", "tune r1 --format html", "tune compare r1 r2",
     "tune trend --pipeline demo", "tune recommend", "sweep --since 4h --until 2026-11-01T15:00:00Z",
     "sweep --by user --since 4h --until 2026-11-01T15:00:00Z"],
)  # fmt: skip
def test_commands_load_no_library_that_makes_sql_or_charts(
    line: str, made: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """On a lake that is not one of those for which the file was made."""
    name, *words = line.split()
    with LakeMaker(tmp_path / "lake") as lake:
        for n, bad in ((1, 0), (2, 1)):
            at = 1000 * n
            run = {"run_id": f"r{n}", "start": at, "end": at + 900}
            lake.run(**run, exit_code=bad)
            lake.task(**run, task_id=f"t{n}", exit_code=bad)
            for start in range(at, at + 800, 100):
                program = lake.program(run_id=f"r{n}", task_id=f"t{n}", start=start, end=start + 90, exit_code=bad)
                lake.usage(program, start=start, end=start + 10, cpu_user_ns=S)
        for at in range(0, 3000, 10):
            lake.host(start=at, end=at + 10, cpu_busy_ns=10 * S)
    code = (
        f"import sys; from sluice_analytics.cli import {name}\n"
        f"status = {name}.main({[*words, '--lake', str(lake.path), '-o', '/dev/null']})\n"
        f"print(status, sorted({HEAVY} & sys.modules.keys()))"
    )
    done = python(made, "-c", code)
    assert (done.stdout, done.stderr) == ("0 []\n", ""), done


def test_what_is_not_in_the_file_is_made_when_it_is_asked_for(made: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A damaged file, and one of another DuckDB, are as if they were not there."""
    statements = made / "sluice_analytics" / "lake" / "statements.json"
    whole = statements.read_text()
    with LakeMaker(tmp_path / "lake") as lake:
        lake.run(run_id="r1", start=0, end=60)
        lake.host()
    words = ("-m", "sluice_analytics.cli.tune", "r1", "--lake", str(lake.path), "--format", "json")
    expected = python(made, *words)
    try:
        for other in ("{", "[]", '{"duckdb": "0", "sql": {}, "columns": {}}', whole[:-9]):
            statements.write_text(other)
            done = python(made, *words)
            assert (done.returncode, done.stdout) == (0, expected.stdout), done.stderr
    finally:
        statements.write_text(whole)
