# SPDX-License-Identifier: Apache-2.0
"""No name of a program, task or folder acts on the reader of an answer, in any of its forms."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import pytest
from hostile import Name, names
from html_reports import run, task
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
