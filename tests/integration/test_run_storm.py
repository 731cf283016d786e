# SPDX-License-Identifier: Apache-2.0
"""Short processes as fast as the machine makes them: all in the lake, nothing lost."""
import json
import os
import sys

import harness
from harness import LakeTest, read_lake
from load import own

PROCESSES = int(os.environ.get("STORM", "30000"))


BURSTS = 40
SOON = 0.08  # seconds: a quarter of the time after which the ring is drained by a timer
# A quarter of the ring is filled, which needs a wakeup; while it is read, programs come that ask for another.
BURST = """
import os, subprocess, sys, time
switch, true = sys.argv[1:]
for _ in range(%d):
    for _ in range(110):
        os.waitpid(os.posix_spawn(true, [true, "x" * 30000], {}), 0)
    time.sleep(%g)
    print(subprocess.run([switch, str(os.getppid()), "wakeup"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    time.sleep(0.2)
""" % (BURSTS, SOON)


class Storm(LakeTest):
    def test_a_wakeup_that_finds_the_ring_read_is_not_the_last(self):
        """Otherwise the ring is only read by a timer, which is too late if it is filled sooner."""
        done = self.sluice_run(sys.executable, "-S", "-c", BURST, harness.built("probes_switch"), own("true"))
        self.assertEqual(0, done.returncode, done.stderr)
        is_pending = [int(x) for x in done.stdout.split()]
        self.assertEqual(BURSTS, len(is_pending))
        # Without that, half of them and more; but the reader itself can be late where others use the CPUs.
        self.assertLess(sum(is_pending), BURSTS / 4, is_pending)

    def test_that_saturates_all_cpus_loses_nothing(self):
        done = self.sluice_run(harness.built("truth"), "storm", PROCESSES, timeout=540)
        self.assertEqual(0, done.returncode, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(PROCESSES, told["started"])
        self.assertEqual(0, harness.told_lost(done.stderr))

        topics = read_lake(self.lake)
        told_of = {"START": {}, "END": {}}
        twice = []
        for r in topics["sluice.program"]:
            if told_of[r["phase"]].setdefault(r["program_id"], r) is not r:
                twice.append(r)
        self.assertEqual([], twice[:5])
        tools = {i: r for i, r in told_of["END"].items() if not r["forked"] and (r["argv"] or [])[1:] == ["x"]}
        self.assertEqual(PROCESSES, len(tools))
        # Programs that are seen after a second, or when Usage records are due, have a START. One that waits for a CPU for
        # more than a second before its exec has it as the fork of its parent.
        starts = [told_of["START"][i] for i in tools if i in told_of["START"]]
        self.assertLess(len(starts), PROCESSES / 50)
        self.assertEqual([], [r for r in starts if not r["forked"] and r["argv"][1:] != ["x"]][:5])
        used = {r["program_id"] for r in topics.get("sluice.usage", [])}
        self.assertEqual(set(), used - set(told_of["START"]))
        early = [r for r in starts if r["program_id"] not in used and r["time"] - r["program_start_time"] < 1e6]
        self.assertEqual([], early[:5])
        wrong = []
        for r in tools.values():
            u = r["usage"]
            if r["exit_code"] != 0 or not u["cpu_user_ns"] + u["cpu_system_ns"] or not u["minor_faults"]:
                wrong.append((r["exit_code"], u))
        self.assertEqual([], wrong[:5])
        # the root and its spawners besides
        self.assertEqual(PROCESSES + told["spawners"] + 1, len(told_of["END"]))
        self.assert_nothing_lost(topics)
        run = [r for r in topics["sluice.run"] if r["phase"] == "END"]
        self.assertEqual([(PROCESSES + told["spawners"] + 1, 0)], [(r["programs"], r["lost_events"]) for r in run])


if __name__ == "__main__":
    harness.main()
