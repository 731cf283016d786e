# SPDX-License-Identifier: Apache-2.0
"""A Document as text for people: tables as wide as the terminal, colour only where one looks on."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from .. import units
from ..spell import spell, spell_lines
from .document import Column, Document, Table

_RIGHT = frozenset(("count", "number", "size", "ns", "percent", "money", "energy", "cores"))
_STYLES = {
    "FAILED": "bold red", "ERROR": "bold red", "OOM_KILLED": "bold red", "RUNNING": "cyan", "SUCCEEDED": "green",
    "WARNING": "yellow", "UNKNOWN": "yellow", "STARVED": "yellow", "IDLE": "yellow", "STALLED": "yellow",
}  # fmt: skip
_NARROW = 80
"""Columns of text where the output is no terminal and COLUMNS is unset: wide enough for no cut name"""

_FILE_WIDTH = 160


def cell(column: Column, value: Any, currency: str = "USD") -> str:
    """A value as its column's kind is written for people; unknown is a dash."""
    if value is None:
        return "unknown" if column.kind == "money" else units.DASH
    match column.kind:
        case "size":
            return units.size(value)
        case "ns":
            return units.duration(value)
        case "percent":
            return units.percent(value)
        case "money":
            return units.money(value, currency)
        case "energy":
            return units.energy(value)
        case "cores":
            return f"{value:.2f}"
        case "count":
            return f"{value:,}"
        case "number":
            if isinstance(value, float):
                return f"{value:g}" if value == 0 or abs(value) >= 0.001 else "<0.001"
            return f"{value}"
        case "time":
            return units.clock(value)
        case _:
            if isinstance(value, (list, tuple)):
                return spell(", ".join(str(v) for v in value))
            return spell(str(value))


# rich looks for terminal and colours too, but at the stream that it writes to, which is a buffer here, and it takes a
# file to be 80 columns wide.


def width_of(stream: Any) -> int:
    """Columns of the terminal behind a stream; COLUMNS wins, and a file has room for long names."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _NARROW
    except (OSError, ValueError, AttributeError):
        return _FILE_WIDTH


def wants_color(stream: Any) -> bool:
    """Colour for a terminal, unless NO_COLOR (https://no-color.org) is set or TERM is dumb."""
    return bool(
        not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
        and getattr(stream, "isatty", lambda: False)()
    )


def console(stream: Any, *, width: int | None = None, color: bool | None = None) -> Console:
    """A console as all commands use it: no markup read from data, no emoji, no highlighting."""
    with_color = wants_color(stream) if color is None else color
    return Console(
        file=stream,
        width=width or width_of(stream),
        force_terminal=with_color,
        no_color=not with_color,
        color_system="standard" if with_color else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def table_of(table: Table, currency: str = "USD") -> RichTable:
    """A Table as rich draws it. Numbers are never cut; text folds."""
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for column in table.columns:
        is_number = column.kind in _RIGHT
        drawn.add_column(
            column.title,
            justify="right" if is_number else "left",
            no_wrap=is_number or column.kind == "time",
            overflow="fold",
            min_width=None if is_number else min(12, len(column.title) + 4),
        )
    for row in table.rows:
        drawn.add_row(*(_styled(cell(c, row.get(c.key), currency)) for c in table.columns))
    return drawn


def _styled(text: str) -> Text:
    return Text(text, style=_STYLES.get(text, ""))


def render(document: Document, *, width: int | None = None, color: bool | None = None, stream: Any = None) -> str:
    """The whole answer as text for a stream (default: standard output)."""
    stream = sys.stdout if stream is None else stream
    out = io.StringIO()
    c = console(
        out,
        width=width or width_of(stream),
        color=wants_color(stream) if color is None else color,
    )
    c.print(Text(spell(document.title), style="bold"))
    if document.facts:
        facts = RichTable.grid(padding=(0, 2, 0, 0))
        facts.add_column(no_wrap=True)
        facts.add_column(overflow="fold")
        for name, value in document.facts:
            facts.add_row(Text(spell(name), style="dim"), _styled(spell(value)))
        c.print(facts)
    for warning in document.warnings:
        c.print(Text("warning: " + spell(warning), style="yellow"))
    for table in document.tables:
        if not table.rows and not table.note:
            continue
        c.print()
        if table.title:
            c.print(Text(spell(table.title), style="bold"))
        if table.rows:
            c.print(table_of(table, document.currency))
        if table.note:
            c.print(Text(spell_lines(table.note), style="dim"))
    if document.notes:
        c.print()
        for note in document.notes:
            c.print(Text(spell_lines(note)))
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))
