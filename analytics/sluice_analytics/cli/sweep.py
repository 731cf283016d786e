# SPDX-License-Identifier: Apache-2.0
"""`sluice sweep`: what do we pay for that does nothing?"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable

from .. import prices
from ..errors import UserError
from ..lake import open as lake
from ..options import duration_us
from ..sweep import grouping, period
from ..sweep.thresholds import Thresholds
from . import common


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=common.typed("sweep"),
        description="Shows how the time of each host was spent: used, reserved but unused, idle while a run was there, "
        "idle without a run, unknown. Then lists what was paid for and did nothing, with the records that prove it.",
        epilog="TAG is a field of program records: " + ", ".join(b for b in grouping.ALL if b not in _NAMED) + ". "
        "Prices come from --prices, a CSV file with the columns provider,region,instance_type,lifecycle,usd_per_hour,"
        "vcpu,mem_gib,gpu,host; a price that is neither in it nor in the records is unknown. Exit status: 0 done, 1 no "
        "host was recorded in that period, 2 wrong usage, or a file or engine that cannot be used.",
    )
    lake.add_arguments(parser)
    what = parser.add_argument_group("what to look at")
    what.add_argument(
        "--since",
        metavar="TIME",
        default="7d",
        help="start of the period: 12h, 2026-11-21 or 2026-11-21T08:00Z; a duration is before --until (default: 7d)",
    )
    what.add_argument("--until", metavar="TIME", help="end of the period; a duration is before now (default: now)")
    what.add_argument("--by", metavar="GROUP", default="host", help="|".join([*_NAMED, "TAG"]) + " (default: host)")
    what.add_argument("--prices", metavar="FILE", help="price of an hour of each host, a CSV file")
    limits = parser.add_argument_group("what is reported (see sluice-sweep(1))")
    default = Thresholds()
    limits.add_argument(
        "--idle-cores",
        metavar="N",
        help=f"a run or task that uses fewer CPUs is idle (default: {default.idle_cores:g})",
    )
    limits.add_argument("--least", metavar="TIME", help="do not report waits shorter than this (default: 30m)")
    limits.add_argument("--after-run", metavar="TIME", help="how long a host may stay up after a run (default: 15m)")
    limits.add_argument(
        "--busy-share",
        metavar="SHARE",
        help=f"share of its CPUs from which a host without a run is busy (default: {default.busy_share:g})",
    )
    limits.add_argument(
        "--oversized-share",
        metavar="SHARE",
        help=f"a host whose peaks stay below this share is oversized (default: {default.oversized_share:g})",
    )
    limits.add_argument(
        "--spinning",
        action="store_true",
        help="report programs that use CPU and move nothing: loops that wait, but simulations, too",
    )
    common.add_output(parser)
    parser.add_argument(
        "--section", metavar="TABLE", help="the table of --format csv: by_GROUP (default), findings or losses"
    )
    return parser


_NAMED = ("host", "run", "pipeline", "task", "tool", "sample", "container", "user", "day")


def _number(option: str, text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise UserError(f'{option}: "{text}" is not a number from 0 to {most:g}')
    return value


def _limits(args: argparse.Namespace) -> Thresholds:
    given: dict[str, float | int] = {"spinning": args.spinning}

    def take(option: str, name: str, read: Callable[[str, str], float | int]) -> None:
        text = getattr(args, option[2:].replace("-", "_"))
        if text is not None:
            given[name] = read(option, text)

    take("--idle-cores", "idle_cores", lambda o, t: _number(o, t, 1024))
    take("--least", "least_us", duration_us)
    take("--after-run", "after_run_us", duration_us)
    take("--busy-share", "busy_share", lambda o, t: _number(o, t, 1))
    take("--oversized-share", "oversized_share", lambda o, t: _number(o, t, 1))
    return dataclasses.replace(Thresholds(), **given)  # type: ignore[arg-type]


def _run(argv: list[str]) -> int:
    args = _parser().parse_args(argv)
    grouping.check(args.by)
    when = period.of_options(args.since, args.until)
    limits = _limits(args)
    table = prices.read(args.prices) if args.prices else prices.Prices()
    # Loaded once the options hold: Ibis takes a second.
    from ..report import sweep as answer_of
    from ..sweep import report

    with lake.open_session(args) as session:
        answer = report.sweep(session, when, table, args.by, limits)
        answer.warnings[:0] = [w for w in session.warnings if w not in answer.warnings]
        common.emit(answer_of.of_report(answer), args)
    return 0


def main(argv: list[str] | None = None) -> int:
    """The command; its exit status."""
    return common.run(common.typed("sweep"), _run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
