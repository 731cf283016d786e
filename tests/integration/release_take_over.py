# SPDX-License-Identifier: Apache-2.0
"""An agent of one release is killed under load and that of another takes over; dev/keep-release --take-over: BUILD COMMIT

BUILD is the older one, and today's the other; an upgrade and a downgrade. Either their maps have the same layout, and
nothing is missing; or another one, and there is a GAP record. What was recorded before and what came afterwards is whole
in either case.
"""
import json
import os
import shutil
import sys
import time
import unittest

import harness
from agent import AgentTest
from harness import read_lake, seq_holes
from load import Load, duplicates, once

BUILD = None


class TakeOver(AgentTest):
    def load(self, name):
        return Load(name, program=self.program)

    def test_upgrade(self):
        self.take_over(os.path.join(BUILD, "sluice"), harness.SLUICE)

    def test_downgrade(self):
        self.take_over(harness.SLUICE, os.path.join(BUILD, "sluice"))

    def settle(self, a, **options):
        """The first release has no `ctl settle`: records are in the spool a second after their program."""
        try:
            a.settle(**options)
        except AssertionError as error:
            if "takes seconds" not in str(error):
                raise
            time.sleep(5 * harness.PATIENCE)
            a.wait_empty()

    def take_over(self, first, second):
        self.program = shutil.copy("/bin/true", os.path.join(self.room, "true"))
        a = self.agent(sluice=first, run_socket=None)
        os.makedirs(a.config["rules"])
        with open(os.path.join(a.config["rules"], "load.yaml"), "w") as f:
            json.dump({"include": [{"path": self.program}]}, f)
        a.start()
        with self.load("before") as before:
            before.wait_more(50)
        self.settle(a)
        with self.load("during") as during:
            during.wait_more(50)
            a.kill9()
            a.sluice = second
            a.start()
            during.wait_more(50)
        with self.load("after") as after:
            after.wait_more(50)
        self.settle(a, delivered=True)
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        for topic, records in topics.items():
            self.assertEqual([], duplicates(records)[1], topic)
            self.assertEqual([], seq_holes(once(records)), topic)
        programs = topics["sluice.program"]
        self.assertEqual([], before.check(programs)[:5])
        self.assertEqual([], after.check(programs)[:5])
        gaps = [r for r in once(topics["sluice.agent"]) if r["event"] == "GAP"]
        print("the maps have %s" % ("another layout, the gap is %.3f s: %s" % (
            gaps[0]["interval_ns"] / 1e9, gaps[0]["message"]) if gaps else "the same layout"))
        # What is missing ran at some moment of a gap that a record has.
        ends = [(r["time"] / 1e6, r["interval_ns"] / 1e9) for r in gaps]
        self.assertEqual([], [(began, ended) for began, ended in during.missing(programs)
                              if not any(end - length <= ended and began <= end for end, length in ends)][:5])
        self.assertLessEqual(len(gaps), 1)


if __name__ == "__main__":
    BUILD = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
