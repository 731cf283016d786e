# SPDX-License-Identifier: Apache-2.0
"""The chain of tasks that a run's end waited for.

Records hold no graph of which task waits for which, so that the chain is derived from time. It ends with
the task that ended last. Before a task on it comes the one that ended last of those that had ended when it
began: had that one ended sooner, this one may have begun sooner. Limits: two tasks of which the one waited
for a free CPU rather than for the other's output are chained in the same way (both lengthen the run), a
chance predecessor that merely ended last hides the true one if that ended a little sooner, and clocks of
different hosts are taken as they are.
"""

from __future__ import annotations

import bisect

from .run_report import TaskRow


def critical_path(tasks: list[TaskRow], last_us: int) -> list[TaskRow]:
    """The tasks on the chain, in order. One that still runs ends at last_us (microseconds UTC)."""

    def end(task: TaskRow) -> int:
        return last_us if task.end_time is None else task.end_time

    by_end = sorted(tasks, key=lambda t: (end(t), t.start_time, t.task_id))
    ends = [end(t) for t in by_end]
    chain: list[TaskRow] = []
    at = len(by_end) - 1
    while at >= 0:
        task = by_end[at]
        chain.append(task)
        # Strictly before in the order too: tasks of no length would precede themselves.
        at = min(bisect.bisect_right(ends, task.start_time), at) - 1
    return chain[::-1]
