#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Maintenance of the Iceberg tables: compaction, old snapshots, files that no table knows, days to give up.

Each command may run while the streaming jobs do: they only add, and what is done here is a commit of its
own, tried again where another came first.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import layout
import tables

from sluice_analytics.cli import common
from sluice_analytics.errors import NotFound, UserError
from sluice_analytics.lake.columns import COLUMNS
from sluice_analytics.units import parse_duration_us

Row = dict[str, Any]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="maintain.py", description=(__doc__ or "").split("\n")[0])
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--tables", metavar="NAME,…", help="only these tables (default: all, including the quarantine)")
    tables.add_arguments(shared)
    sub = p.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, does: Callable[[tables.Tables, argparse.Namespace, str], Row], text: str) -> Any:
        c = sub.add_parser(name, parents=[shared], help=text, description=text)
        c.set_defaults(does=does)
        return c

    c = command("compact", compact, "few large files for many small ones, sorted by run; then the manifests")
    c.add_argument(
        "--since", metavar="TIME", type=_age, default="3d", help="only days since then (default: 3d; all: all days)"
    )
    c.add_argument(
        "--file-size",
        metavar="BYTES",
        type=int,
        default=256 << 20,
        help="size of the files that it writes (default: 256 MiB)",
    )
    c = command("expire", expire, "removes old snapshots, and the files that only they used")
    c.add_argument(
        "--older-than", metavar="TIME", type=_age, default="3d", help="remove snapshots older than this (default: 3d)"
    )
    c.add_argument(
        "--retain-last",
        metavar="N",
        type=int,
        default=10,
        help="number of snapshots to keep, whatever their age (default: 10)",
    )
    c = command("orphans", orphans, "deletes files of the tables that no snapshot uses, which killed jobs left")
    c.add_argument(
        "--older-than",
        metavar="TIME",
        type=_age,
        default="3d",
        help="keep younger files, which a running job may need; at least 24h (default: 3d)",
    )
    c.add_argument("--dry-run", action="store_true", help="only list the files")
    c = command("retain", retain, "deletes whole days from the tables; expire then removes the files")
    c.add_argument("--days", metavar="N", type=int, required=True, help="number of days to keep, including today")
    command(
        "check",
        check,
        "counts rows, records that are there twice, and holes in the numbering; exit status 1 if any is there twice",
    )
    return p


