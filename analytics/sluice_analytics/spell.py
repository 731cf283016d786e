# SPDX-License-Identifier: Apache-2.0
"""Text of others as people may read it: what it contains cannot act on a terminal, nor hide there.

The same as src/base/spell.h, for the same characters: control characters, and those that cannot be seen where they are
or reorder the text around them. A newline becomes \\n, a tab \\t, and any other each of its bytes of UTF-8 as \\xNN.
"""

from __future__ import annotations

import re

_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[\\x00-\\x1f\\x7f-\\x9f\ud800-\udfff{_UNSEEN}]")
_HIDDEN_IN_JSON = re.compile(f"[\\x7f-\\x9f{_UNSEEN}]")
_SHORT = {"\n": "\\n", "\t": "\\t"}


def _spelt(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    if "\udc80" <= character <= "\udcff":  # a byte that was not UTF-8, of a name from the operating system
        return f"\\x{ord(character) - 0xDC00:02x}"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def spell(text: str) -> str:
    """One line of text."""
    return _HIDDEN.sub(_spelt, text)


def spell_lines(text: str) -> str:
    """Text where newlines and tabs are what they are, and harmless."""
    return _HIDDEN.sub(lambda m: m[0] if m[0] in _SHORT else _spelt(m), text)


def spell_json(json: str) -> str:
    """Valid JSON: what is hidden in its strings becomes \\uXXXX, so that the value stays the same."""
    return _HIDDEN_IN_JSON.sub(
        lambda m: "".join(f"\\u{unit:04x}" for unit in memoryview(m[0].encode("utf-16-le")).cast("H")),
        json,
    )
