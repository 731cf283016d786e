# SPDX-License-Identifier: Apache-2.0
"""`sluice tune recommend`: what each task of a pipeline should be given, from what its executions used."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import NotFound
from ..lake.session import Session
from ..prices import Prices
from . import evidence, find
from .advice import Advice, advise
from .evidence import Execution, Kind
from .run_report import RUNS, Lack, Recommendation


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
        advices += [
            advise(kind, t, found, hosts, prices, now) for t, found in by_task.items()
            if task in (None, t) and any(e.has_ended for e in found)
        ]  # fmt: skip
    if task is not None and not advices:
        raise NotFound(f'no execution of a task "{task}" in {session.source}', "sluice tune recommend lists the tasks")
    return sorted(advices, key=lambda a: (a.pipeline or "", a.command or "", a.work_dir or "", a.task))


def of_run(
    session: Session, run: find.Run, tasks: Iterable[str], prices: Prices | None = None
) -> tuple[list[Recommendation], list[Lack]]:
    """For these tasks of a run, from the latest runs of its kind: what is recommended, and why the rest has nothing."""
    names = sorted(set(tasks))
    if not names:
        return [], [Lack(None, "it has no tasks, and sizes are recommended for tasks")]
    found = {a.task: a for a in advices_of(session, Kind.of(run), prices=prices) if a.task in names}
    lacks = [
        Lack(name, found[name].lack if name in found else "no execution of it has ended")
        for name in names
        if name not in found or found[name].lack
    ]
    return [r for a in found.values() for r in a.recommendations], lacks
