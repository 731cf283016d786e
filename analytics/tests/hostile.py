# SPDX-License-Identifier: Apache-2.0
"""The names of tests/fixtures/hostile_names.tsv, for every test of an output."""

from __future__ import annotations

import dataclasses
import pathlib

_FILE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "hostile_names.tsv"


@dataclasses.dataclass(frozen=True)
class Name:
    """what: what it is; raw: its bytes; spelt: the text that people read of it."""

    what: str
    raw: bytes
    spelt: str

    @property
    def text(self) -> str:
        """As a record has it: UTF-8, other bytes as \\xNN."""
        return self.raw.decode("utf-8", "backslashreplace")


def names() -> list[Name]:
    """All of them."""
    found = []
    for line in _FILE.read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("#"):
            what, raw, spelt = line.split("\t")
            raw, _, times = raw.partition("*")
            n = int(times or 1)
            found.append(Name(what, bytes.fromhex(raw) * n, spelt * n))
    assert len(found) > 50, "the file is not what it was"
    return found
