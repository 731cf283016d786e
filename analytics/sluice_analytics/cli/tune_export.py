# SPDX-License-Identifier: Apache-2.0
"""`sluice tune export`: a run for other systems."""

from __future__ import annotations

import argparse
import os

from ..errors import UserError
from ..lake import open as lake_open
from ..options import pairs
from ..spell import spell
from ..tune.run_report import RunReport
from . import common

EPILOG = """examples:
  sluice tune export --otlp http://collector:4318
  sluice tune export happy_run --openlineage http://marquez:5000 --namespace lab
  sluice tune export --parquet run-tables
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sluice tune export`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="run_id, its beginning, or name (default: the latest run)"
    )
    to = parser.add_argument_group("destinations (one or more)")
    to.add_argument("--otlp", metavar="URL", help="OTLP/HTTP receiver of traces: run, task and program spans")
    to.add_argument(
        "--header", metavar="KEY=VALUE", action="append", default=[], help="header for --otlp, such as a token"
    )
    to.add_argument(
        "--openlineage", metavar="URL", help="OpenLineage receiver, http://HOST:PORT or kafka://BROKERS/TOPIC"
    )
    to.add_argument("--openlineage-file", metavar="FILE", help="the same events, as JSON lines")
    to.add_argument("--namespace", default="sluice", help="OpenLineage namespace of the jobs (default: sluice)")
    to.add_argument("--parquet", metavar="DIR", help="folder for tasks.parquet, tools.parquet and programs.parquet")
    lake_open.add_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Exports; prints one line for each destination. 0, or 1 where a receiver rejected a part."""
    if not (args.otlp or args.openlineage or args.openlineage_file or args.parquet):
        raise UserError(
            "no destination", "give --otlp URL, --openlineage URL, --openlineage-file FILE or --parquet DIR"
        )
    headers = pairs("--header", args.header)
    from ..tune import run as tune_run

    with lake_open.open_session(args) as session:
        report = tune_run.load(session, args.run, programs_limit=None, with_recommendations=False)
        links = {}
        if args.otlp:
            from ..export import otlp

            links = otlp.links(session, report.run_id)
    return _send(args, report, headers, links)


def _send(
    args: argparse.Namespace, report: RunReport, headers: dict[str, str], links: dict[str, tuple[str, str]]
) -> int:
    status = 0
    if args.otlp:
        from ..export import otlp

        sent = otlp.send(report, args.otlp, headers, links)
        running = f"; {sent.still_running} that are still running were not sent" if sent.still_running else ""
        print(f"{args.otlp}: {sent.spans} spans accepted, {sent.rejected} rejected{running}")
        if sent.rejected:
            print(spell(f"{args.otlp}: {sent.message}"))
            status = 1
    if args.openlineage or args.openlineage_file:
        from ..export import openlineage

        if args.openlineage:
            key = os.environ.get("OPENLINEAGE_API_KEY")
            count = openlineage.send(report, args.openlineage, args.namespace, key)
            print(f"{args.openlineage}: {count} events accepted")
        if args.openlineage_file:
            lines = [openlineage.to_json(e) for e in openlineage.events(report, args.namespace)]
            common.write(args.openlineage_file, "\n".join(lines) + "\n")
            if args.openlineage_file != "-":
                print(f"{args.openlineage_file}: {len(lines)} events written")
    if args.parquet:
        from ..export import parquet

        for path, rows in parquet.write(report, args.parquet).items():
            print(f"{path}: {rows} rows")
    return status
