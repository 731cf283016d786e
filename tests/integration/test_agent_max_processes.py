# SPDX-License-Identifier: Apache-2.0
"""probes.max_processes: those beyond it are counted as lost, the others are whole, and room that is free is used again."""
import collections
import subprocess

import harness
from agent import AgentTest
from harness import losses, read_lake
from load import Load

MAX = 1024  # the least that may be configured
SLEEPERS = 2000


def forks_of_host():
    """All processes and threads that were ever made here."""
    with open("/proc/stat") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("processes "))


class MaxProcesses(AgentTest):
    def sleep(self):
        """All sleepers exist at once, and have ended."""
        p = subprocess.Popen([harness.built("sleepers"), self.room, str(SLEEPERS)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        self.addCleanup(p.kill)
        self.assertEqual("ready\n", p.stdout.readline())
        p.communicate(timeout=60)
        self.assertEqual(0, p.returncode)

    def test_those_beyond_are_counted_and_the_others_whole(self):
        a = self.agent(probes={"max_processes": MAX}).start()
        forked = forks_of_host()
        self.sleep()
        a.settle()  # the room of one that has ended is free once the kernel has freed it
        forked = forks_of_host() - forked
        with Load("afterwards") as load:
            a.wait(lambda: load.started >= 50, what="load")
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        # By id: one that took a second to its exec had its START before that, as what its parent is.
        sleepers = {r["program_id"] for r in topics["sluice.program"] if (r["argv"] or [])[:2] == ["sleeper", self.room]}
        phases = collections.defaultdict(list)
        for r in topics["sluice.program"]:
            if r["program_id"] in sleepers:
                phases[r["program_id"]].append((r["phase"], r["exit_signal"]))
        whole = [("END", 15)], [("START", None), ("END", 15)]  # few live for a second
        self.assertEqual([], [x for x in phases.items() if x[1] not in whole][:5])
        # Nor is one that had no room recorded as another: their parent is the only program of these arguments.
        parents = {r["program_id"] for r in topics["sluice.program"]
                   if (r["argv"] or [])[1:] == [self.room, str(SLEEPERS)] and r["program_id"] not in sleepers}
        self.assertEqual(1, len(parents))
        missing = SLEEPERS - len(phases)
        # What ran here before takes up a part of the room.
        self.assertTrue(0 < len(phases) <= MAX, len(phases))
        counted = {(place, reason): n for place, reason, n in losses(topics) if reason != "cut"}
        beyond = counted.pop(("on_fork", "map_full"), 0)
        self.assertEqual({}, counted)
        # Whatever else was started here meanwhile may have been beyond the limit, too.
        self.assertTrue(missing <= beyond <= missing + forked - SLEEPERS, (missing, beyond, forked))
        self.assertEqual([], load.check(topics["sluice.program"])[:5])


if __name__ == "__main__":
    harness.main()
