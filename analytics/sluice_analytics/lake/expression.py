# SPDX-License-Identifier: Apache-2.0
"""Ibis expressions, written down as they are built and handed to Ibis when it is needed.

Ibis takes 0.5 s to load and as long again to make SQL of a command's questions, which are the same each time. What
`ibis` and Session.table() give here are Expressions: they take any method, operator and function of Ibis, and note
it. Two that were noted alike have the same key, in each process, so that SQL which was made ahead (statements.py) is
found by it, and Ibis is not loaded. build() makes Ibis' own expression of one.

What differs between two runs of a command is a hole in the key: tables, `ibis.literal(value, type)` with a type, and
the values of isin(). All other values are part of the key: a value that varies without being a literal with a type
costs the time of compilation, and nothing else.
"""

from __future__ import annotations

import hashlib
import itertools
import operator
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ibis as ibis
    import ibis.expr.types as ir

_numbers = itertools.count()


class Hole:
    """A value that is no part of the key: a table's name, a literal, the values of isin(). kind: which of these.

    type: the literal's Ibis type; of a table its columns and their types.
    """

    __slots__ = ("kind", "type", "value")

    def __init__(self, kind: str, value: Any, type: Any) -> None:
        self.kind, self.value, self.type = kind, value, type


class _Node:
    """What was noted: a verb and what it was given; holes in the order in which they appear, each once."""

    __slots__ = ("args", "built", "holes", "key", "number", "verb")

    def __init__(self, verb: str, args: tuple[Any, ...], holes: tuple[Hole, ...] = ()) -> None:
        self.verb, self.args = verb, args
        self.built: Any = None
        self.number = next(_numbers)
        at = {id(hole): n for n, hole in enumerate(holes)}
        found = list(holes)

        def coded(value: Any) -> str:
            if isinstance(value, Expression):
                node = value.node__
                for hole in node.holes:
                    if id(hole) not in at:
                        at[id(hole)] = len(found)
                        found.append(hole)
                return f"<{node.key} {[at[id(hole)] for hole in node.holes]}>"
            if isinstance(value, list | tuple):
                return f"[{','.join(map(coded, value))}]"
            if isinstance(value, dict):
                return f"{{{','.join(f'{name}:{coded(v)}' for name, v in value.items())}}}"
            if value is None or isinstance(value, str | int | float):
                return repr(value)
            raise TypeError(f"{value!r} cannot be part of an expression: write it with the ibis of this module")

        text = f"{verb} {coded(args)}"
        self.key = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        self.holes = tuple(found)


