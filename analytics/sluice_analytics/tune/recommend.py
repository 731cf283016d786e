# SPDX-License-Identifier: Apache-2.0
"""`sluice tune recommend`: what each task of a pipeline should be given, from what its executions used."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from .. import prices as price_table
from .. import units
from ..cli import common
from ..errors import NotFound, UserError
from ..lake import open as lake_open
from ..lake.session import Session
from ..prices import Prices
from ..report.document import Column, Document, Table
from . import emit, evidence, find
from .advice import Advice, advise, min_confidence
from .evidence import Execution, Kind
from .run_report import Lack, Recommendation

RUNS = 50
"""The latest runs of a pipeline that count, unless told otherwise"""


def advices_of(
    session: Session,
    pipeline: str | Kind | None = None,
    *,
    runs: int | None = RUNS,
    since_us: int | None = None,
    task: str | None = None,
    prices: Prices | None = None,
    now_us: int | None = None,
) -> list[Advice]:
    """Advice for every task of a pipeline or kind of run (None: of every one), in the order of their names.

    runs: the latest so many of each pipeline; since_us: those that began then or later (microseconds UTC).
    NotFound where no run or no such task is there.
    """
    now = find.now() if now_us is None else now_us
    wanted = Kind(pipeline) if isinstance(pipeline, str) else pipeline
    advices = []
    for kind, chosen in evidence.choose_runs(session, wanted, runs, since_us).items():
        hosts = evidence.hosts(session, chosen, prices)
        by_task: dict[str, list[Execution]] = {}
        for execution in evidence.executions(session, chosen):
            by_task.setdefault(execution.task, []).append(execution)
        advices += [advise(kind, t, found, hosts, prices, now) for t, found in by_task.items() if task in (None, t)]
    if task is not None and not advices:
        raise NotFound(f'no execution of a task "{task}" in {session.source}', "sluice tune recommend names the tasks")
    return sorted(advices, key=lambda a: (a.pipeline or "", a.command or "", a.work_dir or "", a.task))


def of_run(
    session: Session, run: find.Run, tasks: Iterable[str], prices: Prices | None = None
) -> tuple[list[Recommendation], list[Lack]]:
    """For these tasks of a run, from the latest runs of its kind: what is recommended, and why the rest has nothing."""
    names = sorted(set(tasks))
    if not names:
        return [], [Lack(None, "it has no tasks, and sizes are those of tasks")]
    found = {a.task: a for a in advices_of(session, Kind.of(run), prices=prices) if a.task in names}
    lacks = [
        Lack(name, found[name].lack if name in found else "no execution of it has ended")
        for name in names
        if name not in found or found[name].lack
    ]
    return [r for a in found.values() for r in a.recommendations], lacks


def document(advices: list[Advice], source: str, currency: str = "USD", is_short: bool = True) -> Document:
    """The answer of the command. is_short: for people; else with every column, for CSV."""
    # Of runs without a pipeline the command tells which ones they are.
    needed = {
        "pipeline": not is_short or any(a.pipeline is not None for a in advices),
        "command": not is_short or any(a.pipeline is None for a in advices),
        "work_dir": not is_short or len({a.command for a in advices}) < len({(a.command, a.work_dir) for a in advices}),
        "task": True,
    }
    titles = {"work_dir": "folder"}
    names = [Column(name, titles.get(name, name)) for name, is_needed in needed.items() if is_needed]
    columns = [
        *names, Column("successful", "executions", "count"),
        Column("runs", "runs", "count"), Column("current_cpus", "CPUs", "number"),
        Column("recommended_cpus", "right", "number"),
        Column("current_memory_bytes", "memory", "size"), Column("recommended_memory_bytes", "right", "size"),
        Column("recommended_time_ns", "time limit", "ns"), Column("confidence", "confidence"),
        Column("saving_per_run", "saving a run", "money"),
    ]  # fmt: skip
    advised = [a for a in advices if not a.lack]
    table = Table("tasks", "What each task should be given", columns, [_row(a) for a in advised])
    why = [
        {"task": a.task, "what": r.what, "confidence": r.confidence, "sentence": r.sentence} | _kind(a)
        for a in advised for r in a.recommendations
    ]  # fmt: skip
    why += [{"task": a.task, "what": "note", "sentence": note} | _kind(a) for a in advised for note in a.notes]
    is_one = is_short and len({(a.pipeline, a.command, a.work_dir) for a in advised}) == 1
    because = Table(
        "evidence", "Why, and what sizes do not mend",
        [*(names[-1:] if is_one else names), Column("what", "what"), Column("confidence", "confidence"),
         Column("sentence", "evidence")],
        sorted(why, key=lambda w: tuple(str(w[name] or "") for name in needed)),
    )  # fmt: skip
    lack = Table(
        "too_little_evidence", "Too little evidence: nothing is recommended",
        [*names, Column("lack", "why")],
        [{"task": a.task, "lack": a.lack} | _kind(a) for a in advices if a.lack],
    )  # fmt: skip
    notes = []
    if not advices:
        notes.append("No task of these runs has ended: there is nothing to recommend from.")
    if advised and all(a.saving is None for a in advised):
        notes.append(
            "No saving can be told: it takes a price of the hosts (--prices FILE) and what the engine requested."
        )
    return Document(
        f"Recommendations from {source}", tables=[table, because, lack], notes=notes, data={"tasks": _data(advices)},
        main="tasks", currency=currency,
    )  # fmt: skip


def _kind(a: Advice) -> dict[str, Any]:
    return {"pipeline": a.pipeline, "command": a.command, "work_dir": a.work_dir}


def _row(a: Advice) -> dict[str, Any]:
    cpus, memory, time = a.of("cpus"), a.of("memory_bytes"), a.of("time_ns")
    sizes = [r for r in (cpus, memory, time) if r]
    return _kind(a) | {
        "task": a.task, "successful": a.successful, "runs": a.runs,
        "current_cpus": cpus.current if cpus else None, "recommended_cpus": cpus.recommended if cpus else None,
        "current_memory_bytes": memory.current if memory else None,
        "recommended_memory_bytes": memory.recommended if memory else None,
        "recommended_time_ns": time.recommended if time else None,
        "confidence": min_confidence(*sizes), "saving_per_run": a.saving,
    }  # fmt: skip


def _data(advices: list[Advice]) -> list[dict[str, Any]]:
    names = (
        "pipeline",
        "command",
        "work_dir",
        "task",
        "engine",
        "executions",
        "successful",
        "runs",
        "recommendations",
        "notes",
    )
    return [
        {name: getattr(a, name) for name in names} | {"lack": a.lack or None, "saving_per_run": a.saving}
        for a in advices
    ]  # fmt: skip


def positive(text: str) -> int:
    """A whole number above 0, for argparse."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'"{text}" is no whole number above 0')
    return int(text)