def _age(text: str) -> int | None:
    """A duration as microseconds; None for all."""
    try:
        return None if text == "all" else parse_duration_us(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from e


def _ago(age_us: int | None) -> str:
    """That long ago, as a SQL literal."""
    when = datetime.datetime.now(datetime.UTC) - datetime.timedelta(microseconds=age_us or 0)
    return f"TIMESTAMP '{when:%Y-%m-%d %H:%M:%S}'"


def _call(at: tables.Tables, procedure: str, table: str, **arguments: str) -> Row:
    """Runs one of Iceberg's procedures on a table; its answer."""
    given = "".join(f", {name} => {value}" for name, value in arguments.items())
    rows = at.spark.sql(f"CALL {at.catalog}.system.{procedure}(table => '{at.namespace}.{table}'{given})").collect()
    return rows[0].asDict() if rows else {}


def compact(at: tables.Tables, args: argparse.Namespace, table: str) -> Row:
    """rewrite_data_files by sorting, rewrite_manifests."""
    options = {
        "target-file-size-bytes": str(args.file_size),
        # A failure in one day leaves the others done.
        "partial-progress.enabled": "true",
        "min-input-files": "2",
    }
    given = {"options": "map(" + ", ".join(f"'{k}', '{v}'" for k, v in options.items()) + ")"}
    if table != layout.QUARANTINE:
        order = ", ".join(f"{c} ASC NULLS LAST" for c in layout.SORTED_BY)
        given |= {"strategy": "'sort'", "sort_order": f"'{order}'"}
    if args.since is not None:
        day = datetime.datetime.now(datetime.UTC) - datetime.timedelta(microseconds=args.since)
        given["where"] = f"\"event_time >= TIMESTAMP '{day:%Y-%m-%d} 00:00:00'\""
    answer = _call(at, "rewrite_data_files", table, **given)
    _call(at, "rewrite_manifests", table)
    return {
        "files_before": answer["rewritten_data_files_count"],
        "files_after": answer["added_data_files_count"],
        "bytes_before": answer["rewritten_bytes_count"],
    }


def expire(at: tables.Tables, args: argparse.Namespace, table: str) -> Row:
    """expire_snapshots."""
    answer = _call(at, "expire_snapshots", table, older_than=_ago(args.older_than), retain_last=str(args.retain_last))
    return {
        "deleted_data_files": answer["deleted_data_files_count"],
        "deleted_manifests": answer["deleted_manifest_files_count"],
    }


def orphans(at: tables.Tables, args: argparse.Namespace, table: str) -> Row:
    """remove_orphan_files."""
    if args.older_than is None or args.older_than < 86_400_000_000:
        raise UserError("--older-than: at least 24h", "a younger file may be of a commit that is under way")
    found = at.spark.sql(
        f"CALL {at.catalog}.system.remove_orphan_files(table => '{at.namespace}.{table}', "
        f"older_than => {_ago(args.older_than)}, dry_run => {str(args.dry_run).lower()})"
    ).collect()
    return {"files": [row[0] for row in found]}


def retain(at: tables.Tables, args: argparse.Namespace, table: str) -> Row:
    """DELETE of whole days, for which no file has to be read."""
    if args.days < 1:
        raise UserError(f"--days {args.days}: at least 1")
    first = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=args.days - 1)
    name = at.name(table)
    before = at.spark.table(name).count()
    at.spark.sql(f"DELETE FROM {name} WHERE event_time < TIMESTAMP '{first} 00:00:00'")
    return {"first_day": str(first), "deleted_rows": before - at.spark.table(name).count()}


def check(at: tables.Tables, args: argparse.Namespace, table: str) -> Row:
    """Rows, and by KEY: how many are there twice, how many are missing between the first and the last."""
    name = at.name(table)
    if table == layout.QUARANTINE:
        rows = at.spark.sql(f"SELECT topic, reason, count(*) AS n FROM {name} GROUP BY ALL ORDER BY ALL").collect()
        return {"rows": sum(r["n"] for r in rows), "reasons": [r.asDict() for r in rows]}
    row = at.spark.sql(
        "SELECT coalesce(sum(n), 0) AS rows, coalesce(sum(n - keys), 0) AS repeated, "
        "coalesce(sum(last - first + 1 - keys), 0) AS holes FROM (SELECT count(*) AS n, "
        f"count(DISTINCT seq) AS keys, min(seq) AS first, max(seq) AS last FROM {name} GROUP BY host_id, agent_id)"
    ).collect()[0]
    return {k: int(v) for k, v in row.asDict().items()}


def main(argv: list[str]) -> int:
    """Runs one command on the tables; a line of JSON for each."""
    args = parser().parse_args(argv)
    at = tables.Tables(args)
    try:
        known = [*COLUMNS, layout.QUARANTINE]
        names = [n.strip() for n in args.tables.split(",")] if args.tables else [n for n in known if at.exists(n)]
        if not names:
            raise NotFound(f"{at.catalog}.{at.namespace} has no tables of sluice", "spark_iceberg.py makes them")
        repeated = 0
        for table in names:
            if table not in known:
                raise UserError(f"--tables: {table} is none of " + ", ".join(known))
            if not at.exists(table):
                raise NotFound(f"{at.name(table)}: no such table")
            began = time.monotonic()
            answer = args.does(at, args, table)
            repeated += answer.get("repeated", 0)
            print(json.dumps({"table": table} | answer | {"seconds": round(time.monotonic() - began, 1)}), flush=True)
        return 1 if repeated else 0
    finally:
        at.close()


if __name__ == "__main__":
    sys.exit(common.run("maintain.py", main, None))
