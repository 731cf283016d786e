# SPDX-License-Identifier: Apache-2.0
"""cpu_migrations beside /proc/PID/task/TID/sched: of threads that have ended, of those before an exec, and of whole runs."""
import os

import harness
from harness import LakeTest, read_lake

MOVES = 20  # that a thread asks for itself, to one CPU and back

# Each thread ends on a CPU that it may not leave: what it reads of itself last is what the kernel says in the end.
PROGRAM = """
import os, re, sys, threading
moves_each, last, program, *cpus = sys.argv[1:]
moves_each, cpus = int(moves_each), [int(cpu) for cpu in cpus]
told = []
def moves(n):
    for i in range(n):
        os.sched_setaffinity(0, {cpus[i % len(cpus)]})
    os.sched_setaffinity(0, {cpus[0]})
    with open(f"/proc/self/task/{threading.get_native_id()}/sched") as f:
        told.append(int(re.search(r"nr_migrations *: *(\\d+)", f.read())[1]))
threads = [threading.Thread(target=moves, args=(moves_each * n,)) for n in (1, 2, 3)]
for t in threads: t.start()
for t in threads: t.join()
moves(moves_each)
print(sum(told), told[-1], flush=True)
if last == "exec":
    os.execv(sys.executable, [sys.executable, "-c", program, sys.argv[1], "end", *sys.argv[3:]])
"""


class Migrations(LakeTest):
    def run_moves(self, last):
        cpus = map(str, sorted(os.sched_getaffinity(0)))
        done = self.sluice_run("/usr/bin/python3", "-c", PROGRAM, str(MOVES), last, PROGRAM, *cpus, options=["--quiet"])
        self.assertEqual(0, done.returncode, done.stderr)
        self.assert_nothing_lost()
        topics = read_lake(self.lake)
        ends = [r for r in topics["sluice.program"] if r["phase"] == "END" and r["comm"] == "python3"]
        (run,) = [r for r in topics["sluice.run"] if r["phase"] == "END"]
        self.assertEqual(run["usage"]["cpu_migrations"],
                         sum(r["usage"]["cpu_migrations"] for r in topics["sluice.program"] if r["phase"] == "END"))
        told = [[int(n) for n in line.split()] for line in done.stdout.splitlines()]
        return told, [r["usage"]["cpu_migrations"] for r in sorted(ends, key=lambda r: r["program_index"])]

    def test_each_thread_of_a_program_counts(self):
        ((total, _),), counted = self.run_moves("end")
        self.assertEqual([total], counted)
        if len(os.sched_getaffinity(0)) > 1:
            self.assertGreater(total, 5 * MOVES)

    def test_a_program_does_not_count_what_came_before_its_exec(self):
        ((first, of_leader), (second, _)), counted = self.run_moves("exec")
        # The leader's task stays through exec: the second program reads its own moves and those before of its leader.
        self.assertEqual([first, second - of_leader], counted)


if __name__ == "__main__":
    harness.main()
