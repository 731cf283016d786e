# SPDX-License-Identifier: Apache-2.0
"""Rows of an engine as plain Python values, of the types that the expression promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .session import Row


def plain_rows(found: Iterable[Row], schema: Any) -> list[Row]:
    """The rows with each value of its column's Ibis type in schema: an engine may widen a sum to a decimal."""
    made: dict[str, Callable[[Any], Any]] = {}
    for name, kind in schema.items():
        if kind.is_integer():
            made[name] = int
        elif kind.is_floating():
            made[name] = float
        elif kind.is_boolean():
            made[name] = bool
    return [
        {name: made[name](value) if value is not None and name in made else value for name, value in row.items()}
        for row in found
    ]
