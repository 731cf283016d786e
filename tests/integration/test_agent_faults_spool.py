# SPDX-License-Identifier: Apache-2.0
"""The spool's disk is full, read-only, gone, too small or damaged under load: what is lost is counted, and nothing else is."""
import collections
import errno
import os
import glob
import shutil
import subprocess
import time

import harness
from faults import WAIT, FaultTest
from load import Load

MIB = 1 << 20


class Spool(FaultTest):
    def tearDown(self):
        if not self.stack.servers.broker_pid():
            self.stack.start_broker()
        super().tearDown()

    def disk(self, size="24m"):
        """A small disk of its own for the spool."""
        at = os.path.join(self.room, "disk")
        os.makedirs(at)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs", at], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", at], check=True)
        return at

    def fill(self, disk):
        done = subprocess.run(["dd", "if=/dev/zero", f"of={disk}/fill", "bs=4096"], stderr=subprocess.PIPE, text=True)
        self.assertIn(os.strerror(errno.ENOSPC), done.stderr)

    def wait_disk_error(self, a, text):
        s = self.wait_status(a, lambda s: s["spool"]["disk_error"], "disk error")
        self.assertEqual(text, s["spool"]["disk_error"])
        self.assertTrue(any(text in p["text"] for p in s["problems"]), s["problems"])
        return s

    def assert_told_once(self, a, event, times=1):
        self.assertEqual(times, len([x for x in a.log_lines() if x["event"] == event]), a.log_text())

    def test_disk_full_then_freed(self):
        disk = self.disk()
        a = self.kafka_agent(spool={"dir": disk + "/spool", "max": "16MiB"}).start()
        with Load("full", rate=150) as load:
            self.wait_delivered(a, 50)
            self.fill(disk)
            self.wait_disk_error(a, os.strerror(errno.ENOSPC))
            self.wait_delivered(a, 300)  # goes on meanwhile
            time.sleep(2)
            os.unlink(disk + "/fill")
            self.wait_status(a, lambda s: not s["spool"]["disk_error"], "disk back")
            self.wait_delivered(a, 100)
        self.assert_told_once(a, "spool.disk")
        self.assert_told_once(a, "spool.disk_back")
        self.stop_drained(a)
        self.assert_whole(load)

    def test_disk_full_while_the_broker_is_away(self):
        """What is in memory then reaches the disk, and outlives the agent."""
        disk = self.disk()
        a = self.kafka_agent(spool={"dir": disk + "/spool", "max": "16MiB"}, drain="1s").start()
        with Load("full", rate=150) as load:
            self.wait_delivered(a, 50)
            self.stack.kill_broker()
            self.fill(disk)
            self.wait_disk_error(a, os.strerror(errno.ENOSPC))
            s = self.wait_status(a, lambda s: s["spool"]["memory_bytes"] > 256 << 10, "records in memory")
            self.assertGreater(s["spool"]["records"], 200)
            os.unlink(disk + "/fill")
            self.wait_status(a, lambda s: not s["spool"]["disk_error"] and s["spool"]["memory_bytes"] == 0, "disk back")
            a.kill9()
            a.start()
            self.stack.start_broker()
            self.wait_delivered(a, 300)
        a.configure(drain=f"{WAIT}s")
        a.ctl("reload", check=True)
        self.stop_drained(a)
        self.assert_whole(load, again=True)

    def test_read_only_and_back(self):
        disk = self.disk()
        a = self.kafka_agent(spool={"dir": disk + "/spool"}).start()
        # Files that are open for writing keep a disk from becoming read-only; a mount on top does not mind.
        subprocess.run(["mount", "--bind", disk, disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        with Load("read-only", rate=150) as load:
            self.wait_delivered(a, 50)
            subprocess.run(["mount", "-o", "remount,bind,ro", disk], check=True)
            time.sleep(3)
            self.wait_delivered(a, 200)
            subprocess.run(["mount", "-o", "remount,bind,rw", disk], check=True)
            self.wait_status(a, lambda s: not s["spool"]["disk_error"], "disk back")
            self.wait_delivered(a, 100)
        self.stop_drained(a)
        self.assert_whole(load)

    def test_directory_removed(self):
        a = self.kafka_agent().start()
        with Load("removed", rate=150) as load:
            self.wait_delivered(a, 50)
            shutil.rmtree(a.spool)
            self.wait_disk_error(a, os.strerror(errno.ENOENT))
            self.wait_delivered(a, 200)
            os.makedirs(a.spool, mode=0o700)
            os.chown(a.spool, *[os.stat(a.room + "/dead-letters").st_uid] * 2)
            self.wait_status(a, lambda s: not s["spool"]["disk_error"], "disk back")
            self.wait_delivered(a, 100)
            a.kill9()  # and the new one holds all that a restart needs
            a.start()
            self.wait_delivered(a, 100)
        self.assert_told_once(a, "spool.disk", 0)
        self.stop_drained(a)
        self.assert_whole(load, again=True, first_seq=None)

    def test_over_its_bound(self):
        """Usage goes first; what is missing in the end is exactly what was counted, topic by topic."""
        a = self.kafka_agent(spool={"max": "16MiB"}).start()
        sleepers = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(2)]
        self.addCleanup(lambda: [(p.kill(), p.wait()) for p in sleepers])
        with Load("small", rate=100) as small:
            self.wait_delivered(a, 50)
            self.stack.kill_broker()
            with Load("large", rate=150, padding=30000) as large:
                s = self.wait_status(a, lambda s: s["spool"]["dropped"], "drops")
                self.assertEqual({"sluice.usage"}, {d["topic"] for d in s["spool"]["dropped"]}, "Usage first")
                s = self.wait_status(a, lambda s: any(d["topic"] == "sluice.program" for d in s["spool"]["dropped"]),
                                     "drops of programs")
                time.sleep(1)
            s = a.status()
            self.assertLessEqual(s["spool"]["bytes"], 20 * MIB)
            self.assertTrue(any("dropped by the spool" in p["text"] for p in s["problems"]), s["problems"])
            self.stack.start_broker()
            self.wait_delivered(a, 200)
        self.stop_drained(a)
        result = self.read(duplicates=1 << 60, ends_without_start=1 << 30)
        self.assertTrue(result.ok, result.summary())
        counted = {place: n for place, reason, n in self.lost(result) if reason == "spool_full"}
        missing = collections.Counter()
        for (_, topic), seqs in result.holes.items():
            missing[topic] += len(seqs)
        self.assertEqual(counted, dict(missing), result.summary())
        self.assertGreater(counted["sluice.program"], 50)
        self.assert_only_lost(result, "spool_full")
        self.assertGreater(small.started + large.started, 0)

    def segments(self, a, lane="main"):
        return sorted(glob.glob(f"{a.spool}/{lane}-*.seg"))

    def fill_and_kill(self, a, load):
        """Records wait in segments, the agent is dead and the broker away."""
        self.wait_delivered(a, 50)
        self.stack.kill_broker()
        self.wait_status(a, lambda s: s["spool"]["records"] > 400, "waiting records")
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
        return gaps[0]

    def test_last_batch_cut(self):
        """The kernel's ring has moved on past what the disk has lost: the next agent sees that and tells of a gap."""
        a = self.kafka_agent().start()
        with Load("cut", rate=150) as load:
            self.fill_and_kill(a, load)
            last = self.segments(a)[-1]
            os.truncate(last, os.path.getsize(last) - 50)
            a.start()
            self.assertGreater(a.wait_log("spool.recovered")["torn_bytes"], 0)
            self.assertGreater(a.wait_log("spool.behind")["bytes"], 0)
            self.stack.start_broker()
            self.wait_delivered(a, 400)
        self.stop_drained(a)
        result = self.read(duplicates=1 << 60, ends_without_start=1 << 30)
        self.assertTrue(result.ok, result.summary())
        self.assert_gap(result)
        wrong = load.check([r for t, r in result.records if t == "sluice.program"])
        self.assertTrue(0 < len(wrong) < 60, wrong)

    def test_killed_while_the_disk_is_full(self):
        """What was in memory only is gone with the agent, unless it was delivered: the next one says so."""
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
        result = self.read(duplicates=1 << 60, ends_without_start=1 << 30)
        self.assertTrue(result.ok, result.summary())
        self.assert_gap(result)
        self.assertNotEqual([], load.check([r for t, r in result.records if t == "sluice.program"]))

    def test_flipped_byte(self):
        a = self.kafka_agent().start()
        with Load("flipped", rate=150) as load:
            self.fill_and_kill(a, load)
            path = self.segments(a)[-1]
            with open(path, "r+b") as f:
                data = f.read()
                # Within what a program of the load is said to be, in the middle of the file.
                at = data.index(b"flipped", len(data) * 2 // 3)
                f.seek(at)
                f.write(b"F")
            a.start()
            self.stack.start_broker()
            self.wait_delivered(a, 400)
        self.stop_drained(a)
        result = self.read(duplicates=1 << 60, ends_without_start=1)
        self.assertTrue(result.ok, result.summary())
        self.assertEqual([("sluice.program", "spool_corrupt", 1)],
                         [x for x in self.lost(result) if x[1] not in ("cut", "skipped")], result.summary())
        self.assertEqual([1], [len(seqs) for seqs in result.holes.values()], result.summary())
        self.assertEqual(1, len(load.check([r for t, r in result.records if t == "sluice.program"])))


if __name__ == "__main__":
    harness.main()
