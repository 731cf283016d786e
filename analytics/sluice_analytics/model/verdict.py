# SPDX-License-Identifier: Apache-2.0
"""What the agent found of a task or run: what it would be bound by on an idle host, and what it was denied.

Task and Run records have both since schema 7 (demand, denied). A record of an older agent has one word, `bound`, from
which the same follows here as far as it can: STARVED is a denial that hides the demand, and IDLE does not name what was
waited for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from ..lake.session import Row

COLUMNS = ("demand", "demand_confidence", "waiting_for", "denied", "denied_share", "bound", "share_run_delay")
"""The columns of a task or run from which of_record() makes a verdict"""

WAITING = "WAITING_FOR"
NOTHING = "NOTHING"

_OF_BOUND = {
    "COMPUTE": "COMPUTE", "MEMORY": "MEMORY", "IO": "STORAGE", "NETWORK": "NETWORK", "IDLE": WAITING, "MIXED": "MIXED",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Verdict:
    """As the fields of the Task schema; None: unknown."""

    demand: str | None = None
    demand_confidence: float | None = None
    waiting_for: str | None = None
    denied: str | None = None
    denied_share: float | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """By name, for the rows of reports, which have them beside each other."""
        return dict(vars(self))


def of_record(row: Row) -> Verdict:
    """The verdict in a record of a task or run that has COLUMNS."""
    if row["demand"] is not None or row["denied"] is not None:
        return Verdict(row["demand"], row["demand_confidence"], row["waiting_for"], row["denied"], row["denied_share"])
    if row["bound"] == "STARVED":
        return Verdict(denied="RUN_QUEUE", denied_share=row["share_run_delay"])
    return Verdict(demand=_OF_BOUND.get(row["bound"]))


def agreed(verdicts: Iterable[Verdict]) -> Verdict:
    """What several have in common: a part of which two differ is None. Of confidence and share the least."""
    found = list(verdicts)

    def same(name: str) -> Any:
        values = {getattr(v, name) for v in found}
        return values.pop() if len(values) == 1 else None

    def least(name: str) -> float | None:
        values = [getattr(v, name) for v in found]
        return None if not values or None in values else min(values)

    demand, denied = same("demand"), same("denied")
    return Verdict(
        demand,
        least("demand_confidence") if demand else None,
        same("waiting_for"),
        denied,
        least("denied_share") if denied else None,
    )
