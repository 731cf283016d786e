# SPDX-License-Identifier: Apache-2.0
"""A Document as JSON or CSV, for programs.

JSON and CSV have the names of units.py's plain values: `_ns`, `_bytes`, shares of 1. Times are RFC 3339 in
UTC with microseconds, as `sluice cat` prints them; what is unknown is null in JSON and empty in CSV.

JSON has every text exactly. CSV goes to spreadsheets, and has text as people may read it: spelt out (see spell.py), and
with a quote in front of what a spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import math
from collections.abc import Iterator
from typing import Any

from .. import units
from ..errors import UserError
from ..spell import spell, spell_json
from .document import Document, Table

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What begins a formula, or is skipped before one; the last four are = + - @ in full width"""


def plain(value: Any, key: str = "") -> Any:
    """Dataclasses, lists and dicts as JSON has them; an integer under `time` or `*_time` becomes RFC 3339."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return units.rfc3339(value) if key == "time" or key.endswith("_time") else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None  # JSON has no such number
    if isinstance(value, dict):
        return {str(k): plain(v, str(k)) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, key) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name), name) for name in _field_names(type(value))}
    return value


@functools.cache
def _field_names(of: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(of))


def _encoded(value: Any, depth: int = 0) -> Iterator[str]:
    """JSON in pieces: two levels are indented, and each thing in them is a line, such as a task with all it has.

    json.dumps, which writes the lines, indents all levels or none.
    """
    if depth == 2 or not value or not isinstance(value, (dict, list)):
        yield json.dumps(value, ensure_ascii=False, allow_nan=False)
        return
    is_dict = isinstance(value, dict)
    before = "\n" + "  " * (depth + 1)
    yield "{" if is_dict else "["
    for n, item in enumerate(value):
        yield "," + before if n else before
        if is_dict:
            yield json.dumps(item, ensure_ascii=False) + ": "
        yield from _encoded(value[item] if is_dict else item, depth + 1)
    yield "\n" + "  " * depth + ("}" if is_dict else "]")


def _table_rows(table: Table) -> list[dict[str, Any]]:
    times = {c.key for c in table.columns if c.kind == "time"}
    return [
        {k: units.rfc3339(v) if k in times and isinstance(v, int) else plain(v, k) for k, v in row.items()}
        for row in table.rows
    ]


def json_text(document: Document) -> str:
    """The answer's data, or where it has none its tables by name."""
    data = (
        plain(document.data)
        if document.data is not None
        else {table.name: _table_rows(table) for table in document.tables}
    )
    if isinstance(data, dict) and document.warnings and "warnings" not in data:
        data["warnings"] = document.warnings
    return spell_json("".join(_encoded(data))) + "\n"


def csv_text(document: Document, section: str | None = None) -> str:
    """One table: the one named, else the document's main one. UserError names the tables that there are."""
    name = section or document.main or (document.tables[0].name if document.tables else "")
    try:
        table = document.table(name)
    except KeyError:
        raise UserError(
            f"--section {name}: there is no such section", "sections: " + ", ".join(t.name for t in document.tables)
        ) from None
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_text(c.key) for c in table.columns])
    for row in _table_rows(table):
        writer.writerow([_cell(row.get(c.key)) for c in table.columns])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return _text(";".join(value))
    if isinstance(value, (dict, list)):
        return _text(json.dumps(value, ensure_ascii=False))
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    """A text that no spreadsheet takes for a formula, in one line."""
    return spell("'" + value if value.startswith(_FORMULA) else value)
