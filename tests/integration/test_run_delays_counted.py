# SPDX-License-Identifier: Apache-2.0
"""Delays of programs that have too little memory, or share a CPU, beside what the kernel's taskstats counts of them. Needs
swap on a disk, a loop device, FUSE and control groups of memory, which the guests of dev/kernels lack."""
import contextlib
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "labelled"))

import books
import harness
import surroundings
import undo
from harness import LakeTest
from test_run_waits import DELAYS, delay_accounting
from workloads import WORKLOADS

LIFE_S = 3 * harness.PATIENCE
RUNS_AT_MOST = 4
MUCH_NS = 1_000_000
WAIT_NS = 100_000_000 * harness.PATIENCE  # for a CPU, once it is switched
PROGRAM = os.path.join(harness.BUILD, "tests", "labelled", "labelled")


class Counted(LakeTest):
    @contextlib.contextmanager
    def surrounded(self, name):
        """A function that runs the labelled workload of that name in its surroundings, and compares both books of it."""
        (workload,) = [w for w in WORKLOADS if w.name == name]
        folder = tempfile.mkdtemp(prefix="sluice-delays-", dir="/var/tmp")  # swap cannot be on a tmpfs
        with undo.Undo() as undoing, undoing.step("rm", "-r", "--one-file-system", folder), contextlib.ExitStack() as stack:
            place = surroundings.Place(folder, PROGRAM, undoing, LIFE_S)
            stack.enter_context(surroundings.around(place, workload))
            stack.enter_context(delay_accounting(True))
            names = {"program": PROGRAM, "seconds": f"{LIFE_S:g}", "file": place.file}
            yield lambda: self.both_books([*place.before, *(part.format(**names) for part in workload.command)])

    def both_books(self, command):
        """{field: of all programs of the workload's process; None where one is unknown}, once it is that of taskstats"""
        before = {r["pid"] for r in self.ends()} if os.path.exists(self.lake) else set()
        with books.Taskstats() as book:
            done = self.sluice_run(*command, options=["--quiet"])
        self.assertEqual(0, done.returncode, done.stderr)
        ends = self.ends()
        (pid,) = {r["pid"] for r in ends if r["comm"] == "labelled"} - before
        (task,) = [t for t in book.tasks if t["pid"] == pid]
        usages = [r["usage"] for r in ends if r["pid"] == pid]  # also of the shell that entered the control group
        usage = {field: None if any(u[field] is None for u in usages) else sum(u[field] for u in usages) for field in usages[0]}
        self.assert_same(usage, task)
        return usage

    def assert_same(self, usage, task):
        """Compact is compared as it is: the kernel counts some only where it moves pages for a large one."""
        counted = {field: task[name] for field, name in DELAYS.items()}
        if usage["block_io_delay_ns"] is None:  # see test_run_waits: no program can have waited for that long
            counted["block_io_delay_ns"] = None
        self.assertEqual(counted, {field: usage[field] for field in DELAYS})
        # A thread may still be switched after its record in taskstats.
        switched = sum(usage[name] - task[name] for name in books.SWITCHES)
        late = usage["run_delay_ns"] - task["run_delay_ns"]
        self.assertTrue(0 <= late <= max(switched, 0) * WAIT_NS, (late, switched))

    def test_swap_and_reclaim(self):
        with self.surrounded("more than its limit, swapped to a disk") as run:
            usage = run()
        self.assertGreater(usage["swapin_delay_ns"], MUCH_NS)
        self.assertGreater(usage["reclaim_delay_ns"], MUCH_NS)

    def test_thrashing_and_reclaim(self):
        with self.surrounded("mapped file of more than its limit") as run:
            # A page that is read back is thrash if it was among the active ones; a control group begins without any.
            for _ in range(RUNS_AT_MOST):
                usage = run()
                if usage["thrashing_delay_ns"] > MUCH_NS:
                    break
        self.assertGreater(usage["thrashing_delay_ns"], MUCH_NS)
        self.assertGreater(usage["reclaim_delay_ns"], MUCH_NS)

    def test_a_shared_cpu(self):
        with self.surrounded("cpu, beside 2") as run:
            usage = run()
        self.assertGreater(usage["run_delay_ns"], LIFE_S * 1_000_000_000 // 4)


if __name__ == "__main__":
    harness.main()
