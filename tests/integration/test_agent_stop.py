# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: what waits is delivered for as long as `drain` says; a second one ends the agent at once, and nothing is lost."""
import signal
import time

import harness
from agent import AgentTest
from harness import losses, read_lake, seq_holes
from load import Load, own_folder


class Stop(AgentTest):
    def test_a_second_sigterm_ends_it_at_once(self):
        """The records are not taken, so that the first would continue for ten minutes."""
        nowhere = {"brokers": ["127.0.0.1:1"]}
        a = self.agent(drain="10m", kafka=nowhere, registry={"urls": ["http://127.0.0.1:1"]})
        a.follow_only(own_folder())
        a.start()
        with Load("stop") as load:
            a.wait(lambda: a.status()["spool"]["records"] >= 100 and load.started >= 100, what="records that wait")
            a.signal(15)
            a.wait_log("agent.stopping")
            load.wait_more(50)
            self.assertIsNone(a.process.poll(), "the drain ended by itself")
            a.signal(15)
            stopped = a.wait_log("agent.stopped")
            end = time.monotonic() + 30
            while a.process.poll() is None and time.monotonic() < end:  # a third one, or a reload too late, cuts nothing off
                for late in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                    a.signal(late)
                time.sleep(0.005)
            self.assertEqual(0, a.process.wait(30), a.log_text())
            self.assertFalse(stopped["drained"])
            self.assertGreater(stopped["spooled"], 100)
            load.wait_more(50)  # while there is no agent
            # The next one delivers what was left, here to files.
            del a.config["kafka"], a.config["registry"]
            a.configure(drain="60s")
            a.start()
        a.settle(delivered=True)
        self.assertEqual(0, a.stop(90), a.log_text())
        self.assertTrue(a.wait_log("agent.stopped")["drained"], a.log_text())
        topics = read_lake(a.lake)
        for topic, records in topics.items():
            self.assertEqual([], seq_holes(records), topic)  # nor is one there twice
            self.assertEqual(0, records[0]["seq"], topic)
        self.assertEqual([], load.check(topics["sluice.program"])[:5])
        self.assertEqual(["START", "STOP", "START", "STOP"],
                         [r["event"] for r in topics["sluice.agent"] if r["event"] in ("START", "STOP", "GAP")])
        self.assertEqual([], [x for x in losses(topics) if x[1] != "cut"])


if __name__ == "__main__":
    harness.main()