class Expression:
    """An Ibis expression that was noted; all but node__ is Ibis'."""

    __slots__ = ("node__",)
    node__: _Node

    def __init__(self, verb: str, *args: Any, holes: tuple[Hole, ...] = ()) -> None:
        object.__setattr__(self, "node__", _Node(verb, args, holes))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Expression("attribute", self, name)

    def __getitem__(self, name: Any) -> Any:
        return Expression("item", self, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Notes a call. A function of a table, as Ibis takes them, is what it makes of the table that is meant."""
        args = tuple(a(ibis._) if isinstance(a, types.FunctionType) else a for a in args)
        named = {name: a(ibis._) if isinstance(a, types.FunctionType) else a for name, a in named.items()}
        node = self.node__
        if node.verb == "attribute" and not named:
            if node.args[1] == "literal" and node.args[0] is ibis and len(args) == 2:
                return _hole("literal", args[0], args[1])
            if node.args[1] == "isin" and args[0]:
                return Expression("call", self, (_hole("values", tuple(args[0]), None),), {})
        return Expression("call", self, args, named)

    def __iter__(self) -> Any:
        raise TypeError("an expression has no rows before Session.rows()")

    def __bool__(self) -> bool:
        raise TypeError("an expression has no value before Session.rows()")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> Any:
        return Expression("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return Expression("ne", self, other)


def _hole(kind: str, value: Any, type: Any) -> Expression:
    return Expression("hole", kind, type, holes=(Hole(kind, value, type),))


def _add_operators() -> dict[str, Callable[..., Any]]:
    """Makes operators of Expression note themselves; what each does, by the name that they are noted by."""
    found: dict[str, Callable[..., Any]] = {}
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "lt", "le", "gt", "ge"):
        found[name] = getattr(operator, name + "_" if name in ("and", "or") else name)
        setattr(Expression, f"__{name}__", lambda a, b, verb=name: Expression(verb, a, b))
        setattr(Expression, f"__r{name}__", lambda a, b, verb=name: Expression(verb, b, a))
    for name in ("invert", "neg"):
        found[name] = getattr(operator, name)
        setattr(Expression, f"__{name}__", lambda a, verb=name: Expression(verb, a))
    return found


_VERBS: dict[str, Callable[..., Any]] = {
    **_add_operators(),
    "eq": operator.eq,
    "ne": operator.ne,
    "attribute": getattr,
    "item": operator.getitem,
    "call": lambda a, args, named: a(*args, **named),
}

if not TYPE_CHECKING:
    ibis = Expression("ibis")


def table(name: str, columns: Mapping[str, str]) -> ir.Table:
    """A table or view of the engine: its columns with their Ibis types, in order."""
    kinds = tuple(columns.items())
    found: Any = Expression("hole", "table", kinds, holes=(Hole("table", name, kinds),))
    return found  # type: ignore[no-any-return]


def identity(expression: ir.Table) -> tuple[Any, ...]:
    """The same for expressions that are equal, with what their holes hold."""
    node = _node(expression)
    return node.key, *((hole.kind, hole.value) for hole in node.holes)


def key_of(expression: ir.Table) -> tuple[str, tuple[Hole, ...]]:
    """The key of an expression, and its holes."""
    node = _node(expression)
    return node.key, node.holes


def is_table(expression: ir.Table) -> bool:
    """Is it a table or view of the engine itself?"""
    return _node(expression).verb == "hole"


def _node(expression: Any) -> _Node:
    node: _Node = expression.node__
    return node


def _below(expression: Expression, is_known: Callable[[_Node], bool]) -> list[_Node]:
    """What an expression rests on, and itself, in the order in which it was noted; not below what is known."""
    found: dict[int, _Node] = {}
    waiting: list[Any] = [expression]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Expression):
            node = value.node__
            if node.number not in found:
                found[node.number] = node
                if not is_known(node):
                    waiting.extend(node.args)
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
    return [found[number] for number in sorted(found)]


def build(expression: Any, fill: Callable[[Hole], Any] | None = None) -> Any:
    """Ibis' own expression. fill: what to write into a hole, instead of what it holds.

    What is no Expression is Ibis' already, and returned as it is.
    """
    import ibis as library

    if not isinstance(expression, Expression):
        return expression
    made: dict[int, Any] = {}

    def valued(value: Any) -> Any:
        if isinstance(value, Expression):
            return made[value.node__.number]
        if isinstance(value, list | tuple):
            return type(value)(map(valued, value))
        if isinstance(value, dict):
            return {name: valued(v) for name, v in value.items()}
        return value

    for node in _below(expression, lambda n: fill is None and n.built is not None):
        if fill is None and node.built is not None:
            result = node.built
        elif node.verb == "ibis":
            result = library
        elif node.verb == "hole":
            hole = node.holes[0]
            result = _filled(library, hole, hole.value if fill is None else fill(hole))
        else:
            result = _VERBS[node.verb](*map(valued, node.args))
        made[node.number] = result
        if fill is None:
            node.built = result
    return made[expression.node__.number]


def _filled(library: Any, hole: Hole, value: Any) -> Any:
    if hole.kind == "table":
        return library.table(dict(hole.type), name=value)
    return library.literal(value, hole.type) if hole.kind == "literal" else list(value)
