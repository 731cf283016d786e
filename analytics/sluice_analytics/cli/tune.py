# SPDX-License-Identifier: Apache-2.0
"""`sluice tune`: why is this run slow or expensive, and what would be right?"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ..errors import UserError
from ..lake import open as lake_open
from ..report import run as answer_of
from . import common, tune_compare, tune_export, tune_recommend, tune_trend

EPILOG = """commands:
  sluice tune compare RUN RUN …   two or more runs, task by task
  sluice tune trend               wall, cost, peak and failures over the runs of a pipeline
  sluice tune recommend           CPUs, memory and time for each task, and configuration for the engine
  sluice tune export              a run as OTLP traces, OpenLineage events or Parquet files
  each has a --help of its own

examples:
  sluice tune                             the latest run of ./sluice-lake
  sluice tune --list                      the runs of the lake
  sluice tune tiny_torvalds --prices prices.csv
  sluice tune 3f2a --format html -o run.html
  sluice tune --format csv --section tools
  sluice tune --follow                    the run that is running, step by step

exit status: 0 done; 1 there is no such run, or the run that was followed failed; 2 wrong usage, or a lake
that cannot be read
"""


def parser() -> argparse.ArgumentParser:
    """The command line of `sluice tune [RUN]`."""
    name = common.typed("tune")
    p = argparse.ArgumentParser(
        prog=name,
        description="Explains a run: what used CPU, memory, disk and network, what delayed it, why it failed.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG.replace("sluice tune", name),
        allow_abbrev=False,
    )
    p.add_argument("run", nargs="?", metavar="RUN", help="run_id, its beginning, or its name (default: the latest run)")
    p.add_argument("--list", action="store_true", help="list the runs of the lake instead")
    p.add_argument(
        "--follow", action="store_true", help="follow a run until it ends (default: the latest run that is running)"
    )
    p.add_argument(
        "--interval",
        type=_seconds,
        default=2.0,
        metavar="SECONDS",
        help="time between updates of --follow (default: 2)",
    )
    p.add_argument(
        "--prices", metavar="FILE", help="a price table, a CSV file (default: the prices in the records, if any)"
    )
    p.add_argument(
        "--watts-per-cpu",
        type=_watts,
        metavar="W",
        help="model the energy that no meter counted, by W watts of a busy CPU, or `default` (12 W)",
    )
    p.add_argument("--programs", type=_count, default=5000, metavar="N", help="list at most N programs (default: 5000)")
    lake_open.add_arguments(p)
    common.add_output(p, (*common.FORMATS, "html"))
    p.add_argument("--section", choices=answer_of.SECTIONS, help="the table of --format csv (default: tasks)")
    return p


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of seconds') from None
    if not 0.1 <= value <= 86400:
        raise argparse.ArgumentTypeError(f'"{text}" is not between 0.1 and 86400 seconds')
    return value


def _watts(text: str) -> float:
    if text == "default":
        from ..tune.energy import WATTS_PER_CPU

        return WATTS_PER_CPU
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 10000:
        raise argparse.ArgumentTypeError(f'"{text}" is neither `default` nor a number of watts above 0')
    return value


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f'"{text}" is not a number')
    return int(text)


COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int], str]] = {
    "compare": (
        tune_compare.add_arguments,
        tune_compare.main,
        "Compares two or more runs, or two versions of a tool, task by task.",
    ),
    "trend": (
        tune_trend.add_arguments,
        tune_trend.main,
        "Shows wall time, cost, peak memory and failures over the runs of a pipeline.",
    ),
    "recommend": (
        tune_recommend.add_arguments,
        tune_recommend.main,
        "Recommends CPUs, memory and time for each task, with the evidence.",
    ),
    "export": (
        tune_export.add_arguments,
        tune_export.main,
        "Exports a run to other systems: traces, lineage events, Parquet files.",
    ),
}
"""Subcommand -> its options, its body, what it does. A body loads the libraries that answer: Ibis takes a second."""


def body(argv: list[str]) -> int:
    """Runs a command line; errors as exceptions. What is asked is known before the libraries that answer it load."""
    if argv and argv[0] in COMMANDS:
        add_arguments, main_of, description = COMMANDS[argv[0]]
        p = argparse.ArgumentParser(
            prog=f"{common.typed('tune')} {argv[0]}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add_arguments(p)
        p.epilog = p.epilog and p.epilog.replace("sluice tune", common.typed("tune"))
        return main_of(p.parse_args(argv[1:]))
    p = parser()
    args, more = p.parse_known_args(argv)
    if args.run in COMMANDS:
        raise UserError(f"{args.run} must come before all options", f"write: {common.typed('tune')} {args.run} …")
    if more:
        p.error("unrecognized arguments: " + " ".join(more))
    if args.follow:
        from . import tune_follow

        return tune_follow.main(args)
    return _list(args) if args.list else _report(args)


def _list(args: argparse.Namespace) -> int:
    from ..tune import find

    with lake_open.open_session(args) as session:
        document = answer_of.run_list(find.all_runs(session), find.tasks_of_runs(session), find.now())
        document.warnings = list(session.warnings)
    common.emit(document, args)
    return 0


def _report(args: argparse.Namespace) -> int:
    from ..tune import run
    from .tune_options import prices_of

    prices = prices_of(args)
    with lake_open.open_session(args) as session:
        report = run.load(session, args.run, prices=prices, programs_limit=args.programs, watts=args.watts_per_cpu)
    if args.format == "html":
        from ..report import html

        common.write(args.output, html.render(report))
        return 0
    common.emit(answer_of.document(report, is_short=args.format == "table"), args)
    return 0


def main(argv: list[str] | None = None) -> int:
    """The command: its exit status."""
    return common.run(common.typed("tune"), body, argv)


if __name__ == "__main__":
    raise SystemExit(main())
