# SPDX-License-Identifier: Apache-2.0
"""demand and denied as people read them, in the words of `sluice run`: waits: pipe, network fs, run queue 45%."""

from __future__ import annotations

from .. import units
from ..model.verdict import NOTHING, WAITING
from .document import Column


def _word(name: str) -> str:
    return name.lower().replace("_", " ")


def demand_text(demand: str | None, waiting_for: str | None) -> str | None:
    """waits: pipe, network fs, compute; several values, as a comparison has them, with commas between them."""
    if demand is None:
        return None
    waits = f"waits: {_word(waiting_for)}" if waiting_for else "waits"
    return ", ".join(waits if name == WAITING else _word(name) for name in demand.split(", "))


def denied_text(denied: str | None, share: float | None) -> str | None:
    """run queue 45%; None where nothing is known to have been denied. Several values as for demand_text."""
    names = [_word(name) for name in denied.split(", ") if name != NOTHING] if denied else []
    if not names:
        return None
    return ", ".join(names) + (f" {units.percent(share)}" if share is not None else "")


def texts(
    demand: str | None, waiting_for: str | None, denied: str | None, share: float | None
) -> dict[str, str | None]:
    """Both, as a table's row has them in place of the fields of these names."""
    return {"demand": demand_text(demand, waiting_for), "denied": denied_text(denied, share)}


COLUMNS = [Column("demand", "demand"), Column("denied", "denied")]
"""The columns of texts()"""
