# SPDX-License-Identifier: Apache-2.0
"""SQL that DuckDB and Flink write alike."""

from __future__ import annotations

from collections.abc import Callable

from .session import Scope


def literal(value: str) -> str:
    """A string as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name as DuckDB writes it."""
    return '"' + name.replace('"', '""') + '"'


def where(scope: Scope, quote: Callable[[str], str] = quoted) -> str:
    """A scope as a WHERE, with a blank in front; empty where it has no bound. quote: how the engine writes names."""
    parts = []
    if scope.since_us is not None:
        parts.append(f"{quote('time')} >= {scope.since_us}")
    if scope.until_us is not None:
        parts.append(f"{quote('time')} < {scope.until_us}")
    for name, values in (("run_id", scope.run_ids), ("host_id", scope.hosts)):
        if values is not None:
            parts.append(f"{quote(name)} IN ({', '.join(literal(v) for v in values)})" if values else "FALSE")
    return " WHERE " + " AND ".join(parts) if parts else ""
