# SPDX-License-Identifier: Apache-2.0
"""What every answer is before it is printed: tables with typed columns, sentences, and the same as data.

A command makes one Document; report/terminal.py prints it for people, report/machine.py as JSON or CSV.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

Kind = Literal["text", "count", "number", "size", "ns", "percent", "money", "energy", "time", "cores"]
"""How a value is written for people: size in bytes, ns a duration in nanoseconds, percent a share of 1, time in
microseconds since 1970 UTC, cores a mean number of CPUs in use. JSON and CSV carry the number itself."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column: its key in the rows and in JSON and CSV (with the unit in the name), its heading, its kind."""

    key: str
    title: str
    kind: Kind = "text"


@dataclasses.dataclass
class Table:
    """A named table. rows: one dict a line; keys that no column names are for JSON alone."""

    name: str
    title: str
    columns: list[Column]
    rows: list[dict[str, Any]]
    note: str = ""


@dataclasses.dataclass
class Document:
    """An answer. data: what --format json prints; None: the tables by name. --format csv prints the table `main`."""

    title: str
    facts: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    tables: list[Table] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    data: Any = None
    main: str = ""
    currency: str = "USD"

    def table(self, name: str) -> Table:
        """The table of that name; KeyError where there is none."""
        for t in self.tables:
            if t.name == name:
                return t
        raise KeyError(name)
