# SPDX-License-Identifier: Apache-2.0
"""Values of options that several commands take."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import UserError
from .units import parse_duration_us


def pairs(option: str, texts: Iterable[str], hint: str = "") -> dict[str, str]:
    """KEY=VALUE, given once or more, as a dictionary; the last of a key wins. UserError names option and text."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{option} {text}: is not KEY=VALUE", hint)
        found[key.strip()] = value.strip()
    return found


def duration_us(option: str, text: str) -> int:
    """A duration such as 7d in microseconds. UserError names the option."""
    try:
        return parse_duration_us(text)
    except ValueError as e:
        raise UserError(f"{option}: {e}") from e
