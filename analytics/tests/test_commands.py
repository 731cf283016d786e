# SPDX-License-Identifier: Apache-2.0
"""What all commands have in common: how they call themselves, and that their manuals have every option."""

from __future__ import annotations

import argparse
import fcntl
import importlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
from command import line, run
from lakes import LakeMaker

from sluice_analytics.cli import lake, sweep, tune, tune_recommend
from sluice_analytics.report import emit

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
COMMANDS = ("tune", "sweep", "lake")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_called_as_its_user_typed_it(name: str) -> None:
    """Started by sluice, which sets a variable, or by itself; in the usage, in other lines and in front of errors."""
    wrong = {"tune": ["--prices", "/nowhere"], "sweep": ["--prices", "/nowhere"], "lake": ["info", "--lake", "/none"]}
    by_sluice = {"SLUICE_COMMAND": f"sluice {name}"}
    for env, called, never in (
        (by_sluice, f"sluice {name}", f"sluice-{name}"),
        ({}, f"sluice-{name}", f"sluice {name}"),
        ({"SLUICE_COMMAND": "sluice other"}, f"sluice-{name}", f"sluice {name}"),
    ):
        done = run(name, "--help", **env)
        assert done.stdout.startswith(f"usage: {called} ")
        text = done.stdout.replace("./sluice-lake", "").replace("lake/sluice-lake", "")
        assert never not in re.sub(r"sluice-\w+\(1\)", "", text)
        assert run(name, *wrong[name], **env).stderr.startswith(f"{called}: /no")


@pytest.mark.parametrize(("name", "command"), [*(("tune", c) for c in tune.COMMANDS), ("lake", "compact")])
def test_and_so_are_its_commands(name: str, command: str) -> None:
    for env, called in (({"SLUICE_COMMAND": f"sluice {name}"}, f"sluice {name}"), ({}, f"sluice-{name}")):
        done = run(name, command, "--help", **env)
        assert "sluice " not in done.stdout.replace(called, "")
        assert done.returncode == 0 and done.stdout.startswith(f"usage: {called} {command} ")


@pytest.fixture
def lake_of_one(maker: LakeMaker) -> str:
    """A run that ended."""
    maker.run(run_id="r1", end=10, pipeline="p")
    maker.task(run_id="r1", end=9)
    maker.host()
    maker.write()
    return str(maker.path)


