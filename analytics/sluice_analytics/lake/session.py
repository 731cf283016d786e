# SPDX-License-Identifier: Apache-2.0
"""One lake on one engine: the only door through which an analysis gets records."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:  # Ibis takes 0.3 s to load, and options are read without it
    import ibis.expr.types as ir

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Scope:
    """Which records an analysis needs: engines read no more files than that takes.

    Times are microseconds since 1970 UTC and bound a record's `time` (when it was written), the upper
    one excluded. None: no bound. hosts are host_ids.
    """

    since_us: int | None = None
    until_us: int | None = None
    run_ids: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None


ALL = Scope()

LATE_US = 3_600_000_000
"""Records are written, and files closed, up to so much later than the times that they describe (microseconds)"""


class Session(Protocol):
    """A lake and the engine that reads it. close() ends what open() began; use it as a context manager.

    Its classes inherit from it, for the context manager.
    """

    engine: str
    """duckdb or spark"""

    source: str
    """The lake as the user named it, for messages"""

    warnings: list[str]
    """What the reader should know: files that were skipped, schemas from the future"""

    def table(self, topic: str, scope: Scope = ALL) -> ir.Table:
        """Records of a topic within scope, each columns.KEY once, with the columns of columns.COLUMNS[topic].

        A topic of which the lake has no record is an empty table, not an error.
        """
        ...

    def kept(self, expression: ir.Table) -> ir.Table:
        """The same rows, for expressions that several others rest on: worked out once, where the engine can.

        Until close(), as of now: records that come later are not in it.
        """
        ...

    def rows(self, expression: ir.Table) -> list[Row]:
        """Runs an expression and returns its rows as plain Python values, in its order."""
        ...

    def close(self) -> None:
        """Ends the engine."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@runtime_checkable
class Growing(Protocol):
    """A session whose source is as it was when it began, until refresh(). Others look at each table()."""

    def refresh(self) -> None:
        """Tables that are made from now on have what the source has by then."""
        ...
