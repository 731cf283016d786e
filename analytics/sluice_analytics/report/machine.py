# SPDX-License-Identifier: Apache-2.0
"""A Document as JSON or CSV, for programs.

JSON and CSV have the names of units.py's plain values: `_ns`, `_bytes`, shares of 1. Times are RFC 3339 in
UTC with microseconds, as `sluice cat` prints them; what is unknown is null in JSON and empty in CSV.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from typing import Any

from .. import units
from ..errors import UserError
from .document import Document, Table


def plain(value: Any, key: str = "") -> Any:
    """Dataclasses, lists and dicts as JSON has them; an integer under `time` or `*_time` becomes RFC 3339."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): plain(v, str(k)) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, key) for v in value]
    if isinstance(value, int) and not isinstance(value, bool) and (key == "time" or key.endswith("_time")):
        return units.rfc3339(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number
    return value


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
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def csv_text(document: Document, section: str | None = None) -> str:
    """One table: the one named, else the document's main one. UserError names the tables that there are."""
    name = section or document.main or (document.tables[0].name if document.tables else "")
    try:
        table = document.table(name)
    except KeyError:
        raise UserError(
            f"--section {name}: there is no such section", "there are " + ", ".join(t.name for t in document.tables)
        ) from None
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([c.key for c in table.columns])
    for row in _table_rows(table):
        writer.writerow([_cell(row.get(c.key)) for c in table.columns])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ";".join(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return value
