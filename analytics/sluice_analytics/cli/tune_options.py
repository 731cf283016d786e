# SPDX-License-Identifier: Apache-2.0
"""Options that several commands of `sluice tune` take."""

from __future__ import annotations

import argparse

from .. import prices
from ..options import duration_us
from ..prices import Prices


def positive(text: str) -> int:
    """A whole number above 0, for argparse."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number above 0')
    return int(text)


def since(text: str | None) -> int | None:
    """--since as microseconds UTC; UserError names what is allowed."""
    from ..tune import find

    return None if text is None else find.now() - duration_us("--since", text)


def add_run_choice(parser: argparse.ArgumentParser, default: int) -> None:
    """--runs and --since: which runs of a pipeline count."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--runs", metavar="N", type=positive, help=f"only the latest N runs (default: {default}; with --since, all)"
    )
    which.add_argument("--since", metavar="TIME", help="only runs that began within this time, such as 30d")


def runs_of(args: argparse.Namespace, default: int) -> int | None:
    """How many runs --runs and --since leave: None for all."""
    return args.runs or (None if args.since else default)


def prices_of(args: argparse.Namespace) -> Prices | None:
    """The table that --prices names."""
    return prices.read(args.prices) if args.prices else None


def add_prices(parser: argparse.ArgumentParser) -> None:
    """--prices."""
    parser.add_argument(
        "--prices", metavar="FILE", help="a price table, a CSV file (default: the prices in the records, if any)"
    )
