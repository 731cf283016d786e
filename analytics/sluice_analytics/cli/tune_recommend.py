# SPDX-License-Identifier: Apache-2.0
"""`sluice tune recommend`: what each task should be given, as tables or as configuration."""

from __future__ import annotations

import argparse

from ..errors import UserError
from ..lake import open as lake_open
from ..tune.run_report import RUNS
from . import common
from .tune_options import add_prices, add_run_choice, prices_of, runs_of, since

ENGINES = ("kubernetes", "nextflow", "slurm", "snakemake")
"""Keys of emit.FORMATS, which takes Ibis to load"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sluice tune recommend`."""
    parser.add_argument("--pipeline", metavar="P", help="only this pipeline (default: all pipelines of the lake)")
    parser.add_argument("--task", metavar="T", help="only this task")
    add_run_choice(parser, RUNS)
    parser.add_argument("--emit", choices=ENGINES, help="print a configuration for this engine, with its evidence")
    add_prices(parser)
    lake_open.add_arguments(parser)
    common.add_output(parser)
    sections = ("tasks", "evidence", "too_little_evidence")
    parser.add_argument("--section", choices=sections, help="the table of --format csv (default: tasks)")


def main(args: argparse.Namespace) -> int:
    """`sluice tune recommend`: prints the answer; 0."""
    from ..report import emit
    from ..report import recommend as answer_of
    from ..tune.recommend import advices_of

    prices = prices_of(args)
    since_us = since(args.since)
    with lake_open.open_session(args) as session:
        advices = advices_of(
            session, args.pipeline, runs=runs_of(args, RUNS), since_us=since_us, task=args.task, prices=prices
        )
        warnings = list(session.warnings)
        source = session.source
    if args.emit:
        if len({(a.pipeline, a.command, a.work_dir) for a in advices}) > 1:
            names = ", ".join(sorted({a.pipeline for a in advices if a.pipeline is not None}))
            hint = f"choose one with --pipeline: {names}" if names else "name one with sluice run --pipeline P"
            raise UserError("--emit takes one pipeline, and there are several", hint)
        common.write(args.output, emit.render(args.emit, advices, source))
        return 0
    answer = answer_of.document(advices, source, prices.currency if prices else "USD", is_short=args.format == "table")
    answer.warnings = warnings
    common.emit(answer, args)
    return 0
