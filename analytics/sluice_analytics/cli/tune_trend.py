# SPDX-License-Identifier: Apache-2.0
"""`sluice tune trend`: a pipeline's runs over time."""

from __future__ import annotations

import argparse

from ..lake import open as lake_open
from . import common
from .tune_options import add_prices, add_run_choice, positive, prices_of, runs_of, since

RUNS = 100
"""How many of the latest runs of a pipeline count by default"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sluice tune trend`."""
    parser.add_argument("--pipeline", metavar="P", required=True, help="the pipeline")
    add_run_choice(parser, RUNS)
    parser.add_argument(
        "--last",
        metavar="K",
        type=positive,
        help="compare the last K runs with those before (default: search for a step)",
    )
    add_prices(parser)
    lake_open.add_arguments(parser)
    common.add_output(parser)
    parser.add_argument("--section", choices=("metrics", "changes", "runs"), help="the table of --format csv")


def main(args: argparse.Namespace) -> int:
    """`sluice tune trend`: prints the answer; 0."""
    from ..report import trend as answer_of
    from ..tune import evidence
    from ..tune.trend import metrics, points

    prices = prices_of(args)
    since_us = since(args.since)
    with lake_open.open_session(args) as session:
        kind = evidence.Kind(args.pipeline)
        chosen = evidence.choose_runs(session, kind, runs_of(args, RUNS), since_us)[kind]
        found = points(session, chosen, prices)
        answer = answer_of.document(
            args.pipeline, session.source, found, metrics(found, args.last), prices.currency if prices else "USD"
        )
        answer.warnings = list(session.warnings)
    common.emit(answer, args)
    return 0
