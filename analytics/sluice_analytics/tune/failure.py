# SPDX-License-Identifier: Apache-2.0
"""Why it failed: the first program that did, and what followed from it.

A task fails because its first program does, and that fails, as a rule, because a program below it did:
from the top of a failed task the search goes down to the deepest failed program whose failure the ones
above it only passed on. A failed child was passed on, not passed over, where its parent

  - was replaced by it (exec), or has its exit code, or 128 + its signal, as shells have; or ended within
    PROMPT_US of its last child, whatever its code (Python, make); or the kernel killed the child for memory,
  - and began no other child after the child's end, but for one that ran when it had already lost (a trap).

Of several such children the first to end is the cause: in `a | b` the b that died, not the a that SIGPIPE
ended after it. A grep that found nothing, or a test, is passed over, and so is every failed program of a
task that succeeded.

What an engine started as a task was meant to succeed: its failure is one even where the engine continued.
Where a script drives the run (`sluice run -- bash …`), its children are tasks by descent alone, and the whole
run is searched from its driver down as one task is.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import units
from ..lake.expression import ibis
from ..lake.session import Row, Scope, Session
from ..model.records import failed
from .run_report import Failure, TaskRow, ended_badly
from .tools import command_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

PROMPT_US = 2_000_000
"""A parent that ends so soon after its last child ended because of it (microseconds)"""

FOLLOW_US = 60_000_000
"""A task that a signal ended within this time of another's failure was ended because of it (microseconds)"""

FULL_BEFORE_US, FULL_AFTER_US = 60_000_000, 30_000_000
"""A program failed of a full disk where a finding of its run is no older than this, or so much later (microseconds).
Later, because the agent looks once in an interval, and as a task or run ends; an older state may have passed."""

TASKS = 50
"""Failed tasks that are looked into, the first to fail; the others are only counted"""

PROGRAMS = 50_000
"""Programs of failed tasks that are looked at"""

_SCRIPTED = (None, "sluice")
"""Engines of tasks that no engine started"""