WHOLE = {
    "tune": [], "sweep": ["--since", "2026-11-01", "--until", "2026-11-02"], "lake": ["info"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_output_that_is_no_file_is_written_to_and_stays(name: str, lake_of_one: str, tmp_path: pathlib.Path) -> None:
    """A pipe, a device by way of a link: what is there is not replaced by a file."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    args = [*WHOLE[name], "--lake", lake_of_one, "--format", "json", "-o"]
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)  # holds all of it, since it is read only later
        done = run(name, *args, str(pipe))
        said = reader.read()
    assert done.returncode == 0, done.stderr
    assert said.startswith("{") and pipe.is_fifo()
    assert run(name, *args, str(link)).returncode == 0
    assert link.is_symlink() and os.path.realpath(link) == "/dev/null"
    assert not list(tmp_path.glob("*.part"))


def test_a_link_to_a_file_stays_and_the_file_is_new(lake_of_one: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "report", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    assert run("tune", "--lake", lake_of_one, "-o", str(link)).returncode == 0
    assert link.is_symlink() and target.read_text().startswith("run r1")
    assert os.listdir(tmp_path / "there") == ["report"]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("more", [[], ["--format", "json"], ["--help"]])
def test_standard_output_that_takes_no_more(name: str, more: list[str], lake_of_one: str) -> None:
    """A sentence and status 2; and nothing of Python's when its process ends, which is tried once a command."""
    args = [*WHOLE[name], "--lake", lake_of_one, *more]
    with open("/dev/full", "w") as full:
        if more:
            done = run(name, *args, stdout=full)
        else:
            done = subprocess.run(line(name, *args), stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, f"sluice-{name}: standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("name", "library", "status"),
    [
        # Each loads argparse at its start, and DuckDB once it has parsed its options.
        *((name, "argparse", -signal.SIGINT) for name in COMMANDS), *((name, "duckdb", 130) for name in COMMANDS),
    ],
)  # fmt: skip
def test_ctrl_c_while_it_starts(name: str, library: str, status: int, lake_of_one: str, tmp_path: pathlib.Path) -> None:
    """Its libraries take a second to load: no traceback then either."""
    (tmp_path / f"{library}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", f"sluice_analytics.cli.{name}", *WHOLE[name], "--lake", lake_of_one],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.parametrize(
    ("name", "command"),
    [*((c, "") for c in COMMANDS), *(("tune", c) for c in tune.COMMANDS),
     *(("lake", c) for c in ("info", "compact", "retain"))],
)  # fmt: skip
def test_help_loads_no_library_that_answers(name: str, command: str) -> None:
    """Such libraries take a second to load; the help takes less than a tenth."""
    heavy = {"ibis", "duckdb", "pandas", "pyarrow", "altair", "rich", "fastavro"}
    code = (
        f"import contextlib, sys; from sluice_analytics.cli import {name}\n"
        "with contextlib.suppress(SystemExit):\n"
        f"    {name}.main({[*command.split(), '--help']})\n"
        f"print('loaded:', sorted({heavy} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith(f"usage: sluice-{name} {command}") and done.stdout.endswith("\nloaded: []\n"), done


def test_engines_of_emit_are_the_formats_that_there_are() -> None:
    """Their names are in the command's file again, which does not load what writes them."""
    assert list(tune_recommend.ENGINES) == sorted(emit.FORMATS)


def parsers() -> dict[str, list[argparse.ArgumentParser]]:
    """The parsers behind each manual."""
    found = {"sluice-tune.1": [tune.parser()], "sluice-sweep.1": [sweep._parser()], "sluice-lake.1": [lake._parser()]}
    for name in tune.COMMANDS:
        add_arguments, _, _ = tune.COMMANDS[name]
        found["sluice-tune.1"].append(argparse.ArgumentParser())
        add_arguments(found["sluice-tune.1"][-1])
    for action in lake._parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            found["sluice-lake.1"] += action.choices.values()
    return found


def manual(page: str) -> str:
    """A page as plain text."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-rLL=160n", str(DOCS / page)], capture_output=True, text=True,
        env=os.environ | {"GROFF_NO_SGR": "1"},
    )  # fmt: skip
    assert done.stderr == "", f"{page}: {done.stderr}"
    return re.sub(r".\x08", "", done.stdout).replace("\u2010", "-").replace("\u2212", "-")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("page", ["sluice-tune.1", "sluice-sweep.1", "sluice-lake.1"])
def test_a_manual_has_every_option_and_none_that_is_not(page: str) -> None:
    text = manual(page)
    there = {o for p in parsers()[page] for a in p._actions for o in a.option_strings if o not in ("-h", "--help")}
    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))
    assert there - named - {"--output"} == set()
    others = {"-O"}  # of other programs, in examples
    assert {o for o in named if o.startswith("--")} - there - others == set()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("page", sorted(p.name for p in DOCS.glob("*.[157]")))
def test_a_manual_refers_to_pages_that_there_are(page: str) -> None:
    """groff finds no fault with it, and another's SEE ALSO names it."""
    known = {f"{p.name.rpartition('.')[0]}({p.suffix[1:]})" for p in DOCS.glob("*.[157]")}
    text = manual(page)
    assert {r for r in re.findall(r"sluice[\w.-]*\(\d\)", text) if r.lower() == r} <= known
    own = f"{page.rpartition('.')[0]}({page[-1]})"
    others = [p.name for p in DOCS.glob("*.[157]") if p.name != page]
    assert any(own in manual(o).partition("SEE ALSO")[2] for o in others)


def test_every_command_is_installed() -> None:
    """pyproject.toml names a script for each, and each has its manual."""
    import tomllib

    with open(DOCS.parent / "analytics" / "pyproject.toml", "rb") as f:
        scripts = tomllib.load(f)["project"]["scripts"]
    assert set(scripts) == {f"sluice-{name}" for name in COMMANDS}
    for script, target in scripts.items():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
        assert (DOCS / f"{script}.1").is_file()
