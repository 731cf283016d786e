# SPDX-License-Identifier: Apache-2.0
"""The time that a sweep looks at."""

from __future__ import annotations

import dataclasses
import datetime
import time

from ..errors import UserError
from ..lake.session import LATE_US, Scope
from ..units import parse_duration_us

HOUR_US = 3_600_000_000
SLACK_US = LATE_US


@dataclasses.dataclass(frozen=True)
class Period:
    """[since_us, until_us), microseconds since 1970 UTC. Hours are UTC hours, cut at both ends."""

    since_us: int
    until_us: int
    window_us: int = HOUR_US

    @property
    def scope(self) -> Scope:
        """The records that can describe it."""
        return Scope(since_us=self.since_us, until_us=self.until_us + SLACK_US)

    def inside(self, start_us: int, end_us: int) -> int:
        """Microseconds of an interval that lie in the period."""
        return max(0, min(end_us, self.until_us) - max(start_us, self.since_us))


def of_options(since: str, until: str | None, now_us: int | None = None) -> Period:
    """The period of --since and --until, each a duration before now (--since: before --until) or a time."""
    now = int(time.time() * 1e6) if now_us is None else now_us
    end = now if until is None else _moment("--until", until, now)
    begin = _moment("--since", since, end)
    if begin >= end:
        raise UserError(f"--since {since} is not before --until {until or 'now'}", "write the earlier time first")
    return Period(begin, end)


def _moment(option: str, text: str, before_us: int) -> int:
    try:
        if text[-1:].isalpha() and text[-1] != "Z":
            return before_us - parse_duration_us(text)
        when = datetime.datetime.fromisoformat(text)
    except (ValueError, OverflowError) as e:
        raise UserError(
            f'{option}: "{text}" is neither a duration nor a time', "write 7d, 12h, 2026-11-21 or 2026-11-21T08:00Z"
        ) from e
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    span = when - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return span // datetime.timedelta(microseconds=1)
