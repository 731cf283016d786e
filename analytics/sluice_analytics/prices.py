# SPDX-License-Identifier: Apache-2.0
"""The user's price table, and what a share of a machine costs. Unknown prices stay unknown, never 0.

The cost of work is price * hours * share. The share is the larger of the work's shares of the machine's CPUs and of
its memory, at most 1. The larger of two sums is not the sum of the larger ones, so that the costs of parts do not add
up to the cost of the whole.

A CSV file with a heading: provider,region,instance_type,lifecycle,usd_per_hour and, where wanted,
vcpu,mem_gib,gpu,host. A row matches a host by its instance_type or its host (host_name, or a pattern with *),
and by every other one of provider, region, instance_type, lifecycle and host that is not empty in the row.
A column of which the records of a host have nothing rules no row out. The most specific row wins; where equally
specific ones disagree, the table does not decide, and Prices.disagreement() names their lines.
"""

from __future__ import annotations

import csv
import dataclasses
import fnmatch
import math

from .errors import UserError

_REQUIRED = ("instance_type", "usd_per_hour")
_KNOWN = ("provider", "region", "instance_type", "lifecycle", "usd_per_hour", "vcpu", "mem_gib", "gpu", "host")

HOUR_NS = 3_600_000_000_000


def larger_share(*parts: tuple[float | None, float | None]) -> float | None:
    """The largest amount / capacity of such pairs; None: of no pair both are known."""
    return max((amount / capacity for amount, capacity in parts if amount is not None and capacity), default=None)


def cost_of_share(per_hour: float | None, ns: float | None, share: float | None = 1.0) -> float | None:
    """Money for a share of a machine for a time in nanoseconds; None: one of them is unknown."""
    if per_hour is None or ns is None or share is None:
        return None
    return per_hour * ns / HOUR_NS * min(1.0, share)


def add(costs: list[float | None]) -> float | None:
    """The sum; None as soon as one part is unknown, since half a sum would be read as the whole."""
    return sum(c for c in costs if c is not None) if costs and None not in costs else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Price:
    """One row: money an hour, and the shape of that machine where the row has it."""

    per_hour: float
    line: int = 0
    """In the file that it is of"""
    provider: str = ""
    region: str = ""
    instance_type: str = ""
    lifecycle: str = ""
    host: str = ""
    vcpu: float | None = None
    mem_gib: float | None = None
    gpu: float | None = None


@dataclasses.dataclass
class Prices:
    """A price table; empty: nothing is known."""

    rows: list[Price] = dataclasses.field(default_factory=list)
    currency: str = "USD"
    path: str = ""

    def of_host(
        self,
        host_name: str | None,
        instance_type: str | None,
        region: str | None = None,
        provider: str | None = None,
        lifecycle: str | None = None,
    ) -> Price | None:
        """The most specific row that fits a host; None: unknown, for no row fits or equal ones disagree."""
        rows = self.candidates(host_name, instance_type, region, provider, lifecycle)
        return rows[0] if rows and len({row.per_hour for row in rows}) == 1 else None

    def candidates(
        self,
        host_name: str | None,
        instance_type: str | None,
        region: str | None = None,
        provider: str | None = None,
        lifecycle: str | None = None,
    ) -> list[Price]:
        """The most specific rows that fit a host; several with different prices: the table does not decide."""
        best: list[Price] = []
        heaviest = 0
        for row in self.rows:
            fits = [
                (row.provider, provider), (row.region, region), (row.instance_type, instance_type),
                (row.lifecycle, lifecycle), (row.host, host_name),
            ]  # fmt: skip
            known = [(want, have) for want, have in fits if want and have is not None]
            is_named = bool((row.host and host_name) or (row.instance_type and instance_type))
            if not is_named or not all(fnmatch.fnmatchcase(have, want) for want, have in known):
                continue
            weight = len(known) + (100 if row.host else 0)
            if weight > heaviest:
                best, heaviest = [], weight
            if weight == heaviest:
                best.append(row)
        return best

    def disagreement(self, *names: str | None) -> str | None:
        """A sentence with the lines of the rows that fit a host alike and differ in price; None: there are none.

        names: those of candidates(), in its order, all five.
        """
        rows = self.candidates(*names)
        if len({row.per_hour for row in rows}) < 2:
            return None
        host_name, _, region, provider, lifecycle = names
        keys = (
            ("host.region", region, {row.region for row in rows}),
            ("host.cloud", provider, {row.provider for row in rows}),
            ("host.lifecycle", lifecycle, {row.lifecycle for row in rows}),
        )
        deciding = "".join(
            f"{key} in its agent's configuration or " for key, have, wants in keys if have is None and len(wants) > 1
        )
        lines = ", ".join(str(row.line) for row in rows)
        return (
            f"{self.path}: lines {lines}: these rows apply to {host_name} alike and disagree: "
            f"{deciding}a row with its name in the column host decides"
        )


def read(path: str) -> Prices:
    """Reads a price table; UserError names file, line and column. Lines that begin with # are remarks."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as f:
            numbered = [(n, line) for n, line in enumerate(f, 1) if line.strip() and not line.startswith("#")]
        cells = list(csv.reader((line for _, line in numbered), strict=True))
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}", "name a price table with --prices FILE") from e
    except (UnicodeDecodeError, csv.Error) as e:
        raise UserError(f"{path}: is not a CSV file: {e}") from e
    first = numbered[0][0] if numbered else 1
    heading = [name.strip() for name in cells[0]] if cells else []
    for name in _REQUIRED:
        if name not in heading:
            raise UserError(f"{path}: line {first}: no column {name}", "the header is " + ",".join(_KNOWN))
    for name in heading:
        if name not in _KNOWN:
            raise UserError(f"{path}: line {first}: unknown column {name}", "known columns are " + ",".join(_KNOWN))
    if len(cells) != len(numbered):
        raise UserError(f"{path}: a quoted cell has more than one line", "write each row on a line of its own")
    return Prices([_row(path, n, heading, row) for (n, _), row in zip(numbered[1:], cells[1:], strict=True)], path=path)


# A row is checked by hand: pydantic takes 40 ms to load, and its messages do not name the line of a file.


def _row(path: str, n: int, heading: list[str], cells: list[str]) -> Price:
    if len(cells) != len(heading):
        raise UserError(f"{path}: line {n}: has {len(cells)} columns, the header has {len(heading)}")
    line = {name: cell.strip() for name, cell in zip(heading, cells, strict=True)}

    def number(name: str) -> float | None:
        text = line.get(name, "")
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise UserError(f'{path}: line {n}: {name}: "{text}" is not a number') from None
        if not (0 <= value < math.inf):
            raise UserError(f"{path}: line {n}: {name}: {text} is not an amount", "write a number, 0 or larger")
        return value

    def text(name: str) -> str:
        return line.get(name, "")

    if not text("instance_type") and not text("host"):
        raise UserError(f"{path}: line {n}: has neither instance_type nor host", "it needs one of them")
    per_hour = number("usd_per_hour")
    if per_hour is None:
        raise UserError(f"{path}: line {n}: no usd_per_hour", "omit the row if the price is unknown")
    return Price(
        per_hour=per_hour, line=n, provider=text("provider"), region=text("region"),
        instance_type=text("instance_type"), lifecycle=text("lifecycle"), host=text("host"), vcpu=number("vcpu"),
        mem_gib=number("mem_gib"), gpu=number("gpu"),
    )  # fmt: skip