def since(text: str | None) -> int | None:
    """--since as microseconds UTC; UserError says what is allowed."""
    if text is None:
        return None
    try:
        return find.now() - units.parse_duration_us(text)
    except ValueError as e:
        raise UserError(f"--since: {e}") from e


def add_run_choice(parser: argparse.ArgumentParser, default: int) -> None:
    """--runs and --since: which runs of a pipeline count."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--runs", metavar="N", type=positive, help=f"the latest N runs (default: {default}, or all of --since)"
    )
    which.add_argument("--since", metavar="TIME", help="runs that began so long ago or later, such as 30d")


def runs_of(args: argparse.Namespace, default: int) -> int | None:
    """How many runs --runs and --since leave: None for all."""
    return args.runs or (None if args.since else default)


def add_prices(parser: argparse.ArgumentParser) -> None:
    """--prices."""
    parser.add_argument("--prices", metavar="FILE", help="your price table, a CSV file")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sluice tune recommend`."""
    parser.add_argument("--pipeline", metavar="P", help="this pipeline (default: every one in the lake)")
    parser.add_argument("--task", metavar="T", help="this task alone")
    add_run_choice(parser, RUNS)
    parser.add_argument(
        "--emit", choices=sorted(emit.FORMATS), help="print configuration for this engine, evidence in its comments"
    )
    add_prices(parser)
    lake_open.add_arguments(parser)
    common.add_output(parser)
    sections = ("tasks", "evidence", "too_little_evidence")
    parser.add_argument("--section", choices=sections, help="the table of --format csv (default: tasks)")


def main(args: argparse.Namespace) -> int:
    """`sluice tune recommend`: prints the answer; 0."""
    prices = price_table.read(args.prices) if args.prices else None
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
            mend = f"name it with --pipeline: {names}" if names else "runs get one by sluice run --pipeline P"
            raise UserError("--emit is for one pipeline, and there are several", mend)
        common.write(args.output, emit.render(args.emit, advices, source))
        return 0
    answer = document(advices, source, prices.currency if prices else "USD", is_short=args.format == "table")
    answer.warnings = warnings
    common.emit(answer, args)
    return 0
