# SPDX-License-Identifier: Apache-2.0
"""SQL as DuckDB writes it.

A prepared statement has parameters neither for names nor in CREATE VIEW and LOAD, so that values are written into the
text, in one way everywhere.
"""

from __future__ import annotations

from .session import Scope


def literal(value: str) -> str:
    """A string as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name as DuckDB writes it."""
    return '"' + name.replace('"', '""') + '"'


def where(scope: Scope) -> str:
    """A scope as a WHERE, with a blank in front; empty where it has no bound."""
    parts = []
    if scope.since_us is not None:
        parts.append(f"{quoted('time')} >= {scope.since_us}")
    if scope.until_us is not None:
        parts.append(f"{quoted('time')} < {scope.until_us}")
    for name, values in (("run_id", scope.run_ids), ("host_id", scope.hosts)):
        if values is not None:
            parts.append(f"{quoted(name)} IN ({', '.join(literal(v) for v in values)})" if values else "FALSE")
    return " WHERE " + " AND ".join(parts) if parts else ""
