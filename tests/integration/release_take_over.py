# SPDX-License-Identifier: Apache-2.0
"""An older release's agent is killed under load and today's takes over; dev/keep-release --take-over: BUILD COMMIT

Either its maps have today's layout, and nothing is missing; or they have another, and a GAP tells so. What was recorded
before and what came afterwards is whole in either case.
"""
import json
import os
import shutil
import sys
import unittest

import harness
from agent import AgentTest
from harness import read_lake, seq_holes
from load import Load, duplicates, once

BUILD = None


class TakeOver(AgentTest):
    def load(self, name):
        return Load(name, program=self.program)

    def test_takes_over(self):
        self.program = shutil.copy("/bin/true", os.path.join(self.room, "true"))
        a = self.agent(sluice=os.path.join(BUILD, "sluice"))
        os.makedirs(a.config["rules"])
        with open(os.path.join(a.config["rules"], "load.yaml"), "w") as f:
            json.dump({"include": [{"path": self.program}]}, f)
        a.start()
        with self.load("before") as before:
            before.wait_more(50)
        a.settle()
        with self.load("during") as during:
            during.wait_more(50)
            a.kill9()
            a.sluice = harness.SLUICE
            a.start()
            during.wait_more(50)
        with self.load("after") as after:
            after.wait_more(50)
        a.settle(delivered=True)
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        for topic, records in topics.items():
            self.assertEqual([], duplicates(records)[1], topic)
            self.assertEqual([], seq_holes(once(records)), topic)
        programs = topics["sluice.program"]
        self.assertEqual([], before.check(programs)[:5])
        self.assertEqual([], after.check(programs)[:5])
        gaps = [r for r in once(topics["sluice.agent"]) if r["event"] == "GAP"]
        print("the maps have %s layout" % ("another" if gaps else "today's"))
        if not gaps:
            self.assertEqual([], during.check(programs)[:5])
        self.assertLessEqual(len(gaps), 1)


if __name__ == "__main__":
    BUILD = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
