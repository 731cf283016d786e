# SPDX-License-Identifier: Apache-2.0
"""`sluice tune compare`: runs side by side."""

from __future__ import annotations

import argparse

from ..lake import open as lake_open
from . import common
from .tune_options import add_prices, prices_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sluice tune compare`."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run_id, its beginning, or name; two or more")
    add_prices(parser)
    lake_open.add_arguments(parser)
    common.add_output(parser)
    sections = ("runs", "tasks", "tests", "tools", "versions")
    parser.add_argument("--section", choices=sections, help="the table of --format csv (default: tasks)")


def main(args: argparse.Namespace) -> int:
    """`sluice tune compare`: prints the answer; 0."""
    from ..report import compare as answer_of
    from ..tune.compare import compare

    prices = prices_of(args)
    with lake_open.open_session(args) as session:
        found = compare(session, args.runs, prices)
        answer = answer_of.document(found, session.source, prices.currency if prices else "USD")
    common.emit(answer, args)
    return 0
