# SPDX-License-Identifier: Apache-2.0
"""`sluice lake`: looks after a lake of files: compaction, retention, and what it holds."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .. import units
from ..errors import NotFound, UserError
from ..lake import files
from ..lake.columns import COLUMNS
from ..lake.open import DEFAULT_LAKES, folder_of
from ..options import duration_us
from ..report.document import Column, Document, Table
from . import common

# DuckDB, Ibis and rich take a second to load: each command loads them itself, so that --help does not.
if TYPE_CHECKING:
    from ..lake import compactor

_DAY_US = 86_400_000_000


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=common.typed("lake"),
        description="Maintains a lake: the files that `sluice run` and the agent write.",
        epilog="exit status: 0 done, or nothing to do; 1 the lake has no records of a topic that was named; 2 wrong "
        "usage, no lake, or a file that cannot be read or written",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    info = commands.add_parser("info", help="print days, files, records, times, hosts, agents and losses of each topic")
    _add_common(info)
    common.add_output(info)

    pack = commands.add_parser(
        "compact",
        help="convert the Avro files of closed days to sorted Parquet, which is read faster",
        description="Converts the Avro files of closed days to sorted Parquet files. A day is closed when it is over "
        "in UTC and none of its files is being written. The Parquet files have each record once, and are read instead "
        "of the Avro files, which are kept unless --remove-avro is given. The command can be interrupted and run "
        "again at any time.",
    )
    _add_common(pack)
    pack.add_argument("--until", metavar="DAY", help="the last day, as YYYY-MM-DD (default: yesterday, UTC)")
    pack.add_argument(
        "--remove-avro",
        action="store_true",
        help="delete the Avro files of compacted days, after each of their records was found in Parquet",
    )
    pack.add_argument("--dry-run", action="store_true", help="only print what would be done")
    common.add_output(pack)

    keep = commands.add_parser(
        "retain",
        help="delete days that are too old",
        description="Deletes the UTC days that ended longer than --keep ago, Avro and compacted. Without --yes it only "
        "prints what it would delete.",
    )
    _add_common(keep)
    keep.add_argument("--keep", metavar="TIME", required=True, help="how long records are kept, such as 90d or 12w")
    keep.add_argument("--keep-usage", metavar="TIME", help="the same for sluice.usage, the largest part of a lake")
    keep.add_argument("--yes", action="store_true", help="delete")
    common.add_output(keep)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lake", metavar="DIR", help="the lake (default: ./sluice-lake, otherwise /var/lib/sluice/lake)"
    )
    parser.add_argument("--topic", metavar="T", action="append", choices=(*COLUMNS, *("sluice." + t for t in COLUMNS)),
                        help="only this topic: " + ", ".join(COLUMNS) + "; may be given more than once")  # fmt: skip
    if parser.prog.split()[-1] != "retain":
        parser.add_argument("--memory-limit", metavar="SIZE", help="memory limit of DuckDB, such as 1GiB")


def _topics_of(lake: str, args: argparse.Namespace) -> list[str]:
    there = [t for t in files.topics_of(lake) if t in COLUMNS]
    if args.topic is None:
        return there
    asked = {t.removeprefix("sluice.") for t in args.topic}
    for topic in sorted(asked - set(there)):
        raise NotFound(f"{lake}: has no records of sluice.{topic}")
    return [t for t in there if t in asked]


def _info(args: argparse.Namespace) -> int:
    from ..lake.duck import DuckSession
    from ..lake.info import topic_info

    lake = folder_of(args.lake, DEFAULT_LAKES)
    topics = _topics_of(lake, args)
    with DuckSession(lake, args.memory_limit) as session, _progress("reading", len(topics)) as done:
        found = []
        for topic in topics:
            found.append(topic_info(session, topic))
            done(1)
    columns = [
        Column("topic", "topic"), Column("days", "days", "count"), Column("compacted_days", "compacted", "count"),
        Column("avro_files", "Avro files", "count"), Column("open_files", "open", "count"),
        Column("bytes", "size", "size"), Column("records", "records", "count"), Column("first", "first", "time"),
        Column("last", "last", "time"), Column("hosts", "hosts", "count"), Column("agents", "agents", "count"),
        Column("missing", "missing", "count"),
    ]  # fmt: skip
    document = Document(title=f"lake {lake}", main="topics", warnings=session.warnings)
    note = "missing: numbers between the first and the last of an agent that no record has: lost, or deleted"
    document.tables.append(Table("topics", "topics", columns, [dataclasses.asdict(f) for f in found], note))
    common.emit(document, args)
    return 0


def _compact(args: argparse.Namespace) -> int:
    from ..lake import compactor
    from ..lake.duck import DuckSession

    lake = folder_of(args.lake, DEFAULT_LAKES)
    topics = _topics_of(lake, args)
    until = _until(args.until)
    rows = []
    with DuckSession(lake, args.memory_limit) as session, contextlib.ExitStack() as stack:
        if not args.dry_run:
            stack.enter_context(compactor.locked(lake))
            for topic in topics:
                compactor.tidy(lake, topic)
        works = compactor.plan(session, topics, until)
        total = sum(w.new_bytes for w in works if not w.waits)
        done = stack.enter_context(_progress("compacting", total))
        for work in works:
            row = _row(work)
            rows.append(row)
            if work.waits:
                row["state"] = f"waits: {work.waits}"
                continue
            if work.new and not args.dry_run:
                result = compactor.compact_day(session, work)
                row |= {"state": "compacted", "records": result.records, "duplicates": result.duplicates}
                row["parquet_bytes"] = result.bytes
            elif work.new:
                row["state"] = "would be compacted"
            done(work.new_bytes)
            if args.remove_avro and not args.dry_run:
                row["removed_files"], row["removed_bytes"] = compactor.remove_avro(session, work.topic, work.day)
            elif args.remove_avro:
                row["removed_files"] = len(work.new) + len(work.covered)
    columns = [
        Column("topic", "topic"), Column("day", "day"), Column("state", "state"),
        Column("new_files", "new files", "count"), Column("new_bytes", "Avro", "size"),
        Column("records", "records", "count"), Column("duplicates", "duplicates", "count"),
        Column("parquet_bytes", "Parquet", "size"), Column("removed_files", "removed", "count"),
        Column("removed_bytes", "freed", "size"),
    ]  # fmt: skip
    document = Document(title=f"lake {lake}", main="days", warnings=session.warnings)
    document.tables.append(Table("days", "days", columns, rows))
    if not rows:
        document.notes.append(f"There are no Avro files of days up to {until}: nothing to do.")
    common.emit(document, args)
    return 0


def _row(work: compactor.Work) -> dict[str, object]:
    return {
        "topic": f"sluice.{work.topic}", "day": work.day, "new_files": len(work.new), "new_bytes": work.new_bytes,
        "state": "is compacted" if work.compacted else "empty",
        "records": work.compacted.records if work.compacted else None, "duplicates": None, "parquet_bytes": None,
        "removed_files": None, "removed_bytes": None,
    }  # fmt: skip


def _until(text: str | None) -> str:
    today = files.today()
    if text is None:
        return files.day_of(files.day_start(today) - 1)
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise UserError(f'--until "{text}" is not a day', "write it as YYYY-MM-DD")
    try:
        files.day_start(text)
    except ValueError as e:
        raise UserError(f'--until "{text}" is not a day', "write it as YYYY-MM-DD") from e
    if text >= today:
        raise UserError(f"--until {text}: this day is not over yet", f"today is {today}, UTC")
    return text


def _retain(args: argparse.Namespace) -> int:
    from ..lake import compactor, retain

    lake = folder_of(args.lake, DEFAULT_LAKES)
    topics = _topics_of(lake, args)
    keep = _keep("--keep", args.keep)
    usage = keep if args.keep_usage is None else _keep("--keep-usage", args.keep_usage)
    keep_us = {topic: usage if topic == "usage" else keep for topic in topics}
    rows = []
    warnings = []
    with contextlib.ExitStack() as stack:
        if args.yes:
            stack.enter_context(compactor.locked(lake))
        days = retain.old_days(lake, keep_us, int(time.time() * 1_000_000))
        done = stack.enter_context(_progress("deleting", len(days)))
        for day in days:
            if day.waits:
                state = f"stays: {day.waits}"
            elif args.yes:
                retain.delete(day)
                state = "deleted"
            else:
                state = "would be deleted"
            done(1)
            warnings += [f"{path}: does not belong to a lake, and is kept" for path in day.foreign]
            rows.append(
                {"topic": f"sluice.{day.topic}", "day": day.day, "state": state, "files": len(day.paths),
                 "bytes": day.bytes}
            )  # fmt: skip
    columns = [
        Column("topic", "topic"), Column("day", "day"), Column("state", "state"), Column("files", "files", "count"),
        Column("bytes", "size", "size"),
    ]  # fmt: skip
    document = Document(title=f"lake {lake}", main="days", warnings=warnings)
    document.tables.append(Table("days", "days", columns, rows))
    freed = sum(d.bytes for d in days if not d.waits)
    if not rows:
        document.notes.append("No day is old enough.")
    elif args.yes:
        document.notes.append(f"Deleted {units.size(freed)}.")
    else:
        document.notes.append(f"Nothing was deleted. With --yes this deletes {units.size(freed)}.")
    common.emit(document, args)
    return 0


def _keep(option: str, text: str) -> int:
    value = duration_us(option, text)
    if value < _DAY_US:
        raise UserError(f"{option} {text}: a lake is kept by days", "write 1d or more")
    return value


@contextlib.contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error where that is a terminal; yields the function that adds to the work done."""
    if not sys.stderr.isatty() or total == 0:
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f}%"),
                   TimeRemainingColumn(), console=Console(stderr=True), transient=True)  # fmt: skip
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda amount: bar.advance(task, amount)


def _main(argv: list[str]) -> int:
    args = _parser().parse_args(argv)
    return {"info": _info, "compact": _compact, "retain": _retain}[args.command](args)


def main(argv: list[str] | None = None) -> int:
    """The command: its exit status."""
    return common.run(common.typed("lake"), _main, argv)


if __name__ == "__main__":
    sys.exit(main())
