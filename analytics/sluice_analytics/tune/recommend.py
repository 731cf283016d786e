# SPDX-License-Identifier: Apache-2.0
"""`sluice tune recommend`: what each task of a pipeline should be given, from what its executions used."""

from __future__ import annotations

import argparse
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
from .evidence import Execution
from .run_report import Recommendation

RUNS = 50
"""The latest runs of a pipeline that count, unless told otherwise"""


def advices_of(
    session: Session,
    pipeline: str | None = None,
    *,
    runs: int | None = RUNS,
    since_us: int | None = None,
    task: str | None = None,
    prices: Prices | None = None,
    now_us: int | None = None,
) -> list[Advice]:
    """Advice for every task of a pipeline (None: of every pipeline), in the order of their names.

    runs: the latest so many of each pipeline; since_us: those that began then or later (microseconds UTC).
    NotFound where no run or no such task is there.
    """
    now = find.now() if now_us is None else now_us
    advices = []
    for name, chosen in evidence.choose_runs(session, pipeline, runs, since_us).items():
        hosts = evidence.hosts(session, chosen, prices)
        by_task: dict[str, list[Execution]] = {}
        for execution in evidence.executions(session, chosen):
            by_task.setdefault(execution.task, []).append(execution)
        advices += [advise(name, t, found, hosts, prices, now) for t, found in by_task.items() if task in (None, t)]
    if task is not None and not advices:
        raise NotFound(f'no execution of a task "{task}" in {session.source}', "sluice tune recommend names the tasks")
    return sorted(advices, key=lambda a: (a.pipeline or "", a.task))


def recommend(
    session: Session, pipeline: str | None = None, *, prices: Prices | None = None, now_us: int | None = None
) -> list[Recommendation]:
    """The recommendations alone, over the latest runs: what the report of a run shows of its pipeline."""
    return [r for a in advices_of(session, pipeline, prices=prices, now_us=now_us) for r in a.recommendations]


def document(advices: list[Advice], source: str, currency: str = "USD") -> Document:
    """The answer of the command."""
    columns = [
        Column("pipeline", "pipeline"), Column("task", "task"), Column("successful", "executions", "count"),
        Column("runs", "runs", "count"), Column("current_cpus", "CPUs", "number"),
        Column("recommended_cpus", "right", "number"),
        Column("current_memory_bytes", "memory", "size"), Column("recommended_memory_bytes", "right", "size"),
        Column("recommended_time_ns", "time limit", "ns"), Column("confidence", "confidence"),
        Column("saving_per_run", "saving a run", "money"),
    ]  # fmt: skip
    advised = [a for a in advices if not a.lack]
    table = Table("tasks", "What each task should be given", columns, [_row(a) for a in advised])
    why = [
        {"task": a.task, "what": r.what, "confidence": r.confidence, "sentence": r.sentence, "pipeline": a.pipeline}
        for a in advised for r in a.recommendations
    ]  # fmt: skip
    why += [
        {"task": a.task, "what": "note", "sentence": note, "pipeline": a.pipeline} for a in advised for note in a.notes
    ]
    because = Table(
        "evidence", "Why, and what sizes do not mend",
        [Column("task", "task"), Column("what", "what"), Column("confidence", "confidence"),
         Column("sentence", "evidence")],
        sorted(why, key=lambda w: (str(w["pipeline"] or ""), str(w["task"]))),
    )  # fmt: skip
    lack = Table(
        "too_little_evidence", "Too little evidence: nothing is recommended",
        [Column("pipeline", "pipeline"), Column("task", "task"), Column("lack", "why")],
        [{"pipeline": a.pipeline, "task": a.task, "lack": a.lack} for a in advices if a.lack],
    )  # fmt: skip
    notes = []
    if not advices:
        notes.append("No task of these runs has ended: there is nothing to recommend from.")
    if advised and all(a.saving is None for a in advised):
        notes.append("No saving can be told: it takes a price table (--prices FILE) and what the engine requested.")
    return Document(
        f"Recommendations from {source}", tables=[table, because, lack], notes=notes, data={"tasks": _data(advices)},
        main="tasks", currency=currency,
    )  # fmt: skip


def _row(a: Advice) -> dict[str, Any]:
    cpus, memory, time = a.of("cpus"), a.of("memory_bytes"), a.of("time_ns")
    sizes = [r for r in (cpus, memory, time) if r]
    return {
        "pipeline": a.pipeline, "task": a.task, "successful": a.successful, "runs": a.runs,
        "current_cpus": cpus.current if cpus else None, "recommended_cpus": cpus.recommended if cpus else None,
        "current_memory_bytes": memory.current if memory else None,
        "recommended_memory_bytes": memory.recommended if memory else None,
        "recommended_time_ns": time.recommended if time else None,
        "confidence": min_confidence(*sizes), "saving_per_run": a.saving,
    }  # fmt: skip


def _data(advices: list[Advice]) -> list[dict[str, Any]]:
    names = ("pipeline", "task", "engine", "executions", "successful", "runs", "recommendations", "notes")
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
        if len({a.pipeline for a in advices}) > 1:
            names = ", ".join(sorted({a.pipeline or units.DASH for a in advices}))
            raise UserError("--emit is for one pipeline, and there are several", f"name it with --pipeline: {names}")
        common.write(args.output, emit.render(args.emit, advices, source))
        return 0
    answer = document(advices, source, prices.currency if prices else "USD")
    answer.warnings = warnings
    common.emit(answer, args)
    return 0
