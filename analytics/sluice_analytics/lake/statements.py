# SPDX-License-Identifier: Apache-2.0
"""SQL of expressions for DuckDB: made ahead, where sluice_analytics/ahead.py has run, else by Ibis.

The file has the SQL of each expression by its key, in pieces between its holes, and the columns of those whose columns
are asked for. A key has all of an expression, and the columns of the tables it rests on: an expression that was
changed since has another key, is not found, and is compiled.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from typing import TYPE_CHECKING, Any

import duckdb

from .expression import Expression, Hole, build, is_table, key_of
from .sql import literal

if TYPE_CHECKING:
    import ibis.expr.types as ir

FILE = os.path.join(os.path.dirname(__file__), "statements.json")
"""What is made ahead: beside this module, and not in git"""

asked: dict[str, Any] = {}
"""The expressions whose SQL or columns were not in the file, by key"""


@functools.cache
def _known() -> dict[str, dict[str, Any]]:
    """SQL and columns by key: what was made ahead for this DuckDB, if anything, and what was made since."""
    try:
        with open(FILE, encoding="utf-8") as f:
            content = json.load(f)
        if content["duckdb"] == duckdb.__version__:
            return {"sql": dict(content["sql"]), "columns": dict(content["columns"])}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {"sql": {}, "columns": {}}


@functools.cache
def _backend() -> Any:
    import ibis.backends.duckdb

    return ibis.backends.duckdb.Backend()


def sql_of(expression: ir.Table) -> str:
    """The SQL of an expression."""
    if not isinstance(expression, Expression):
        return str(_backend().compile(expression))
    key, holes = key_of(expression)
    known = _known()["sql"]
    if key not in known:
        pieces = _pieces_of(expression)
        if pieces is None:
            return str(_backend().compile(build(expression)))
        asked[key] = expression
        known[key] = pieces
    texts = [_text(hole) for hole in holes]
    return "".join(piece if isinstance(piece, str) else texts[piece] for piece in known[key])


def columns_of(expression: ir.Table) -> dict[str, str]:
    """The columns of an expression and their Ibis types, in order."""
    key, holes = key_of(expression)
    if is_table(expression):
        return dict(holes[0].type)
    known = _known()["columns"]
    if key not in known:
        asked[key] = expression
        known[key] = [(name, str(kind).lstrip("!")) for name, kind in build(expression).schema().items()]
    return dict(known[key])


def _text(hole: Hole) -> str:
    if hole.kind == "values":
        return ", ".join(map(_value, hole.value))
    return f'"{hole.value}"' if hole.kind == "table" else _value(hole.value)


def _value(value: Any) -> str:
    return literal(value) if isinstance(value, str) else repr(value)


_MARK, _FIRST = "sluice_hole_", 6_172_839_450_000_000


def _mark(hole: Hole, n: int) -> Any:
    """A value that stands for a hole in SQL, and can be found in it again."""
    first: Any = hole.value[0] if hole.kind == "values" else hole.value
    one: Any = f"{_MARK}{n:03}" if isinstance(first, str) else _FIRST + 2 * n
    if isinstance(first, float):
        one += 0.5
    # Two values: one alone is not written as a list.
    return (one, f"{one}_" if isinstance(one, str) else one + 1) if hole.kind == "values" else one


def _pieces_of(expression: Any) -> list[str | int] | None:
    """An expression's SQL between its holes, and these by their number.

    Ibis leaves out what is not selected, and a hole with it. None: one is also in a name that Ibis makes of it, such as
    that of a column without a name.
    """
    holes = key_of(expression)[1]
    marks = [_mark(hole, n) for n, hole in enumerate(holes)]
    of = {id(hole): mark for hole, mark in zip(holes, marks, strict=True)}
    text = str(_backend().compile(build(expression, lambda hole: of[id(hole)])))
    found: list[str | int] = [text]
    for n, (hole, mark) in enumerate(zip(holes, marks, strict=True)):
        split: list[str | int] = []
        for piece in found:
            if isinstance(piece, int):
                split.append(piece)
                continue
            for part in piece.split(_text(Hole(hole.kind, mark, hole.type))):
                split += [part, n]
            split.pop()
        found = split
    rest = "".join(piece for piece in found if isinstance(piece, str)).replace(".", "")
    if _MARK in rest or str(_FIRST)[:10] in rest:
        return None
    return [piece for piece in found if piece != ""]


def write() -> None:
    """Writes the file: all that is known."""
    content = {"duckdb": duckdb.__version__, **_known()}
    with open(FILE + ".part", "w", encoding="utf-8") as f:
        json.dump(content, f, indent=0, sort_keys=True)
    os.replace(FILE + ".part", FILE)


def forget() -> None:
    """Removes the file, and what is known."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(FILE)
    asked.clear()
    _known.cache_clear()
