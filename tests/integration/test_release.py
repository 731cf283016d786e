# SPDX-License-Identifier: Apache-2.0
"""What an older release left on the disk: its spool is delivered, each record once, and its lake is read."""
import collections
import os

import harness
import releases
from agent import AgentTest
from harness import losses, read_cat, read_lake, seq_holes


class Release(AgentTest):
    def own(self, spool, uid):
        """Its files are those of the user that the agent becomes."""
        for at, _, files in os.walk(spool):
            for path in (at, *(os.path.join(at, name) for name in files)):
                os.chown(path, uid, uid)

    def check_spool(self, name, is_same_boot):
        a = self.agent(name)
        expected = releases.unpack(name, a.room)
        kept = a.lake + ".kept"
        os.rename(a.lake, kept)
        self.own(a.spool, 65534)
        boot = read_cat(kept, "agent")[0]["boot_id"]
        a.command_prefix = harness.under_boot(a.room, boot if is_same_boot else harness.ANOTHER_BOOT)
        a.start()
        a.settle(delivered=True)
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual([], [x for x in a.log_lines() if x["level"] == "error"])
        topics = read_lake(a.lake)
        for topic, known in expected["spool"].items():
            self.assertEqual([], seq_holes(topics[topic]), topic)  # nor is one there twice
            self.assertEqual(known, releases.digests({topic: topics[topic][:len(known)]})[topic])
        self.assertEqual({expected["agent_id"]}, {r["agent_id"] for records in topics.values() for r in records})
        agent = topics["sluice.agent"]
        events = collections.Counter(r["event"] for r in agent)
        self.assertEqual((1, 2), (events["GAP"], events["START"]), events)
        self.assertEqual((boot, is_same_boot), (agent[0]["boot_id"], agent[-1]["boot_id"] == boot))
        # The write-ahead log names the processes that ran; they ended while no agent ran. A log of another boot has no
        # process of this one.
        unseen = [("correlate", "end_unseen", expected["alive"])] if is_same_boot else []
        self.assertEqual(unseen, [x for x in losses(topics) if x[1] != "cut"])

    def check_lake(self, name):
        room = os.path.join(self.room, name)
        os.mkdir(room)
        expected = releases.unpack(name, room)
        for topic, known in expected["lake"].items():
            records = read_cat(os.path.join(room, "lake"), topic.removeprefix("sluice."))
            self.assertEqual(known, releases.digests({topic: records})[topic])

    def test_its_spool_is_delivered_and_the_gap_is_reported(self):
        self.assertTrue(releases.names())
        for name in releases.names():
            with self.subTest(name):
                self.check_spool(name, is_same_boot=True)

    def test_its_spool_is_delivered_after_a_reboot(self):
        for name in releases.names():
            with self.subTest(name):
                self.check_spool(name, is_same_boot=False)

    def test_its_lake_is_read(self):
        for name in releases.names():
            with self.subTest(name):
                self.check_lake(name)


if __name__ == "__main__":
    harness.main()