_ENDING = {signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_OF_DISK = {signal.SIGBUS, signal.SIGABRT}  # a page of a file that no block is left for; a program that gives up
_ENGINES = {signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_NEAR_LIMIT = 0.9
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_BIG_EXIT = 128


@dataclasses.dataclass
class Node:
    """One program of a failed task, with those it started."""

    row: Row
    is_outside: bool
    """It is no engine's task's"""
    children: list[Node] = dataclasses.field(default_factory=list)

    @property
    def id(self) -> str:
        """Its program_id."""
        return str(self.row["program_id"])

    @property
    def end(self) -> int:
        """When it ended, microseconds UTC; far away while it runs."""
        return 2**62 if self.row["end_time"] is None else int(self.row["end_time"])

    @property
    def start(self) -> int:
        """When it began."""
        return int(self.row["program_start_time"])

    @property
    def signal(self) -> int | None:
        """The signal that ended it: its own, or the one that a shell's exit code passes on."""
        if self.row["exit_signal"] is not None:
            return int(self.row["exit_signal"])
        code = self.row["exit_code"]
        return code - _BIG_EXIT if code is not None and code > _BIG_EXIT and units.is_signal(code - _BIG_EXIT) else None

    @property
    def failed(self) -> bool:
        """Did it end by a signal or with a code other than 0?"""
        return ended_badly(self.row["exit_code"], self.row["exit_signal"])

    @property
    def status(self) -> int | None:
        """What a shell's $? would hold of it."""
        if self.row["exit_signal"] is not None:
            return _BIG_EXIT + int(self.row["exit_signal"])
        return None if self.row["exit_code"] is None else int(self.row["exit_code"])

    @property
    def name(self) -> str:
        """What a person calls it."""
        return str(self.row["tool"] or self.row["comm"] or "a program")


@dataclasses.dataclass
class Found:
    """The failures of a run, and the failed programs that they do not explain."""

    failures: list[Failure]
    tasks_left_out: int
    passed_over: dict[str, int]
    """Tool -> how many of its programs ended with a code other than 0 without a consequence"""


def find(
    session: Session,
    scope: Scope,
    all_programs: ir.Table,
    tasks: list[TaskRow],
    run_failed: bool,
    parts_failed: dict[str, int],
) -> Found:
    """The failures of a run, the first first. all_programs: its programs, tools.COLUMNS of them.

    run_failed: its driver ended by a signal or with a code other than 0. parts_failed: tool -> how many of its
    programs failed, of which those are taken off that failures explain.
    """
    bad = sorted((t for t in tasks if is_failed(t) and is_driven(t)), key=lambda t: (t.end_time or 0, t.task_id))
    scripted = {t.task_id for t in tasks if not is_driven(t)}
    looked_at = bad[:TASKS]
    recovered = {t.task_id for t in bad if _has_recovered(t, tasks)}
    outside = run_failed and all(t.task_id in recovered for t in bad)
    explained: dict[str, int] = {}
    failures: list[Failure] = []
    if looked_at or run_failed:
        nodes = _nodes(session, all_programs, [t.task_id for t in looked_at], run_failed, scripted)
        findings = _findings(session, scope)
        for task in looked_at:
            own = [n for n in nodes if not n.is_outside and n.row["task_id"] == task.task_id and _is_of(n, task)]
            if own:
                failure = _explain(own, task, explained, findings)
                failure.recovered = task.task_id in recovered
                failures.append(failure)
        own = [n for n in nodes if n.is_outside]
        if outside and any(n.failed for n in own):
            failures.append(_explain(own, None, explained, findings))
        elif run_failed:
            _add_driver(own, failures, explained)
    failures.sort(key=lambda f: (f.time or 0, f.program_id))
    _blame(failures, tasks)
    left = {tool: n - explained.get(tool, 0) for tool, n in parts_failed.items() if n > explained.get(tool, 0)}
    return Found(failures, len(bad) - len(looked_at), left)


def _add_driver(own: list[Node], failures: list[Failure], explained: dict[str, int]) -> None:
    """The engine failed because its tasks did: it ends the chain of each that did not recover."""
    ids = {n.id for n in own}
    tops = [n for n in own if n.row["parent_program_id"] not in ids]
    top = min(tops, key=lambda n: n.start, default=None)
    last = _last_image(top) if top else None
    if last is None or not last.failed:
        return
    explained[last.name] = explained.get(last.name, 0) + 1
    for failure in failures:
        if not failure.recovered:
            failure.chain.append(_said(last))


def is_driven(task: TaskRow) -> bool:
    """Did an engine start it, rather than a script?"""
    return task.engine not in _SCRIPTED


def is_failed(task: TaskRow) -> bool:
    """Did its first program end by a signal or with a code other than 0?"""
    return ended_badly(task.exit_code, task.exit_signal)


def _has_recovered(task: TaskRow, tasks: list[TaskRow]) -> bool:
    return any(
        t.name == task.name and t.sample == task.sample and t.exit_code == 0 and t.start_time >= (task.end_time or 0)
        for t in tasks
        if task.retried
    )


def _is_of(node: Node, task: TaskRow) -> bool:
    """Does a program belong to this attempt? An engine may give attempts one task_id."""
    return node.start >= task.start_time and (task.end_time is None or node.start <= task.end_time)


def _nodes(session: Session, t: ir.Table, task_ids: list[str], outside: bool, scripted: set[str]) -> list[Node]:
    """The programs of these tasks, and those of no engine's task, linked."""
    mine = t.task_id.isin(task_ids) if task_ids else t.task_id.isnull()
    if outside and task_ids:
        mine = mine | t.task_id.isnull()
    if outside and scripted:
        mine = ibis.literal(True)
    chosen = t.filter(mine).mutate(_failed=failed(t).cast("int64"))
    rows = session.rows(
        chosen.order_by(chosen._failed.desc(), chosen.end_time, chosen.program_id).limit(PROGRAMS).select(
            "program_id", "parent_program_id", "program_index", "tool", "comm", "exe", "argv", "task_id", "task", "pid",
            "host_name", "program_start_time", "end_time", "end_reason", "exit_code", "exit_signal", "oom_killed",
            "peak_rss_bytes", "write_bytes", "overhead",
        )
    )  # fmt: skip
    nodes = {row["program_id"]: Node(row, row["task_id"] is None or row["task_id"] in scripted) for row in rows}
    for node in nodes.values():
        parent = nodes.get(node.row["parent_program_id"])
        is_same = node.is_outside or (parent and parent.row["task_id"] == node.row["task_id"])
        if parent and parent.is_outside == node.is_outside and is_same:
            parent.children.append(node)
    return sorted(nodes.values(), key=lambda n: (n.start, n.id))


def _findings(session: Session, scope: Scope) -> list[Row]:
    """The findings that a disk was full on which the run, or a task of it, works, and those of who sent a signal."""
    t = session.table("finding", scope).filter(ibis._.kind.isin(("DISK_FULL", "KILLED")) & ibis._.message.notnull())
    return session.rows(t.select("kind", "time", "host_name", "task_id", "program_id", "message"))


def _full_disk_of(cause: Node, findings: list[Row]) -> Row | None:
    """The finding next to the end of a program, on its host; None: there is none, or it ended of something else.

    The program that a finding names has written most of those that lived, and need not be the one that failed. A shell
    that found no command, and what another program ended, did not fail of a disk.
    """
    if cause.signal not in (None, *_OF_DISK) or cause.row["exit_code"] in (_NOT_EXECUTABLE, _NOT_FOUND):
        return None
    near = [
        row for row in findings
        if row["kind"] == "DISK_FULL" and row["host_name"] == cause.row["host_name"]
        and cause.end - FULL_BEFORE_US <= row["time"] <= cause.end + FULL_AFTER_US
    ]  # fmt: skip
    return min(near, key=lambda row: abs(row["time"] - cause.end), default=None)


def _sender_of(cause: Node, findings: list[Row]) -> tuple[Row, str] | None:
    """The finding of who sent the signal that ended a program, and its words for that; None: there is none.

    Who signals a whole group has one finding, of the topmost program: the task's first one, or the run's driver.
    """
    if cause.signal is None:
        return None
    before = f" was ended by {units.signal_name(cause.signal)}, "
    killed = [
        row for row in findings
        if row["kind"] == "KILLED" and row["host_name"] == cause.row["host_name"] and before in row["message"]
    ]  # fmt: skip
    near = [
        row for row in killed
        if row["task_id"] in (None, cause.row["task_id"]) and abs(row["time"] - cause.end) <= PROMPT_US
    ]  # fmt: skip
    found = [row for row in killed if row["program_id"] == cause.id] or near
    nearest = min(found, key=lambda row: abs(row["time"] - cause.end), default=None)
    return (nearest, nearest["message"].partition(before)[2]) if nearest else None


def _explain(own: list[Node], task: TaskRow | None, explained: dict[str, int], findings: list[Row]) -> Failure:
    """The failure of one task, or of what ran outside of tasks."""
    cause, above = _cause(own)
    victims = [
        n for n in own
        if n is not cause and n not in above and n.failed and n.end >= cause.end and n.signal in _ENDING
    ]  # fmt: skip
    for node in (cause, *above, *victims):
        if node.failed:
            explained[node.name] = explained.get(node.name, 0) + 1
    return _failure(cause, [n for n in above if n.failed], victims, task, findings)


def _cause(own: list[Node]) -> tuple[Node, list[Node]]:
    """The program that a task failed of, and those above it, nearest first."""
    ids = {n.id for n in own}
    killed = [n for n in own if n.row["oom_killed"]]
    parents = {child.id: n for n in own for child in n.children}
    if killed:
        cause = min(killed, key=lambda n: (n.end, n.id))
        above = []
        at = cause
        while at.id in parents:
            at = parents[at.id]
            above.append(at)
        return cause, above
    tops = [n for n in own if n.row["parent_program_id"] not in ids]
    # The first program of a task, then what it was replaced by.
    top = min((n for n in tops if n.failed or _passed_on(n)), key=lambda n: n.start, default=None)
    if top is None:
        lost = [n for n in own if n.failed]  # the chain to the top has a hole: the first failure replaces it
        return (min(lost, key=lambda n: (n.end, n.id)) if lost else own[0]), []
    path = [top]
    while below := _passed_on(path[-1]):
        path.append(below)
    return path[-1], path[-2::-1]


def _passed_on(node: Node) -> Node | None:
    """The child whose failure a program passed on; None: its failure is its own."""
    if node.row["end_reason"] == "EXEC":
        successor = next((c for c in node.children if c.row["pid"] == node.row["pid"]), None)
        return successor if successor and (successor.failed or _passed_on(successor)) else None
    if not node.failed:
        return None
    # A child that was replaced by exec ended as its last program did.
    children = [(c, _last_image(c)) for c in node.children]
    bad = [(c, last) for c, last in children if last.failed and last.end <= node.end]
    if not bad:
        return None
    was_prompt = node.end - max(last.end for _, last in children if last.end <= node.end) <= PROMPT_US

    def went_on(last: Node) -> bool:
        return any(c.start >= last.end for c, _ in children)

    def is_same(last: Node) -> bool:
        return last.status == node.status

    def first(some: Iterable[tuple[Node, Node]]) -> Node | None:
        return min(some, key=lambda p: (p[1].end, p[1].id), default=(None, None))[0]

    ended_it = [p for p in bad if not went_on(p[1])]
    if was_prompt or any(is_same(last) for _, last in ended_it):
        passed_on = first(ended_it)
        if passed_on:
            return passed_on
    same = [p for p in bad if is_same(p[1]) and p[1].status not in (0, 1)]
    return max(same, key=lambda p: (p[1].end, p[1].id))[0] if same else None  # then a trap ran


def _last_image(node: Node) -> Node:
    while node.row["end_reason"] == "EXEC":
        successor = next((c for c in node.children if c.row["pid"] == node.row["pid"]), None)
        if successor is None:
            break
        node = successor
    return node


def _failure(cause: Node, above: list[Node], victims: list[Node], task: TaskRow | None, findings: list[Row]) -> Failure:
    row = cause.row
    limit = task.efficiency.requested_memory_bytes if task else None
    peak = row["peak_rss_bytes"]
    evidence: dict[str, Any] = {
        "pid": row["pid"],
        "host_name": row["host_name"],
        "wall_ns": (cause.end - cause.start) * 1000,
    }
    if row["oom_killed"] is not None:
        evidence["oom_killed"] = row["oom_killed"]
    if peak is not None:
        evidence["peak_rss_bytes"] = peak
    if limit:
        evidence["requested_memory_bytes"] = limit
    if victims:
        evidence["ended_because_of_it"] = [_said(v) for v in victims]
    timeout = next((a for a in above if a.name.split(" ")[0] == "timeout" and a.row["exit_code"] == 124), None)
    full, sender = _full_disk_of(cause, findings), None if timeout else _sender_of(cause, findings)
    kind, sentence = _judge(cause, limit, full is not None, sender[1] if sender else "")
    if full and kind == "DISK_FULL":
        evidence["disk_full_time"] = full["time"]
        evidence["finding"] = full["message"]
    if sender and kind == "SIGNAL":
        evidence["finding"] = sender[0]["message"]
    if timeout:
        sentence += f": timeout ended it after {units.duration((timeout.end - timeout.start) * 1000)}"
    if victims:
        sentence += f"; {len(victims)} other program{'s' * (len(victims) > 1)} of the task ended as a consequence"
    return Failure(
        kind=kind,
        task_id=row["task_id"],
        task=row["task"],
        program_id=cause.id,
        tool=cause.name,
        command=command_of(row),
        exit_code=row["exit_code"],
        exit_signal=row["exit_signal"],
        time=row["end_time"],
        sentence=sentence,
        evidence=evidence,
        chain=[_said(a) for a in above],
        victims=[v.id for v in victims],
    )


def _judge(cause: Node, limit: int | None, disk_was_full: bool, sender: str) -> tuple[str, str]:
    """Kind and sentence, from its records. sender: who sent the signal, as a clause; empty: not known."""
    row = cause.row
    peak = row["peak_rss_bytes"]
    memory = f" at {units.size(peak)}" if peak is not None else ""
    if limit and memory:
        memory += f" of {units.size(limit)} requested"
    if row["oom_killed"]:
        return "OOM_KILLED", f"{cause.name} was killed by the kernel because memory ran out{memory}"
    if disk_was_full:
        return "DISK_FULL", f"{cause.name} failed when the disk was full"
    if row["exit_signal"] is not None:
        number = int(row["exit_signal"])
        sentence = f"{cause.name} was ended by {units.signal_name(number)}{_meaning_of_signal(number, sender)}"
        if number == signal.SIGKILL and not sender and limit and peak is not None and peak >= _NEAR_LIMIT * limit:
            sentence += f"; its memory was{memory}, so that a memory limit is the likely cause"
        return "SIGNAL", sentence
    code = row["exit_code"]
    if code == _NOT_FOUND:
        return "NOT_FOUND", f"{cause.name} did not find a command (exit code 127)"
    if code == _NOT_EXECUTABLE:
        return "NOT_EXECUTABLE", f"{cause.name} could not execute the command (exit code 126)"
    if code is None:
        return "EXIT", f"{cause.name} failed; how it ended is not known"
    number = code - _BIG_EXIT
    if code > _BIG_EXIT and units.is_signal(number):
        return "SIGNAL", (
            f"{cause.name} ended with exit code {code}, as a shell does when {units.signal_name(number)} ends what it "
            f"ran{_meaning_of_signal(number, sender)}"
        )
    return "EXIT", f"{cause.name} ended with exit code {code}"


_MEANINGS = {
    signal.SIGSEGV: "it accessed memory that it may not use",
    signal.SIGBUS: "it accessed memory that was not available, as when a mapped file was truncated or its disk is full",
    signal.SIGABRT: "it aborted itself, for example after a failed assertion",
    signal.SIGILL: "it executed an instruction that this CPU does not have",
    signal.SIGFPE: "arithmetic error, such as a division by zero",
    signal.SIGKILL: "sent by another process or by the kernel",
    signal.SIGTERM: "another process asked it to terminate",
    signal.SIGINT: "an interrupt, such as Ctrl-C",
    signal.SIGPIPE: "the reader of its output had ended",
    signal.SIGXCPU: "it exceeded its limit of CPU time",
    signal.SIGXFSZ: "it exceeded its limit of file size",
    signal.SIGHUP: "its terminal or session was closed",
}


def _meaning_of_signal(number: int, sender: str) -> str:
    if sender:
        return f", {sender}"
    meaning = _MEANINGS.get(signal.Signals(number)) if units.is_signal(number) else None
    return f" ({meaning})" if meaning else ""


def _said(node: Node) -> str:
    """A program and how it ended, for people."""
    if node.row["exit_signal"] is not None:
        how = units.signal_name(int(node.row["exit_signal"]))
    else:
        how = f"exit code {node.row['exit_code']}"
    return f"{node.name} (pid {node.row['pid']}, {how})"


def _blame(failures: list[Failure], tasks: list[TaskRow]) -> None:
    """Tasks that a signal ended soon after another's failure were ended by the engine because of it.

    But not those of which a finding has the sender: who ends a program of its own run has none.
    """
    by_id = {t.task_id: t for t in tasks}
    for at, failure in enumerate(failures):
        number = failure.exit_signal
        if number is None and failure.exit_code is not None and failure.exit_code > _BIG_EXIT:
            number = failure.exit_code - _BIG_EXIT
        if failure.kind != "SIGNAL" or number not in _ENGINES or failure.task_id is None:
            continue
        if "finding" in failure.evidence:
            continue
        began = by_id[failure.task_id].start_time if failure.task_id in by_id else 0
        first = next(
            (
                f for f in failures[:at]
                if f.kind != "KILLED_BY_ENGINE" and f.task_id != failure.task_id and not f.recovered
                and began <= (f.time or 0) and (failure.time or 0) - (f.time or 0) <= FOLLOW_US
            ),
            None,
        )  # fmt: skip
        if first is None:
            continue
        failure.kind = "KILLED_BY_ENGINE"
        failure.evidence["because_of"] = first.program_id
        failure.evidence["after_ns"] = ((failure.time or 0) - (first.time or 0)) * 1000
        failure.sentence += f", {units.duration(failure.evidence['after_ns'])} after {first.tool} failed"
        if first.task:
            failure.sentence += f" in {first.task}"
        first.victims += [failure.program_id, *failure.victims]
