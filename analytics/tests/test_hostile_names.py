# SPDX-License-Identifier: Apache-2.0
"""No name of a program, task or folder acts on the reader of an answer, in any of its forms."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata

import command
import pytest
from hostile import Name, names
from html_reports import run, task
from lakes import LakeMaker
from test_html import Page

from sluice_analytics.cli import common
from sluice_analytics.report import html, machine, terminal
from sluice_analytics.report.document import Column, Document, Table
from sluice_analytics.spell import spell, spell_json, spell_lines

NAMES = names()
KINDS = pytest.mark.parametrize("name", NAMES, ids=[n.what for n in NAMES])


def unsafe(text: str) -> list[str]:
    """Characters that act on a terminal or hide; not by the table that is tested."""
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def document(name: Name) -> Document:
    text = name.text
    table = Table(
        "rows",
        text,
        [Column("task", "task"), Column("all", "all"), Column("n", "n", "count")],
        [{"task": text, "all": [text, text], "n": -1}],
        note=text,
    )
    return Document(text, facts=[(text, text)], tables=[table], notes=[text], warnings=[text])


@KINDS
def test_spelt_as_in_the_agent(name: Name) -> None:
    assert spell(name.raw.decode("utf-8", "surrogateescape")) == name.spelt
    assert spell(name.text) == name.spelt
    assert spell(name.spelt) == name.spelt
    assert not unsafe(spell_lines(name.text).replace("\t", ""))


@KINDS
def test_terminal(name: Name) -> None:
    # Colour is sluice's own alone.
    assert not unsafe(terminal.render(document(name), width=100, color=False))


@KINDS
def test_json_is_exact(name: Name) -> None:
    text = machine.json_text(document(name))
    assert not unsafe(text)
    assert json.loads(text)["rows"] == [{"task": name.text, "all": [name.text] * 2, "n": -1}]
    assert json.loads(spell_json(json.dumps([name.text], ensure_ascii=False))) == [name.text]


@KINDS
def test_csv_has_no_formula(name: Name) -> None:
    text = machine.csv_text(document(name))
    assert not unsafe(text)
    head, row = csv.reader(io.StringIO(text))
    assert head == ["task", "all", "n"]
    begins = name.text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and name.text != ""
    assert row[0] == "'" * begins + name.spelt
    assert not row[1].startswith(("=", "+", "-", "@"))
    assert row[2] == "-1"  # a number is none
    assert text.count("\n") == 2


@KINDS
def test_errors_of_commands(name: Name, capsys: pytest.CaptureFixture[str]) -> None:
    def main(argv: list[str]) -> int:
        raise common.UserError(f"{name.text}: there is no such run", name.text)

    assert common.run("sluice tune", main, []) == 2
    err = capsys.readouterr().err
    assert not unsafe(err.replace("\t", ""))
    assert name.text.strip() == "" or spell_lines(name.text) in err


def test_page() -> None:
    text = html.render(run([], [], 60, command="x"))
    plain, own = Page(text), set(unsafe(text))  # the library of charts has tabs and such
    for name in NAMES:
        text = html.render(run([task(0, name.text, 0, 1)], [], 60, command=name.text, pipeline=name.text))
        # What the page shows of it is page.js's: test_html_page.py.
        assert not set(unsafe(text)) - own, name.what
        page = Page(text)
        assert page.data()["run"]["command"] == name.text, name.what
        assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements], name.what


COMMANDS = {
    "tune": [
        ["new"],
        ["compare", "old", "new"],
        ["trend", "--pipeline", "p"],
        ["recommend"],
        ["export", "new", "--openlineage-file", "-"],
    ],
    "sweep": [["--since", "2026-11-01", "--until", "2026-11-02"]],
    "lake": [["info"]],
}
"""Each command of the analytics and its own, with what it is asked for"""
FORMATS = ("table", "json", "csv", "html")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_here(name: str) -> None:
    """A new command is to be added above."""
    named = re.findall(r"(?m)^(?:    |  sluice-tune )([a-z]+) +\S", command.run(name, "--help").stdout)
    words = {words[0] for words in COMMANDS[name] if words[0] != "new" and words[0][0] != "-"}
    assert words == set(named) - {"compact", "retain"}  # these print no name but those of files


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two runs, with a task, program, sample and folder under each name."""
    maker = LakeMaker(tmp_path_factory.mktemp("hostile"))
    for run_id, start in (("old", 0), ("new", 1000)):
        bad = NAMES[3].text
        maker.run(run_id=run_id, start=start, end=start + 900, exit_code=1, command=bad, pipeline="p", run_name=bad)
        maker.host(start=start, end=start + 900, host_name=bad)
        for n, name in enumerate(NAMES):
            text, at = name.text, {"start": start + n, "end": start + n + 50}
            maker.task(run_id=run_id, task_id=f"{run_id}-{n}", task=text, sample=text, exit_code=n % 2, **at)
            maker.program(
                run_id=run_id, task_id=f"{run_id}-{n}", task=text, sample=text, tool=text, exe="/" + text,
                cwd="/" + text, argv=[text, text], exit_code=n % 2, cpu_user_ns=10**9, **at,
            )  # fmt: skip
    maker.write()
    return str(maker.path)


@pytest.mark.parametrize(
    ("name", "words"), [(name, words) for name, all_words in COMMANDS.items() for words in all_words], ids=str
)
def test_commands(lake: str, name: str, words: list[str]) -> None:
    formats = [[]] if words[:1] == ["export"] else [["--format", f] for f in FORMATS if f != "html" or words == ["new"]]
    for options in formats:
        done = command.run(name, *words, *options, "--lake", lake)
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout
        own = {"\t"} if options[1:] == ["html"] else set()
        assert not set(unsafe(done.stdout)) - own, options
        assert not unsafe(done.stderr)
        if options[1:] == ["csv"]:
            assert not [c for row in csv.reader(io.StringIO(done.stdout)) for c in row if c.startswith(("=", "@", "+"))]
