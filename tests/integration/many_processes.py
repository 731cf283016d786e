# SPDX-License-Identifier: Apache-2.0
"""A host with tens of thousands of processes: all are discovered, all ends at once are recorded, nothing is lost.

    PROCESSES=50000 python tests/integration/many_processes.py      not part of the suite: dev/test nightly has it

Prints what it takes: the pass that discovers them, the agent's CPU time and memory.
"""
import collections
import os
import re
import subprocess
import time

import harness
from agent import AgentTest
from harness import losses, read_lake
from load import Load

PROCESSES = int(os.environ.get("PROCESSES", "50000"))
PID_MAX = "/proc/sys/kernel/pid_max"
TICK = os.sysconf("SC_CLK_TCK")


class ManyProcesses(AgentTest):
    def setUp(self):
        super().setUp()
        with open(PID_MAX) as f:
            before = f.read()
        if int(before) < 4 * PROCESSES:
            self.addCleanup(self.set_pid_max, before)
            self.set_pid_max(str(4 * PROCESSES))

    def set_pid_max(self, text):
        with open(PID_MAX, "w") as f:
            f.write(text)

    def sleepers(self, mark, n):
        p = subprocess.Popen([harness.built("sleepers"), mark, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(p.wait)
        self.addCleanup(p.stdin.close)
        self.assertEqual("ready\n", p.stdout.readline())
        return p

    def left(self):
        """Whether any of them still runs."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if f.read().startswith(b"sleeper\0many\0"):
                        return True
            except OSError:
                pass
        return False

    def cost(self, a):
        """(seconds of CPU, KiB of memory, its peak) of an agent"""
        with open(f"/proc/{a.pid}/stat") as f:
            stat = f.read().rpartition(")")[2].split()
        with open(f"/proc/{a.pid}/status") as f:
            status = f.read()
        return ((int(stat[11]) + int(stat[12])) / TICK,
                *(int(re.search(name + r":\s+(\d+)", status)[1]) for name in ("VmRSS", "VmHWM")))

    def test_they_are_discovered_and_their_ends_recorded(self):
        """By its name it runs first: a Python that has read 100,000 records takes 40 ms for a fork, and can put no load on."""
        sleepers = self.sleepers("many", PROCESSES)
        a = self.agent(interval="10s", probes={"max_processes": 3 * PROCESSES}, drain="120s")
        began = time.monotonic()
        a.start(timeout=300)
        a.settle(timeout=300)
        print(f"{PROCESSES} processes: discovered in {time.monotonic() - began:.1f} s, {self.cost(a)}", flush=True)
        with Load("beside", rate=200) as load:
            load.wait_more(1000)
            a.wait(lambda: a.status()["uptime_ns"] > 12e9, 60, "a pass")
        print(f"beside {load.started} programs: {self.cost(a)}", flush=True)
        self.end_all(a, sleepers)
        topics = self.assert_ends(a)
        self.assertEqual([], load.check(topics["sluice.program"])[:5])

    def test_they_are_taken_over_by_another_version(self):
        sleepers = self.sleepers("many", PROCESSES)
        a = self.agent(interval="10s", probes={"max_processes": 3 * PROCESSES}, drain="120s")
        a.start(timeout=300)
        a.settle(timeout=300)
        a.kill9()
        a.sluice = harness.built("sluice_more_state")
        a.start(timeout=300)
        self.assertIn("their state was copied", a.wait_log("probes.open")["message"])
        self.end_all(a, sleepers)
        topics = self.assert_ends(a)
        (gap,) = [r["interval_ns"] / 1e9 for r in topics["sluice.agent"] if r["event"] == "GAP"]
        print(f"the gap is {gap:.3f} s")

    def end_all(self, a, sleepers):
        began = time.monotonic()
        sleepers.kill()  # and they by PR_SET_PDEATHSIG, all at once
        a.settle(timeout=600)
        a.wait(lambda: not self.left(), 600, "the last one's end")
        ended = time.monotonic()
        a.settle(timeout=600)
        print(f"all ended in {ended - began:.1f} s, recorded {time.monotonic() - ended:.1f} s later, {self.cost(a)}", flush=True)

    def assert_ends(self, a):
        self.assertEqual(0, a.stop(300), a.log_text())
        topics = read_lake(a.lake)
        ends = collections.Counter(int(r["argv"][2]) for r in topics["sluice.program"]
                                   if (r["argv"] or [])[:2] == ["sleeper", "many"] and r["phase"] == "END")
        self.assertEqual({1}, set(ends.values()))
        self.assertEqual(set(range(PROCESSES)), set(ends))
        self.assertEqual([], [x for x in losses(topics) if x[1] not in ("cut", "skipped")])
        return topics


if __name__ == "__main__":
    harness.main()
