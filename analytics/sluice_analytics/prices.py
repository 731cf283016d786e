# SPDX-License-Identifier: Apache-2.0
"""The user's price table. Unknown prices stay unknown, never 0.

A CSV file with a heading: provider,region,instance_type,lifecycle,usd_per_hour and, where wanted,
vcpu,mem_gib,gpu,host. A row matches a host by every one of provider, region, instance_type, lifecycle and
host (host_name, or a pattern with *) that is not empty in the row; the most specific row wins.
"""

from __future__ import annotations

import csv
import dataclasses
import fnmatch

from .errors import UserError

_REQUIRED = ("instance_type", "usd_per_hour")
_KNOWN = ("provider", "region", "instance_type", "lifecycle", "usd_per_hour", "vcpu", "mem_gib", "gpu", "host")


@dataclasses.dataclass(frozen=True)
class Price:
    """One row: money an hour, and the shape of that machine where the row has it."""

    provider: str
    region: str
    instance_type: str
    lifecycle: str
    host: str
    per_hour: float
    vcpu: float | None
    mem_gib: float | None
    gpu: float | None


@dataclasses.dataclass
class Prices:
    """A price table; empty: nothing is known."""

    rows: list[Price] = dataclasses.field(default_factory=list)
    currency: str = "USD"

    def of_host(
        self,
        host_name: str | None,
        instance_type: str | None,
        region: str | None = None,
        provider: str | None = None,
        lifecycle: str | None = None,
    ) -> Price | None:
        """The most specific row that fits a host; None: unknown."""
        best: tuple[int, Price] | None = None
        for row in self.rows:
            fits = [
                (row.provider, provider), (row.region, region), (row.instance_type, instance_type),
                (row.lifecycle, lifecycle), (row.host, host_name),
            ]  # fmt: skip
            asked = [(want, have) for want, have in fits if want]
            if asked and all(have is not None and fnmatch.fnmatchcase(have, want) for want, have in asked):
                weight = len(asked) + (100 if row.host else 0)
                if best is None or weight > best[0]:
                    best = (weight, row)
        return best[1] if best else None


def read(path: str) -> Prices:
    """Reads a price table; UserError names file, line and column."""
    try:
        with open(path, newline="", encoding="utf-8") as f:
            lines = list(csv.DictReader(f))
            heading = list(lines[0]) if lines else []
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}", "name a price table with --prices FILE") from e
    except (UnicodeDecodeError, csv.Error) as e:
        raise UserError(f"{path}: is no CSV file: {e}") from e
    for name in _REQUIRED:
        if name not in heading:
            raise UserError(f"{path}: line 1: no column {name}", "the heading is " + ",".join(_KNOWN))
    for name in heading:
        if name not in _KNOWN:
            raise UserError(f"{path}: line 1: unknown column {name}", "known are " + ",".join(_KNOWN))
    return Prices([_row(path, n, line) for n, line in enumerate(lines, 2)])


def _row(path: str, n: int, line: dict[str, str | None]) -> Price:
    def number(name: str) -> float | None:
        text = (line.get(name) or "").strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise UserError(f'{path}: line {n}: {name}: "{text}" is no number') from None
        if value < 0:
            raise UserError(f"{path}: line {n}: {name}: {text} is below 0")
        return value

    def text(name: str) -> str:
        return (line.get(name) or "").strip()

    per_hour = number("usd_per_hour")
    if per_hour is None:
        raise UserError(f"{path}: line {n}: no usd_per_hour", "leave the row out where the price is unknown")
    return Price(
        text("provider"), text("region"), text("instance_type"), text("lifecycle"), text("host"), per_hour,
        number("vcpu"), number("mem_gib"), number("gpu"),
    )  # fmt: skip
