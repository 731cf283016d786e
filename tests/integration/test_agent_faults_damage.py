# SPDX-License-Identifier: Apache-2.0
"""The spool is damaged under load while no agent runs: every whole record arrives, and what does not is reported."""
import errno
import glob
import os
import re
import subprocess

import harness
from faults import DiskFaultTest
from kafka_rules import TOPICS
from load import MARK, Load, own


class Damage(DiskFaultTest):
    def segments(self, a, queue="main"):
        return sorted(glob.glob(f"{a.spool}/{queue}-*.seg"))

    def told(self, load):
        """The arguments of a load's programs as a record has them: Avro's strings."""
        return b"".join(bytes([2 * len(x)]) + x for x in (MARK.encode(), load.name.encode()))

    def fill_and_kill(self, a, load):
        """Records wait in segments, the agent is dead and the broker away."""
        self.wait_delivered(a, 50)
        self.stack.kill_broker()
        # Most of what the segments hold, however much was delivered before.
        self.wait_status(a, lambda s: s["spool"]["records"] > max(400, sum(t["delivered"] for t in s["records"])),
                         "waiting records")
        a.kill9()

    def test_torn_last_segment(self):
        """What was never written whole was never taken from the kernel's ring: it comes from there."""
        a = self.kafka_agent().start()
        with Load("torn", rate=150) as load:
            self.fill_and_kill(a, load)
            last = self.segments(a)[-1]
            with open(last, "ab") as f:
                f.write(b"SLBT" + os.urandom(300))
            a.start()
            line = a.wait_log("spool.recovered")
            self.assertEqual(304, line["torn_bytes"])
            self.stack.start_broker()
            self.wait_delivered(a, 400)
        self.stop_drained(a)
        self.assert_whole(load, again=True)

    def assert_gap(self, result):
        gaps = [r for r in self.agent_records(result) if r["event"] == "GAP"]
        self.assertEqual(1, len(gaps))
        self.assertIn("did not reach the spool", gaps[0]["message"])
        # What was recorded may have been lost in part: a program that had ended may end again.
        self.assertEqual({}, {k: v for k, v in result.faults.items() if k not in ("start", "end")}, result.summary())

    def test_last_batch_cut(self):
        """The kernel's ring has moved on past what the disk has lost: the next agent sees that and reports a gap."""
        a = self.kafka_agent().start()
        stays = subprocess.Popen([own("cat"), MARK, "stays", "-"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(stays.communicate)
        with Load("cut", rate=150) as load:
            self.fill_and_kill(a, load)
            last = self.segments(a)[-1]
            # More than one batch: the ring's room of the very last may not have been given back when it was killed.
            size = os.path.getsize(last) - min(20000, os.path.getsize(last) // 2)
            with open(last, "rb") as f:
                data = f.read()
            # What one batch holds depends on when the agent had a CPU: whose records are in those that are not whole.
            gone = set(re.findall(self.told(load) + rb".(\d+)", data[data.rindex(b"SLBT", 0, size):], re.DOTALL))
            os.truncate(last, size)
            a.start()
            self.assertGreater(a.wait_log("spool.recovered")["torn_bytes"], 0)
            self.assertGreater(a.wait_log("spool.behind")["bytes"], 0)
            self.stack.start_broker()
            self.wait_delivered(a, 400)
        stays.communicate()
        a.settle()
        self.stop_drained(a)
        # The state file may know of a number that was cut off: none is given twice, and the reader sees a hole.
        result = self.read(duplicates=1 << 60, ends_without_start=1 << 30, cut_topics=TOPICS)
        for (_, topic), seqs in result.holes.items():
            self.assertEqual(len(seqs), seqs[-1] - seqs[0] + 1, f"{topic}: {seqs}")
        self.assert_gap(result)
        programs = [r for t, r in result.records if t == "sluice.program"]
        wrong = load.check(programs, all_start=True)
        self.assertTrue(0 < len(wrong) <= len(gone), (wrong, gone))
        # The kernel side has followed it all the time: it is neither lost nor discovered again.
        self.assertEqual(["START", "END"], [r["phase"] for r in programs if r["argv"][2] == "stays"])

    def test_killed_while_the_disk_is_full(self):
        """What was in memory only is gone with the agent, unless it was delivered: the next one reports that."""
        disk = self.disk()
        a = self.kafka_agent(spool={"dir": disk + "/spool", "max": "16MiB"}).start()
        with Load("gone", rate=150) as load:
            self.wait_delivered(a, 50)
            self.stack.kill_broker()
            self.fill(disk)
            self.wait_disk_error(a, os.strerror(errno.ENOSPC))
            self.wait_status(a, lambda s: s["spool"]["memory_bytes"] > 256 << 10, "records in memory")
            a.kill9()
            os.unlink(disk + "/fill")
            a.start()
            self.assertGreater(a.wait_log("spool.behind")["bytes"], 0)
            self.stack.start_broker()
            self.wait_delivered(a, 200)
        self.stop_drained(a)
        result = self.read(duplicates=1 << 60, ends_without_start=1 << 30, cut_topics=TOPICS)
        self.assert_gap(result)
        self.assertNotEqual([], load.check([r for t, r in result.records if t == "sluice.program"], all_start=True))

    def test_flipped_byte(self):
        a = self.kafka_agent().start()
        with Load("flipped", rate=150) as load:
            self.fill_and_kill(a, load)
            path = self.segments(a)[-1]
            with open(path, "r+b") as f:
                data = f.read()
                # In the middle of the file, in the record (Avro's strings, not a note's) of a program of the load.
                at = data.index(self.told(load), len(data) * 2 // 3)
                f.seek(at + 1)
                f.write(b"S")
            a.start()
            self.stack.start_broker()
            self.wait_delivered(a, 400)
        self.stop_drained(a)
        result = self.read(duplicates=1 << 60, ends_without_start=1 << 30)
        self.assertTrue(result.ok, result.summary())
        self.assertEqual([1], [len(seqs) for seqs in result.holes.values()], result.summary())
        counted = [(place, n) for place, reason, n in self.lost(result) if reason == "spool_corrupt"]
        self.assertEqual([("sluice.program", 1)], counted, result.summary())
        self.assert_only_lost(result, "spool_corrupt", "end_unseen")  # of programs whose START is among them
        wrong = load.check([r for t, r in result.records if t == "sluice.program"], all_start=True)
        self.assertEqual(1, len(wrong), wrong)


if __name__ == "__main__":
    harness.main()
