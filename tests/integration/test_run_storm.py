# SPDX-License-Identifier: Apache-2.0
"""Short processes as fast as the machine makes them: all in the lake, nothing lost."""
import collections
import json
import os
import unittest

import harness
from harness import LakeTest, read_lake

PROCESSES = int(os.environ.get("STORM", "30000"))


class Storm(LakeTest):
    def test_that_saturates_all_cpus_loses_nothing(self):
        done = self.sluice_run(harness.built("truth"), "storm", PROCESSES, timeout=540)
        self.assertEqual(0, done.returncode, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(PROCESSES, told["started"])
        self.assertEqual(0, harness.told_lost(done.stderr))

        topics = read_lake(self.lake)
        phases = collections.Counter()
        ids = collections.Counter()
        wrong = []
        for r in topics["sluice.program"]:
            ids[r["program_id"], r["phase"]] += 1
            if r["argv"] is None or r["argv"][1:] != ["x"] or r["forked"]:
                continue
            phases[r["phase"]] += 1
            if r["phase"] == "END":
                u = r["usage"]
                if r["exit_code"] != 0 or not u["cpu_user_ns"] + u["cpu_system_ns"] or not u["minor_faults"]:
                    wrong.append((r["exit_code"], u))
        self.assertEqual({"START": PROCESSES, "END": PROCESSES}, dict(phases))
        self.assertEqual([], [i for i, n in ids.items() if n != 1][:5])
        self.assertEqual([], wrong[:5])
        # the root and its spawners besides
        self.assertEqual(PROCESSES + told["spawners"] + 1, sum(1 for _, phase in ids if phase == "END"))
        self.assert_nothing_lost(topics)
        run = [r for r in topics["sluice.run"] if r["phase"] == "END"]
        self.assertEqual([(PROCESSES + told["spawners"] + 1, 0)], [(r["programs"], r["lost_events"]) for r in run])


if __name__ == "__main__":
    harness.main()
