# SPDX-License-Identifier: Apache-2.0
"""
SIGTERM: what waits is delivered for as long as `drain` says; a second one ends the agent at once, and nothing is lost. What
the agent logs at its end is what the next one finds.
"""
import os
import signal
import time

import harness
from agent import AgentTest
from disk_log import ext4_disk, frozen, own_mounts
from harness import losses, read_lake, seq_holes
from load import Load, own_folder


class Stop(AgentTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if harness.is_root():
            own_mounts()

    def assert_stopped(self, a, drained, sentence):
        """The last line of the agent that ended; and the number of records that it left in the spool."""
        stopped = a.wait_log("agent.stopped")
        self.assertEqual((drained, sentence), (stopped["drained"], stopped["message"]))
        return stopped["spooled"]

    def assert_found(self, a, spooled):
        """The next agent begins with the records that the one before said it left."""
        self.assertEqual(spooled, a.start().wait_log("spool.opened")["records"])

    def test_the_last_words_are_true(self):
        """The lake's disk answers only after more was recorded than the agent has to deliver before it ends."""
        disk = ext4_disk(self)
        a = self.agent(lake=os.path.join(disk, "lake"), drain="10m", interval="1h")  # no records but those of programs
        a.lake = a.config["lake"]
        a.follow_only(own_folder())
        a.start()
        with Load("stop", rate=50) as load:
            load.wait_more(20)
            with frozen(disk):
                a.signal(signal.SIGTERM)
                a.wait_log("agent.stopping")
                waiting = a.status()["spool"]["records"]
                load.wait_more(20)
                a.wait(lambda: a.status()["spool"]["records"] >= waiting + 20, what="records after the stop")
            self.assertEqual(0, a.process.wait(60 * harness.PATIENCE), a.log_text())
        left = self.assert_stopped(a, True, "everything up to the stop is delivered; later records stay in the spool for the next agent")
        self.assertGreaterEqual(left, 20)
        delivered = read_lake(a.lake)["sluice.agent"]
        self.assertEqual("STOP", delivered[-1]["event"])
        self.assert_found(a, left)
        a.settle(delivered=True)
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual(0, self.assert_stopped(a, True, "everything is delivered"))
        self.assert_found(a, 0)
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual([], load.check(read_lake(a.lake)["sluice.program"])[:5])

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
            left = self.assert_stopped(a, False, "undelivered records stay in the spool for the next agent")
            end = time.monotonic() + 30
            while a.process.poll() is None and time.monotonic() < end:  # a third one, or a reload too late, cuts nothing off
                for late in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                    a.signal(late)
                time.sleep(0.005)
            self.assertEqual(0, a.process.wait(30), a.log_text())
            self.assertGreater(left, 100)
            load.wait_more(50)  # while there is no agent
            # The next one delivers what was left, here to files.
            del a.config["kafka"], a.config["registry"]
            a.configure(drain="60s")
            self.assert_found(a, left)
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
